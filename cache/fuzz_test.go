package cache

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzEntry reads files of entries. With fix the header fits the manifest and the file, so that what is behind it is reached. What is accepted
// is what writeEntry writes.
func FuzzEntry(f *testing.F) {
	k := key("p", "cpu")
	honest := encoded(f, k, paddedSections())
	small := encoded(f, k, []Section{{"a", []byte("code")}, {"b", []byte("report")}})
	for _, seed := range [][]byte{honest, small, encoded(f, Key{Kind: "a"}, nil), nil, honest[:70], small[:headerSize], append(bytes.Clone(small), 0)} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	for _, i := range []int{0, 8, 12, 16, 23, 24, 31, 32, headerSize, len(small) - 60, len(small) - 1} {
		changed := bytes.Clone(small)
		changed[i] ^= 0x80
		f.Add(changed, false)
		f.Add(changed, true)
	}
	text, _, _ := bytes.Cut(small[headerSize:], []byte("\n"))
	text = append(bytes.Clone(text), '\n')
	body := small[aligned(int64(headerSize+len(text))):]
	require.Equal(f, small, withHeader(text, body))
	for _, r := range [][2]string{{`"program"`, `"../gram"`}, {`"name":"a"`, `"name":"b"`}, {`"name":"a"`, `"name":"" `}, {`"target"`, `"program"`}, {`"size":4`, `"size":5`}, {`"size":4`, `"size":-4`},
		{`"size":4`, `"size":9223372036854775807`}, {`"offset":0`, `"offset":1`}, {`"offset":64`, `"offset":4`}, {`"kind"`, `"dnik"`}, {`{`, `[`}, {`]}`, `]`}, {`,"`, `, "`}, {`"sha256":"`, `"sha256":"0`}, {`"cpu"`, `"\u0063pu"`},
		{`"cpu"`, `"c\ud800"`}, {`"sections":[`, `"sections":null,"x":[`}, {`"parts"`, `"Parts"`}} {
		f.Add(withHeader(bytes.Replace(text, []byte(r[0]), []byte(r[1]), 1), body), false)
	}
	negative := bytes.Replace(text, []byte(`"size":4`), []byte(`"size":-60`), 1) // the sum fits
	f.Add(withHeader(bytes.Replace(negative, []byte(`"offset":64,"size":6`), []byte(`"offset":0,"size":70`), 1), body), false)
	f.Fuzz(func(t *testing.T, data []byte, fix bool) {
		if fix && len(data) >= headerSize {
			text, _, _ := bytes.Cut(data[headerSize:], []byte("\n"))
			text = append(bytes.Clone(text), '\n')
			data = withHeader(text, data[min(int64(len(data)), aligned(int64(headerSize+len(text)))):])
		}
		m, sections, err := read(data)
		if err != nil {
			require.Nil(t, m)
			return
		}
		require.Equal(t, data, encoded(t, m.Key, sections))
		path := filepath.Join(t.TempDir(), "entry")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		e, _, err := open(path, m.ID())
		require.NoError(t, err)
		require.NoError(t, e.Close())
	})
}

// withHeader is an entry's file of a manifest and what follows it, with the header that fits.
func withHeader(manifest, body []byte) []byte {
	file := make([]byte, aligned(int64(headerSize+len(manifest))))
	copy(file[copy(file, header(manifest, int64(len(file)+len(body)))):], manifest)
	return append(file, body...)
}

// FuzzImport reads exports. Whatever they hold, the store holds good entries alone, and what it says was done is what is there.
func FuzzImport(f *testing.F) {
	s, _ := openStore(f, f.TempDir(), Options{})
	fill(f, s, 2)
	all := export(f, s, nil)
	f.Add(all)
	f.Add([]byte{})
	f.Add(all[:len(all)/2])
	for _, r := range [][2]string{{"program/", "program-"}, {"program/", "../gram/"}, {"tpucache", "Tpucache"}, {`"version": 1`, `"version": 2`}, {`"entries"`, `"seirtne"`}, {"cpu", "CPU"}, {listName, "Entries.json"}} {
		f.Add(bytes.Replace(all, []byte(r[0]), []byte(r[1]), 1))
	}
	f.Add(append(bytes.TrimRight(bytes.Clone(all), "\x00"), bytes.Repeat([]byte{0}, 100)...))
	end := bytes.Index(all, []byte(listName))
	f.Add(append(bytes.Clone(all[:len(all)-1024]), all[end:]...)) // the list twice
	f.Add(append(bytes.Clone(all[:end]), all...))                 // the entries twice
	f.Fuzz(func(t *testing.T, data []byte) {
		s, notes := openStore(t, t.TempDir(), Options{})
		s.sync = func(*os.File) error { return nil } // most of the time
		require.NoError(t, os.WriteFile(filepath.Join(s.Dir(), tagName), []byte(tag), 0o644))
		done, err := s.Import(t.Context(), bytes.NewReader(data))
		if err != nil && strings.Contains(err.Error(), "cannot keep") {
			t.Fatal(err)
		}
		v, err := s.Verify(t.Context(), false)
		require.NoError(t, err)
		require.Equal(t, done.Added, v.Entries)
		require.Empty(t, v.Findings)
		require.Zero(t, v.Leftovers)
		require.Empty(t, notes.text())
	})
}
