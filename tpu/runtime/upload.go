package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"tpuc/frontend/weights"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
)

// zeroCopyAlign is the alignment of host memory that the CPU plugin uses in place; other memory it copies silently.
const zeroCopyAlign = 64

// bindings says where the tensors of the manifest's lists come from, by index: an entry without a name is taken from the artifact.
type bindings struct{ weights, state, constants []weights.Bound }

// bindWeights finds all tensors that are not taken from the artifact, without reading their elements.
func (m *Model) bindWeights() error {
	man := &m.art.Manifest
	b := &binder{model: m}
	m.bound = bindings{b.collect(man.Weights), b.collect(man.State), b.collect(man.Constants)}
	return b.bind()
}

// binder collects tensors that a checkpoint holds and finds them together, so that all that are missing are said at once.
type binder struct {
	model  *Model
	wants  []weights.Want
	places []*weights.Bound // for each want, where to put what is found
	errs   diag.List
}

// collect gives a place for each of list; bind fills it.
func (b *binder) collect(list []artifact.Weight) []weights.Bound {
	bound := make([]weights.Bound, len(list))
	for i, w := range list {
		// Constants belong to the program: a checkpoint does not replace them.
		if w.Section != "" && (b.model.opts.Weights == nil || w.Class == "constant") {
			continue
		}
		expr, err := parseExpr(w)
		if err != nil {
			b.errs.Addf(nil, "runtime/contents", "%s %q has no contents in the artifact, and %v", w.Class, w.Name, err)
			continue
		}
		b.wants = append(b.wants, weights.Want{Names: w.Names, Expr: expr})
		b.places = append(b.places, &bound[i])
	}
	return bound
}

func (b *binder) bind() error {
	if len(b.errs) > 0 || len(b.wants) == 0 {
		return b.errs.Err()
	}
	if err := b.model.openSource(); err != nil {
		return err
	}
	found, err := weights.Bind(b.model.source, b.wants)
	if err != nil {
		return err
	}
	for i, f := range found {
		*b.places[i] = f
	}
	return nil
}

// openSource takes the caller's weights, or opens the checkpoint that the artifact was compiled with where it lies beside the artifact.
func (m *Model) openSource() error {
	if m.source != nil {
		return nil
	}
	if m.opts.Weights != nil {
		m.source = m.opts.Weights
		return nil
	}
	const give = "name the checkpoint (tpuc run --weights), or compile with the weights embedded (tpuc compile --embed-weights)"
	c := m.art.Manifest.Checkpoint
	if c == nil {
		return fmt.Errorf("the weights are not in the artifact: %s", give)
	}
	path := filepath.Join(filepath.Dir(m.art.Path()), filepath.Base(c.Name))
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the weights are not in the artifact, and their checkpoint %s is not beside it: %s", c.Name, give)
	}
	if !st.IsDir() && c.Size != 0 && st.Size() != c.Size {
		return fmt.Errorf("%s beside the artifact has %d bytes, wanted the %d of the file that it was compiled with: name the checkpoint (tpuc run --weights) to use another",
			path, st.Size(), c.Size)
	}
	if m.source, err = weights.Open(path); err != nil {
		return err
	}
	m.own = true
	if a, ok := m.source.(*weights.Archive); ok && c.Identity != "" && a.Identity() != c.Identity {
		return fmt.Errorf("%s beside the artifact holds other weights than the file that it was compiled with: name the checkpoint (tpuc run --weights) to use them", path)
	}
	return nil
}

// parseExpr reads a source expression over a tensor of a checkpoint.
func parseExpr(w artifact.Weight) (weight.Expr, error) {
	e, err := w.Source()
	if err != nil {
		return nil, fmt.Errorf("its source expression is wrong: %w", err)
	}
	if _, ok := weight.Leaf(e).(weight.Tensor); !ok {
		return nil, fmt.Errorf("its source expression %s reads no tensor of a checkpoint", e)
	}
	return e, nil
}

// dropSource unmaps the checkpoint when nothing is used in place and no state begins with what it holds: all that was read was copied.
func (m *Model) dropSource() error {
	if !m.own || m.source == nil || m.inPlace || slices.ContainsFunc(m.bound.state, func(b weights.Bound) bool { return b.Name != "" }) {
		return nil
	}
	m.copies.Wait()
	m.ahead.Wait()
	err := m.source.Close()
	m.source, m.own = nil, false
	return err
}

