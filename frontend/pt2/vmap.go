package pt2

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Regions of vmap. A raw graph marks where torch.vmap begins and ends; between the marks tensors have the shapes that the mapped
// function sees, without the mapped dimension. The region's nodes are imported by the usual rules to a list of their own and lifted from
// there to the graph around it, whenever a result leaves.

const predispatch = "torch._functorch.predispatch."

// vmapRule is the rule of a mark, or nil.
func vmapRule(target string) rule {
	switch target {
	case predispatch + "lazy_load_decompositions":
		return noResults
	case predispatch + "_vmap_increment_nesting":
		return beginVmap
	case predispatch + "_vmap_decrement_nesting":
		return endVmap
	case predispatch + "_add_batch_dim":
		return addBatchDim
	case predispatch + "_remove_batch_dim":
		return removeBatchDim
	}
	return nil
}

// noResults gives None for every result of the node.
func noResults(c *call) []*ref { return make([]*ref, len(outputNames(c.node))) }

// vmap is a region that has begun.
type vmap struct {
	lift   *vectorizer
	inner  *ir.Builder
	lifted int        // nodes of inner that are
	params []*storage // of lifted tensors, which the region must not write to
}

// region is the innermost region.
func (c *call) region() *vmap {
	if len(c.im.vmaps) == 0 {
		c.failf("a mark of vmap outside of its regions")
	}
	return c.im.vmaps[len(c.im.vmaps)-1]
}

func beginVmap(c *call) []*ref {
	n := c.number("batch_size", *c.position(0)).i
	if n < 0 || (tensor.Type{DType: tensor.Bool, Dims: []int64{n}}).Check() != nil {
		c.failf("batch size %d, wanted one of a tensor", n)
	}
	v := &vmap{lift: newVectorizer(c.im.b, n), inner: &ir.Builder{Loc: c.b.Loc}}
	c.im.vmaps = append(c.im.vmaps, v)
	c.im.b = v.inner
	return noResults(c)
}

func endVmap(c *call) []*ref {
	v := c.region()
	c.flush(v)
	for _, s := range v.params {
		if s.version > 0 {
			c.unsupported("the function of vmap writes in place to a tensor that it maps over")
		}
	}
	for _, o := range c.im.origins {
		if v.lift.at(o.store.cur).batched {
			c.unsupported("the function of vmap writes in place to %q, which it does not map over", clip(o.names[0]))
		}
	}
	c.im.vmaps = c.im.vmaps[:len(c.im.vmaps)-1]
	c.im.b = v.lift.b
	// What the region made has no meaning outside of it; results left by _remove_batch_dim.
	for name, r := range c.im.tensors {
		if !r.poison && v.lift.at(r.store.cur).batched {
			delete(c.im.tensors, name)
		}
	}
	return noResults(c)
}

// flush lifts the nodes made so far.
func (c *call) flush(v *vmap) {
	v.lift.b.Loc = c.b.Loc
	for ; v.lifted < len(v.inner.Body); v.lifted++ {
		if n := v.inner.Body[v.lifted]; !v.lift.node(n) {
			c.unsupported("%s within vmap over %d elements", n.Op.Name, v.lift.n)
		}
	}
	v.lift.b.Loc = c.b.Loc
}

// addBatchDim imports _add_batch_dim(x, dim, level): x without dim, which the region maps over.
func addBatchDim(c *call) []*ref {
	v := c.region()
	a := c.position(0)
	if a.Tensor == nil {
		c.failf("an argument is a %s, wanted a tensor", a.kind())
	}
	r := c.tensorNamed(a.Tensor.Name)
	x := r.read(c.b)
	c.flush(v)
	rank := x.Type.Rank()
	dim := c.wrap("in_dim", c.number("in_dim", *c.position(1)).i, rank)
	if rank == 0 || x.Type.Dims[dim] != v.lift.n {
		c.failf("vmap over dimension %d of %s, wanted an extent of %d", dim, x.Type, v.lift.n)
	}
	whole := v.lift.at(x)
	if whole.batched {
		c.unsupported("vmap over a tensor that it maps over already")
	}
	row := append(append([]int64{}, x.Type.Dims[:dim]...), x.Type.Dims[dim+1:]...)
	p := &ir.Value{Type: x.Type.WithDims(row...)}
	v.lift.values[p] = lifted{moveAxis(v.lift.b, whole.v, int64(dim), 0), true}
	out := fresh(p)
	v.params = append(v.params, out.store)
	return []*ref{out}
}

// removeBatchDim imports _remove_batch_dim(x, level, size, dim): the rows of x, with their dimension at dim.
func removeBatchDim(c *call) []*ref {
	v := c.region()
	a := c.position(0)
	if a.Tensor == nil {
		c.failf("an argument is a %s, wanted a tensor", a.kind())
	}
	x := c.tensorNamed(a.Tensor.Name).read(c.b)
	c.flush(v)
	whole := v.lift.whole(x)
	dim := c.wrap("out_dim", c.number("out_dim", *c.position(3)).i, whole.Type.Rank())
	return []*ref{fresh(moveAxis(v.lift.b, whole, 0, int64(dim)))}
}
