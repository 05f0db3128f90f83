package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// loop repeats step on the state as long as the step's number is below count, an i32 scalar or nil for limit. step gets the number, an i32
// scalar, and the state, and gives the new state, of the same types; what it reads from outside must be part of the state. c.b builds into
// the step while it runs.
func (c *call) loop(limit int64, count *ir.Value, state []*ir.Value, step func(i *ir.Value, p []*ir.Value) []*ir.Value) []*ir.Value {
	if count == nil && limit <= 0 {
		return state
	}
	if count == nil {
		count = intConst(c.b, tensor.I32, limit)
	}
	all := append([]*ir.Value{intConst(c.b, tensor.I32, 0), count}, state...)
	more, next := &ir.Func{Name: c.im.funcName("steps_cond")}, &ir.Func{Name: c.im.funcName("steps_body")}
	for _, v := range all {
		more.AddParam("", v.Type)
		next.AddParam("", v.Type)
	}
	outside := c.b
	defer func() { c.b = outside }()
	c.b = &ir.Builder{Loc: outside.Loc}
	more.Results = []*ir.Value{compare(c.b, op.LT, more.Params[0], more.Params[1])}
	more.Body = c.b.Body

	c.b = &ir.Builder{Loc: outside.Loc}
	p := next.Params
	out := step(p[0], p[2:])
	next.Results = append([]*ir.Value{op.Add.Make(c.b, p[0], intConst(c.b, tensor.I32, 1)), p[1]}, out...)
	next.Body = c.b.Body
	return op.While.MakeAll(outside, op.WhileAttr{Cond: more, Body: next}, all...)[2:]
}
