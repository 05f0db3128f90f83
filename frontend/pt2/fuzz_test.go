package pt2

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/diag"
)

// FuzzGraph reads and imports a changed graph beside the tensors of an honest archive. Whatever the JSON says, the answer is a module
// that verifies or an error; a panic inside a rule would come back as a diag.Bug with a stack.
func FuzzGraph(f *testing.F) {
	base, err := weights.OpenArchive(filepath.Join("..", "..", "testdata", "cases", "views", "model.pt2.gz"))
	require.NoError(f, err)
	f.Cleanup(func() { base.Close() })
	for _, name := range []string{"views/model", "views/decomposed", "T8_cache/model", "T6/model", "T10/decomposed", "R4/model", "E1/model", "T13/model"} {
		a, err := weights.OpenArchive(filepath.Join("..", "..", "testdata", "cases", name+".pt2.gz"))
		require.NoError(f, err)
		data, err := a.Entry(a.Graph())
		require.NoError(f, err)
		f.Add(data)
		f.Cleanup(func() { a.Close() })
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &Program{archive: base, exprs: make(map[string]*expr)}
		if p.decode(data) != nil {
			return
		}
		b, err := p.Hints()
		if err != nil {
			return
		}
		m, err := p.Import(context.Background(), b)
		var bug *diag.Bug
		if errors.As(err, &bug) && bug.Stack != "" {
			t.Fatalf("%v\n%s", bug, bug.Stack)
		}
		if err == nil {
			require.NoError(t, ir.Verify(m.Module))
		}
	})
}
