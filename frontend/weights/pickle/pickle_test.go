package pickle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/seeds"
	"tpuc/ir/tensor"
)

// program writes pickles for tests: strings are opcodes as they are, integers become BININT.
type program struct{ strings.Builder }

func newProgram() *program {
	p := &program{}
	p.WriteString("\x80\x02")
	return p
}

func (p *program) op(parts ...any) *program {
	for _, x := range parts {
		switch x := x.(type) {
		case string:
			p.WriteString(x)
		case int:
			p.WriteString("J" + string(binary.LittleEndian.AppendUint32(nil, uint32(x))))
		}
	}
	return p
}

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// storage pushes a storage by its persistent id.
func storage(class, key string, n int) []any {
	return []any{"(", text("storage"), "ctorch\n" + class + "\n", text(key), text("cpu"), n, "tQ"}
}

// rebuilt pushes a tensor of sizes and strides of rank 2.
func rebuilt(class, key string, n, offset int, sizes, strides [2]int) []any {
	out := []any{"ctorch._utils\n_rebuild_tensor_v2\n", "("}
	out = append(out, storage(class, key, n)...)
	return append(out, offset, sizes[0], sizes[1], "\x86", strides[0], strides[1], "\x86", "\x89", "ccollections\nOrderedDict\n", ")R", "t", "R")
}

// parameter wraps the tensor that the parts push.
func parameter(tensor []any) []any {
	out := append([]any{"ctorch._utils\n_rebuild_parameter\n"}, tensor...)
	return append(out, "\x88", "ccollections\nOrderedDict\n", ")R", "\x87", "R")
}

func TestDecode(t *testing.T) {
	p := newProgram().op("}", "(", text("w")).op(parameter(rebuilt("FloatStorage", "0", 12, 2, [2]int{2, 5}, [2]int{5, 1}))...)
	p.op(text("b")).op(rebuilt("BFloat16Storage", "1", 4, 0, [2]int{2, 2}, [2]int{1, 2})...).op("u", ".")
	got, err := Decode([]byte(p.String()))
	require.NoError(t, err)
	require.Equal(t, []Entry{
		{"w", &Tensor{&Storage{"0", tensor.F32, 12}, 2, []int64{2, 5}, []int64{5, 1}, true}},
		{"b", &Tensor{&Storage{"1", tensor.BF16, 4}, 0, []int64{2, 2}, []int64{1, 2}, false}},
	}, got)
}

// A state_dict is an OrderedDict with attributes, set by BUILD; the memo gives one tensor two names; integers may need eight bytes.
func TestDecodeStateDict(t *testing.T) {
	p := newProgram().op("ccollections\nOrderedDict\n", ")R", "q\x00", "(", text("w")).op(rebuilt("HalfStorage", "7", 9, 0, [2]int{1, 1}, [2]int{1, 1})...)
	p.op("q\x01", text("tied"), "h\x01", "u", "}", text("_metadata"), "N", "s", "b", "r\x02\x00\x00\x00", ".")
	got, err := Decode([]byte(p.String()))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Same(t, got[0].Tensor, got[1].Tensor)

	long := newProgram().op("}", text("w"), "ctorch._utils\n_rebuild_tensor_v2\n", "(").op(storage("LongStorage", "0", 1)...)
	long.op("\x8a\x05\x00\x00\x00\x00\x01", "\x8a\x01\xff", "\x85", ")", "\x89", "}", "tR", "s", ".")
	got, err = Decode([]byte(long.String()))
	require.NoError(t, err)
	require.EqualValues(t, 1<<32, got[0].Tensor.Offset)
	require.EqualValues(t, []int64{-1}, got[0].Tensor.Sizes)
}

