package tpuc_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

func crc(data []byte) uint32 { return crc32.ChecksumIEEE(data) }

// mutateBytes damages a copy of a file in one to four places: half of them anywhere, half in the headers of the container.
func mutateBytes(r *rand.Rand, data []byte) []byte {
	out := slices.Clone(data)
	for range 1 + r.IntN(4) {
		if len(out) < 64 {
			return out
		}
		at := r.IntN(len(out))
		if r.IntN(2) == 0 { // a signature of zip begins with PK
			if i := bytes.Index(out[at:], []byte("PK")); i >= 0 {
				at = min(at+i+r.IntN(46), len(out)-1)
			}
		}
		n := min(1+r.IntN(32), len(out)-at)
		switch r.IntN(8) {
		case 0, 1:
			out[at] ^= 1 << r.IntN(8)
		case 2:
			out[at] = byte(r.IntN(256))
		case 3: // overwrite
			for i := range n {
				out[at+i] = []byte{0, 0xff}[r.IntN(2)]
			}
		case 4: // remove
			out = slices.Delete(out, at, at+n)
		case 5: // double
			out = slices.Insert(out, at, slices.Clone(out[at:at+n])...)
		case 6: // move
			from := r.IntN(len(out) - n)
			copy(out[at:at+n], slices.Clone(out[from:from+n]))
		case 7: // cut
			if r.IntN(4) == 0 {
				out = out[:at]
			}
		}
	}
	return out
}

// mutateEntries damages one entry of an archive, or the list of entries.
func mutateEntries(t *testing.T, r *rand.Rand, entries []zipEntry) []zipEntry {
	out := slices.Clone(entries)
	pick := func(match func(name string) bool) int {
		var at []int
		for i, e := range out {
			if match(e.name) {
				at = append(at, i)
			}
		}
		if len(at) == 0 {
			return -1
		}
		return at[r.IntN(len(at))]
	}
	isGraph := func(n string) bool {
		return path.Base(path.Dir(n)) == "models" || n == "serialized_exported_program.json"
	}
	isIndex := func(n string) bool { return strings.HasSuffix(n, "_config.json") }
	isPickle := func(n string) bool {
		return strings.HasSuffix(n, ".pt") && !strings.Contains(n, "inputs")
	}
	switch k := r.IntN(20); {
	case k < 10:
		i := pick(isGraph)
		out[i].data = mutateJSON(t, r, out[i].data)
	case k < 16:
		if i := pick(isIndex); i >= 0 {
			out[i].data = mutateJSON(t, r, out[i].data)
		} else if i := pick(isPickle); i >= 0 {
			out[i].data = mutatePickled(t, r, out[i].data)
		}
	case k < 17:
		i := r.IntN(len(out))
		out[i].data = out[i].data[:r.IntN(len(out[i].data)+1)]
	case k < 18: // missing
		i := r.IntN(len(out))
		out = slices.Delete(out, i, i+1)
	case k < 19: // twice, or under another name
		e := out[r.IntN(len(out))]
		e.name = []string{e.name, "../" + e.name, "/" + e.name, "other/" + path.Base(e.name), path.Dir(e.name) + "/" + path.Base(path.Dir(e.name)) + ".json"}[r.IntN(5)]
		out = slices.Insert(out, r.IntN(len(out)+1), e)
	default: // another kind of entry
		i, j := r.IntN(len(out)), r.IntN(len(out))
		out[i].data = out[j].data
	}
	return out
}

