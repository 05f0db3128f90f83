package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/ir/tensor"
)

// TestSoak makes calls of mixed shapes on 24 goroutines under each policy, and under the policy to compile with few programs kept, for a second each or,
// together, for as long as TPUC_SOAK says, such as 10m. Every output is checked; there is no error but those that the policy must give, memory does not
// grow, and the counters add up.
func TestSoak(t *testing.T) {
	each := time.Second
	if s := os.Getenv("TPUC_SOAK"); s != "" {
		all, err := time.ParseDuration(s)
		require.NoError(t, err)
		each = all / time.Duration(len(Policies)+1)
	}
	for _, policy := range Policies {
		t.Run(string(policy), func(t *testing.T) { soak(t, policy, 0, each) })
	}
	t.Run("compile, few kept", func(t *testing.T) { soak(t, Compile, 3, each) })
}

// soaked counts what the callers saw.
type soaked struct{ ran, refused, failed atomic.Int64 }

func soak(t *testing.T, policy Policy, kept int, length time.Duration) {
	const callers, most = 24, 12
	model := open(t, rows(t, 1, 2, 4, 8), Options{OnMiss: policy, MaxPrograms: kept, Compiler: &maker{t: t, lib: cpuPlugin(t)}})
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var seen soaked
	var wg sync.WaitGroup
	errs := make(chan error, callers)
	for i := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				if err := soakSession(ctx, model, rng, policy, most, &seen); err != nil {
					errs <- err
					cancel()
					return
				}
			}
		})
	}
	// Memory is looked at when everything has been used, and at the end.
	time.Sleep(length / 3)
	var early int64
	if runtime.GOOS == "linux" {
		early = anon(t)
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
	model.background.Wait()
	s := model.Stats()
	t.Logf("%d runs, %d refused, %d ended; %+v", seen.ran.Load(), seen.refused.Load(), seen.failed.Load(), s)
	require.Equal(t, s.Calls, s.Exact+s.Padded+s.Refused+s.Failed)
	require.Equal(t, seen.ran.Load(), s.Exact+s.Padded)
	require.Equal(t, seen.refused.Load(), s.Refused)
	require.Equal(t, seen.failed.Load(), s.Failed)
	require.Positive(t, s.Exact)
	switch policy {
	case Strict:
		require.Positive(t, s.Refused)
		require.Zero(t, s.Padded+s.Compiled)
	case Pad:
		require.Positive(t, s.Padded)
		require.Zero(t, s.Compiled)
	case Compile:
		require.Zero(t, s.Refused)
		if kept == 0 {
			require.Equal(t, int64(most-3), s.Compiled)
			require.Zero(t, s.Released)
			break
		}
		require.Equal(t, int64(kept), s.Compiled-s.Released)
		require.Positive(t, s.Released)
		require.Eventually(t, func() bool { return mapped(model) == kept }, 10*time.Second, time.Millisecond)
	}
	if runtime.GOOS == "linux" {
		late := anon(t)
		t.Logf("private memory %d MB after a third, %d MB at the end", early>>20, late>>20)
		require.Less(t, late-early, int64(32<<20), "memory grows")
	}
}

// soakSession makes some calls of one session, one after another or started ahead.
func soakSession(ctx context.Context, model *Model, rng *rand.Rand, policy Policy, most int64, seen *soaked) error {
	s, err := model.NewSession(context.Background())
	if err != nil {
		return err
	}
	defer s.Close()
	count := 0 // calls since the state was new
	type ahead struct {
		call  *Call
		x     []*tensor.Tensor
		count int
	}
	var started []ahead
	check := func(out []*tensor.Tensor, x []*tensor.Tensor, n int) error {
		if want := wantRows(x, n); !slices.Equal(want, out[0].Floats()) {
			return fmt.Errorf("call %d with %v: got %v, wanted %v", n, x[0].Dims, out[0].Floats(), want)
		}
		return nil
	}
	for range 50 {
		if ctx.Err() != nil {
			break
		}
		x := rowsInput(1 + rng.Int64N(most))
		switch rng.IntN(8) {
		case 0:
			if err := s.Reset(context.Background()); err != nil {
				return err
			}
			count = 0
			continue
		case 1: // a context that has ended
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := s.Run(ended, x); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("an ended context gave %w", err)
			}
			seen.failed.Add(1)
			continue
		}
		c, err := s.Start(context.Background(), x)
		if err != nil {
			size := x[0].Dims[0]
			if policy == Compile || size == 2 || size == 4 || size == 8 || policy == Pad && size < 8 {
				return err
			}
			seen.refused.Add(1)
			continue
		}
		seen.ran.Add(1)
		started = append(started, ahead{c, x, count})
		count++
		for len(started) > 0 && (len(started) > 3 || rng.IntN(2) == 0) {
			a := started[0]
			started = started[1:]
			out, err := a.call.Wait(context.Background())
			if err != nil {
				return err
			}
			if err := check(out, a.x, a.count); err != nil {
				return err
			}
		}
	}
	for _, a := range started {
		out, err := a.call.Wait(context.Background())
		if err != nil {
			return err
		}
		if err := check(out, a.x, a.count); err != nil {
			return err
		}
	}
	return nil
}