// refused are pickles, after the protocol, that are refused.
func refused() []refusal {
	good := rebuilt("FloatStorage", "0", 4, 0, [2]int{2, 2}, [2]int{2, 1})
	return []refusal{
		{"os.system", []any{"cos\nsystem\n", "(", text("true"), "tR."}, `global "os.system"`},
		{"builtins.eval", []any{"cbuiltins\neval\n"}, `global "builtins.eval"`},
		{"codecs.encode", []any{"c_codecs\nencode\n"}, `global "_codecs.encode"`},
		{"class", []any{"ctorch.nn\nLinear\n"}, `global "torch.nn.Linear"`},
		{"near miss", []any{"ctorch._utils\n_rebuild_tensor\n"}, `global "torch._utils._rebuild_tensor"`},
		{"fake tensor", []any{"ctorch._export.serde.serialize\n_reconstruct_fake_tensor\n"}, "saved without weights"},
		{"subclass", []any{"ctorch._utils\n_rebuild_wrapper_subclass\n"}, "a tensor subclass"},
		{"sparse", []any{"ctorch._utils\n_rebuild_sparse_tensor\n"}, ".to_dense()"},
		{"sharded", []any{"ctorch.distributed.tensor\nDTensor\n"}, "a sharded tensor"},
		{"quantized", []any{"ctorch\nQInt8Storage\n"}, "a quantized tensor"},
		{"younger dtype", []any{"ctorch._utils\n_rebuild_tensor_v3\n"}, "before 2.9 cannot save plainly"},
		{"long name", []any{"c" + strings.Repeat("x", 1<<17)}, "does not end"},
		{"REDUCE of a storage class", []any{"ctorch\nFloatStorage\n", ")R."}, "which is no function"},
		{"REDUCE of a string", []any{text("os.system"), ")R."}, "wanted a global"},
		{"INST", []any{"(ios\nsystem\n"}, "opcode INST"},
		{"OBJ", []any{"(o"}, "opcode OBJ"},
		{"NEWOBJ", []any{"\x81"}, "opcode NEWOBJ"},
		{"NEWOBJ_EX", []any{"\x92"}, "opcode NEWOBJ_EX"},
		{"STACK_GLOBAL", []any{text("os"), text("system"), "\x93"}, "opcode STACK_GLOBAL"},
		{"EXT1", []any{"\x82\x01"}, "opcode EXT1"},
		{"PERSID", []any{"Px\n"}, "opcode PERSID"},
		{"DUP", []any{"2"}, "opcode DUP"},
		{"no opcode", []any{"\xfe"}, "opcode 0xfe"},
		{"protocol", []any{"\x80\x04"}, "protocol 4, wanted 2"},
		{"nothing", nil, "cut short"},
		{"empty stack", []any{"."}, "0 values are left"},
		{"two values", []any{"NN."}, "2 values are left"},
		{"more after the end", []any{"}.N"}, "1 bytes after the end"},
		{"not a dict", []any{"N."}, "pickle of None, wanted a dict of tensors"},
		{"a number as key", []any{"}", 1, "Ns."}, "the integer 1 as a key"},
		{"no tensor", []any{"}", text("w"), ")s."}, `a tuple of 0 under "w"`},
		{"twice", append(append([]any{"}", text("w")}, good...), "s", text("w"), "Ns."), `tensor "w" twice`},
		{"odd items", []any{"}(Nu."}, "wanted pairs"},
		{"items of a tuple", []any{")(NNu."}, "wanted a dict"},
		{"attributes of a tuple", []any{")}b."}, "wanted a dict"},
		{"no mark", []any{"}Nu."}, "no mark"},
		{"a mark as a value", []any{"}(Ns."}, "a mark among"},
		{"memo unwritten", []any{"h\x00"}, "memo 0 is read before"},
		{"memo far", []any{"h\xff"}, "memo 255 is read before"},
		{"memo skips", []any{"Nq\x05"}, "memo 5 is written, wanted 0 next"},
		{"memo of nothing", []any{"q\x00"}, "wanted 1"},
		{"huge memo", []any{"Nr\xff\xff\xff\xff"}, "memo 4294967295 is written"},
		{"huge string", []any{"X\xff\xff\xff\xff"}, "string of 4294967295 bytes"},
		{"string cut", []any{"X\x05\x00\x00\x00ab"}, "cut short: 2 bytes are left, wanted 5"},
		{"no text", []any{"X\x01\x00\x00\x00\xff"}, "is not UTF-8"},
		{"big integer", []any{"\x8a\x09123456789"}, "integer of 9 bytes"},
		{"deep stack", []any{strings.Repeat("N", maxStack+1)}, "on the stack"},
		{"id is no tuple", []any{text("storage"), "Q"}, "persistent id"},
		{"another id", []any{"(", text("module"), "NNNN", "tQ"}, "persistent id"},
		{"storage of no class", []any{"(", text("storage"), "N", text("0"), text("cpu"), 1, "tQ"}, "storage is"},
		{"storage of a function", []any{"(", text("storage"), "ccollections\nOrderedDict\n", text("0"), text("cpu"), 1, "tQ"}, "storage is"},
		{"negative storage", storage("FloatStorage", "0", -1), "storage is"},
		{"tensor of few arguments", []any{"ctorch._utils\n_rebuild_tensor_v2\n", ")R"}, "has 0 arguments"},
		{"tensor of None", []any{"ctorch._utils\n_rebuild_tensor_v2\n", "(NNNNNNtR"}, "wanted (storage, offset"},
		{"conjugate", append(append([]any{"ctorch._utils\n_rebuild_tensor_v2\n", "("}, storage("ComplexFloatStorage", "0", 1)...), 0, "))", "\x89N}tR"), "resolve_conj"},
		{"parameter of few arguments", []any{"ctorch._utils\n_rebuild_parameter\n", ")R"}, "has 0 arguments"},
		{"parameter of None", []any{"ctorch._utils\n_rebuild_parameter\n", "NNN\x87R"}, "of None, wanted a tensor"},
		{"dict of something", []any{"ccollections\nOrderedDict\n", "N\x85R"}, "has 1 arguments, wanted none"},
	}
}

