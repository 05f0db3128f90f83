package pt2

import (
	"strconv"
	"strings"

	"tpuc/ir/diag"
)

// locs makes the locations of nodes. Equal places share one Loc.
type locs struct {
	cache map[diag.Loc]*diag.Loc
}

// of reads the last frame of the user's code from the stack trace, and the innermost module from the module stack.
func (l *locs) of(n *node) *diag.Loc {
	file, line, source := lastFrame(n.Metadata.StackTrace)
	loc := diag.Loc{Layer: layerOf(n.Metadata.NNModuleStack), File: file, Line: line, Source: source}
	if p, ok := l.cache[loc]; ok {
		return p
	}
	if l.cache == nil {
		l.cache = make(map[diag.Loc]*diag.Loc)
	}
	p := &loc
	l.cache[loc] = p
	return p
}

// lastFrame finds the innermost frame outside torch itself in a Python traceback, whose frames are
//
//	File "/path/model.py", line 71, in forward
//	    y = self.down_proj(h)
//
// The path is shortened so that it names the user's file and nothing of the machine. If all frames are torch's, the innermost is taken.
func lastFrame(trace string) (file string, line int, source string) {
	const mark = `File "`
	rest := trace
	for {
		i := strings.LastIndex(rest, mark)
		if i < 0 {
			return file, line, source
		}
		frame := rest[i+len(mark):]
		rest = rest[:i]
		path, after, ok := strings.Cut(frame, `", line `)
		if !ok || i > 0 && trace[i-1] != ' ' && trace[i-1] != '\n' {
			continue
		}
		num := after
		if j := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' }); j >= 0 {
			num = after[:j]
		}
		n, err := strconv.Atoi(num)
		if err != nil {
			continue
		}
		text := ""
		if _, body, ok := strings.Cut(after, "\n"); ok {
			text, _, _ = strings.Cut(body, "\n")
			text = strings.TrimSpace(text)
		}
		short, isTorch := shortPath(path)
		if !isTorch {
			return short, n, text
		}
		if file == "" {
			file, line, source = short, n, text
		}
	}
}

// shortPath is the path below site-packages, otherwise the base name.
func shortPath(path string) (short string, isTorch bool) {
	path = strings.ReplaceAll(path, `\`, "/")
	for _, dir := range []string{"/site-packages/", "/dist-packages/"} {
		if i := strings.LastIndex(path, dir); i >= 0 {
			short = path[i+len(dir):]
			return short, strings.HasPrefix(short, "torch/")
		}
	}
	return path[strings.LastIndexByte(path, '/')+1:], strings.HasPrefix(path, "<") // such as <eval_with_key>
}

// layerOf is the path of the innermost entry of "key,path,class;key,path,class".
func layerOf(stack string) string {
	last := stack[strings.LastIndexByte(stack, ';')+1:]
	i := strings.IndexByte(last, ',')
	j := strings.LastIndexByte(last, ',')
	if i < 0 || j <= i {
		return ""
	}
	// A key may hold commas itself; a path never does.
	if k := strings.LastIndexByte(last[:j], ','); k > i {
		i = k
	}
	return last[i+1 : j]
}
