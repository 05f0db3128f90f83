package tpuc

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"tpuc/cache"
	"tpuc/internal/processor"
	"tpuc/lower"
	"tpuc/tpu"
	"tpuc/tpu/plugin"
)

// Kinds of entries that compiles keep.
const (
	kindProgram = "program" // what a plugin made of a program
	kindModel   = "model"   // what tpuc made of a model, but for executables
	kindPlugin  = "plugin"  // what a plugin says of itself on a machine
	kindFile    = "file"    // the digest of a file, by its identity
)

// CacheKinds are the kinds of entries that compiles keep.
var CacheKinds = []string{kindProgram, kindModel, kindPlugin, kindFile}

// notInKeys are the fields of options that no key holds, with the reason. All others are in one: a field that is in neither fails a test.
var notInKeys = map[string]string{
	"CompileOptions.Output":   "where the artifact goes changes nothing in it",
	"CompileOptions.Text":     "where text goes; a compile that leaves text does not ask the cache for the model",
	"CompileOptions.To":       "a compile that ends early does not ask the cache for the model",
	"CompileOptions.DumpDir":  "a compile that dumps does not ask the cache for the model",
	"CompileOptions.CrashDir": "reproducers of crashes, which are never kept",
	"CompileOptions.Timeout":  "a compile that ends in time is the same whatever time it had",
	"CompileOptions.Verify":   "checks modules and changes none",
	"CompileOptions.Notify":   "tells what happens",
	"CompileOptions.Exe":      "the child is another program with the same package tpu, whose version is in the key",
	"CompileOptions.Jobs":     "how many programs are compiled at a time",
	"CompileOptions.Cache":    "where entries are, not what they are",

	"CompileOptions.Examples":      "put beside what is kept, when the artifact is written",
	"CompileOptions.DigestWeights": "recorded when the artifact is written, from the model's file as it is then",
	"CompileOptions.EmbedWeights":  "a compile that embeds weights does not ask the cache for the model; the program says how they lie",

	"Shapes.Inputs": "a function; Shapes.Given stands for it, and without that the cache is not asked for the model",

	"plugin.Options.CacheDir": "where plugins are; the plugin's digest is in the key",
	"plugin.Options.Library":  "the plugin's digest is in the key",
	"plugin.Options.Offline":  "the plugin's digest is in the key",
	"plugin.Options.Quiet":    "tells what happens",
	"plugin.Options.Progress": "tells what happens",
	"plugin.Options.Lookup":   "stands for the environment, which says where plugins are",

	"tpu.Request.PluginPath": "the plugin's digest is in the key",
	"tpu.Request.Timeout":    "a compile that ends in time is the same whatever time it had",
	"tpu.Request.Exe":        "see CompileOptions.Exe",
	"tpu.Request.CrashDir":   "reproducers of crashes, which are never kept",
	"tpu.Request.OnPhase":    "tells what happens",
}

// compilerVersion is of the way to compile, and of what is kept of a compile beside the executable: an entry without a field of it is of no use.
var compilerVersion = tpu.Version + " " + tpu.Settings() + " " + typeDigest(reflect.TypeFor[tpu.Stats]())

// typeDigest tells types apart by their fields, to the bottom.
func typeDigest(t reflect.Type) string {
	var text func(t reflect.Type) string
	text = func(t reflect.Type) string {
		switch t.Kind() {
		case reflect.Struct:
			s := "{"
			for i := range t.NumField() {
				f := t.Field(i)
				s += f.Name + " " + text(f.Type) + " " + string(f.Tag) + ";"
			}
			return s + "}"
		case reflect.Slice, reflect.Array, reflect.Pointer, reflect.Map:
			return t.Kind().String() + " " + text(t.Elem())
		}
		return t.Kind().String()
	}
	sum := sha256.Sum256([]byte(text(t)))
	return hex.EncodeToString(sum[:4])
}

// parts collects a key's parts.
type parts []cache.Part

