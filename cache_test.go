package tpuc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tpuc"
	"tpuc/cache"
	"tpuc/tpu"
	"tpuc/tpu/artifact"
	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
)

// envCompile holds a compileOrder as JSON: the test binary is then a process that compiles, as tpuc compile does.
const envCompile = "TPUC_TEST_COMPILE"

type compileOrder struct{ Model, Output, Cache string }

// compileInChild is what such a process does, and its exit status.
func compileInChild(order string) int {
	err := func() error {
		var o compileOrder
		if err := json.Unmarshal([]byte(order), &o); err != nil {
			return err
		}
		c, err := tpuc.OpenCache(tpuc.CacheOptions{Dir: o.Cache})
		if err != nil {
			return err
		}
		r, err := tpuc.Compile(context.Background(), o.Model, tpuc.CompileOptions{Output: o.Output, Cache: c, Plugin: plugin.Options{Quiet: true}})
		if err != nil {
			return err
		}
		fmt.Println(r.Cache.Programs[0].Key, r.Cache.Programs[0].Hit)
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// newCache is a cache of the test's own.
func newCache(t testing.TB, o tpuc.CacheOptions) *tpuc.Cache {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c, err := tpuc.OpenCache(o)
	require.NoError(t, err)
	return c
}

// cosmetic is a model of testdata/cosmetic.
func cosmetic(name string) string { return filepath.Join("testdata", "cosmetic", name+".pt2.gz") }

// C1: one model in 20 fresh processes with other folders, environments and numbers of threads: one key, one program, one manifest. Each has a cache of
// its own and compiles.
func TestKeysAreTheSameEverywhere(t *testing.T) {
	needPlugin(t, plugin.CPU)
	exe, err := os.Executable()
	require.NoError(t, err)
	model, err := filepath.Abs(cosmetic("base"))
	require.NoError(t, err)
	shared, err := plugin.CacheDir(plugin.Options{})
	require.NoError(t, err)
	var key, program, manifest string
	for i := range 20 {
		dir := filepath.Join(t.TempDir(), strings.Repeat("x", i+1))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		order, err := json.Marshal(compileOrder{Model: model, Output: "out.tpuc", Cache: filepath.Join(dir, "cache")})
		require.NoError(t, err)
		c := exec.CommandContext(t.Context(), exe)
		c.Dir = dir
		c.Env = []string{envCompile + "=" + string(order), "HOME=" + dir, "TMPDIR=" + dir, fmt.Sprintf("GOMAXPROCS=%d", i%4+1), fmt.Sprintf("TZ=Etc/GMT-%d", i%12),
			"LANG=de_DE.UTF-8", fmt.Sprintf("XLA_FLAGS=--xla_stray=%d", i), plugin.EnvCache + "=" + shared, "PATH=" + os.Getenv("PATH")}
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		require.NoError(t, err, stderr.String())
		a, err := artifact.Open(filepath.Join(dir, "out.tpuc"))
		require.NoError(t, err)
		p, err := a.Section(artifact.ProgramSection(0))
		require.NoError(t, err)
		m, err := a.Section(artifact.ManifestSection)
		require.NoError(t, err)
		if i == 0 {
			key, program, manifest = string(out), string(p), string(m)
		}
		require.Equal(t, key, string(out))
		require.Contains(t, string(out), " false", "it was compiled")
		require.Equal(t, program, string(p))
		require.Equal(t, manifest, string(m))
		require.NoError(t, a.Close())
	}
}

// Several processes that want one program at once compile it once; the others wait and take it.
func TestProcessesShareACompile(t *testing.T) {
	needPlugin(t, plugin.CPU)
	exe, err := os.Executable()
	require.NoError(t, err)
	model, err := filepath.Abs(cosmetic("base"))
	require.NoError(t, err)
	shared, err := plugin.CacheDir(plugin.Options{})
	require.NoError(t, err)
	dir := t.TempDir()
	outs := make([]string, 4)
	var g errgroup.Group
	for i := range outs {
		g.Go(func() error {
			order, err := json.Marshal(compileOrder{Model: model, Output: filepath.Join(dir, fmt.Sprintf("%d.tpuc", i)), Cache: filepath.Join(dir, "cache")})
			if err != nil {
				return err
			}
			c := exec.CommandContext(t.Context(), exe)
			c.Env = []string{envCompile + "=" + string(order), "HOME=" + dir, plugin.EnvCache + "=" + shared}
			out, err := c.Output()
			outs[i] = string(out)
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, 3, strings.Count(strings.Join(outs, ""), " true"), outs)
}

// What changes nothing of the computation compiles nothing again; what changes it does.
func TestCosmeticChanges(t *testing.T) {
	needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{Explain: true})
	key := ""
	for _, v := range []struct {
		name string
		same bool
	}{{"base", true}, {"again", true}, {"renamed", true}, {"moved", true}, {"reordered", true}, {"weights", true}, {"different", false}} {
		r, err := tpuc.Compile(t.Context(), cosmetic(v.name), tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c})
		require.NoError(t, err)
		got := r.Cache.Programs[0]
		if key == "" {
			key = got.Key
			require.False(t, got.Hit)
			continue
		}
		require.Equal(t, v.same, got.Hit, v.name)
		require.Equal(t, v.same, got.Key == key, v.name)
		if !v.same {
			require.Len(t, got.Why, 1)
			require.Contains(t, got.Why[0], "program: ")
		}
	}
}

// S1: two checkpoints of one model share an executable, and each computes with its own weights.
func TestCheckpointsShareAProgram(t *testing.T) {
	needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{})
	for i, name := range []string{"base", "weights", "renamed", "reordered"} {
		for again := range 2 { // the second time by the fast path
			calls, err := tpuc.OpenCalls(tpuc.CallOptions{Inputs: []string{"testdata/cosmetic/inputs.safetensors"},
				Expected: []string{"testdata/cosmetic/" + name + "_outputs.safetensors"}})
			require.NoError(t, err)
			m, err := tpuc.Open(t.Context(), cosmetic(name), tpuc.OpenOptions{Cache: c, Shapes: calls.Shapes(nil)})
			require.NoError(t, err)
			require.Equal(t, i > 0 || again > 0, m.Report.Cache.Programs[0].Hit)
			require.Equal(t, again > 0, m.Report.Cache.Unchanged)
			s, err := m.Session(t.Context())
			require.NoError(t, err)
			_, err = calls.Run(t.Context(), s)
			require.NoError(t, err, "%s gives its own numbers", name)
			s.Close()
			require.NoError(t, m.Close())
			require.NoError(t, calls.Close())
		}
	}
	base, err := os.ReadFile("testdata/cosmetic/base_outputs.safetensors")
	require.NoError(t, err)
	other, err := os.ReadFile("testdata/cosmetic/weights_outputs.safetensors")
	require.NoError(t, err)
	require.NotEqual(t, base, other)
}

// C3: a second process finds the program; where the processor's features are others it is compiled for those, and the reason names them; then it is found again.
func TestProcessorFeatures(t *testing.T) {
	needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{Explain: true})
	compile := func() *tpuc.CacheReport {
		r, err := tpuc.Compile(t.Context(), cosmetic("base"), tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c})
		require.NoError(t, err)
		return r.Cache
	}
	require.False(t, compile().Programs[0].Hit)
	require.True(t, compile().Unchanged)

	list, err := c.Store().List()
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(i cache.Info) bool { return i.Key.Kind == "plugin" })
	e, err := c.Store().Get(t.Context(), list[i].Key)
	require.NoError(t, err)
	sections := e.Sections()
	var facts tpu.Stats
	require.NoError(t, json.Unmarshal(sections[0].Data, &facts))
	gone := facts.Features[0]
	facts.Features = append(facts.Features[1:], "+future")
	data, err := json.Marshal(facts)
	require.NoError(t, err)
	require.NoError(t, c.Store().Put(t.Context(), list[i].Key, []cache.Section{{Name: sections[0].Name, Data: data}}))
	require.NoError(t, e.Close())

	r := compile()
	require.False(t, r.Unchanged)
	require.False(t, r.Programs[0].Hit)
	require.Equal(t, []string{"cpu_features: without " + gone + "; with +future"}, r.Programs[0].Why)
	require.True(t, compile().Unchanged, "and not a miss for ever")
}

