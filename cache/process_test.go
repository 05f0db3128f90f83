//go:build linux

package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Variables by which tests make this program play another process.
const (
	envChild = "CACHE_TEST_CHILD" // name of an entry of children
	envDir   = "CACHE_TEST_DIR"
	envSeed  = "CACHE_TEST_SEED"
)

// envKills says how many writers TestKill kills; by default 50.
const envKills = "TPUC_CACHE_KILLS"

// children are what other processes do with the store of envDir. What they print is for their test; an error ends them with status 1.
var children = map[string]func(s *Store) error{
	"build":  buildSlowly,
	"hold":   hold,
	"write":  writeForEver,
	"full":   fullDisk,
	"beside": beside,
}

func TestMain(m *testing.M) {
	child := os.Getenv(envChild)
	if child == "" {
		os.Exit(m.Run())
	}
	s, err := Open(os.Getenv(envDir), Options{Notify: func(line string) { fmt.Println("note:", line) }})
	if err == nil {
		err = children[child](s)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is the command that plays another process. /proc/self/exe can be run by users that cannot see the program's folder.
func child(name, dir string, seed int) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), envChild+"="+name, envDir+"="+dir, envSeed+"="+strconv.Itoa(seed))
	return c
}

// W1: 32 processes want one key while readers look. One builds, and every read is a whole entry.

var wanted, wantedSections = key("wanted"), []Section{{"a", random(1, 300_000)}, {"b", random(2, 70_000)}}

func buildSlowly(s *Store) error {
	e, o, err := s.Do(context.Background(), wanted, func(context.Context) ([]Section, error) {
		fmt.Println("built")
		time.Sleep(300 * time.Millisecond)
		return wantedSections, nil
	})
	if err != nil {
		return err
	}
	for _, want := range wantedSections {
		if got, err := e.Section(want.Name); err != nil || !bytes.Equal(got, want.Data) {
			return fmt.Errorf("section %s differs: %v", want.Name, err)
		}
	}
	fmt.Printf("hit %v\n", o.Hit)
	return e.Close()
}

func TestOneBuilds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store") // also made by one of them
	s, notes := openStore(t, dir, Options{})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for hits := 0; ; {
				e, err := s.Get(t.Context(), wanted)
				if err == nil {
					if !reflect.DeepEqual(e.Sections(), wantedSections) {
						t.Error("a read gave other sections than were put")
					}
					e.Close()
					hits++
				} else if !errors.Is(err, ErrMiss) {
					t.Error(err)
				}
				select {
				case <-done:
					if hits == 0 {
						t.Error("no hit, wanted some")
					}
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	var outs [32]bytes.Buffer
	var procs [32]*exec.Cmd
	for i := range procs {
		procs[i] = child("build", dir, i)
		procs[i].Stdout = &outs[i]
		require.NoError(t, procs[i].Start())
	}
	var all strings.Builder
	for i, p := range procs {
		require.NoError(t, p.Wait(), "%s", outs[i].String())
		all.WriteString(outs[i].String())
	}
	close(done)
	readers.Wait()
	require.Equal(t, 1, strings.Count(all.String(), "built\n"), "builds")
	require.Equal(t, 1, strings.Count(all.String(), "hit false\n"))
	require.Equal(t, 31, strings.Count(all.String(), "hit true\n"))
	require.NotContains(t, all.String(), "warning")
	require.Empty(t, notes.text())
}

// S5 and W4: a process is killed while it builds and another waits. The other says whom it waits for, and builds.

func hold(s *Store) error {
	_, _, err := s.Do(context.Background(), wanted, func(context.Context) ([]Section, error) {
		fmt.Println("building")
		time.Sleep(time.Hour)
		return nil, nil
	})
	return err
}

// holder starts a process that holds the lock of the wanted entry.
func startHolder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	c := child("hold", dir, 0)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	line := make([]byte, len("building\n"))
	_, err = io.ReadFull(out, line)
	require.NoError(t, err)
	require.Equal(t, "building\n", string(line))
	return c
}

