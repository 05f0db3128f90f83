package tpuc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tpuc/cache"
	"tpuc/tpu"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// Plan says what a compile would do.
type Plan struct {
	Model     string           `json:"model"`         // its path
	Unchanged bool             `json:"unchanged"`     // it was compiled before: neither front end nor passes would run
	Why       []string         `json:"why,omitempty"` // where it is not: what differs from the nearest model that was
	Programs  []PlannedProgram `json:"programs"`
}

// PlannedProgram is one program of a Plan.
type PlannedProgram struct {
	Dims []artifact.Dim `json:"dims,omitempty"`
	Key  string         `json:"key"`           // ID of its entry in the cache
	Hit  bool           `json:"hit"`           // it is there; otherwise it would be compiled
	Why  []string       `json:"why,omitempty"` // of a miss: what differs from the nearest program that is there
}

// Compiles is the number of programs that would be compiled.
func (p *Plan) Compiles() (n int) {
	for _, x := range p.Programs {
		if !x.Hit {
			n++
		}
	}
	return n
}

// MakePlan finds out what Compile would do with the same arguments, and compiles nothing but, the first time, what a plugin needs to describe itself.
// It needs a cache and the plugin.
func MakePlan(ctx context.Context, path string, o CompileOptions) (_ *Plan, err error) {
	c := o.Cache
	if c == nil {
		return nil, errors.New("there is no cache to look into")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	plan := &Plan{Model: path}
	pl, err := plugin.Locate(ctx, plugin.Kind(o.Target.Platform()), o.Plugin)
	if err != nil {
		return nil, err
	}
	facts, err := c.facts(ctx, o.request(pl, nil), pl)
	if err != nil {
		return nil, err
	}
	if facts == nil {
		return nil, fmt.Errorf("plugin %s cannot be asked about itself: compile something to see why", pl.Name)
	}
	if done, err := c.planUnchanged(ctx, path, &o, plan); done || err != nil {
		return plan, err
	}
	each, err := o.programs(ctx, path)
	if err != nil {
		return nil, err
	}
	for _, o := range each {
		text, dims, err := programText(ctx, path, o)
		if err != nil {
			return nil, err
		}
		x, err := c.planned(ctx, programKey(o.request(pl, text), pl, facts))
		if err != nil {
			return nil, err
		}
		x.Dims = dims
		plan.Programs = append(plan.Programs, x)
	}
	return plan, nil
}

// request is the compile of one program.
func (o *CompileOptions) request(pl *plugin.Plugin, program []byte) tpu.Request {
	return tpu.Request{Program: program, PluginPath: pl.Path, Target: tpu.TargetOf(o.Target), Timeout: o.Timeout,
		CrashDir: crashDir(o.CrashDir), Exe: o.Exe, OnPhase: onPhase(o.Notify)}
}

// programText takes the model through front end, passes and lowering.
func programText(ctx context.Context, path string, o CompileOptions) (text []byte, dims []artifact.Dim, err error) {
	o.To, o.Output, o.Text = PhaseLower, "", nil
	c, err := newCompile(path, o)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, c.model.Close()) }()
	if err := c.run(ctx, PhaseLower); err != nil {
		return nil, nil, err
	}
	return c.program.Text, c.model.dims(), nil
}

// planUnchanged plans a model that was compiled before; it is false where it was not, and says why.
func (c *Cache) planUnchanged(ctx context.Context, path string, o *CompileOptions, plan *Plan) (bool, error) {
	if !c.asksForModel(o) {
		return false, nil
	}
	k, _, ok := c.modelKey(ctx, path, o)
	if !ok {
		return false, ctx.Err()
	}
	e, err := c.store.Get(ctx, k)
	if err != nil {
		plan.Why = c.why(k)
		return false, ctx.Err()
	}
	defer e.Close()
	kept, err := readModel(e)
	if err != nil {
		c.store.Reject(e, err)
		return false, nil
	}
	plan.Unchanged = true
	for i, k := range kept.Programs {
		x, err := c.planned(ctx, k)
		if err != nil {
			return false, err
		}
		x.Dims = kept.Manifest.Programs[i].Dims
		plan.Programs = append(plan.Programs, x)
		plan.Unchanged = plan.Unchanged && x.Hit
	}
	return true, nil
}

