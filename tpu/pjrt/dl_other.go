//go:build !linux

package pjrt

import (
	"fmt"
	"runtime"
)

// PJRT plugins are published for linux only; elsewhere Open fails before anything else can be reached.

func dlopen(string) (uintptr, error) {
	return 0, fmt.Errorf("PJRT plugins run on linux only, this is %s/%s", runtime.GOOS, runtime.GOARCH)
}

func dlsym(uintptr, string) (uintptr, error) { return dlopen("") }

func ccall0(uintptr) cptr { return nil }

func ccall1(uintptr, cptr) cptr { return nil }

func newCallback(func(err cptr, arg uintptr) uintptr) uintptr { return 0 }
