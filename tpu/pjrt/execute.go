package pjrt

import (
	"context"
	"errors"
	"fmt"
	"unsafe"
)

var errOtherClient = errors.New("it belongs to another client")

// LoadedExecutable is a program on the devices of a client, ready to run.
type LoadedExecutable struct {
	client  *Client
	h       *handle
	exe     *Executable
	outputs int
	devices []*Device
}

// ExecuteOptions steer one run.
type ExecuteOptions struct {
	// NonDonatable are argument positions that must stay valid although the program aliases them to an output:
	// the plugin copies.
	NonDonatable []int
}

// newLoaded takes ownership of a PJRT_LoadedExecutable. The caller holds the client.
func (c *Client) newLoaded(ptr cptr) (*LoadedExecutable, error) {
	l := &LoadedExecutable{client: c, h: newHandle("loaded executable", ptr, c.h, func(ptr cptr) {
		_ = call(c.plugin, fnLoadedDestroy, &objArgs{obj: ptr}) // no result anyone could act on
	})}
	if err := l.describe(ptr); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *LoadedExecutable) describe(ptr cptr) error {
	p := l.client.plugin
	exe := &objOut{obj: ptr}
	if err := call(p, fnLoadedGetExecutable, exe); err != nil {
		return err
	}
	l.exe = newExecutable(p, exe.out, l.client.h)
	devs := &objArray{obj: ptr}
	if err := call(p, fnLoadedAddressableDevices, devs); err != nil {
		return err
	}
	for _, dev := range goSlice[cptr](devs.ptr, devs.n) {
		d := l.client.device(dev)
		if d == nil {
			return fmt.Errorf("the program is bound to a device that the client does not have")
		}
		l.devices = append(l.devices, d)
	}
	var err error
	l.outputs, err = l.exe.NumOutputs()
	return err
}

// Executable is the program itself: statistics, layouts, serialization. It belongs to l and closes with it.
func (l *LoadedExecutable) Executable() *Executable {
	if l == nil {
		return nil
	}
	return l.exe
}

// Devices are the devices the program runs on, in the order of Execute's arguments.
func (l *LoadedExecutable) Devices() []*Device { return l.devices }

// Close releases the program. A run in flight ends normally.
func (l *LoadedExecutable) Close() {
	if l != nil {
		l.exe.Close()
		l.h.close()
	}
}

