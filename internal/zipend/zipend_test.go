package zipend

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDirectorySize(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	_, err := z.Create("a")
	require.NoError(t, err)
	require.NoError(t, z.SetComment(strings.Repeat("c", 1000)))
	require.NoError(t, z.Close())
	data := b.Bytes()
	require.EqualValues(t, 46+1, DirectorySize(data), "one entry with a name of one byte")
	require.Zero(t, DirectorySize(nil))
	require.Zero(t, DirectorySize(data[:50]))

	end := bytes.LastIndex(data, []byte("PK\x05\x06"))
	binary.LittleEndian.PutUint32(data[end+12:], 1<<30)
	require.EqualValues(t, 1<<30, DirectorySize(data), "what the record claims")
	binary.LittleEndian.PutUint32(data[end+12:], 1<<32-1)
	require.EqualValues(t, 1<<32-1, DirectorySize(data), "no record of zip64")

	// A zip64 record and its locator before the end record.
	record := append([]byte("PK\x06\x06"), make([]byte, 52)...)
	binary.LittleEndian.PutUint64(record[40:], 1<<40)
	locator := append([]byte("PK\x06\x07"), make([]byte, 16)...)
	for at, want := range map[uint64]uint64{uint64(end): 1 << 40, 0: 1<<32 - 1, 1 << 60: 1<<32 - 1} {
		binary.LittleEndian.PutUint64(locator[8:], at)
		big := append(append(append(append([]byte{}, data[:end]...), record...), locator...), data[end:]...)
		require.Equal(t, want, DirectorySize(big), "a record at %d", at)
	}
}
