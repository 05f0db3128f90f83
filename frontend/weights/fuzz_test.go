package weights

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/mmap"
	"tpuc/internal/seeds"
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
	for _, tc := range safetensorsFaults {
		f.Add(rawSafetensors(tc.header, tc.size))
	}
	f.Add(header[:7])
	f.Add(append([]byte{255, 255, 255, 255, 255, 255, 255, 255}, header...))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readSafetensors("fuzz", &mmap.File{Data: data})
		if err == nil {
			loadAll(t, s)
		}
	})
}

func FuzzNPY(f *testing.F) {
	f.Add(npy(1, describe("<f4", "True", "(2, 3)"), f32s(6)))
	f.Add(npy(2, describe("<f4", "False", "(6,)"), f32s(6)))
	f.Add(npy(3, describe("|b1", "False", "()"), []byte{1}))
	for _, tc := range npyFaults {
		f.Add(tc.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if x, err := ParseNPY(data); err == nil && x.Bytes() != int64(len(x.Data)) {
			t.Fatalf("%s with %d bytes", x.Type, len(x.Data))
		}
	})
}

func FuzzNPZ(f *testing.F) {
	member := entry{name: "a.npy", data: npy(1, describe("<f4", "False", "(2,)"), f32s(2))}
	deflated := entry{name: "b.npy", data: member.data, deflated: true}
	f.Add(zipBytes(f, []entry{member, deflated}))
	f.Add(zipBytes(f, []entry{member, member, {name: "readme.txt"}, {name: "c.npy", data: f32s(3)}}))
	f.Add(zipBytes(f, []entry{deflated})[:60])
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := readNPZ("fuzz", data); err == nil {
			loadAll(t, n)
		}
	})
}

func FuzzIndex(f *testing.F) {
	for _, s := range []string{`{"metadata":{"total_size":8},"weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors"}}`, `{"weight_map":{"a":"../m"}}`,
		`{"weight_map":{"a":"m","a":"n"}}`, `{}`, `{"weight_map":{}}`, `{"weight_map":`, `{"weight_map":[]}`, `{"weight_map":{"a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		index, err := parseIndex("fuzz", data)
		if err != nil {
			return
		}
		require.NotEmpty(t, index)
		for _, file := range index {
			require.Equal(t, filepath.Base(file), file, "a shard beside the index")
		}
	})
}

// FuzzWeightsConfig changes the index of an archive whose storages are honest.
func FuzzWeightsConfig(f *testing.F) {
	f.Add([]byte(`{"config": {"w": ` + meta("s", 7, []int64{2, 2}, []int64{1, 2}, 1) + `}}`))
	f.Add([]byte(`{"config": {"w": {"path_name": "s", "use_pickle": true}, "v": ` + meta("s", 1, []int64{1 << 40}, []int64{0}, 0) + `}}`))
	for _, tc := range hostileViews {
		f.Add([]byte(`{"config": {"w": ` + meta("s", 7, tc.dims, tc.strides, tc.offset) + `}}`))
	}
	for _, s := range []string{`{`, `[]`, `{"config": 3}`, `{"config": {"w": 3}}`, `{"config": {"w": ` + meta("gone", 7, nil, nil, 0) + `, "w": ` + meta("s", 99, nil, nil, 0) + `}}`,
		`{"config": {"w": {"tensor_meta": {"layout": 1}}}}`, `{"config": {"w": ` + meta("s", 9, nil, nil, 0) + `, "x": ` + meta("weight_0", 7, []int64{4}, []int64{1}, 0) + `}}`,
		`{"config": {"w": ` + meta("s", 7, []int64{2, 1, 2}, []int64{4, 7, 1}, 0) + `}}`, `{"config": {"w": ` + meta("s", 7, []int64{1}, nil, 0) + `}}`} {
		f.Add([]byte(s))
	}
	for _, a := range seeds.Archives(f) {
		if c := a.Entry("model_weights_config.json"); c != nil {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		entries := []entry{{name: "r/models/model.json", data: []byte("{}")}, {name: "r/data/weights/s", data: f32s(8)}, {name: "r/data/weights/weight_0"},
			{name: "r/data/weights/model_weights_config.json", data: config}}
		if a, err := ReadArchive("fuzz", zipBytes(t, entries)); err == nil {
			loadAll(t, a)
			digestAll(t, a)
		}
	})
}

func FuzzArchive(f *testing.F) {
	f.Add(zipBytes(f, archiveOf(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0)+`, "t": `+meta("s", 7, []int64{1, 1}, []int64{1, 2}, 0), entry{name: "s", data: f32s(2)})))
	f.Add(zipBytes(f, []entry{{name: "r/models/model.json", deflated: true}}))
	for _, tc := range containerFaults() {
		if tc.name != "a bomb" { // too large a seed to change
			f.Add(zipBytes(f, tc.entries))
		}
	}
	for _, tc := range hostileViews {
		f.Add(zipBytes(f, archiveOf(`"w": `+meta("s", 7, tc.dims, tc.strides, tc.offset)+`, "v": `+meta("s", 7, []int64{2, 2, 3}, []int64{20, 2, 1}, 0), entry{name: "s", data: f32s(100)})))
	}
	for _, tc := range pickledFaults {
		f.Add(changePickled(f, tc.change))
	}
	good := zipBytes(f, archiveOf(`"w": `+meta("s", 7, []int64{2}, []int64{1}, 0), entry{name: "s", data: f32s(2)}))
	f.Add(bytes.Replace(good, f32s(2), []byte("damaged!"), 1))
	f.Add(bytes.Replace(good, []byte("{}"), []byte("[]"), 1))
	f.Add(bytes.ReplaceAll(good, []byte("PK\x01\x02\x14\x00\x14\x00\x08"), []byte("PK\x01\x02\x14\x00\x14\x00\x09"))) // encrypted
	for _, a := range seeds.Archives(f) {
		f.Add(a.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadArchive("fuzz", data)
		if err != nil {
			return
		}
		loadAll(t, a)
		digestAll(t, a)
		a.Identity()
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

// digestAll holds tensors with one view to one digest.
func digestAll(t *testing.T, a *Archive) {
	seen := make(map[string]string)
	for _, s := range a.Tensors() {
		if found, err := a.Find(s.Name); err != nil || found.View() != s.View() {
			continue // a constant of a weight's name
		}
		d, err := a.Digest(s.Name)
		if err != nil || s.View() == "" {
			continue
		}
		if other, ok := seen[s.View()]; ok && other != d {
			t.Fatalf("%q has digest %s, another name of it %s", s.Name, d, other)
		}
		seen[s.View()] = d
	}
	_, err := a.Digest("nobody")
	require.ErrorIs(t, err, ErrNoTensor)
}