// planned looks for a program.
func (c *Cache) planned(ctx context.Context, k cache.Key) (PlannedProgram, error) {
	x := PlannedProgram{Key: k.ID()}
	e, err := c.store.Get(ctx, k)
	switch {
	case err == nil:
		x.Hit = true
		return x, e.Close()
	case !errors.Is(err, cache.ErrMiss):
		return x, err
	}
	x.Why = c.why(k)
	return x, nil
}

// Recompiled is what came of compiling a kept program again.
type Recompiled struct {
	Key     string `json:"key"`
	Outcome string `json:"outcome"` // RecompiledEqual, RecompiledDiffers or RecompiledSkipped
	Reason  string `json:"reason,omitempty"`
}

// Outcomes of compiling a program again.
const (
	RecompiledEqual   = "equal"   // byte for byte; for the CPU, whose compiler does not give the same bytes twice, in what it says of the program
	RecompiledDiffers = "differs" // the entry is not what this plugin makes
	RecompiledSkipped = "skipped" // made by another plugin or for another processor
)

// Recompile compiles the programs that are kept again and tells of each how it compares.
func (c *Cache) Recompile(ctx context.Context, o plugin.Options, exe string, tell func(Recompiled)) error {
	list, err := c.store.List()
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Key.Kind != kindProgram || i.Damage != nil {
			continue
		}
		r, err := c.recompile(ctx, i.Key, o, exe)
		if err != nil {
			return err
		}
		tell(r)
	}
	return nil
}

func (c *Cache) recompile(ctx context.Context, k cache.Key, o plugin.Options, exe string) (Recompiled, error) {
	out := Recompiled{Key: k.ID(), Outcome: RecompiledSkipped}
	e, err := c.store.Get(ctx, k)
	if err != nil {
		out.Reason = err.Error()
		return out, ctx.Err()
	}
	defer e.Close()
	pl, err := plugin.Locate(ctx, plugin.Kind(k.Value("platform")), o)
	if err != nil {
		out.Reason = err.Error()
		return out, ctx.Err()
	}
	program, err := e.Section(sectionProgram)
	if err != nil {
		return out, err
	}
	req := requestOf(k, pl, program)
	req.Exe = exe
	facts, err := c.facts(ctx, req, pl)
	if err != nil || facts == nil {
		out.Reason = "the plugin cannot be asked about itself"
		return out, err
	}
	if differs := Explain(k, programKey(req, pl, facts)); len(differs) > 0 {
		out.Reason = strings.Join(differs, "; ")
		return out, nil
	}
	kept, err := readProgram(e)
	if err != nil {
		return out, err
	}
	again, err := tpu.Compile(ctx, req)
	if err != nil {
		return out, err
	}
	out.Outcome = RecompiledEqual
	if !bytes.Equal(kept.Executable, again.Executable) && (req.Target.Platform != tpu.CPU || fmt.Sprint(kept.Stats) != fmt.Sprint(again.Stats)) {
		out.Outcome = RecompiledDiffers
		out.Reason = fmt.Sprintf("%d bytes are kept, and the plugin makes %d other ones", len(kept.Executable), len(again.Executable))
	}
	return out, nil
}

// requestOf is the request that a program's key was made of.
func requestOf(k cache.Key, pl *plugin.Plugin, program []byte) tpu.Request {
	number := func(name string) int {
		n, err := strconv.Atoi(k.Value(name))
		if err != nil { // the key differs then from that of the request
			return 0
		}
		return n
	}
	return tpu.Request{
		Program: program, PluginPath: pl.Path,
		Target:  tpu.Target{Platform: k.Value("platform"), Topology: k.Value("topology"), ChipConfig: k.Value("chip_config"), Devices: number("devices")},
		Options: tpu.Options{NumPartitions: number("partitions"), XLAFlags: strings.Fields(k.Value("xla_flags")), LibtpuArgs: strings.Fields(k.Value("libtpu_args"))},
	}
}
