package pt2

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir/diag"
)

// Symbol is a symbolic size of the inputs' shapes.
type Symbol struct {
	Name     string
	Min, Max int64    // both allowed; Max is math.MaxInt64 where there is no bound
	Hint     int64    // the size that the example inputs had; 0 if not recorded
	Where    []string // the dimensions that are this symbol itself, such as "x.0"
}

// Range is such as "2..64" or "2 or more".
func (s Symbol) Range() string {
	if s.Max == math.MaxInt64 {
		return fmt.Sprintf("%d or more", s.Min)
	}
	return fmt.Sprintf("%d..%d", s.Min, s.Max)
}

// Binding gives every symbol a value.
type Binding map[string]int64

// readSymbols collects the symbols of the inputs' shapes with their ranges.
func (p *Program) readSymbols() error {
	bySym := make(map[string]*Symbol)
	for _, in := range p.Inputs {
		for d, dim := range in.Dims {
			if dim.expr == nil {
				continue
			}
			set := make(map[string]bool)
			dim.expr.symbols(set)
			for name := range set {
				if bySym[name] == nil {
					bySym[name] = p.symbol(name)
				}
			}
			if dim.expr.fn == "Symbol" {
				s := bySym[dim.expr.name]
				s.Where = append(s.Where, dimName(in, d))
				if meta := p.ep.GraphModule.Graph.TensorValues[in.Name]; d < len(meta.Sizes) && meta.Sizes[d].Expr != nil {
					if h := meta.Sizes[d].Expr.Hint; h != nil && h.Int != nil {
						s.Hint = *h.Int
					}
				}
			}
		}
		if in.Kind == Number { // a symbolic number as input is a symbol too
			if v, ok := p.ep.GraphModule.Graph.SymIntValues[in.Name]; ok && v.Expr != nil {
				e, err := p.parse(v.Expr.Expr)
				if err != nil {
					return err
				}
				if e.fn == "Symbol" && bySym[e.name] == nil {
					bySym[e.name] = p.symbol(e.name)
				}
				if s := bySym[e.name]; s != nil && e.fn == "Symbol" {
					s.Where = append(s.Where, in.Name)
					if v.Expr.Hint != nil && v.Expr.Hint.Int != nil {
						s.Hint = *v.Expr.Hint.Int
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bySym)) {
		p.Symbols = append(p.Symbols, *bySym[name])
	}
	return nil
}

// symbol is a symbol with its range. Torch's own default range of a size starts at 0; open ends are null.
func (p *Program) symbol(name string) *Symbol {
	s := &Symbol{Name: name, Max: math.MaxInt64}
	if r, ok := p.ep.RangeConstraints[name]; ok {
		if r.Min != nil {
			s.Min = max(*r.Min, 0)
		}
		if r.Max != nil {
			s.Max = *r.Max
		}
	}
	return s
}

// dimName is how a user names a dimension: the input's name, a dot, the dimension's number.
func dimName(in Leaf, d int) string { return in.Name + "." + strconv.Itoa(d) }

// Hints binds every symbol to the size that the example inputs of the export had.
func (p *Program) Hints() (Binding, error) {
	b := make(Binding)
	var errs diag.List
	for _, s := range p.Symbols {
		if s.Hint == 0 {
			p.unbound(&errs, s)
			continue
		}
		b[s.Name] = s.Hint
	}
	return b, errs.Err()
}

// Bind gives symbols the values that a user named: by the symbol ("s77") or by a dimension of an input ("input_ids.1"). Every
// symbol must get a value within its range; a dimension that the export fixed may be named with its own value only.
func (p *Program) Bind(dims map[string]int64) (Binding, error) {
	var errs diag.List
	bound, by := p.bindDims(&errs, dims)
	p.finish(&errs, bound, by)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return bound, nil
}

// BindOrExample is Bind, but that symbols which dims leave open, named in open, get the sizes of the export's example or, where those are not
// recorded, the smallest that torch does not treat apart.
func (p *Program) BindOrExample(dims map[string]int64) (bound Binding, open []Symbol, err error) {
	var errs diag.List
	bound, by := p.bindDims(&errs, dims)
	for _, s := range p.Symbols {
		if _, ok := bound[s.Name]; ok {
			continue
		}
		open = append(open, s)
		by[s.Name] = s.Name
		if bound[s.Name] = s.Hint; s.Hint == 0 {
			bound[s.Name] = min(max(s.Min, unspecial), s.Max)
		}
	}
	p.finish(&errs, bound, by)
	if err := errs.Err(); err != nil {
		return nil, nil, err
	}
	return bound, open, nil
}

// unspecial is the smallest size that an export takes as any: 0 and 1 get graphs of their own.
const unspecial = 2

// bindDims gives the symbols that dims name their values. by says which name bound a symbol.
func (p *Program) bindDims(errs *diag.List, dims map[string]int64) (bound Binding, by map[string]string) {
	bound, by = make(Binding), make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(dims)) {
		v := dims[name]
		dim, ok := p.findDim(name)
		if !ok {
			e := errs.Addf(nil, "pt2/dim", "there is no symbolic dimension %q", name)
			p.listDims(e)
			continue
		}
		if dim.expr == nil {
			if dim.Size != v {
				errs.Addf(nil, "pt2/dim", "dimension %s is set to %d, but the export fixed it to %d", name, v, dim.Size).
					Note("export the model again with dynamic_shapes for that dimension")
			}
			continue
		}
		p.solve(errs, bound, by, name, dim.expr, v)
	}
	return bound, by
}

// BindShapes gives symbols the values that make the tensor inputs have these shapes, in the order of the tensor inputs.
// Every mismatch is reported, with both dimensions where two disagree.
func (p *Program) BindShapes(shapes [][]int64) (Binding, error) {
	var errs diag.List
	var inputs []Leaf
	for _, in := range p.Inputs {
		if in.Kind == Tensor {
			inputs = append(inputs, in)
		}
	}
	if len(shapes) != len(inputs) {
		return nil, diag.Errorf(nil, "pt2/inputs", "%d input tensors, wanted %d", len(shapes), len(inputs))
	}
	bound, by := make(Binding), make(map[string]string)
	// Plain symbols first, so that expressions over them are checks and not equations.
	for pass := range 2 {
		for i, in := range inputs {
			if len(shapes[i]) != len(in.Dims) {
				if pass == 0 {
					errs.Addf(nil, "pt2/shape", "input %s has rank %d, wanted %d", in.Name, len(shapes[i]), len(in.Dims))
				}
				continue
			}
			for d, dim := range in.Dims {
				v := shapes[i][d]
				switch {
				case dim.expr == nil && pass == 0 && dim.Size != v:
					errs.Addf(nil, "pt2/shape", "input %s dimension %d is %d, wanted %d: the export fixed it", in.Name, d, v, dim.Size)
				case dim.expr != nil && (dim.expr.fn == "Symbol") == (pass == 0):
					p.solve(&errs, bound, by, dimName(in, d), dim.expr, v)
				}
			}
		}
	}
	p.finish(&errs, bound, by)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return bound, nil
}

// findDim finds a dimension by symbol or by INPUT.DIM.
func (p *Program) findDim(name string) (Dim, bool) {
	for _, s := range p.Symbols {
		if s.Name == name {
			return Dim{Size: -1, Expr: name, expr: &expr{fn: "Symbol", name: name}}, true
		}
	}
	for _, in := range p.Inputs {
		for d, dim := range in.Dims {
			if dimName(in, d) == name || len(in.Path) > 0 && in.Path+"."+strconv.Itoa(d) == name {
				return dim, true
			}
		}
	}
	return Dim{}, false
}

// listDims notes what may be bound.
func (p *Program) listDims(e *diag.Error) {
	if len(p.Symbols) == 0 {
		e.Note("all dimensions of this model are fixed")
	}
	for _, s := range p.Symbols {
		e.Note("%s (%s) may be %s", s.Name, strings.Join(s.Where, ", "), s.Range())
	}
}

// solve makes e equal v: it binds the one symbol of e that has no value, or checks.
func (p *Program) solve(errs *diag.List, bound Binding, by map[string]string, name string, e *expr, v int64) {
	set := make(map[string]bool)
	e.symbols(set)
	var free []string
	for s := range set {
		if _, ok := bound[s]; !ok {
			free = append(free, s)
		}
	}
	switch len(free) {
	case 0:
		got, err := e.evalInt(bound)
		if err != nil {
			errs.Addf(nil, "pt2/dim", "dimension %s: %v", name, err)
		} else if got != v {
			var with []string
			for _, s := range slices.Sorted(maps.Keys(set)) {
				with = append(with, fmt.Sprintf("%s is %d by %s", s, bound[s], by[s]))
			}
			errs.Addf(nil, "pt2/dim", "dimension %s is %d, wanted %s = %d", name, v, e, got).Note("%s", strings.Join(with, "; "))
		}
	case 1:
		x, ok := solveLinear(e, free[0], bound, v)
		if !ok {
			errs.Addf(nil, "pt2/dim", "dimension %s is %d, which %s cannot be", name, v, e)
			return
		}
		bound[free[0]], by[free[0]] = x, name
	default:
		slices.Sort(free)
		errs.Addf(nil, "pt2/dim", "dimension %s is %s: bind %s by their own names", name, e, strings.Join(free, " and "))
	}
}

// solveLinear finds an integer x >= 0 with e(x) = v for e linear in x, or with e = x // n form by trying the neighbourhood.
func solveLinear(e *expr, sym string, bound Binding, v int64) (int64, bool) {
	try := maps.Clone(bound)
	at := func(x int64) (int64, bool) {
		try[sym] = x
		y, err := e.evalInt(try)
		return y, err == nil
	}
	y0, ok0 := at(64)
	y1, ok1 := at(128)
	if !ok0 || !ok1 || y0 == y1 {
		return 0, false
	}
	guess := 64 + math.Round(float64(v-y0)*64/float64(y1-y0))
	if !(guess >= 0 && guess < 1<<53) {
		return 0, false
	}
	for _, x := range []int64{int64(guess), int64(guess) - 1, int64(guess) + 1} {
		if y, ok := at(x); ok && y == v && x >= 0 {
			return x, true
		}
	}
	return 0, false
}

// finish reports symbols without a value, values outside their ranges, and input dimensions that no such size exists for.
func (p *Program) finish(errs *diag.List, bound Binding, by map[string]string) {
	for _, s := range p.Symbols {
		v, ok := bound[s.Name]
		switch {
		case !ok && len(*errs) == 0:
			p.unbound(errs, s)
		case ok && (v < s.Min || v > s.Max):
			name := by[s.Name]
			if name != s.Name {
				name += " (" + s.Name + ")"
			}
			errs.Addf(nil, "pt2/range", "dimension %s is %d, wanted %s", name, v, s.Range())
		}
	}
	if len(*errs) > 0 {
		return
	}
	for _, in := range p.Inputs {
		for d, dim := range in.Dims {
			if dim.expr == nil {
				continue
			}
			if v, err := dim.expr.evalInt(bound); err != nil || v < 0 {
				errs.Addf(nil, "pt2/dim", "dimension %s = %s is %d with these sizes, wanted 0 or more", dimName(in, d), dim.Expr, v)
			}
		}
	}
}

// unbound reports a symbol without a value, its range, and how to give one.
func (p *Program) unbound(errs *diag.List, s Symbol) {
	e := errs.Addf(nil, "pt2/unbound", "symbolic dimension %s (%s) has no size, wanted %s", s.Name, strings.Join(s.Where, ", "), s.Range())
	e.Note("give it with --dim %s=%d, or with inputs", s.Name, max(s.Hint, s.Min, 1))
}

// sizeOf evaluates a recorded size. unbacked reports a size that depends on the data.
func (p *Program) sizeOf(s symInt, bound Binding) (v int64, unbacked bool, err error) {
	switch {
	case s.Int != nil:
		return *s.Int, false, nil
	case s.Expr == nil:
		return 0, false, errors.New("a size has neither a value nor an expression")
	}
	e, err := p.parse(s.Expr.Expr)
	if err != nil {
		return 0, false, err
	}
	v, err = e.evalInt(bound)
	var u unboundError
	if errors.As(err, &u) {
		return 0, true, nil
	}
	return v, false, err
}
