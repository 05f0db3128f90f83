package tpu

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"tpuc/tpu/pjrt"
)

// childEnv marks a process as the compile child; its value is the version of the protocol.
const (
	childEnv     = "TPUC_COMPILE_CHILD"
	childVersion = "1"
)

// passed are the caller's variables that the child needs to find libraries and a place for temporary files.
var passed = []string{"LD_LIBRARY_PATH", "TMPDIR"}

// fixed are the child's own variables. Plugins read them when they are loaded.
var fixed = []string{
	childEnv + "=" + childVersion,
	"PATH=/usr/bin:/bin",
	"LC_ALL=C",
	"TZ=UTC",
	"GOTRACEBACK=none",             // a crash is the plugin's: Go stacks say nothing about it
	"TPU_SKIP_MDS_QUERY=1",         // off the cloud libtpu polls the metadata server for minutes
	"ALLOW_MULTIPLE_LIBTPU_LOAD=1", // compiling takes no TPU: leave the lock of a process that uses one alone
	"TPU_LOG_DIR=disabled",         // no files under /tmp/tpu_logs
	"TPU_MIN_LOG_LEVEL=2",
	"TPU_STDERR_LOG_LEVEL=2",
	"TF_CPP_MIN_LOG_LEVEL=2",
}

// Settings digests what every compile gets beside its request: the child's own variables, and the compile options for each platform. A cache's keys
// hold it, so that a change of either is a miss.
func Settings() string {
	h := sha256.New()
	for _, kv := range fixed {
		fmt.Fprintf(h, "%s\n", kv)
	}
	for _, cpu := range []bool{false, true} {
		h.Write(pjrt.OptionsFor(nil, cpu).Encode())
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// childEnvironment is all the child sees. Nothing else of the caller's reaches it, so that a stray XLA_FLAGS, a
// proxy or a locale changes no executable; a later entry wins.
func childEnvironment(opts Options, lookup func(string) (string, bool)) ([]string, error) {
	var env []string
	for _, name := range passed {
		if v, ok := lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, fixed...)
	for _, f := range []struct {
		name  string
		words []string
	}{{"XLA_FLAGS", opts.XLAFlags}, {"LIBTPU_INIT_ARGS", opts.LibtpuArgs}} {
		for _, w := range f.words {
			if w == "" || strings.ContainsAny(w, " \t\n\x00") {
				return nil, fmt.Errorf("%s word %q, want one flag without white space", f.name, w)
			}
		}
		if len(f.words) > 0 {
			env = append(env, f.name+"="+strings.Join(f.words, " "))
		}
	}
	for _, kv := range opts.Env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.Contains(kv, "\x00") {
			return nil, fmt.Errorf("environment entry %q, want NAME=VALUE", kv)
		}
		if name == childEnv {
			return nil, fmt.Errorf("environment entry %q: the name is the compile child's own", kv)
		}
		env = append(env, kv)
	}
	return env, nil
}