// C8: a program for another topology is a miss that names it, and each topology finds its own again.
func TestTopologies(t *testing.T) {
	needPlugin(t, plugin.TPU)
	c := newCache(t, tpuc.CacheOptions{Explain: true})
	compile := func(target string) (*tpuc.CacheReport, *artifact.Artifact) {
		tg, err := chip.Parse(target)
		require.NoError(t, err)
		o := tpuc.CompileOptions{Target: tg, Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c, EmbedWeights: true} // asks for programs alone
		r, err := tpuc.Compile(t.Context(), "testdata/models/mlp/model.pt2", o)
		require.NoError(t, err)
		a, err := artifact.Open(o.Output)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, a.Close()) })
		return r.Cache, a
	}
	made := make(map[string]*artifact.Artifact)
	for i, target := range []string{"v6e:1x1", "v5e:1x1"} {
		r, a := compile(target)
		require.False(t, r.Programs[0].Hit, target)
		if i > 0 {
			require.Contains(t, r.Programs[0].Why, "topology: v6e:1x1 -> v5e:1x1")
		}
		made[target] = a
	}
	for target, first := range made {
		r, a := compile(target)
		require.True(t, r.Programs[0].Hit, target)
		require.Equal(t, target, a.Manifest.Target.Name)
		code, err := a.Section(artifact.ExecutableSection(0))
		require.NoError(t, err)
		want, err := first.Section(artifact.ExecutableSection(0))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, code), target)
	}
}

