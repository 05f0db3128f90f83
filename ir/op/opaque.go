package op

import (
	"fmt"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// OpaqueAttr is the attribute struct of Opaque and OpaqueEffect.
type OpaqueAttr struct {
	Name string `ir:"name"` // of the StableHLO or CHLO operation
	// Text is the whole operation in either form without results and location. %{0}, %{1} ... stand for the arguments; other values, those of
	// its regions, begin with %$, which becomes a prefix of their own at every place.
	Text string `ir:"text"`
	Out  string `ir:"out"` // the results' types, such as "f32[2] i32[]"
}

// Opaque is a StableHLO operation that the IR has no word for. It compiles as it is written and is not evaluated.
var Opaque = define(Def[OpaqueAttr]{
	Name: "opaque", Doc: "A StableHLO operation by its text, without effects.", Args: "xs...",
	Infer: inferOpaque, Lower: lowerOpaque, Eval: evalOpaque,
})

// OpaqueEffect is an operation by its text that must run once wherever it stands, whether its results are used or not.
var OpaqueEffect = define(Def[OpaqueAttr]{
	Name: "opaque_effect", Doc: "A StableHLO operation by its text, with an effect.", Args: "xs...",
	Traits: ir.Effect,
	Infer:  inferOpaque, Lower: lowerOpaque, Eval: evalOpaque,
})

// TypeList writes types as OpaqueAttr.Out.
func TypeList(ts []tensor.Type) string {
	s := make([]string, len(ts))
	for i, t := range ts {
		s[i] = t.String()
	}
	return strings.Join(s, " ")
}

// inferOpaque checks the types in 1 and 2 and the places of arguments in 3.
func inferOpaque(in []tensor.Type, a OpaqueAttr) (out []tensor.Type, err error) {
	for _, s := range strings.Fields(a.Out) {
		t, err := tensor.ParseType(s)
		if err != nil {
			return nil, fail(1, "result types: %v", err)
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, fail(2, "no result types, wanted one or more")
	}
	_, bad := fillOpaque(a.Text, len(in), func(int) string { return "" })
	if bad != "" {
		return nil, fail(3, "text has %s, wanted %%{0} to %%{%d}", bad, len(in)-1)
	}
	return out, nil
}

// fillOpaque puts arguments in their places; bad is a place that is none.
func fillOpaque(text string, args int, name func(i int) string) (out, bad string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "%{")
		b.WriteString(before)
		if !found {
			return b.String(), ""
		}
		number, after, _ := strings.Cut(rest, "}")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= args {
			return "", fmt.Sprintf("%%{%.20s}", number)
		}
		b.WriteString(name(i))
		text = after
	}
}

func lowerOpaque(e ir.Emitter, n *ir.Node, a OpaqueAttr) []ir.Ref {
	args := refs(e, n)
	text, _ := fillOpaque(a.Text, len(args), func(i int) string { return args[i].Name })
	out := make([]tensor.Type, len(n.Outs))
	for i, o := range n.Outs {
		out[i] = o.Type
	}
	return e.Emit(ir.HLO{Name: a.Name, Verbatim: text, Out: out})
}

func evalOpaque(_ []*tensor.Tensor, a OpaqueAttr, _ []tensor.Type) ([]*tensor.Tensor, error) {
	return nil, fmt.Errorf("%s has no evaluator: run it on a plugin", a.Name)
}