// mutatePickled damages the pickle in a file of torch.save, or its list of entries.
func mutatePickled(t *testing.T, r *rand.Rand, data []byte) []byte {
	inner := unzip(t, data)
	for i := range inner {
		if strings.HasSuffix(inner[i].name, "data.pkl") && r.IntN(5) > 0 {
			p := slices.Clone(inner[i].data)
			for range 1 + r.IntN(2) {
				at := r.IntN(len(p))
				switch r.IntN(5) {
				case 0:
					p[at] ^= 1 << r.IntN(8)
				case 1: // another opcode
					p[at] = "\x80(.JKMNQRX)bchjqrstu}\x85\x86\x87\x88\x89\x8aiao0\x93\x81"[r.IntN(32)]
				case 2: // another integer
					if k := bytes.IndexByte(p[at:], 'K'); k >= 0 && at+k+1 < len(p) {
						p[at+k+1] = []byte{0, 1, 0x7f, 0xff}[r.IntN(4)]
					}
				case 3: // another global
					p = bytes.Replace(p, []byte("collections\nOrderedDict"), []byte([]string{"os\nsystem", "builtins\neval", "torch._utils\n_rebuild_tensor_v3"}[r.IntN(3)]), 1)
				case 4:
					p = p[:max(at, 1)]
				}
			}
			inner[i].data = p
			return zipOf(t, inner, 64)
		}
	}
	i := r.IntN(len(inner))
	if r.IntN(2) == 0 {
		inner = slices.Delete(inner, i, i+1)
	} else {
		inner[i].data = inner[i].data[:len(inner[i].data)/2]
	}
	return zipOf(t, inner, 64)
}

// removed stands for a JSON value that is to be left out.
type removed struct{}

// mutateJSON changes one to three values of a document, or cuts it.
func mutateJSON(t *testing.T, r *rand.Rand, data []byte) []byte {
	if r.IntN(12) == 0 {
		return data[:r.IntN(len(data))]
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var doc any
	require.NoError(t, d.Decode(&doc))
	pool := []string{"w"}
	visitJSON(doc, "", func(_ string, v any) {
		if s, ok := v.(string); ok && len(s) < 100 {
			pool = append(pool, s)
		}
	})
	for range 1 + r.IntN(3) {
		want := []func(key string, v any) bool{
			func(string, any) bool { return true },
			func(_ string, v any) bool { _, ok := v.(json.Number); return ok },
			func(_ string, v any) bool { s, ok := v.(string); return ok && len(s) < 100 },
			func(_ string, v any) bool { l, ok := v.([]any); return ok && len(l) > 0 },
			func(key string, _ any) bool {
				return key == "sizes" || key == "strides" || key == "expr_str" || key == "target"
			},
		}[r.IntN(5)]
		n := 0
		visitJSON(doc, "", func(key string, v any) {
			if want(key, v) {
				n++
			}
		})
		if n > 0 {
			at := r.IntN(n)
			doc = changeJSON(doc, "", func(key string, v any) (any, bool) {
				if !want(key, v) {
					return nil, false
				}
				at--
				if at != -1 {
					return nil, false
				}
				return otherValue(r, key, v, pool), true
			})
		}
	}
	out, err := json.Marshal(doc)
	require.NoError(t, err)
	return out
}

func visitJSON(v any, key string, f func(key string, v any)) {
	f(key, v)
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			visitJSON(v[k], k, f)
		}
	case []any:
		for _, e := range v {
			visitJSON(e, key, f)
		}
	}
}

// changeJSON gives v with the values replaced for which f is true, in the order of visitJSON.
func changeJSON(v any, key string, f func(key string, v any) (any, bool)) any {
	if by, ok := f(key, v); ok {
		return by
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			e := changeJSON(v[k], k, f)
			if _, ok := e.(removed); !ok {
				out[k] = e
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			e = changeJSON(e, key, f)
			if _, ok := e.(removed); !ok {
				out = append(out, e)
			}
		}
		return out
	}
	return v
}

// bombs are symbolic expressions that are deep, long, huge or without a value.
var bombs = []string{
	strings.Repeat("Add(", 5000) + "1", strings.Repeat("(", 100000), "Pow(Pow(Pow(Integer(9), Integer(99)), Integer(99)), Integer(99))",
	"9**9**9**9", "1" + strings.Repeat("+1", 50000), "Add(" + strings.Repeat("Integer(1), ", 50000) + "Integer(1))", "FloorDiv(Symbol('s0'), Integer(0))", "Mod(5, 0)",
	"Symbol('u0')", "Symbol('nobody')", "Integer(-1)", "Integer(0)", "9223372036854775807", "99999999999999999999999", "Float('1e308', precision=53)", "Float('nan')",
	"Mul(Integer(4611686018427387904), Integer(4))", "", "Max()", "Where(1, 2)", "ModularIndexing(1, 2, 3, 4)", "Max(" + strings.Repeat("Max(1, ", 190) + strings.Repeat(")", 190) + ")",
}

