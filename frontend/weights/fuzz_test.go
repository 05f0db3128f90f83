package weights

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/mmap"
)

// The fuzz targets demand that no input panics, hangs or allocates out of proportion, and that whatever is accepted can be loaded whole.

func FuzzSafetensors(f *testing.F) {
	header, err := safetensorsHeader(sampleTensors())
	require.NoError(f, err)
	for _, t := range sampleTensors() {
		header = append(header, t.Data...)
	}
	f.Add(header)
	f.Add(rawSafetensors(`{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},"__metadata__":{"k":"v"}}`, 1))
	f.Add(rawSafetensors(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readSafetensors("fuzz", &mmap.File{Data: data})
		if err == nil {
			loadAll(t, s)
		}
	})
}

func FuzzNPY(f *testing.F) {
	f.Add(npy(1, describe("<f4", "True", "(2, 3)"), f32s(6)))
	f.Add(npy(3, describe("|b1", "False", "()"), []byte{1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if x, err := ParseNPY(data); err == nil && x.Bytes() != int64(len(x.Data)) {
			t.Fatalf("%s with %d bytes", x.Type, len(x.Data))
		}
	})
}

func FuzzWeightsConfig(f *testing.F) {
	f.Add(`"w": ` + meta("s", 7, []int64{2, 2}, []int64{1, 2}, 1))
	f.Add(`"w": {"path_name": "s", "use_pickle": true}, "v": ` + meta("s", 1, []int64{1 << 40}, []int64{0}, 0))
	f.Fuzz(func(t *testing.T, config string) {
		data := zipBytes(t, archiveOf(config, entry{name: "s", data: f32s(8)}))
		if a, err := readArchive("fuzz", &mmap.File{Data: data}); err == nil {
			loadAll(t, a)
		}
	})
}

func FuzzArchive(f *testing.F) {
	f.Add(zipBytes(f, archiveOf(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), entry{name: "s", data: f32s(2)})))
	f.Add(zipBytes(f, []entry{{name: "r/models/model.json", deflated: true}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readArchive("fuzz", &mmap.File{Data: data})
		if err != nil {
			return
		}
		loadAll(t, a)
		for _, n := range a.EntryNames() {
			_, _ = a.Entry(n) // only that it returns
		}
	})
}

func loadAll(t *testing.T, s Source) {
	for _, n := range s.Names() {
		typ, err := s.Type(n)
		if err != nil {
			continue
		}
		x, err := s.Load(n)
		if err == nil && (!x.Type.Equal(typ) || x.Bytes() != int64(len(x.Data))) {
			t.Fatalf("%q is %s with %d bytes, wanted %s", n, x.Type, len(x.Data), typ)
		}
	}
}
