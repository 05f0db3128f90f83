package pjrt

import (
	"context"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestCompileOptionsEncode(t *testing.T) {
	// The expected bytes follow the wire format: field<<3|type, varints, -1 as ten bytes.
	const minusOne = "ffffffffffffffffff01"
	tests := []struct {
		name string
		opts CompileOptions
		want string
	}{
		{"one device", CompileOptions{}, "1a1a" + "08" + minusOne + "2001" + "2801" + "4a09" + "0801" + "1001" + "1a03" + "0a0100"},
		{"two partitions", CompileOptions{NumPartitions: 2, SPMD: true, Shardy: true},
			"1a24" + "08" + minusOne + "2001" + "2802" + "3001" + "4a0e" + "0801" + "1002" + "1a03" + "0a0100" + "1a03" + "0a0101" + "980101"},
		{"replicas and ids", CompileOptions{NumReplicas: 2, DeviceIDs: []int{7, 300}},
			"1a1c" + "08" + minusOne + "2002" + "2801" + "4a0b" + "0802" + "1001" + "1a05" + "0a0307ac02"},
		{"override", CompileOptions{PropagateNaN: true}, "1a1a" + "08" + minusOne + "2001" + "2801" + "4a09" + "0801" + "1001" + "1a03" + "0a0100" +
			"3a21" + "0a1b" + hex.EncodeToString([]byte("xla_cpu_enable_fast_min_max")) + "1202" + "1000"},
		{"overrides", CompileOptions{PropagateNaN: true, KeepRounding: true}, "1a1a" + "08" + minusOne + "2001" + "2801" + "4a09" + "0801" + "1001" + "1a03" + "0a0100" +
			"3a20" + "0a1a" + hex.EncodeToString([]byte("xla_allow_excess_precision")) + "1202" + "1000" +
			"3a21" + "0a1b" + hex.EncodeToString([]byte("xla_cpu_enable_fast_min_max")) + "1202" + "1000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, hex.EncodeToString(tt.opts.Encode())) })
	}
}

func TestLayout(t *testing.T) {
	tests := []struct {
		layout Layout
		order  []int
		row    bool
		bad    bool
	}{
		{layout: "{}", row: true},
		{layout: "{0}", order: []int{0}, row: true},
		{layout: "{1,0}", order: []int{1, 0}, row: true},
		{layout: "{0,1}", order: []int{0, 1}},
		{layout: "{2,0,1:T(8,128)(2,1)S(1)}", order: []int{2, 0, 1}},
		{layout: "{3,2,1,0:T(8,128)}", order: []int{3, 2, 1, 0}, row: true},
		{layout: "", bad: true},
		{layout: "{x}", bad: true},
		{layout: "{-1}", bad: true},
		{layout: "{0,0}", bad: true},
	}
	for _, tt := range tests {
		t.Run(string(tt.layout), func(t *testing.T) {
			got, err := tt.layout.MinorToMajor()
			require.Equal(t, tt.bad, err != nil)
			require.Equal(t, tt.order, got)
			require.Equal(t, tt.row, tt.layout.RowMajor())
		})
	}
}

func TestHostSize(t *testing.T) {
	tests := []struct {
		kind BufferType
		dims []int64
		want int64
		err  string
	}{
		{F32, nil, 4, ""},
		{BF16, []int64{3, 5}, 30, ""},
		{S4, []int64{3, 5}, 15, ""},
		{F32, []int64{0, math.MaxInt64}, 0, ""},
		{F32, []int64{math.MaxInt64, 2}, 0, "63 bits"},
		{F32, []int64{-1}, 0, "none negative"},
		{Token, nil, 0, "no host form"},
		{BufferType(99), nil, 0, "no host form"},
		{BufferType(-1), nil, 0, "no host form"},
	}
	for _, tt := range tests {
		got, err := tt.kind.HostSize(tt.dims)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
}

func TestBufferTypeNames(t *testing.T) {
	for i, info := range typeInfo {
		require.NotEmpty(t, info.name, "type %d", i)
		if info.size > 0 {
			got, err := ParseBufferType(info.name)
			require.NoError(t, err)
			require.Equal(t, BufferType(i), got)
		}
	}
	_, err := ParseBufferType("float32")
	require.ErrorContains(t, err, `unknown element type "float32"`)
	require.Equal(t, "type 99", BufferType(99).String())
	require.Equal(t, "code 99", Code(99).String())
	require.Equal(t, "RESOURCE_EXHAUSTED", ResourceExhausted.String())
}

func TestNamedValuesRoundTrip(t *testing.T) {
	in := []NamedValue{{"s", "text"}, {"i", int64(-7)}, {"l", []int64{1, 2, 3}}, {"f", float32(0.5)}, {"b", true}, {"n", false}}
	c, keep, err := cValues(in)
	require.NoError(t, err)
	out, err := goValues(unsafe.Pointer(unsafe.SliceData(c)), uintptr(len(c)))
	keepAlive(c, keep)
	require.NoError(t, err)
	require.Equal(t, in, out)
	_, _, err = cValues([]NamedValue{{"x", 1.5}})
	require.ErrorContains(t, err, `option "x" has type float64`)
	_, err = goValues(nil, 1<<40)
	require.Error(t, err)
}

// A handle is destroyed once, when it is closed and neither a call nor a child uses it, and then lets go of its parent.
func TestHandleOrder(t *testing.T) {
	var log []string
	at := unsafe.Pointer(new(int64))
	make := func(name string, parent *handle) *handle {
		return newHandle(name, at, parent, func(cptr) { log = append(log, name) })
	}
	parent := make("parent", nil)
	child := make("child", parent)
	_, err := child.acquire()
	require.NoError(t, err)
	parent.close()
	child.close()
	child.close()
	require.Empty(t, log)
	_, err = child.acquire()
	require.EqualError(t, err, "FAILED_PRECONDITION: child is closed")
	child.release()
	require.Equal(t, []string{"child", "parent"}, log)
	child.close()
	parent.close()
	require.Equal(t, []string{"child", "parent"}, log)
}

func TestEventWait(t *testing.T) {
	e := &event{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, e.wait(ctx), context.Canceled)
	close(e.done)
	require.NoError(t, e.wait(ctx), "a finished event wins over a cancelled context")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text, empty := filepath.Join(dir, "text.so"), filepath.Join(dir, "empty.so")
	require.NoError(t, os.WriteFile(text, []byte("<html>"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, tt := range []struct{ path, want string }{
		{text, `starts with "<htm", want an ELF shared library`},
		{empty, `starts with "", want an ELF shared library`},
		{filepath.Join(dir, "absent.so"), "no such file"},
		{dir, "want an ELF shared library"},
	} {
		_, err := Open(tt.path)
		require.ErrorContains(t, err, tt.want)
		require.ErrorContains(t, err, tt.path)
	}
	// The test program is an ELF file that the loader refuses or that has no GetPjrtApi.
	_, err := Open("/proc/self/exe")
	require.Error(t, err)
}
