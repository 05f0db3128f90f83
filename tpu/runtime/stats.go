package runtime

import "sync/atomic"

// Stats counts what a model did since it was opened. Calls is the sum of Exact, Padded, Refused and Failed.
type Stats struct {
	Calls   int64 `json:"calls"`
	Exact   int64 `json:"exact"`   // calls of the program of their shapes
	Padded  int64 `json:"padded"`  // calls of a larger program
	Refused int64 `json:"refused"` // calls whose inputs fit no program that the policy allows, and none could be made
	Failed  int64 `json:"failed"`  // calls that ended before a program ran for another reason: a lost session, the end of a context

	Compiled        int64 `json:"compiled"`         // further programs that were compiled and taken in
	Released        int64 `json:"released"`         // of those, to keep to MaxPrograms
	CompileFailures int64 `json:"compile_failures"` // further programs that could not be had
	Compiling       int64 `json:"compiling"`        // now
	Recompiled      int64 `json:"recompiled"`       // programs of the artifact whose executable was of no use here
	Relaid          int64 `json:"relaid"`           // pieces of state copied because two programs want other layouts
}

// counters are the model's own, kept without a lock.
type counters struct {
	calls, exact, padded, refused, failed                              atomic.Int64
	compiled, compileFailures, compiling, recompiled, relaid, released atomic.Int64
}

// Stats are the counts at this moment. While calls are being made they may be out of step by those.
func (m *Model) Stats() Stats {
	c := &m.stats
	return Stats{
		Calls: c.calls.Load(), Exact: c.exact.Load(), Padded: c.padded.Load(), Refused: c.refused.Load(), Failed: c.failed.Load(),
		Compiled: c.compiled.Load(), CompileFailures: c.compileFailures.Load(), Compiling: c.compiling.Load(), Recompiled: c.recompiled.Load(),
		Relaid: c.relaid.Load(), Released: c.released.Load(),
	}
}
