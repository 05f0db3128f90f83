package tpuc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCaseInfo reads case.json as it may lie beside any archive. What is accepted is a tolerance that comparisons can use and a case that
// either can be run or says why not.
func FuzzCaseInfo(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*", "case.json"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data, "s0", false)
	}
	for _, s := range []string{
		``, `[`, `null`, `{"tolerance": null}`, `{"tolerance": 1e-3}`, `{"tolerance": "low"}`, `{"tolerance": -1}`, `{"tolerance": {}}`, `{"tolerance": [1]}`, `{"tolerance": NaN}`,
		`{"tolerance": {"rtol": 1e-5, "atol": -1e-6}}`, `{"tolerance": {"rel_to_max": 1e309}}`, `{"expect": "refused: aten.foo", "calls": 2}`, `{"expect": "luck"}`,
		`{"expect": "refused"}`, `{"calls": 9223372036854775807}`, `{"calls": -3, "stateful": true}`, `{"f32_noise_vs_f64": Infinity, "noise_vs_f64": 1e-3}`,
		`{"x": "NaN \" Infinity \\", "y": -Infinity}`, `{"cases": [{"case": "s0", "tolerance": 0.25}, {"case": "s1", "cases": [{"case": "s0"}]}]}`, `{"cases": []}`, `NaN`, `"\`,
	} {
		f.Add([]byte(s), "s0", true)
	}
	f.Fuzz(func(t *testing.T, data []byte, sample string, several bool) {
		plain := standardJSON(data)
		require.LessOrEqual(t, len(plain), 2*len(data))
		if json.Valid(data) {
			require.True(t, json.Valid(plain), "%q was JSON, %q is none", data, plain)
		}
		info, err := parseCaseInfo("case.json", data, sample, several)
		if err != nil {
			require.ErrorContains(t, err, "case.json")
			return
		}
		c := Case{Model: "model.pt2"}
		if several {
			c.Calls = make([]CaseCall, 1)
		}
		info.apply(&c)
		require.GreaterOrEqual(t, c.Noise, 0.0)
		if tol := c.Tolerance; tol != nil {
			require.GreaterOrEqual(t, min(tol.RelToMax, tol.Rtol, tol.Atol), 0.0)
		}
		if c.Problem == "" && c.Expect == nil {
			require.NotEmpty(t, c.Calls, "a case that runs has calls")
			require.LessOrEqual(t, info.Calls, len(c.Calls))
		}
	})
}
