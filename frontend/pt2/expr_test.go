package pt2

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpr(t *testing.T) {
	bound := map[string]int64{"s0": 7, "s77": 12, "u0": 3}
	const s77 = "Symbol('s77', positive=True, integer=True)"
	for _, c := range []struct {
		in   string
		text string
		want int64
	}{
		{"s0", "s0", 7},
		{"42", "42", 42},
		{"-3", "-3", -3},
		{"Integer(-3)", "-3", -3},
		{s77, "s77", 12},
		{"Mul(Integer(2), " + s77 + ")", "2*s77", 24},
		{"Add(Integer(-1), Mul(Integer(2), " + s77 + "))", "-1 + 2*s77", 23},
		{"Mul(Add(Integer(1), " + s77 + "), Symbol('u0'))", "(1 + s77)*u0", 39},
		{"Pow(" + s77 + ", Integer(2))", "Pow(s77, 2)", 144},
		{"Pow(Integer(-1), Integer(1001))", "Pow(-1, 1001)", -1},
		{"FloorDiv(Add(Integer(-13), s0), Integer(4))", "FloorDiv(-13 + s0, 4)", -2},
		{"CeilDiv(s77, Integer(5))", "CeilDiv(s77, 5)", 3},
		{"Mod(s77, Integer(5))", "Mod(s77, 5)", 2},
		{"PythonMod(Integer(-1), Integer(5))", "PythonMod(-1, 5)", 4},
		{"ModularIndexing(s77, Integer(2), Integer(4))", "ModularIndexing(s77, 2, 4)", 2},
		{"Max(Integer(1), s0, s77)", "Max(1, s0, s77)", 12},
		{"Min(s0, s77)", "Min(s0, s77)", 7},
		{"TruncToInt(Mul(Float('1.5', precision=53), ToFloat(s0)))", "TruncToInt(1.5*ToFloat(s0))", 10},
		{"CeilToInt(IntTrueDiv(s0, Integer(2)))", "CeilToInt(IntTrueDiv(s0, 2))", 4},
		{"Where(LessThan(s0, Integer(9)), Integer(1), Integer(2))", "Where(LessThan(s0, 9), 1, 2)", 1},
		// As torch 2.5 writes them: with Python's precedence.
		{"2*s0 + 1", "2*s0 + 1", 15},
		{"-s0 + s77", "-1*s0 + s77", 5},
		{"1 - 2*s0 - u0", "1 + -1*2*s0 + -1*u0", -16},
		{"2*(s0 - 1)", "2*(s0 + -1)", 12},
		{"s0**2", "Pow(s0, 2)", 49},
		{"-s0**2", "-1*Pow(s0, 2)", -49},
		{"2**u0**2", "Pow(2, Pow(u0, 2))", 512},
		{"(s0//2)", "FloorDiv(s0, 2)", 3},
		{"-(s0//2)", "-1*FloorDiv(s0, 2)", -3},
		{"-s0//2", "FloorDiv(-1*s0, 2)", -4},
		{"s77//2//3", "FloorDiv(FloorDiv(s77, 2), 3)", 2},
		{"s77/4", "IntTrueDiv(s77, 4)", 3},
		{"s77 % 5", "PythonMod(s77, 5)", 2},
		{"Max(1, s0 - 1) + Mod(s77, 5)", "Max(1, s0 + -1) + Mod(s77, 5)", 8},
		{"TruncToInt(1.5*ToFloat(s0))", "TruncToInt(1.5*ToFloat(s0))", 10},
		{"TruncToInt(1.0e-1*s77)", "TruncToInt(0.1*s77)", 1},
		{"Where(StrictGreaterThan(s0, Integer(9)), Integer(1), Integer(2))", "Where(StrictGreaterThan(s0, 9), 1, 2)", 2},
	} {
		e, err := parseExpr(c.in)
		require.NoError(t, err, c.in)
		require.Equal(t, c.text, e.String())
		got, err := e.evalInt(bound)
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got, c.in)
	}
}

func TestExprErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "wanted a name or number",
		"Add(1,":                          "wanted a name or number",
		"Add(1 2)":                        "wanted , or )",
		"s0 s1":                           `unexpected "s1"`,
		"Symbol(s0)":                      "wanted a quoted name",
		"Symbol('s0', positive)":          "wanted an assumption",
		"Integer(s0)":                     "wanted Integer(number)",
		"99999999999999999999":            "out of range",
		strings.Repeat("Add(", 1000):      "nested deeper",
		"-":                               "wanted a name or number",
		"(s0":                             "wanted )",
		"s0 + ":                           "wanted a name or number",
		"s0 * * 2":                        "wanted a name or number",
		"s0 ** 2 ** (3":                   "wanted )",
		"1.5.5":                           `unexpected ".5"`,
		"1.x":                             "is no number",
		strings.Repeat("(", 1000):         "nested deeper",
		strings.Repeat("-", 1000):         "nested deeper",
		"2" + strings.Repeat("**2", 1000): "nested deeper",
		"1" + strings.Repeat("//1", 1001): "more than 1000 operators",
		"Float('x')":                      "is no number",
	} {
		_, err := parseExpr(in)
		require.ErrorContains(t, err, want, in)
	}
	for in, want := range map[string]string{
		"s9":                                   "s9 has no value",
		"Zeta(s0)":                             "unknown function Zeta",
		"FloorDiv(s0, Integer(0))":             "divides by zero",
		"Mod(s0)":                              "Mod has 1 arguments",
		"Mul(9223372036854775807, 2)":          "overflows",
		"Add(9223372036854775807, 1)":          "overflows",
		"Pow(10, 100)":                         "overflows",
		"IntTrueDiv(s0, Integer(2))":           "wanted an integer",
		"IntTrueDiv(s0, Integer(0))":           "divides by zero",
		"ModularIndexing(s0, Integer(0), s0)":  "divides by zero",
		"TruncToInt(Float('1e300'))":           "no 64-bit integer",
		"Max()":                                "Max has 0 arguments",
		"FloorDiv(Float('1.0'), Float('2.0'))": "integer division of floats",
	} {
		e, err := parseExpr(in)
		require.NoError(t, err, in)
		_, err = e.evalInt(map[string]int64{"s0": 3})
		require.ErrorContains(t, err, want, in)
	}
}
