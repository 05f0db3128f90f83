package pjrt

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// NamedValue is an option or attribute. Value is string, int64, []int64, float32 or bool.
type NamedValue struct {
	Name  string
	Value any
}

// Kinds of PJRT_NamedValue_Type.
const (
	valueString = iota
	valueInt64
	valueInt64List
	valueFloat
	valueBool
)

// maxLen bounds what a plugin may claim for a string or list, so that a bad count is an error and not a crash.
const maxLen = 1 << 31

// cValues is a C array of named values; the second result must be kept alive for as long as it is used,
// because the union's pointers are hidden from the collector.
func cValues(vs []NamedValue) (out []namedValue, keep []any, err error) {
	size := structSize[namedValue]()
	for _, v := range vs {
		c := namedValue{name: cBytes(v.Name), nameSize: uintptr(len(v.Name)), size: 1}
		c.head.size = size
		switch x := v.Value.(type) {
		case string:
			p := cBytes(x)
			keep = append(keep, p)
			c.kind, c.value, c.size = valueString, uint64(uintptr(p)), uintptr(len(x))
		case int64:
			c.kind, c.value = valueInt64, uint64(x)
		case int:
			c.kind, c.value = valueInt64, uint64(x)
		case []int64:
			p := unsafe.Pointer(unsafe.SliceData(append([]int64{}, x...)))
			keep = append(keep, p)
			c.kind, c.value, c.size = valueInt64List, uint64(uintptr(p)), uintptr(len(x))
		case float32:
			c.kind, c.value = valueFloat, uint64(math.Float32bits(x))
		case bool:
			c.kind = valueBool
			if x {
				c.value = 1
			}
		default:
			return nil, nil, fmt.Errorf("option %q has type %T, want string, int64, []int64, float32 or bool", v.Name, v.Value)
		}
		out = append(out, c)
	}
	return out, keep, nil
}

// goValues copies n named values at p into Go. Unknown kinds, of newer plugins, are left out.
func goValues(p cptr, n uintptr) ([]NamedValue, error) {
	if n > 1<<20 {
		return nil, fmt.Errorf("the plugin claims %d attributes, want at most %d", n, 1<<20)
	}
	var out []NamedValue
	for i := uintptr(0); i < n; i++ {
		// A newer plugin's struct may be longer: its own struct_size is the stride.
		c := (*namedValue)(p)
		v := NamedValue{Name: goString(c.name, c.nameSize)}
		ptr := *(*cptr)(unsafe.Pointer(&c.value))
		switch c.kind {
		case valueString:
			v.Value = goString(ptr, c.size)
		case valueInt64:
			v.Value = int64(c.value)
		case valueInt64List:
			v.Value = goSlice[int64](ptr, c.size)
		case valueFloat:
			v.Value = math.Float32frombits(uint32(c.value))
		case valueBool:
			v.Value = c.value&0xff != 0
		}
		if v.Value != nil {
			out = append(out, v)
		}
		p = unsafe.Add(p, max(c.head.size, unsafe.Sizeof(namedValue{})))
	}
	return out, nil
}

// cBytes copies s to the Go heap, with a final zero, and returns its address (never nil).
func cBytes[S string | []byte](s S) cptr {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return unsafe.Pointer(unsafe.SliceData(b))
}

// data is the address of b's first byte. It is never nil: plugins take nil for "not given".
func data(b []byte) cptr {
	if len(b) == 0 {
		return cBytes("")
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}

// goString copies n bytes at p.
func goString(p cptr, n uintptr) string {
	if p == nil || n > maxLen {
		return ""
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// goSlice copies n elements at p.
func goSlice[T any](p cptr, n uintptr) []T {
	if p == nil || n == 0 || n > maxLen {
		return nil
	}
	return append([]T(nil), unsafe.Slice((*T)(p), n)...)
}

// keepAlive holds Go memory that C reads through pointers the collector cannot see.
func keepAlive(xs ...any) { runtime.KeepAlive(xs) }
