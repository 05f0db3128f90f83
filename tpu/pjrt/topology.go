package pjrt

import "unsafe"

// Topology describes devices that need not be attached: the target of an ahead-of-time compile.
type Topology struct {
	plugin  *Plugin
	h       *handle
	name    string
	version string
	devices []*Device
}

// NewTopology makes a topology by its plugin-specific name, for libtpu "v6e:2x4" and the like. The CPU plugin
// has none: compile through a client there.
func (p *Plugin) NewTopology(name string, opts ...NamedValue) (*Topology, error) {
	vs, keep, err := cValues(opts)
	if err != nil {
		return nil, err
	}
	a := &topologyCreateArgs{name: cBytes(name), nameSize: uintptr(len(name)),
		options: unsafe.Pointer(unsafe.SliceData(vs)), numOptions: uintptr(len(vs))}
	err = call(p, fnTopologyCreate, a)
	keepAlive(vs, keep)
	if err != nil {
		return nil, err
	}
	t := &Topology{plugin: p, h: newHandle("topology", a.topology, nil, func(ptr cptr) {
		_ = call(p, fnTopologyDestroy, &objArgs{obj: ptr}) // no result anyone could act on
	})}
	if err := t.describe(a.topology); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// PlatformName is "tpu".
func (t *Topology) PlatformName() string { return t.name }

// PlatformVersion is the plugin's free-form build description.
func (t *Topology) PlatformVersion() string { return t.version }

// Devices are the positions of the topology in its order; their IDs go into CompileOptions.DeviceIDs.
func (t *Topology) Devices() []*Device { return t.devices }

// Attributes are the plugin's facts about the topology; nil where the plugin has none.
func (t *Topology) Attributes() ([]NamedValue, error) {
	ptr, err := t.h.acquire()
	if err != nil {
		return nil, err
	}
	defer t.h.release()
	a := &objArray{obj: ptr}
	if err := call(t.plugin, fnTopologyAttributes, a); err != nil {
		return nil, err
	}
	return goValues(a.ptr, a.n)
}

// Compile compiles a StableHLO module (MLIR text or bytecode) for the topology. The executable cannot run
// here; serialize it.
func (t *Topology) Compile(stablehlo []byte, opts CompileOptions) (*Executable, error) {
	ptr, err := t.h.acquire()
	if err != nil {
		return nil, err
	}
	defer t.h.release()
	o := opts.Encode()
	a := &compileArgs{topology: ptr, program: mlirProgram(stablehlo), options: data(o), optionsSize: uintptr(len(o))}
	if err := call(t.plugin, fnCompile, a); err != nil {
		return nil, err
	}
	return newExecutable(t.plugin, a.executable, nil), nil
}

// Close releases the topology.
func (t *Topology) Close() {
	if t != nil {
		t.h.close()
	}
}

func (t *Topology) describe(ptr cptr) error {
	var err error
	if t.name, err = t.plugin.text(fnTopologyPlatformName, ptr); err != nil {
		return err
	}
	if t.version, err = t.plugin.text(fnTopologyPlatformVersion, ptr); err != nil {
		return err
	}
	a := &objArray{obj: ptr}
	if err := call(t.plugin, fnTopologyDeviceDescriptions, a); err != nil {
		return err
	}
	for _, desc := range goSlice[cptr](a.ptr, a.n) {
		d, err := t.plugin.describeDevice(desc)
		if err != nil {
			return err
		}
		t.devices = append(t.devices, d)
	}
	return nil
}
