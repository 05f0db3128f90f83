package tpuc

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tpuc/cache"
	"tpuc/internal/plural"
	"tpuc/ir"
	"tpuc/lower"
	"tpuc/passes"
	"tpuc/tpu/artifact"
	"tpuc/tpu/plugin"
)

// Report says what a compile did, of several programs in all and of each. Times differ from run to run, everything else is a function of the model, the options and the plugin.
type Report struct {
	Model      string           `json:"model"`
	Torch      string           `json:"torch,omitempty"` // version that captured the model
	Target     string           `json:"target"`
	Plugin     string           `json:"plugin,omitempty"`
	Phases     []PhaseTime      `json:"phases"`
	Locate     PhaseTime        `json:"locate"`                // finding the plugin, and fetching it the first time: in no phase
	PluginTime *PluginTime      `json:"plugin_time,omitempty"` // of the compile child, part of the compile phase's wall time
	Passes     []passes.Stats   `json:"passes,omitempty"`
	Flops      int64            `json:"flops"`          // of one call, by tpuc's own count
	Dims       []artifact.Dim   `json:"dims,omitempty"` // symbolic dimensions
	Inputs     []Port           `json:"inputs"`         // of several programs the first's, as are outputs, memory and sizes
	Outputs    []Port           `json:"outputs"`
	State      Tensors          `json:"state"`   // kept on the device from call to call
	Weights    Tensors          `json:"weights"` // of the checkpoint, each once whatever its names
	Constants  Tensors          `json:"constants"`
	Memory     *artifact.Memory `json:"memory,omitempty"` // as the plugin predicts it
	Program    int              `json:"program_bytes,omitempty"`
	Executable int              `json:"executable_bytes,omitempty"`
	Cache      *CacheReport     `json:"cache,omitempty"`  // nil without a cache
	Output     string           `json:"output,omitempty"` // file written
	Notes      []string         `json:"notes,omitempty"`
	Log        string           `json:"-"`                  // what the plugin printed, cut in the middle when long
	Programs   []*Report        `json:"programs,omitempty"` // each, where there are several
}

// CacheReport says what of a compile came from the cache.
type CacheReport struct {
	Unchanged bool     `json:"unchanged"` // all of it: the model was compiled before, and was not looked into
	Programs  []Cached `json:"programs"`
}

// PhaseTime is the cost of a phase in seconds. CPU is this process's, a plugin's compile apart.
type PhaseTime struct {
	Phase string  `json:"phase"`
	Wall  float64 `json:"wall_s"`
	CPU   float64 `json:"cpu_s"`
}

// PluginTime is the cost of the compile child in seconds.
type PluginTime struct {
	Wall    float64 `json:"wall_s"`
	CPU     float64 `json:"cpu_s"`
	Compile float64 `json:"compile_s"` // of Wall: the compile call alone
}

// Tensors counts tensors and their bytes.
type Tensors struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// CPU is tpuc's own CPU time in seconds, without the plugin's.
func (r *Report) CPU() float64 {
	sum := 0.0
	for _, p := range r.Phases {
		sum += p.CPU
	}
	return sum
}

// Wall is the whole compile's duration in seconds, the plugin's fetch included.
func (r *Report) Wall() float64 {
	sum := r.Locate.Wall
	for _, p := range r.Phases {
		sum += p.Wall
	}
	return sum
}

func (r *Report) describe(m *Model) {
	r.Model, r.Torch, r.Inputs, r.Outputs, r.Notes, r.Dims = m.Name, m.Torch, m.Inputs, m.Outputs, m.Notes, m.dims()
}

