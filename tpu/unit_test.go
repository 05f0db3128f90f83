package tpu

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/tpu/pjrt"
)

func TestChildEnvironment(t *testing.T) {
	caller := map[string]string{"TMPDIR": "/t", "HOME": "/h", "XLA_FLAGS": "--stray", "LIBTPU_INIT_ARGS": "--stray", "HTTPS_PROXY": "http://p",
		"TPU_SKIP_MDS_QUERY": "0", "LANG": "de_DE"}
	lookup := func(name string) (string, bool) { v, ok := caller[name]; return v, ok }
	env, err := childEnvironment(Options{XLAFlags: []string{"--a", "--b=1"}, Env: []string{"X=1"}}, lookup)
	require.NoError(t, err)
	require.Equal(t, []string{"TMPDIR=/t",
		"TPUC_COMPILE_CHILD=1", "PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "GOTRACEBACK=none",
		"TPU_SKIP_MDS_QUERY=1", "ALLOW_MULTIPLE_LIBTPU_LOAD=1", "TPU_LOG_DIR=disabled", "TPU_MIN_LOG_LEVEL=2", "TPU_STDERR_LOG_LEVEL=2", "TF_CPP_MIN_LOG_LEVEL=2",
		"XLA_FLAGS=--a --b=1", "X=1"}, env)
}

func TestMessages(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, writeMessage(&buf, 'A', []byte("hello")))
	require.NoError(t, writeMessage(&buf, 'B', nil))
	limits := map[byte]int64{'A': 5, 'B': 0}
	tag, data, err := readMessage(&buf, limits)
	require.NoError(t, err)
	require.Equal(t, "A hello", fmt.Sprintf("%c %s", tag, data))
	tag, data, err = readMessage(&buf, limits)
	require.NoError(t, err)
	require.Equal(t, "B ", fmt.Sprintf("%c %s", tag, data))
	_, _, err = readMessage(&buf, limits)
	require.Equal(t, io.EOF, err)

	tests := []struct {
		stream string
		want   string
	}{
		{"A\x06\x00\x00\x00\x00\x00\x00\x00hello!", "of 6 bytes, want at most 5"},
		{"A\xff\xff\xff\xff\xff\xff\xff\xff", "want at most 5"},
		{"Z\x00\x00\x00\x00\x00\x00\x00\x00", "message with tag 'Z'"},
		{"A\x05\x00\x00\x00\x00\x00\x00\x00hel", "unexpected EOF"},
		{"A\x05", "unexpected EOF"},
	}
	for _, tt := range tests {
		_, _, err := readMessage(strings.NewReader(tt.stream), limits)
		require.ErrorContains(t, err, tt.want)
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("A\x05\x00\x00\x00\x00\x00\x00\x00hello"))
	f.Add([]byte("A\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Add([]byte("B\x05\x00\x00\x00\x00\x00\x00\x00hello"))
	f.Add([]byte("A\xff\x00\x00\x00\x00\x00\x00\x00hello"))
	f.Add([]byte("A\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		tag, data, err := readMessage(bytes.NewReader(in), map[byte]int64{'A': 1 << 40})
		if err != nil {
			return
		}
		var out bytes.Buffer
		require.NoError(t, writeMessage(&out, tag, data))
		require.True(t, bytes.HasPrefix(in, out.Bytes()))
	})
}

// A child that answers nonsense is an error and never a result.
func TestDamagedAnswers(t *testing.T) {
	message := func(tag byte, data string) string {
		var b bytes.Buffer
		_ = writeMessage(&b, tag, []byte(data))
		return b.String()
	}
	hello := message(tagHello, childVersion)
	tests := []struct {
		name, stream string
		kind         Kind
		want         string
	}{
		{"nothing", "", NoChild, "does not answer"},
		{"other version", message(tagHello, "99"), NoChild, "does not answer"},
		{"hello only", hello, Crashed, "ended without an answer"},
		{"reply is no JSON", hello + message(tagReply, "{"), Crashed, "damaged"},
		{"unknown tag", hello + message('?', ""), Crashed, "damaged"},
		{"no executable", hello + message(tagReply, "{}"), Crashed, "ended without an answer"},
		{"empty executable", hello + message(tagReply, "{}") + message(tagExecutable, ""), Crashed, "ended without an answer"},
		{"cut executable", hello + message(tagReply, "{}") + message(tagExecutable, "abc")[:10], Crashed, "ended without an answer"},
		{"refused", hello + message(tagReply, `{"Kind":"refused","Code":8,"Message":"no room"}`), Refused, "RESOURCE_EXHAUSTED: no room"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &run{log: &log{}, phase: PhaseStart}
			o.read(strings.NewReader(tt.stream), nil, func(error) {})
			e := o.failure(Request{Exe: "prog"})
			require.NotNil(t, e)
			require.Equal(t, tt.kind, e.Kind)
			require.ErrorContains(t, e, tt.want)
		})
	}
	o := &run{log: &log{}}
	o.read(strings.NewReader(hello+message(tagPhase, "compile")+message(tagReply, "{}")+message(tagExecutable, "abc")), nil, func(error) {})
	require.Nil(t, o.failure(Request{}))
	require.Equal(t, "abc", string(o.executable))
	require.Equal(t, PhaseCompile, o.phase)
}