func TestHolderKilled(t *testing.T) {
	dir := t.TempDir()
	c := startHolder(t, dir)
	s, err := Open(dir, Options{Notify: func(line string) {
		want := fmt.Sprintf("waiting for process %d (since ", c.Process.Pid)
		if !strings.HasPrefix(line, want) || !strings.HasSuffix(line, "), which compiles program "+wanted.ID()[:12]) {
			t.Errorf("told %q, wanted %q", line, want)
		}
		c.Process.Kill()
	}})
	require.NoError(t, err)

	// Waiting can be given up.
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, o, err := s.Do(short, wanted, unbuildable(t))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, Outcome{Waited: true}, o)

	// It has an end of its own, which names the holder.
	_, o, err = s.DoWithin(t.Context(), wanted, 50*time.Millisecond, unbuildable(t))
	var held *HeldError
	require.ErrorAs(t, err, &held)
	require.Regexp(t, fmt.Sprintf(`^process %d \(since .*\) still compiles program %s, after a wait of 50ms$`, c.Process.Pid, wanted.ID()[:12]), err.Error())
	require.Equal(t, Outcome{Waited: true}, o)

	// Other keys do not wait.
	e, o, err := s.Do(t.Context(), key("other"), builder(wantedSections))
	require.NoError(t, err)
	require.Equal(t, Outcome{}, o)
	require.NoError(t, e.Close())

	e, o, err = s.Do(t.Context(), wanted, builder(wantedSections))
	require.NoError(t, err)
	require.Equal(t, Outcome{Waited: true}, o)
	equalEntry(t, wanted, wantedSections, e)
	require.Contains(t, c.ProcessState.String()+fmt.Sprint(c.Wait()), "killed")
	_, o, err = s.Do(t.Context(), wanted, unbuildable(t))
	require.NoError(t, err)
	require.True(t, o.Hit)
}

// A build that is interrupted leaves nothing, whether it ends or is killed.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	s, notes := openStore(t, dir, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := s.Do(ctx, wanted, func(ctx context.Context) ([]Section, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	c := startHolder(t, dir)
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	built := false
	_, o, err := s.Do(t.Context(), wanted, func(context.Context) ([]Section, error) { built = true; return wantedSections, nil })
	require.NoError(t, err)
	require.Equal(t, Outcome{}, o)
	require.True(t, built)
	require.Empty(t, notes.text())
}

// W2: writers are killed at random points. No reader ever sees a part, and nothing needs cleaning by hand.

const killKeys = 24

func killKey(i int) Key { return key("killed", strconv.Itoa(i)) }

// killSections are contents of a key, which are other ones each time, and can be checked.
func killSections(i int, change uint64) []Section {
	v := binary.LittleEndian.AppendUint64(nil, change)
	return []Section{{"change", v}, {"code", random(change, 1000+i*i*1000)}, {"more", random(change+1, i*1000)}}
}

func checkKilled(i int, e *Entry) error {
	v, err := e.Section("change")
	if err != nil || len(v) != 8 {
		return fmt.Errorf("change has %d bytes: %v", len(v), err)
	}
	for j, want := range killSections(i, binary.LittleEndian.Uint64(v)) {
		if got := e.Sections()[j]; got.Name != want.Name || !bytes.Equal(got.Data, want.Data) {
			return fmt.Errorf("section %s of entry %d differs", got.Name, i)
		}
	}
	return nil
}

func writeForEver(s *Store) error {
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for {
		i := r.IntN(killKeys)
		build := func() []Section { return killSections(i, r.Uint64()%50_000) }
		if r.IntN(4) > 0 {
			err = s.Put(context.Background(), killKey(i), build())
		} else {
			var e *Entry
			e, _, err = s.Do(context.Background(), killKey(i), func(context.Context) ([]Section, error) { return build(), nil })
			if err == nil {
				err = checkKilled(i, e)
				e.Close()
			}
		}
		if err != nil {
			return err
		}
		if r.IntN(8) == 0 {
			if _, err := s.Prune(context.Background(), Limits{MaxSize: 1 << 20}); err != nil {
				return err
			}
		}
	}
}