// contents is a weight's elements: from the checkpoint if it is bound there, otherwise from its artifact.
func (m *Model) contents(art *artifact.Artifact, w artifact.Weight, b weights.Bound) (*tensor.Tensor, error) {
	if b.Name == "" {
		return art.Tensor(w)
	}
	t, err := b.Load()
	if err != nil {
		return nil, err
	}
	if m.own && w.SHA256 != "" {
		sum := sha256.Sum256(t.Data)
		if got := hex.EncodeToString(sum[:]); got != w.SHA256 {
			return nil, fmt.Errorf("%s: tensor %q has other contents (sha256 %s) than when the artifact was compiled (%s): name the checkpoint to use it all the same",
				m.source.Label(), b.Name, got, w.SHA256)
		}
	}
	return t, nil
}

// putFixed uploads a tensor that is only read, in place where the plugin can: its memory must live until inUse is done. layout is that on the
// device, empty for row-major. users, if not nil, counts the use too: the model's own artifact
// has none, as it stays mapped.
func (m *Model) putFixed(ctx context.Context, t *tensor.Tensor, layout pjrt.Layout, users *sync.WaitGroup) (b *pjrt.Buffer, inPlace bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, context.Cause(ctx)
	}
	h, err := hostBuffer(t, layout)
	if err != nil {
		return nil, false, err
	}
	// Both kinds read the mapping in the background; a copy is done with it soon.
	h.Semantics = pjrt.ImmutableUntilTransferCompletes
	done := &m.copies
	if layout == "" && len(t.Data) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(t.Data)))%zeroCopyAlign == 0 && m.client.PlatformName() == "cpu" {
		h.Semantics = pjrt.ImmutableZeroCopy
		done, inPlace = &m.inUse, true
	}
	done.Add(1)
	h.Done = done.Done
	if users != nil {
		users.Add(1)
		h.Done = func() { users.Done(); done.Done() }
	}
	if b, err = m.client.BufferFromHost(h); err != nil {
		return nil, false, err
	}
	if err := checkLayout(b, layout); err != nil {
		b.Close()
		return nil, false, err
	}
	return b, inPlace, nil
}

// checkLayout refuses a buffer that a plugin has put into another layout than it was asked for: a program would give wrong numbers.
func checkLayout(b *pjrt.Buffer, want pjrt.Layout) error {
	if want == "" {
		return nil
	}
	got, err := b.Layout()
	if err == nil && got != want {
		err = fmt.Errorf("the plugin put it into layout %s, wanted %s", got, want)
	}
	return err
}

// putCopy uploads a tensor whose memory is the caller's again when it returns, and whose buffer a call may take.
func (m *Model) putCopy(t *tensor.Tensor, layout pjrt.Layout) (*pjrt.Buffer, error) {
	h, err := hostBuffer(t, layout)
	if err != nil {
		return nil, err
	}
	h.Semantics = pjrt.ImmutableOnlyDuringCall
	b, err := m.client.BufferFromHost(h)
	if err != nil {
		return nil, err
	}
	if err := checkLayout(b, layout); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func hostBuffer(t *tensor.Tensor, layout pjrt.Layout) (h pjrt.HostBuffer, err error) {
	h.Dims, h.Data = t.Dims, t.Data
	if h.Type, err = pjrt.ParseBufferType(t.DType.MLIR()); err == nil && layout != "" {
		h.Order, err = layout.MinorToMajor()
	}
	return h, err
}

// fetching is a copy of a buffer to the host on its way.
type fetching struct {
	*tensor.Tensor
	event *pjrt.Event
}

// fetch begins to copy a buffer of type t to the host, row-major.
func fetch(b *pjrt.Buffer, t tensor.Type) (fetching, error) {
	data := make([]byte, t.Bytes())
	e, err := b.Fetch(data)
	if err != nil {
		return fetching{}, err
	}
	x, err := tensor.New(t, data)
	return fetching{x, e}, err
}

// wait gives the tensor when it is there.
func (f fetching) wait(ctx context.Context) (*tensor.Tensor, error) {
	if err := f.event.Wait(ctx); err != nil {
		return nil, err
	}
	if f.DType.Bits() == 4 {
		// Plugins sign-extend; tensors keep the high half zero.
		for i := range f.Data {
			f.Data[i] &= 15
		}
	}
	return f.Tensor, nil
}

// fetchNow copies a buffer to the host.
func fetchNow(ctx context.Context, b *pjrt.Buffer, t tensor.Type) (*tensor.Tensor, error) {
	f, err := fetch(b, t)
	if err != nil {
		return nil, err
	}
	return f.wait(ctx)
}
