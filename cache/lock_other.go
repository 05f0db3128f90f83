//go:build !unix

package cache

import (
	"errors"
	"os"
)

// flock is not to be had here: builds of one key may run side by side.
func flock(*os.File, bool) error { return errors.ErrUnsupported }