func TestLog(t *testing.T) {
	l := &log{}
	fmt.Fprint(l, "start\n")
	require.Equal(t, "start\n", l.String())
	var all strings.Builder
	all.WriteString("start\n")
	for i := range 40000 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		fmt.Fprint(l, line)
	}
	got := l.String()
	want := all.String()
	require.Equal(t, want[:logHead], got[:logHead])
	require.Equal(t, want[len(want)-logTail:], got[len(got)-logTail:])
	require.Contains(t, got, fmt.Sprintf("\n... %d bytes left out ...\n", len(want)-logHead-logTail))

	big := &log{}
	fmt.Fprint(big, want)
	require.Equal(t, got, big.String(), "one large write is cut like many small ones")
	bad := &log{}
	fmt.Fprint(bad, "a\xffb")
	require.Equal(t, "a?b", bad.String())
}

func TestErrorText(t *testing.T) {
	long := strings.Repeat("line\n", 100)
	tests := []struct {
		err  *CompileError
		want string
	}{
		{&CompileError{Kind: Refused, Code: pjrt.ResourceExhausted, Message: "no room"}, "the plugin refused the module: RESOURCE_EXHAUSTED: no room"},
		{&CompileError{Kind: Crashed, Phase: PhaseCompile, Signal: "SIGABRT", Message: "Check failed: x", ModulePath: "dir/m.mlir"},
			"the plugin crashed in phase compile: SIGABRT: Check failed: x\n  the module that does it: dir/m.mlir"},
		{&CompileError{Kind: TimedOut, Phase: PhaseLoad, Message: "late"}, "compile timed out in phase load: late"},
		{&CompileError{Kind: NotLoaded, Message: "no file"}, "the plugin could not be loaded: no file"},
		{&CompileError{Kind: NoChild, Message: long}, "the compile child could not be started: " + strings.TrimSpace(strings.Repeat("line\n", errorLines)) + " ..."},
		{&CompileError{Kind: NoChild, Message: strings.Repeat("ü", errorBytes)}, "the compile child could not be started: " + strings.Repeat("ü", errorBytes/2) + " ..."},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.err.Error())
	}
	cause := errors.New("why")
	require.ErrorIs(t, &CompileError{Kind: Canceled, cause: cause}, cause)
}

func TestFailedReply(t *testing.T) {
	perr := &pjrt.Error{Code: pjrt.InvalidArgument, Func: "PJRT_Client_Compile", Message: "bad module"}
	require.Equal(t, reply{Kind: Refused, Code: pjrt.InvalidArgument, Message: "bad module"}, failed(Refused, perr))
	require.Equal(t, reply{Kind: NotLoaded, Code: pjrt.InvalidArgument, Message: "topology: PJRT_Client_Compile: INVALID_ARGUMENT: bad module"},
		failed(NotLoaded, fmt.Errorf("topology: %w", perr)))
	require.Equal(t, reply{Kind: Refused, Code: pjrt.Unknown, Message: "other"}, failed(Refused, errors.New("other")))
	require.Len(t, failed(Refused, errors.New(strings.Repeat("x", 2*maxMessage))).Message, maxMessage+len(" ..."))
}

func TestCrashMessage(t *testing.T) {
	const abseil = "W1130 20:27:43.129618   15606 a.cc:1] slow\nF1130 20:27:44.000001   15606 layout.cc:12] Check failed: a == b (1 vs. 2)\n*** stack ***\nSIGABRT: abort\nPC=0x1 m=0 sigcode=0\n"
	require.Equal(t, "F1130 20:27:44.000001   15606 layout.cc:12] Check failed: a == b (1 vs. 2)", crashMessage(abseil, "status"))
	require.Equal(t, "status", crashMessage("all fine\n", "status"))
	require.Equal(t, "SIGABRT", signalName(abseil))
	require.Equal(t, "SIGSEGV", signalName("fatal error: unexpected signal\n[signal SIGSEGV: segmentation violation code=0x1]\n"))
	require.Empty(t, signalName("a SIGABRT: in the middle of a line\n"))
}

func TestWriteFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, "m.mlir")
	require.NoError(t, writeFile(path, []byte("one")))
	require.NoError(t, writeFile(path, []byte("two")))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "two", string(got))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Error(t, writeFile(filepath.Join(path, "below-a-file"), nil))

	e := &CompileError{Kind: Crashed, Message: "died"}
	e.keepModule(Request{Program: []byte("m"), CrashDir: path})
	require.Empty(t, e.ModulePath)
	require.Contains(t, e.Message, "the module could not be kept")
}
