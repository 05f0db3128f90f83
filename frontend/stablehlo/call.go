package stablehlo

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// rule builds what an operation computes: one value a result, of the types that the text declares. It throws by fail or unsupported, or
// gives nothing where the IR has no word for this form: then the operation travels opaquely.
type rule func(c *call) []*ir.Value

// allRules are all rules by name, a family a file.
func allRules() map[string]rule {
	all := make(map[string]rule)
	for _, family := range []map[string]rule{elementwiseRules, moveRules, linearRules, batchNormRules, reduceRules, indexRules, controlRules, callRules} {
		maps.Copy(all, family)
	}
	return all
}

// call is one operation while its rule runs.
type call struct {
	p     *importer
	b     *ir.Builder
	s     *scope
	o     *operation
	args  []*ir.Value
	tuple []*ir.Value // the result of an operation that makes a tuple
}

// run resolves operands, applies the rule and holds its results to the declared types. Neither results nor an error: an operand failed.
func (c *call) run() (out []*ir.Value, err *diag.Error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ir.ShapeError:
			err = &diag.Error{Code: r.Code(), Msg: c.o.name + ": " + r.Msg, Cause: r}
		case abandoned:
			out = nil
		case opError:
			err = &diag.Error{Code: r.code, Msg: c.o.name + ": " + r.msg, Notes: r.notes}
		default:
			panic(r)
		}
	}()
	c.spend(1)
	if tupleRules[c.o.name] != nil {
		return tupleRules[c.o.name](c), nil
	}
	whole := true
	for i, a := range c.o.args {
		if t, ok := c.s.tuple(a.name); ok && c.o.name == "func.call" {
			c.args = append(c.args, t...)
			continue
		}
		v := c.p.value(c.s, a)
		if v != nil && i < len(c.o.in) && len(c.o.in) == len(c.o.args) {
			if t := c.o.in[i]; t.bad == "" && !t.Equal(v.Type) {
				c.fail("operand %d is %s, wanted %s as its signature says", i, v.Type, t.Type)
			}
		}
		whole = whole && v != nil
		c.args = append(c.args, v)
	}
	if !whole {
		return nil, nil
	}
	for i, t := range c.o.out {
		if t.bad != "" {
			c.unsupportedBut(t.instead, "result %d is %s, wanted %s", i, clip(t.text), t.bad)
		}
	}
	c.refuseKnown()
	if f := c.p.rules[c.o.name]; f != nil {
		before := len(c.b.Body)
		out = f(c)
		if out == nil {
			c.b.Body = c.b.Body[:before]
		}
	}
	if out == nil {
		out = c.opaque()
	}
	if named := len(out); len(out) != len(c.o.out) || c.o.named != 0 && c.o.named != named && !c.o.tuple {
		c.fail("%d results named, %d by its signature, wanted %d", c.o.named, len(c.o.out), len(out))
	}
	for i, v := range out {
		if !v.Type.Equal(c.o.out[i].Type) {
			c.fail("result %d is %s, wanted %s by its operands and attributes", i, c.o.out[i].Type, v.Type)
		}
	}
	if c.o.tuple {
		c.tuple = out
	}
	return out, nil
}

func (c *call) fail(format string, args ...any) {
	panic(opError{code: "stablehlo/operation", msg: fmt.Sprintf(format, args...)})
}

func (c *call) unsupported(format string, args ...any) {
	panic(opError{code: "stablehlo/unsupported", msg: fmt.Sprintf(format, args...)})
}

// unsupportedBut says what to do instead in a note, if there is one.
func (c *call) unsupportedBut(note, format string, args ...any) {
	e := opError{code: "stablehlo/unsupported", msg: fmt.Sprintf(format, args...)}
	if note != "" {
		e.notes = []string{note}
	}
	panic(e)
}

// abandoned is thrown where something inside of the operation failed and is reported.
type abandoned struct{}

// spend counts what is made towards maxNodes.
func (c *call) spend(n int) {
	if c.p.nodes += n; c.p.nodes > maxNodes {
		c.p.full = true
		panic(opError{code: "stablehlo/size", msg: fmt.Sprintf("more than %d operations with called functions written out, wanted at most that", maxNodes)})
	}
}

