package tpuc

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"tpuc/frontend/pt2"
	"tpuc/tpu"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

const keyProgram = `module @tpuc attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>) {
    "func.return"(%arg0) : (tensor<2xf32>) -> ()
  }
}
`

// flip gives a field another value than it has, for every kind that options have.
func flip(t *testing.T, f reflect.Value) {
	t.Helper()
	f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() // fields that are not exported too
	switch x := f.Addr().Interface().(type) {
	case *chip.Target:
		*x, _ = chip.Parse("v6e:1x1")
		return
	case **pt2.CustomOps:
		*x = &pt2.CustomOps{Digest: "other"}
		return
	case **Cache:
		*x = &Cache{}
		return
	case *[]byte:
		*x = append(*x, "// another\n"...)
		return
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "other")
	case reflect.Int, reflect.Int64:
		f.SetInt(f.Int() + 3)
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		if f.Type().Elem().Kind() == reflect.String {
			f.Index(0).SetString("--other")
		}
	case reflect.Map:
		key := reflect.ValueOf("s1")
		m := reflect.MakeMap(f.Type())
		if f.Type().Elem().Kind() == reflect.Slice {
			m.SetMapIndex(key, reflect.ValueOf([]int64{7}))
		} else {
			m.SetMapIndex(key, reflect.ValueOf(int64(7)))
		}
		f.Set(m)
	case reflect.Func, reflect.Interface: // no key can hold them
	default:
		t.Fatalf("a field of kind %s, which this test cannot change: teach it to", f.Kind())
	}
}

// walk changes one field after another of the struct that field gives of what make makes, those of nested structs too, and wants another id or the
// field on the short list. Fields that another package keeps to itself are none.
func walk(t *testing.T, name string, make func() any, field func(any) reflect.Value, id func(any) string, seen map[string]bool) {
	t.Helper()
	typ := field(make()).Type()
	for i := range typ.NumField() {
		f := typ.Field(i)
		full := name + "." + f.Name
		at := func(x any) reflect.Value { return field(x).Field(i) }
		switch {
		case !f.IsExported() && typ.PkgPath() != "tpuc":
			continue
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[chip.Target]():
			walk(t, strings.TrimPrefix(f.Type.String(), "tpuc."), make, at, id, seen)
			continue
		}
		before, after := make(), make()
		flip(t, at(after))
		seen[full] = true
		_, excused := notInKeys[full]
		if changed := id(before) != id(after); changed == excused {
			t.Errorf("%s: another value gives another key: %t; it stands among the fields that are in no key: %t; wanted one of both", full, changed, excused)
		}
	}
}

// Every field of every options struct is in a key, or stands on the short list with its reason. A new field fails this test until it is one of both.
func TestEveryOptionIsInAKey(t *testing.T) {
	pl := &plugin.Plugin{Name: "p", Version: "1", Digest: "d"}
	facts := &tpu.Stats{APIVersion: "0.1", PlatformVersion: "b", Processor: "cpu", Features: []string{"+a", "+b"}}
	seen := make(map[string]bool)
	top := func(x any) reflect.Value { return reflect.ValueOf(x).Elem() }

	request := func() any {
		return &tpu.Request{Program: []byte(keyProgram), PluginPath: "p.so", Target: tpu.Target{Platform: tpu.CPU, Devices: 1}}
	}
	program := func(x any) string { return programKey(*x.(*tpu.Request), pl, facts).ID() }
	walk(t, "tpu.Request", request, top, program, seen)

	options := func() any { return &CompileOptions{} }
	model := func(x any) string {
		return modelKey("m.pt2", "digest", "self", x.(*CompileOptions), pl, facts).ID()
	}
	walk(t, "CompileOptions", options, top, model, seen)
	for _, full := range slices.Sorted(maps.Keys(notInKeys)) {
		require.True(t, seen[full], "%s stands among the fields that are in no key and is no field", full)
		require.NotEmpty(t, notInKeys[full])
	}
	require.Greater(t, len(seen), 30)
}

