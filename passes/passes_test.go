package passes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tpuc/internal/golden"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
	"tpuc/ir/weight"
)

// decoder is a transformer decoder of a few wide heads: attention over repeated key and value heads, a mask from positions, gated
// units and residuals, spelled as an export spells them.
func decoder(layers int) *ir.Module {
	const length, width, heads, groups, hidden = 4, 16, 4, 2, 32
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	b := &ir.Builder{}
	x := m.Func.AddParam("x", tensor.Make(tensor.BF16, 1, length, width))
	param := func(name string, dims ...int64) *ir.Value {
		t := tensor.Make(tensor.BF16, dims...)
		return m.AddWeight(&ir.Weight{Sym: fmt.Sprintf("w%d", len(m.Weights)), Names: []string{name}, Source: weight.Tensor{Name: name, T: t}}, t)
	}
	split := func(v *ir.Value, n int64) *ir.Value {
		v = op.Reshape.Make(b, op.ReshapeAttr{Shape: []int64{1, length, n, width / heads}}, v)
		return op.Transpose.Make(b, op.TransposeAttr{Perm: []int64{0, 2, 1, 3}}, v)
	}
	repeat := func(v *ir.Value) *ir.Value {
		v = op.Slice.Make(b, op.SliceAttr{Start: make([]int64, 4), Limit: v.Type.Dims, Stride: []int64{1, 1, 1, 1}}, v)
		v = op.Reshape.Make(b, op.ReshapeAttr{Shape: []int64{1, groups, 1, length, width / heads}}, v)
		v = op.Broadcast.Make(b, op.BroadcastAttr{Shape: []int64{1, groups, heads / groups, length, width / heads}, Dims: []int64{0, 1, 2, 3, 4}}, v)
		return op.Reshape.Make(b, op.ReshapeAttr{Shape: []int64{1, heads, length, width / heads}}, v)
	}
	for i := range layers {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		b.Loc = &diag.Loc{Layer: prefix + "self_attn", File: "m.py", Line: 7}
		h := op.RMSNorm.Make(b, op.RMSNormAttr{Eps: 1e-6, Rank: 1}, x, param(prefix+"norm", width))
		q := split(op.Linear.Make(b, h, param(prefix+"q", width, width)), heads)
		k := split(op.Linear.Make(b, h, param(prefix+"k", width/heads*groups, width)), groups)
		v := split(op.Linear.Make(b, h, param(prefix+"v", width/heads*groups, width)), groups)
		pos := op.Iota.Make(b, op.IotaAttr{Type: tensor.Make(tensor.I64, length)})
		rows := op.Broadcast.Make(b, op.BroadcastAttr{Shape: []int64{1, 1, length, length}, Dims: []int64{2}}, pos)
		cols := op.Broadcast.Make(b, op.BroadcastAttr{Shape: []int64{1, 1, length, length}, Dims: []int64{3}}, pos)
		mask := op.Compare.Make(b, op.CompareAttr{Dir: op.GE}, rows, cols)
		a := op.Attention.Make(b, op.AttentionAttr{Scale: 0.5}, q, repeat(k), repeat(v), mask)
		a = op.Transpose.Make(b, op.TransposeAttr{Perm: []int64{0, 2, 1, 3}}, a)
		a = op.Reshape.Make(b, op.ReshapeAttr{Shape: []int64{1, length, width}}, a)
		x = op.Add.Make(b, x, op.Linear.Make(b, a, param(prefix+"o", width, width)))
		b.Loc = &diag.Loc{Layer: prefix + "mlp"}
		f := op.Cast(b, x, tensor.F32)
		f = op.Mul.Make(b, f, op.Splat(b, f.Type, 0.5))
		h = op.Cast(b, f, tensor.BF16)
		g := op.Silu.Make(b, op.Linear.Make(b, h, param(prefix+"gate", hidden, width)))
		u := op.Linear.Make(b, h, param(prefix+"up", hidden, width))
		x = op.Add.Make(b, x, op.Linear.Make(b, op.Mul.Make(b, g, u), param(prefix+"down", width, hidden)))
	}
	m.Func.Body = b.Body
	m.Func.Results = []*ir.Value{x}
	return m
}

