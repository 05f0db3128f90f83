package pjrt_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// libtpu reads these when it is loaded. A Go program that links purego passes os.Setenv on to the C library.
func TestMain(m *testing.M) {
	os.Setenv("TPU_SKIP_MDS_QUERY", "1")
	os.Setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
	os.Setenv("TPU_MIN_LOG_LEVEL", "3")
	os.Setenv("TF_CPP_MIN_LOG_LEVEL", "3")
	os.Exit(m.Run())
}

// open loads the plugin of a kind. It skips when the plugin is not on this machine, unless TPUC_REQUIRE names
// the kind: then the plugin is fetched, and missing is failing.
func open(t *testing.T, kind plugin.Kind) *pjrt.Plugin {
	t.Helper()
	required := strings.Contains(os.Getenv("TPUC_REQUIRE"), string(kind))
	found, err := plugin.Locate(t.Context(), kind, plugin.Options{Offline: !required, Quiet: true})
	if err != nil && !required {
		t.Skipf("no %s plugin here (TPUC_REQUIRE=%s fetches it): %v", kind, kind, err)
	}
	require.NoError(t, err)
	p, err := pjrt.Open(found.Path)
	require.NoError(t, err)
	return p
}
