package pjrt_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

const addModule = `module @add {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}`

// cpuClient makes a client that closes with the test.
func cpuClient(t *testing.T, opts ...pjrt.NamedValue) *pjrt.Client {
	t.Helper()
	c, err := open(t, plugin.CPU).NewClient(opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func compile(t *testing.T, c *pjrt.Client, module string) *pjrt.LoadedExecutable {
	t.Helper()
	l, err := c.Compile([]byte(module), pjrt.CompileOptions{})
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// f32s is the host form of floats.
func f32s(xs ...float32) []byte {
	out := make([]byte, 0, 4*len(xs))
	for _, x := range xs {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func upload(t *testing.T, c *pjrt.Client, kind pjrt.BufferType, data []byte, dims ...int64) *pjrt.Buffer {
	t.Helper()
	b, err := c.BufferFromHost(pjrt.HostBuffer{Type: kind, Dims: dims, Data: data, Semantics: pjrt.ImmutableUntilTransferCompletes})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func download(t *testing.T, b *pjrt.Buffer) []byte {
	t.Helper()
	kind, err := b.Type()
	require.NoError(t, err)
	dims, err := b.Dims()
	require.NoError(t, err)
	n, err := kind.HostSize(dims)
	require.NoError(t, err)
	out := make([]byte, n)
	require.NoError(t, b.ToHost(t.Context(), out))
	return out
}

func run(t *testing.T, l *pjrt.LoadedExecutable, args ...*pjrt.Buffer) []*pjrt.Buffer {
	t.Helper()
	outs, err := l.Execute(t.Context(), args, pjrt.ExecuteOptions{})
	require.NoError(t, err)
	for _, o := range outs {
		t.Cleanup(o.Close)
	}
	return outs
}

func TestPluginFacts(t *testing.T) {
	p := open(t, plugin.CPU)
	require.Equal(t, 0, p.Version().Major)
	require.GreaterOrEqual(t, p.Version().Minor, pjrt.MinMinor)
	again, err := pjrt.Open(p.Path())
	require.NoError(t, err)
	require.Same(t, p, again)
	_, err = p.Attributes()
	require.NoError(t, err)
}

func TestClientFacts(t *testing.T) {
	c := cpuClient(t, pjrt.NamedValue{Name: "cpu_device_count", Value: int64(3)})
	require.Equal(t, "cpu", c.PlatformName())
	require.NotEmpty(t, c.PlatformVersion())
	require.Len(t, c.Devices(), 3)
	require.Equal(t, []int{0, 1, 2}, []int{c.Devices()[0].ID, c.Devices()[1].ID, c.Devices()[2].ID})
	require.NotEmpty(t, c.Devices()[0].Kind)
}

func TestAdd(t *testing.T) {
	c := cpuClient(t)
	l := compile(t, c, addModule)
	out := run(t, l, upload(t, c, pjrt.F32, f32s(1, 2, 3, 4), 4), upload(t, c, pjrt.F32, f32s(10, 20, 30, 40), 4))
	require.Len(t, out, 1)
	require.NoError(t, out[0].Ready(t.Context()))
	require.Equal(t, f32s(11, 22, 33, 44), download(t, out[0]))
	n, err := out[0].OnDeviceSize()
	require.NoError(t, err)
	require.EqualValues(t, 16, n)
}

func TestMatmul(t *testing.T) {
	const n = 64
	tests := []struct {
		kind pjrt.BufferType
		put  func([]byte, float32) []byte
	}{
		{pjrt.F32, func(b []byte, x float32) []byte { return binary.LittleEndian.AppendUint32(b, math.Float32bits(x)) }},
		{pjrt.BF16, func(b []byte, x float32) []byte {
			return binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(x)>>16))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.kind.String(), func(t *testing.T) {
			c := cpuClient(t)
			l := compile(t, c, fmt.Sprintf(`module @mm { func.func public @main(%%a: tensor<%[1]dx%[1]dx%[2]s>, %%b: tensor<%[1]dx%[1]dx%[2]s>) -> tensor<%[1]dx%[1]dxf32> {
  %%0 = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [0] : (tensor<%[1]dx%[1]dx%[2]s>, tensor<%[1]dx%[1]dx%[2]s>) -> tensor<%[1]dx%[1]dxf32>
  return %%0 : tensor<%[1]dx%[1]dxf32> } }`, n, tt.kind))
			// Small integers are exact in both types, and so are the sums in f32.
			var a, b, want []byte
			at := func(i, j int) float32 { return float32((i*7+j*3)%9 - 4) }
			for i := range n {
				for j := range n {
					a, b = tt.put(a, at(i, j)), tt.put(b, at(j, i+1))
					var sum float32
					for k := range n {
						sum += at(i, k) * at(j, k+1)
					}
					want = append(want, f32s(sum)...)
				}
			}
			out := run(t, l, upload(t, c, tt.kind, a, n, n), upload(t, c, tt.kind, b, n, n))
			require.Equal(t, want, download(t, out[0]))
		})
	}
}

// A result in the device's own order must still come back row-major.
func TestToHostIsRowMajor(t *testing.T) {
	c := cpuClient(t)
	l := compile(t, c, `module @t { func.func public @main(%a: tensor<2x3xf32>) -> (tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}) {
  %0 = stablehlo.add %a, %a : tensor<2x3xf32>
  return %0 : tensor<2x3xf32> } }`)
	layouts, err := l.Executable().OutputLayouts()
	require.NoError(t, err)
	require.Equal(t, []pjrt.Layout{"{0,1}"}, layouts)
	require.False(t, layouts[0].RowMajor())
	params, err := l.Executable().ParameterLayouts()
	require.NoError(t, err)
	require.Equal(t, []pjrt.Layout{"{1,0}"}, params)
	require.True(t, params[0].RowMajor())
	out := run(t, l, upload(t, c, pjrt.F32, f32s(1, 2, 3, 4, 5, 6), 2, 3))
	got, err := out[0].Layout()
	require.NoError(t, err)
	require.Equal(t, layouts[0], got)
	require.Equal(t, f32s(2, 4, 6, 8, 10, 12), download(t, out[0]))
}

const updateModule = `module @update {
  func.func public @main(%state: tensor<1024xf32> {tf.aliasing_output = 1 : i32}, %x: tensor<f32>) -> (tensor<f32>, tensor<1024xf32>) {
    %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<1024xf32>
    %1 = stablehlo.add %state, %0 : tensor<1024xf32>
    %2 = stablehlo.add %x, %x : tensor<f32>
    return %2, %1 : tensor<f32>, tensor<1024xf32>
  }
}`

func TestDonation(t *testing.T) {
	c := cpuClient(t)
	l := compile(t, c, updateModule)
	x := upload(t, c, pjrt.F32, f32s(3))
	state := upload(t, c, pjrt.F32, make([]byte, 4096), 1024)
	require.NoError(t, state.Ready(t.Context()))
	before, err := state.DataPointer()
	require.NoError(t, err)

	out := run(t, l, state, x)
	require.Len(t, out, 2)
	gone, err := state.IsDeleted()
	require.NoError(t, err)
	require.True(t, gone, "the aliased argument is taken")
	after, err := out[1].DataPointer()
	require.NoError(t, err)
	require.Equal(t, before, after, "the output lives in the argument's memory")
	require.Equal(t, f32s(6), download(t, out[0]))
	require.Equal(t, f32s(3), download(t, out[1])[:4])
	_, err = l.Execute(t.Context(), []*pjrt.Buffer{state, x}, pjrt.ExecuteOptions{})
	require.Error(t, err, "a taken buffer cannot be an argument")

	kept, err := l.Execute(t.Context(), []*pjrt.Buffer{out[1], x}, pjrt.ExecuteOptions{NonDonatable: []int{0}})
	require.NoError(t, err)
	defer kept[0].Close()
	defer kept[1].Close()
	gone, err = out[1].IsDeleted()
	require.NoError(t, err)
	require.False(t, gone, "a non-donatable argument is copied")
	require.Equal(t, f32s(3), download(t, out[1])[:4])
	require.Equal(t, f32s(6), download(t, kept[1])[:4])

	_, err = l.Execute(t.Context(), []*pjrt.Buffer{out[1], x}, pjrt.ExecuteOptions{NonDonatable: []int{2}})
	require.ErrorContains(t, err, "non-donatable argument 2 of 2")
}

func TestSerializeLoadExecute(t *testing.T) {
	c := cpuClient(t)
	l := compile(t, c, addModule)
	blob, err := l.Executable().Serialize()
	require.NoError(t, err)
	require.NotEmpty(t, blob)

	fresh := cpuClient(t)
	loaded, err := fresh.Load(blob)
	require.NoError(t, err)
	defer loaded.Close()
	e := loaded.Executable()
	types, err := e.OutputTypes()
	require.NoError(t, err)
	require.Equal(t, []pjrt.BufferType{pjrt.F32}, types)
	dims, err := e.OutputDims()
	require.NoError(t, err)
	require.Equal(t, [][]int64{{4}}, dims)
	name, err := e.Name()
	require.NoError(t, err)
	require.NotEmpty(t, name)
	stats, err := e.MemoryStats()
	require.NoError(t, err)
	require.EqualValues(t, 32, stats.Argument)
	require.EqualValues(t, 16, stats.Output)
	layouts, err := e.ParameterLayouts()
	require.NoError(t, err)
	require.Equal(t, []pjrt.Layout{"{0}", "{0}"}, layouts)
	out := run(t, loaded, upload(t, fresh, pjrt.F32, f32s(1, 2, 3, 4), 4), upload(t, fresh, pjrt.F32, f32s(1, 1, 1, 1), 4))
	require.Equal(t, f32s(2, 3, 4, 5), download(t, out[0]))

	_, err = fresh.Load(nil)
	require.ErrorContains(t, err, "empty")
	_, err = fresh.Load([]byte("not an executable"))
	require.Error(t, err)
}

// alignedTo returns n bytes whose address is off modulo 64.
func alignedTo(n, off int) []byte {
	b := make([]byte, n+128)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := int((64 - at%64) % 64)
	return b[skip+off:][:n]
}

func TestZeroCopy(t *testing.T) {
	c := cpuClient(t)
	for _, tt := range []struct {
		name   string
		offset int
		same   bool
	}{{"aligned", 0, true}, {"unaligned", 8, false}} {
		t.Run(tt.name, func(t *testing.T) {
			host := alignedTo(4096, tt.offset)
			copy(host, f32s(42))
			var done atomic.Int32
			b, err := c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{1024}, Data: host,
				Semantics: pjrt.ImmutableZeroCopy, Done: func() { done.Add(1) }})
			require.NoError(t, err)
			require.NoError(t, b.Ready(t.Context()))
			at, err := b.DataPointer()
			require.NoError(t, err)
			require.Equal(t, tt.same, at == uintptr(unsafe.Pointer(unsafe.SliceData(host))))
			if tt.same {
				require.Zero(t, done.Load(), "the plugin still uses the memory")
			}
			require.Equal(t, f32s(42), download(t, b)[:4])
			b.Close()
			require.Eventually(t, func() bool { return done.Load() == 1 }, 5*time.Second, time.Millisecond, "done is reported after Close")
		})
	}
}

// Donating a zero-copy buffer must not write to the host's memory.
func TestZeroCopyIsNeverWritten(t *testing.T) {
	c := cpuClient(t)
	l := compile(t, c, updateModule)
	host := alignedTo(4096, 0)
	b, err := c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{1024}, Data: host, Semantics: pjrt.ImmutableZeroCopy})
	require.NoError(t, err)
	defer b.Close()
	out := run(t, l, b, upload(t, c, pjrt.F32, f32s(3)))
	require.Equal(t, f32s(3), download(t, out[1])[:4])
	require.Equal(t, make([]byte, 4096), host)
}

// Host memory that Go would collect must survive until the transfer ends, and Done comes exactly once.
func TestManyTransfers(t *testing.T) {
	c := cpuClient(t)
	var done atomic.Int32
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				b, err := c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{4096}, Data: append(f32s(float32(g*100+i)), make([]byte, 4096*4-4)...),
					Semantics: pjrt.HostSemantics(i % 3), Done: func() { done.Add(1) }})
				if err != nil {
					t.Error(err)
					return
				}
				out := make([]byte, 4096*4)
				if err := b.ToHost(context.Background(), out); err != nil || string(out[:4]) != string(f32s(float32(g*100+i))) {
					t.Errorf("transfer %d: %v, got % x", i, err, out[:4])
				}
				b.Close()
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return done.Load() == 200 }, 5*time.Second, time.Millisecond)
}