// C4: a plugin of other contents that reports the same version compiles anew.
func TestOtherPluginOfTheSameVersion(t *testing.T) {
	pl := needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{Explain: true})
	data, err := os.ReadFile(pl.Path)
	require.NoError(t, err)
	compile := func(library string) *tpuc.CacheReport {
		r, err := tpuc.Compile(t.Context(), cosmetic("base"), tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c,
			Plugin: plugin.Options{Library: library, Quiet: true, CacheDir: t.TempDir()}})
		require.NoError(t, err)
		return r.Cache
	}
	library := filepath.Join(t.TempDir(), "pjrt_c_api_cpu_plugin.so")
	require.NoError(t, os.WriteFile(library, data, 0o755))
	require.False(t, compile(library).Programs[0].Hit)
	require.True(t, compile(library).Unchanged)
	require.NoError(t, os.WriteFile(library, append(data, "\nanother build"...), 0o755))
	r := compile(library)
	require.False(t, r.Programs[0].Hit)
	require.NotEmpty(t, r.Programs[0].Why)
	for _, why := range r.Programs[0].Why { // an unknown library is named by its file
		require.True(t, strings.HasPrefix(why, "plugin_sha256: ") || strings.HasPrefix(why, "plugin: "), why)
	}
}

// An artifact from the cache is the same file, byte for byte, for one program and for several.
func TestUnchangedModelGivesTheSameArtifact(t *testing.T) {
	needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{})
	for _, o := range []struct {
		model string
		tpuc.CompileOptions
	}{
		{model: cosmetic("base")},
		{model: "testdata/models/mlp_dynamic/model.pt2", CompileOptions: tpuc.CompileOptions{Dims: map[string][]int64{"s77": {8, 2}}, Jobs: 2}},
		{model: "testdata/models/qwen3_decode/model.pt2"},
	} {
		var first []byte
		for i := range 3 {
			o := o
			o.Output, o.Cache = filepath.Join(t.TempDir(), "out.tpuc"), c
			if i == 2 {
				o.Verify = true // the order of sizes and what is in no key do not matter
				for name, sizes := range o.Dims {
					o.Dims = map[string][]int64{name: {sizes[1], sizes[0]}}
				}
			}
			r, err := tpuc.Compile(t.Context(), o.model, o.CompileOptions)
			require.NoError(t, err)
			require.Equal(t, i > 0, r.Cache.Unchanged)
			data, err := os.ReadFile(o.Output)
			require.NoError(t, err)
			if i == 0 {
				first = data
			}
			require.True(t, bytes.Equal(first, data), "%s, time %d", o.model, i)
		}
	}
}

// S5: what fails or is interrupted is not kept, and the next compile goes well.
func TestFailuresAreNotKept(t *testing.T) {
	needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{})
	o := tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c, CrashDir: t.TempDir()}
	slow := o
	slow.Timeout = time.Microsecond
	_, err := tpuc.Compile(t.Context(), cosmetic("base"), slow)
	require.ErrorContains(t, err, "timed out")
	ctx, cancel := context.WithCancel(t.Context())
	o.Notify = func(phase string) {
		if phase == tpuc.PhaseCompile {
			cancel()
		}
	}
	_, err = tpuc.Compile(ctx, cosmetic("base"), o)
	require.ErrorIs(t, err, context.Canceled)
	list, err := c.Store().List()
	require.NoError(t, err)
	require.NotContains(t, kinds(list), "program")
	require.NotContains(t, kinds(list), "model")
	o.Notify = nil
	r, err := tpuc.Compile(t.Context(), cosmetic("base"), o)
	require.NoError(t, err)
	require.False(t, r.Cache.Programs[0].Hit)
}

