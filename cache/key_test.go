package cache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestID(t *testing.T) {
	// A changed encoding of keys makes all caches useless: it must not happen unnoticed.
	require.Equal(t, "2b539f6a6df71fe0e17ef84478dc2898ddcc0a6511776ead39dcaeb33c242e5a", key("p", "v6e:1x1").ID())
	seen := make(map[string]Key)
	for _, k := range []Key{
		{Kind: "a"},
		{Kind: "a", Parts: []Part{{"", ""}}},
		{Kind: "a", Parts: []Part{{"b", ""}}},
		{Kind: "ab"},
		{Kind: "a", Parts: []Part{{"", "b"}}},
		{Kind: "a", Parts: []Part{{"b", "cd"}}},
		{Kind: "a", Parts: []Part{{"bc", "d"}}},
		{Kind: "a", Parts: []Part{{"b", "c"}, {"d", ""}}},
		{Kind: "a", Parts: []Part{{"d", ""}, {"b", "c"}}},
		{Kind: "a", Parts: []Part{{"b", "c\x00d"}}},
	} {
		require.NotContains(t, seen, k.ID(), "%+v", k)
		seen[k.ID()] = k
	}
}

func TestKeyCheck(t *testing.T) {
	for _, c := range []struct {
		key  Key
		want string // "" is a good key
	}{
		{key("p", "cpu", ""), ""},
		{Key{Kind: "a-1"}, ""},
		{Key{Kind: ""}, `key of kind "", wanted a lower-case letter`},
		{Key{Kind: "../x"}, `key of kind "../x", wanted`},
		{Key{Kind: "1a"}, "wanted a lower-case letter"},
		{Key{Kind: "A"}, "wanted a lower-case letter"},
		{Key{Kind: strings.Repeat("a", 33)}, "at most 32"},
		{Key{Kind: "lock"}, `none of ["lock" "tmp" "quarantine"]`},
		{Key{Kind: "a", Parts: []Part{{"", "x"}}}, `key of kind a: part 0 has name "", wanted text on one line`},
		{Key{Kind: "a", Parts: []Part{{"a\nb", "x"}}}, `part 0 has name "a\nb"`},
		{Key{Kind: "a", Parts: []Part{{"b", "x"}, {"b", "y"}}}, `part "b" is there twice`},
		{Key{Kind: "a", Parts: []Part{{"b", "\xff"}}}, `part "b" has value "\xff", wanted UTF-8`},
	} {
		if err := c.key.Check(); c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
	s, _ := openStore(t, t.TempDir(), Options{})
	bad := Key{Kind: "../x", Parts: []Part{{"b", "x"}, {"b", "y"}}}
	_, err := s.Get(t.Context(), bad)
	require.ErrorContains(t, err, "key of kind")
	require.NotErrorIs(t, err, ErrMiss)
	require.ErrorContains(t, s.Put(t.Context(), bad, nil), "key of kind")
	for _, names := range [][]Section{{{Name: ""}}, {{Name: "a"}, {Name: "a"}}} {
		require.ErrorContains(t, s.Put(t.Context(), key("p"), names), "wanted one of its own")
	}
}

func TestDiff(t *testing.T) {
	a := Key{Kind: "program", Parts: []Part{{"program", "1"}, {"topology", "v6e:1x1"}, {"cores", "2"}}}
	b := Key{Kind: "program", Parts: []Part{{"program", "1"}, {"topology", "v6e:2x2"}, {"plugin", "x"}}}
	text := func(list []Difference) (out []string) {
		for _, d := range list {
			out = append(out, d.String())
		}
		return out
	}
	require.Equal(t, []string{"topology: v6e:1x1 -> v6e:2x2", "cores: 2 -> (none)", "plugin: (none) -> x"}, text(Diff(a, b)))
	require.Equal(t, []string{"topology: v6e:2x2 -> v6e:1x1", "plugin: x -> (none)", "cores: (none) -> 2"}, text(Diff(b, a)))
	require.Empty(t, Diff(a, a))
	require.Equal(t, []string{"(kind): a -> b"}, text(Diff(Key{Kind: "a"}, Key{Kind: "b"})))
	c := Key{Kind: "program", Parts: []Part{a.Parts[1], a.Parts[0], a.Parts[2]}}
	require.Equal(t, []string{"(order): program topology cores -> topology program cores"}, text(Diff(a, c)))
}
