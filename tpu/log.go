package tpu

import (
	"fmt"
	"strings"
	"sync"
)

// Sizes of what is kept of the plugin's output: its first words say what it is, its last why it ended.
const (
	logHead = 16 << 10
	logTail = 64 << 10
)

// log keeps the start and the end of what is written to it, and counts the rest.
type log struct {
	mu   sync.Mutex
	head []byte
	tail []byte // up to twice logTail, so that it is cut rarely
	lost int64
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	take := min(logHead-len(l.head), len(p))
	l.head = append(l.head, p[:take]...)
	p = p[take:]
	if over := len(p) - logTail; over > 0 {
		l.lost += int64(len(l.tail) + over)
		l.tail, p = l.tail[:0], p[over:]
	}
	l.tail = append(l.tail, p...)
	if over := len(l.tail) - logTail; over >= logTail {
		l.lost += int64(over)
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	return n, nil
}

// String is the output as valid UTF-8, with a line where bytes were left out.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	tail, lost := l.tail, l.lost
	if over := len(tail) - logTail; over > 0 {
		tail, lost = tail[over:], lost+int64(over)
	}
	s := string(l.head)
	if lost > 0 {
		s += fmt.Sprintf("\n... %d bytes left out ...\n", lost)
	}
	return strings.ToValidUTF8(s+string(tail), "?")
}
