package pjrt

import (
	"fmt"
	"unsafe"
)

// Code is PJRT_Error_Code (the canonical codes of absl::Status).
type Code int32

const (
	OK                 Code = 0
	Cancelled          Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	OutOfRange         Code = 11
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16
)

var codeNames = [...]string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
	"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
	"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}

func (c Code) String() string {
	if c >= 0 && int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", int32(c))
}

// Error is what a plugin answered instead of a result. Message is the plugin's own text.
type Error struct {
	Code    Code
	Message string
	Func    string // C function that failed, "" for an asynchronous error
}

func (e *Error) Error() string {
	if e.Func == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Func, e.Code, e.Message)
}

// takeError copies a PJRT_Error into Go and destroys it; nil in, nil out.
func (p *Plugin) takeError(e cptr, name string) error {
	if e == nil {
		return nil
	}
	out := &Error{Code: Unknown, Func: name, Message: "the plugin gave no message"}
	if f, err := p.fn(fnErrorMessage); err == nil {
		m := &objArray{obj: e}
		m.size = structSize[objArray]()
		ccall1(f, unsafe.Pointer(m))
		if m.ptr != nil {
			out.Message = goString(m.ptr, m.n)
		}
	}
	if f, err := p.fn(fnErrorGetCode); err == nil {
		c := &objInt32{obj: e}
		c.size = structSize[objInt32]()
		// An error of the error function itself has nobody to tell; it is freed below like any other.
		if nested := ccall1(f, unsafe.Pointer(c)); nested == nil {
			out.Code = Code(c.out)
		} else {
			p.destroyError(nested)
		}
	}
	p.destroyError(e)
	return out
}

func (p *Plugin) destroyError(e cptr) {
	if f, err := p.fn(fnErrorDestroy); err == nil {
		d := &objArgs{obj: e}
		d.size = structSize[objArgs]()
		ccall1(f, unsafe.Pointer(d))
	}
}

// closedError is the answer of an object after Close.
func closedError(what string) error {
	return &Error{Code: FailedPrecondition, Message: what + " is closed"}
}
