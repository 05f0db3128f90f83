package runtime

import (
	"context"
	"time"

	"tpuc/ir/tensor"
)

// Timing is where the time of a call goes.
type Timing struct {
	Upload   time.Duration // of the inputs
	Dispatch time.Duration // the plugin's call that starts the program
	Execute  time.Duration // until the program has ended, Dispatch included
	Download time.Duration // of the outputs

	ended time.Time // when the program had
}

// Measure is Run that waits for each part of the call before the next, which Run does not, and says how long each took.
func (s *Session) Measure(ctx context.Context, inputs []*tensor.Tensor) ([]*tensor.Tensor, Timing, error) {
	var t Timing
	c, err := s.begin(ctx, inputs, &t)
	if err != nil {
		return nil, t, err
	}
	out, err := c.wait(ctx)
	t.Download = time.Since(t.ended)
	if err != nil {
		return nil, t, s.fail(ctx, err, c.generation)
	}
	return out, t, nil
}
