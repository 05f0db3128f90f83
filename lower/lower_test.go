package lower_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/text"
	"tpuc/lower"
)

func parse(t *testing.T, src string) *ir.Module {
	t.Helper()
	m, err := text.Parse("test.tpu", src)
	require.NoError(t, err)
	return m
}

func lowered(t *testing.T, m *ir.Module) *lower.Program {
	t.Helper()
	p, err := lower.Lower(m)
	require.NoError(t, err)
	return p
}

func TestArguments(t *testing.T) {
	p := lowered(t, parse(t, `
weight @unused = "unused" : f32[2]
weight @second = "b" : f32[2]
weight @first = "a" : f32[2]
state buffer @kv = "cache" : f32[2]
func @main(%x: f32[2], %mutated: f32[2]) {
  %0 = add %x, @first : f32[2]
  %1 = add %0, @second : f32[2]
  %2 = add %1, @kv : f32[2]
  return %1, %2, @kv = %2, %mutated = %0
}
`))
	var kinds []string
	for _, a := range p.Args {
		kinds = append(kinds, string(a.Kind))
	}
	require.Equal(t, []string{"input", "input", "state", "weight", "weight"}, kinds)
	require.Equal(t, "first", p.Args[3].Weight.Sym, "weights stand in order of first use")
	require.Equal(t, []int{0, 1}, p.Outputs)
	require.Equal(t, []lower.Update{{Arg: 2, Result: 1}, {Arg: 1, Result: 2}}, p.Updates, "an output that is an update is one result")
	require.Equal(t, 1, p.Args[2].Alias)
	require.Equal(t, 2, p.Args[1].Alias)
	require.Equal(t, -1, p.Args[0].Alias)
	require.Contains(t, string(p.Text), "%arg2: tensor<2xf32> {tf.aliasing_output = 1 : i32}")
	require.NotContains(t, string(p.Text), "cache")
}

// The text must not depend on the order in which an archive declares its state.
func TestOrderOfState(t *testing.T) {
	const a, b = `state buffer @a = "a" : f32[2]`, `state buffer @b = "b" : f32[2]`
	const c, d = `state buffer @c = "c" : f32[2]`, `state buffer @d = "d" : f32[2]`
	program := func(weights, updates string) string {
		return string(lowered(t, parse(t, weights+`
func @main(%x: f32[2]) {
  %0 = add %x, @b : f32[2]
  %1 = mul %0, @a : f32[2]
  %2 = neg %1 : f32[2]
  %3 = exp %2 : f32[2]
  return %1, `+updates+`
}
`)).Text)
	}
	want := program(strings.Join([]string{a, b, c, d}, "\n"), "@a = %0, @b = %1, @c = %3, @d = %2")
	require.Equal(t, want, program(strings.Join([]string{d, c, b, a}, "\n"), "@d = %2, @c = %3, @b = %1, @a = %0"))
	require.Equal(t, want, program(strings.Join([]string{b, d, a, c}, "\n"), "@b = %1, @d = %2, @a = %0, @c = %3"))
}

func TestOneValueForTwoTargets(t *testing.T) {
	p := lowered(t, parse(t, `
state buffer @a = "a" : f32[2]
state buffer @b = "b" : f32[2]
func @main(%x: f32[2]) {
  %0 = add %x, %x : f32[2]
  return @a = %0, @b = %0
}
`))
	require.Len(t, p.Results, 2)
	require.Equal(t, []lower.Update{{Arg: 1, Result: 0}, {Arg: 2, Result: 1}}, p.Updates, "each target keeps memory of its own")
	require.Equal(t, []int{0, 1}, []int{p.Args[1].Alias, p.Args[2].Alias})
}

func TestUnchangedStateIsNoUpdate(t *testing.T) {
	p := lowered(t, parse(t, `
state buffer @a = "a" : f32[2]
func @main(%x: f32[2]) {
  %0 = add %x, @a : f32[2]
  return %0, @a = @a
}
`))
	require.Empty(t, p.Updates)
	require.Equal(t, lower.Weight, p.Args[1].Kind)
}

