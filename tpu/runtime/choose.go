package runtime

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
)

// Policy says what becomes of a call whose shapes no program has.
type Policy string

// Policies. The zero value is Strict.
const (
	Strict  Policy = "strict"  // an error that lists wanted and available shapes
	Compile Policy = "compile" // a further program is compiled; in the background where a larger one can serve meanwhile, with padding that is proved
	Pad     Policy = "pad"     // the smallest larger program serves, with padding that is proved; an error without one
)

// Policies are all policies.
var Policies = []Policy{Strict, Compile, Pad}

// ParsePolicy reads a policy's name.
func ParsePolicy(s string) (Policy, error) {
	if p := Policy(s); slices.Contains(Policies, p) {
		return p, nil
	}
	return "", fmt.Errorf("policy %q, wanted one of %v", s, Policies)
}

// choose finds the program for inputs, or makes one, and holds it for the call. how is not nil where they are smaller than the program's.
func (m *Model) choose(ctx context.Context, inputs []*tensor.Tensor) (p *program, how *padding, err error) {
	if p = m.exact(inputs); p != nil {
		m.stats.exact.Add(1)
		return p, nil, nil
	}
	switch m.opts.OnMiss {
	case Pad:
		if p, how = m.holdPadded(inputs); p != nil {
			return p, how, nil
		}
	case Compile:
		dims, err := m.bindDims(inputs)
		if err != nil {
			m.stats.refused.Add(1)
			return nil, nil, err
		}
		for again := true; again; {
			j := m.further(dims, inputs)
			if p, how = m.holdPadded(inputs); p != nil {
				return p, how, nil
			}
			if err := j.wait(ctx); err != nil {
				if ctx.Err() != nil {
					m.stats.failed.Add(1)
				} else {
					m.stats.refused.Add(1)
				}
				return nil, nil, err
			}
			if p = m.exact(inputs); p != nil {
				m.stats.exact.Add(1)
				return p, nil, nil
			}
			m.mu.Lock()
			again = m.jobs[dimFlags(dims)] != j // it was released before this call could hold it
			m.mu.Unlock()
		}
	}
	m.stats.refused.Add(1)
	return nil, nil, m.mismatch(inputs)
}

// exact is the program of the inputs' shapes, held, or nil.
func (m *Model) exact(inputs []*tensor.Tensor) *program {
	for _, p := range *m.programs.Load() {
		if fits(p.inputs, inputs) && m.hold(p) {
			return p
		}
	}
	return nil
}

// holdPadded is a larger program that may serve inputs with padding, held and counted, or nil.
func (m *Model) holdPadded(inputs []*tensor.Tensor) (*program, *padding) {
	for {
		p, how := m.padded(inputs)
		if p == nil {
			return nil, nil
		}
		if m.hold(p) { // otherwise it was released meanwhile, and is no longer in the list
			m.tellPadded(p, how)
			m.stats.padded.Add(1)
			return p, how
		}
	}
}

func fits(want []tensor.Type, inputs []*tensor.Tensor) bool {
	if len(want) != len(inputs) {
		return false
	}
	for i, x := range inputs {
		if x == nil || x.DType != want[i].DType || !slices.Equal(x.Dims, want[i].Dims) || int64(len(x.Data)) != x.Bytes() {
			return false
		}
	}
	return true
}

// mismatch is the error for inputs that fit no program: what is wrong with them by themselves, or which dimension has a size that no program has.
func (m *Model) mismatch(inputs []*tensor.Tensor) error {
	programs := *m.programs.Load()
	man := m.Manifest()
	if len(programs) == 1 {
		ports, _ := man.Ports(programs[0].Program)
		err := CheckInputs(ports, inputs)
		if list, ok := err.(diag.List); ok && len(man.Symbols) > 0 {
			m.advise(list[len(list)-1], programs, inputs)
		}
		return err
	}
	if err := CheckSignatures(man.Inputs, inputs); err != nil {
		return err
	}
	var errs diag.List
	e := errs.Addf(nil, "input/shape", "no program takes inputs (%s)%s", typesOf(inputs), m.changed(programs, inputs))
	const most = 16
	for i, p := range programs {
		if i == most {
			e.Note("and %d more", len(programs)-most)
			break
		}
		e.Note("program %d takes (%s)", i, typeList(p.Inputs))
	}
	m.advise(e, programs, inputs)
	return errs.Err()
}

// advise says what could be done about a miss, and why padding was not.
func (m *Model) advise(e *diag.Error, programs []*program, inputs []*tensor.Tensor) {
	if m.opts.OnMiss == Pad {
		said := make(map[string]bool)
		for _, p := range programs {
			for _, pad := range p.Pads {
				if line := pad.Symbol + ": " + pad.Reason; pad.Reason != "" && !said[line] {
					said[line] = true
					e.Note("no padding along %s", line)
				}
			}
		}
	}
	if dims, err := m.bindDims(inputs); err == nil && len(dims) > 0 {
		e.Note("compile the model for these sizes too (tpuc compile %s), or choose another policy for shapes that are not there", dimFlags(dims))
	}
}

