package tpuc

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// bomb is a program whose calls panic.
type bomb struct{}

func (bomb) open(context.Context) (Caller, func(), error) { panic("boom") }
func (bomb) Close() error                                 { return nil }

// lateContext is canceled by the first look at it.
type lateContext struct {
	context.Context
	cancel context.CancelFunc
}

func (c lateContext) Err() error {
	err := c.Context.Err()
	c.cancel()
	return err
}

// TestInterrupted ends a case under way: that is no refusal of its model.
func TestInterrupted(t *testing.T) {
	cases, err := FindCases([]string{filepath.Join("testdata", "models", "mlp")})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	out := runCase(lateContext{ctx, cancel}, cases[0], SuiteOptions{Evaluate: true})
	require.Equal(t, StatusFailed, out.Status)
	require.Equal(t, "interrupted: context canceled", out.Message)
}

// TestPanicIsAnOutcome makes a bug of a panic within a case.
func TestPanicIsAnOutcome(t *testing.T) {
	cases, err := FindCases([]string{filepath.Join("testdata", "models", "mlp")})
	require.NoError(t, err)
	c := cases[0]
	inputs, err := openTensors(c.Calls[0].Inputs)
	require.NoError(t, err)
	defer inputs.source.Close()
	r := &caseRun{Case: c, out: &CaseOutcome{Case: c}, program: bomb{}, dims: inputs.dims()}
	r.guarded(t.Context())
	require.Equal(t, StatusBug, r.out.Status)
	require.Equal(t, []string{"panic: boom"}, r.out.Reasons)
	require.Contains(t, r.out.Message, "suite_internal_test.go")
}
