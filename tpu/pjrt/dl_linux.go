package pjrt

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// dlopen loads a shared library with its symbols kept to itself: two plugins carry clashing copies of LLVM.
func dlopen(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// dlsym finds an exported function.
func dlsym(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }

// ccall0 calls a C function without arguments that returns a pointer.
func ccall0(fn uintptr) cptr {
	r, _, _ := purego.SyscallN(fn)
	return *(*cptr)(unsafe.Pointer(&r))
}

// ccall1 calls a C function of one pointer that returns a pointer (or nothing). The object behind arg stays
// alive and in place for the call.
func ccall1(fn uintptr, arg cptr) cptr {
	r, _, _ := purego.SyscallN(fn, uintptr(arg))
	return *(*cptr)(unsafe.Pointer(&r))
}

// newCallback makes f callable from C. The memory is never freed: call it once a process.
func newCallback(f func(err cptr, arg uintptr) uintptr) uintptr { return purego.NewCallback(f) }
