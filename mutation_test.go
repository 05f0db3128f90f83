package tpuc_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/frontend/weights"
	"tpuc/internal/golden"
	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
	"tpuc/lower"
	"tpuc/passes"
	"tpuc/tpu/artifact"
)

// A damaged or hostile file must give a clear error, or what the honest file gives; within these bounds, and never a crash or a report of
// a bug of tpuc. TPUC_MUTANTS sets the number of mutants of each family and kind, and TPUC_MUTANT_SEED another seed.
const (
	mutants       = 100
	mutantSeconds = 5
	mutantBytes   = 1 << 30 // of all that is allocated, so of the peak too
)

// archiveFamily is a kind of archive under mutation.
type archiveFamily struct {
	name  string
	files []string // below testdata, taken in turn
	form  func(t *testing.T, entries []zipEntry) []zipEntry
}

var archiveFamilies = []archiveFamily{
	{"raw", []string{"models/mlp/model.pt2", "cases/T11/model.pt2.gz"}, nil},
	{"decomposed", []string{"models/mlp/decomposed.pt2", "cases/T11/decomposed.pt2.gz"}, nil},
	{"dynamic", []string{"models/mlp_dynamic/model.pt2", "cases/R4/decomposed.pt2.gz"}, nil},
	{"stateful", []string{"cases/views/model.pt2.gz", "cases/T8_cache/model.pt2.gz", "cases/T8_counter/decomposed.pt2.gz"}, nil},
	{"weight-free", []string{"models/mlp/model.pt2"}, withoutWeights},
	{"pickled", []string{"archives/old_2.5.1.pt2.gz", "archives/old_2.8.0.pt2.gz", "archives/old_2.7.1.decomp.pt2.gz"}, nil},
}

// TestRawMutations changes, cuts, doubles and swaps bytes anywhere in the file.
func TestRawMutations(t *testing.T) {
	for _, f := range archiveFamilies {
		t.Run(f.name, func(t *testing.T) {
			honest := f.honest(t)
			eachMutant(t, func(i int, r *rand.Rand) error {
				h := honest[i%len(honest)]
				got, err := runArchive(t, h, mutateBytes(r, h.data))
				if err == nil && got != nil { // what is read is what was written
					if err := golden.Equivalent(h.want, got); err != nil {
						return fmt.Errorf("not equivalent: %w", err)
					}
				}
				return err
			})
		})
	}
}

// TestStructuredMutations rewrites entries and their checksums, so that the damage reaches every reader behind the container.
func TestStructuredMutations(t *testing.T) {
	for _, f := range archiveFamilies {
		t.Run(f.name, func(t *testing.T) {
			honest := f.honest(t)
			eachMutant(t, func(i int, r *rand.Rand) error {
				h := honest[i%len(honest)]
				_, err := runArchive(t, h, zipOf(t, mutateEntries(t, r, h.entries), 1))
				return err
			})
		})
	}
}

