// Command coverage writes docs/coverage.md: the operators of torch by tpuc's own table, and what became of the cases by the reports of
// tpuc test --report. It runs no case itself, and it never changes what it was not given: sections without a new report stay.
//
// usage: go run ./tools/coverage [-o docs/coverage.md] [-least PERCENT] [REPORT.json ...]
//
// Of several reports for one target the later ones replace the cases that they have. With -least it fails where a case differs, fails or is a bug, and where fewer than PERCENT of any report's cases are ok or compiled.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"tpuc"
	"tpuc/internal/atomicfile"
)

func main() {
	file := flag.String("o", "docs/coverage.md", "file to write; empty: none")
	least := flag.Float64("least", 0, "percentage of cases that must be ok or compiled; 0: reports are not judged")
	flag.Parse()
	if err := run(*file, *least, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

func run(file string, least float64, paths []string) error {
	var reports []*tpuc.SuiteReport
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r := &tpuc.SuiteReport{}
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if i := slices.IndexFunc(reports, func(o *tpuc.SuiteReport) bool { return o.Target == r.Target }); i >= 0 {
			reports[i].Merge(r)
			continue
		}
		reports = append(reports, r)
	}
	if file != "" {
		if err := update(file, reports); err != nil {
			return err
		}
	}
	var errs []error
	for _, r := range reports {
		if least > 0 {
			errs = append(errs, judge(r, least))
		}
	}
	return errors.Join(errs...)
}

// update rewrites the sections of the file that are known.
func update(file string, reports []*tpuc.SuiteReport) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text := page(string(old), reports)
	return atomicfile.Write(file, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// judge is an error where a report is not good enough.
func judge(r *tpuc.SuiteReport, least float64) error {
	good, bad := 0, 0
	for _, c := range r.Cases {
		switch {
		case c.Good():
			good++
		case c.Status != tpuc.StatusRefused:
			bad++
		}
	}
	switch share := 100 * float64(good) / float64(max(len(r.Cases), 1)); {
	case bad > 0:
		return fmt.Errorf("on %s %d cases differ, fail or are bugs, wanted none", r.Target, bad)
	case share < least:
		return fmt.Errorf("on %s %.1f %% of %d cases are ok or compiled, wanted %.1f %%", r.Target, share, len(r.Cases), least)
	}
	return nil
}
