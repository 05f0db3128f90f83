package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Barrier is x itself, computed before anything that reads the result (StableHLO optimization_barrier): a compiler fuses nothing across it.
var Barrier = definePlain(Def[None]{
	Name: "barrier", Doc: "Gives its argument, whole in memory before anything reads it.", Args: "x",
	Infer: func(in []tensor.Type, _ None) ([]tensor.Type, error) { return one(in[0]) },
	Lower: lowerTo("stablehlo.optimization_barrier"),
	Eval:  func(in []*tensor.Tensor, _ None, _ []tensor.Type) ([]*tensor.Tensor, error) { return result(in[0]) },
	Cost:  func(*ir.Node, None) ir.Cost { return ir.Cost{} },
})