// slowModule multiplies a matrix by itself many times: long enough to be cancelled, short enough for a test.
const slowModule = `module @slow {
  func.func public @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
    %n = stablehlo.constant dense<200> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %z, %x = %a) : tensor<i32>, tensor<512x512xf32>
     cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %y = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %y : tensor<i32>, tensor<512x512xf32>
    }
    return %r#1 : tensor<512x512xf32>
  }
}`

func TestCancelAndCloseWhileRunning(t *testing.T) {
	c, err := open(t, plugin.CPU).NewClient()
	require.NoError(t, err)
	l, err := c.Compile([]byte(slowModule), pjrt.CompileOptions{})
	require.NoError(t, err)
	arg, err := c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{512, 512}, Data: make([]byte, 1<<20)})
	require.NoError(t, err)
	outs, err := l.Execute(t.Context(), []*pjrt.Buffer{arg}, pjrt.ExecuteOptions{})
	require.NoError(t, err)
	// Everything goes while the run is in flight; the output keeps the client alive.
	arg.Close()
	l.Close()
	c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, outs[0].ToHost(ctx, make([]byte, 1<<20)), context.Canceled)
	require.ErrorIs(t, outs[0].Ready(ctx), context.Canceled)
	require.NoError(t, outs[0].Ready(t.Context()))
	out := make([]byte, 1<<20)
	require.NoError(t, outs[0].ToHost(t.Context(), out))
	require.Equal(t, make([]byte, 1<<20), out)
	outs[0].Close()
	_, err = l.Execute(ctx, nil, pjrt.ExecuteOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestSharded(t *testing.T) {
	c := cpuClient(t, pjrt.NamedValue{Name: "cpu_device_count", Value: int64(4)})
	l, err := c.Compile([]byte(`module @sharded {
  sdy.mesh @mesh = <["tp"=4]>
  func.func public @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x2xf32>, tensor<f32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}`), pjrt.CompileOptions{NumPartitions: 4, SPMD: true, Shardy: true})
	require.NoError(t, err)
	defer l.Close()
	require.Len(t, l.Devices(), 4)
	n, err := l.Executable().NumPartitions()
	require.NoError(t, err)
	require.Equal(t, 4, n)
	var args [][]*pjrt.Buffer
	for i, dev := range l.Devices() {
		x := float32(i)
		b, err := c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{2, 2}, Data: f32s(x, 1, x, 1), Device: dev})
		require.NoError(t, err)
		defer b.Close()
		args = append(args, []*pjrt.Buffer{b})
	}
	outs, err := l.ExecuteSharded(t.Context(), args, pjrt.ExecuteOptions{})
	require.NoError(t, err)
	for _, row := range outs {
		require.Equal(t, f32s(12, 8), download(t, row[0]))
		row[0].Close()
	}
	_, err = l.ExecuteSharded(t.Context(), args[:3], pjrt.ExecuteOptions{})
	require.ErrorContains(t, err, "arguments for 3 devices, want 4")
}

