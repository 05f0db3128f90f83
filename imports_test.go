package tpuc_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport says for every package of the module what it may import inside the module, tests aside. "*" is everything but commands.
// A new package needs a line here: the line is the decision where it belongs.
var mayImport = map[string]string{
	"ir/diag":   "",
	"ir/tensor": "",
	"ir/weight": "ir/tensor",
	"ir":        "ir/diag ir/tensor ir/weight",
	"ir/op":     "ir ir/tensor ir/diag",
	"ir/text":   "ir ir/op ir/tensor ir/diag ir/weight",
	"ir/eval":   "ir ir/tensor ir/diag",

	"frontend/pt2":       "ir ir/op ir/eval ir/tensor ir/weight ir/diag frontend/weights internal/compare internal/jsonerr",
	"frontend/stablehlo": "frontend/stablehlo/bytecode ir ir/op ir/tensor ir/diag",
	"frontend/weights":   "frontend/weights/pickle ir/tensor ir/weight ir/diag internal/atomicfile internal/jsonerr internal/mmap internal/zipend",

	"frontend/weights/pickle":     "ir/tensor",
	"frontend/stablehlo/bytecode": "",

	"passes": "ir ir/op ir/text ir/eval ir/tensor ir/weight ir/diag tpu/chip internal/atomicfile",
	"lower":  "ir ir/op ir/tensor tpu/chip ir/diag",

	"passes/padproof": "ir ir/op ir/eval ir/tensor ir/diag",

	"cache": "internal/atomicfile internal/jsonerr internal/mmap",

	"tpu/chip":     "",
	"tpu/pjrt":     "",
	"tpu/plugin":   "internal/fileid",
	"tpu":          "tpu/pjrt tpu/plugin tpu/chip ir/diag ir/tensor internal/processor",
	"tpu/artifact": "ir/tensor ir/weight tpu/chip ir/diag internal/atomicfile internal/jsonerr internal/mmap internal/zipend",
	"tpu/runtime":  "tpu/pjrt tpu/plugin tpu/artifact frontend/weights ir/weight ir/tensor ir/diag internal/plural internal/processor",

	"examples/embed":  "tpu/runtime ir/tensor", // as a server would
	"examples/decode": "tpu/runtime ir/tensor",

	"tools/seeds": "",

	".":        "*",
	"cmd/tpuc": ". cache ir ir/op ir/text ir/eval ir/tensor ir/diag passes tpu tpu/chip tpu/plugin tpu/artifact tpu/runtime frontend/weights internal/compare internal/atomicfile internal/plural internal/reduce",

	"tools/coverage": ". frontend/pt2 internal/atomicfile",
	"tools/bench":    "frontend/weights internal/mmap ir/tensor tpu/artifact tpu/pjrt tpu/plugin",

	"internal/atomicfile": "",
	"internal/fileid":     "",
	"internal/jsonerr":    "",
	"internal/mmap":       "",
	"internal/plural":     "",
	"internal/processor":  "",
	"internal/zipend":     "",
	"internal/compare":    "ir/tensor",
	"internal/reduce":     "internal/plural ir ir/text",
	"internal/golden":     "ir ir/eval ir/tensor ir/weight", // for tests
	"internal/seeds":      "",                               // for tests
	"internal/tieorder":   "ir ir/op ir/tensor",
}

// runtimeMayReach are the packages outside tpu/ that a server links with tpu/runtime: no pass, no lowering, and of the front ends the
// weights alone.
var runtimeMayReach = []string{"ir/diag", "ir/tensor", "ir/weight", "frontend/weights", "frontend/weights/pickle", "internal/atomicfile", "internal/fileid", "internal/jsonerr", "internal/mmap", "internal/plural", "internal/processor", "internal/zipend"}

// forTests are packages that only test files import.
var forTests = []string{"internal/golden", "internal/seeds"}

func TestImports(t *testing.T) {
	imports := moduleImports(t)
	for pkg, list := range imports {
		allowed, ok := mayImport[pkg]
		if !ok {
			t.Errorf("package %s has no line in the table of imports, wanted one that says what it may import", pkg)
			continue
		}
		for _, p := range list {
			everything := allowed == "*" && !strings.HasPrefix(p, "cmd/")
			if slices.Contains(forTests, p) || !everything && !slices.Contains(strings.Fields(allowed), p) {
				t.Errorf("%s imports %s, wanted one of: %s", pkg, p, allowed)
			}
		}
	}
	for pkg := range mayImport {
		if _, ok := imports[pkg]; !ok {
			t.Errorf("the table of imports has a line for %s, which is no package", pkg)
		}
	}
	for _, pkg := range []string{"tpu/runtime", "examples/embed", "examples/decode"} {
		for _, p := range reach(imports, pkg) {
			if !strings.HasPrefix(p, "tpu/") && !slices.Contains(runtimeMayReach, p) {
				t.Errorf("%s reaches %s: a server would link the compiler", pkg, p)
			}
		}
	}
}

// moduleImports reads the import lines of all Go files, whatever their build constraints, and gives for every package of the module
// the packages of the module that its files other than tests import. No file, tests included, may use cgo.
func moduleImports(t *testing.T) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(fset, file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(file))
		test := strings.HasSuffix(name, "_test.go")
		if !test && out[pkg] == nil {
			out[pkg] = []string{}
		}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if p == "C" {
				t.Errorf("%s uses cgo, which the project does without", file)
			}
			if p == "tpuc" {
				p = "tpuc/."
			}
			if p, ok := strings.CutPrefix(p, "tpuc/"); ok && !test && !slices.Contains(out[pkg], p) {
				out[pkg] = append(out[pkg], p)
			}
		}
		return nil
	})
	require.NoError(t, err)
	return out
}

// reach are all packages that pkg imports, directly or not.
func reach(imports map[string][]string, pkg string) (out []string) {
	for todo := []string{pkg}; len(todo) > 0; todo = todo[1:] {
		for _, p := range imports[todo[0]] {
			if !slices.Contains(out, p) {
				out = append(out, p)
				todo = append(todo, p)
			}
		}
	}
	slices.Sort(out)
	return out
}
