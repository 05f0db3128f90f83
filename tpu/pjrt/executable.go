package pjrt

import (
	"fmt"
	"unsafe"
)

// Executable is a compiled program that is not (or not necessarily) loaded on devices.
type Executable struct {
	plugin *Plugin
	h      *handle
}

// MemoryStats is what a program needs, in bytes per device. The order is PJRT's; a figure the plugin does not
// know is 0. Temp leaves the arguments and outputs out; Peak and Total count everything live at once.
type MemoryStats struct {
	GeneratedCode     int64
	Argument          int64
	Output            int64
	Alias             int64 // part of Argument that is reused for outputs
	Temp              int64
	HostGeneratedCode int64
	HostArgument      int64
	HostOutput        int64
	HostAlias         int64
	HostTemp          int64
	Peak              int64
	Total             int64
	TotalAllocation   int64
	Indefinite        int64
	PeakUnpaddedHeap  int64
}

// newExecutable takes ownership of a PJRT_Executable. The caller holds parent.
func newExecutable(p *Plugin, ptr cptr, parent *handle) *Executable {
	return &Executable{plugin: p, h: newHandle("executable", ptr, parent, func(ptr cptr) {
		_ = call(p, fnExecutableDestroy, &objArgs{obj: ptr}) // no result anyone could act on
	})}
}

// Close releases the executable.
func (e *Executable) Close() {
	if e != nil {
		e.h.close()
	}
}

// Name is the module's name as the compiler kept it.
func (e *Executable) Name() (string, error) { return e.text(fnExecutableName) }

// Fingerprint identifies the compiled program, in bytes that need not be text; plugins may answer Unimplemented. On CPU it differs between
// compiles of the same module.
func (e *Executable) Fingerprint() (string, error) { return e.text(fnExecutableFingerprint) }

// NumOutputs is the number of results per device.
func (e *Executable) NumOutputs() (int, error) { return e.count(fnExecutableNumOutputs) }

// NumPartitions is the number of partitions the program was compiled for.
func (e *Executable) NumPartitions() (int, error) { return e.count(fnExecutableNumPartitions) }

// OutputTypes are the element types of the results.
func (e *Executable) OutputTypes() ([]BufferType, error) {
	var out []BufferType
	err := e.with(func(ptr cptr) error {
		a := &objArray{obj: ptr}
		err := call(e.plugin, fnExecutableOutputTypes, a)
		out = goSlice[BufferType](a.ptr, a.n)
		return err
	})
	return out, err
}

// OutputDims are the per-device dimensions of the results.
func (e *Executable) OutputDims() ([][]int64, error) {
	var out [][]int64
	err := e.with(func(ptr cptr) error {
		a := &outputDimsArgs{executable: ptr}
		if err := call(e.plugin, fnExecutableOutputDims, a); err != nil {
			return err
		}
		p := a.dims
		for _, n := range goSlice[uintptr](a.dimSizes, a.numOutputs) {
			if n > 1<<10 {
				return fmt.Errorf("the plugin reports an output of rank %d, want at most %d", n, 1<<10)
			}
			out = append(out, append([]int64{}, goSlice[int64](p, n)...))
			p = unsafe.Add(p, n*8)
		}
		return nil
	})
	return out, err
}

// MemoryStats are the compiler's memory figures; available for loaded and deserialized executables too.
func (e *Executable) MemoryStats() (MemoryStats, error) {
	var out MemoryStats
	err := e.with(func(ptr cptr) error {
		a := &memoryStatsArgs{executable: ptr}
		err := call(e.plugin, fnExecutableMemoryStats, a)
		out = a.stats
		return err
	})
	return out, err
}

// CostAnalysis are the compiler's estimates ("flops", "bytes accessed", ...) in its order, which may be random. The CPU plugin
// answers Unimplemented. Loop bodies may be counted once and times may be nonsense: do not choose by them.
func (e *Executable) CostAnalysis() ([]NamedValue, error) {
	var out []NamedValue
	err := e.with(func(ptr cptr) error {
		a := &objCountArray{obj: ptr}
		if err := call(e.plugin, fnExecutableGetCostAnalysis, a); err != nil {
			return err
		}
		var err error
		out, err = goValues(a.ptr, a.n)
		return err
	})
	return out, err
}

// Serialize is the program in the plugin's own format, for Client.Load of the same plugin and version.
func (e *Executable) Serialize() ([]byte, error) {
	var out []byte
	err := e.with(func(ptr cptr) error {
		a := &serializeArgs{obj: ptr}
		if err := call(e.plugin, fnExecutableSerialize, a); err != nil {
			return err
		}
		out = copyAndFree(a)
		return nil
	})
	return out, err
}

// copyAndFree copies serialized bytes, which may exceed 2 GiB, and frees what backs them.
func copyAndFree(a *serializeArgs) []byte {
	var out []byte
	if a.bytes != nil {
		out = append(out, unsafe.Slice((*byte)(a.bytes), a.size)...)
	}
	if a.deleter != 0 {
		ccall1(a.deleter, a.backing)
	}
	return out
}

// with runs f with the C object held.
func (e *Executable) with(f func(cptr) error) error {
	if e == nil {
		return closedError("a nil executable")
	}
	ptr, err := e.h.acquire()
	if err != nil {
		return err
	}
	defer e.h.release()
	return f(ptr)
}

func (e *Executable) text(s slot) (string, error) {
	var out string
	err := e.with(func(ptr cptr) (err error) { out, err = e.plugin.text(s, ptr); return })
	return out, err
}

func (e *Executable) count(s slot) (int, error) {
	a := &objSize{}
	err := e.with(func(ptr cptr) error { a.obj = ptr; return call(e.plugin, s, a) })
	if err == nil && a.out > maxLen {
		err = fmt.Errorf("%s reports %d, want at most %d", s, a.out, maxLen)
	}
	return int(a.out), err
}
