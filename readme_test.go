package tpuc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readmeCommands are the commands of the README's code blocks that a comment marks, such as <!-- command: run -->.
func readmeCommands(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)<!-- ([a-z-]+) -->\n+```[a-z]*\n(.*?)```")
	out := make(map[string]string)
	for _, m := range block.FindAllStringSubmatch(string(data), -1) {
		out[m[1]] = m[2]
	}
	return out
}

// TestReadme runs the README's commands to the letter as a newcomer does: a fresh copy of the project, an empty home, no caches.
func TestReadme(t *testing.T) {
	if !required("cpu") || !required("tpu") {
		t.Skip("left out: downloads everything anew; TPUC_REQUIRE=cpu,tpu runs it")
	}
	commands := readmeCommands(t)
	dir := copyProject(t)
	home := t.TempDir()
	t.Cleanup(func() { // the module cache is read-only
		_ = filepath.WalkDir(home, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(p, 0o755)
			}
			return nil
		})
	})
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	for _, kv := range os.Environ() { // how this machine reaches its registries is not the project's to know
		for _, prefix := range []string{"PIP_", "SSL_CERT_", "GOPROXY=", "GOSUMDB=", "GONOSUMDB=", "GOFLAGS=", "HTTP_PROXY=", "HTTPS_PROXY=", "NO_PROXY=", "http_proxy=", "https_proxy=", "no_proxy="} {
			if strings.HasPrefix(kv, prefix) {
				env = append(env, kv)
			}
		}
	}
	for _, name := range []string{"main-command", "tpu-command"} {
		command, ok := commands[name]
		require.True(t, ok, "README.md marks no block as %s", name)
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		t.Logf("%s\n%s", command, out)
	}
}

// TestReadmeTestCommand checks that continuous integration takes its test command from the README and that there is one.
func TestReadmeTestCommand(t *testing.T) {
	command := readmeCommands(t)["test-command"]
	require.Regexp(t, `^go test [^\n]*\./\.\.\.\n$`, command)
	ci, err := os.ReadFile(".ci/run")
	require.NoError(t, err)
	require.Contains(t, string(ci), "<!-- test-command -->")
}

// copyProject copies the files that git knows, or would, into a new folder.
func copyProject(t *testing.T) string {
	t.Helper()
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, f := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(f)
		if os.IsNotExist(err) { // deleted but not yet committed
			continue
		}
		require.NoError(t, err)
		to := filepath.Join(dir, f)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, data, 0o644))
	}
	return dir
}
