package tpuc

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tpuc/internal/plural"
	"tpuc/ir/diag"
)

// Status is what became of a case.
type Status string

// Statuses, the good ones first.
const (
	StatusOK       Status = "ok"       // everything compared is as expected, or it was refused as expected
	StatusCompiled Status = "compiled" // nothing was to be compared
	StatusDiffers  Status = "differs"  // numbers differ
	StatusRefused  Status = "refused"  // tpuc or the plugin does not take the model
	StatusFailed   Status = "failed"   // anything else: files, time, a plugin that is not there
	StatusBug      Status = "bug"      // a panic in tpuc or a crash of the plugin
)

// CaseOutcome is what became of one case.
type CaseOutcome struct {
	Case
	Status   Status            `json:"status"`
	Expected bool              `json:"refused_as_expected,omitempty"`
	Reasons  []string          `json:"reasons,omitempty"` // without places, to group by
	Message  string            `json:"message,omitempty"` // whole
	Wall     float64           `json:"wall_s"`
	Worst    *WorstComparison  `json:"worst,omitempty"` // nearest to its limit or farthest beyond it
	Calls    []CaseComparisons `json:"calls,omitempty"`
}

// CaseComparisons are those of one call.
type CaseComparisons struct {
	Compared    []Comparison `json:"compared"`
	NotCompared []string     `json:"unnamed,omitempty"` // state that no file names
}

// WorstComparison names a comparison.
type WorstComparison struct {
	Call int `json:"call"` // from 1
	Comparison
}

// SuiteReport says what became of the cases.
type SuiteReport struct {
	Target string         `json:"target"` // or "evaluator"
	Plugin string         `json:"plugin,omitempty"`
	Wall   float64        `json:"wall_s"`
	Counts map[Status]int `json:"counts"`
	Groups []ReasonGroup  `json:"reasons,omitempty"` // of refusals, failures and bugs; the most frequent first
	Cases  []*CaseOutcome `json:"cases"`
}

// ReasonGroup counts the cases with a reason. A case with several operators that are not supported is in several groups.
type ReasonGroup struct {
	Status Status   `json:"status"`
	Reason string   `json:"reason"`
	Cases  []string `json:"cases"` // Case.ID
}

// SuiteError says that not all cases are ok.
type SuiteError struct {
	Bad, Total int
}

func (e *SuiteError) Error() string {
	return fmt.Sprintf("%d of %s %s not ok", e.Bad, plural.Of(e.Total, "case"), plural.Choose(e.Bad, "is", "are"))
}

// fail sets an outcome that is a reason in words.
func (c *CaseOutcome) fail(s Status, reason string) {
	c.Status, c.Message, c.Reasons = s, reason, []string{reason}
}

// failWith sets an outcome by an error, whose reasons are without places in the model.
func (c *CaseOutcome) failWith(s Status, err error) {
	c.Status, c.Message, c.Reasons = s, c.local(err.Error()), nil
	var list diag.List
	if errors.As(err, &list) && !diag.IsBug(err) {
		for _, e := range list {
			if reason := c.local(e.Msg); !slices.Contains(c.Reasons, reason) {
				c.Reasons = append(c.Reasons, reason)
			}
		}
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(c.Message, filepath.Base(c.Model)+": "), "\n")
	c.Reasons = []string{first}
}

// local names the files of the case's folder by their names alone, so that a message is the same wherever the cases are.
func (c *CaseOutcome) local(message string) string {
	return strings.ReplaceAll(message, filepath.Dir(c.Model)+string(filepath.Separator), "")
}

// Settle finds the worst comparison and, where numbers differ, says so in words.
func (c *CaseOutcome) Settle() {
	worst := -1.0
	failed, compared := 0, 0
	for i, call := range c.Calls {
		for _, x := range call.Compared {
			compared++
			if !x.OK {
				failed++
			}
			if e := x.excess(); e > worst {
				worst, c.Worst = e, &WorstComparison{i + 1, x}
			}
		}
	}
	if c.Status == StatusDiffers && len(c.Reasons) == 0 {
		c.Message = fmt.Sprintf("%d of %d differ: %s %s", failed, compared, c.Worst.name(len(c.Calls)), c.Worst.figures())
		c.Reasons = []string{c.Message}
	}
}

