package reduce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Command is a command line that tells whether a module fails.
type Command struct {
	Line    string         // for sh -c; {} is the module's file, which is appended where there is none
	Exit    int            // status that counts as failing; 0: every one but 0
	Match   *regexp.Regexp // must match what the command prints too; nil: anything
	Timeout time.Duration  // of one run, which then counts as not failing; 0: none
}

// wait is how long a command that is ended may hold its output open.
const wait = 2 * time.Second

// CandidateName is the name of the file that the command gets, in a folder of its own.
const CandidateName = "candidate.tpu"

// Fails writes the text to a file in dir and runs the command. An error means that the command cannot be run.
func (c Command) Fails(parent context.Context, dir, text string) (bool, error) {
	file := filepath.Join(dir, CandidateName)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(parent)
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(parent, c.Timeout)
	}
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", c.line(file))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, wait
	group(cmd)
	err := cmd.Run()
	switch {
	case parent.Err() != nil:
		return false, parent.Err()
	case ctx.Err() != nil: // its time is over
		return false, nil
	}
	status := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode() // -1 by a signal
	case err != nil:
		return false, fmt.Errorf("the command cannot be run: %w", err)
	}
	if (status == 126 || status == 127) && c.Exit != status { // the shell's own: not executable, not found
		return false, fmt.Errorf("the command cannot be run: %s", strings.TrimSpace(out.String()))
	}
	failed := status != 0
	if c.Exit != 0 {
		failed = status == c.Exit
	}
	return failed && (c.Match == nil || c.Match.Match(out.Bytes())), nil
}

// line is the shell's command for a file.
func (c Command) line(file string) string {
	quoted := "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	if !strings.Contains(c.Line, "{}") {
		return c.Line + " " + quoted
	}
	return strings.ReplaceAll(c.Line, "{}", quoted)
}