func TestListIsInOrder(t *testing.T) {
	require.NoError(t, checkOrder(List))
	require.Error(t, checkOrder([]Pass{expand, raise}))
	require.NoError(t, checkOrder([]Pass{expand, cse}))
	for _, p := range List {
		require.NotEmpty(t, p.Doc, p.Name)
		require.True(t, strings.HasSuffix(p.Doc, "."), "doc of %s", p.Name)
		for _, a := range p.After {
			_, err := Lookup(a)
			require.NoError(t, err, "%s must come after it", p.Name)
		}
		seen := make(map[string]bool)
		for _, r := range p.Rules {
			require.False(t, seen[r.Name], "rule %s of %s twice", r.Name, p.Name)
			seen[r.Name] = true
			require.NotEmpty(t, r.Doc, r.Name)
		}
	}
	_, err := Lookup("nosuch")
	require.EqualError(t, err, `pass "nosuch" is unknown, wanted one of order, fold, simplify, cse, raise, dce, expand, narrow, layout, guard`)
}

// Every valid order gives a program that computes the same and holds no composites; the list's own order and the seeds are
// deterministic to the byte.
func TestOrdersAgree(t *testing.T) {
	before, err := golden.Eval(decoder(2), 1)
	require.NoError(t, err)
	texts := make(map[string]bool)
	for seed := range uint64(12) {
		var first string
		for range 2 {
			m := decoder(2)
			_, err := Run(context.Background(), m, Options{Verify: true, Shuffle: seed})
			require.NoError(t, err)
			after, err := golden.Eval(m, 1)
			require.NoError(t, err)
			require.NoError(t, golden.Equivalent(before, after), "seed %d", seed)
			if first == "" {
				first = text.Print(m)
			}
			require.Equal(t, first, text.Print(m), "seed %d", seed)
		}
		texts[first] = true
	}
	require.Greater(t, len(texts), 1, "the seeds give other orders")
}

func TestReport(t *testing.T) {
	r, err := Run(context.Background(), decoder(3), Options{Verify: true})
	require.NoError(t, err)
	require.Len(t, r.Passes, len(List))
	require.Len(t, r.Times, len(List))
	hits := make(map[string]int)
	for _, s := range r.Passes {
		for _, h := range s.Hits {
			hits[s.Pass+"/"+h.Rule] += h.Count
		}
	}
	require.Equal(t, 3, hits["raise/repeat_kv"])
	require.Equal(t, 3, hits["expand/attention"])
	require.NotZero(t, hits["simplify/identity_slice"])
	require.NotZero(t, hits["cse/constant"])
	again, err := Run(context.Background(), decoder(3), Options{})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(r.Passes, again.Passes))
}

func TestDump(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	m := decoder(1)
	start := text.Print(m)
	_, err := Run(context.Background(), m, Options{DumpDir: dir, Passes: []string{"simplify", "expand"}})
	require.NoError(t, err)
	for file, want := range map[string]string{"00-import.tpu": start, "02-expand.tpu": text.Print(m)} {
		got, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.FileExists(t, filepath.Join(dir, "01-simplify.tpu"))
}

// A panic and an invalid module are bugs, with the module before the pass as a file that parses.
func TestCrashLeavesAReproducer(t *testing.T) {
	half := func(m *ir.Module) { m.Func.Body = m.Func.Body[:len(m.Func.Body)/2] } // leaves results undefined
	for name, p := range map[string]Pass{
		"panic": {Name: "broken", Run: func(c *Context, m *ir.Module) error {
			half(m)
			c.At(m.Func.Body[0])
			panic("no such luck")
		}},
		"invalid":   {Name: "broken", Run: func(_ *Context, m *ir.Module) error { half(m); return nil }},
		"composite": {Name: "broken", Leaves: Expanded, Run: func(*Context, *ir.Module) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "crash files")
			_, err := run(context.Background(), decoder(1), []Pass{simplify, p}, Options{Verify: true, CrashDir: dir})
			var bug *diag.Bug
			require.ErrorAs(t, err, &bug)
			require.Equal(t, "broken", bug.Pass)
			file := filepath.Join(dir, "tpuc-crash-broken.tpu")
			require.Equal(t, file, bug.Reproducer)
			require.Equal(t, "tpuc opt --pass broken '"+file+"'", bug.Command)
			if name == "panic" {
				require.Equal(t, "rms_norm bf16[1,4,16], @w0: bf16[16] {eps=1e-06, rank=1} : bf16[1,4,16]", bug.Node)
				require.Contains(t, bug.Stack, "passes")
			}
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			m := decoder(1)
			_, err = Run(context.Background(), m, Options{Passes: []string{"simplify"}})
			require.NoError(t, err)
			require.Equal(t, text.Print(m), string(data), "the input of the pass that failed")
			_, err = text.Parse(file, string(data))
			require.NoError(t, err)
		})
	}
}

