package pt2

import (
	"cmp"
	"maps"
	"strings"
	"sync"
)

// rules is the whole table: overload, without ".default", to rule. One file holds one family.
var rules = sync.OnceValue(func() map[string]rule {
	all := make(map[string]rule)
	for _, family := range []map[string]rule{
		unaryRules, analyticRules, binaryRules, castRules, complexRules,
		shapeRules, sliceRules, arrangeRules, padRules, createRules, taperRules,
		reduceRules, orderRules, quantileRules, spacedRules,
		linearRules, linalgRules, householderRules, singularRules, normRules, calculusRules,
		networkRules, batchNormRules, recurrentRules,
		lossRules, criterionRules, marginRules, gradientRules,
		specialRules, gammaRules, errorRules, exponentRules, besselRules, besselJRules, polynomialRules,
		fourierRules, shortTimeRules,
		poolRules, unpoolRules, adaptiveRules, sampleRules, visionRules,
		indexRules, indexReduceRules, searchRules, histogramRules, nonzeroRules, bagRules,
		symRules, checkRules,
	} {
		maps.Copy(all, family)
	}
	for alias, name := range otherNames {
		all[alias] = all[name]
	}
	return all
})

// otherNames are names of operators that torch has under another name too, with the same arguments.
var otherNames = map[string]string{
	"absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
	"divide.Scalar_mode": "div.Scalar_mode", "divide.Tensor_mode": "div.Tensor_mode", "subtract.Scalar": "sub.Scalar",
	"bitwise_left_shift.Scalar_Tensor": "bitwise_left_shift.Tensor", "bitwise_right_shift.Scalar_Tensor": "bitwise_right_shift.Tensor",
	"special_exp2": "exp2", "special_logit": "logit", "special_logsumexp": "logsumexp", "special_round": "round.decimals", "special_softmax": "softmax.int",
	"special_xlogy": "xlogy.Tensor", "special_xlogy.other_scalar": "xlogy.Tensor", "special_xlogy.self_scalar": "xlogy.Tensor",
}

// Supported reports whether the table has a rule for a target of an archive, such as "torch.ops.aten.add.Tensor".
func Supported(target string) bool {
	c := &call{op: opName(target), node: &node{Target: target}}
	return c.findRule() != nil
}

// findRule finds the rule of the node's operator, and its schema. An in-place operator without a rule of its own is its functional
// form with the result written back. What is not in the table may have functions of the user's.
func (c *call) findRule() rule {
	c.schema, _ = lookupSchema(c.op)
	name := strings.TrimSuffix(c.op, ".default")
	if r, ok := rules()[name]; ok {
		return r
	}
	if base, overload, _ := strings.Cut(name, "."); strings.HasSuffix(base, "_copy") {
		if r, ok := rules()[strings.TrimSuffix(strings.TrimSuffix(base, "_copy")+"."+overload, ".")]; ok && c.schema != nil {
			return copies(r)
		}
	}
	if pure, ok := functional(name); ok && c.schema != nil && c.schema.mutates {
		if r, ok := rules()[pure]; ok {
			if base, _, _ := strings.Cut(name, "."); changesView[base] {
				return r
			}
			return inPlace(r)
		}
	}
	if r := controlRule(name); r != nil {
		return r
	}
	return c.customRule()
}

// copies gives the results of a view operator new memory, as its _copy form does.
func copies(f rule) rule {
	return func(c *call) []*ref {
		out := f(c)
		for i, r := range out {
			out[i] = fresh(r.read(c.b))
		}
		return out
	}
}

// functional is the name of an in-place operator without the writing: add_.Tensor is add.Tensor, __ior__.Tensor is __or__.Tensor.
func functional(name string) (string, bool) {
	base, overload, _ := strings.Cut(name, ".")
	if overload != "" {
		overload = "." + overload
	}
	switch {
	case strings.HasPrefix(base, "__i"):
		return "__" + base[3:] + overload, true
	case strings.HasSuffix(base, "_") && !strings.HasPrefix(base, "__") && !changesMemory[base]:
		pure := strings.TrimSuffix(base, "_") + overload
		return cmp.Or(otherOverload[pure], pure), true
	}
	return "", false
}

// otherOverload are functional forms whose overload has another name than the in-place operator's.
var otherOverload = map[string]string{
	"float_power.Tensor": "float_power.Tensor_Tensor", "floor_divide.Tensor": "floor_divide", "ldexp": "ldexp.Tensor", "pow.Tensor": "pow.Tensor_Tensor",
}

// changesMemory lists the in-place operators that give the tensor object other memory.
var changesMemory = map[string]bool{"resize_": true, "resize_as_": true, "set_": true}

// changesView lists the in-place operators that change how the tensor object sees its memory. What an export uses afterwards is their result.
var changesView = map[string]bool{
	"as_strided_": true, "squeeze_": true, "swapaxes_": true, "swapdims_": true, "t_": true, "transpose_": true, "unsqueeze_": true,
}

// inPlace writes the result of a functional rule to self, in self's dtype.
func inPlace(f rule) rule {
	return func(c *call) []*ref {
		self := c.ref("self")
		v := c.cast(f(c)[0].read(c.b), self.typ.DType)
		if len(v.Type.Dims) > len(self.typ.Dims) {
			c.failf("the result is %s, wanted a shape that broadcasts to %s", v.Type, self.typ)
		}
		self.write(c.b, c.materialize(tensorOperand(v), self.typ.DType, self.typ.Dims))
		return []*ref{self.through(c.b, identityView())}
	}
}