// Host forms of every element type a model can have: what goes up comes back.
func TestElementTypes(t *testing.T) {
	c := cpuClient(t)
	for _, name := range []string{"i1", "i4", "ui4", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64",
		"complex<f32>", "complex<f64>", "f8E4M3FN", "f8E5M2"} {
		t.Run(name, func(t *testing.T) {
			kind, err := pjrt.ParseBufferType(name)
			require.NoError(t, err)
			n, err := kind.HostSize([]int64{2, 3})
			require.NoError(t, err)
			in := make([]byte, n)
			for i := range in {
				in[i] = byte(i % 2)
			}
			b := upload(t, c, kind, in, 2, 3)
			got, err := b.Type()
			require.NoError(t, err)
			require.Equal(t, kind, got)
			require.Equal(t, in, download(t, b))
		})
	}
}

func TestOddShapes(t *testing.T) {
	c := cpuClient(t)
	l := compile(t, c, `module @odd { func.func public @main(%a: tensor<0x3xf32>, %s: tensor<f32>) -> (tensor<0x3xf32>, tensor<f32>, tensor<1xi1>) {
  %p = stablehlo.constant dense<true> : tensor<1xi1>
  return %a, %s, %p : tensor<0x3xf32>, tensor<f32>, tensor<1xi1> } }`)
	out := run(t, l, upload(t, c, pjrt.F32, nil, 0, 3), upload(t, c, pjrt.F32, f32s(5)))
	require.Len(t, out, 3)
	require.Empty(t, download(t, out[0]))
	require.Equal(t, f32s(5), download(t, out[1]))
	require.Equal(t, []byte{1}, download(t, out[2]))
	none := compile(t, c, `module @none { func.func public @main() { return } }`)
	require.Empty(t, run(t, none))
}

