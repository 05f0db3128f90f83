package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
)

// The page's section of operators is the table's: go run ./tools/coverage writes it.
func TestPageIsFresh(t *testing.T) {
	data, err := os.ReadFile("../../docs/coverage.md")
	require.NoError(t, err)
	require.Equal(t, operators(), sections(string(data))["operators"], "docs/coverage.md is old, run: go run ./tools/coverage")
	require.Equal(t, page(string(data), nil), string(data))
}

func TestSectionsAreReplacedAlone(t *testing.T) {
	report := func(target string, s tpuc.Status) *tpuc.SuiteReport {
		c := &tpuc.CaseOutcome{Case: tpuc.Case{Name: "zoo/llama", Variant: "raw"}, Status: s, Reasons: []string{"a | b"}}
		return &tpuc.SuiteReport{Target: target, Cases: []*tpuc.CaseOutcome{c}, Groups: []tpuc.ReasonGroup{{Status: s, Reason: "a | b", Cases: []string{c.ID()}}}}
	}
	first := page("", []*tpuc.SuiteReport{report("cpu", tpuc.StatusOK)})
	require.Contains(t, first, "## zoo on cpu\n\n1 cases: 1 ok; 100.0 % good.")
	second := page(first, []*tpuc.SuiteReport{report("v6e:1x1", tpuc.StatusRefused)})
	require.Contains(t, second, "1 cases: 1 ok")
	require.Contains(t, second, `| refused | 1 | a \| b | zoo/llama/raw |`)
	require.Less(t, strings.Index(second, "## zoo on v6e:1x1"), strings.Index(second, "## Operators"))
	third := page(second, []*tpuc.SuiteReport{report("cpu", tpuc.StatusDiffers)})
	require.NotContains(t, third, "1 ok")
	require.Contains(t, third, "1 refused")
	require.Equal(t, third, page(third, nil))
}

// A later report replaces the cases that it has.
func TestMerge(t *testing.T) {
	report := func(s tpuc.Status, names ...string) *tpuc.SuiteReport {
		r := &tpuc.SuiteReport{Target: "cpu"}
		for _, n := range names {
			r.Cases = append(r.Cases, &tpuc.CaseOutcome{Case: tpuc.Case{Name: n, Variant: "raw"}, Status: s, Reasons: []string{"because"}})
		}
		return r
	}
	r := report(tpuc.StatusRefused, "a", "b")
	r.Merge(report(tpuc.StatusOK, "b", "c"))
	require.Len(t, r.Cases, 3)
	require.Equal(t, map[tpuc.Status]int{tpuc.StatusRefused: 1, tpuc.StatusOK: 2}, r.Counts)
	require.Equal(t, []tpuc.ReasonGroup{{Status: tpuc.StatusRefused, Reason: "because", Cases: []string{"a/raw"}}}, r.Groups)
}

func TestJudge(t *testing.T) {
	r := &tpuc.SuiteReport{}
	for range 97 {
		r.Cases = append(r.Cases, &tpuc.CaseOutcome{Status: tpuc.StatusOK})
	}
	for range 3 {
		r.Cases = append(r.Cases, &tpuc.CaseOutcome{Status: tpuc.StatusRefused})
	}
	require.NoError(t, judge(r, 97))
	require.ErrorContains(t, judge(r, 98), "97.0 % of 100 cases")
	r.Cases[0].Status = tpuc.StatusDiffers
	require.ErrorContains(t, judge(r, 50), "1 cases differ")
}