func kinds(list []cache.Info) (out []string) {
	for _, i := range list {
		out = append(out, i.Key.Kind)
	}
	return out
}

// The time limit is of waiting for another process too, and the error says for whom.
func TestTimeLimitOfAWait(t *testing.T) {
	needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{})
	o := tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c, Timeout: time.Minute}
	_, err := tpuc.Compile(t.Context(), cosmetic("base"), o)
	require.NoError(t, err)
	list, err := c.Store().List()
	require.NoError(t, err)
	var program cache.Key
	for _, i := range list {
		switch i.Key.Kind {
		case "program":
			program = i.Key
			require.NoError(t, os.Remove(i.Path))
		case "model":
			require.NoError(t, os.Remove(i.Path))
		}
	}
	holding, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = newCache(t, tpuc.CacheOptions{Dir: filepath.Dir(c.Store().Dir())}).Store().Do(context.Background(), program, func(context.Context) ([]cache.Section, error) {
			close(holding)
			<-release
			return nil, errors.New("given up")
		})
	}()
	<-holding
	o.Timeout = 300 * time.Millisecond
	_, err = tpuc.Compile(t.Context(), cosmetic("base"), o)
	var held *cache.HeldError
	require.ErrorAs(t, err, &held)
	require.ErrorContains(t, err, fmt.Sprintf("process %d (since ", os.Getpid()))
	require.ErrorContains(t, err, "after a wait of 300ms: raise the time limit")
	close(release)
	<-done
	o.Timeout = time.Minute
	_, err = tpuc.Compile(t.Context(), cosmetic("base"), o)
	require.NoError(t, err)
}

// S4: a damaged entry is a warning, moved away, and compiled anew.
func TestDamagedEntries(t *testing.T) {
	needPlugin(t, plugin.CPU)
	var warnings []string
	c := newCache(t, tpuc.CacheOptions{Notify: func(line string) { warnings = append(warnings, line) }})
	o := tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c}
	_, err := tpuc.Compile(t.Context(), cosmetic("base"), o)
	require.NoError(t, err)
	list, err := c.Store().List()
	require.NoError(t, err)
	for _, i := range list {
		data, err := os.ReadFile(i.Path)
		require.NoError(t, err)
		data[len(data)-1] ^= 1
		require.NoError(t, os.WriteFile(i.Path, data, 0o600))
	}
	r, err := tpuc.Compile(t.Context(), cosmetic("base"), o)
	require.NoError(t, err)
	require.False(t, r.Cache.Unchanged)
	require.False(t, r.Cache.Programs[0].Hit)
	require.NotEmpty(t, warnings)
	require.Contains(t, strings.Join(warnings, "\n"), "quarantine")
	r, err = tpuc.Compile(t.Context(), cosmetic("base"), o)
	require.NoError(t, err)
	require.True(t, r.Cache.Unchanged)
}

