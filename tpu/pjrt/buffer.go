package pjrt

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"
)

// HostSemantics says how long the plugin may use host memory given to BufferFromHost.
type HostSemantics int32

const (
	// ImmutableOnlyDuringCall copies before BufferFromHost returns.
	ImmutableOnlyDuringCall HostSemantics = 0
	// ImmutableUntilTransferCompletes copies in the background.
	ImmutableUntilTransferCompletes HostSemantics = 1
	// ImmutableZeroCopy may use the memory itself for as long as the buffer lives; the plugin never writes to
	// it. CPU plugins do so at addresses that are multiples of 64 and copy silently otherwise.
	ImmutableZeroCopy HostSemantics = 2
)

// HostBuffer is an array in host memory: dense, row-major, little-endian.
type HostBuffer struct {
	Type      BufferType
	Dims      []int64
	Data      []byte // exactly Type.HostSize(Dims) bytes; must not change before Done
	Semantics HostSemantics
	Device    *Device // nil = the client's first
	// Order is how the array lies on the device: dimensions, fastest varying first (Layout.MinorToMajor); nil: row-major. A plugin may ignore
	// it: compare the buffer's Layout.
	Order []int
	// Done, if not nil, is called exactly once when the plugin no longer uses Data, on any goroutine, also when
	// BufferFromHost fails. Data may be unmapped, changed or dropped then, not earlier.
	Done func()
}

// Buffer is an array on a device. Its contents may still be on their way; Ready waits for them.
type Buffer struct {
	client *Client
	h      *handle
}

// BufferFromHost puts an array on a device. Data is pinned until the plugin is done with it.
func (c *Client) BufferFromHost(host HostBuffer) (*Buffer, error) {
	done := host.Done
	if done == nil {
		done = func() {}
	}
	ptr, err := c.h.acquire()
	if err != nil {
		done()
		return nil, err
	}
	defer c.h.release()
	dev, err := c.checkHost(host)
	if err != nil {
		done()
		return nil, err
	}
	pin := &runtime.Pinner{}
	addr := data(host.Data)
	pin.Pin(addr)
	a := &fromHostArgs{client: ptr, data: addr, kind: int32(host.Type), semantics: int32(host.Semantics), device: dev.ptr,
		dims: unsafe.Pointer(unsafe.SliceData(host.Dims)), numDims: uintptr(len(host.Dims))}
	if host.Order != nil {
		a.deviceLayout = unsafe.Pointer(newLayout(host.Order))
	}
	if err := call(c.plugin, fnClientBufferFromHostBuffer, a); err != nil {
		pin.Unpin()
		done()
		return nil, err
	}
	c.plugin.watch(a.done, func() {
		pin.Unpin()
		keepAlive(host.Data)
		done()
	})
	return c.newBuffer(a.buffer), nil
}

// checkHost refuses what a plugin would read out of bounds.
func (c *Client) checkHost(host HostBuffer) (*Device, error) {
	want, err := host.Type.HostSize(host.Dims)
	if err != nil {
		return nil, err
	}
	if int64(len(host.Data)) != want {
		return nil, fmt.Errorf("host array has %d bytes, want %d for %s%v", len(host.Data), want, host.Type, host.Dims)
	}
	if host.Order != nil && len(host.Order) != len(host.Dims) {
		return nil, fmt.Errorf("order of %d dimensions for an array of %d", len(host.Order), len(host.Dims))
	}
	dev := host.Device
	if dev == nil {
		dev = c.devices[0]
	}
	if dev.client != c {
		return nil, fmt.Errorf("device %s belongs to another client or a topology, want one of this client", dev)
	}
	return dev, nil
}

// newBuffer takes ownership of a PJRT_Buffer. The caller holds the client.
func (c *Client) newBuffer(ptr cptr) *Buffer {
	return &Buffer{client: c, h: newHandle("buffer", ptr, c.h, func(ptr cptr) {
		_ = call(c.plugin, fnBufferDestroy, &objArgs{obj: ptr}) // no result anyone could act on
	})}
}

// Close frees the buffer; its memory goes when the last computation using it has ended.
func (b *Buffer) Close() {
	if b != nil {
		b.h.close()
	}
}

// Type is the element type.
func (b *Buffer) Type() (BufferType, error) {
	a := &objInt32{}
	err := b.with(func(ptr cptr) error { a.obj = ptr; return call(b.client.plugin, fnBufferElementType, a) })
	return BufferType(a.out), err
}

// Dims are the dimensions.
func (b *Buffer) Dims() ([]int64, error) {
	var out []int64
	err := b.with(func(ptr cptr) error {
		a := &objArray{obj: ptr}
		err := call(b.client.plugin, fnBufferDimensions, a)
		out = append([]int64{}, goSlice[int64](a.ptr, a.n)...)
		return err
	})
	return out, err
}

// OnDeviceSize is the memory the buffer takes on its device, in bytes, with padding.
func (b *Buffer) OnDeviceSize() (int64, error) {
	a := &objSize{}
	err := b.with(func(ptr cptr) error { a.obj = ptr; return call(b.client.plugin, fnBufferOnDeviceSize, a) })
	return int64(a.out), err
}

