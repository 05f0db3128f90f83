package tpuc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tpuc/ir/tensor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/runtime"
)

// BenchOptions steer Bench. Calls are made until Duration has passed and at least Iterations of them were made.
type BenchOptions struct {
	Warmup      time.Duration    // of calls that are not counted; one a session at least
	Duration    time.Duration    // 0: Iterations alone
	Iterations  int              // at least so many calls
	Concurrency int              // sessions that call side by side, each with its own state
	Dims        map[string]int64 // which of an artifact's programs makes up the shapes of random inputs; nil: the first
}

// stagedCalls is how many calls are made part by part.
const stagedCalls = 100

// BenchReport says how fast a model runs. Times are in seconds.
type BenchReport struct {
	Model       string          `json:"model"`
	Target      string          `json:"target"`
	Plugin      string          `json:"plugin"`
	Inputs      []artifact.Port `json:"inputs"` // of the first call
	Concurrency int             `json:"concurrency"`
	Calls       int             `json:"calls"`
	Wall        float64         `json:"wall_s"`
	Throughput  float64         `json:"calls_per_s"`
	Latency     Distribution    `json:"latency"` // of a call, transfers included
	// Parts are of calls made one after another, each part waited for before the next: their sum is more than a call that runs without a stop.
	Parts Parts         `json:"parts"`
	Stats runtime.Stats `json:"stats"` // of all calls, those to warm up included
}

// Parts are the parts of a call.
type Parts struct {
	Calls    int          `json:"calls"`
	Upload   Distribution `json:"upload"`   // host to device
	Dispatch Distribution `json:"dispatch"` // host time to start the program
	Execute  Distribution `json:"execute"`  // device time, the dispatch included
	Download Distribution `json:"download"` // device to host
}

// Distribution describes times.
type Distribution struct {
	Min  float64 `json:"min_s"`
	Mean float64 `json:"mean_s"`
	P50  float64 `json:"p50_s"`
	P90  float64 `json:"p90_s"`
	P95  float64 `json:"p95_s"`
	P99  float64 `json:"p99_s"`
	Max  float64 `json:"max_s"`
}

// distribution describes times, which it sorts. A percentile is the least time that so many of a hundred do not exceed.
func distribution(times []time.Duration) Distribution {
	if len(times) == 0 {
		return Distribution{}
	}
	slices.Sort(times)
	sum := 0.0
	for _, t := range times {
		sum += t.Seconds()
	}
	at := func(percent float64) float64 {
		return times[max(int(math.Ceil(percent/100*float64(len(times)))), 1)-1].Seconds()
	}
	return Distribution{times[0].Seconds(), sum / float64(len(times)), at(50), at(90), at(95), at(99), times[len(times)-1].Seconds()}
}

// Check refuses options that make no call.
func (o BenchOptions) Check() error {
	switch {
	case o.Warmup < 0 || o.Duration < 0 || o.Iterations < 0:
		return fmt.Errorf("warm-up %v, duration %v and %d iterations, wanted none below 0", o.Warmup, o.Duration, o.Iterations)
	case o.Duration == 0 && o.Iterations == 0:
		return errors.New("neither a duration nor iterations, wanted one of them")
	case o.Concurrency < 1 || o.Concurrency > 1<<10:
		return fmt.Errorf("concurrency %d, wanted 1 to %d", o.Concurrency, 1<<10)
	}
	return nil
}

// Bench measures calls of m with the inputs of c, one file after another.
func Bench(ctx context.Context, m *Opened, c *Calls, o BenchOptions) (*BenchReport, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	man := m.Manifest()
	program, err := chooseProgram(man, o.Dims)
	if err != nil {
		return nil, err
	}
	ports, _ := man.Ports(program)
	var inputs [][]*tensor.Tensor
	for i := range max(len(c.inputs), 1) {
		x, from, err := c.inputsOf(i, ports)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		inputs = append(inputs, x)
	}
	r := &BenchReport{Model: man.Model.Name, Target: man.Target.Name, Plugin: man.Plugin.Name + " " + man.Plugin.Version, Concurrency: o.Concurrency}
	for i, x := range inputs[0] {
		p := ports[i]
		p.Type = artifact.MakeType(x.Type)
		r.Inputs = append(r.Inputs, p)
	}
	b := &bench{model: m, inputs: inputs, o: o}
	if err := b.run(ctx, r); err != nil {
		return nil, err
	}
	if err := b.parts(ctx, r); err != nil {
		return nil, err
	}
	r.Stats = m.Stats()
	return r, nil
}