// Execute starts a one-device program. It returns when the run is enqueued: outputs are owned by the caller and
// carry an error of the run in Ready and ToHost. A program without outputs is waited for. An argument that the
// program aliases to an output is taken (IsDeleted) unless it is NonDonatable. Arguments may be closed at once.
func (l *LoadedExecutable) Execute(ctx context.Context, args []*Buffer, opts ExecuteOptions) ([]*Buffer, error) {
	outs, err := l.ExecuteSharded(ctx, [][]*Buffer{args}, opts)
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// Arguments are the arguments of a one-device program, kept from call to call: a call costs what changes, not what the program takes. It holds
// every buffer in it. It is not for several goroutines at once.
type Arguments struct {
	exe  *LoadedExecutable
	list []cptr
	held []*Buffer
}

// NewArguments makes n empty arguments. Close them.
func (l *LoadedExecutable) NewArguments(n int) *Arguments {
	return &Arguments{l, make([]cptr, n, n+1), make([]*Buffer, n)}
}

// Set makes b argument i, in place of the one before; nil empties it.
func (a *Arguments) Set(i int, b *Buffer) error {
	var ptr cptr
	if b != nil {
		var err error
		if ptr, err = b.acquire(); err == nil && b.client != a.exe.client {
			b.h.release()
			err = errOtherClient
		}
		if err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	if old := a.held[i]; old != nil {
		old.h.release()
	}
	a.held[i], a.list[i] = b, ptr
	return nil
}

// Close empties all arguments.
func (a *Arguments) Close() {
	for i := range a.held {
		_ = a.Set(i, nil) // emptying does not fail
	}
}

// ExecuteArguments is Execute with arguments that are kept. A buffer that the call took stays in its place, deleted, until it is replaced.
func (l *LoadedExecutable) ExecuteArguments(ctx context.Context, args *Arguments, opts ExecuteOptions) ([]*Buffer, error) {
	if l == nil {
		return nil, closedError("a nil loaded executable")
	}
	for i, b := range args.held {
		if b == nil {
			return nil, fmt.Errorf("argument %d is empty", i)
		}
	}
	if args.exe != l || len(l.devices) != 1 {
		return nil, fmt.Errorf("arguments of another program, or for one of %d devices, want one", len(l.devices))
	}
	outs, err := l.run(ctx, [][]cptr{args.list}, opts)
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// ExecuteSharded is Execute for a program over several devices: arguments and results by device, in the order
// of Devices.
func (l *LoadedExecutable) ExecuteSharded(ctx context.Context, args [][]*Buffer, opts ExecuteOptions) ([][]*Buffer, error) {
	if l == nil {
		return nil, closedError("a nil loaded executable")
	}
	lists, release, err := l.argumentLists(args)
	if err != nil {
		return nil, err
	}
	defer release()
	return l.run(ctx, lists, opts)
}

// run executes with arguments that the caller holds.
func (l *LoadedExecutable) run(ctx context.Context, lists [][]cptr, opts ExecuteOptions) ([][]*Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	var outs [][]*Buffer
	var complete []*event
	err := l.with(func(ptr cptr) (err error) {
		outs, complete, err = l.execute(ptr, lists, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, e := range complete {
		if err := e.wait(ctx); err != nil {
			closeAll(outs)
			return nil, err
		}
	}
	return outs, nil
}

// execute calls the plugin. Completion events are asked for only where no output could carry the error.
func (l *LoadedExecutable) execute(ptr cptr, lists [][]cptr, opts ExecuteOptions) ([][]*Buffer, []*event, error) {
	argLists, outLists := make([]cptr, len(lists)), make([]cptr, len(lists))
	raw := make([][]cptr, len(lists))
	for i, list := range lists {
		raw[i] = make([]cptr, l.outputs, l.outputs+1)
		argLists[i] = unsafe.Pointer(unsafe.SliceData(list))
		outLists[i] = unsafe.Pointer(unsafe.SliceData(raw[i]))
	}
	keep := make([]int64, 0, len(opts.NonDonatable)+1)
	for _, i := range opts.NonDonatable {
		if i < 0 || i >= len(lists[0]) {
			return nil, nil, fmt.Errorf("non-donatable argument %d of %d, want an argument's position", i, len(lists[0]))
		}
		keep = append(keep, int64(i))
	}
	eo := &executeOptions{nonDonatable: unsafe.Pointer(unsafe.SliceData(keep)), numNonDonatable: uintptr(len(keep))}
	eo.head.size = structSize[executeOptions]()
	a := &executeArgs{executable: ptr, options: eo, numDevices: uintptr(len(lists)), numArgs: uintptr(len(lists[0])),
		arguments: unsafe.Pointer(unsafe.SliceData(argLists)), outputs: unsafe.Pointer(unsafe.SliceData(outLists))}
	events := make([]cptr, len(lists))
	if l.outputs == 0 {
		a.complete = unsafe.Pointer(unsafe.SliceData(events))
	}
	if err := call(l.client.plugin, fnLoadedExecute, a); err != nil {
		return nil, nil, err
	}
	outs := make([][]*Buffer, len(raw))
	for i := range raw {
		for _, b := range raw[i] {
			outs[i] = append(outs[i], l.client.newBuffer(b))
		}
	}
	var complete []*event
	for _, e := range events {
		if e != nil {
			complete = append(complete, l.client.plugin.watch(e, nil))
		}
	}
	return outs, complete, nil
}

// argumentLists acquires every argument for the call; release undoes it.
func (l *LoadedExecutable) argumentLists(args [][]*Buffer) (lists [][]cptr, release func(), err error) {
	var held []*Buffer
	release = func() {
		for _, b := range held {
			b.h.release()
		}
	}
	if len(args) != len(l.devices) {
		return nil, nil, fmt.Errorf("arguments for %d devices, want %d", len(args), len(l.devices))
	}
	for d, row := range args {
		if len(row) != len(args[0]) {
			release()
			return nil, nil, fmt.Errorf("%d arguments for device %d, want %d as for the first", len(row), d, len(args[0]))
		}
		list := make([]cptr, 0, len(row)+1)
		for i, b := range row {
			ptr, err := b.acquire()
			if err == nil && b.client != l.client {
				b.h.release()
				err = errOtherClient
			}
			if err != nil {
				release()
				return nil, nil, fmt.Errorf("argument %d: %w", i, err)
			}
			held = append(held, b)
			list = append(list, ptr)
		}
		lists = append(lists, list)
	}
	return lists, release, nil
}

// with runs f with the C object held.
func (l *LoadedExecutable) with(f func(cptr) error) error {
	if l == nil {
		return closedError("a nil loaded executable")
	}
	ptr, err := l.h.acquire()
	if err != nil {
		return err
	}
	defer l.h.release()
	return f(ptr)
}

func closeAll(outs [][]*Buffer) {
	for _, row := range outs {
		for _, b := range row {
			b.Close()
		}
	}
}
