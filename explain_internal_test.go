package tpuc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/cache"
)

// Every difference is one line that people can read, also where one of the keys has no such part.
func TestExplainLines(t *testing.T) {
	a := cache.Key{Kind: "program", Parts: []cache.Part{{Name: "plugin_build", Value: "cpu"}, {Name: "cpu_features", Value: "+a -b +c"}, {Name: "env", Value: ""}}}
	b := cache.Key{Kind: "program", Parts: []cache.Part{{Name: "plugin_build", Value: "TPU v6\nBuilt on Nov 5"}, {Name: "env", Value: "A=1"}}}
	require.Equal(t, []string{"plugin_build: cpu -> TPU v6 Built on Nov 5", "cpu_features: 3 of them -> (none)", "env: (none) -> A=1"}, Explain(a, b))
}