func TestErrorsAreNoBugs(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("stopped by the user")
	cancel(why)
	_, err := Run(ctx, decoder(1), Options{})
	require.ErrorIs(t, err, why)
	require.False(t, diag.IsBug(err))
	_, err = Run(context.Background(), decoder(1), Options{Passes: []string{"nosuch"}})
	require.ErrorContains(t, err, "nosuch")
	bad := decoder(1)
	bad.Func.Results[0] = nil
	_, err = Run(context.Background(), bad, Options{Verify: true})
	require.ErrorContains(t, err, "verify/root")
	require.False(t, diag.IsBug(err))
}

// Rules that undo each other end in a bug and not in a loop.
func TestLoopIsFound(t *testing.T) {
	rules := []Rule{
		rule("there", "", op.Neg.Op, func(b *ir.Builder, n *ir.Node) []*ir.Value { return one(op.Abs.Make(b, n.Args[0])) }),
		rule("back", "", op.Abs.Op, func(b *ir.Builder, n *ir.Node) []*ir.Value { return one(op.Neg.Make(b, n.Args[0])) }),
	}
	m, err := text.Parse("f", "func @f(%x: f32[2]) {\n  %0 = neg %x : f32[2]\n  return %0\n}")
	require.NoError(t, err)
	_, err = run(context.Background(), m, []Pass{{Name: "loop", Run: func(c *Context, m *ir.Module) error { return applyRules(c, m, rules) }}}, Options{})
	require.ErrorContains(t, err, "no fixed point")
}

// The contents of a constant weight are read where they are at hand, of nothing else.
func TestFoldReadsConstantWeights(t *testing.T) {
	data := tensor.FromFloats(tensor.Make(tensor.F32, 2), []float64{1, -2})
	for _, c := range []struct {
		w    ir.Weight
		want string
	}{
		{ir.Weight{Class: ir.Constant, Data: data}, "  %0 = constant {value=f32[2] [-1,2]} : f32[2]\n"},
		{ir.Weight{Class: ir.Constant}, "  %0 = neg @w : f32[2]\n"},
		{ir.Weight{Class: ir.Constant, Data: data, Mutable: true}, "  %0 = neg @w : f32[2]\n"},
		{ir.Weight{Class: ir.Parameter, Data: data}, "  %0 = neg @w : f32[2]\n"},
		{ir.Weight{Class: ir.Buffer, Data: data}, "  %0 = neg @w : f32[2]\n"},
	} {
		m := &ir.Module{Func: &ir.Func{Name: "f"}}
		c.w.Sym = "w"
		b := &ir.Builder{}
		v := op.Neg.Make(b, m.AddWeight(&c.w, data.Type))
		m.Func.Body, m.Func.Results = b.Body, []*ir.Value{v}
		_, err := Run(context.Background(), m, Options{Verify: true, Passes: []string{"fold"}})
		require.NoError(t, err)
		require.Contains(t, text.Print(m), c.want)
	}
}

// Work is bounded where a program holds more constants than folding is worth.
func TestFoldIsBounded(t *testing.T) {
	var src strings.Builder
	src.WriteString("func @f() {\n  %0 = iota {type=f32[8192]} : f32[8192]\n")
	for i := range 4000 {
		fmt.Fprintf(&src, "  %%%d = neg %%%d : f32[8192]\n", i+1, i)
	}
	src.WriteString("  return %4000\n}\n")
	m, err := text.Parse("f", src.String())
	require.NoError(t, err)
	before := text.Print(m)
	_, err = Run(context.Background(), m, Options{Verify: true, Passes: []string{"fold"}})
	require.NoError(t, err)
	require.Equal(t, before, text.Print(m))
}

