package tpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	helloTime = 30 * time.Second // a program that has not answered by then is no compile child
	endTime   = 2 * time.Second  // for pipes to drain after the child has ended
)

// Causes with which a child is killed; the caller's own cancellation is any other.
var (
	errTimeout = errors.New("time limit")
	errNoHello = errors.New("no answer")
)

// run is a child that has ended.
type run struct {
	log        *log
	state      *os.ProcessState
	startErr   error // the child could not be started
	hello      bool
	phase      Phase
	reply      *reply // nil when the child ended without an answer
	executable []byte
	badStream  error // the child's answer was no valid stream
	killed     error // why it was killed; nil when it ended by itself
	wall       time.Duration
}

// runChild starts the child, feeds it, collects its answer and waits for its end. The error is of the request
// only; what went wrong with the child is in run.
func runChild(ctx context.Context, req Request, env []string) (*run, error) {
	var head bytes.Buffer
	o := order{PluginPath: req.PluginPath, Target: req.Target, NumPartitions: req.Options.NumPartitions}
	if err := writeJSON(&head, tagOrder, o); err != nil {
		return nil, err
	}
	head.Write(messageHead(tagProgram, len(req.Program)))

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if req.Timeout > 0 {
		t := time.AfterFunc(req.Timeout, func() { cancel(errTimeout) })
		defer t.Stop()
	}
	out := &run{log: &log{}, phase: PhaseStart}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, req.Exe)
	cmd.Env = env
	cmd.Dir = os.TempDir()
	cmd.Stdin = io.MultiReader(&head, bytes.NewReader(req.Program))
	cmd.Stdout, cmd.Stderr = out.log, out.log
	cmd.ExtraFiles = []*os.File{w}
	cmd.WaitDelay = endTime
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }

	answer := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel's "kill me when my parent dies" watches the thread that forked, which must live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		start := time.Now()
		if _, err := os.Stat(cmd.Dir); err != nil { // Start would blame the program for it
			out.startErr = fmt.Errorf("the temporary folder: %w; set TMPDIR to one that exists", err)
		} else {
			out.startErr = cmd.Start()
		}
		w.Close()
		if out.startErr == nil {
			go func() { defer close(answer); out.read(r, req.OnPhase, cancel) }()
			awaitExit(cmd.Process)
			_ = cmd.Wait() // how it ended is in ProcessState
		} else {
			close(answer)
		}
		out.wall = time.Since(start)
		out.state = cmd.ProcessState
	}()
	<-ended
	_ = r.SetReadDeadline(time.Now().Add(endTime))
	<-answer
	if ctx.Err() != nil {
		out.killed = context.Cause(ctx)
	}
	return out, nil
}

// read collects the child's messages until the stream ends.
func (o *run) read(r io.Reader, onPhase func(Phase), cancel context.CancelCauseFunc) {
	var hello atomic.Bool
	t := time.AfterFunc(helloTime, func() {
		if !hello.Load() {
			cancel(errNoHello)
		}
	})
	defer t.Stop()
	limits := map[byte]int64{tagHello: maxPhase, tagPhase: maxPhase, tagReply: maxJSON, tagExecutable: maxExecutable}
	for {
		tag, data, err := readMessage(r, limits)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				o.badStream = err
			}
			return
		}
		switch tag {
		case tagHello:
			o.hello = string(data) == childVersion
			hello.Store(o.hello)
		case tagPhase:
			o.phase = Phase(data)
			if onPhase != nil {
				onPhase(o.phase)
			}
		case tagReply:
			var rep reply
			if err := json.Unmarshal(data, &rep); err != nil {
				o.badStream = fmt.Errorf("reply: %w", err)
				return
			}
			o.reply = &rep
		case tagExecutable:
			o.executable = data
		}
	}
}

// failure turns the child's end into an error; nil when there is an executable.
func (o *run) failure(req Request) *CompileError {
	e := &CompileError{Phase: o.phase, Log: o.log.String()}
	switch {
	case o.startErr != nil && o.killed == nil:
		e.Kind, e.Message = NoChild, o.startErr.Error()
	case o.reply != nil && o.reply.Kind != "":
		e.Kind, e.Code, e.Message = o.reply.Kind, o.reply.Code, o.reply.Message
	case o.reply != nil && len(o.executable) > 0:
		return nil
	case errors.Is(o.killed, errTimeout):
		e.Kind, e.Message = TimedOut, fmt.Sprintf("no executable within the time limit of %v; raise it or make the model smaller", req.Timeout)
	case errors.Is(o.killed, errNoHello), !o.hello && o.killed == nil:
		e.Kind, e.Message = NoChild, fmt.Sprintf("%s does not answer (%s): it must call tpu.ChildMain first", req.Exe, stateText(o.state))
	case o.killed != nil:
		e.Kind, e.Message, e.cause = Canceled, o.killed.Error(), o.killed
	case o.badStream != nil:
		e.Kind, e.Message = Crashed, fmt.Sprintf("the child's answer is damaged: %v", o.badStream)
	default:
		e.Kind, e.Signal = Crashed, signalName(e.Log)
		if s := stateSignal(o.state); s != "" {
			e.Signal = s
		}
		e.Message = crashMessage(e.Log, "the child ended without an answer ("+stateText(o.state)+")")
	}
	return e
}

// usage is what the child took.
func (o *run) usage() Usage {
	return Usage{Wall: o.wall, CPU: o.state.UserTime() + o.state.SystemTime(), MaxRSS: maxRSS(o.state),
		Load: time.Duration(o.reply.LoadNS), Compile: time.Duration(o.reply.CompNS)}
}

func stateText(s *os.ProcessState) string {
	if s == nil {
		return "not started"
	}
	return s.String()
}