func (p *parts) add(name, value string) { *p = append(*p, cache.Part{Name: name, Value: value}) }

// programKey names everything that the executable of the request's program depends on. facts are the plugin's on this machine.
func programKey(req tpu.Request, pl *plugin.Plugin, facts *tpu.Stats) cache.Key {
	var p parts
	args, results := lower.Signature(req.Program)
	p.add("program", lower.Digest(req.Program))
	p.add("arguments", shortList(args))
	p.add("results", shortList(results))
	p.add("platform", req.Target.Platform)
	p.add("topology", req.Target.Topology)
	p.add("chip_config", req.Target.ChipConfig)
	p.add("devices", fmt.Sprint(req.Target.Devices))
	p.add("partitions", fmt.Sprint(max(req.Options.NumPartitions, 1)))
	p.add("xla_flags", strings.Join(req.Options.XLAFlags, " "))
	p.add("libtpu_args", strings.Join(req.Options.LibtpuArgs, " "))
	p.add("env", shortList(req.Options.Env))
	p.plugin(req.Target.Platform, pl, facts)
	p.add("compiler", compilerVersion)
	return cache.Key{Kind: kindProgram, Parts: p}
}

// plugin adds the plugin and, where it compiles for this machine's processor, that.
func (p *parts) plugin(platform string, pl *plugin.Plugin, facts *tpu.Stats) {
	p.add("plugin", strings.TrimSpace(pl.Name+" "+pl.Version))
	p.add("plugin_sha256", pl.Digest)
	p.add("plugin_api", facts.APIVersion)
	p.add("plugin_build", facts.PlatformVersion)
	if platform == tpu.CPU {
		p.add("processor", cmp.Or(facts.Processor, processor.Here()))
		p.add("cpu_features", strings.Join(facts.Features, " "))
		p.add("cpu_cores", fmt.Sprint(runtime.NumCPU()))
	}
}

// modelKey names everything that the artifact of the model at path depends on, given the model's digest. self is the digest of this program.
func modelKey(path, digest, self string, o *CompileOptions, pl *plugin.Plugin, facts *tpu.Stats) cache.Key {
	var p parts
	p.add("model", digest)
	p.add("name", filepath.Base(path)) // stands in the artifact
	p.add("dims", dimsText(o))
	p.add("shapes", o.Shapes.Given)
	custom := ""
	if o.Shapes.Custom != nil {
		custom = o.Shapes.Custom.Digest
	}
	p.add("custom_ops", custom)
	p.add("target", o.Target.String())
	p.add("below", dimsText(&CompileOptions{Shapes: Shapes{Dims: o.below}})) // decides what is said of padding
	p.add("runs_here", fmt.Sprint(o.runs))                                   // what runs here at once is not looked at for padding
	p.plugin(o.Target.Platform(), pl, facts)
	p.add("tpuc", Version)
	p.add("tpuc_sha256", self) // the front end, the passes and lowering
	return cache.Key{Kind: kindModel, Parts: p}
}

// dimsText is the sizes of symbolic dimensions, "batch=1,4 seq=8".
func dimsText(o *CompileOptions) string {
	sizes := maps.Clone(o.Dims)
	if len(o.Shapes.Dims) > 0 {
		sizes = make(map[string][]int64)
		for name, n := range o.Shapes.Dims {
			sizes[name] = []int64{n}
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		list := slices.Compact(slices.Sorted(slices.Values(sizes[name])))
		out = append(out, name+"="+strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]"))
	}
	return strings.Join(out, " ")
}

// maxValue is how long a list in a key may be before it is shortened to its beginning and a digest.
const maxValue = 240

// shortList is a list as a key holds it.
func shortList(list []string) string {
	s := strings.Join(list, ", ")
	if len(s) <= maxValue {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	cut := strings.LastIndex(s[:maxValue], ", ")
	return fmt.Sprintf("%s, ... %d in all, sha256 %s", s[:max(cut, 0)], len(list), hex.EncodeToString(sum[:8]))
}
