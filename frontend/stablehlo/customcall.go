package stablehlo

import (
	"strings"

	"tpuc/ir"
	"tpuc/ir/op"
)

// targetRules are calls of custom code that the IR has words for. A target of MHLO, such as mhlo.erf, is the operation of CHLO or StableHLO of that name,
// which StableHLO did not have when the text was written.
var targetRules = map[string]rule{
	"Sharding":                   identity,
	"xla.sdy.FuncResultSharding": identity,
	"ApproxTopK":                 approxTopK,
}

// refusedTargets are targets, by how they begin, that no plugin can call, and what to do instead.
var refusedTargets = []struct{ prefix, wanted, instead string }{
	{"SPMD", "a program for one device", "export the function without shard_map: tpuc places computations on devices itself"},
	{"xla.sdy.", "a program for one device", "export the function without shard_map: tpuc places computations on devices itself"},
	{"stablehlo.dynamic_", "fixed shapes", fixSizes},
	{"shape_assertion", "fixed shapes", fixSizes},
	{"lapack_", "no code of the exporter's CPU", lowerForTPU},
	{"cusolver", "no code of a GPU", lowerForTPU},
	{"cublas", "no code of a GPU", lowerForTPU},
	{"__cu", "no code of a GPU", lowerForTPU},
	{"__gpu", "no code of a GPU", lowerForTPU},
	{"triton", "no code of a GPU", lowerForTPU},
}

// What to do about a text that is not for any device that a plugin has, or not for one size.
const (
	lowerForTPU = `export with jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",)) or jax.export.export(f, platforms=["tpu"]): what is left are calls that compilers know`
	fixSizes    = "sizes are fixed where the text is made: torch.export.export without dynamic_shapes, jax.export without symbolic_shape; export once for each size"
)

// customCall knows the targets above and refuses those that call back into the process that exported the program.
func customCall(c *call) []*ir.Value {
	target := c.o.attrs.word("call_target_name")
	if f := targetRules[target]; f != nil {
		if out := f(c); out != nil {
			return out
		}
	}
	if name, ok := strings.CutPrefix(target, "mhlo."); ok {
		var attrs dict
		if a, ok := c.o.attrs.find("mhlo.attributes"); ok {
			attrs = a.Dict.entries()
		}
		return c.as(mhloNames[name], attrs)
	}
	if strings.Contains(target, "callback") {
		c.unsupportedBut("export without jax.debug, pure_callback and io_callback", "target %q calls back into Python, wanted a pure function", target)
	}
	for _, r := range refusedTargets {
		if strings.HasPrefix(target, r.prefix) {
			c.unsupportedBut(r.instead, "target %q, wanted %s", target, r.wanted)
		}
	}
	if a, ok := c.o.attrs.find("api_version"); ok && a.Num != nil && *a.Num == "0" { // as torch_xla writes the operators that it leaves in the graph
		c.unsupportedBut("leave the operator out of custom_ops_allowed_in_graph, so that it is written in others, or give the archive of torch.export with --custom-ops",
			"target %q is an operator of the process that exported, wanted operations", target)
	}
	if a, ok := c.o.attrs.find("called_computations"); ok && len(a.List) > 0 {
		c.unsupported("target %q calls computations, wanted none", target)
	}
	return nil
}

// mhloNames are the operations of MHLO that are written as custom calls, by their names in CHLO and StableHLO.
var mhloNames = map[string]string{"acos": "chlo.acos", "acosh": "chlo.acosh", "asin": "chlo.asin", "asinh": "chlo.asinh", "atanh": "chlo.atanh",
	"cosh": "chlo.cosh", "erf": "chlo.erf", "sinh": "chlo.sinh", "tan": "stablehlo.tan", "topk": "chlo.top_k"}

// approxTopK is exact: the target says how many of the largest elements may be missed, and none is. The first half of the operands are tensors that go
// together, the second half what fills results that have no element; a function compares.
func approxTopK(c *call) []*ir.Value {
	config, ok := c.o.attrs.find("mhlo.backend_config")
	n := len(c.args) / 2
	if !ok || config.Dict == nil || n == 0 || len(c.args) != 2*n {
		return nil
	}
	plain := &call{p: c.p, b: c.b, s: c.s, o: &operation{name: c.o.name, attrs: config.Dict.entries()}}
	axis, k := plain.int("reduction_dim", -1), plain.int("top_k", 0)
	called, ok := c.o.attrs.find("called_computations")
	x := c.args[0].Type
	if !ok || len(called.List) != 1 || !plain.flag("aggregate_to_topk") || axis < 0 || axis >= int64(x.Rank()) || k < 0 || k > x.Dims[axis] {
		return nil
	}
	compare := c.p.funcs[called.List[0].word()]
	if compare == nil || len(compare.params) != 2*n {
		c.fail("the comparison %s is no function of %d parameters, wanted one", clip(called.List[0].word()), 2*n)
	}
	sorted := c.sorted(c.args[:n], compare.body, axis, true)
	for i, v := range sorted {
		t := v.Type
		limit := append([]int64{}, t.Dims...)
		limit[axis] = k
		sorted[i] = op.Slice.Make(c.b, op.SliceAttr{Start: make([]int64, t.Rank()), Limit: limit, Stride: ones(t.Rank())}, v)
	}
	return sorted
}