// Entries that are whole and hold something else, or less, are treated as damaged, and cost a compile and a warning once.
func TestForeignEntries(t *testing.T) {
	needPlugin(t, plugin.CPU)
	x := func(name, data string) cache.Section { return cache.Section{Name: name, Data: []byte(data)} }
	for _, v := range []struct {
		kind     string
		sections []cache.Section
		embed    bool // so that the cache is not asked for the model
		want     string
	}{
		{"model", []cache.Section{x("model.json", "[]")}, false, "model.json: json: cannot unmarshal array"},
		{"model", []cache.Section{x("model.json", "{}")}, false, "model.json has no report"},
		{"model", nil, false, `has no section "program-0.mlir"`}, // model.json alone
		{"program", []cache.Section{x("executable", "x"), x("stats.json", "[]")}, true, "stats.json: json: cannot unmarshal array"},
		{"program", []cache.Section{x("executable", "x"), x("stats.json", "[]")}, false, "stats.json: json: cannot unmarshal array"},
		{"program", []cache.Section{x("executable", "x")}, true, `has no section "stats.json"`},
		{"program", []cache.Section{x("executable", "x")}, false, `has no section "stats.json"`},
		{"program", []cache.Section{x("stats.json", "{}")}, false, `has no section "executable"`},
		{"plugin", []cache.Section{x("stats.json", "[]")}, true, "stats.json: json: cannot unmarshal array"},
	} {
		t.Run(v.kind+" "+v.want, func(t *testing.T) {
			var told []string
			c := newCache(t, tpuc.CacheOptions{Notify: func(line string) { told = append(told, line) }})
			o := tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "a.tpuc"), Cache: c, EmbedWeights: v.embed}
			model := filepath.Join("testdata", "models", "mlp", "model.pt2")
			_, err := tpuc.Compile(t.Context(), model, o)
			require.NoError(t, err)
			list, err := c.Store().List()
			require.NoError(t, err)
			for _, i := range list {
				if i.Key.Kind != v.kind {
					continue
				}
				sections := v.sections
				if sections == nil {
					e, err := c.Store().Get(t.Context(), i.Key)
					require.NoError(t, err)
					data, err := e.Section("model.json")
					require.NoError(t, err)
					sections = []cache.Section{x("model.json", string(data))}
					require.NoError(t, e.Close())
				}
				require.NoError(t, c.Store().Put(t.Context(), i.Key, sections))
			}
			for again := range 2 {
				told = nil
				_, err = tpuc.Compile(t.Context(), model, o)
				require.NoError(t, err)
				if again > 0 {
					require.Empty(t, told)
				} else {
					require.Contains(t, strings.Join(told, "\n"), v.want)
					require.Contains(t, strings.Join(told, "\n"), "quarantine")
				}
				a, err := artifact.Open(o.Output)
				require.NoError(t, err)
				require.NoError(t, a.Verify())
				code, err := a.Section(artifact.ExecutableSection(0))
				require.NoError(t, err)
				require.NotEqual(t, "x", string(code))
				require.NoError(t, a.Close())
			}
		})
	}
}

// A plan says what a compile then does.
func TestPlan(t *testing.T) {
	needPlugin(t, plugin.CPU)
	c := newCache(t, tpuc.CacheOptions{Explain: true})
	o := tpuc.CompileOptions{Output: filepath.Join(t.TempDir(), "out.tpuc"), Cache: c, Dims: map[string][]int64{"s77": {2, 4}}}
	const model = "testdata/models/mlp_dynamic/model.pt2"
	plan, err := tpuc.MakePlan(t.Context(), model, o)
	require.NoError(t, err)
	require.Equal(t, 2, plan.Compiles())
	r, err := tpuc.Compile(t.Context(), model, o)
	require.NoError(t, err)
	for i, p := range r.Cache.Programs {
		require.Equal(t, plan.Programs[i].Key, p.Key)
		require.False(t, p.Hit)
	}
	o.Dims["s77"] = []int64{4, 2, 3}
	plan, err = tpuc.MakePlan(t.Context(), model, o)
	require.NoError(t, err)
	require.False(t, plan.Unchanged)
	require.Equal(t, []string{"dims: s77=2,4 -> s77=2,3,4"}, plan.Why)
	require.Equal(t, 1, plan.Compiles())
	_, err = tpuc.MakePlan(t.Context(), model, tpuc.CompileOptions{})
	require.Error(t, err)
}

// BenchmarkUnchanged is a compile of a model that has not changed, the artifact written included.
func BenchmarkUnchanged(b *testing.B) {
	needPlugin(b, plugin.CPU)
	run := func(name, model string, o tpuc.CompileOptions) {
		b.Run(name, func(b *testing.B) {
			o.Cache = newCache(b, tpuc.CacheOptions{})
			o.Output = filepath.Join(b.TempDir(), "out.tpuc")
			_, err := tpuc.Compile(b.Context(), model, o)
			require.NoError(b, err)
			for b.Loop() {
				r, err := tpuc.Compile(b.Context(), model, o)
				if err != nil || !r.Cache.Unchanged {
					b.Fatal(errors.Join(err, errors.New("it was compiled")))
				}
			}
		})
	}
	dir := needCases(b)
	models, err := filepath.Glob(filepath.Join(dir, "first", "*", "model.pt2"))
	require.NoError(b, err)
	for _, m := range models {
		name := filepath.Base(filepath.Dir(m))
		if !strings.Contains(name, "dynamic") && !strings.Contains(name, "unsupported") { // those need sizes, or are refused
			run(name, m, tpuc.CompileOptions{})
		}
	}
	large, _ := largeArchive(b, 1<<30)
	run("1GB", large, tpuc.CompileOptions{})
}
