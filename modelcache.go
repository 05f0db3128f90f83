package tpuc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tpuc/cache"
	"tpuc/frontend/weights"
	"tpuc/internal/fileid"
	"tpuc/internal/mmap"
	"tpuc/ir"
	"tpuc/ir/tensor"
	"tpuc/tpu"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// Sections of a model's entry, beside its programs' texts and the contents of its constants.
const sectionModel = "model.json" // keptModel

// keptModel is what an unchanged model is packed from again, together with the programs' own entries.
type keptModel struct {
	Manifest artifact.Manifest `json:"manifest"`
	Programs []cache.Key       `json:"programs"` // of the manifest's programs
	Report   *Report           `json:"report"`   // before anything was written
}

// readModel is what an entry of a model holds.
func readModel(e *cache.Entry) (*keptModel, error) {
	kept := new(keptModel)
	if err := readJSON(e, sectionModel, kept); err != nil {
		return nil, err
	}
	if n := len(kept.Manifest.Programs); kept.Report == nil || len(kept.Programs) != n || len(kept.Report.Programs) != 0 && len(kept.Report.Programs) != n {
		return nil, fmt.Errorf("%s has no report of each of its %d programs", sectionModel, n)
	}
	return kept, nil
}

// asksForModel says that options let the cache be asked for the whole model: an artifact without weights is wanted, and nothing on the way to it.
func (c *Cache) asksForModel(o *CompileOptions) bool {
	custom := o.Shapes.Custom == nil || o.Shapes.Custom.Digest != ""
	shapes := o.Shapes.Inputs == nil || o.Shapes.Given != ""
	return c != nil && (o.To == "" || o.To == PhasePack) && o.DumpDir == "" && !o.EmbedWeights && custom && shapes
}

// modelKey is the key of the model at path. It does nothing that takes long: where the plugin is not on this machine, or was never asked about
// itself, there is no key yet, and nothing can have been kept.
func (c *Cache) modelKey(ctx context.Context, path string, o *CompileOptions) (k cache.Key, pl *plugin.Plugin, ok bool) {
	local := o.Plugin
	local.Offline, local.Quiet = true, true
	pl, err := plugin.Locate(ctx, plugin.Kind(o.Target.Platform()), local)
	if err != nil {
		return k, nil, false
	}
	e, err := c.store.Get(ctx, factsKey(o.Target.Platform(), pl))
	if err != nil {
		return k, nil, false
	}
	defer e.Close()
	facts := new(tpu.Stats)
	if readJSON(e, sectionStats, facts) != nil {
		return k, nil, false
	}
	digest, err := c.modelDigest(ctx, path)
	if err != nil {
		return k, nil, false // the front end tells what is wrong with the file
	}
	self, err := c.selfDigest(ctx)
	if err != nil {
		return k, nil, false
	}
	return modelKey(path, digest, self, o, pl, facts), pl, true
}

// unchanged packs a model that was compiled before, with the same options, plugin, processor and tpuc: neither front end nor passes nor plugin are
// asked. It is false where anything is missing.
func (c *Cache) unchanged(ctx context.Context, path string, o *CompileOptions) (*Report, bool, error) {
	if o.Output == "" || !c.asksForModel(o) {
		return nil, false, nil
	}
	watch := startWatch()
	k, _, ok := c.modelKey(ctx, path, o)
	if !ok {
		return nil, false, nil
	}
	e, err := c.store.Get(ctx, k)
	if err != nil {
		return nil, false, ctx.Err()
	}
	defer e.Close()
	kept, err := readModel(e)
	if err != nil {
		c.store.Reject(e, err)
		return nil, false, nil
	}
	contents, release, ok := c.contents(ctx, e, kept)
	defer release()
	if !ok {
		return nil, false, ctx.Err()
	}
	report := kept.Report
	report.Phases = []PhaseTime{watch.stop(phaseCache)}
	report.found(kept.Programs)
	if o.Notify != nil {
		o.Notify(PhasePack)
	}
	watch = startWatch()
	err = writeArtifact(ctx, path, o, &artifact.Part{Manifest: kept.Manifest, Contents: contents}, report)
	report.Phases = append(report.Phases, watch.stop(PhasePack))
	return report, true, err
}

// phaseCache is the one phase before packing of a model that has not changed.
const phaseCache = "cache"

// contents are the bytes of a kept model's artifact, valid until release. It is false where a program is no longer kept, or something is not as tpuc
// writes it.
func (c *Cache) contents(ctx context.Context, e *cache.Entry, kept *keptModel) (out artifact.Contents, release func(), ok bool) {
	var open []*cache.Entry
	release = func() {
		for _, e := range open {
			e.Close()
		}
	}
	for i, k := range kept.Programs {
		p, err := c.store.Get(ctx, k)
		if err != nil {
			return out, release, false
		}
		open = append(open, p)
		exe, err := p.Section(sectionExecutable)
		if err == nil {
			err = readJSON(p, sectionStats, new(tpu.Stats))
		}
		if err != nil {
			c.store.Reject(p, err)
			return out, release, false
		}
		text, err := e.Section(artifact.ProgramSection(i)) // with this model's own locations
		if err != nil {
			c.store.Reject(e, err)
			return out, release, false
		}
		out.Programs = append(out.Programs, artifact.ProgramContents{Program: text, Executable: exe})
	}
	load := func(kind string, list []artifact.Weight) (func(int) (*tensor.Tensor, error), error) {
		tensors := make([]*tensor.Tensor, len(list)) // nil: by reference
		for i, w := range list {
			if w.Class != ir.Constant.String() {
				continue
			}
			t, err := w.Tensor()
			if err != nil {
				return nil, err
			}
			data, err := e.Section(sectionTensor(kind, i))
			if err == nil && int64(len(data)) != t.Bytes() {
				err = fmt.Errorf("%s %d has %d bytes, wanted %d", kind, i, len(data), t.Bytes())
			}
			if err != nil {
				return nil, err
			}
			tensors[i] = &tensor.Tensor{Type: t, Data: data}
		}
		return func(i int) (*tensor.Tensor, error) { return tensors[i], nil }, nil
	}
	var errs [2]error
	out.Constants, errs[0] = load(artifact.KindConstant, kept.Manifest.Constants)
	out.State, errs[1] = load(artifact.KindState, kept.Manifest.State)
	if err := errors.Join(errs[:]...); err != nil {
		c.store.Reject(e, err)
		return out, release, false
	}
	if graph, err := e.Section(artifact.GraphSection); err == nil { // a model in textual form has none
		out.Graph = graph
	}
	return out, release, true
}

