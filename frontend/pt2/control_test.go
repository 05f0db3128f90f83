package pt2_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/pt2"
	"tpuc/ir"
	"tpuc/ir/op"
)

// called gives the functions of a made case but its entry, and counts the operators of the entry.
func called(t *testing.T, name string) (m *pt2.Imported, funcs []*ir.Func, ops map[string]int) {
	m = imported(t, name)
	all := m.Module.Functions()
	ops = make(map[string]int)
	for _, n := range m.Module.Func.Body {
		ops[n.Op.Name]++
	}
	return m, all[:len(all)-1], ops
}

// Branches are functions, nested ones too. They read weights themselves, and a small constant is a literal where it is read.
func TestCond(t *testing.T) {
	m, funcs, ops := called(t, "cond_nested")
	require.Equal(t, 1, ops["cond"])
	require.Len(t, funcs, 4)
	require.Len(t, m.Module.Weights, 4, "the constant is a literal")
	for _, f := range funcs {
		require.Equal(t, 1, len(f.Params), "%s takes x, and no weight", f.Name)
	}
	literal := func(f *ir.Func) bool {
		return slices.ContainsFunc(f.Body, func(n *ir.Node) bool {
			return op.Constant.Is(n) && slices.Equal(op.Constant.Attr(n).Value.Floats(), []float64{0.5})
		})
	}
	n := 0
	for _, f := range append(funcs, m.Module.Func) {
		if literal(f) {
			n++
		}
	}
	require.Equal(t, 1, n, "only the function that reads the constant holds it")
	for _, n := range m.Module.Func.Body {
		if op.Cond.Is(n) {
			require.Equal(t, "control.py", n.Loc.File[len(n.Loc.File)-len("control.py"):])
		}
	}
}

// What branches write in place are further results: the entry updates the buffers.
func TestCondWrites(t *testing.T) {
	m, _, _ := called(t, "cond_writes")
	require.Len(t, m.Module.Func.Updates, 2)
	for _, n := range m.Module.Func.Body {
		if op.Cond.Is(n) {
			require.Len(t, n.Outs, 3, "the result, the buffer and the row")
		}
	}
}

// A predicate that is known when sizes are picks its branch.
func TestCondBySize(t *testing.T) {
	p := load(t, "cond_size")
	for rows, want := range map[int64]string{5: "sin", 3: "cos"} {
		b, err := p.BindShapes([][]int64{{rows, 4}})
		require.NoError(t, err)
		m, err := p.Import(context.Background(), b)
		require.NoError(t, err)
		require.Len(t, m.Module.Functions(), 1)
		require.Len(t, m.Module.Func.Body, 1)
		require.Equal(t, want, m.Module.Func.Body[0].Op.Name)
	}
}

// A short scan is written out, a long one is a loop, whose state is what changes and the inputs that it reads.
func TestScan(t *testing.T) {
	_, funcs, ops := called(t, "scan_short")
	require.Empty(t, funcs)
	require.Equal(t, 5, ops["linear"])
	_, funcs, ops = called(t, "scan_long")
	require.Len(t, funcs, 2)
	require.Equal(t, 1, ops["while"])
	body := funcs[1]
	require.Len(t, body.Params, 6, "step, carry, two results, two inputs")
	require.Equal(t, body.Params[4:], body.Results[4:], "inputs stay as they are")
}

// A map is done at once, without a loop, where all of its operators can be. A convolution cannot, but a few are written out.
func TestMap(t *testing.T) {
	_, funcs, ops := called(t, "map")
	require.Empty(t, funcs)
	require.Equal(t, 5, ops["conv"])
	require.Equal(t, 2, ops["dot"], "the product and linear's, each of all elements")
	_, funcs, ops = called(t, "map_long")
	require.Len(t, funcs, 2)
	require.Equal(t, 1, ops["while"])
}

// Regions of vmap leave no loop and nothing that depends on the number of elements.
func TestVmap(t *testing.T) {
	_, funcs, ops := called(t, "vmap")
	require.Empty(t, funcs)
	require.Zero(t, ops["while"])
	require.LessOrEqual(t, ops["dot"], 2)
}

// Every operator that the page of coverage lists as control flow has a rule.
func TestControlIsSupported(t *testing.T) {
	n := 0
	for _, o := range pt2.Operators() {
		if strings.HasPrefix(o.Name, "higher_order.") || strings.HasPrefix(o.Name, "_functorch.") {
			require.True(t, o.Supported, o.Name)
			n++
		}
	}
	require.Equal(t, 14, n)
}

// A weight that a loop's body writes is state of the loop, and what the condition and the body only read is not carried by a program.
func TestWhile(t *testing.T) {
	m, funcs, _ := called(t, "while")
	require.Len(t, funcs, 2)
	require.Len(t, m.Module.Weights, 2)
	require.Len(t, funcs[1].Params, 3, "step, x and k, and no weight")
	m, funcs, _ = called(t, "while_writes")
	require.Len(t, funcs[1].Params, 3, "step, x and the buffer")
	require.Len(t, m.Module.Func.Updates, 1)
}