// excess orders comparisons: beyond 1 for those that fail.
func (c Comparison) excess() float64 {
	switch {
	case !c.OK && (c.Problem != "" || c.Limit == 0):
		return math.MaxFloat64
	case c.Limit == 0:
		return 0
	case !c.OK:
		return max(c.MaxAbs/c.Limit, 1+1e-9)
	}
	return c.MaxAbs / c.Limit
}

func (w *WorstComparison) name(calls int) string {
	if calls > 1 {
		return fmt.Sprintf("call %d %s", w.Call, w.Name)
	}
	return w.Name
}

// error is the worst difference beside its limit.
func (c *CaseOutcome) error() string {
	switch w := c.Worst; {
	case w == nil:
		return "-"
	case w.Problem != "" && w.MaxAbs == 0:
		return "-"
	case w.Ties:
		return "ties"
	case w.MaxAbs == 0 && w.Failed == 0:
		return "equal"
	case w.Limit == 0:
		return fmt.Sprintf("%.2g of 0", w.MaxAbs)
	default:
		return fmt.Sprintf("%.2g of %.2g", w.MaxAbs, w.Limit)
	}
}

// Good reports an outcome that is as it should be.
func (c *CaseOutcome) Good() bool { return c.Status == StatusOK || c.Status == StatusCompiled }

// Err is nil where all cases are good; a *DifferError in it says that numbers differ.
func (r *SuiteReport) Err() error {
	bad := len(r.Cases) - r.Counts[StatusOK] - r.Counts[StatusCompiled]
	switch {
	case bad == 0:
		return nil
	case r.Counts[StatusDiffers] > 0:
		return fmt.Errorf("%w; %w", &SuiteError{bad, len(r.Cases)}, &DifferError{r.Counts[StatusDiffers], len(r.Cases)})
	}
	return &SuiteError{bad, len(r.Cases)}
}

// Merge takes over the cases of a later report for the same target, in place of its own of the same names.
func (r *SuiteReport) Merge(later *SuiteReport) {
	for _, c := range later.Cases {
		i := slices.IndexFunc(r.Cases, func(d *CaseOutcome) bool { return d.ID() == c.ID() })
		if i < 0 {
			r.Cases = append(r.Cases, c)
		} else {
			r.Cases[i] = c
		}
	}
	r.Wall, r.Plugin, r.Groups = r.Wall+later.Wall, later.Plugin, nil
	r.count()
}

// count fills in counts and groups.
func (r *SuiteReport) count() {
	r.Counts = make(map[Status]int)
	type key struct {
		status Status
		reason string
	}
	at := make(map[key]int)
	for _, c := range r.Cases {
		r.Counts[c.Status]++
		if c.Good() || c.Status == StatusDiffers {
			continue
		}
		for _, reason := range c.Reasons {
			k := key{c.Status, reason}
			i, ok := at[k]
			if !ok {
				i = len(r.Groups)
				at[k] = i
				r.Groups = append(r.Groups, ReasonGroup{Status: c.Status, Reason: reason})
			}
			r.Groups[i].Cases = append(r.Groups[i].Cases, c.ID())
		}
	}
	order := []Status{StatusBug, StatusFailed, StatusRefused}
	slices.SortStableFunc(r.Groups, func(a, b ReasonGroup) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status)), cmp.Compare(len(b.Cases), len(a.Cases)), cmp.Compare(a.Reason, b.Reason))
	})
}