func TestErrors(t *testing.T) {
	c := cpuClient(t)
	_, err := c.Compile([]byte("module {"), pjrt.CompileOptions{})
	var perr *pjrt.Error
	require.ErrorAs(t, err, &perr)
	require.Equal(t, "PJRT_Client_Compile", perr.Func)
	require.NotEqual(t, pjrt.OK, perr.Code)
	require.NotEmpty(t, perr.Message)

	_, err = c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{4}, Data: make([]byte, 15)})
	require.ErrorContains(t, err, "host array has 15 bytes, want 16 for f32[4]")
	_, err = c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.Token, Dims: []int64{4}})
	require.ErrorContains(t, err, "has no host form")
	_, err = c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{1 << 40, 1 << 40}})
	require.ErrorContains(t, err, "63 bits")

	l := compile(t, c, addModule)
	x := upload(t, c, pjrt.F32, f32s(1, 2, 3, 4), 4)
	_, err = l.Execute(t.Context(), []*pjrt.Buffer{x}, pjrt.ExecuteOptions{})
	require.Error(t, err, "too few arguments")
	_, err = l.Execute(t.Context(), []*pjrt.Buffer{x, nil}, pjrt.ExecuteOptions{})
	require.ErrorContains(t, err, "argument 1")
	other := cpuClient(t)
	_, err = l.Execute(t.Context(), []*pjrt.Buffer{x, upload(t, other, pjrt.F32, f32s(1, 2, 3, 4), 4)}, pjrt.ExecuteOptions{})
	require.ErrorContains(t, err, "another client")
	require.ErrorContains(t, x.ToHost(t.Context(), make([]byte, 3)), "destination has 3 bytes, want 16")

	require.NoError(t, x.Delete())
	gone, err := x.IsDeleted()
	require.NoError(t, err)
	require.True(t, gone)
	require.Error(t, x.ToHost(t.Context(), make([]byte, 16)))
	x.Close()
	x.Close()
	_, err = x.Type()
	require.ErrorContains(t, err, "buffer is closed")

	_, err = open(t, plugin.CPU).NewClient(pjrt.NamedValue{Name: "cpu_device_count", Value: 1.5})
	require.ErrorContains(t, err, "has type float64")
}

