// Package processor tells processors apart: this machine's, and those that executables are made for.
package processor

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// processorFields are the lines of /proc/cpuinfo that tell processors apart, on x86 and on ARM. Flags change with the hypervisor and the kernel too.
var processorFields = []string{"vendor_id", "cpu family", "model", "model name", "stepping", "flags",
	"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"}

// Here names this machine's processor: another one gets another name, and may get code of its own from a plugin. No name of the machine is in it.
var Here = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	return describe(data)
})

// describe is the name of the first processor of a /proc/cpuinfo, and a digest of all that tells it apart.
func describe(cpuinfo []byte) string {
	name := runtime.GOARCH
	h := sha256.New()
	for lines := bufio.NewScanner(bytes.NewReader(cpuinfo)); lines.Scan() && lines.Text() != ""; {
		field, value, _ := strings.Cut(lines.Text(), ":")
		field, value = strings.TrimSpace(field), strings.TrimSpace(value)
		if !slices.Contains(processorFields, field) {
			continue
		}
		if field == "model name" {
			name = value
		}
		h.Write([]byte(field + ":" + value + "\n"))
	}
	return name + " " + hex.EncodeToString(h.Sum(nil)[:8])
}