// eachMutant runs the mutants one after another, with an own generator for each, so that one can be run again alone.
func eachMutant(t *testing.T, run func(i int, r *rand.Rand) error) {
	n, err := strconv.Atoi(os.Getenv("TPUC_MUTANTS"))
	if err != nil {
		n = mutants
	}
	seed, _ := strconv.ParseUint(os.Getenv("TPUC_MUTANT_SEED"), 10, 64) // unset: 0
	accepted := 0
	slowest, largest := time.Duration(0), uint64(0)
	for i := range n {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		done := make(chan error, 1)
		go func() {
			defer func() {
				if p := recover(); p != nil {
					buf := make([]byte, 16<<10)
					done <- fmt.Errorf("panic: %v\n%s", p, buf[:runtime.Stack(buf, false)])
				}
			}()
			done <- run(i, rand.New(rand.NewPCG(seed, uint64(i))))
		}()
		var err error
		select {
		case err = <-done:
		case <-time.After(10 * mutantSeconds * time.Second):
			t.Fatalf("mutant %d hangs", i)
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		size := after.TotalAlloc - before.TotalAlloc
		slowest, largest = max(slowest, took), max(largest, size)
		if err == nil {
			accepted++
		} else if fault := unclear(err); fault != "" {
			t.Errorf("mutant %d: %s: %.4000s", i, fault, err)
		}
		if took > mutantSeconds*time.Second || size > mutantBytes {
			t.Errorf("mutant %d took %v and allocated %d MB, wanted at most %d s and %d MB", i, took, size>>20, mutantSeconds, mutantBytes>>20)
		}
	}
	t.Logf("%d mutants: %d errors, %d accepted; the slowest took %v, the largest allocated %d MB", n, n-accepted, accepted, slowest.Round(time.Millisecond), largest>>20)
}

// unclear says what is wrong with an error that a user gets; empty: nothing.
func unclear(err error) string {
	var bug *diag.Bug
	var runtimeError runtime.Error
	msg := err.Error()
	switch {
	case errors.As(err, &bug):
		return "reported as a bug of tpuc"
	case errors.As(err, &runtimeError), strings.HasPrefix(msg, "panic: "), strings.Contains(msg, "runtime error"):
		return "a crash"
	case strings.Contains(msg, "not equivalent"), strings.Contains(msg, "differs"):
		return "a wrong result"
	case len(msg) < 10:
		return "says too little"
	case strings.Contains(msg, "Go value"), strings.Contains(msg, "Go struct"), strings.Contains(msg, "%!"), strings.Contains(msg, "<nil>"):
		return "speaks of Go"
	case slices.ContainsFunc(strings.Split(msg, "\n"), func(l string) bool { return len(l) > 2000 }):
		return "says too much"
	}
	return ""
}

// honestFile is an archive without faults and what it computes.
type honestFile struct {
	name    string
	data    []byte
	entries []zipEntry
	shapes  [][]int64
	want    *eval.Result // nil: it cannot be run, for it has no weights
}

func (f archiveFamily) honest(t *testing.T) []*honestFile {
	var out []*honestFile
	for _, name := range f.files {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		if strings.HasSuffix(name, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(data))
			require.NoError(t, err)
			data, err = io.ReadAll(z)
			require.NoError(t, err)
		}
		entries := unzip(t, data)
		if f.form != nil {
			entries = f.form(t, entries)
			data = zipOf(t, entries, 64)
		}
		h := &honestFile{name: name, data: data, entries: entries}
		h.shapes = inputShapes(t, filepath.Dir(filepath.Join("testdata", name)))
		h.want, err = runArchive(t, h, data)
		if f.form == nil {
			require.NoError(t, err)
			require.NotNil(t, h.want)
		}
		out = append(out, h)
	}
	return out
}

// inputShapes are the shapes of a case's inputs, in their order.
func inputShapes(t *testing.T, dir string) [][]int64 {
	src, err := weights.OpenSafetensors(filepath.Join(dir, "inputs.safetensors"))
	require.NoError(t, err)
	defer src.Close()
	var out [][]int64
	for i := 0; ; i++ {
		x, err := src.Load(fmt.Sprintf("input_%d", i))
		if err != nil {
			return out
		}
		out = append(out, x.Dims)
	}
}

// runArchive loads data as a model, evaluates it, and takes it through passes and lowering. The result is nil where evaluating would take
// too much, or where the archive has no weights.
func runArchive(t *testing.T, h *honestFile, data []byte) (*eval.Result, error) {
	path := filepath.Join(t.TempDir(), "model.pt2")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	defer os.Remove(path)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := tpuc.Load(ctx, path, tpuc.Shapes{Inputs: func([]tpuc.Port) ([][]int64, error) { return h.shapes, nil }})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := ir.Verify(m.Module); err != nil {
		return nil, &diag.Bug{Pass: "import", Cause: err}
	}
	var result *eval.Result
	if moduleBytes(m.Module) < 16<<20 {
		if result, err = evaluateModel(m); err != nil && !strings.Contains(err.Error(), "not in the archive") {
			return nil, err
		}
	}
	if _, err := passes.Run(ctx, m.Module, passes.Options{CrashDir: t.TempDir(), Verify: true}); err != nil {
		return nil, err
	}
	if _, err := lower.Lower(m.Module); err != nil {
		return nil, err
	}
	return result, nil
}

