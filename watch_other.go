//go:build !unix

package tpuc

import "time"

// cpuTime is not measured here: nothing is compiled on such a machine.
func cpuTime() time.Duration { return 0 }
