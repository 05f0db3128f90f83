package pjrt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Layout is how an array lies in device memory: XLA's text form, for example "{1,0:T(8,128)(2,1)}".
type Layout string

// MinorToMajor is the order of dimensions, fastest varying first; empty for a scalar.
func (l Layout) MinorToMajor() ([]int, error) {
	s, ok := strings.CutPrefix(string(l), "{")
	if s, ok2 := strings.CutSuffix(s, "}"); ok && ok2 {
		order, _, _ := strings.Cut(s, ":")
		var out []int
		for _, f := range strings.FieldsFunc(order, func(r rune) bool { return r == ',' }) {
			d, err := strconv.Atoi(f)
			if err != nil || d < 0 || slices.Contains(out, d) {
				return nil, fmt.Errorf("layout %q: dimension %q, want distinct numbers", l, f)
			}
			out = append(out, d)
		}
		return out, nil
	}
	return nil, fmt.Errorf("layout %q, want the form {1,0:T(8,128)}", l)
}

// RowMajor says whether the last dimension varies fastest. Tiling within that order does not matter to
// callers: transfers convert it.
func (l Layout) RowMajor() bool {
	order, err := l.MinorToMajor()
	if err != nil {
		return false
	}
	for i, d := range order {
		if d != len(order)-1-i {
			return false
		}
	}
	return true
}

// ParameterLayouts are the layouts in which the program expects its arguments.
func (e *Executable) ParameterLayouts() ([]Layout, error) {
	x := e.extension()
	if x == nil || x.size < unsafe.Sizeof(layoutsExt{}) {
		return nil, noLayouts("PJRT_Layouts_PJRT_Executable_GetParameterLayouts", e.pluginVersion())
	}
	return e.layoutList(x.paramLayouts, "PJRT_Layouts_PJRT_Executable_GetParameterLayouts")
}

// OutputLayouts are the layouts of the program's results.
func (e *Executable) OutputLayouts() ([]Layout, error) {
	x := e.extension()
	if x == nil {
		return nil, noLayouts("PJRT_Layouts_PJRT_Executable_GetOutputLayouts", e.pluginVersion())
	}
	return e.layoutList(x.outputLayouts, "PJRT_Layouts_PJRT_Executable_GetOutputLayouts")
}

// Layout is the layout of the buffer on its device. Passing a buffer to a parameter of another layout gives
// wrong numbers without an error: compare before.
func (b *Buffer) Layout() (Layout, error) {
	ptr, err := b.acquire()
	if err != nil {
		return "", err
	}
	defer b.h.release()
	p := b.client.plugin
	const name = "PJRT_Layouts_PJRT_Buffer_MemoryLayout"
	if p.layouts == nil || p.layouts.bufferLayout == 0 {
		return "", noLayouts(name, p.Version())
	}
	a := &objOut{obj: ptr}
	if err := p.invoke(p.layouts.bufferLayout, name, structSize[objOut](), unsafe.Pointer(a)); err != nil {
		return "", err
	}
	// Unlike an executable's layouts, this one belongs to the caller.
	defer func() {
		d := &objArgs{obj: a.out}
		_ = p.invoke(p.layouts.destroy, "PJRT_Layouts_MemoryLayout_Destroy", structSize[objArgs](), unsafe.Pointer(d))
	}()
	return p.layoutText(a.out)
}

// layoutList calls one of the two list functions, which share a form; the list belongs to the executable.
func (e *Executable) layoutList(f uintptr, name string) ([]Layout, error) {
	if f == 0 {
		return nil, noLayouts(name, e.pluginVersion())
	}
	var out []Layout
	err := e.with(func(ptr cptr) error {
		a := &objCountArray{obj: ptr}
		if err := e.plugin.invoke(f, name, structSize[objCountArray](), unsafe.Pointer(a)); err != nil {
			return err
		}
		for _, l := range goSlice[cptr](a.ptr, a.n) {
			text, err := e.plugin.layoutText(l)
			if err != nil {
				return err
			}
			out = append(out, text)
		}
		return nil
	})
	return out, err
}

// layoutText serializes a PJRT_Layouts_MemoryLayout.
func (p *Plugin) layoutText(layout cptr) (Layout, error) {
	a := &serializeArgs{obj: layout}
	const name = "PJRT_Layouts_MemoryLayout_Serialize"
	if err := p.invoke(p.layouts.serialize, name, structSize[serializeArgs](), unsafe.Pointer(a)); err != nil {
		return "", err
	}
	return Layout(copyAndFree(a)), nil
}

func (e *Executable) extension() *layoutsExt {
	if e == nil {
		return nil
	}
	return e.plugin.layouts
}

func (e *Executable) pluginVersion() Version {
	if e == nil {
		return Version{}
	}
	return e.plugin.Version()
}

func noLayouts(fn string, v Version) error {
	return &Error{Code: Unimplemented, Func: fn, Message: fmt.Sprintf("the plugin (PJRT API %s) lacks this part of the Layouts extension", v)}
}
