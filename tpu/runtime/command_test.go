package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/tpu/artifact"
)

// script writes a program that stands for tpuc.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tpuc")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755))
	return path
}

// Without a compiler in the process the tpuc program makes what a miss needs.
func TestCommand(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lib := cpuPlugin(t)
	dir := t.TempDir()
	p := rowsPart(t, lib, 3, 0)
	further := filepath.Join(dir, "three.tpuc")
	require.NoError(t, artifact.Write(further, p.Manifest, p.Contents))
	log := filepath.Join(dir, "log")
	path := rows(t, 0, 8)
	model := open(t, path, Options{OnMiss: Compile, Tpuc: script(t, `echo "$@" >`+log+`
while [ "$1" != -o ]; do shift; done
cp `+further+` "$2"`)})
	s := session(t, model)
	runRows(t, s, 8, 0)
	runRows(t, s, 3, 1)
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(said), "compile "+path+" --target cpu --dim batch=3 -o ")
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "tpuc-further-*"))
	require.NoError(t, err)
	require.Empty(t, left, "what was made is removed")

	// What it says goes into the error; what it makes is checked.
	model = open(t, path, Options{OnMiss: Compile, Tpuc: script(t, "echo the plugin crashed >&2; exit 70")})
	_, err = session(t, model).Run(t.Context(), rowsInput(3))
	require.ErrorContains(t, err, "exit status 70\nthe plugin crashed")
	p.Manifest.Model.Name = "another"
	require.NoError(t, artifact.Write(further, p.Manifest, p.Contents))
	model = open(t, path, Options{OnMiss: Compile, Tpuc: script(t, `while [ "$1" != -o ]; do shift; done; cp `+further+` "$2"`)})
	_, err = session(t, model).Run(t.Context(), rowsInput(3))
	require.ErrorContains(t, err, "the further program is of model another for cpu")

	// No program of that name is not this one's path.
	t.Setenv("PATH", t.TempDir())
	model = open(t, path, Options{OnMiss: Compile})
	_, err = session(t, model).Run(t.Context(), rowsInput(3))
	require.ErrorIs(t, err, ErrCompileForbidden)
	require.ErrorContains(t, err, "no tpuc program")
}