// targets are operators of every family, so that nodes meet arguments that are not theirs.
var targets = []string{"add.Tensor", "add_.Tensor", "view.default", "reshape.default", "permute.default", "expand.default", "slice.Tensor", "select.int", "cat.default",
	"stack.default", "linear.default", "matmul.default", "convolution.default", "softmax.int", "layer_norm.default", "embedding.default", "index.Tensor", "index_put_.default",
	"copy_.default", "sum.dim_IntList", "topk.default", "arange.default", "full.default", "zeros.default", "split.Tensor", "chunk.default", "unbind.int", "gather.default",
	"scatter.src", "where.self", "scaled_dot_product_attention.default", "sym_size.int", "cumsum.default", "max_pool2d.default", "repeat.default", "as_strided.default",
	"einsum.default", "roll.default", "pad.default", "upsample_nearest2d.vec"}

// otherValue is what takes a value's place.
func otherValue(r *rand.Rand, key string, v any, pool []string) any {
	numbers := []json.Number{"0", "-1", "1", "2", "3", "64", "65536", "2147483648", "1099511627776", "4611686018427387904", "9223372036854775807", "-9223372036854775808",
		"99999999999999999999", "1.5", "1e308", "1e-400"}
	if r.IntN(3) > 0 {
		switch v := v.(type) {
		case json.Number:
			return numbers[r.IntN(len(numbers))]
		case string:
			switch {
			case key == "expr_str":
				return bombs[r.IntN(len(bombs))]
			case key == "target":
				return "torch.ops.aten." + targets[r.IntN(len(targets))]
			}
			return pool[r.IntN(len(pool))]
		case []any:
			if len(v) > 0 {
				l, i, j := slices.Clone(v), r.IntN(len(v)), r.IntN(len(v))
				switch r.IntN(6) {
				case 0: // cycles, uses before definitions
					l[i], l[j] = l[j], l[i]
				case 1:
					slices.Reverse(l)
				case 2:
					l = slices.Insert(l, i, l[j])
				case 3:
					l = slices.Delete(l, i, i+1)
				case 4:
					l = slices.Repeat(l, 1+2000/len(l))
				case 5: // huge sizes, strides and offsets
					for k := range l {
						l[k] = map[string]any{"as_int": numbers[r.IntN(len(numbers))]}
					}
				}
				return l
			}
		}
	}
	deep := any("deep")
	for range 2000 {
		deep = []any{deep}
	}
	others := []any{nil, true, false, "text", "", "NaN", "Infinity", numbers[r.IntN(len(numbers))], []any{}, map[string]any{}, removed{}, removed{}, deep,
		map[string]any{"as_int": numbers[r.IntN(len(numbers))]}, map[string]any{"as_tensor": map[string]any{"name": pool[r.IntN(len(pool))]}},
		map[string]any{"as_expr": map[string]any{"expr_str": bombs[r.IntN(len(bombs))]}}, map[string]any{"as_none": true}, []any{json.Number("1"), json.Number("-1")}}
	return others[r.IntN(len(others))]
}

// withoutWeights is the archive as torch saves a model on the meta device: every tensor is a view of one empty storage.
func withoutWeights(t *testing.T, entries []zipEntry) []zipEntry {
	var out []zipEntry
	for _, e := range entries {
		switch {
		case strings.HasSuffix(e.name, "model_weights_config.json"):
			var doc any
			require.NoError(t, json.Unmarshal(e.data, &doc))
			doc = changeJSON(doc, "", func(key string, _ any) (any, bool) { return "weight_0", key == "path_name" })
			data, err := json.Marshal(doc)
			require.NoError(t, err)
			out = append(out, zipEntry{e.name, data})
		case strings.HasSuffix(e.name, "data/weights/weight_0"):
			out = append(out, zipEntry{e.name, nil})
		case !strings.Contains(e.name, "data/weights/weight_"):
			out = append(out, e)
		}
	}
	return out
}

