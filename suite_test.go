package tpuc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/weights"
	"tpuc/internal/compare"
	"tpuc/ir/tensor"
	"tpuc/tpu/chip"
)

// layout makes a folder: contents by path; "=" before a path of testdata copies that file.
func layout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		if from, ok := strings.CutPrefix(content, "="); ok {
			data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(from)))
			require.NoError(t, err)
			content = string(data)
		}
		require.NoError(t, os.WriteFile(path, []byte(content), 0o666))
	}
	return dir
}

// evaluate runs all cases of a folder on the evaluator.
func evaluate(t *testing.T, o tpuc.SuiteOptions, dirs ...string) *tpuc.SuiteReport {
	t.Helper()
	cases, err := tpuc.FindCases(dirs)
	require.NoError(t, err)
	o.Evaluate = true
	r, err := tpuc.RunCases(t.Context(), tpuc.SelectCases(cases, o), o)
	require.NoError(t, err)
	return r
}

// TestFindCases finds every form, in order, and nothing silently not.
func TestFindCases(t *testing.T) {
	dir := layout(t, map[string]string{
		"a/model.pt2": "", "a/decomposed.pt2.gz": "", "a/inputs.safetensors": "", "a/outputs.safetensors": "", "a/case.json": `{"tolerance": {"rel_to_max": 0.5}, "noise_vs_f64": 0.25}`,
		"b/deep/model.pt2": "", "b/deep/model.pt2.gz": "", "b/deep/case.json": `{"stateful": false, "calls": 2, "x": [NaN, -Infinity, "NaN \" {"]}`,
		"b/deep/inputs.safetensors": "", "b/deep/inputs_2.safetensors": "", "b/deep/outputs.safetensors": "", "b/deep/outputs_2.safetensors": "",
		"b/deep/buffers_after.safetensors": "", "b/deep/inputs_after.safetensors": "", "b/deep/buffers_after_2.safetensors": "",
		"ops/case.json":              `{"cases": [{"case": "s2", "tolerance": 0.25}, {"case": "s10", "expect": "refused: aten.foo"}]}`,
		"ops/s10.pt2.gz":             "",
		"ops/s2.pt2.gz":              "",
		"ops/s3.pt2":                 "",
		"ops/s10.inputs.safetensors": "", "ops/s2.inputs.safetensors": "", "ops/s2.outputs.safetensors": "", "ops/s3.inputs.safetensors": "",
		"big.pt2.gz": "", "big.case.json": "{}",
		"versions/old_1.pt2": "", "versions/old_1.decomp.pt2": "", "versions/inputs.safetensors": "", "versions/outputs.safetensors": "",
		"bad/json/model.pt2": "", "bad/json/case.json": "{", "bad/tolerance/model.pt2": "", "bad/tolerance/case.json": `{"tolerance": "low"}`,
		"bad/negative/model.pt2": "", "bad/negative/case.json": `{"tolerance": -1}`,
		"bad/expect/model.pt2": "", "bad/expect/case.json": `{"expect": "luck"}`,
		"bad/none/model.pt2": "",
		"bad/half/model.pt2": "", "bad/half/inputs.safetensors": "", "bad/few/model.pt2": "", "bad/few/inputs.safetensors": "", "bad/few/outputs.safetensors": "",
		"bad/few/case.json": `{"calls": 3}`, "bad/gap/model.pt2": "", "bad/gap/outputs.safetensors": "", "empty/readme.txt": "",
	})
	cases, err := tpuc.FindCases([]string{dir})
	require.NoError(t, err)
	found := make(map[string]tpuc.Case)
	var order []string
	label := filepath.Base(dir)
	for _, c := range cases {
		id := strings.TrimPrefix(c.ID(), label+"/")
		order = append(order, id)
		found[id] = c
	}
	require.Equal(t, []string{"a/raw", "a/decomposed", "b/deep/raw", "bad/expect/raw", "bad/few/raw", "bad/gap/raw", "bad/half/raw", "bad/json/raw", "bad/negative/raw",
		"bad/none/raw", "bad/tolerance/raw", "big/raw", "ops/s2/raw", "ops/s3/raw", "ops/s10/raw", "versions/old_1.decomp", "versions/old_1"}, order)
	require.Equal(t, &compare.Tolerance{RelToMax: 0.5}, found["a/raw"].Tolerance)
	require.Equal(t, 0.25, found["a/decomposed"].Noise)
	require.Equal(t, filepath.Join(dir, "a", "decomposed.pt2.gz"), found["a/decomposed"].Model)

	deep := found["b/deep/raw"]
	require.Empty(t, deep.Problem)
	require.False(t, deep.Stateful)
	require.Len(t, deep.Calls, 2)
	require.Len(t, deep.Calls[0].State, 2)
	require.Equal(t, filepath.Join(dir, "b", "deep", "inputs_2.safetensors"), deep.Calls[1].Inputs)
	require.Equal(t, filepath.Join(dir, "b", "deep", "model.pt2"), deep.Model, "the packed one is the same")

	require.Equal(t, &compare.Tolerance{RelToMax: 0.25}, found["ops/s2/raw"].Tolerance)
	require.Equal(t, "aten.foo", *found["ops/s10/raw"].Expect)
	require.Empty(t, found["ops/s10/raw"].Problem, "what is refused needs no outputs")
	require.True(t, found["big/raw"].CompileOnly)
	require.True(t, found["versions/old_1.decomp"].Decomposed())
	for id, want := range map[string]string{
		"bad/json/raw": "case.json: ", "bad/tolerance/raw": `tolerance is "low", wanted a number`, "bad/negative/raw": "of 0 or more", "bad/expect/raw": `expect is "luck"`,
		"bad/none/raw": "there are no inputs, wanted inputs.safetensors", "bad/half/raw": "nothing to compare with, wanted outputs.safetensors",
		"bad/few/raw": "inputs for 1 call, wanted 3", "bad/gap/raw": "outputs but no inputs", "ops/s3/raw": `lists cases, but not "s3"`,
	} {
		require.Contains(t, found[id].Problem, want, id)
	}

	selected := func(o tpuc.SuiteOptions) int { return len(tpuc.SelectCases(cases, o)) }
	require.Equal(t, 2, selected(tpuc.SuiteOptions{Variants: tpuc.VariantDecomposed}))
	require.Equal(t, len(cases)-2, selected(tpuc.SuiteOptions{Variants: tpuc.VariantRaw}))
	require.Equal(t, 1, selected(tpuc.SuiteOptions{Select: regexp.MustCompile(`/a/decomp`)}))

	_, err = tpuc.FindCases([]string{filepath.Join(dir, "empty"), dir, filepath.Join(dir, "absent")})
	require.ErrorContains(t, err, "empty holds no case")
	require.ErrorContains(t, err, "absent")
	one, err := tpuc.FindCases([]string{filepath.Join(dir, "a", "model.pt2"), filepath.Join(dir, "b")})
	require.NoError(t, err)
	require.Equal(t, []string{"a/raw", "b/deep/raw"}, []string{one[0].ID(), one[1].ID()})
	same, err := tpuc.FindCases([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b", "..", "a")})
	require.NoError(t, err)
	require.Len(t, same, 4)
	_, err = tpuc.FindCases([]string{filepath.Join(dir, "empty", "readme.txt")})
	require.ErrorContains(t, err, "wanted a model")
}

// TestOutcomes runs good and bad cases together: none ends the run, and each has its own outcome.
func TestOutcomes(t *testing.T) {
	dir := layout(t, map[string]string{
		"good/model.pt2": "=models/mlp/model.pt2", "good/inputs.safetensors": "=models/mlp/inputs.safetensors", "good/outputs.safetensors": "=models/mlp/outputs.safetensors",
		"wrong/model.pt2": "=models/mlp/model.pt2", "wrong/inputs.safetensors": "=models/mlp/inputs.safetensors", "wrong/outputs.safetensors": "=models/mlp/inputs.safetensors",
		"garbage/model.pt2": "PK\x03\x04 no", "garbage/inputs.safetensors": "=models/mlp/inputs.safetensors", "garbage/outputs.safetensors": "=models/mlp/outputs.safetensors",
		"inputs/model.pt2": "=models/mlp/model.pt2", "inputs/inputs.safetensors": "no", "inputs/outputs.safetensors": "=models/mlp/outputs.safetensors",
		"other/model.pt2": "=models/mlp/model.pt2", "other/inputs.safetensors": "=models/qwen3_decode/inputs.safetensors", "other/outputs.safetensors": "=models/mlp/outputs.safetensors",
		"refused/model.pt2.gz": "=custom/mixed/model.pt2.gz", "refused/inputs.safetensors": "=custom/mixed/inputs.safetensors", "refused/outputs.safetensors": "=custom/mixed/outputs.safetensors",
		"expected/model.pt2.gz": "=custom/mixed/model.pt2.gz", "expected/case.json": `{"expect": "refused: mylib.roll"}`,
		"unnamed/model.pt2.gz": "=custom/mixed/model.pt2.gz", "unnamed/case.json": `{"expect": "refused: aten.exp"}`,
		"taken/model.pt2": "=models/mlp/model.pt2", "taken/case.json": `{"expect": "refused: aten.linear"}`,
		"none/model.pt2": "=models/mlp/model.pt2",
		"wide/model.pt2": "=models/mlp/model.pt2", "wide/inputs.safetensors": "=models/mlp/inputs.safetensors", "wide/outputs.safetensors": "=models/mlp/outputs.safetensors",
		"wide/case.json": `{"tolerance": 1e-12}`,
	})
	var told []string
	r := evaluate(t, tpuc.SuiteOptions{Jobs: 3, Each: func(c *tpuc.CaseOutcome) { told = append(told, c.ID()) }}, dir)
	got := make(map[string]string)
	for i, c := range r.Cases {
		name := filepath.Base(c.Name)
		got[name] = string(c.Status) + ": " + strings.Join(c.Reasons, "; ")
		require.Equal(t, c.ID(), told[i], "outcomes come in order")
	}
	for name, want := range map[string]string{
		"good": `^ok: $`, "wrong": `^differs: 2 of 2 differ: output_0 add not in `, "garbage": `^refused: .`, "inputs": `^failed: .`, "other": `^failed: .`,
		"refused": `^refused: operator torch\.ops\.mylib\.\w+\.default is not supported; operator `, "expected": `^ok: operator `, "unnamed": `^failed: .`,
		"taken": `^failed: it was not refused, wanted a refusal that names "aten.linear"$`, "none": `^failed: there are no inputs`,
		"wide": `^differs: 1 of 1 differ: output_0 add worst \[.*\]: got .*, wanted .*; max abs diff .* \(limit .*\)`,
	} {
		require.Regexp(t, want, got[name], name)
	}
	require.Equal(t, map[tpuc.Status]int{tpuc.StatusOK: 2, tpuc.StatusDiffers: 2, tpuc.StatusRefused: 2, tpuc.StatusFailed: 5}, r.Counts)
	require.Regexp(t, `^11 cases on evaluator: 2 ok, 2 differs, 2 refused, 5 failed; `, r.Totals())
	var differ *tpuc.DifferError
	require.ErrorAs(t, r.Err(), &differ)
	require.Equal(t, 2, differ.Failed)
	for _, c := range r.Cases {
		require.NotContains(t, c.Message+strings.Join(c.Reasons, ""), dir, "messages do not depend on where the cases are")
	}

	var table bytes.Buffer
	w := tpuc.NewCaseTable(&table, []tpuc.Case{r.Cases[0].Case})
	w.OnlyBad = true
	for _, c := range r.Cases {
		require.NoError(t, w.Write(c))
	}
	require.Equal(t, 9, strings.Count(table.String(), "\n"), table.String())
	require.NoError(t, r.WriteGroups(&table))
	require.Regexp(t, `(?m)^refused, 1: operator torch\.ops\.mylib\.gate\.default is not supported \(.*refused/raw\)$`, table.String())

	var junit bytes.Buffer
	require.NoError(t, r.WriteJUnit(&junit))
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Cases    []struct {
			Class   string    `xml:"classname,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		} `xml:"testcase"`
	}
	require.NoError(t, xml.Unmarshal(junit.Bytes(), &suite))
	require.Equal(t, [4]int{11, 2, 7, 11}, [4]int{suite.Tests, suite.Failures, suite.Errors, len(suite.Cases)})
	data, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(data), "NaN")
}

// TestCallsOfCases makes several calls: with state carried over or not, and with a program for each shape.
func TestCallsOfCases(t *testing.T) {
	r := evaluate(t, tpuc.SuiteOptions{Variants: tpuc.VariantRaw, Select: regexp.MustCompile("T8_counter|R4|views")}, filepath.Join("testdata", "cases"))
	require.Len(t, r.Cases, 3)
	for _, c := range r.Cases {
		require.Equal(t, tpuc.StatusOK, c.Status, c.Message)
		require.Greater(t, len(c.Calls), 1)
	}
	cases, err := tpuc.FindCases([]string{filepath.Join("testdata", "cases", "T8_counter")})
	require.NoError(t, err)
	require.True(t, cases[0].Stateful)
	cases[0].Stateful = false // every call begins anew: the second differs
	out, err := tpuc.RunCases(t.Context(), cases[:1], tpuc.SuiteOptions{Evaluate: true})
	require.NoError(t, err)
	require.Equal(t, tpuc.StatusDiffers, out.Cases[0].Status)
	require.Equal(t, 2, out.Cases[0].Worst.Call)

	cases, err = tpuc.FindCases([]string{filepath.Join("testdata", "cases", "R4")})
	require.NoError(t, err)
	cases[0].Stateful = true
	out, err = tpuc.RunCases(t.Context(), cases[:1], tpuc.SuiteOptions{Evaluate: true})
	require.NoError(t, err)
	require.Equal(t, tpuc.StatusFailed, out.Cases[0].Status)
	require.Contains(t, out.Cases[0].Message, "call 2: the inputs have other shapes")
}

// textCase is a case of a module in textual form with given inputs and outputs.
func textCase(t *testing.T, src string, input, want *tensor.Tensor) tpuc.Case {
	t.Helper()
	dir := t.TempDir()
	c := tpuc.Case{Name: "text", Variant: tpuc.VariantRaw, Model: filepath.Join(dir, "m.tpu"),
		Calls: []tpuc.CaseCall{{Inputs: filepath.Join(dir, "inputs.safetensors"), Outputs: filepath.Join(dir, "outputs.safetensors")}}}
	require.NoError(t, os.WriteFile(c.Model, []byte(src), 0o666))
	require.NoError(t, weights.WriteSafetensors(c.Calls[0].Inputs, []weights.Named{{Name: "input_0", Tensor: input}}))
	require.NoError(t, weights.WriteSafetensors(c.Calls[0].Outputs, []weights.Named{{Name: "output_0", Tensor: want}}))
	return c
}

func runOne(t *testing.T, c tpuc.Case) *tpuc.CaseOutcome {
	t.Helper()
	r, err := tpuc.RunCases(t.Context(), []tpuc.Case{c}, tpuc.SuiteOptions{Evaluate: true})
	require.NoError(t, err)
	return r.Cases[0]
}

// TestTies accepts indices of equal elements in another order, of sorts and topk alone.
func TestTies(t *testing.T) {
	const (
		topk  = "  %v, %i = topk %x {k=3, axis=1, largest=true} : f32[2,3], i64[2,3]\n  return %i\n}\n"
		sort  = "  %n = iota {type=i64[2,4], axis=1} : i64[2,4]\n  %v, %i = sort %x, %n {axis=1, descending=true, stable=true} : f32[2,4], i64[2,4]\n  return %i\n}\n"
		shift = "  %n = iota {type=i64[2,4], axis=0} : i64[2,4]\n  %v, %i = sort %x, %n {axis=1, descending=true, stable=true} : f32[2,4], i64[2,4]\n  return %i\n}\n"
	)
	x := tensor.FromFloats(tensor.Make(tensor.F32, 2, 4), []float64{3, 5, 5, 5, 1, 1, 2, 1})
	for name, c := range map[string]struct {
		body string
		want []int64
		ok   bool
	}{
		"the same":        {topk, []int64{1, 2, 3, 2, 0, 1}, true},
		"another order":   {topk, []int64{3, 1, 2, 2, 1, 0}, true},
		"another element": {topk, []int64{3, 1, 2, 2, 1, 3}, true},
		"a smaller one":   {topk, []int64{3, 1, 0, 2, 1, 0}, false},
		"a whole sort":    {sort, []int64{3, 2, 1, 0, 2, 3, 1, 0}, true},
		"a wrong sort":    {sort, []int64{3, 2, 0, 1, 2, 3, 1, 0}, false},
		"no indices":      {shift, []int64{0, 0, 1, 0, 1, 1, 1, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := tensor.FromInts(tensor.Make(tensor.I64, 2, int64(len(c.want)/2)), c.want)
			out := runOne(t, textCase(t, "func @main(%x: f32[2,4]) {\n"+c.body, x, want))
			if !c.ok {
				require.Equal(t, tpuc.StatusDiffers, out.Status, out.Message)
				return
			}
			require.Equal(t, tpuc.StatusOK, out.Status, out.Message)
			require.Equal(t, name != "the same", out.Worst.Ties)
		})
	}
}

// TestNoise holds outputs of 16 bits to torch's own error, which is far below their tolerance.
func TestNoise(t *testing.T) {
	const src = "func @main(%x: f32[64]) {\n  %0 = convert %x {to=bf16} : bf16[64]\n  return %0\n}\n"
	in, want := make([]float64, 64), make([]float64, 64)
	for i := range in {
		in[i], want[i] = 1, 1.0625
	}
	c := textCase(t, src, tensor.FromFloats(tensor.Make(tensor.F32, 64), in), tensor.FromFloats(tensor.Make(tensor.BF16, 64), want))
	c.Tolerance = &compare.Tolerance{RelToMax: 0.1}
	require.Equal(t, tpuc.StatusOK, runOne(t, c).Status)
	c.Noise = 0.03
	require.Equal(t, tpuc.StatusOK, runOne(t, c).Status)
	c.Noise = 0.01 // relative L2 0.0588, and 0.0625 is beyond 3 * 0.01 * 2.0625
	out := runOne(t, c)
	require.Equal(t, tpuc.StatusDiffers, out.Status)
	require.Contains(t, out.Message, "relative L2 error 0.0588, wanted at most 0.03, 3 times torch's own error")
}

// TestEndsOfCases ends cases by time and by the caller's wish, and refuses options that cannot be.
func TestEndsOfCases(t *testing.T) {
	cases, err := tpuc.FindCases([]string{filepath.Join("testdata", "models")})
	require.NoError(t, err)
	r, err := tpuc.RunCases(t.Context(), cases, tpuc.SuiteOptions{Evaluate: true, Timeout: time.Nanosecond})
	require.NoError(t, err)
	require.Equal(t, len(cases), r.Counts[tpuc.StatusFailed])
	require.Equal(t, []string{"timed out: it took more than 1ns"}, r.Cases[0].Reasons)
	require.Len(t, r.Groups, 1)

	ctx, cancel := context.WithCancel(t.Context())
	r, err = tpuc.RunCases(ctx, cases, tpuc.SuiteOptions{Evaluate: true, Each: func(*tpuc.CaseOutcome) { cancel() }})
	require.NoError(t, err)
	require.Equal(t, tpuc.StatusOK, r.Cases[0].Status)
	require.Equal(t, "not run: context canceled", r.Cases[len(cases)-1].Message)

	_, err = tpuc.RunCases(t.Context(), cases, tpuc.SuiteOptions{Evaluate: true, CompileOnly: true})
	require.Error(t, err)
	four, err := chip.Parse("v6e:2x2")
	require.NoError(t, err)
	_, err = tpuc.RunCases(t.Context(), cases, tpuc.SuiteOptions{Target: four})
	require.ErrorContains(t, err, "v6e:2x2 has 4 devices")
}

// TestSample takes the same cases every time, in order, and keeps most of them when one comes along.
func TestSample(t *testing.T) {
	var cases []tpuc.Case
	for i := range 50 {
		cases = append(cases, tpuc.Case{Name: "zoo/" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Variant: tpuc.VariantRaw})
	}
	ids := func(list []tpuc.Case) (out []string) {
		for _, c := range list {
			out = append(out, c.ID())
		}
		return out
	}
	some := ids(tpuc.SelectCases(cases, tpuc.SuiteOptions{Sample: 10}))
	require.Len(t, some, 10)
	require.IsIncreasing(t, some)
	require.Equal(t, some, ids(tpuc.SelectCases(cases, tpuc.SuiteOptions{Sample: 10})))
	require.NotEqual(t, some, ids(cases[:10]))
	kept := 0
	for _, id := range ids(tpuc.SelectCases(cases[:49], tpuc.SuiteOptions{Sample: 10})) {
		for _, s := range some {
			if id == s {
				kept++
			}
		}
	}
	require.GreaterOrEqual(t, kept, 9)
	require.Len(t, tpuc.SelectCases(cases, tpuc.SuiteOptions{Sample: 60}), 50)
}
