package plural

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	for want, got := range map[string]string{
		"1 entry": Of(1, "entry"), "2 entries": Of(2, "entry"), "0 programs": Of(0, "program"), "1 program": Of(int64(1), "program"),
	} {
		require.Equal(t, want, got)
	}
	require.Equal(t, "is", Choose(1, "is", "are"))
	require.Equal(t, "are", Choose(0, "is", "are"))
}
