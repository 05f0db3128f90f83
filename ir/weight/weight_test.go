package weight

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ text, typ string }{
		{`"w"`, "f32[2,3]"},
		{`const("6f3a")`, "i4[]"},
		{`permute("a.\"b\"": f32[2,3], [1,0])`, "f32[3,2]"},
		{`permute("s": f32[], [])`, "f32[]"},
		{`reshape(const("6f3a"): u8[2,3], [3,1,2])`, "u8[3,1,2]"},
		{`slice("w": bf16[66,32], [2,0], [11,32], [1,1])`, "bf16[9,32]"},
		{`slice("w": bf16[9], [1], [9], [3])`, "bf16[3]"},
		{`slice("w": f32[4,0], [4,0], [4,0], [1,7])`, "f32[0,0]"},
		{`permute(reshape(slice("w": f32[8,4], [4,0], [8,4], [1,1]), [2,2,4]), [2,0,1])`, "f32[4,2,2]"},
	} {
		want, err := tensor.ParseType(c.typ)
		require.NoError(t, err)
		e, err := Parse(c.text, want)
		require.NoError(t, err, "%s", c.text)
		require.Equal(t, c.text, e.String())
		require.True(t, e.Type().Equal(want))
		spaced, err := Parse(strings.NewReplacer(",", " ,\t", "(", " ( ", ":", " : ", "[", "[ ").Replace(c.text), want)
		require.NoError(t, err)
		require.Equal(t, e, spaced)
	}
	e, err := Parse(`tensor("w")`, tensor.Make(tensor.F32))
	require.NoError(t, err)
	require.Equal(t, Tensor{"w", tensor.Make(tensor.F32)}, e)
}

func TestErrors(t *testing.T) {
	f32 := tensor.Make(tensor.F32, 2, 3)
	for text, want := range map[string]string{
		``:                                           `wanted "name"`,
		`"w`:                                         "wanted a string in double quotes",
		"tensor(`w`)":                                "wanted a string in double quotes",
		`tensor "w"`:                                 `wanted '('`,
		`tensor("w"`:                                 `wanted ')'`,
		`stack("w")`:                                 "source stack, wanted a quoted name",
		`"w" "v"`:                                    "wanted its end",
		`permute("w", [1,0])`:                        `wanted ':'`,
		`permute("w": f32[3,2)`:                      "wanted a type",
		`permute("w": f33[3,2], [1,0])`:              "f33",
		`permute("w": f32[3,2], [1,0]`:               `wanted ')'`,
		`permute("w": f32[3,2], [1,a])`:              "integers",
		`permute("w": f32[3,2], [1`:                  "wanted a ]",
		`permute("w": f32[3,2], [0,0])`:              "permutation [0 0]",
		`permute("w": f32[3,2], [0])`:                "permutation [0]",
		`permute("w": f32[3,2], [0,2])`:              "permutation [0 2]",
		`permute("w": f32[3,2], [0,-1])`:             "permutation [0 -1]",
		`permute("w": f32[3,2], [1,0], [1])`:         `wanted ')'`,
		`permute("w": f32[2,3], [1,0])`:              "gives f32[3,2], wanted f32[2,3]",
		`permute("w": bf16[3,2], [1,0])`:             "gives bf16[2,3], wanted f32[2,3]",
		`reshape("w": f32[6], [2,4])`:                "has 8 elements, wanted the 6",
		`reshape("w": f32[6], [2,-3])`:               "dimension 1 is -3",
		`slice("w": f32[4,3], [0], [2,3])`:           `wanted ','`,
		`slice("w": f32[4,3], [0], [2],[1])`:         "1 starts, 1 limits and 1 strides, wanted 2",
		`slice("w": f32[4,3], [3,0], [5,3], [1,1])`:  "dimension 0 from 3 to 5 by 1, wanted within 4",
		`slice("w": f32[4,3], [2,0], [1,3], [1,1])`:  "dimension 0 from 2 to 1",
		`slice("w": f32[4,3], [2,0], [4,3], [1,0])`:  "dimension 1 from 0 to 3 by 0",
		`slice("w": f32[4,3], [-1,0], [1,3], [1,1])`: "dimension 0 from -1",
		`reshape("w": f32[6], [` + strings.Repeat("1,", 64) + `6])`: "at most 64 integers",
		strings.Repeat("permute(", MaxDepth+1):                      "more than 32 operations",
		strings.Repeat(" ", maxText) + `"w"`:                        "wanted at most 1048576",
	} {
		_, err := Parse(text, f32)
		require.ErrorContains(t, err, want, "%.80s", text)
	}
}