// together is the report of several programs: times and work added up.
func together(each []*Report) *Report {
	sum := *each[0]
	sum.Programs, sum.Phases, sum.Dims, sum.Notes = each, slices.Clone(sum.Phases), nil, slices.Clone(sum.Notes)
	for _, r := range each[1:] {
		for i, p := range r.Phases {
			sum.Phases[i].Wall += p.Wall
			sum.Phases[i].CPU += p.CPU
		}
		sum.Locate.Wall += r.Locate.Wall
		sum.Locate.CPU += r.Locate.CPU
		if p := r.PluginTime; p != nil {
			if sum.PluginTime == nil {
				sum.PluginTime = &PluginTime{}
			}
			sum.PluginTime = &PluginTime{sum.PluginTime.Wall + p.Wall, sum.PluginTime.CPU + p.CPU, sum.PluginTime.Compile + p.Compile}
		}
		if r.Cache != nil && sum.Cache != nil {
			sum.Cache = &CacheReport{Programs: slices.Concat(sum.Cache.Programs, r.Cache.Programs)}
		}
		sum.Flops += r.Flops
		if r.Log != sum.Log {
			sum.Log += r.Log
		}
		for _, n := range r.Notes {
			if !slices.Contains(sum.Notes, n) {
				sum.Notes = append(sum.Notes, n)
			}
		}
	}
	return &sum
}

// packed counts the tensors of an artifact.
func (r *Report) packed(m *artifact.Manifest) {
	count := func(list []artifact.Weight) (t Tensors) {
		for _, w := range list {
			if x, err := w.Tensor(); err == nil {
				t.Count++
				t.Bytes += x.Bytes()
			}
		}
		return t
	}
	r.State, r.Weights, r.Constants = count(m.State), count(m.Weights), count(m.Constants)
}

func (r *Report) arguments(p *lower.Program, m *ir.Module) {
	r.Program = len(p.Text)
	for _, a := range p.Args {
		t := map[lower.ArgKind]*Tensors{lower.State: &r.State, lower.Weight: &r.Weights, lower.Constant: &r.Constants}[a.Kind]
		if t != nil {
			t.Count++
			t.Bytes += a.Type.Bytes()
		}
	}
	for _, n := range m.Func.Body {
		r.Flops += ir.CostOf(n).Flops
	}
}

func (r *Report) compiled(p *plugin.Plugin, b *built) {
	r.Plugin = strings.TrimSpace(p.Name + " " + p.Version)
	r.Memory = memory(b.Result)
	r.Executable, r.Log = len(b.Executable), b.Log
	if u := b.Usage; !b.Cached.Hit {
		r.PluginTime = &PluginTime{u.Wall.Seconds(), u.CPU.Seconds(), u.Compile.Seconds()}
	}
	if b.key.Kind != "" {
		r.Cache = &CacheReport{Programs: []Cached{b.Cached}}
	}
}

// found reports that everything came from the cache.
func (r *Report) found(programs []cache.Key) {
	r.Locate, r.PluginTime = PhaseTime{Phase: "locate"}, nil
	r.Cache = &CacheReport{Unchanged: true}
	for _, k := range programs {
		r.Cache.Programs = append(r.Cache.Programs, Cached{Key: k.ID(), Hit: true, Kept: true})
	}
	for i, p := range r.Programs {
		p.Locate, p.PluginTime, p.Phases = r.Locate, nil, []PhaseTime{}
		p.Cache = &CacheReport{Unchanged: true, Programs: r.Cache.Programs[i : i+1]}
	}
}

