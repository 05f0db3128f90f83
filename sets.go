package tpuc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tpuc/frontend/pt2"
	"tpuc/ir/diag"
)

// maxPrograms bounds the programs of one compile.
const maxPrograms = 1024

// programs are the options of each program to compile, sorted by the values of their dimensions. All sizes that the model does not allow are
// refused together.
func (o CompileOptions) programs(ctx context.Context, path string) ([]CompileOptions, error) {
	sets, err := product(o.Dims)
	if err != nil {
		return nil, err
	}
	switch {
	case len(sets) == 0:
		return []CompileOptions{o}, nil
	case len(o.Shapes.Dims) > 0 || o.Shapes.Inputs != nil:
		return nil, errors.New("dimensions are given for one program and for several, wanted one of both")
	case len(sets) > 1 && o.To != "" && o.To != PhasePack:
		return nil, fmt.Errorf("%d programs to phase %s, wanted one size of each dimension", len(sets), o.To)
	case len(sets) > 1:
		if sets, err = bindAll(ctx, path, sets); err != nil {
			return nil, err
		}
	}
	out := make([]CompileOptions, len(sets))
	for i, dims := range sets {
		out[i] = o
		out[i].Dims, out[i].Shapes.Dims, out[i].below = nil, dims, smaller(dims, sets)
		if o.DumpDir != "" && len(sets) > 1 {
			out[i].DumpDir = filepath.Join(o.DumpDir, fmt.Sprintf("program-%d", i))
		}
	}
	return out, nil
}

// smaller gives for each symbol the next smaller size among sets that are equal to dims otherwise.
func smaller(dims map[string]int64, sets []map[string]int64) map[string]int64 {
	out := make(map[string]int64)
	for name, size := range dims {
		for _, set := range sets {
			n := set[name]
			if n >= size || n <= out[name] {
				continue
			}
			other := maps.Clone(set)
			other[name] = size
			if maps.Equal(other, dims) {
				out[name] = n
			}
		}
	}
	return out
}

// product is every choice of one size for each dimension.
func product(dims map[string][]int64) ([]map[string]int64, error) {
	var out []map[string]int64
	for _, name := range slices.Sorted(maps.Keys(dims)) {
		if len(dims[name]) == 0 {
			return nil, fmt.Errorf("dimension %s has no sizes", name)
		}
		if out == nil {
			out = []map[string]int64{{}}
		}
		if len(dims[name]) > maxPrograms/len(out) {
			return nil, fmt.Errorf("the dimensions' sizes make more than %d programs", maxPrograms)
		}
		var next []map[string]int64
		for _, set := range out {
			for _, size := range dims[name] {
				one := maps.Clone(set)
				one[name] = size
				next = append(next, one)
			}
		}
		out = next
	}
	return out, nil
}

// bindAll gives every symbol of the model a value for each set, which may name dimensions of inputs. Sets that come to the same are one. They are
// sorted by value, symbol by symbol.
func bindAll(ctx context.Context, path string, sets []map[string]int64) (_ []map[string]int64, err error) {
	if strings.HasSuffix(path, ".tpu") || isStableHLO(path) {
		return nil, fmt.Errorf("%s has no symbolic dimensions, wanted at most one size", path)
	}
	p, origin, err := openProgram(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, p.Close())
		if origin != nil {
			err = errors.Join(err, origin.Close())
		}
	}()
	var errs diag.List
	said := make(map[string]bool)
	bound := make(map[string]pt2.Binding)
	for _, set := range sets {
		b, err := p.Bind(set)
		var list diag.List
		switch {
		case errors.As(err, &list):
			for _, e := range list {
				if !said[e.Error()] {
					said[e.Error()] = true
					errs = append(errs, e)
				}
			}
		case err != nil:
			return nil, located(path, err)
		default:
			bound[fmt.Sprint(b)] = b // fmt prints maps sorted
		}
	}
	if err := errs.Err(); err != nil {
		return nil, located(path, err)
	}
	var out []map[string]int64
	for _, b := range bound {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b map[string]int64) int { return slices.Compare(values(a), values(b)) })
	return out, nil
}

// values are the sizes in the order of their symbols' names.
func values(set map[string]int64) []int64 {
	var out []int64
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, set[name])
	}
	return out
}
