package tpuc

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tpuc/tpu/chip"
	"tpuc/tpu/plugin"
	"tpuc/tpu/runtime"
)

// Specialize implements runtime.Compiler: it compiles the artifact's graph, or the model that was opened, for further sizes.
func (c compiler) Specialize(ctx context.Context, req runtime.SpecializeRequest) (string, error) {
	target, err := chip.Parse(req.Target.Name)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "tpuc-further-*.tpuc")
	if err != nil {
		return "", err
	}
	path := req.Path
	if c.model != "" {
		path = c.model
	}
	below := make(map[string]int64)
	for name, size := range req.Dims {
		below[name] = size - 1 // a call is waiting: no look at other sizes
	}
	o := CompileOptions{
		Target: target, Shapes: Shapes{Dims: req.Dims, Custom: c.o.Shapes.Custom}, Output: f.Name(), Timeout: c.o.Timeout, CrashDir: c.o.CrashDir,
		Plugin: plugin.Options{Library: req.Plugin.Path, CacheDir: c.o.Plugin.CacheDir}, Exe: c.o.Exe, Cache: c.o.Cache, below: below,
	}
	_, err = Compile(ctx, path, o)
	if err == nil && c.model != "" && identityOf(c.model) != c.seen {
		err = fmt.Errorf("%s was changed since it was opened: open it again", c.model)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
