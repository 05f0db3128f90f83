package cache

import (
	"context"
	"errors"
	"time"
)

// Outcome is how Do came by an entry.
type Outcome struct {
	Hit    bool  // it was there, or another process built it while this one waited; otherwise it was built here
	Waited bool  // for another process that built it, or gave up
	Kept   error // why what was built here is not in the store (a *PutError); nil if it is
}

// Do returns the key's entry, and builds it where it is not there: one process at a time for each key, while others wait, say for whom, and look
// again. An error of build is returned as it is and nothing is kept. An entry that cannot be kept is returned all the same.
// build may call Do for other keys, whose builds must not call Do for this one.
func (s *Store) Do(ctx context.Context, k Key, build func(context.Context) ([]Section, error)) (*Entry, Outcome, error) {
	return s.DoWithin(ctx, k, 0, build)
}

// DoWithin is Do that waits for other processes no longer than wait, 0 being no limit. Past it the error is a *HeldError.
func (s *Store) DoWithin(ctx context.Context, k Key, wait time.Duration, build func(context.Context) ([]Section, error)) (*Entry, Outcome, error) {
	var o Outcome
	e, err := s.Get(ctx, k)
	if err == nil {
		o.Hit = true
		return e, o, nil
	}
	if !errors.Is(err, ErrMiss) {
		return nil, o, err
	}
	l, waited, err := s.lock(ctx, k, wait)
	o.Waited = waited
	if err != nil {
		return nil, o, err
	}
	defer l.release()
	// Another may have built it between the first look and the lock.
	if e, err := s.get(ctx, s.file(k)); err == nil {
		o.Hit = true
		return e, o, nil
	} else if !errors.Is(err, ErrMiss) {
		return nil, o, err
	}
	sections, err := build(ctx)
	if err != nil {
		return nil, o, err
	}
	if err := s.Put(ctx, k, sections); err != nil {
		var unkept *PutError
		if !errors.As(err, &unkept) {
			return nil, o, err
		}
		o.Kept = err
	}
	return memory(k, sections), o, nil
}
