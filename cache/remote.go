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
		_, err = s.receive(r, k.ID())
		return err
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

// receive keeps an entry's file that comes from elsewhere, after it was checked like one of the store. It returns its key.
func (s *Store) receive(r io.Reader, id string) (Key, error) {
	if err := s.mark(); err != nil {
		return Key{}, &PutError{s.dir, err}
	}
	t, err := s.create()
	if err != nil {
		return Key{}, &PutError{s.dir, err}
	}
	defer t.drop()
	var from error // of the reader, not of this store
	err = t.fill(func(w io.Writer) error {
		_, err := io.Copy(w, readerFunc(func(p []byte) (n int, err error) {
			n, err = r.Read(p)
			if err != io.EOF {
				from = err
			}
			return n, err
		}))
		return err
	})
	switch {
	case from != nil:
		return Key{}, from
	case err != nil:
		return Key{}, &PutError{s.dir, err}
	}
	e, _, err := open(t.Name(), id)
	if err != nil {
		var damaged *Damaged
		if errors.As(err, &damaged) {
			return Key{}, fmt.Errorf("damaged: %w", damaged.Reason)
		}
		return Key{}, &PutError{s.dir, err}
	}
	k := e.Key()
	e.Close()
	if err := t.rename(s.path(k.Kind, id)); err != nil {
		return Key{}, &PutError{s.dir, err}
	}
	return k, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
