package pt2

import (
	_ "embed"
	"strings"
	"sync"
)

// decompositionText holds the aten overloads that run_decompositions() of torch 2.15 expresses by others, one a line:
// the keys of torch.export.default_decompositions().
//
//go:embed decompositions.txt
var decompositionText string

var decompositions = sync.OnceValue(func() map[string]bool {
	out := make(map[string]bool)
	for line := range strings.Lines(decompositionText) {
		out[strings.TrimSpace(line)] = true
	}
	return out
})

// advice says what a user can do about an operator that is not supported, by the reason or, where that is empty, for want of any rule.
func advice(target, reason string) string {
	op := opName(target)
	base, _, _ := strings.Cut(op, ".")
	aten := op != target
	switch {
	case strings.Contains(reason, "depends on the data") || dataDependent[base]:
		return dataAdvice(base)
	case reason == drawsReason:
		return "draw the numbers outside of the model and make them an input of it"
	case strings.Contains(reason, "no function that is given"):
		return "add a function with these types to the file of --custom-ops"
	case aten && (base == "svd" || base == "linalg_svd" || base == "_linalg_svd"):
		return "take torch.linalg.svdvals for the values alone, or torch.linalg.pinv, polar or a norm for what follows from them: the signs of singular vectors are LAPACK's alone"
	case strings.Contains(reason, "eigenvectors"):
		return "take torch.linalg.eigvalsh for the values alone"
	case strings.Contains(target, "auto_functionalized"):
		return "compile the archive as captured, without run_decompositions(), and give what the operator computes with --custom-ops"
	case strings.HasPrefix(target, "torch.ops.higher_order."), strings.HasPrefix(target, "torch._functorch."):
		return "export the model without it: what torch.compile, checkpointing, hooks and vmap put around a computation is not needed for inference"
	case !aten && strings.HasPrefix(target, "torch.ops."):
		return "say what it computes in a file of functions and give it with --custom-ops"
	case strings.Contains(reason, "complex"):
		return "compute with the real and imaginary parts as two tensors (torch.view_as_real)"
	case strings.Contains(base, "quantize") || strings.HasPrefix(base, "q_"):
		return "export the model before it is quantized, or dequantize its weights"
	case reason == "" && aten && decompositions()[strings.TrimSuffix(op, ".default")]:
		return "save the archive after program.run_decompositions(), whose operators for it may be supported; or give what it computes with --custom-ops"
	case reason == "" && aten:
		return "express it by other operators in the model, or give what it computes with --custom-ops"
	}
	return "express this form of it by other operators in the model"
}

// dataDependent are operators whose result has a shape that only the data tells.
var dataDependent = map[string]bool{
	"nonzero": true, "nonzero_numpy": true, "argwhere": true, "masked_select": true, "_unique2": true, "unique_dim": true, "unique_consecutive": true,
	"unique_dim_consecutive": true, "bincount": true, "repeat_interleave": true, "item": true, "_local_scalar_dense": true,
}

// dataAdvice is what to write instead of an operator whose result depends on the data. Programs for a TPU have fixed shapes.
func dataAdvice(base string) string {
	switch base {
	case "nonzero", "nonzero_numpy", "argwhere", "index", "masked_select", "where":
		return "a compiled program has fixed shapes: keep all elements and choose with torch.where(mask, a, b), take a fixed number with topk, or make the indices outside and give them as an input"
	case "item", "_local_scalar_dense":
		return "a compiled program has fixed shapes: keep the number a 0-d tensor, or make it an input of the model"
	case "repeat_interleave":
		return "a compiled program has fixed shapes: give output_size as a number, or repeat by a fixed count"
	case "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "bincount":
		return "a compiled program has fixed shapes: do this outside of the model, or count with torch.histc or one-hot sums over a fixed number of classes"
	}
	return "a compiled program has fixed shapes: make what decides the size an input of the model, or pad to a largest size and mask"
}
