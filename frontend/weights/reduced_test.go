package weights

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
)

// sampleReduced is a weight, two constants, one of them elsewhere, and a tensor that was saved without bytes.
func sampleReduced() (r Reduced, external *tensor.Tensor) {
	of := func(name string, x *tensor.Tensor) Stored {
		return Stored{Name: name, Section: "constants", Storage: "data/" + name, Type: x.Type, Strides: tensor.Strides(x.Dims)}
	}
	f := tensor.FromFloats(tensor.Make(tensor.F32, 2, 2), []float64{1, 2, 3, 4})
	external = tensor.FromInts(tensor.Make(tensor.I64, 3), []int64{7, 8, 9})
	sum := sha256.Sum256(external.Data)
	weight, absent := of("w", f), of("gone", f)
	weight.IsParam, absent.Absent = true, true
	return Reduced{Graph: []byte("{}"), Identity: "id", CustomOps: []byte("text"), Tensors: []ReducedTensor{
		{Stored: weight}, {Stored: of("c", f), Value: f}, {Stored: of("e", external), External: hex.EncodeToString(sum[:])}, {Stored: absent},
	}}, external
}

func TestReduced(t *testing.T) {
	r, external := sampleReduced()
	var b bytes.Buffer
	require.NoError(t, WriteReduced(&b, r))
	missing := errors.New("not here")
	for _, found := range []bool{true, false} {
		a, err := OpenReduced("m.tpuc", b.Bytes(), func(string, tensor.Type) (*tensor.Tensor, error) {
			if found {
				return external, nil
			}
			return nil, missing
		})
		require.NoError(t, err)
		require.Equal(t, []string{"w", "c", "e", "gone"}, a.Names())
		require.Equal(t, "id", a.Identity())
		graph, err := a.Entry(a.Graph())
		require.NoError(t, err)
		require.Equal(t, "{}", string(graph))
		ops, err := a.CustomOps()
		require.NoError(t, err)
		require.Equal(t, "text", string(ops))
		c, err := a.Load("c")
		require.NoError(t, err)
		require.Equal(t, []float64{1, 2, 3, 4}, c.Floats())
		sum, err := a.Digest("c")
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(sha(c.Data)), sum)
		e, err := a.Load("e")
		if found {
			require.NoError(t, err)
			require.Equal(t, []int64{7, 8, 9}, e.Ints())
		} else {
			require.ErrorIs(t, err, missing)
		}
		for i := range r.Tensors {
			require.Equal(t, r.Tensors[i].View(), a.Tensors()[i].View())
		}
		_, err = a.Load("w")
		require.ErrorIs(t, err, ErrAbsent)
		require.ErrorContains(t, err, `the bytes of tensor "w" are not in the artifact`)
		_, err = a.Load("gone")
		require.ErrorIs(t, err, ErrAbsent)
	}
	// Another constant of the same type is not taken for it.
	a, err := OpenReduced("m.tpuc", b.Bytes(), func(_ string, typ tensor.Type) (*tensor.Tensor, error) { return tensor.Zeros(typ), nil })
	require.NoError(t, err)
	_, err = a.Load("e")
	require.ErrorContains(t, err, "sha256 is ")
}

func sha(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}

// reducedWith is a reduced archive of this index and one constant of eight bytes.
func reducedWith(t testing.TB, index string) []byte {
	data := []byte("12345678")
	return zipBytes(t, []entry{{name: reducedTensors, data: []byte(index), deflated: true}, {name: reducedGraph, data: []byte("{}")},
		{name: reducedConstants + hex.EncodeToString(sha(data)), data: data}})
}

// reducedEntries are tensors of an index with what is wrong with each; the constant's digest stands for D.
var reducedEntries = []struct{ json, want string }{
	{`{"name":"c","storage":"s","dtype":"f32","dims":[2],"strides":[1],"sha256":"D"}`, ""},
	{`{"name":"w","storage":"s","dtype":"f32","dims":[1099511627776,1099511627776],"strides":[0,0]}`, "more bytes than an int64 holds"},
	{`{"name":"c","storage":"s","dtype":"f32","dims":[3],"strides":[1],"sha256":"D"}`, "8 bytes, wanted 12 for f32[3]"},
	{`{"name":"c","storage":"s","dtype":"f99","dims":[2],"strides":[1]}`, `unknown dtype "f99"`},
	{`{"name":"c","storage":"s","dtype":"f32","dims":[-1],"strides":[1]}`, "dimension 0 is -1"},
	{`{"name":"c","storage":"s","dtype":"f32","dims":[2],"strides":[]}`, "1 sizes with 0 strides"},
	{`{"name":"c","storage":"s","dtype":"f32","dims":[2],"strides":[1],"sha256":"D","absent":true}`, "a digest and no bytes"},
	{`{"name":"c","storage":"s","dtype":"f32","dims":[2],"strides":[1],"sha256":"00"}`, "no entry constants/00"},
	{`{"name":"c","storage":"s","dtype":"f32","dims":[2],"strides":[1],"more":1}`, "more"},
}

func reducedIndexOf(json string) string {
	digest := hex.EncodeToString(sha([]byte("12345678")))
	return fmt.Sprintf(`{"identity":"","tensors":[%s]}`, strings.ReplaceAll(json, `"D"`, `"`+digest+`"`))
}

func TestReducedFaults(t *testing.T) {
	for _, tc := range reducedEntries {
		a, err := OpenReduced("f", reducedWith(t, reducedIndexOf(tc.json)), nil)
		if tc.want == "" {
			require.NoError(t, err)
			loadAll(t, a)
			continue
		}
		require.ErrorContains(t, err, tc.want)
	}
	twice := reducedIndexOf(reducedEntries[0].json + "," + strings.Replace(reducedEntries[0].json, `"D"`, `"11"`, 1))
	_, err := OpenReduced("f", reducedWith(t, twice), nil)
	require.ErrorContains(t, err, "its view has two digests")
	_, err = OpenReduced("f", zipBytes(t, []entry{{name: reducedGraph}}), nil)
	require.ErrorContains(t, err, "tensors.json")
}

// FuzzReduced changes the index of a reduced archive whose constants are honest.
func FuzzReduced(f *testing.F) {
	for _, tc := range reducedEntries {
		f.Add([]byte(reducedIndexOf(tc.json)))
	}
	f.Add([]byte(`{`))
	f.Add([]byte(`{"tensors":[{"name":"c"}]}`))
	f.Fuzz(func(t *testing.T, index []byte) {
		find := func(_ string, typ tensor.Type) (*tensor.Tensor, error) {
			return nil, fmt.Errorf("no constant of type %s", typ)
		}
		if a, err := OpenReduced("fuzz", reducedWith(t, string(index)), find); err == nil {
			loadAll(t, a)
			digestAll(t, a)
		}
	})
}
