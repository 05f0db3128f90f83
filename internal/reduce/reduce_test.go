package reduce_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tpuc/internal/reduce"
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/text"
)

// fakeEnv makes this binary a command that has a fault with the text of its variable: it prints it and exits with status 7.
const fakeEnv = "TPUC_REDUCE_FAKE"

func TestMain(m *testing.M) {
	if fault := os.Getenv(fakeEnv); fault != "" {
		data, err := os.ReadFile(os.Args[1])
		switch {
		case err != nil:
			os.Exit(1)
		case fault == "hang":
			time.Sleep(time.Minute)
		case strings.Contains(string(data), fault):
			fmt.Println("found", fault)
			os.Exit(7)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// source is a module with weights, state, locations, a node of several results, and long chains before and after an exp of a tanh.
func source(chain int) string {
	var b strings.Builder
	b.WriteString("weight @w = \"w\" : f32[8,8]\nweight @unused = \"u\" : f32[3]\nstate buffer @s = \"s\" : f32[4,8]\n")
	b.WriteString("func @main(%x: f32[4,8], %y: f32[4,8], %z: i64[2]) {\n  %0 = add %x, @s : f32[4,8] #1\n")
	n := 0
	node := func(format string, args ...any) int {
		n++
		fmt.Fprintf(&b, "  %%%d = %s #1\n", n, fmt.Sprintf(format, args...))
		return n
	}
	last := 0
	for range chain {
		last = node("add %%%d, %%y : f32[4,8]", last)
	}
	last = node("dot %%%d, @w {contract=[[1],[0]]} : f32[4,8]", last)
	before := last
	last = node("tanh %%%d : f32[4,8]", last)
	last = node("exp %%%d : f32[4,8]", last)
	for range chain {
		last = node("mul %%%d, %%%d : f32[4,8]", last, before)
	}
	fmt.Fprintf(&b, "  %%v, %%i = topk %%%d {k=2, axis=1, largest=true} : f32[4,2], i64[4,2]\n", last)
	fmt.Fprintf(&b, "  return %%v, %%i, %%z, @s = %%%d\n}\n#1 = \"layer\" at \"a.py\":3\n", before)
	return b.String()
}

func parse(t *testing.T, src string) *ir.Module {
	t.Helper()
	m, err := text.Parse("test.tpu", src)
	require.NoError(t, err)
	return m
}

// faulty reports an exp of a tanh, and demands that every candidate is a module that parses.
func faulty(t *testing.T) func(context.Context, string) (bool, error) {
	return func(_ context.Context, src string) (bool, error) {
		for _, n := range parse(t, src).Func.Body {
			if op.Exp.Is(n) && n.Args[0].Def != nil && op.Tanh.Is(n.Args[0].Def) {
				return true, nil
			}
		}
		return false, nil
	}
}

// TestPlantedFault finds the two nodes of a fault among many, in few runs.
func TestPlantedFault(t *testing.T) {
	src := source(200)
	m := parse(t, src)
	small, stats, err := reduce.Module(t.Context(), m, faulty(t), reduce.Options{})
	require.NoError(t, err)
	require.NoError(t, ir.Verify(small))
	require.Equal(t, "func @main(%arg0: f32[4,8]) {\n  %0 = tanh %arg0 : f32[4,8]\n  %1 = exp %0 : f32[4,8]\n  return %1\n}\n", text.Print(small))
	require.Equal(t, 405, stats.Before.Nodes)
	require.Equal(t, 2, stats.Now.Nodes)
	require.Less(t, stats.Checks, 40)
	require.Equal(t, text.Print(parse(t, src)), text.Print(m), "the module is not changed")
}

// TestWhatMatters keeps whatever the fault needs: any kind of part.
func TestWhatMatters(t *testing.T) {
	for name, c := range map[string]struct {
		holds func(m *ir.Module) bool
		want  reduce.Size
	}{
		"anything":    {func(*ir.Module) bool { return true }, reduce.Size{}},
		"an update":   {func(m *ir.Module) bool { return len(m.Func.Updates) == 1 }, reduce.Size{Weights: 1, Results: 1, Params: 1}},
		"a weight":    {func(m *ir.Module) bool { return strings.Contains(text.Print(m), "@unused") }, reduce.Size{Weights: 1}},
		"a parameter": {func(m *ir.Module) bool { return len(m.Func.Params) >= 1 && m.Func.Params[0].Name == "x" }, reduce.Size{Params: 1}},
		"two results": {func(m *ir.Module) bool { return len(m.Func.Results) >= 2 }, reduce.Size{Results: 2, Params: 2}},
		"a long body": {func(m *ir.Module) bool { return len(m.Func.Body) >= 3 }, reduce.Size{Nodes: 3, Results: 1, Params: 1}},
		"second result": {func(m *ir.Module) bool {
			return slices.ContainsFunc(m.Func.Results, func(v *ir.Value) bool { return v.Def != nil && v.Index == 1 })
		}, reduce.Size{Nodes: 1, Results: 1, Params: 1}},
		"a location": {func(m *ir.Module) bool { return len(m.Func.Body) > 0 && m.Func.Body[0].Loc != nil }, reduce.Size{Nodes: 1, Results: 1, Params: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			small, stats, err := reduce.Module(t.Context(), parse(t, source(5)), func(_ context.Context, src string) (bool, error) {
				return c.holds(parse(t, src)), nil
			}, reduce.Options{})
			require.NoError(t, err)
			require.True(t, c.holds(parse(t, text.Print(small))))
			got := stats.Now
			got.Bytes = 0
			require.Equal(t, c.want.Nodes, got.Nodes, text.Print(small))
			require.Equal(t, c.want.Weights, got.Weights, text.Print(small))
			require.Equal(t, c.want.Results, got.Results, text.Print(small))
			require.LessOrEqual(t, got.Params, c.want.Params, text.Print(small))
		})
	}
}

// TestEnds keeps what was found when the search ends early.
func TestEnds(t *testing.T) {
	m := parse(t, source(20))
	_, stats, err := reduce.Module(t.Context(), m, func(context.Context, string) (bool, error) { return false, nil }, reduce.Options{})
	require.ErrorIs(t, err, reduce.ErrHolds)
	require.Equal(t, 1, stats.Checks)

	wrong := errors.New("wrong")
	checks := 0
	small, _, err := reduce.Module(t.Context(), m, func(ctx context.Context, src string) (bool, error) {
		if checks++; checks > 4 {
			return false, wrong
		}
		return faulty(t)(ctx, src)
	}, reduce.Options{})
	require.ErrorIs(t, err, wrong)
	require.Less(t, len(small.Func.Body), len(m.Func.Body))

	ctx, cancel := context.WithCancel(t.Context())
	small, _, err = reduce.Module(ctx, m, faulty(t), reduce.Options{Progress: func(reduce.Stats) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, len(small.Func.Body), len(m.Func.Body))
	require.NoError(t, ir.Verify(small))
}

// TestCommand judges by exit status and by what is printed.
func TestCommand(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "it's a folder")
	require.NoError(t, os.Mkdir(dir, 0o777))
	t.Setenv(fakeEnv, "tanh")
	for name, c := range map[string]struct {
		c    reduce.Command
		src  string
		want bool
		err  string
	}{
		"fails":          {reduce.Command{Line: exe}, "tanh", true, ""},
		"does not":       {reduce.Command{Line: exe}, "exp", false, ""},
		"the file where": {reduce.Command{Line: exe + " {} && false"}, "exp", true, ""},
		"its status":     {reduce.Command{Line: exe, Exit: 7}, "tanh", true, ""},
		"another status": {reduce.Command{Line: exe, Exit: 3}, "tanh", false, ""},
		"its words":      {reduce.Command{Line: exe, Match: regexp.MustCompile("^found t")}, "tanh", true, ""},
		"other words":    {reduce.Command{Line: exe, Match: regexp.MustCompile("lost")}, "tanh", false, ""},
		"by a signal":    {reduce.Command{Line: "kill -9 $$; true"}, "", true, ""},
		"no such":        {reduce.Command{Line: "no-such-command"}, "", false, "cannot be run"},
		"said to be":     {reduce.Command{Line: "exit 127; true", Exit: 127}, "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.c.Fails(t.Context(), dir, c.src)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	t.Setenv(fakeEnv, "hang")
	start := time.Now()
	got, err := reduce.Command{Line: exe + " {}; true", Timeout: 100 * time.Millisecond}.Fails(t.Context(), dir, "")
	require.NoError(t, err)
	require.False(t, got)
	require.Less(t, time.Since(start), 10*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = reduce.Command{Line: exe + " {}; true"}.Fails(ctx, dir, "")
	require.Error(t, err, "the caller's own end is an error")
}

// TestFunctions keeps the functions that a loop needs, with the weight that one of them reads.
func TestFunctions(t *testing.T) {
	m := parse(t, `
weight @w = "w" : f32[2]
weight @v = "v" : f32[2]
func @more(%x: f32[2]) {
  %0 = constant {value=bool[] false} : bool[]
  return %0
}
func @next(%x: f32[2]) {
  %0 = add %x, @w : f32[2]
  return %0
}
func @main(%x: f32[2]) {
  %0 = exp %x : f32[2]
  %1 = add %0, @w : f32[2]
  %2 = add %1, @v : f32[2]
  %3 = while %2 {cond=@more, body=@next} : f32[2]
  %4 = exp %3 : f32[2]
  return %4
}
`)
	small, stats, err := reduce.Module(t.Context(), m, func(_ context.Context, src string) (bool, error) {
		return slices.ContainsFunc(parse(t, src).Func.Body, op.While.Is), nil
	}, reduce.Options{})
	require.NoError(t, err)
	require.NoError(t, ir.Verify(small))
	require.Equal(t, 1, stats.Now.Nodes)
	require.Len(t, small.Weights, 1)
	require.Len(t, small.Functions(), 3)
}
