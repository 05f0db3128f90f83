package pjrt

import (
	"fmt"
	"unsafe"
)

// Client owns the devices of one plugin in this process.
type Client struct {
	plugin  *Plugin
	h       *handle
	name    string
	version string
	devices []*Device
}

// Device is one addressable device of a client, or one position of a topology (then without a client).
type Device struct {
	ID         int
	Kind       string // for example "TPU v6 lite", "cpu"
	Text       string // the plugin's own one-line description
	Attributes []NamedValue
	ptr        cptr // PJRT_Device; nil in a topology
	client     *Client
}

func (d *Device) String() string { return d.Text }

// NewClient creates the plugin's client. The CPU plugin takes cpu_device_count (int64): devices in this process.
// A TPU client needs a TPU.
func (p *Plugin) NewClient(opts ...NamedValue) (*Client, error) {
	vs, keep, err := cValues(opts)
	if err != nil {
		return nil, err
	}
	a := &clientCreateArgs{options: unsafe.Pointer(unsafe.SliceData(vs)), numOptions: uintptr(len(vs))}
	err = call(p, fnClientCreate, a)
	keepAlive(vs, keep)
	if err != nil {
		return nil, err
	}
	c := &Client{plugin: p, h: newHandle("client", a.client, nil, func(ptr cptr) {
		// Destroying a client has no result anyone could act on.
		_ = call(p, fnClientDestroy, &objArgs{obj: ptr})
	})}
	if err := c.describe(a.client); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// PlatformName is "cpu", "tpu", ...
func (c *Client) PlatformName() string { return c.name }

// PlatformVersion is the plugin's free-form build description.
func (c *Client) PlatformVersion() string { return c.version }

// Devices are the addressable devices in the client's order.
func (c *Client) Devices() []*Device { return c.devices }

// Plugin is the plugin the client belongs to.
func (c *Client) Plugin() *Plugin { return c.plugin }

// Close releases the client once everything made by it is closed too.
func (c *Client) Close() {
	if c != nil {
		c.h.close()
	}
}

// Compile compiles a StableHLO module (MLIR text or bytecode) for the client's devices and loads it.
func (c *Client) Compile(stablehlo []byte, opts CompileOptions) (*LoadedExecutable, error) {
	ptr, err := c.h.acquire()
	if err != nil {
		return nil, err
	}
	defer c.h.release()
	o := opts.Encode()
	a := &clientCompileArgs{client: ptr, program: mlirProgram(stablehlo), options: data(o), optionsSize: uintptr(len(o))}
	if err := call(c.plugin, fnClientCompile, a); err != nil {
		return nil, err
	}
	return c.newLoaded(a.executable)
}

// Load makes a serialized executable (Executable.Serialize of the same plugin and library version) ready to
// run. Plugins check nothing: the caller must know that the bytes are whole and meant for this machine.
func (c *Client) Load(serialized []byte) (*LoadedExecutable, error) {
	ptr, err := c.h.acquire()
	if err != nil {
		return nil, err
	}
	defer c.h.release()
	if len(serialized) == 0 {
		return nil, fmt.Errorf("serialized executable is empty")
	}
	a := &deserializeArgs{client: ptr, bytes: data(serialized), size: uintptr(len(serialized))}
	if err := call(c.plugin, fnDeserializeAndLoad, a); err != nil {
		return nil, err
	}
	return c.newLoaded(a.executable)
}

// describe fills the facts that never change.
func (c *Client) describe(ptr cptr) error {
	var err error
	if c.name, err = c.plugin.text(fnClientPlatformName, ptr); err != nil {
		return err
	}
	if c.version, err = c.plugin.text(fnClientPlatformVersion, ptr); err != nil {
		return err
	}
	a := &objArray{obj: ptr}
	if err := call(c.plugin, fnClientAddressableDevices, a); err != nil {
		return err
	}
	for _, dev := range goSlice[cptr](a.ptr, a.n) {
		desc := &objOut{obj: dev}
		if err := call(c.plugin, fnDeviceGetDescription, desc); err != nil {
			return err
		}
		d, err := c.plugin.describeDevice(desc.out)
		if err != nil {
			return err
		}
		d.ptr, d.client = dev, c
		c.devices = append(c.devices, d)
	}
	if len(c.devices) == 0 {
		return fmt.Errorf("the %s client has no addressable device, want at least one", c.name)
	}
	return nil
}

// device finds the Device of a C pointer, or nil.
func (c *Client) device(ptr cptr) *Device {
	for _, d := range c.devices {
		if d.ptr == ptr {
			return d
		}
	}
	return nil
}

// describeDevice copies a PJRT_DeviceDescription.
func (p *Plugin) describeDevice(desc cptr) (*Device, error) {
	id := &objInt32{obj: desc}
	if err := call(p, fnDeviceDescriptionID, id); err != nil {
		return nil, err
	}
	d := &Device{ID: int(id.out)}
	var err error
	if d.Kind, err = p.text(fnDeviceDescriptionKind, desc); err != nil {
		return nil, err
	}
	if d.Text, err = p.text(fnDeviceDescriptionToString, desc); err != nil {
		return nil, err
	}
	attrs := &objCountArray{obj: desc}
	if err := call(p, fnDeviceDescriptionAttributes, attrs); err != nil {
		return nil, err
	}
	d.Attributes, err = goValues(attrs.ptr, attrs.n)
	return d, err
}

// text calls a function of the form (object) -> (char*, size) and copies the string.
func (p *Plugin) text(s slot, obj cptr) (string, error) {
	a := &objArray{obj: obj}
	if err := call(p, s, a); err != nil {
		return "", err
	}
	return goString(a.ptr, a.n), nil
}

// mlirProgram wraps a module in a PJRT_Program; the memory stays Go's and is only read during the call.
func mlirProgram(code []byte) *program {
	p := &program{code: data(code), codeSize: uintptr(len(code)), format: cBytes("mlir"), formatSize: 4}
	p.head.size = structSize[program]()
	return p
}
