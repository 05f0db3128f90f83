package main

import (
	"fmt"
	"slices"
	"strings"

	"tpuc"
)

// results are the sections of one report: one for each folder of cases, such as "zoo on v6e:1x1".
func results(r *tpuc.SuiteReport) map[string]string {
	by := make(map[string][]*tpuc.CaseOutcome)
	for _, c := range r.Cases {
		folder, _, _ := strings.Cut(c.Name, "/")
		by[folder] = append(by[folder], c)
	}
	out := make(map[string]string)
	for folder, cases := range by {
		out[folder+" on "+r.Target] = result(folder, r, cases)
	}
	return out
}

func result(folder string, r *tpuc.SuiteReport, cases []*tpuc.CaseOutcome) string {
	var b strings.Builder
	on := r.Target
	if r.Plugin != "" {
		on += " (" + r.Plugin + ")"
	}
	fmt.Fprintf(&b, "## %s on %s\n\n%s\n", folder, on, totals(cases))
	if s := sixteenBits(cases); s != "" {
		b.WriteString("\n" + s)
	}
	if s := reasons(r, cases); s != "" {
		b.WriteString("\n" + s)
	}
	return b.String()
}

// totals counts the cases by what became of them.
func totals(cases []*tpuc.CaseOutcome) string {
	good, asExpected := 0, 0
	count := make(map[tpuc.Status]int)
	for _, c := range cases {
		count[c.Status]++
		if c.Good() {
			good++
		}
		if c.Expected {
			asExpected++
		}
	}
	var parts []string
	for _, s := range []tpuc.Status{tpuc.StatusOK, tpuc.StatusCompiled, tpuc.StatusRefused, tpuc.StatusDiffers, tpuc.StatusFailed, tpuc.StatusBug} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	s := fmt.Sprintf("%d cases: %s; %.1f %% good.", len(cases), strings.Join(parts, ", "), 100*float64(good)/float64(len(cases)))
	if asExpected > 0 {
		s += fmt.Sprintf(" %d of the good ones are refused, as they must be.", asExpected)
	}
	return s
}

// sixteenBits sums up the relative L2 errors of bf16 and f16 outputs, beside torch's own where the case knows it.
func sixteenBits(cases []*tpuc.CaseOutcome) string {
	outputs, known, worst, worstShare, at, shareAt := 0, 0, 0.0, 0.0, "", ""
	for _, c := range cases {
		for _, call := range c.Calls {
			for _, x := range call.Compared {
				if !strings.Contains(x.Type, "bf16[") && !strings.Contains(x.Type, "f16[") {
					continue
				}
				outputs++
				if x.RelL2 > worst {
					worst, at = x.RelL2, c.Name
				}
				if c.Noise > 0 {
					known++
					if s := x.RelL2 / c.Noise; s > worstShare {
						worstShare, shareAt = s, c.Name
					}
				}
			}
		}
	}
	if outputs == 0 {
		return ""
	}
	s := fmt.Sprintf("%d outputs of 16 bits: the largest relative L2 error is %.2g (%s)", outputs, worst, at)
	if known > 0 {
		s += fmt.Sprintf("; of the %d with torch's own error against float64 known, the largest is %.2g times that (%s)", known, worstShare, shareAt)
	}
	return s + ".\n"
}

// reasons is a table of why cases are not good. A case with several operators that are not supported is in several rows.
func reasons(r *tpuc.SuiteReport, cases []*tpuc.CaseOutcome) string {
	mine := make(map[string]bool)
	for _, c := range cases {
		mine[c.ID()] = true
	}
	var b strings.Builder
	for _, g := range r.Groups {
		ids := slices.DeleteFunc(slices.Clone(g.Cases), func(id string) bool { return !mine[id] })
		if len(ids) == 0 {
			continue
		}
		const shown = 3
		names := strings.Join(ids[:min(shown, len(ids))], ", ")
		if len(ids) > shown {
			names += ", ..."
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", g.Status, len(ids), cell(g.Reason), names)
	}
	for _, c := range cases {
		if c.Status == tpuc.StatusDiffers {
			fmt.Fprintf(&b, "| %s | 1 | %s | %s |\n", c.Status, cell(strings.Join(c.Reasons, "; ")), c.ID())
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "| result | cases | reason | such as |\n|---|---|---|---|\n" + b.String()
}

// cell is text within a table's cell.
func cell(s string) string {
	const most = 300
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + " ..."
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s)
}