// arity demands a number of operands.
func (c *call) arity(n int) {
	if len(c.args) != n {
		c.fail("%d operands, wanted %d", len(c.args), n)
	}
}

// out is the declared type of the only result.
func (c *call) out() tensor.Type {
	if len(c.o.out) != 1 {
		c.fail("%d results, wanted 1", len(c.o.out))
	}
	return c.o.out[0].Type
}

// region is the only region, or the i-th, with a number of parameters.
func (c *call) region(i, params int) *region {
	if i >= len(c.o.regions) {
		c.fail("%d regions, wanted %d", len(c.o.regions), i+1)
	}
	r := c.o.regions[i]
	if params >= 0 && len(r.params) != params {
		c.fail("region %d has %d parameters, wanted %d", i, len(r.params), params)
	}
	return r
}

// list is an attribute of integers, or def where it is absent.
func (c *call) list(name string, def []int64) []int64 {
	a, ok := c.o.attrs.find(name)
	if !ok {
		return def
	}
	v, ok := a.integers()
	if !ok {
		c.fail("%s is no list of integers, wanted one", name)
	}
	return v
}

// int is an attribute of one integer, or def where it is absent.
func (c *call) int(name string, def int64) int64 {
	v := c.list(name, []int64{def})
	if len(v) != 1 {
		c.fail("%s has %d values, wanted 1", name, len(v))
	}
	return v[0]
}

// float is an attribute of a finite number.
func (c *call) float(name string) float64 {
	a, ok := c.o.attrs.find(name)
	if !ok || a.Num == nil {
		c.fail("no %s, wanted a number", name)
	}
	v, err := strconv.ParseFloat(*a.Num, 64)
	if err != nil || math.IsInf(v, 0) {
		c.fail("%s is %s, wanted a decimal number", name, clip(*a.Num))
	}
	return v
}

// flag is an attribute of a bool, false where it is absent.
func (c *call) flag(name string) bool {
	a, ok := c.o.attrs.find(name)
	if !ok {
		return false
	}
	v := a.bools()
	return len(v) == 1 && v[0]
}

// numbers are fields of a dialect attribute that are lists, empty where absent.
func (c *call) numbers(attribute, name string) []int64 {
	text, ok := field(c.hash(attribute), name)
	if !ok {
		return nil
	}
	v, ok := splitIntegers(text)
	if !ok {
		c.fail("%s of %s is %q, wanted integers", name, attribute, clip(text))
	}
	return v
}

// hash is the text of a dialect attribute, its alias resolved.
func (c *call) hash(name string) string {
	a, ok := c.o.attrs.find(name)
	if !ok || a.Hash == nil {
		c.fail("no %s, wanted a dialect attribute", name)
	}
	if text, ok := c.p.syntax.aliases[*a.Hash]; ok {
		return text
	}
	return *a.Hash
}

// one wraps a single result.
func one(v *ir.Value) []*ir.Value { return []*ir.Value{v} }

// ones are n ones.
func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }

// count is 0, 1, ..., n-1.
func count(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// cast converts to d, or gives v itself.
func (c *call) cast(v *ir.Value, d tensor.DType) *ir.Value { return op.Cast(c.b, v, d) }

// spread repeats a scalar to dims.
func (c *call) spread(v *ir.Value, dims []int64) *ir.Value { return op.BroadcastTo(c.b, v, dims) }

// refuseKnown refuses what no program on one device can do, and says what to do instead.
func (c *call) refuseKnown() {
	name := strings.TrimPrefix(c.o.name, "stablehlo.")
	switch name {
	case "all_reduce", "all_gather", "all_to_all", "reduce_scatter", "collective_permute", "collective_broadcast", "collective_reduce", "async_start", "async_done",
		"partition_id", "replica_id", "cross-replica-sum", "sdy.manual_computation", "sdy.all_reduce", "sdy.all_gather", "sdy.all_slice", "sdy.all_to_all", "sdy.collective_permute":
		c.unsupportedBut("export the function without shard_map or pmap: tpuc places computations on devices itself",
			"a collective between devices, wanted a program for one device")
	case "infeed", "outfeed", "send", "recv", "create_token", "after_all":
		c.unsupportedBut("pass the data as arguments and results of the function", "communication with a host, wanted a pure function")
	}
}
