package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Remote is a store that several machines share, seen from this one: files of entries by ID. What it gives is checked like everything else.
// There is no implementation yet but that of the tests.
type Remote interface {
	Get(ctx context.Context, id string) (io.ReadCloser, error) // ErrMiss if it is not there
	Put(ctx context.Context, id string, r io.Reader) error
	Has(ctx context.Context, id string) (bool, error)
}

// fetch brings an entry from the remote into the store. Its faults are warnings.
func (s *Store) fetch(ctx context.Context, k Key) bool {
	if s.o.ReadOnly {
		return false
	}
	err := func() error {
		r, err := s.o.Remote.Get(ctx, k.ID())
		if err != nil {
			return err
		}
		defer r.Close()
		return s.receive(r, k.Kind, k.ID())
	}()
	if err != nil && !errors.Is(err, ErrMiss) {
		s.warn("remote get", "remote cache: %s %s: %v", k.Kind, short(k.ID()), err)
	}
	return err == nil
}

// send gives an entry of the store to the remote. Its faults are warnings.
func (s *Store) send(ctx context.Context, k Key) {
	if s.o.Remote == nil {
		return
	}
	err := func() error {
		if has, err := s.o.Remote.Has(ctx, k.ID()); has || err != nil {
			return err
		}
		f, err := os.Open(s.Path(k))
		if err != nil {
			return err
		}
		defer f.Close()
		return s.o.Remote.Put(ctx, k.ID(), f)
	}()
	if err != nil {
		s.warn("remote put", "remote cache: %s %s: %v", k.Kind, short(k.ID()), err)
	}
}

// receive keeps an entry's file that comes from elsewhere, after every byte of it was checked.
func (s *Store) receive(r io.Reader, kind, id string) error {
	if err := s.mark(); err != nil {
		return &PutError{s.dir, err}
	}
	t, err := s.create()
	if err != nil {
		return &PutError{s.dir, err}
	}
	defer t.drop()
	from := &source{r: r}
	err = s.fill(t, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
	switch {
	case from.err != nil:
		return from.err
	case err != nil:
		return &PutError{s.dir, err}
	}
	e, _, err := open(t.Name(), id)
	var damaged *Damaged
	switch {
	case errors.As(err, &damaged):
		return fmt.Errorf("damaged: %w", damaged.Reason)
	case err != nil:
		return &PutError{s.dir, err}
	}
	got := e.Key().Kind
	e.Close()
	if got != kind {
		return fmt.Errorf("an entry of kind %s, wanted %s", got, kind)
	}
	if err := s.rename(t, s.path(kind, id)); err != nil {
		return &PutError{s.dir, err}
	}
	return nil
}

// source is a reader that keeps its error, so that it can be told from one of the writer.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != io.EOF {
		s.err = err
	}
	return n, err
}