// Write prints the report for people.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	model := r.Model
	if r.Torch != "" {
		model += " (torch " + r.Torch + ")"
	}
	row("model", "%s", model)
	target := r.Target
	if r.Plugin != "" {
		target += " (" + r.Plugin + ")"
	}
	row("target", "%s", target)
	var own []string
	for _, p := range r.Phases {
		wall := p.Wall
		if p.Phase == PhaseCompile && r.PluginTime != nil {
			wall = max(0, wall-r.PluginTime.Wall)
		}
		own = append(own, fmt.Sprintf("%s %s", p.Phase, seconds(wall)))
	}
	row("tpuc", "%s CPU: %s", seconds(r.CPU()), strings.Join(own, ", "))
	if r.Locate.Wall > 0.1 {
		row("fetched", "the plugin in %s", seconds(r.Locate.Wall))
	}
	if p := r.PluginTime; p != nil {
		row("plugin", "%s CPU, %s in all, %s of it compiling", seconds(p.CPU), seconds(p.Wall), seconds(p.Compile))
	}
	if r.Cache != nil {
		row("cache", "%s", r.Cache)
	}
	portRows(row, "inputs", r.Inputs, len(r.Programs) > 0)
	portRows(row, "outputs", r.Outputs, len(r.Programs) > 0)
	row("state", "%s", r.State)
	row("weights", "%s", r.Weights)
	row("constants", "%s", r.Constants)
	name := "programs"
	for _, p := range r.Programs {
		row(name, "%s", p.line())
		name = ""
	}
	if len(r.Programs) == 0 {
		row("work", "%.4g GFLOP a call", float64(r.Flops)/1e9)
	}
	if m := r.Memory; m != nil && len(r.Programs) == 0 {
		row("memory", "peak %s, temporary %s, code %s", Bytes(m.Peak), Bytes(m.Temp), Bytes(m.Code))
		row("executable", "%s", Bytes(int64(r.Executable)))
	}
	if r.Output != "" {
		row("written", "%s", r.Output)
	}
	return t.Flush()
}

// line is one of several programs: its dimensions, work and size.
func (r *Report) line() string {
	p := artifact.Program{Dims: r.Dims, Memory: r.Memory}
	return fmt.Sprintf("%s, %.4g GFLOP a call, executable %s", programLine(&p), float64(r.Flops)/1e9, Bytes(int64(r.Executable)))
}

// String is such as "1 of 2 programs found, 1 compiled and kept".
func (c *CacheReport) String() string {
	var found, kept, lost int
	for _, p := range c.Programs {
		switch {
		case p.Hit:
			found++
		case p.Kept:
			kept++
		default:
			lost++
		}
	}
	switch {
	case c.Unchanged:
		return "the model is unchanged: nothing was compiled"
	case len(c.Programs) == 1 && found == 1:
		return "the program was found: it was not compiled"
	case len(c.Programs) == 1 && kept == 1:
		return "the program was compiled and is kept"
	case len(c.Programs) == 1:
		return "the program was compiled and could not be kept"
	}
	s := fmt.Sprintf("%d of %d programs found", found, len(c.Programs))
	if kept > 0 {
		s += fmt.Sprintf(", %d compiled and kept", kept)
	}
	if lost > 0 {
		s += fmt.Sprintf(", %d compiled and not kept", lost)
	}
	return s
}

// String is such as "12 tensors, 1.5 MB".
func (t Tensors) String() string {
	if t.Count == 0 {
		return "none"
	}
	return plural.Of(t.Count, "tensor") + ", " + Bytes(t.Bytes)
}

// portsShown is how many inputs or outputs are listed before they are only counted.
const portsShown = 8

// portRows lists ports, with open dimensions as the model has them where that is asked for.
func portRows(row func(name, format string, args ...any), name string, ports []Port, open bool) {
	total := int64(0)
	for i, p := range ports {
		total += p.Type.Bytes()
		if i < portsShown {
			typ := p.Type.String()
			if open {
				typ = p.signature().String()
			}
			row(name, "%s : %s", p.Name, typ)
			name = ""
		}
	}
	switch {
	case len(ports) == 0:
		row(name, "none")
	case len(ports) > portsShown && open:
		row("", "and %d more", len(ports)-portsShown)
	case len(ports) > portsShown:
		row("", "and %d more, %s in all", len(ports)-portsShown, Bytes(total))
	}
}

func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// Bytes writes a size in decimal units, as the field's tools do.
func Bytes(n int64) string {
	f := float64(n)
	for _, u := range []string{"B", "kB", "MB", "GB"} {
		if f < 1000 {
			return trim(f) + " " + u
		}
		f /= 1000
	}
	return trim(f) + " TB"
}

func trim(f float64) string {
	if f >= 100 || f == float64(int64(f)) {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}