func TestDepth(t *testing.T) {
	var e Expr = Tensor{"w", tensor.Make(tensor.F32, 2, 3)}
	for range MaxDepth {
		var err error
		e, err = Permute(e, []int64{1, 0})
		require.NoError(t, err)
	}
	again, err := Parse(e.String(), e.Type())
	require.NoError(t, err)
	require.Equal(t, e, again)
	_, err = Reshape(e, []int64{6})
	require.ErrorContains(t, err, "more than 32 operations")
}

// random appends n operations of all kinds to a tensor of few elements, and gives the places of the result's elements in it, found one by one.
func random(t *testing.T, rng *rand.Rand, leaf Tensor, n int) (Expr, []int64) {
	var e Expr = leaf
	places := make([]int64, leaf.T.Elements())
	for i := range places {
		places[i] = int64(i)
	}
	for range n {
		dims := e.Type().Dims
		strides := tensor.Strides(dims)
		var err error
		var from []int64 // the stride in the argument of each result dimension
		offset := int64(0)
		switch rng.IntN(3) {
		case 0:
			perm := make([]int64, len(dims))
			for i, d := range rng.Perm(len(dims)) {
				perm[i] = int64(d)
				from = append(from, strides[d])
			}
			e, err = Permute(e, perm)
		case 1:
			shape := []int64{1}
			for _, d := range dims {
				if rng.IntN(2) == 0 {
					shape = append(shape, d)
				} else {
					shape[len(shape)-1] *= d
				}
			}
			e, err = Reshape(e, shape)
			from = tensor.Strides(shape)
		case 2:
			var start, limit, stride []int64
			for i, d := range dims {
				first := rng.Int64N(d + 1)
				start, limit, stride = append(start, first), append(limit, first+rng.Int64N(d-first+1)), append(stride, 1+rng.Int64N(3))
				if rng.IntN(3) > 0 {
					start[i], limit[i], stride[i] = 0, d, 1
				}
				offset += start[i] * strides[i]
				from = append(from, strides[i]*stride[i])
			}
			e, err = Slice(e, start, limit, stride)
		}
		require.NoError(t, err)
		var next []int64
		var walk func(d int, at int64)
		walk = func(d int, at int64) {
			if d == len(from) {
				next = append(next, places[at])
				return
			}
			for i := range e.Type().Dims[d] {
				walk(d+1, at+i*from[d])
			}
		}
		walk(0, offset)
		places = next
	}
	return e, places
}

func TestEval(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	for range 2000 {
		leaf := Tensor{"w", tensor.Make([]tensor.DType{tensor.I8, tensor.I32, tensor.F64}[rng.IntN(3)], 2, 3, 1, 4)}
		x := tensor.FromInts(leaf.T, make([]int64, 24))
		for i := range x.Data {
			x.Data[i] = byte(i)
		}
		e, places := random(t, rng, leaf, rng.IntN(6))
		y, err := Eval(e, x)
		require.NoError(t, err)
		require.True(t, y.Type.Equal(e.Type()))
		var want []byte
		size := int64(leaf.T.DType.Size())
		for _, p := range places {
			want = append(want, x.Data[p*size:(p+1)*size]...)
		}
		require.Equal(t, string(want), string(y.Data), "%s", e)
		again, err := Parse(e.String(), e.Type())
		require.NoError(t, err)
		require.Equal(t, e.String(), again.String())
		require.Equal(t, Expr(leaf), Leaf(again))
	}
	_, err := Eval(Tensor{"w", tensor.Make(tensor.F32, 2)}, tensor.Zeros(tensor.Make(tensor.F32, 3)))
	require.ErrorContains(t, err, "a tensor of type f32[3], wanted f32[2]")
}

// Elements that lie in order stay where they are: a checkpoint that is mapped is not copied.
func TestEvalInPlace(t *testing.T) {
	x := tensor.Zeros(tensor.Make(tensor.F32, 8, 4))
	for text, offset := range map[string]int{
		`"w"`:                             0,
		`reshape("w": f32[8,4], [2,4,4])`: 0,
		`slice("w": f32[8,4], [2,0], [6,4], [1,1])`:                   32,
		`slice("w": f32[8,4], [3,1], [4,3], [1,1])`:                   52,
		`permute(slice("w": f32[8,4], [1,0], [2,4], [1,1]), [1,0])`:   16,
		`reshape(slice("w": f32[8,4], [4,0], [8,4], [1,1]), [16])`:    64,
		`permute(permute("w": f32[8,4], [1,0]), [1,0])`:               0,
		`slice("w": f32[8,4], [1,0], [7,4], [9223372036854775807,1])`: 16,
		`permute("w": f32[8,4], [1,0])`:                               -1,
		`slice("w": f32[8,4], [0,1], [8,3], [1,1])`:                   -1,
		`slice(permute("w": f32[8,4], [1,0]), [0,0], [4,1], [1,1])`:   0,
		`reshape(permute("w": f32[8,4], [1,0]), [32])`:                -1,
		`slice("w": f32[8,4], [0,0], [8,4], [2,1])`:                   -1,
	} {
		var p = parser{rest: text}
		e, err := p.source(&x.Type, 0)
		require.NoError(t, err)
		y, err := Eval(e, x)
		require.NoError(t, err)
		at := -1
		if d := uintptr(unsafe.Pointer(&y.Data[0])) - uintptr(unsafe.Pointer(&x.Data[0])); d < uintptr(len(x.Data)) {
			at = int(d)
		}
		require.Equal(t, offset, at, "%s", text)
	}
}

