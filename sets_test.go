package tpuc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProduct(t *testing.T) {
	got, err := product(map[string][]int64{"b": {1, 4}, "a": {7, 5}})
	require.NoError(t, err)
	require.Equal(t, []map[string]int64{{"a": 7, "b": 1}, {"a": 7, "b": 4}, {"a": 5, "b": 1}, {"a": 5, "b": 4}}, got)
	got, err = product(nil)
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = product(map[string][]int64{"a": {}})
	require.ErrorContains(t, err, "no sizes")
	many := make([]int64, 40)
	_, err = product(map[string][]int64{"a": many, "b": many})
	require.ErrorContains(t, err, "more than 1024 programs")
}
