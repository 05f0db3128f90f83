package tpuc

import (
	"context"

	"tpuc/internal/tieorder"
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// tiedOutput reports that output k of call i differs from want by nothing but the choice of a topk among equal elements, for which PyTorch promises
// no order: sparse attention that keeps k of many scores of 0, say, goes on with that choice. It is right when it is what the reference
// evaluator gives, which takes the lower index, and the expected output is what that gives with torch's own choice.
func (r *caseRun) tiedOutput(ctx context.Context, i, k int, got, want *tensor.Tensor) bool {
	torch, err := r.evaluateCalls(ctx, i, tieorder.Torch)
	if err != nil || torch == nil || !r.equals(torch[k], want) {
		return false
	}
	own, err := r.evaluateCalls(ctx, i, func(*ir.Module) bool { return true })
	return err == nil && r.equals(got, own[k])
}

func (r *caseRun) equals(got, want *tensor.Tensor) bool {
	return got.Type.Equal(want.Type) && compareTensors(got, want, r.Tolerance).OK
}