func sectionTensor(kind string, i int) string { return fmt.Sprintf("%s-%d.bin", kind, i) }

// keep keeps what the model's artifact p was packed from. seen is the model's file as it was before it was read. That an entry cannot be kept is a
// warning of the store and no error.
func (c *Cache) keep(ctx context.Context, path string, o *CompileOptions, seen identity, p *artifact.Part, programs []cache.Key, report *Report) error {
	if !c.asksForModel(o) || seen == "" || identityOf(path) != seen {
		return nil
	}
	for _, k := range programs {
		if k.Kind == "" { // the plugin could not be asked about itself
			return nil
		}
	}
	k, _, ok := c.modelKey(ctx, path, o)
	if !ok {
		return ctx.Err()
	}
	r := *report
	r.Log, r.Output = "", ""
	data, err := json.Marshal(keptModel{p.Manifest, programs, &r})
	if err != nil {
		return err
	}
	sections := []cache.Section{{Name: sectionModel, Data: data}}
	for i, x := range p.Contents.Programs {
		sections = append(sections, cache.Section{Name: artifact.ProgramSection(i), Data: x.Program})
	}
	for _, l := range []struct {
		kind string
		list []artifact.Weight
		load func(int) (*tensor.Tensor, error)
	}{{artifact.KindConstant, p.Manifest.Constants, p.Contents.Constants}, {artifact.KindState, p.Manifest.State, p.Contents.State}} {
		for i, w := range l.list {
			if w.Class != ir.Constant.String() {
				continue
			}
			t, err := l.load(i)
			if err != nil {
				return err
			}
			sections = append(sections, cache.Section{Name: sectionTensor(l.kind, i), Data: t.Data})
		}
	}
	if len(p.Contents.Graph) > 0 {
		sections = append(sections, cache.Section{Name: artifact.GraphSection, Data: p.Contents.Graph})
	}
	var unkept *cache.PutError
	if err := c.store.Put(ctx, k, sections); err != nil && !errors.As(err, &unkept) {
		return err
	}
	return nil
}

// modelDigest is the digest of the model's file: of an archive without reading its weights, of other files of all their bytes.
func (c *Cache) modelDigest(ctx context.Context, path string) (string, error) {
	return c.fileDigest(ctx, "model", path, func() (string, error) {
		if isPlainArchive(path) {
			a, err := weights.OpenArchive(path)
			if err != nil {
				return "", err
			}
			d, err := a.ModelDigest(c.o.VerifyDigest)
			if st, e := os.Stat(path); e == nil { // an artifact notes the size of its checkpoint
				d = fmt.Sprintf("%s, %d bytes", d, st.Size())
			}
			return d, errors.Join(err, a.Close())
		}
		return bytesDigest(path)
	})
}

// isPlainArchive says that the file at path is a zip of torch.export, not compressed as a whole.
func isPlainArchive(path string) bool {
	f, err := mmap.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return len(f.Data) > 4 && string(f.Data[:4]) == "PK\x03\x04" && !isArtifact(path) && !isStableHLO(path)
}

// selfDigest is of this program, which is the front end, the passes and lowering of this compile.
func (c *Cache) selfDigest(ctx context.Context) (string, error) {
	exe := "/proc/self/exe" // also when another file has taken the program's place meanwhile
	if _, err := os.Stat(exe); err != nil {
		if exe, err = os.Executable(); err != nil {
			return "", err
		}
	}
	return c.fileDigest(ctx, "bytes", exe, func() (string, error) { return bytesDigest(exe) })
}

func bytesDigest(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() { // opening a pipe would wait for a writer
		return "", fmt.Errorf("%s: no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// identity tells one state of a file from another without reading it: device, inode, size, and times of change in nanoseconds. It is empty where
// the system does not tell.
type identity string

func identityOf(path string) identity { return identity(fileid.Of(path)) }

// settles is how long after a change a file may change again without a later time: file systems count in ticks.
const settles = 2 * time.Second

// fileDigest is the digest that compute gives of a file, remembered by the file's identity.
func (c *Cache) fileDigest(ctx context.Context, what, path string, compute func() (string, error)) (string, error) {
	id := identityOf(path)
	if id == "" || c.o.VerifyDigest {
		return compute()
	}
	k := cache.Key{Kind: kindFile, Parts: []cache.Part{{Name: "digest", Value: what}, {Name: "file", Value: string(id)}}}
	if e, err := c.store.Get(ctx, k); err == nil {
		defer e.Close()
		data, err := e.Section("sha256")
		if err == nil {
			return string(data), nil
		}
		c.store.Reject(e, err)
	}
	d, err := compute()
	if err != nil {
		return "", err
	}
	if time.Since(fileid.Changed(path)) > settles && identityOf(path) == id {
		c.store.Offer(ctx, k, []cache.Section{{Name: "sha256", Data: []byte(d)}}) // it can be computed again
	}
	return d, nil
}
