package op_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/op"
)

// Every check in an operator's file shows in the operator's golden, by its id.
func TestChecksAreInGoldens(t *testing.T) {
	call := regexp.MustCompile(`\bfail\((\d+),`)
	shared := map[string]bool{"elementwise.go": true, "op.go": true}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(file, ".go")
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		ids := call.FindAllSubmatch(src, -1)
		if shared[file] || strings.HasSuffix(file, "_test.go") || len(ids) == 0 {
			continue
		}
		_, ok := op.Lookup(name)
		require.True(t, ok, "%s has checks but no operator", file)
		golden, err := os.ReadFile(filepath.Join("..", "..", "testdata", "op", name+".txtar"))
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, id := range ids {
			code := fmt.Sprintf("[%s/%s]", name, id[1])
			require.Contains(t, string(golden), code)
			require.False(t, seen[code], "%s stands for two checks", code)
			seen[code] = true
		}
	}
}