func TestLargeConstants(t *testing.T) {
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	x := m.Func.AddParam("x", tensor.Make(tensor.F32, 1<<15))
	b := &ir.Builder{}
	table := func(last float64) *ir.Value {
		v := make([]float64, 1<<15)
		v[len(v)-1] = last
		return op.Constant.Make(b, op.ConstantAttr{Value: tensor.FromFloats(x.Type, v)})
	}
	y := op.Add.Make(b, op.Add.Make(b, op.Add.Make(b, x, table(1)), table(2)), table(1))
	m.Func.Body, m.Func.Results = b.Body, []*ir.Value{y}
	p := lowered(t, m)
	require.Len(t, p.Args, 3, "an input and two different tables")
	require.Equal(t, lower.Constant, p.Args[1].Kind)
	require.NotNil(t, p.Args[1].Value)
	require.Less(t, len(p.Text), 2000)
}

func TestLocationsAreLayersAlone(t *testing.T) {
	src := func(file string, line string) string {
		return `
func @main(%x: f32[2]) {
  %0 = add %x, %x : f32[2] #1
  return %0
}
#1 = "layers.0.\"mlp\"" at "` + file + `":` + line + ` "y = x + x"
`
	}
	a, b := lowered(t, parse(t, src("a.py", "1"))), lowered(t, parse(t, src("b.py", "22")))
	require.Equal(t, string(a.Text), string(b.Text))
	require.Contains(t, string(a.Text), `loc("layers.0.\22mlp\22")`)
}

// The digest is of the text without its locations.
func TestDigest(t *testing.T) {
	program := func(layer, op string) *lower.Program {
		return lowered(t, parse(t, `
func @main(%x: f32[2,3]) {
  %0 = `+op+` %x : f32[2,3] #1
  %1 = reduce %0 {kind=sum, axes=[1]} : f32[2] #1
  return %1
}
#1 = "`+layer+`"
`))
	}
	a, b, none, c := program("layers.0", "exp"), program("another.7", "exp"), program("", "exp"), program("layers.0", "log")
	require.NotEqual(t, string(a.Text), string(b.Text))
	require.Equal(t, lower.Digest(a.Text), lower.Digest(b.Text))
	require.Equal(t, lower.Digest(a.Text), lower.Digest(none.Text))
	require.NotEqual(t, lower.Digest(a.Text), lower.Digest(c.Text))
	sum := sha256.Sum256(none.Text)
	require.Equal(t, hex.EncodeToString(sum[:]), lower.Digest(none.Text), "a program without locations is digested as it is")
}

func TestCompositesAreRefused(t *testing.T) {
	_, err := lower.Lower(parse(t, `
func @main(%x: f32[2]) {
  %0 = softmax %x {axis=0} : f32[2]
  return %0
}
`))
	require.ErrorContains(t, err, "softmax is composite")
}

func TestReducerRegion(t *testing.T) {
	p := lowered(t, parse(t, `
func @main(%x: f32[2,3]) {
  %0 = reduce %x {kind=sum, axes=[1]} : f32[2]
  return %0
}
`))
	require.Equal(t, 1, strings.Count(string(p.Text), "^bb0"))
}

func TestSignature(t *testing.T) {
	p := lowered(t, parse(t, `
state buffer @kv = "cache" : c64[2]
func @main(%x: f32[2,3], %n: i64[], %z: c64[2]) {
  %0 = add %z, @kv : c64[2]
  return %x, @kv = %0
}
`))
	args, results := lower.Signature(p.Text)
	require.Equal(t, []string{"2x3xf32", "i64", "2xcomplex<f32>", "2xcomplex<f32>=>1"}, args)
	require.Equal(t, []string{"2x3xf32", "2xcomplex<f32>"}, results)
	args, results = lower.Signature([]byte("module {}"))
	require.Nil(t, args)
	require.Nil(t, results)
}
