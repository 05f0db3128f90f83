package passes

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
)

// scramble puts f's nodes into a random order that keeps definitions before uses, and effects as they are.
func scramble(f *ir.Func, r *rand.Rand) {
	placed := make(map[*ir.Node]bool)
	rest, body := slices.Clone(f.Body), []*ir.Node(nil)
	for len(rest) > 0 {
		i := r.IntN(len(rest))
		ready := !slices.ContainsFunc(rest[i].Args, func(a *ir.Value) bool { return a.Def != nil && !placed[a.Def] })
		if rest[i].HasEffect() {
			ready = ready && !slices.ContainsFunc(rest[:i], func(n *ir.Node) bool { return n.HasEffect() })
		}
		if ready {
			placed[rest[i]] = true
			body = append(body, rest[i])
			rest = slices.Delete(rest, i, i+1)
		}
	}
	f.Body = body
}

// Statements in any valid order, and weights and updates declared in any, give one program.
func TestOrderIsCanonical(t *testing.T) {
	var want string
	moved := 0
	for seed := range uint64(20) {
		m := decoder(2)
		r := rand.New(rand.NewPCG(3, seed))
		before := text.Print(m)
		if seed > 0 {
			scramble(m.Func, r)
			r.Shuffle(len(m.Func.Updates), func(i, j int) {
				m.Func.Updates[i], m.Func.Updates[j] = m.Func.Updates[j], m.Func.Updates[i]
			})
			if before != text.Print(m) {
				moved++
			}
		}
		_, err := Run(context.Background(), m, Options{Verify: true})
		require.NoError(t, err)
		if want == "" {
			want = text.Print(m)
		}
		require.Equal(t, want, text.Print(m), "seed %d", seed)
	}
	require.Equal(t, 19, moved)
}

// Operations with effects stay though nothing reads them, and keep their order among themselves.
func TestOrderKeepsEffects(t *testing.T) {
	effect := func(b *ir.Builder, name string, x *ir.Value) *ir.Value {
		return op.OpaqueEffect.Make(b, op.OpaqueAttr{Name: name, Text: name + " %{0} : tensor<2xf32>", Out: "f32[2]"}, x)
	}
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	x := m.Func.AddParam("x", tensor.Make(tensor.F32, 2))
	b := &ir.Builder{}
	dead := op.Neg.Make(b, x)
	first := effect(b, "a.first", op.Exp.Make(b, x))
	second := effect(b, "b.second", x)
	effect(b, "c.third", first)
	m.Func.Body, m.Func.Results = b.Body, []*ir.Value{op.Sin.Make(b, second)}
	m.Func.Body = b.Body
	_, err := Run(context.Background(), m, Options{Verify: true, Passes: []string{"order"}})
	require.NoError(t, err)
	var names []string
	for _, n := range m.Func.Body {
		if op.OpaqueEffect.Is(n) {
			names = append(names, op.OpaqueEffect.Attr(n).Name)
		}
	}
	require.Equal(t, []string{"a.first", "b.second", "c.third"}, names)
	require.Equal(t, dead.Def, m.Func.Body[len(m.Func.Body)-1])
	require.Len(t, m.Func.Body, 6)
}

// A chain of 100 000 nodes takes no deep stack and no quadratic time.
func TestOrderOfALongChain(t *testing.T) {
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	v := m.Func.AddParam("x", tensor.Make(tensor.F32, 2))
	s := m.AddWeight(&ir.Weight{Sym: "s", Class: ir.Buffer, Mutable: true}, v.Type)
	other := m.AddWeight(&ir.Weight{Sym: "t", Class: ir.Buffer, Mutable: true}, v.Type)
	b := &ir.Builder{}
	for range 100_000 {
		v = op.Neg.Make(b, v)
	}
	m.Func.Body = b.Body
	m.Func.Updates = []ir.Update{{Target: s, New: v}, {Target: other, New: v.Def.Args[0]}}
	_, err := Run(context.Background(), m, Options{Passes: []string{"order"}})
	require.NoError(t, err)
	require.Len(t, m.Func.Body, 100_000)
}
