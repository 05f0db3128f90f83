package tpuc_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/tpu"
	"tpuc/tpu/plugin"
)

func TestMain(m *testing.M) {
	tpu.ChildMain() // compiles start this binary again
	if order := os.Getenv(envCompile); order != "" {
		os.Exit(compileInChild(order))
	}
	os.Exit(m.Run())
}

// required reports whether TPUC_REQUIRE names what: then its absence fails a test instead of skipping it.
func required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("TPUC_REQUIRE"), ","), what)
}

// needPlugin gives the plugin of a kind. Without it a test is left out, unless the plugin is required: then it is fetched.
func needPlugin(t testing.TB, kind plugin.Kind) *plugin.Plugin {
	t.Helper()
	p, err := plugin.Locate(t.Context(), kind, plugin.Options{Offline: !required(string(kind)), Quiet: true})
	if err != nil && !required(string(kind)) {
		t.Skipf("left out: no %s plugin here; TPUC_REQUIRE=%s fetches it: %v", kind, kind, err)
	}
	require.NoError(t, err)
	return p
}

// needCases gives the folder of shared cases. Without TPUC_CASES a test is left out.
func needCases(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TPUC_CASES")
	if dir == "" {
		t.Skip("left out: TPUC_CASES names no folder of cases")
	}
	require.DirExists(t, dir, "TPUC_CASES")
	return dir
}