// What is no option is in the keys too: the plugin by its digest, its build and version, the processor, this tpuc, the file's name.
func TestFactsAreInKeys(t *testing.T) {
	req := tpu.Request{Program: []byte(keyProgram), Target: tpu.Target{Platform: tpu.CPU, Devices: 1}}
	o := &CompileOptions{}
	pl := plugin.Plugin{Name: "p", Version: "1", Digest: "d"}
	facts := tpu.Stats{APIVersion: "0.1", PlatformVersion: "b", Processor: "cpu", Features: []string{"+a", "+b"}}
	base, model := programKey(req, &pl, &facts), modelKey("m.pt2", "digest", "self", o, &pl, &facts)
	for name, change := range map[string]func(*plugin.Plugin, *tpu.Stats){
		"plugin":        func(p *plugin.Plugin, _ *tpu.Stats) { p.Version = "2" },
		"plugin_sha256": func(p *plugin.Plugin, _ *tpu.Stats) { p.Digest = "e" }, // C4: other contents that report the same version
		"plugin_api":    func(_ *plugin.Plugin, f *tpu.Stats) { f.APIVersion = "0.2" },
		"plugin_build":  func(_ *plugin.Plugin, f *tpu.Stats) { f.PlatformVersion = "c" },
		"processor":     func(_ *plugin.Plugin, f *tpu.Stats) { f.Processor = "other" },
		"cpu_features":  func(_ *plugin.Plugin, f *tpu.Stats) { f.Features = []string{"+a", "-b"} },
	} {
		p, f := pl, facts
		change(&p, &f)
		for _, k := range [][2][]string{{Explain(base, programKey(req, &p, &f)), nil}, {Explain(model, modelKey("m.pt2", "digest", "self", o, &p, &f)), nil}} {
			require.Len(t, k[0], 1, name)
			require.Contains(t, k[0][0], name+": ")
		}
	}
	require.Equal(t, []string{"cpu_features: without +b; with -b"}, Explain(base, programKey(req, &pl, &tpu.Stats{APIVersion: "0.1", PlatformVersion: "b", Processor: "cpu", Features: []string{"+a", "-b"}})))
	for name, k := range map[string][3]string{"name": {"dir/n.pt2", "digest", "self"}, "model": {"m.pt2", "other", "self"}, "tpuc_sha256": {"m.pt2", "digest", "other"}} {
		differs := Explain(model, modelKey(k[0], k[1], k[2], o, &pl, &facts))
		require.Len(t, differs, 1)
		require.Contains(t, differs[0], name+": ")
	}
	require.Equal(t, model.ID(), modelKey("elsewhere/m.pt2", "digest", "self", o, &pl, &facts).ID(), "where a file lies does not matter")
}

// C8: two targets that differ in their topology.
func TestExplainTopology(t *testing.T) {
	key := func(target string) []string {
		c, err := chip.Parse(target)
		require.NoError(t, err)
		one, err := chip.Parse("v6e:1x1")
		require.NoError(t, err)
		pl, facts := &plugin.Plugin{Name: "libtpu"}, &tpu.Stats{APIVersion: "0.1"}
		return Explain(programKey(tpu.Request{Program: []byte(keyProgram), Target: tpu.TargetOf(one)}, pl, facts),
			programKey(tpu.Request{Program: []byte(keyProgram), Target: tpu.TargetOf(c)}, pl, facts))
	}
	require.Empty(t, key("v6e:1x1"))
	require.Equal(t, []string{"topology: v6e:1x1 -> v6e:2x2"}, key("v6e:2x2"))
}

func TestShortList(t *testing.T) {
	require.Equal(t, "", shortList(nil))
	require.Equal(t, "a, b", shortList([]string{"a", "b"}))
	long := func(last string) string {
		var list []string
		for i := range 200 {
			list = append(list, fmt.Sprintf("%dxf32", i))
		}
		return shortList(append(list, last))
	}
	require.Less(t, len(long("x")), maxValue+60)
	require.Contains(t, long("x"), "0xf32, 1xf32, ")
	require.Contains(t, long("x"), "201 in all")
	require.NotEqual(t, long("x"), long("y"))
}

// A file's digest is kept by its identity, once it is too old to change unseen, whatever its time of modification says. A cache that cannot keep it has
// nothing to say of that.
func TestFileDigest(t *testing.T) {
	var told []string
	c, err := OpenCache(CacheOptions{Dir: t.TempDir(), Notify: func(line string) { told = append(told, line) }})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "f")
	computed := 0
	digest := func(c *Cache) string {
		d, err := c.fileDigest(t.Context(), "bytes", path, func() (string, error) { computed++; return bytesDigest(path) })
		require.NoError(t, err)
		return d
	}
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
	if identityOf(path) == "" {
		t.Skip("left out: this system does not tell a file's identity")
	}
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	first := digest(c)
	require.Equal(t, first, digest(c))
	require.Equal(t, 2, computed, "a file that has just changed may change again unseen")
	time.Sleep(settles + 100*time.Millisecond)
	tmp := filepath.Join(c.store.Dir(), "v1", "tmp")
	require.NoError(t, os.MkdirAll(filepath.Dir(tmp), 0o755))
	require.NoError(t, os.WriteFile(tmp, nil, 0o600)) // no folder, so that nobody can write here
	require.Equal(t, first, digest(c))
	require.Equal(t, first, digest(c))
	require.Equal(t, 4, computed)
	require.Empty(t, told)
	require.NoError(t, os.Remove(tmp))
	require.Equal(t, first, digest(c))
	require.Equal(t, first, digest(c))
	require.Equal(t, 5, computed)
	require.NoError(t, os.WriteFile(path, []byte("two"), 0o600))
	require.NoError(t, os.Chtimes(path, old, old)) // the same size and time of modification
	require.NotEqual(t, first, digest(c))
	require.Equal(t, 6, computed)
	c.o.VerifyDigest = true
	digest(c)
	digest(c)
	require.Equal(t, 8, computed)
}
