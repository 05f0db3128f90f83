package tpuc

import "time"

// watch measures one phase.
type watch struct {
	wall time.Time
	cpu  time.Duration
}

func startWatch() watch { return watch{time.Now(), cpuTime()} }

func (w watch) stop(phase string) PhaseTime {
	return PhaseTime{phase, time.Since(w.wall).Seconds(), (cpuTime() - w.cpu).Seconds()}
}
