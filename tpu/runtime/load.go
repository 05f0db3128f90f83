package runtime

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"tpuc/ir/diag"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

// checkTarget refuses what this machine cannot run before anything large is read or any library is loaded: a TPU client polls a metadata
// server for minutes where there is no TPU.
func (m *Model) checkTarget(opts Options) error {
	t := m.art.Manifest.Target
	if t.Devices != 1 {
		return fmt.Errorf("the program is for %d devices (%s), wanted one", t.Devices, t.Name)
	}
	switch t.Platform {
	case "cpu":
	case "tpu":
		has := opts.hasTPU
		if has == nil {
			has = HasTPU
		}
		if !has() {
			return fmt.Errorf("the program is for %s and this machine has no TPU: compile the model for the target cpu to run it here", t.Name)
		}
	default:
		return fmt.Errorf("the program is for platform %q, wanted cpu or tpu", t.Platform)
	}
	return nil
}

// HasTPU looks for the device files of TPU chips: the accel driver's, or VFIO groups on newer hosts.
func HasTPU() bool {
	for _, pattern := range []string{"/dev/accel[0-9]*", "/dev/vfio/[0-9]*"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// loadPrograms finds the plugin and loads the artifact's executables into it, or others that the Compiler makes.
func (m *Model) loadPrograms(ctx context.Context, opts Options) error {
	man := &m.art.Manifest
	lib, err := plugin.Locate(ctx, plugin.Kind(man.Target.Platform), opts.Plugin)
	if err != nil {
		return err
	}
	reason := ""
	if lib.Digest != man.Plugin.SHA256 {
		reason = fmt.Sprintf("the executable was made by plugin %s %s (sha256 %s), and the one here is %s %s (sha256 %s)",
			man.Plugin.Name, man.Plugin.Version, man.Plugin.SHA256, lib.Name, lib.Version, lib.Digest)
		if opts.Compiler == nil {
			return fmt.Errorf("%w: %s", ErrCompileForbidden, reason)
		}
	}
	p, err := pjrt.Open(lib.Path)
	if err != nil {
		return err
	}
	if m.client, err = p.NewClient(); err != nil {
		return fmt.Errorf("%s client: %w", man.Target.Platform, err)
	}
	for i := range man.Programs {
		if err := m.loadProgram(ctx, opts, lib, i, reason); err != nil {
			return err
		}
		if err := m.checkExecutable(i); err != nil {
			return err
		}
	}
	return nil
}

// loadProgram loads program i's executable, or compiles it anew for the reason given, if any.
func (m *Model) loadProgram(ctx context.Context, opts Options, lib *plugin.Plugin, i int, reason string) error {
	if reason == "" {
		code, err := m.art.Section(artifact.ExecutableSection(i))
		if err != nil {
			return err
		}
		exe, err := m.client.Load(code)
		var perr *pjrt.Error
		if err == nil {
			m.loaded = append(m.loaded, exe)
			return nil
		}
		if !errors.As(err, &perr) || perr.Code != pjrt.Unimplemented {
			return fmt.Errorf("executable: %w", err)
		}
		reason = "the plugin cannot load serialized executables"
	}
	if opts.Compiler == nil {
		return fmt.Errorf("%w: %s", ErrCompileForbidden, reason)
	}
	if opts.Notify != nil {
		opts.Notify("compiling again: " + reason)
	}
	program, err := m.art.Section(artifact.ProgramSection(i))
	if err != nil {
		return err
	}
	man := &m.art.Manifest
	code, err := opts.Compiler.Compile(ctx, CompileRequest{Program: program, Target: man.Target, Options: man.Options, Plugin: lib})
	if err != nil {
		return fmt.Errorf("compiling again (%s): %w", reason, err)
	}
	exe, err := m.client.Load(code)
	if err != nil {
		return fmt.Errorf("executable compiled anew: %w", err)
	}
	m.loaded = append(m.loaded, exe)
	return nil
}

// checkExecutable compares program i's loaded executable with the manifest: results, and row-major layouts on both sides. A buffer of another layout than
// its parameter's would run without an error and give wrong numbers.
func (m *Model) checkExecutable(i int) error {
	man, exe := &m.art.Manifest, m.loaded[i].Executable()
	prog := &man.Programs[i]
	params, err := exe.ParameterLayouts()
	if err != nil {
		return err
	}
	results, err := exe.OutputLayouts()
	if err != nil {
		return err
	}
	types, err := exe.OutputTypes()
	if err != nil {
		return err
	}
	dims, err := exe.OutputDims()
	if err != nil {
		return err
	}
	var errs diag.List
	if len(params) != len(prog.Args) {
		errs.Addf(nil, "runtime/arguments", "the executable takes %d arguments, wanted %d as in the manifest", len(params), len(prog.Args))
	}
	if len(results) != len(prog.Results) || len(types) != len(prog.Results) || len(dims) != len(prog.Results) {
		errs.Addf(nil, "runtime/results", "the executable has %d results, wanted %d as in the manifest", len(types), len(prog.Results))
	}
	if len(errs) > 0 {
		return errs.Err()
	}
	for i, l := range params {
		if !l.RowMajor() {
			errs.Addf(nil, "runtime/layout", "%s has layout %s in the executable, wanted row-major", man.SlotName(prog.Args[i]), l)
		}
	}
	for i, l := range results {
		if !l.RowMajor() {
			errs.Addf(nil, "runtime/layout", "%s has layout %s in the executable, wanted row-major", man.SlotName(prog.Results[i][0]), l)
		}
		want, err := man.ResultType(prog, i).Tensor()
		if err != nil {
			return err
		}
		if types[i].String() != want.DType.MLIR() || !slices.Equal(dims[i], want.Dims) {
			errs.Addf(nil, "runtime/results", "%s is %s%v in the executable, wanted %s", man.SlotName(prog.Results[i][0]), types[i], dims[i], want)
		}
	}
	return errs.Err()
}
