package weights

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every entry is in the digest, those of weights by size and checksum alone; the root's name is not.
func TestModelDigest(t *testing.T) {
	entries := append(archiveOf(`"w": `+meta("weight_0", 7, []int64{4}, []int64{1}, 0), entry{name: "weight_0", data: f32s(4)}),
		entry{name: "r/data/constants/c_0", data: f32s(4)}, entry{name: "r/extra/note", data: []byte("one")})
	digest := func(e []entry) string {
		d, err := openArchive(t, e).ModelDigest(false)
		require.NoError(t, err)
		return d
	}
	want := digest(entries)
	renamed := slices.Clone(entries)
	for i := range renamed {
		renamed[i].name = "another" + renamed[i].name[1:]
	}
	require.Equal(t, want, digest(renamed))
	for i, e := range entries {
		if e.name == "r/archive_format" || e.name == "r/byteorder" || e.name == "r/data/weights/model_weights_config.json" {
			continue // an archive with others is refused
		}
		changed := slices.Clone(entries)
		changed[i].data = bytes.Clone(e.data)
		changed[i].data[0] ^= 1
		require.NotEqual(t, want, digest(changed), e.name)
	}
	require.NotEqual(t, want, digest(append(slices.Clone(entries), entry{name: "r/more"})))
}

// Only a full digest reads the weights, and finds what their checksum finds.
func TestModelDigestReadsAll(t *testing.T) {
	data := zipBytes(t, archiveOf(`"w": `+meta("weight_0", 7, []int64{4}, []int64{1}, 0), entry{name: "weight_0", data: f32s(4)}))
	whole, err := ReadArchive("a.pt2", bytes.Clone(data))
	require.NoError(t, err)
	at := bytes.Index(data, f32s(4))
	data[at+4] ^= 1
	a, err := ReadArchive("a.pt2", data)
	require.NoError(t, err)
	d, err := a.ModelDigest(false)
	require.NoError(t, err)
	_, err = a.ModelDigest(true)
	require.ErrorContains(t, err, "weight_0")
	require.ErrorContains(t, err, "is damaged")
	full, err := whole.ModelDigest(true)
	require.NoError(t, err)
	require.Equal(t, d, full)
}