func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 0))
	for i := range 20 {
		e, _ := random(&testing.T{}, rng, Tensor{fmt.Sprintf("w%d", i), tensor.Make(tensor.BF16, 2, 3, 4)}, i%5)
		f.Add(e.String(), e.Type().String())
	}
	for _, s := range []string{`const("6f3a")`, `tensor("w")`, `"w`, `permute("w": f32[2,2], [0])`, `slice("w": i4[9], [1], [9], [3])`, `reshape("w": f32[6], [2,-3])`,
		`permute("w", [1,0])`, `stack("w")`, `"a" "b"`, `tensor "w"`, `permute(tensor("w"): f32[`, `slice("w": f32[4], [1,x], [2], [1])`, `reshape("w": f32[4], [4`} {
		f.Add(s, "f32[2,2]")
	}
	f.Fuzz(func(t *testing.T, s, typ string) {
		want, err := tensor.ParseType(typ)
		if err != nil {
			return
		}
		e, err := Parse(s, want)
		if err != nil {
			return
		}
		require.True(t, e.Type().Equal(want))
		again, err := Parse(e.String(), want)
		require.NoError(t, err)
		require.Equal(t, e.String(), again.String())
		leaf := Leaf(e).Type()
		if leaf.Bytes() > 1<<16 {
			return
		}
		x, err := Eval(e, tensor.Zeros(leaf))
		require.NoError(t, err)
		require.True(t, x.Type.Equal(want))
		require.Len(t, x.Data, int(want.Bytes()))
	})
}

func TestBetween(t *testing.T) {
	w := Tensor{"w", tensor.Make(tensor.F32, 2, 3, 4)}
	turned, err := Permute(w, []int64{2, 0, 1})
	require.NoError(t, err)
	perm, ok := Between(w, turned)
	require.True(t, ok)
	require.Equal(t, []int64{2, 0, 1}, perm)
	perm, ok = Between(turned, w)
	require.True(t, ok)
	require.Equal(t, []int64{1, 2, 0}, perm)
	flat, err := Reshape(w, []int64{24})
	require.NoError(t, err)
	for _, other := range []Expr{w, flat, Tensor{"v", w.T}} {
		_, ok = Between(other, w)
		require.False(t, ok, "%s", other)
	}
}

// What permutes and reshapes is undone to the leaf; what cuts is not.
func TestUndo(t *testing.T) {
	w := Tensor{"w", tensor.Make(tensor.F32, 2, 3, 4)}
	x := tensor.Zeros(w.T)
	for i := range x.Data {
		x.Data[i] = byte(i)
	}
	var e Expr = w
	var err error
	for _, step := range []func() (Expr, error){
		func() (Expr, error) { return e, nil },
		func() (Expr, error) { return Permute(e, []int64{2, 0, 1}) },
		func() (Expr, error) { return Reshape(e, []int64{8, 3}) },
		func() (Expr, error) { return Permute(e, []int64{1, 0}) },
	} {
		e, err = step()
		require.NoError(t, err)
		given, err := Eval(e, x)
		require.NoError(t, err)
		back, ok, err := Undo(e, given)
		require.NoError(t, err)
		require.True(t, ok, "%s", e)
		require.Equal(t, x, back, "%s", e)
	}
	e, err = Slice(e, []int64{0, 0}, []int64{2, 8}, []int64{1, 1})
	require.NoError(t, err)
	given, err := Eval(e, x)
	require.NoError(t, err)
	_, ok, err := Undo(e, given)
	require.NoError(t, err)
	require.False(t, ok)
	_, _, err = Undo(e, x)
	require.ErrorContains(t, err, "a tensor of type f32[2,3,4], wanted f32[2,8]")
}