func TestKill(t *testing.T) {
	kills := 50
	if n := os.Getenv(envKills); n != "" {
		var err error
		kills, err = strconv.Atoi(n)
		require.NoError(t, err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	s, notes := openStore(t, dir, Options{})
	type writer struct {
		*exec.Cmd
		out bytes.Buffer
	}
	var writers [32]*writer
	seed := 0
	start := func(i int) {
		w := &writer{Cmd: child("write", dir, seed)}
		w.Stdout, w.Stderr = &w.out, &w.out
		require.NoError(t, w.Start())
		t.Cleanup(func() { w.Process.Kill(); w.Wait() })
		writers[i] = w
		seed++
	}
	kill := func(i int) {
		w := writers[i]
		require.NoError(t, w.Process.Kill())
		w.Wait()
		status := w.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, status.Signaled() && status.Signal() == syscall.SIGKILL, "a writer ended by itself: %v: %s", w.ProcessState, w.out.String())
		require.NotContains(t, w.out.String(), "warning")
	}
	for i := range writers {
		start(i)
	}
	done := make(chan struct{})
	stop := sync.OnceFunc(func() { close(done) })
	var readers sync.WaitGroup
	var hits, misses int
	defer readers.Wait()
	defer stop()
	readers.Go(func() {
		r := rand.New(rand.NewPCG(7, 7))
		for {
			i := r.IntN(killKeys)
			switch e, err := s.Get(t.Context(), killKey(i)); {
			case err == nil:
				hits++
				if err := checkKilled(i, e); err != nil {
					t.Error(err)
				}
				e.Close()
			case errors.Is(err, ErrMiss):
				misses++
			default:
				t.Error(err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	r := rand.New(rand.NewPCG(8, 8))
	for n := range kills {
		time.Sleep(time.Duration(r.Int64N(int64(40 * time.Millisecond))))
		i := n
		if i >= len(writers) {
			i = r.IntN(len(writers))
		}
		kill(i)
		if t.Failed() {
			break
		}
		start(i)
	}
	for i := range writers {
		kill(i)
	}
	stop()
	readers.Wait()
	require.Empty(t, notes.text(), "no reader saw damage")
	require.Positive(t, hits)

	v, err := s.Verify(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
	require.Zero(t, v.Quarantined)
	t.Logf("%d writers killed: %d reads of whole entries, %d misses, %d files left behind by the last of them", kills+len(writers), hits, misses, v.Leftovers)
	for i := range killKeys { // nobody waits for the dead
		e, o, err := s.Do(t.Context(), killKey(i), builder(killSections(i, 1)))
		require.NoError(t, err)
		require.False(t, o.Waited)
		require.NoError(t, checkKilled(i, e))
		require.NoError(t, e.Close())
	}
	_, err = s.Prune(t.Context(), Limits{})
	require.NoError(t, err)
	for _, d := range []string{tmpDir, lockDir} {
		left, err := os.ReadDir(s.at(d))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// A disk that is full, played by a limit on the size of files.

func fullDisk(s *Store) error {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 50_000, Max: 50_000}); err != nil {
		return err
	}
	return build(s, "file too large")
}

// build wants the wanted entry although it cannot be kept, for the reason.
func build(s *Store, reason string) error {
	e, o, err := s.Do(context.Background(), wanted, func(context.Context) ([]Section, error) { return wantedSections, nil })
	if err != nil {
		return err
	}
	var unkept *PutError
	if o.Hit || !errors.As(o.Kept, &unkept) || !strings.Contains(unkept.Error(), reason) {
		return fmt.Errorf("%+v, wanted a PutError for %s", o, reason)
	}
	if got := e.Sections(); len(got) != 2 || !bytes.Equal(got[0].Data, wantedSections[0].Data) {
		return errors.New("the entry is not what was built")
	}
	return nil
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s, _ := openStore(t, dir, Options{})
	require.NoError(t, s.Put(t.Context(), key("before"), sections("code")))
	out, err := child("full", dir, 0).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `^note: warning: cache \S+ cannot keep an entry: write \S+: file too large\n$`, string(out))
	left, err := os.ReadDir(s.at(tmpDir))
	require.NoError(t, err)
	require.Empty(t, left)
	list, err := s.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	e, _, err := s.Do(t.Context(), wanted, builder(wantedSections))
	require.NoError(t, err)
	equalEntry(t, wanted, wantedSections, e)
	require.FileExists(t, s.Path(wanted))
}

// Users who may only read, or not even that.

// beside reads what another user put, and builds what is not there.
func beside(s *Store) error {
	e, o, err := s.Do(context.Background(), key("before"), func(context.Context) ([]Section, error) { return nil, errors.New("built again") })
	if err != nil {
		return err
	}
	if !o.Hit || e.Size() != 4 {
		return fmt.Errorf("%+v of %d bytes, wanted a hit of 4", o, e.Size())
	}
	return build(s, "permission denied")
}

// asOther lets a process be another user's where this one may do everything, and lets it see dir.
func asOther(t *testing.T, c *exec.Cmd, dir string) {
	if os.Getuid() != 0 {
		return
	}
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// modes gives all folders below dir, and dir, a mode, for the time of the test.
func modes(t *testing.T, dir string, mode os.FileMode) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		t.Cleanup(func() { os.Chmod(path, 0o755) })
		return os.Chmod(path, mode)
	}))
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	s, _ := openStore(t, dir, Options{})
	require.NoError(t, s.Put(t.Context(), key("before"), sections("code")))
	require.NoError(t, s.Put(t.Context(), wanted, wantedSections))
	require.NoError(t, os.Truncate(s.Path(wanted), 1000)) // damage that cannot be moved away
	require.NoError(t, os.MkdirAll(s.at(lockDir), 0o755))
	modes(t, dir, 0o555)
	c := child("beside", dir, 0)
	asOther(t, c, dir)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 2, "%s", out)
	require.Regexp(t, `^note: warning: cache entry \S+ is damaged: it has 1000 bytes, wanted the \d+ of its header$`, lines[0])
	require.Regexp(t, `^note: warning: cache \S+ cannot keep an entry: .*permission denied$`, lines[1])
	require.FileExists(t, s.Path(wanted))
}

// The lock's file is another user's: it is waited for where it can be read, and otherwise there is a warning. No user is kept out.
func TestLockOfAnother(t *testing.T) {
	for _, mode := range []os.FileMode{0o444, 0o000} {
		t.Run(mode.String(), func(t *testing.T) {
			dir := t.TempDir()
			s, _ := openStore(t, dir, Options{})
			require.NoError(t, s.Put(t.Context(), key("before"), sections("code")))
			require.NoError(t, os.MkdirAll(s.at(lockDir), 0o755))
			lock := s.at(lockDir, wanted.ID())
			require.NoError(t, os.WriteFile(lock, []byte("{}"), 0o644))
			require.NoError(t, os.Chmod(lock, mode))
			held, err := os.Open(lock)
			if os.Getuid() != 0 && mode == 0 { // its own user cannot open it either
				require.ErrorIs(t, err, os.ErrPermission)
			} else {
				require.NoError(t, err)
				require.NoError(t, flock(held, true))
				time.AfterFunc(500*time.Millisecond, func() { held.Close() })
			}
			modes(t, dir, 0o555)
			c := child("beside", dir, 0)
			asOther(t, c, dir)
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s", out)
			if mode == 0 {
				require.Regexp(t, `^note: warning: cache lock \S+ cannot be used, several processes may compile the same: open \S+: permission denied\n`, string(out))
			} else {
				require.Regexp(t, `^note: waiting for another process, which compiles program `+wanted.ID()[:12]+`\n`, string(out))
			}
			require.Contains(t, string(out), "cannot keep an entry")
			require.FileExists(t, lock)
		})
	}
}