// Totals is the report in one line.
func (r *SuiteReport) Totals() string {
	var parts []string
	for _, s := range []Status{StatusOK, StatusCompiled, StatusDiffers, StatusRefused, StatusFailed, StatusBug} {
		if n := r.Counts[s]; n > 0 {
			name := string(s)
			if s == StatusBug && n > 1 {
				name = "bugs"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	on := r.Target
	if r.Plugin != "" {
		on += " (" + r.Plugin + ")"
	}
	return fmt.Sprintf("%s on %s: %s; %s", plural.Of(len(r.Cases), "case"), on, strings.Join(parts, ", "), seconds(r.Wall))
}

// WriteGroups prints the reasons of refusals, failures and bugs, each with its number of cases and the first of them.
func (r *SuiteReport) WriteGroups(w io.Writer) error {
	const shown = 3
	for _, g := range r.Groups {
		names := strings.Join(g.Cases[:min(shown, len(g.Cases))], ", ")
		if more := len(g.Cases) - shown; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		if _, err := fmt.Fprintf(w, "%s, %d: %s (%s)\n", g.Status, len(g.Cases), clip(g.Reason, 200), names); err != nil {
			return err
		}
	}
	return nil
}

// CaseTable prints outcomes as they come, a line each.
type CaseTable struct {
	W             io.Writer
	Verbose       bool // comparisons and whole messages too
	OnlyBad       bool // leave out what is ok
	name, variant int
}

// NewCaseTable makes a table as wide as the cases need.
func NewCaseTable(w io.Writer, cases []Case) *CaseTable {
	t := &CaseTable{W: w}
	for _, c := range cases {
		t.name, t.variant = max(t.name, len(c.Name)), max(t.variant, len(c.Variant))
	}
	return t
}

// Write prints one outcome.
func (t *CaseTable) Write(c *CaseOutcome) error {
	if t.OnlyBad && c.Good() {
		return nil
	}
	reason := strings.Join(c.Reasons, "; ")
	if c.Expected {
		reason = "refused as expected: " + reason
	}
	line := fmt.Sprintf("%-*s  %-*s  %-8s  %8s  %-18s  %s", t.name, c.Name, t.variant, c.Variant, c.Status, short(c.Wall), c.error(), clip(reason, 160))
	if _, err := fmt.Fprintln(t.W, strings.TrimRight(line, " ")); err != nil || !t.Verbose {
		return err
	}
	for i, call := range c.Calls {
		for _, x := range call.Compared {
			name := (&WorstComparison{i + 1, x}).name(len(c.Calls))
			if _, err := fmt.Fprintf(t.W, "    %s %s: %s, %s\n", name, x.Type, x.verdict(), x.figures()); err != nil {
				return err
			}
		}
	}
	if c.Message == "" || c.Status == StatusDiffers {
		return nil
	}
	_, err := fmt.Fprintf(t.W, "    %s\n", strings.ReplaceAll(strings.TrimSpace(c.Message), "\n", "\n    "))
	return err
}

// WriteJUnit writes the report as JUnit XML, which continuous integration reads: numbers that differ are failures, all else that is not good errors.
func (r *SuiteReport) WriteJUnit(w io.Writer) error {
	type problem struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *problem `xml:"failure"`
		Error   *problem `xml:"error"`
	}
	type testsuite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	s := testsuite{Name: "tpuc test " + r.Target, Tests: len(r.Cases), Time: fmt.Sprintf("%.3f", r.Wall)}
	for _, c := range r.Cases {
		tc := testcase{Class: strings.ReplaceAll(c.Name, "/", "."), Name: c.Variant, Time: fmt.Sprintf("%.3f", c.Wall)}
		p := &problem{Type: string(c.Status), Message: clip(strings.Join(c.Reasons, "; "), 500), Text: c.Message}
		switch {
		case c.Good():
		case c.Status == StatusDiffers:
			tc.Failure = p
			s.Failures++
		default:
			tc.Error = p
			s.Errors++
		}
		s.Cases = append(s.Cases, tc)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// short is a time that is not measured in microseconds.
func short(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond).String()
}

// clip cuts a line that is too long to read, between characters.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + " ..."
	}
	return s
}
