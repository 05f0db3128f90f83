package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/weights"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// memory is a weights.Source of tensors in memory.
type memory map[string]*tensor.Tensor

func (m memory) Label() string   { return "memory" }
func (m memory) Names() []string { return nil }
func (m memory) Close() error    { return nil }

func (m memory) Type(name string) (tensor.Type, error) {
	t, err := m.Load(name)
	if err != nil {
		return tensor.Type{}, err
	}
	return t.Type, nil
}

func (m memory) Load(name string) (*tensor.Tensor, error) {
	if t := m[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%q: %w", name, weights.ErrNoTensor)
}

// misaligned copies x to an address that is no multiple of 64.
func misaligned(x *tensor.Tensor) *tensor.Tensor {
	buf := make([]byte, len(x.Data)+128)
	at := 8
	if uintptr(unsafe.Pointer(&buf[0]))%64 != 0 {
		at = 64 - int(uintptr(unsafe.Pointer(&buf[0]))%64) + 8
	}
	copy(buf[at:], x.Data)
	return &tensor.Tensor{Type: x.Type, Data: buf[at : at+len(x.Data)]}
}

func TestCheckInputs(t *testing.T) {
	ports := []artifact.Port{port("ids", tensor.I64, 1, 8), port("mask", tensor.Bool, 1, 8), port("scale", tensor.F32)}
	ok := []*tensor.Tensor{tensor.Zeros(tensor.Make(tensor.I64, 1, 8)), tensor.Zeros(tensor.Make(tensor.Bool, 1, 8)), tensor.Zeros(tensor.Make(tensor.F32))}
	require.NoError(t, CheckInputs(ports, ok))

	// Every mismatch is in the one error.
	err := CheckInputs(ports, []*tensor.Tensor{
		tensor.Zeros(tensor.Make(tensor.I32, 1, 8)), tensor.Zeros(tensor.Make(tensor.Bool, 2, 9)), nil, ok[0]})
	for _, want := range []string{
		"4 inputs, wanted 3", `input 1 is "mask" : bool[1,8]`,
		`input 0 ("ids") has dtype i32, wanted i64 (i64[1,8])`,
		`input 1 ("mask") has shape [2 9], wanted [1 8]`,
		`input 2 ("scale") is missing, wanted f32[]`,
	} {
		require.ErrorContains(t, err, want)
	}
	err = CheckInputs(ports, []*tensor.Tensor{ok[0], ok[1], tensor.Zeros(tensor.Make(tensor.F64, 1))})
	require.EqualError(t, err, `input 2 ("scale") is f64[1], wanted f32[] [input/type]`)
	err = CheckInputs(ports, []*tensor.Tensor{ok[0], ok[1], {Type: ports3(t, ports[2]), Data: []byte{1}}})
	require.ErrorContains(t, err, "has 1 byte, wanted 4 for f32[]")
}

func ports3(t *testing.T, p artifact.Port) tensor.Type {
	t.Helper()
	tt, err := p.Tensor()
	require.NoError(t, err)
	return tt
}

func TestArrange(t *testing.T) {
	// The leaf at place 1 is no tensor.
	ports := []artifact.Port{port("b", tensor.F32), port("input_0", tensor.F32), {Name: "mask", Path: `kwargs["mask"]`, Type: artifact.MakeType(tensor.Make(tensor.F32))}}
	ports[1].Ordinal, ports[2].Ordinal = 2, 3
	x, y, z := tensor.Scalar(tensor.F32, 1), tensor.Scalar(tensor.F32, 2), tensor.Scalar(tensor.F32, 3)
	for _, tc := range []struct {
		name  string
		given []weights.Named
		want  []*tensor.Tensor
		errs  []string
	}{
		{"names in another order", []weights.Named{{Name: "mask", Tensor: z}, {Name: "b", Tensor: x}, {Name: "input_0", Tensor: y}}, []*tensor.Tensor{x, y, z}, nil},
		{"places and a path", []weights.Named{{Name: "b", Tensor: x}, {Name: "input_2", Tensor: y}, {Name: `kwargs["mask"]`, Tensor: z}}, []*tensor.Tensor{x, y, z}, nil},
		{"faults", []weights.Named{{Name: "b", Tensor: x}, {Name: "input_9", Tensor: x}, {Name: "input_1", Tensor: x}, {Name: "mask", Tensor: x}, {Name: "input_3", Tensor: x}}, nil,
			[]string{`no input "input_9", wanted one of "b", "input_0", "mask"`, `no input "input_1"`, `input 2 ("mask") is given twice, as "mask" and as "input_3"`,
				`input 1 ("input_0") is missing, wanted f32[]`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Arrange(ports, tc.given)
			if tc.errs == nil {
				require.NoError(t, err)
				for i := range got {
					require.Same(t, tc.want[i], got[i])
				}
			}
			for _, want := range tc.errs {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
