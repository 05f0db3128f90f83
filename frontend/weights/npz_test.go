package weights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// npy is an array in the format's given version.
func npy(version byte, header string, body []byte) []byte {
	out := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	return append(append(out, header...), body...)
}

func describe(descr string, fortran string, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }          \n", descr, fortran, shape)
}

func TestNPY(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		typ  string
		want []float64
	}{
		{"version 1", npy(1, describe("<f4", "False", "(2, 3)"), f32s(6)), "f32[2,3]", []float64{0, 1, 2, 3, 4, 5}},
		{"version 2", npy(2, describe("<f4", "False", "(6,)"), f32s(6)), "f32[6]", []float64{0, 1, 2, 3, 4, 5}},
		{"version 3", npy(3, describe("|u1", "False", "()"), []byte{7}), "u8[]", []float64{7}},
		{"fortran", npy(1, describe("<f4", "True", "(2, 3)"), f32s(6)), "f32[2,3]", []float64{0, 2, 4, 1, 3, 5}},
		{"fortran empty", npy(1, describe("<f4", "True", "(0, 3)"), nil), "f32[0,3]", []float64{}},
		{"bool", npy(1, describe("|b1", "False", "(2,)"), []byte{0, 1}), "bool[2]", []float64{0, 1}},
		{"python 2", npy(1, describe("<i2", "False", "(1L, 1L)"), []byte{254, 255}), "i16[1,1]", []float64{-2}},
		{"other order of keys", npy(1, `{"shape": (1,), "descr": "<u2", "fortran_order": False}`, []byte{1, 2}), "u16[1]", []float64{513}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x, err := ParseNPY(tc.data)
			require.NoError(t, err)
			require.Equal(t, tc.typ, x.Type.String())
			require.Equal(t, tc.want, x.Floats())
		})
	}
}

var f4 = describe("<f4", "False", "(2,)")

// npyFaults are arrays that are refused.
var npyFaults = []struct {
	name string
	data []byte
	want string
}{
	{"no magic", []byte("0123456789"), "this is no npy array"},
	{"empty", nil, "this is no npy array"},
	{"version", npy(4, f4, nil), "npy version 4"},
	{"header length", npy(2, f4, nil)[:20], "npy header length is"},
	{"cut in the header", []byte("\x93NUMPY\x02\x00\x01\x00"), "cut short"},
	{"short", npy(1, f4, make([]byte, 7)), "7 bytes for f32[2], wanted 8"},
	{"long", npy(1, f4, make([]byte, 9)), "9 bytes for f32[2], wanted 8"},
	{"big endian", npy(1, describe(">f4", "False", "(2,)"), make([]byte, 8)), "big endian"},
	{"bfloat16", npy(1, describe("|V2", "False", "(2,)"), make([]byte, 4)), "npy has no dtype for bfloat16"},
	{"objects", npy(1, describe("|O", "False", "(2,)"), nil), "Python objects"},
	{"unknown", npy(1, describe("<M8[ns]", "False", "(2,)"), make([]byte, 16)), `"<M8[ns]" is not supported`},
	{"structured", npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", nil), "structured dtype"},
	{"overflow", npy(1, describe("<f8", "False", "(4294967296, 4294967296)"), nil), "more bytes than an int64"},
	{"too large", npy(1, describe("<f4", "False", "(99999999999999999999,)"), nil), "wanted an extent"},
	{"negative", npy(1, describe("<f4", "False", "(-1,)"), nil), "wanted an extent"},
	{"key twice", npy(1, "{'descr': '<f4', 'descr': '<f4'}", nil), "twice"},
	{"key missing", npy(1, "{'descr': '<f4'}", nil), "1 keys"},
	{"other key", npy(1, "{'x': 1}", nil), `key "x"`},
	{"more", npy(1, f4+"x", nil), `"x" after the dictionary`},
	{"open string", npy(1, "{'descr", nil), "wanted a plain string"},
	{"rank", npy(1, describe("<f4", "False", "("+string(bytes.Repeat([]byte("1,"), 65))+")"), nil), "more than 64 dimensions"},
}

func TestNPYFaults(t *testing.T) {
	for _, tc := range npyFaults {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseNPY(tc.data)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestNPZ(t *testing.T) {
	path := writeFile(t, "a.npz", zipBytes(t, []entry{
		{name: "input_0.npy", data: npy(1, describe("<f4", "False", "(2,)"), f32s(2))},
		{name: "input_1.npy", data: npy(1, describe("<i8", "False", "(1,)"), make([]byte, 8)), deflated: true}}))
	s, err := Open(path)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, []string{"input_0", "input_1"}, s.Names())
	x, err := s.Load("input_0")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1}, x.Floats())
	typ, err := s.Type("input_1")
	require.NoError(t, err)
	require.True(t, typ.Equal(tensor.Make(tensor.I64, 1)))
	_, err = s.Type("input_2")
	require.ErrorIs(t, err, ErrNoTensor)

	_, err = OpenNPZ(writeFile(t, "b.npz", zipBytes(t, []entry{
		{name: "a.npy", data: npy(1, describe("|V2", "False", "()"), make([]byte, 2))}, {name: "readme.txt"},
		{name: "b.npy", data: f32s(3)}, {name: "c.npy", data: npy(1, describe("|u1", "False", "()"), []byte{1})}, {name: "c.npy", data: nil}})))
	var list diag.List
	require.ErrorAs(t, err, &list)
	require.Len(t, list, 4)
	require.ErrorContains(t, err, `array "a": dtype "|V2" is raw bytes`)
	require.ErrorContains(t, err, `member "readme.txt"`)
	require.ErrorContains(t, err, `array "c" is there twice`)
}

func TestOpenByContents(t *testing.T) {
	archive := zipBytes(t, archiveOf(""))
	src, err := Open(writeFile(t, "renamed.bin", archive))
	require.NoError(t, err)
	require.IsType(t, &Archive{}, src)
	require.NoError(t, src.Close())
	for _, data := range [][]byte{nil, []byte("PK\x03\x04"), {0x1f, 0x8b}, []byte("text")} {
		src, err := Open(writeFile(t, "x", data))
		require.Error(t, err)
		require.Nil(t, src)
	}
}

// Files that hold no named tensors are said to be so, with what is wanted, and not taken for damaged safetensors.
func TestOpenOtherFiles(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"README.md", "# A title and a text\n", "no file of tensors, wanted safetensors, npz"},
		{"x.npy", "\x93NUMPY\x01\x00v\x00{'descr': '<f4'}", "an npy file, whose array has no name, wanted an npz file: numpy.savez"},
		{"ls", "\x7fELF\x02\x01\x01\x00\x00\x00\x00", "no file of tensors"},
		{"x.safetensors", "# A title and a text\n", "wanted at most 100000000"},
		{"empty", "", "0 bytes, wanted a safetensors file"},
	} {
		path := writeFile(t, c.name, []byte(c.data))
		_, err := Open(path)
		require.ErrorContains(t, err, path+": ", c.name)
		require.ErrorContains(t, err, c.want, c.name)
	}
}
