package cache

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkGet reads an entry with all checks, from the page cache. The digests are most of it.
func BenchmarkGet(b *testing.B) {
	for _, size := range []int{500_000, 100_000_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			s, _ := openStore(b, b.TempDir(), Options{})
			k := key("p", "cpu")
			require.NoError(b, s.Put(b.Context(), k, []Section{{"executable", random(1, size)}}))
			b.SetBytes(int64(size))
			for b.Loop() {
				e, err := s.Get(b.Context(), k)
				if err != nil {
					b.Fatal(err)
				}
				e.Close()
			}
		})
	}
}

// BenchmarkPut writes, syncs and renames an entry.
func BenchmarkPut(b *testing.B) {
	s, _ := openStore(b, b.TempDir(), Options{})
	k, sections := key("p", "cpu"), []Section{{"executable", random(1, 500_000)}}
	for b.Loop() {
		if err := s.Put(b.Context(), k, sections); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNear looks for the nearest of 1000 entries.
func BenchmarkNear(b *testing.B) {
	s, _ := openStore(b, b.TempDir(), Options{})
	fill(b, s, 1000)
	for b.Loop() {
		if _, ok := s.Near(key("none", "cpu")); !ok {
			b.Fatal("none is near")
		}
	}
}