type refusal struct {
	name  string
	parts []any
	want  string
}

// Everything that could execute something, and everything else that plain tensors do not need, is refused by name.
func TestRefused(t *testing.T) {
	for _, c := range refused() {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode([]byte(newProgram().op(c.parts...).String()))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := Decode(make([]byte, MaxSize+1))
	require.ErrorContains(t, err, fmt.Sprintf("wanted at most %d", MaxSize))
}

// Tuples that share parts are small in memory however large they would be written out, and a dict may hold itself.
func TestSharing(t *testing.T) {
	memo := func(op string, i int) string { return op + string(binary.LittleEndian.AppendUint32(nil, uint32(i))) }
	p := newProgram().op("(", ")", memo("r", 0))
	for i := range 200 { // each is two of the one before
		p.op(memo("j", i), memo("j", i), "\x86", memo("r", i+1))
	}
	_, err := Decode([]byte(p.op("t.").String()))
	require.ErrorContains(t, err, "pickle of a tuple of 201")
	_, err = Decode([]byte(newProgram().op("}q\x00", text("self"), "h\x00s.").String()))
	require.ErrorContains(t, err, `a dict under "self"`)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(newProgram().op("}", "(", text("w")).op(parameter(rebuilt("FloatStorage", "0", 12, 2, [2]int{2, 5}, [2]int{5, 1}))...).op("u.").String()))
	f.Add([]byte(newProgram().op("ccollections\nOrderedDict\n", ")R", "q\x00", "}", text("_metadata"), "Ns", "b", "h\x00", "0.").String()))
	f.Add([]byte(newProgram().op("cos\nsystem\n", "(", text("true"), "tR.").String()))
	f.Add([]byte(newProgram().op("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "K\x01M\x01\x02", "\x87.").String()))
	for _, c := range refused() {
		f.Add([]byte(newProgram().op(c.parts...).String()))
	}
	for _, a := range seeds.Archives(f) {
		for _, name := range []string{"serialized_state_dict.pt", "serialized_constants.pt", "weights/model.pt", "constants/model.pt"} {
			if data := a.Entry(name); data != nil {
				z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
				require.NoError(f, err)
				r, err := z.Open("archive/data.pkl")
				require.NoError(f, err)
				program, err := io.ReadAll(r)
				require.NoError(f, err)
				f.Add(program)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Decode(data)
		if err != nil {
			require.LessOrEqual(t, len(err.Error()), 1000, "messages quote only the beginning of names")
			return
		}
		for _, e := range list {
			require.NotNil(t, e.Tensor)
			require.NotEqual(t, tensor.Invalid, e.Tensor.Storage.DType)
		}
	})
}
