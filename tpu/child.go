package tpu

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tpuc/tpu/pjrt"
)

// answerFD is where the child writes its answer: the first of exec.Cmd.ExtraFiles.
const answerFD = 3

// ChildMain must be the first thing in main of every program that Compile may start, tests included. In a
// compile child it does the work and exits; elsewhere it returns at once.
func ChildMain() {
	version, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	os.Unsetenv(childEnv) // not for programs the plugin starts
	prepareChild()
	w := os.NewFile(answerFD, "answer")
	if w == nil || version != childVersion {
		fmt.Fprintf(os.Stderr, "%s is %q, want %q: it is set by tpuc for its own children only\n", childEnv, version, childVersion)
		os.Exit(2)
	}
	if err := serve(os.Stdin, w); err != nil {
		fmt.Fprintf(os.Stderr, "compile child: %v\n", err)
		os.Exit(1)
	}
	// The plugin's destructors are not run: they take time and may hang, and the process ends anyway.
	os.Exit(0)
}

// serve is one compile: order and program from r, messages to w. An error is of the pipes only.
func serve(r io.Reader, w io.Writer) error {
	if err := writeMessage(w, tagHello, []byte(childVersion)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(r, 1<<20)
	_, data, err := readMessage(in, map[byte]int64{tagOrder: maxJSON})
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	_, program, err := readMessage(in, map[byte]int64{tagProgram: maxProgram})
	if err != nil {
		return err
	}
	c := &compilation{order: o, phase: func(p Phase) { _ = writeMessage(w, tagPhase, []byte(p)) }}
	rep, exe := c.run(program)
	if err := writeJSON(w, tagReply, rep); err != nil {
		return err
	}
	if rep.Kind != "" {
		return nil
	}
	return writeMessage(w, tagExecutable, exe)
}

// compilation is the work of a child.
type compilation struct {
	order order
	phase func(Phase)
	reply reply
}

// run compiles and never panics: a bug of this package is a reply too.
func (c *compilation) run(program []byte) (rep reply, exe []byte) {
	defer func() {
		if p := recover(); p != nil {
			rep, exe = reply{Kind: Crashed, Message: fmt.Sprintf("bug in the compile child: %v\n%s", p, debug.Stack())}, nil
		}
	}()
	c.phase(PhaseLoad)
	start := time.Now()
	compile, err := c.load()
	if err != nil {
		return failed(NotLoaded, err), nil
	}
	c.reply.LoadNS = time.Since(start).Nanoseconds()

	c.phase(PhaseCompile)
	start = time.Now()
	e, err := compile(program)
	if err != nil {
		return failed(Refused, err), nil
	}
	c.reply.CompNS = time.Since(start).Nanoseconds()

	c.phase(PhaseSerialize)
	if err := c.describe(e); err != nil {
		return failed(Refused, err), nil
	}
	if exe, err = e.Serialize(); err != nil {
		return failed(Refused, err), nil
	}
	if len(exe) == 0 {
		return failed(Refused, errors.New("the plugin serialized the executable to nothing")), nil
	}
	return c.reply, exe
}

// load opens the plugin and its target and returns the function that compiles for it.
func (c *compilation) load() (func([]byte) (*pjrt.Executable, error), error) {
	p, err := pjrt.Open(c.order.PluginPath)
	if err != nil {
		return nil, err
	}
	c.reply.Stats.APIVersion = p.Version().String()
	n := max(c.order.NumPartitions, 1)
	var opts pjrt.CompileOptions // set below, when the devices are known
	var devices []*pjrt.Device
	var compile func([]byte) (*pjrt.Executable, error)
	if c.order.Target.Platform == CPU {
		client, err := p.NewClient(pjrt.NamedValue{Name: "cpu_device_count", Value: int64(max(c.order.Target.Devices, n))})
		if err != nil {
			return nil, err
		}
		devices = client.Devices()
		c.reply.Stats.PlatformName, c.reply.Stats.PlatformVersion = client.PlatformName(), client.PlatformVersion()
		compile = func(program []byte) (*pjrt.Executable, error) {
			l, err := client.Compile(program, opts)
			return l.Executable(), err
		}
	} else {
		var options []pjrt.NamedValue
		if config := c.order.Target.ChipConfig; config != "" {
			options = append(options, pjrt.NamedValue{Name: "chip_config_name", Value: config})
		}
		topo, err := p.NewTopology(c.order.Target.Topology, options...)
		if err != nil {
			return nil, fmt.Errorf("topology %q: %w", c.order.Target.Topology, err)
		}
		devices = topo.Devices()
		c.reply.Stats.PlatformName, c.reply.Stats.PlatformVersion = topo.PlatformName(), topo.PlatformVersion()
		compile = func(program []byte) (*pjrt.Executable, error) { return topo.Compile(program, opts) }
	}
	c.reply.Stats.Devices = len(devices)
	if len(devices) < n {
		return nil, fmt.Errorf("%d partitions on %d devices, want a target with at least as many devices", n, len(devices))
	}
	opts = pjrt.OptionsFor(devices[:n], c.order.Target.Platform == CPU)
	return compile, nil
}

// describe fills the statistics. What a plugin does not implement is left out; any other error is one.
func (c *compilation) describe(e *pjrt.Executable) error {
	s := &c.reply.Stats
	var err error
	if s.Memory, err = e.MemoryStats(); missing(err) != nil {
		return err
	}
	cost, err := e.CostAnalysis()
	if missing(err) != nil {
		return err
	}
	for _, v := range cost {
		// JSON has no infinities; a plugin's nonsense is not worth a failed compile.
		if f, ok := v.Value.(float32); ok && !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) {
			s.Cost = append(s.Cost, Cost{Name: v.Name, Value: float64(f)})
		}
	}
	// libtpu keeps them in a hash table: the order differs from run to run.
	slices.SortFunc(s.Cost, func(a, b Cost) int { return strings.Compare(a.Name, b.Name) })
	if s.ParameterLayouts, err = e.ParameterLayouts(); missing(err) != nil {
		return err
	}
	if s.OutputLayouts, err = e.OutputLayouts(); missing(err) != nil {
		return err
	}
	print, err := e.Fingerprint()
	if missing(err) != nil {
		return err
	}
	s.Fingerprint = hex.EncodeToString([]byte(print))
	types, err := e.OutputTypes()
	if err != nil {
		return err
	}
	dims, err := e.OutputDims()
	if err != nil {
		return err
	}
	if len(types) != len(dims) {
		return fmt.Errorf("the plugin reports %d output types and %d output shapes", len(types), len(dims))
	}
	for i, t := range types {
		s.Outputs = append(s.Outputs, Output{Type: t.String(), Dims: dims[i]})
	}
	return nil
}

// missing drops the error of a function that a plugin does not implement.
func missing(err error) error {
	var perr *pjrt.Error
	if errors.As(err, &perr) && perr.Code == pjrt.Unimplemented {
		return nil
	}
	return err
}

// maxMessage bounds the plugin's words: some errors quote the whole module.
const maxMessage = 1 << 20

// failed is the reply for an error of the plugin.
func failed(kind Kind, err error) reply {
	rep := reply{Kind: kind, Code: pjrt.Unknown, Message: err.Error()}
	var perr *pjrt.Error
	if errors.As(err, &perr) {
		rep.Code = perr.Code
		if kind == Refused {
			rep.Message = perr.Message // the function's name says nothing to a user
		}
	}
	if len(rep.Message) > maxMessage {
		rep.Message = rep.Message[:maxMessage] + " ..."
	}
	return rep
}