// changed names the dimensions whose size no program has, with the sizes that there are; nothing where each is there, if not together.
func (m *Model) changed(programs []*program, inputs []*tensor.Tensor) string {
	var out []string
	for i, x := range inputs {
		for d, n := range x.Dims {
			var sizes []int64
			for _, p := range programs {
				if !slices.Contains(sizes, p.inputs[i].Dims[d]) {
					sizes = append(sizes, p.inputs[i].Dims[d])
				}
			}
			if !slices.Contains(sizes, n) {
				slices.Sort(sizes)
				out = append(out, fmt.Sprintf("dimension %d (%s) of input %d (%q) is %d, wanted %s", d, m.Manifest().Inputs[i].Dims[d], i, m.Manifest().Inputs[i].Name, n, alternatives(sizes)))
			}
		}
	}
	if out == nil {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}

// alternatives is such as "2, 4 or 8".
func alternatives(v []int64) string {
	s := make([]string, len(v))
	for i, n := range v {
		s[i] = strconv.FormatInt(n, 10)
	}
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " or " + s[len(s)-1]
}

func typesOf(inputs []*tensor.Tensor) string {
	out := make([]string, len(inputs))
	for i, x := range inputs {
		out[i] = x.Type.String()
	}
	return strings.Join(out, ", ")
}

func typeList(list []artifact.Type) string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.String()
	}
	return strings.Join(out, ", ")
}

// tellPadded says once for each size that a larger program serves it.
func (m *Model) tellPadded(p *program, how *padding) {
	key := fmt.Sprint(p.Dims, how.Symbol, how.size)
	m.mu.Lock()
	said := m.padsTold[key]
	m.padsTold[key] = true
	m.mu.Unlock()
	if !said {
		m.notify(fmt.Sprintf("padding: a call with %s = %d runs the program for %s = %d", how.Symbol, how.size, how.Symbol, p.Dim(how.Symbol)))
	}
}

// bindDims gives the model's symbols the values that the inputs' shapes have, as far as they tell. A symbol with two values, one outside of
// its range and a fixed dimension of another size are errors, all at once.
func (m *Model) bindDims(inputs []*tensor.Tensor) (map[string]int64, error) {
	man := m.Manifest()
	if err := CheckSignatures(man.Inputs, inputs); err != nil {
		return nil, err
	}
	type place struct {
		value    int64
		input, d int
	}
	at := make(map[string]place)
	dims := make(map[string]int64)
	var errs diag.List
	for i, s := range man.Inputs {
		for d, text := range s.Dims {
			symbol, scale := multiple(text)
			if symbol == "" {
				continue
			}
			n := inputs[i].Dims[d]
			here := fmt.Sprintf("dimension %d of input %d (%q)", d, i, s.Name)
			if n%scale != 0 {
				errs.Addf(nil, "input/shape", "%s is %d, wanted a multiple of %d as it is %s", here, n, scale, text)
				continue
			}
			n /= scale
			if p, ok := at[symbol]; ok {
				if p.value != n {
					errs.Addf(nil, "input/symbol", "%s and dimension %d of input %d (%q) are one size, %s, and here %d and %d", here, p.d, p.input,
						man.Inputs[p.input].Name, symbol, n, p.value)
				}
				continue
			}
			at[symbol], dims[symbol] = place{n, i, d}, n
			for _, y := range man.Symbols {
				if y.Name == symbol && (n < y.Min || y.Max != nil && n > *y.Max) {
					errs.Addf(nil, "input/range", "%s is %s = %d, wanted %s", here, symbol, n, y.Range())
				}
			}
		}
	}
	return dims, errs.Err()
}

// multiple reads a dimension that is a symbol or a multiple of one; other expressions and numbers have no symbol.
func multiple(text string) (symbol string, scale int64) {
	isSymbol := func(s string) bool {
		for i, c := range s {
			if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
				return false
			}
		}
		return s != ""
	}
	if isSymbol(text) {
		return text, 1
	}
	factor, symbol, ok := strings.Cut(text, "*")
	n, err := strconv.ParseInt(factor, 10, 64)
	if !ok || err != nil || n < 1 || !isSymbol(symbol) {
		return "", 0
	}
	return symbol, n
}

// dimFlags is such as "--dim s0=4 --dim s1=16", sorted.
func dimFlags(dims map[string]int64) string { return strings.Join(dimArgs(dims), " ") }

func dimArgs(dims map[string]int64) []string {
	var out []string
	for _, name := range sortedKeys(dims) {
		out = append(out, "--dim", fmt.Sprintf("%s=%d", name, dims[name]))
	}
	return out
}