func TestNilIsSafe(t *testing.T) {
	var (
		b *pjrt.Buffer
		l *pjrt.LoadedExecutable
		e *pjrt.Executable
		c *pjrt.Client
		k *pjrt.Topology
	)
	b.Close()
	l.Close()
	e.Close()
	c.Close()
	k.Close()
	_, err := b.Type()
	require.Error(t, err)
	_, err = l.Execute(t.Context(), nil, pjrt.ExecuteOptions{})
	require.Error(t, err)
	_, err = e.Serialize()
	require.Error(t, err)
	_, err = e.ParameterLayouts()
	require.Error(t, err)
	_, err = l.Executable().Name()
	require.Error(t, err)
}

// A parameter in another order than row-major gets the right numbers from a buffer that is uploaded in that order.
func TestUploadOrder(t *testing.T) {
	c := cpuClient(t)
	l := compile(t, c, `module @t { func.func public @main(%a: tensor<2x3x4xf32> {mhlo.layout_mode = "{0,2,1}"}, %b: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = stablehlo.add %a, %b : tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32> } }`)
	params, err := l.Executable().ParameterLayouts()
	require.NoError(t, err)
	order, err := params[0].MinorToMajor()
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 1}, order)
	var v []float32
	for i := range 24 {
		v = append(v, float32(i))
	}
	a, err := c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{2, 3, 4}, Data: f32s(v...), Order: order})
	require.NoError(t, err)
	defer a.Close()
	got, err := a.Layout()
	require.NoError(t, err)
	require.Equal(t, params[0], got)
	require.Equal(t, f32s(v...), download(t, a))

	// Kept arguments: what changes is set, the rest stays.
	args := l.NewArguments(2)
	defer args.Close()
	require.NoError(t, args.Set(0, a))
	_, err = l.ExecuteArguments(t.Context(), args, pjrt.ExecuteOptions{})
	require.ErrorContains(t, err, "argument 1 is empty")
	for k := range 3 {
		b := upload(t, c, pjrt.F32, f32s(slices.Repeat([]float32{float32(k)}, 24)...), 2, 3, 4)
		require.NoError(t, args.Set(1, b))
		out, err := l.ExecuteArguments(t.Context(), args, pjrt.ExecuteOptions{})
		require.NoError(t, err)
		want := slices.Clone(v)
		for i := range want {
			want[i] += float32(k)
		}
		require.Equal(t, f32s(want...), download(t, out[0]))
		out[0].Close()
	}
	_, err = c.BufferFromHost(pjrt.HostBuffer{Type: pjrt.F32, Dims: []int64{2}, Data: f32s(1, 2), Order: []int{1, 0}})
	require.ErrorContains(t, err, "order of 2 dimensions for an array of 1")
}