func evaluateModel(m *tpuc.Model) (*eval.Result, error) {
	var inputs []*tensor.Tensor
	for i, p := range m.Module.Func.Params {
		inputs = append(inputs, golden.Random(p.Type, 1, strconv.Itoa(i)))
	}
	return eval.Run(m.Module, inputs, eval.Options{Weights: func(w *ir.Weight) (*tensor.Tensor, error) {
		if w.Data != nil {
			return w.Data, nil
		}
		return m.Weights.Load(w.Names[0])
	}})
}

// moduleBytes is the size of all values of a module.
func moduleBytes(m *ir.Module) (n int64) {
	add := func(v *ir.Value) { n = min(n+v.Type.Bytes(), 1<<50) }
	for _, p := range m.Func.Params {
		add(p)
	}
	for _, w := range m.Weights {
		add(w.Value)
	}
	for _, b := range m.Func.Body {
		for _, o := range b.Outs {
			add(o)
		}
	}
	return n
}

// TestArtifactMutations changes bytes of an artifact, and its JSON with digests that fit.
func TestArtifactMutations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "honest.tpuc")
	m, c := sampleArtifact()
	require.NoError(t, artifact.Write(path, m, c))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	entries := unzip(t, data)
	want, err := readArtifact(t, data)
	require.NoError(t, err)
	t.Run("raw", func(t *testing.T) {
		eachMutant(t, func(_ int, r *rand.Rand) error {
			got, err := readArtifact(t, mutateBytes(r, data))
			if err == nil && got != want {
				return errors.New("what is read differs from what was written")
			}
			return err
		})
	})
	t.Run("structured", func(t *testing.T) {
		eachMutant(t, func(_ int, r *rand.Rand) error {
			_, err := readArtifact(t, zipOf(t, mutateArtifact(t, r, entries), 64))
			return err
		})
	})
}

// readArtifact reads everything that a runtime reads, and gives it as text.
func readArtifact(t *testing.T, data []byte) (string, error) {
	path := filepath.Join(t.TempDir(), "a.tpuc")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	defer os.Remove(path)
	a, err := artifact.Open(path)
	if err != nil {
		return "", err
	}
	defer a.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", a.Manifest)
	for _, s := range a.Sections {
		data, err := a.Section(s.Name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %x\n", s.Name, data)
	}
	for _, list := range [][]artifact.Weight{a.Manifest.Weights, a.Manifest.State, a.Manifest.Constants} {
		for _, w := range list {
			x, err := a.Tensor(w)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%s %s %x\n", w.Name, x.Type, x.Data)
		}
	}
	if _, err := tpuc.Inspect(context.Background(), path, tpuc.InspectOptions{}); err != nil {
		return "", err
	}
	return b.String(), nil
}

// zipEntry is a stored entry of an archive.
type zipEntry struct {
	name string
	data []byte
}

func unzip(t testing.TB, data []byte) []zipEntry {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	var out []zipEntry
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		out = append(out, zipEntry{f.Name, b})
	}
	return out
}

// zipOf writes stored entries whose bytes begin at multiples of align.
func zipOf(t testing.TB, entries []zipEntry, align int) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Store, CRC32: crc(e.data), CompressedSize64: uint64(len(e.data)), UncompressedSize64: uint64(len(e.data))}
		require.NoError(t, z.Flush())
		if pad := (align - (b.Len()+30+len(e.name)+4)%align) % align; align > 1 {
			h.Extra = append([]byte{'F', 'B', byte(pad), 0}, make([]byte, pad)...)
		}
		w, err := z.CreateRaw(h)
		require.NoError(t, err)
		_, err = w.Write(e.data)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}
