package tpuc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/tpu/artifact"
)

// digestWeights records the SHA-256 of the tensors that an artifact takes from the model's file at path, which has to be read whole for that. Those of
// an artifact as model are known already, or embedded in it.
func digestWeights(ctx context.Context, path string, m *artifact.Manifest) (err error) {
	var src weights.Source
	defer func() {
		if src != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	for _, list := range [][]artifact.Weight{m.Weights, m.State} {
		for i := range list {
			w := &list[i]
			if w.Class == ir.Constant.String() || w.SHA256 != "" {
				continue
			}
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if src == nil {
				if src, err = openWeights(path); err != nil {
					return err
				}
			}
			e, err := w.Source()
			if err != nil {
				return fmt.Errorf("%s %q: %w", w.Class, w.Name, err)
			}
			t, err := weights.Lookup(src, e)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(t.Data)
			w.SHA256 = hex.EncodeToString(sum[:])
		}
	}
	return nil
}

// recorded is the SHA-256 that the artifact which the model was taken from has of w's elements; empty where it has none.
func (m *Model) recorded(w artifact.Weight) string {
	if m.origin == nil {
		return ""
	}
	for _, v := range slices.Concat(m.origin.Manifest.Weights, m.origin.Manifest.State) {
		if v.Same(w) {
			return v.SHA256
		}
	}
	return ""
}
