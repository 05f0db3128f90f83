// Package pjrt binds the PJRT C API without cgo: it loads a plugin's shared library, compiles StableHLO on a
// client or for a named topology, serializes, loads and executes programs, and moves buffers.
//
// It owns the C ABI and the lifetime of every C object. It never looks for a plugin, never reads the
// environment, never starts a process and knows nothing of models. Every owned object has Close, which is
// safe on nil, safe twice and safe in any order: a client is destroyed when the last thing made by it is closed.
// All methods may be called from several goroutines.
package pjrt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

// APIMajor is the major version of the C API this package speaks; MinMinor the oldest minor version whose
// header the struct layouts were checked against.
const (
	APIMajor = 0
	MinMinor = 90
)

// Plugin is a loaded PJRT plugin. It stays loaded until the process ends: XLA cannot be unloaded.
type Plugin struct {
	path    string
	api     *apiHead
	layouts *layoutsExt // nil when the plugin lacks the extension
}

// Version is the C API version a plugin was built with.
type Version struct{ Major, Minor int }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// loaded holds the plugins of this process by file: dlopen and PJRT_Plugin_Initialize act on the process.
var loaded struct {
	sync.Mutex
	byPath map[string]*Plugin
}

// Open loads the plugin at path, checks that it is one this package can talk to and initialises it. Opening a
// file again returns the same Plugin. A file that is no ELF shared library is refused before the loader sees it.
func Open(path string) (*Plugin, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	loaded.Lock()
	defer loaded.Unlock()
	if p := loaded.byPath[abs]; p != nil {
		return p, nil
	}
	if err := checkELF(abs); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	lib, err := dlopen(abs)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	get, err := dlsym(lib, "GetPjrtApi")
	if err != nil {
		return nil, fmt.Errorf("plugin %s: no function GetPjrtApi: the file is a library but no PJRT plugin", path)
	}
	p := &Plugin{path: abs, api: (*apiHead)(ccall0(get))}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	p.layouts = p.findLayouts()
	if err := call(p, fnPluginInitialize, &head{}); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	if loaded.byPath == nil {
		loaded.byPath = map[string]*Plugin{}
	}
	loaded.byPath[abs] = p
	return p, nil
}

// Path is the absolute file name of the library.
func (p *Plugin) Path() string { return p.path }

// Version is the API version the plugin reports.
func (p *Plugin) Version() Version {
	return Version{int(p.api.version.major), int(p.api.version.minor)}
}

// Attributes are the plugin's own facts (xla_version, stablehlo_current_version, ...), in its order.
func (p *Plugin) Attributes() ([]NamedValue, error) {
	a := &pluginAttributesArgs{}
	if err := call(p, fnPluginAttributes, a); err != nil {
		return nil, err
	}
	return goValues(a.ptr, a.n)
}

// check refuses a table this package cannot use: nil, too short, or of another version.
func (p *Plugin) check() error {
	if p.api == nil {
		return fmt.Errorf("GetPjrtApi returned no table")
	}
	if p.api.size < unsafe.Sizeof(apiHead{})+8*uintptr(fnLoadedExecute) || p.api.size > 1<<16 {
		return fmt.Errorf("its function table has %d bytes, want that of PJRT API %d.%d or newer", p.api.size, APIMajor, MinMinor)
	}
	if v := p.Version(); v.Major != APIMajor || v.Minor < MinMinor {
		return fmt.Errorf("it speaks PJRT API %s, want %d.%d or newer", v, APIMajor, MinMinor)
	}
	return nil
}

// fn is the address of a function of the table, or an error when the plugin is too old to have it.
func (p *Plugin) fn(s slot) (uintptr, error) {
	off := unsafe.Sizeof(apiHead{}) + 8*uintptr(s)
	if off+8 <= p.api.size {
		if f := *(*uintptr)(unsafe.Add(unsafe.Pointer(p.api), off)); f != 0 {
			return f, nil
		}
	}
	return 0, &Error{Code: Unimplemented, Func: s.String(), Message: fmt.Sprintf("the plugin (PJRT API %s) does not have this function", p.Version())}
}

// layoutsKind is PJRT_Extension_Type_Layouts.
const layoutsKind = 4

// findLayouts walks the extension list; its length is bounded so that a damaged list ends.
func (p *Plugin) findLayouts() *layoutsExt {
	e := (*extHead)(p.api.ext)
	for i := 0; e != nil && i < 256; i, e = i+1, e.next {
		if e.kind == layoutsKind && e.size >= unsafe.Offsetof(layoutsExt{}.paramLayouts) {
			return (*layoutsExt)(unsafe.Pointer(e))
		}
	}
	return nil
}

// call sets struct_size, calls a function of the table and turns its PJRT_Error into *Error.
func call[A any](p *Plugin, s slot, args *A) error {
	f, err := p.fn(s)
	if err != nil {
		return err
	}
	return p.invoke(f, s.String(), structSize[A](), unsafe.Pointer(args))
}

// invoke calls a PJRT function at an address; args must start with a head.
func (p *Plugin) invoke(f uintptr, name string, size uintptr, args cptr) error {
	(*head)(args).size = size
	return p.takeError(ccall1(f, args), name)
}

// checkELF reads the first bytes of path.
func checkELF(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var magic [4]byte
	if n, _ := f.Read(magic[:]); !bytes.Equal(magic[:n], []byte("\x7fELF")) {
		return fmt.Errorf("starts with %q, want an ELF shared library", magic[:n])
	}
	return nil
}
