package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
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
func (m *Model) bindWeights(opts Options) error {
	man := &m.art.Manifest
	var wants []weights.Want
	var places []*weights.Bound // for each want, where to put what is found
	var errs diag.List
	collect := func(list []artifact.Weight) []weights.Bound {
		bound := make([]weights.Bound, len(list))
		for i, w := range list {
			// Constants belong to the program: a checkpoint does not replace them.
			if w.Section != "" && (opts.Weights == nil || w.Class == "constant") {
				continue
			}
			expr, err := parseExpr(w)
			if err != nil {
				errs.Addf(nil, "runtime/contents", "%s %q has no contents in the artifact, and %v", w.Class, w.Name, err)
				continue
			}
			wants = append(wants, weights.Want{Names: w.Names, Expr: expr})
			places = append(places, &bound[i])
		}
		return bound
	}
	m.bound = bindings{collect(man.Weights), collect(man.State), collect(man.Constants)}
	if len(errs) > 0 || len(wants) == 0 {
		return errs.Err()
	}
	if err := m.openSource(opts); err != nil {
		return err
	}
	found, err := weights.Bind(m.source, wants)
	if err != nil {
		return err
	}
	for i, b := range found {
		*places[i] = b
	}
	return nil
}

// openSource takes the caller's weights, or opens the checkpoint that the artifact was compiled with where it lies beside the artifact.
func (m *Model) openSource(opts Options) error {
	if opts.Weights != nil {
		m.source = opts.Weights
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
	t, err := w.Tensor()
	if err != nil {
		return nil, err
	}
	e, err := weight.Parse(w.Expr, t)
	if err != nil {
		return nil, fmt.Errorf("its source expression is wrong: %w", err)
	}
	if _, ok := weight.Leaf(e).(weight.Tensor); !ok {
		return nil, fmt.Errorf("its source expression %s reads no tensor of a checkpoint", e)
	}
	return e, nil
}

// upload puts weights and constants on the device.
func (m *Model) upload(ctx context.Context) error {
	man := &m.art.Manifest
	for l, list := range [][]artifact.Weight{man.Weights, man.Constants} {
		bound := [][]weights.Bound{m.bound.weights, m.bound.constants}[l]
		m.fixed[l] = make([]*pjrt.Buffer, len(list))
		for i, w := range list {
			t, err := m.contents(w, bound[i])
			if err != nil {
				return err
			}
			if m.fixed[l][i], err = m.putFixed(ctx, t); err != nil {
				return fmt.Errorf("%s %q: %w", w.Class, w.Name, err)
			}
		}
	}
	return nil
}

// contents is a weight's elements: from the checkpoint if it is bound there, otherwise from the artifact.
func (m *Model) contents(w artifact.Weight, b weights.Bound) (*tensor.Tensor, error) {
	if b.Name == "" {
		return m.art.Tensor(w)
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

// putFixed uploads a tensor that is only read, in place where the plugin can. Aligned memory must live until inUse is done.
func (m *Model) putFixed(ctx context.Context, t *tensor.Tensor) (*pjrt.Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	h, err := hostBuffer(t)
	if err != nil {
		return nil, err
	}
	// Both kinds read the mapping in the background; a copy is done with it soon.
	h.Semantics = pjrt.ImmutableUntilTransferCompletes
	if len(t.Data) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(t.Data)))%zeroCopyAlign == 0 && m.client.PlatformName() == "cpu" {
		h.Semantics = pjrt.ImmutableZeroCopy
	}
	m.inUse.Add(1)
	h.Done = m.inUse.Done
	return m.client.BufferFromHost(h)
}

// putCopy uploads a tensor whose memory is the caller's again when it returns, and whose buffer a call may take.
func (m *Model) putCopy(t *tensor.Tensor) (*pjrt.Buffer, error) {
	h, err := hostBuffer(t)
	if err != nil {
		return nil, err
	}
	h.Semantics = pjrt.ImmutableOnlyDuringCall
	return m.client.BufferFromHost(h)
}

func hostBuffer(t *tensor.Tensor) (pjrt.HostBuffer, error) {
	kind, err := pjrt.ParseBufferType(t.DType.MLIR())
	if err != nil {
		return pjrt.HostBuffer{}, err
	}
	return pjrt.HostBuffer{Type: kind, Dims: t.Dims, Data: t.Data}, nil
}

// fetch copies a buffer of type t to the host, row-major.
func fetch(ctx context.Context, b *pjrt.Buffer, t tensor.Type) (*tensor.Tensor, error) {
	data := make([]byte, t.Bytes())
	if err := b.ToHost(ctx, data); err != nil {
		return nil, err
	}
	if t.DType.Bits() == 4 {
		// Plugins sign-extend; tensors keep the high half zero.
		for i := range data {
			data[i] &= 15
		}
	}
	return tensor.New(t, data)
}
