package pjrt

import (
	"context"
	"sync"
)

// event is a PJRT_Event being waited for. The C object is destroyed when it has fired.
type event struct {
	plugin *Plugin
	ptr    cptr
	done   chan struct{} // closed when the event fired; err is set before
	err    error
	after  func() // called once when the event has fired, before done closes; may be nil
}

// pending maps the user argument of the C callback to its event. It is process-wide because the callback is:
// memory of a purego callback is never freed, so there is exactly one.
var pending struct {
	sync.Mutex
	next   uintptr
	events map[uintptr]*event
	fn     uintptr
}

// watch takes ownership of a PJRT_Event (nil counts as ready) and returns at once. after, if not nil, is called
// when the event has fired: during watch, or later on a goroutine of its own.
func (p *Plugin) watch(ptr cptr, after func()) *event {
	e := &event{plugin: p, ptr: ptr, done: make(chan struct{}), after: after}
	if ptr == nil || e.isReady() {
		if ptr != nil {
			e.err = call(p, fnEventError, &objArgs{obj: ptr})
		}
		e.finish()
		return e
	}
	pending.Lock()
	if pending.fn == 0 {
		pending.events = map[uintptr]*event{}
		pending.fn = newCallback(onReady)
	}
	pending.next++
	id := pending.next
	pending.events[id] = e
	fn := pending.fn
	pending.Unlock()
	if err := call(p, fnEventOnReady, &eventOnReadyArgs{event: ptr, callback: fn, userArg: id}); err != nil {
		pending.Lock()
		delete(pending.events, id)
		pending.Unlock()
		e.err = err
		e.finish()
	}
	return e
}

// onReady runs on a thread of the plugin: it only takes the error and hands over to a goroutine, so that no
// lock of the plugin is held while Go code of a caller runs.
func onReady(cerr cptr, id uintptr) uintptr {
	pending.Lock()
	e := pending.events[id]
	delete(pending.events, id)
	pending.Unlock()
	if e != nil {
		e.err = e.plugin.takeError(cerr, "")
		go e.finish()
	}
	return 0
}

func (e *event) isReady() bool {
	a := &objBool{obj: e.ptr}
	return call(e.plugin, fnEventIsReady, a) == nil && a.out
}

func (e *event) finish() {
	if e.ptr != nil {
		// The event has fired: a failing destroy leaks it and changes nothing for the caller.
		_ = call(e.plugin, fnEventDestroy, &objArgs{obj: e.ptr})
	}
	if e.after != nil {
		e.after()
	}
	close(e.done)
}

// wait returns the event's error, or ctx's error when that ends first; the event goes on by itself then.
func (e *event) wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
	}
	select {
	case <-e.done: // both have ended: the result is there
		return e.err
	default:
		return context.Cause(ctx)
	}
}
