package pjrt

import "sync"

// handle owns one C object. It is counted: the object is destroyed when Close was called and no call is using
// it and nothing made from it is alive. That makes Close safe in any order and beside running calls.
type handle struct {
	mu      sync.Mutex
	what    string
	ptr     cptr
	refs    int // calls in flight and children
	closed  bool
	parent  *handle
	destroy func(cptr)
}

// newHandle takes ownership of ptr and holds a reference on parent (may be nil) until it is destroyed.
// The caller must itself hold a reference on parent.
func newHandle(what string, ptr cptr, parent *handle, destroy func(cptr)) *handle {
	if parent != nil {
		parent.mu.Lock()
		parent.refs++
		parent.mu.Unlock()
	}
	return &handle{what: what, ptr: ptr, parent: parent, destroy: destroy}
}

// acquire returns the C object for the length of a call; release must follow. A nil or closed handle is an error.
func (h *handle) acquire() (cptr, error) {
	if h == nil {
		return nil, closedError("a nil object")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, closedError(h.what)
	}
	h.refs++
	return h.ptr, nil
}

func (h *handle) release() {
	h.mu.Lock()
	h.refs--
	h.unlockAndMaybeDestroy()
}

// close marks the object closed; it is destroyed now or when the last user releases it.
func (h *handle) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	h.unlockAndMaybeDestroy()
}

func (h *handle) unlockAndMaybeDestroy() {
	ptr := h.ptr
	dead := h.closed && h.refs == 0 && ptr != nil
	if dead {
		h.ptr = nil
	}
	h.mu.Unlock()
	if !dead {
		return
	}
	h.destroy(ptr)
	if h.parent != nil {
		h.parent.release()
	}
}
