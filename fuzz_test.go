package tpuc_test

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fuzzRow is a row of the table of fuzz targets in docs/testing.md.
type fuzzRow struct {
	pkg, target, measured string
}

// fuzzTable reads the rows, whose cells are in backticks.
func fuzzTable(t *testing.T) []fuzzRow {
	data, err := os.ReadFile(filepath.Join("docs", "testing.md"))
	require.NoError(t, err)
	var out []fuzzRow
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(cells[2], "`Fuzz") {
			continue
		}
		cell := func(i int) string { return strings.Trim(cells[i], " `") }
		out = append(out, fuzzRow{cell(1), cell(2), cell(4)})
	}
	require.NotEmpty(t, out, "rows of docs/testing.md")
	return out
}

// TestFuzzTargets compares the table with the targets that there are.
func TestFuzzTargets(t *testing.T) {
	var listed, found []string
	for _, r := range fuzzTable(t) {
		listed = append(listed, r.pkg+" "+r.target)
	}
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
				found = append(found, filepath.ToSlash(filepath.Dir(file))+" "+fn.Name.Name)
			}
		}
		return nil
	}))
	slices.Sort(found)
	require.Equal(t, found, listed, "fuzz targets that are there, and the sorted rows of docs/testing.md")
}

// TestFuzzCover measures how much of the functions behind each fuzz target its seeds reach. It runs the go command, so only .ci/fuzz asks for it.
func TestFuzzCover(t *testing.T) {
	if os.Getenv("TPUC_FUZZ_COVER") == "" {
		t.Skip("left out: TPUC_FUZZ_COVER=1 measures, as .ci/fuzz cover does")
	}
	const wanted = 80
	for _, r := range fuzzTable(t) {
		t.Run(r.pkg+"/"+r.target, func(t *testing.T) {
			profile := filepath.Join(t.TempDir(), "cover")
			out, err := exec.Command("go", "test", "./"+r.pkg, "-run", "^"+r.target+"$", "-coverprofile", profile).CombinedOutput()
			require.NoError(t, err, "%s", out)
			reached, all := covered(t, r, profile)
			require.Positive(t, all)
			percent := float64(reached) / float64(all) * 100
			t.Logf("%s %s: %.0f %% of %d statements", r.pkg, r.target, percent, all)
			if percent < wanted {
				t.Errorf("the seeds of %s reach %.1f %% of %s, wanted %d %%", r.target, percent, r.measured, wanted)
			}
		})
	}
}

// covered counts the statements of a row's functions, from a coverage profile: lines of "file:line.column,line.column statements count".
func covered(t *testing.T, r fuzzRow, profile string) (reached, all int) {
	type block struct{ from, to int }
	within := make(map[string][]block) // by file: lines of the functions that are measured; none: the whole file
	for _, part := range strings.Fields(r.measured) {
		file, list, some := strings.Cut(part, ":")
		within[file] = nil
		if !some {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(r.pkg, file), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, name := range strings.Split(list, ",") {
			before := len(within[file])
			for _, decl := range f.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == name {
					within[file] = append(within[file], block{set.Position(fn.Pos()).Line, set.Position(fn.End()).Line})
				}
			}
			require.Greater(t, len(within[file]), before, "%s has no function %s", file, name)
		}
	}
	data, err := os.Open(profile)
	require.NoError(t, err)
	defer data.Close()
	files := make(map[string]bool)
	for s := bufio.NewScanner(data); s.Scan(); {
		path, rest, _ := strings.Cut(s.Text(), ":")
		file := filepath.Base(path)
		blocks, ok := within[file]
		if !ok || filepath.ToSlash(filepath.Join("tpuc", r.pkg, file)) != path {
			continue
		}
		files[file] = true
		var line, c1, line2, c2, statements, count int
		_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &line, &c1, &line2, &c2, &statements, &count)
		require.NoError(t, err, s.Text())
		if len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b block) bool { return b.from <= line && line <= b.to }) {
			continue
		}
		all += statements
		if count > 0 {
			reached += statements
		}
	}
	require.Len(t, files, len(within), "files of the table that there are")
	return reached, all
}
