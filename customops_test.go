package tpuc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/tpu/plugin"
)

// customCase is a model with operators of its own, and the file that says what they compute.
var customCase = filepath.Join("testdata", "custom", "mixed")

// mutatingOps are functions of operators that write to inputs, to buffers, to views of them, and to the tensors of a list.
var mutatingOps = filepath.Join("testdata", "custom", "mutating", "ops.tpu")

// customSuite runs the cases as captured and decomposed; several versions of torch wrote the one that writes to everything.
func customSuite(t *testing.T, o tpuc.SuiteOptions) {
	t.Helper()
	o.CrashDir = t.TempDir()
	for _, tc := range []struct {
		folder, ops string
		compared    int // outputs and buffers
	}{
		{"mixed", filepath.Join(customCase, "ops.tpu"), 4},
		{"mutating", mutatingOps, 7},
		{"mutating_2_5", mutatingOps, 7},
		{"mutating_2_9", mutatingOps, 7},
	} {
		var err error
		o.Custom, err = tpuc.LoadCustomOps(tc.ops)
		require.NoError(t, err)
		cases, err := tpuc.FindCases([]string{filepath.Join("testdata", "custom", tc.folder)})
		require.NoError(t, err)
		require.Len(t, cases, 2)
		r, err := tpuc.RunCases(t.Context(), cases, o)
		require.NoError(t, err)
		for _, c := range r.Cases {
			require.Equal(t, tpuc.StatusOK, c.Status, c.Message)
			require.Len(t, c.Calls, 2)
			require.Len(t, c.Calls[1].Compared, tc.compared, tc.folder)
		}
	}
}

func TestCustomOpsOnEvaluator(t *testing.T) { customSuite(t, tpuc.SuiteOptions{Evaluate: true}) }

func TestCustomOpsOnCPU(t *testing.T) {
	needPlugin(t, plugin.CPU)
	customSuite(t, tpuc.SuiteOptions{})
}

// customErrors loads the case with a file in which old is replaced, or which is left out where old is empty.
func customErrors(t *testing.T, old, replacement string) error {
	t.Helper()
	shapes := tpuc.Shapes{}
	if old != "" {
		src, err := os.ReadFile(filepath.Join(customCase, "ops.tpu"))
		require.NoError(t, err)
		require.Contains(t, string(src), old)
		file := filepath.Join(t.TempDir(), "ops.tpu")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(src), old, replacement)), 0o600))
		if shapes.Custom, err = tpuc.LoadCustomOps(file); err != nil {
			return err
		}
	}
	m, err := tpuc.Load(t.Context(), filepath.Join(customCase, "model.pt2.gz"), shapes)
	if err != nil {
		return err
	}
	t.Cleanup(func() { m.Close() })
	if len(m.Notes) > 0 {
		t.Log(m.Notes)
		require.Len(t, m.Notes, 1)
		return &note{m.Notes[0]}
	}
	return nil
}

// note is a note of a model that loads.
type note struct{ text string }

func (n *note) Error() string { return "note: " + n.text }

func TestCustomOpsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		old, replacement string
		want             []string
	}{
		"without the file": {"", "", []string{"mylib.gate", "mylib.roll", "mylib.extremes", "mylib.accumulate", "wide", "--custom-ops"}},
		"fits":             {"x: f32", "x: f32", nil},
		"not used": {"// Writes to total.", "func @\"mylib::none.default\"(%x: f32[2]) {\n  return %x\n}",
			[]string{"note: ops.tpu:", "no operator of the model needs mylib::none.default(x: f32[2])"}},
		"other type": {"%weight: f32[8]", "%weight: f32[8], %beta: f32[]",
			[]string{"no function that is given for it fits", "ops.tpu:3: %beta is no argument", "ops.tpu:13: %x is f32[3,4], the call gives f32[3,8], %weight is f32[4], the call gives f32[8]"}},
		"no parameter": {"mylib::roll(shift=1)", "mylib::roll", []string{"ops.tpu:23: it has no parameter %shift, the call gives 1"}},
		"other value":  {"shift=2, mode=rows", "shift=2, mode=columns", []string{"for mode=columns, the call has rows"}},
		"default":      {"roll(shift=1)", "roll(shift=1, mode=columns)", []string{"mode=columns, which is no argument of the call", "defaults"}},
		"result":       {"return %high, %low", "return %high", []string{"it returns 1 tensors, the call 2"}},
		"dtype": {"%alpha: f32[]) {\n  %a = broadcast %alpha", "%beta: i64[]) {\n  %alpha = convert %beta {to=f32} : f32[]\n  %a = broadcast %alpha",
			[]string{"it has no parameter %alpha, the call gives 1.5", "%beta is no argument of the call"}},
		"no fraction": {"%alpha: f32[]) {\n  %a = broadcast %alpha", "%alpha: i64[]) {\n  %half = convert %alpha {to=f32} : f32[]\n  %a = broadcast %half",
			[]string{"%alpha is i64[], the call gives 1.5"}},
		"known":    {"mylib::accumulate", "aten::add.Tensor", []string{"operator aten::add.Tensor is supported already"}},
		"name":     {"mylib::accumulate", "mylib::a b", []string{"custom/name", "wanted a name such as"}},
		"argument": {"shift=1", "shift", []string{`"shift", wanted ARGUMENT=VALUE`}},
		"repeated": {"shift=1", "x=1", []string{"argument x is given twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := customErrors(t, c.old, c.replacement)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// What keeps operators that write to arguments from being imported is reported under their own names, whatever wraps them.
func TestCustomOpsWrites(t *testing.T) {
	src, err := os.ReadFile(mutatingOps)
	require.NoError(t, err)
	load := func(t *testing.T, model, old, replacement string) error {
		t.Helper()
		require.Contains(t, string(src), old)
		file := filepath.Join(t.TempDir(), "ops.tpu")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(src), old, replacement)), 0o600))
		ops, err := tpuc.LoadCustomOps(file)
		require.NoError(t, err)
		m, err := tpuc.Load(t.Context(), filepath.Join("testdata", "custom", model+".pt2.gz"), tpuc.Shapes{Custom: ops})
		if err == nil {
			m.Close()
		}
		return err
	}
	for _, tc := range []struct{ name, model, old, replacement, want string }{
		{"shared elements", "overlapping/model", "", "", "mylib.shift.default is not supported: it writes to x and scale, which share elements"},
		{"shared elements of a base", "overlapping/decomposed", "", "", "mylib.shift.default is not supported: it writes to x and scale, which share elements"},
		{"no function", "mutating/decomposed", "mylib::ema", "mylib::emas", "mylib.ema.default is not supported"},
		{"no function for the types", "mutating/decomposed", "%scale: f32[4,1]", "%scale: f32[4,1], %more: f32[]", "mylib.shift.default is not supported: no function that is given for it fits"},
		{"no function, first wrapper", "mutating_2_9/decomposed", "mylib::ema", "mylib::emas", "mylib.ema.default is not supported"},
		{"results", "mutating/decomposed", "return %sum,", "return", "it returns 0 tensors, the call 1"},
		{"fewer writes", "mutating_2_9/decomposed", ", %averages_3 = %e", "", "the archive has new contents of 4 arguments, the function for it updates 3"},
		{"a number", "mutating/model", "return %x = %moved\n", "return %x = %moved, %times = %times\n", "it updates %times, for which the call gives a number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.ErrorContains(t, load(t, tc.model, tc.old, tc.replacement), tc.want)
		})
	}
}

// Two functions for the same arguments are refused where they are defined.
func TestCustomOpsTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "twice.tpu")
	const f = "func @\"a::f\"(%x: f32[2], %y: f32[]) {\n  return %x\n}\nfunc @\"a::f.default\"(%y: f32[], %x: f32[2]) {\n  return %x\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(f), 0o600))
	_, err := tpuc.LoadCustomOps(file)
	require.ErrorContains(t, err, "twice.tpu:4: the function for a::f.default takes the same arguments as the one at twice.tpu:1")
}