// sampleArtifact is an artifact with every kind of tensor, whose executable no plugin would load.
func sampleArtifact() (artifact.Manifest, artifact.Contents) {
	x := artifact.Type{DType: "f32", Dims: []int64{2, 3}}
	value := tensor.FromFloats(tensor.Make(tensor.F32, 2, 3), []float64{1, 2, 3, 4, 5, 6})
	digest := sha256.Sum256([]byte("library"))
	weight := func(name, class string) []artifact.Weight {
		return []artifact.Weight{{Name: name, Names: []string{name}, Class: class, Type: x, Expr: fmt.Sprintf("%q", name)}}
	}
	give := func(int) (*tensor.Tensor, error) { return value, nil }
	return artifact.Manifest{
			Tpuc: "0.1.0", Model: artifact.Model{Name: "sample", Kind: "text"}, Target: artifact.Target{Name: "cpu", Platform: "cpu", Devices: 1},
			Plugin: artifact.Plugin{Name: "cpu", SHA256: hex.EncodeToString(digest[:])}, Symbols: []artifact.Symbol{{Name: "s0", Min: 2}},
			Inputs:  []artifact.Signature{{Name: "x", DType: x.DType, Dims: []string{"s0", "3"}}},
			Outputs: []artifact.Signature{{Name: "y", DType: x.DType, Dims: []string{"s0", "3"}}},
			Weights: weight("w", "weight"), State: weight("s", "buffer"), Constants: weight("c", "constant"),
			Programs: []artifact.Program{{
				Dims: []artifact.Dim{{Name: "s0", Value: 2}}, Inputs: []artifact.Type{x}, Outputs: []artifact.Type{x},
				Args:    []artifact.Slot{{Kind: artifact.KindInput}, {Kind: artifact.KindWeight}, {Kind: artifact.KindState}, {Kind: artifact.KindConstant}},
				Results: [][]artifact.Slot{{{Kind: artifact.KindOutput}}, {{Kind: artifact.KindState}}}, Aliases: []artifact.Alias{{Argument: 2, Result: 1}},
			}},
		}, artifact.Contents{
			Programs:  []artifact.ProgramContents{{Program: []byte("module {}\n"), Executable: []byte("machine code")}},
			Constants: give, State: give, Weights: give,
		}
}

// mutateArtifact damages the manifest, or the directory of sections, and writes digests and sizes that fit.
func mutateArtifact(t *testing.T, r *rand.Rand, entries []zipEntry) []zipEntry {
	out := slices.Clone(entries)
	i := r.IntN(len(out))
	if k := slices.IndexFunc(out, func(e zipEntry) bool { return e.name == artifact.ManifestSection }); r.IntN(4) > 0 {
		i = k
	}
	if strings.HasSuffix(out[i].name, ".json") {
		out[i].data = mutateJSON(t, r, out[i].data)
	} else {
		out[i].data = mutateBytes(r, append(slices.Clone(out[i].data), make([]byte, 64)...))
	}
	if out[i].name == artifact.DirectorySection {
		return out
	}
	k := slices.IndexFunc(out, func(e zipEntry) bool { return e.name == artifact.DirectorySection })
	var list []artifact.File
	require.NoError(t, json.Unmarshal(out[k].data, &list))
	for j := range list {
		if list[j].Name == out[i].name {
			sum := sha256.Sum256(out[i].data)
			list[j].Size, list[j].SHA256 = int64(len(out[i].data)), hex.EncodeToString(sum[:])
		}
	}
	data, err := json.Marshal(list)
	require.NoError(t, err)
	out[k].data = data
	return out
}