// precision's table agrees with the conversions: what holds says survives does so for every bit pattern of the small dtypes.
func TestHoldsIsTrue(t *testing.T) {
	for _, narrow := range tensor.DTypes() {
		if narrow.Bits() > 16 || narrow.IsComplex() {
			continue
		}
		n := int64(1) << narrow.Bits()
		all := tensor.Zeros(tensor.Make(narrow, n))
		for i := range n {
			at := i * int64(narrow.Size())
			all.Data[at] = byte(i)
			if narrow.Size() == 2 {
				all.Data[at+1] = byte(i >> 8)
			}
		}
		for _, wide := range tensor.DTypes() {
			if wide.IsComplex() || wide == narrow || !holds(wide, narrow) {
				continue
			}
			t.Run(narrow.String()+"/"+wide.String(), func(t *testing.T) {
				b := &ir.Builder{}
				x := &ir.Value{Type: all.Type}
				y := op.Convert.Make(b, op.ConvertAttr{To: wide}, x)
				op.Convert.Make(b, op.ConvertAttr{To: narrow}, y)
				mid, err := b.Body[0].Op.Eval([]*tensor.Tensor{all}, b.Body[0].Attr, []tensor.Type{y.Type})
				require.NoError(t, err)
				back, err := b.Body[1].Op.Eval(mid, b.Body[1].Attr, []tensor.Type{all.Type})
				require.NoError(t, err)
				if narrow.IsFloat() {
					want, got := all.Floats(), back[0].Floats()
					for i := range want {
						if want[i] == want[i] && want[i] != got[i] { // NaN becomes some NaN
							t.Fatalf("%v becomes %v", want[i], got[i])
						}
					}
					return
				}
				require.Equal(t, all.Ints(), back[0].Ints())
			})
		}
	}
}

// BenchmarkRun is the whole list over a module of 30 000 nodes at import.
func BenchmarkRun(b *testing.B) {
	layers := 1
	nodes := 0
	for b.Loop() {
		b.StopTimer()
		if layers == 1 {
			layers = 30_000 / len(decoder(1).Func.Body)
		}
		m := decoder(layers)
		nodes = len(m.Func.Body)
		b.StartTimer()
		if _, err := Run(context.Background(), m, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(nodes), "nodes")
}

// Composites within decompositions are decomposed too, and one that contains itself is found.
func TestExpandNests(t *testing.T) {
	unary := func(in []tensor.Type, _ any) ([]tensor.Type, error) { return in, nil }
	outer := &ir.Op{Name: "outer", Args: []ir.Arg{{Name: "x"}}, Infer: unary, Decompose: func(b *ir.Builder, n *ir.Node, _ any) []*ir.Value {
		return one(op.Silu.Make(b, op.Silu.Make(b, n.Args[0])))
	}}
	self := &ir.Op{Name: "self", Args: []ir.Arg{{Name: "x"}}, Infer: unary}
	self.Decompose = func(b *ir.Builder, n *ir.Node, _ any) []*ir.Value { return b.Build(self, nil, n.Args[0]) }
	build := func(o *ir.Op) *ir.Module {
		m := &ir.Module{Func: &ir.Func{Name: "f"}}
		b := &ir.Builder{}
		m.Func.Results = b.Build(o, nil, m.Func.AddParam("x", tensor.Make(tensor.F32, 2)))
		m.Func.Body = b.Body
		return m
	}
	m := build(outer)
	r, err := Run(context.Background(), m, Options{Verify: true, Passes: []string{"expand"}})
	require.NoError(t, err)
	require.Equal(t, []Hit{{"outer", 1}, {"silu", 2}}, r.Passes[0].Hits)
	_, err = Run(context.Background(), build(self), Options{Passes: []string{"expand"}})
	require.True(t, diag.IsBug(err))
	require.ErrorContains(t, err, "contains itself")
}
