package runtime

import (
	"cmp"
	"fmt"
	"slices"

	"tpuc/tpu/artifact"
)

// DefaultMaxPrograms is how many further programs a model keeps where nothing else is said.
const DefaultMaxPrograms = 32

// hold keeps p from being released until letGo, and counts as a use. It is false where p is released already: the list of programs has it no more.
func (m *Model) hold(p *program) bool {
	if p.sizes == "" {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.released {
		return false
	}
	p.held++
	m.use(p)
	return true
}

// use notes that p is the program used last; mu is held.
func (m *Model) use(p *program) {
	m.uses++
	p.used = m.uses
}

// letGo ends a hold. Programs that were too many and all held are released now.
func (m *Model) letGo(p *program) {
	if p.sizes == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p.held--
	if p.held == 0 && !m.closed && m.excess() > 0 {
		m.background.Go(func() {
			m.loading.Lock()
			defer m.loading.Unlock()
			m.release(nil)
		})
	}
}

// excess is the number of further programs beyond the bound.
func (m *Model) excess() int {
	if m.opts.MaxPrograms < 0 {
		return 0
	}
	n := -cmp.Or(m.opts.MaxPrograms, DefaultMaxPrograms)
	for _, p := range *m.programs.Load() {
		if p.sizes != "" {
			n++
		}
	}
	return n
}

// release releases further programs beyond the bound, those not used for longest first, but none that is held and none of fresh. loading is held.
func (m *Model) release(fresh []*program) {
	m.mu.Lock()
	programs := slices.Clone(*m.programs.Load())
	slices.SortStableFunc(programs, func(a, b *program) int { return cmp.Compare(a.used, b.used) })
	var gone []*program
	for excess := m.excess(); excess > len(gone) && len(programs) > 0; programs = programs[1:] {
		if p := programs[0]; p.sizes != "" && p.held == 0 && !slices.Contains(fresh, p) {
			p.released = true
			delete(m.jobs, p.sizes) // the next call that wants it has it made again
			gone = append(gone, p)
		}
	}
	left := slices.DeleteFunc(slices.Clone(*m.programs.Load()), func(p *program) bool { return p.released })
	m.programs.Store(&left)
	var sessions []*Session
	for s := range m.sessions {
		sessions = append(sessions, s)
	}
	m.mu.Unlock()
	for _, p := range gone {
		for _, s := range sessions {
			s.forget(p)
		}
		p.exe.Close() // calls on their way end normally
		if !slices.ContainsFunc(left, func(q *program) bool { return q.art == p.art }) {
			m.closeFurther(p.art)
		}
		m.stats.released.Add(1)
		m.notify(fmt.Sprintf("released the program for %s, which was not used for longest: further programs kept are %d at most", words(p.sizes), cmp.Or(m.opts.MaxPrograms, DefaultMaxPrograms)))
	}
}

// closeFurther releases the constants of another artifact of the model, none of whose programs is left, and unmaps it when the plugin has let go of what
// it uses in place. loading is held.
func (m *Model) closeFurther(art *artifact.Artifact) {
	for k, b := range m.fixed {
		if k.art == art {
			b.Close()
			delete(m.fixed, k)
		}
	}
	used := m.artifacts[art]
	go func() {
		used.Wait()
		m.loading.Lock()
		defer m.loading.Unlock()
		if m.artifacts[art] != nil { // otherwise Close was faster
			delete(m.artifacts, art)
			// Nothing reads it any more, and an error of unmapping has nobody to go to.
			_ = art.Close()
		}
	}()
}