// DataPointer is the address of the buffer in device memory, which on CPU is host memory. It is only good for
// comparing: the plugin may free or reuse the memory at any time.
func (b *Buffer) DataPointer() (uintptr, error) {
	a := &objOut{}
	err := b.with(func(ptr cptr) error { a.obj = ptr; return call(b.client.plugin, fnBufferUnsafePointer, a) })
	return uintptr(a.out), err
}

// Delete frees the device memory now and keeps the Buffer, which answers IsDeleted only.
func (b *Buffer) Delete() error {
	return b.with(func(ptr cptr) error { return call(b.client.plugin, fnBufferDelete, &objArgs{obj: ptr}) })
}

// IsDeleted says whether the contents are gone: by Delete, or because an execution took the buffer (donation).
func (b *Buffer) IsDeleted() (bool, error) {
	a := &objBool{}
	err := b.with(func(ptr cptr) error { a.obj = ptr; return call(b.client.plugin, fnBufferIsDeleted, a) })
	return a.out, err
}

// Ready waits until the contents are computed and returns the error of the computation, if it failed. When ctx
// ends first its cause is returned; the computation goes on.
func (b *Buffer) Ready(ctx context.Context) error {
	e, err := b.ReadyEvent()
	if err != nil {
		return err
	}
	return e.Wait(ctx)
}

// ReadyEvent is done when the contents are computed, and carries the error of the computation, if it failed. The buffer may be closed before.
func (b *Buffer) ReadyEvent() (*Event, error) {
	a := &objOut{}
	if err := b.with(func(ptr cptr) error { a.obj = ptr; return call(b.client.plugin, fnBufferReadyEvent, a) }); err != nil {
		return nil, err
	}
	return &Event{b.client.plugin.watch(a.out, nil)}, nil
}

// Event is something that a device does in the background.
type Event struct{ e *event }

// Wait returns when it is done, or failed. When ctx ends first its cause is returned; it goes on, and the destination of a copy is lost to the caller:
// the plugin may write to it until the copy ends.
func (t *Event) Wait(ctx context.Context) error { return t.e.wait(ctx) }

// ToHost is Fetch and Wait.
func (b *Buffer) ToHost(ctx context.Context, dst []byte) error {
	t, err := b.Fetch(dst)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// Fetch begins to copy the contents, once they are computed, to dst, dense and row-major whatever the device's layout. dst must have exactly
// Type.HostSize(Dims) bytes, and is the plugin's until the transfer ends. Closing the buffer, or giving it to an execution that takes it, is
// fine at once: it happens after the transfer.
func (b *Buffer) Fetch(dst []byte) (*Event, error) {
	kind, err := b.Type()
	if err != nil {
		return nil, err
	}
	dims, err := b.Dims()
	if err != nil {
		return nil, err
	}
	want, err := kind.HostSize(dims)
	if err != nil {
		return nil, err
	}
	if int64(len(dst)) != want {
		return nil, fmt.Errorf("destination has %d bytes, want %d for %s%v", len(dst), want, kind, dims)
	}
	ptr, err := b.acquire()
	if err != nil {
		return nil, err
	}
	pin := &runtime.Pinner{}
	addr := data(dst)
	pin.Pin(addr)
	a := &toHostArgs{src: ptr, layout: rowMajor(len(dims)), dst: addr, dstSize: uintptr(len(dst))}
	if err := call(b.client.plugin, fnBufferToHostBuffer, a); err != nil {
		pin.Unpin()
		b.h.release()
		return nil, err
	}
	// The source is held too: a Close during the transfer takes effect after it.
	return &Event{b.client.plugin.watch(a.event, func() {
		pin.Unpin()
		b.h.release()
	})}, nil
}

// rowMajor is the host layout of a dense array; without it a plugin hands out the device's order.
func rowMajor(rank int) *memoryLayout {
	order := make([]int, rank)
	for i := range order {
		order[i] = rank - 1 - i
	}
	return newLayout(order)
}

// newLayout is a layout of dense arrays by its dimensions, fastest varying first.
func newLayout(minorToMajor []int) *memoryLayout {
	order := make([]int64, len(minorToMajor), len(minorToMajor)+1)
	for i, d := range minorToMajor {
		order[i] = int64(d)
	}
	l := &memoryLayout{tiled: tiledLayout{minorToMajor: unsafe.Pointer(unsafe.SliceData(order)), rank: uintptr(len(order))}}
	l.head.size = structSize[memoryLayout]()
	l.tiled.head.size = structSize[tiledLayout]()
	return l
}

func (b *Buffer) acquire() (cptr, error) {
	if b == nil {
		return nil, closedError("a nil buffer")
	}
	return b.h.acquire()
}

// with runs f with the C object held.
func (b *Buffer) with(f func(cptr) error) error {
	ptr, err := b.acquire()
	if err != nil {
		return err
	}
	defer b.h.release()
	return f(ptr)
}