// chooseProgram is the program of these sizes; the first without any.
func chooseProgram(man *artifact.Manifest, dims map[string]int64) (*artifact.Program, error) {
	for name := range dims {
		if !slices.ContainsFunc(man.Symbols, func(y artifact.Symbol) bool { return y.Name == name }) {
			return nil, fmt.Errorf("%s is no symbolic dimension of the model", name)
		}
	}
	for i := range man.Programs {
		p := &man.Programs[i]
		if !slices.ContainsFunc(p.Dims, func(d artifact.Dim) bool { n, ok := dims[d.Name]; return ok && n != d.Value }) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no program has the sizes %v: see tpuc inspect for those that there are", dims)
}

type bench struct {
	model  *Opened
	inputs [][]*tensor.Tensor
	o      BenchOptions
}

// run makes the counted calls.
func (b *bench) run(ctx context.Context, r *BenchReport) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	times := make([][]time.Duration, b.o.Concurrency)
	var ready, done sync.WaitGroup
	begin := make(chan time.Time)
	var begun atomic.Int64 // calls
	for i := range times {
		ready.Add(1)
		done.Go(func() {
			warm := sync.OnceFunc(ready.Done)
			defer warm()
			s, err := b.model.NewSession(ctx)
			if err == nil {
				defer s.Close()
				err = b.warm(ctx, s)
			}
			warm()
			start, ok := <-begin
			for k := 0; ok && err == nil && ctx.Err() == nil; k++ {
				if begun.Add(1) > int64(b.o.Iterations) && time.Since(start) >= b.o.Duration {
					return
				}
				at := time.Now()
				_, err = s.Run(ctx, b.inputs[k%len(b.inputs)])
				times[i] = append(times[i], time.Since(at))
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	ready.Wait()
	start := time.Now()
	for range times {
		begin <- start
	}
	done.Wait()
	r.Wall = time.Since(start).Seconds()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	all := slices.Concat(times...)
	r.Calls, r.Throughput, r.Latency = len(all), float64(len(all))/r.Wall, distribution(all)
	return nil
}

// warm makes calls that are not counted, at least one of each input.
func (b *bench) warm(ctx context.Context, s *runtime.Session) error {
	start := time.Now()
	for k := 0; k < len(b.inputs) || time.Since(start) < b.o.Warmup; k++ {
		if _, err := s.Run(ctx, b.inputs[k%len(b.inputs)]); err != nil {
			return err
		}
	}
	return s.Reset(ctx)
}

// parts makes calls part by part, within a fifth of the duration where there is one, of which the first does not count.
func (b *bench) parts(ctx context.Context, r *BenchReport) error {
	s, err := b.model.NewSession(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var upload, dispatch, execute, download []time.Duration
	calls := stagedCalls
	if b.o.Duration == 0 {
		calls = min(calls, b.o.Iterations)
	}
	start := time.Now()
	for k := range calls + 1 {
		_, t, err := s.Measure(ctx, b.inputs[k%len(b.inputs)])
		if err != nil {
			return err
		}
		if k == 0 {
			continue
		}
		upload, dispatch, execute, download = append(upload, t.Upload), append(dispatch, t.Dispatch), append(execute, t.Execute), append(download, t.Download)
		if b.o.Duration > 0 && time.Since(start) > b.o.Duration/5 {
			break
		}
	}
	r.Parts = Parts{len(upload), distribution(upload), distribution(dispatch), distribution(execute), distribution(download)}
	return nil
}
