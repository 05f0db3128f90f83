package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/tpu"
	"tpuc/tpu/plugin"
)

func TestMain(m *testing.M) {
	tpu.ChildMain()
	os.Exit(m.Run())
}

// A sequence that is interrupted, saved and taken up again goes on as one that is not.
func TestDecode(t *testing.T) {
	required := strings.Contains(os.Getenv("TPUC_REQUIRE"), "cpu")
	if _, err := plugin.Locate(t.Context(), plugin.CPU, plugin.Options{Offline: !required}); err != nil && !required {
		t.Skipf("no CPU plugin (TPUC_REQUIRE=cpu demands it): %v", err)
	}
	dir := t.TempDir()
	path, state := filepath.Join(dir, "decode.tpuc"), filepath.Join(dir, "state.safetensors")
	_, err := tpuc.Compile(t.Context(), filepath.Join("..", "..", "testdata", "models", "qwen3_decode", "model.pt2"), tpuc.CompileOptions{EmbedWeights: true, Output: path})
	require.NoError(t, err)
	write := func(o options) []string {
		var out bytes.Buffer
		o.model = path
		require.NoError(t, decode(t.Context(), o, &out))
		return strings.Fields(out.String())
	}
	whole := write(options{prompt: []int64{3, 17, 4}, tokens: 12})
	require.Len(t, whole, 12)
	first := write(options{prompt: []int64{3, 17, 4}, tokens: 5, save: state})
	require.Equal(t, whole[:5], first)
	// The fifth token was written and not yet read: it is the prompt of the rest.
	last := int64(0)
	for _, c := range first[4] {
		last = last*10 + int64(c-'0')
	}
	rest := write(options{prompt: []int64{last}, at: 3 + 4, tokens: 7, load: state})
	require.Equal(t, whole[5:], rest)
	require.NotEqual(t, whole[:5], write(options{prompt: []int64{3, 17, 5}, tokens: 5}), "the prompt matters")

	err = decode(t.Context(), options{model: path, prompt: []int64{1}, tokens: 1, load: path}, &bytes.Buffer{})
	require.Error(t, err)
}
