package processor

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
)

// featureList is how LLVM writes the features of a processor.
var featureList = regexp.MustCompile(`[+-][a-z0-9][a-z0-9.-]*(?:,[+-][a-z0-9][a-z0-9.-]*){3,}`)

// Of finds what the CPU plugin notes in a serialized executable of the processor that the code is for: a protocol buffer
// TargetMachineOptionsProto (xla/backends/cpu/target_machine_options.proto) with the fields 1 triple, 2 cpu and 3 features, all strings. Nothing is found where
// the format is another one.
func Of(executable []byte) (processor string, features []string) {
	const triple, cpu, list = 1<<3 | 2, 2<<3 | 2, 3<<3 | 2 // tags of the fields
	for _, at := range featureList.FindAllIndex(executable, -1) {
		text, before, ok := fieldAt(executable, list, at[0], at[1])
		if !ok {
			continue
		}
		features = slices.DeleteFunc(strings.Split(text, ","), func(f string) bool { return f == "" })
		slices.Sort(features)
		if name, before, ok := fieldBefore(executable[:before], cpu); ok {
			processor = name
			if t, _, ok := fieldBefore(executable[:before], triple); ok {
				processor = t + " " + name
			}
		}
		return processor, features
	}
	return "", nil
}

// fieldAt is the string field whose text begins at from and ends at or before to, and where its tag stands.
func fieldAt(data []byte, tag byte, from, to int) (text string, at int, ok bool) {
	for n := 1; n <= 3 && n < from; n++ { // bytes of the length
		size, used := binary.Uvarint(data[from-n : from])
		if used == n && data[from-n-1] == tag && size <= uint64(to-from) {
			return string(data[from : from+int(size)]), from - n - 1, true
		}
	}
	return "", 0, false
}

// fieldBefore is the string field of less than 128 bytes that ends with data, and where its tag stands.
func fieldBefore(data []byte, tag byte) (text string, at int, ok bool) {
	for n := 0; n < 128 && n+2 <= len(data); n++ {
		at := len(data) - n - 2
		if data[at] == tag && int(data[at+1]) == n && !bytes.ContainsFunc(data[at+2:], func(r rune) bool { return r <= ' ' || r > '~' }) {
			return string(data[at+2:]), at, true
		}
	}
	return "", 0, false
}
