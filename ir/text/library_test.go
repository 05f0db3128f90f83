package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/ir/text"
)

func TestParseLibrary(t *testing.T) {
	funcs, err := text.ParseLibrary("ops.tpu", `
func @"mylib::twice.default"(%x: f32[4]) {
  %0 = add %x, %x : f32[4]
  return %0
}
func @"mylib::twice.default"(%x: f32[8]) {
  %0 = add %x, %x : f32[8]
  return %0, %x = %0
}
func @sum(%a: f32[2]) {
  return %a
}
func @difference(%a: f32[2]) {
  %0 = neg %a : f32[2]
  return %0
}
func @"mylib::choose.default"(%p: bool[], %x: f32[2]) {
  %0 = cond %p, %x {then=@sum, else=@difference} : f32[2]
  return %0
}
`)
	require.NoError(t, err)
	require.Len(t, funcs, 3)
	require.Equal(t, "mylib::twice.default", funcs[1].Name)
	require.Equal(t, 6, funcs[1].Loc.Line)
	require.Len(t, funcs[1].Updates, 1)
	require.Len(t, funcs[2].Body[0].Funcs(), 2)
}

func TestParseLibraryErrors(t *testing.T) {
	const fine = "func @\"a::b\"(%x: f32[]) {\n  return %x\n}\n"
	for name, c := range map[string]struct{ src, want string }{
		"weight":   {"weight @w = \"w\" : f32[]\n" + fine, "text/library"},
		"none":     {"func @main(%x: f32[]) {\n  return %x\n}\n", "text/library"},
		"empty":    {"", "text/end"},
		"unused":   {"func @helper(%x: f32[]) {\n  return %x\n}\n" + fine, "text/unused"},
		"twice":    {"func @h(%x: f32[]) {\n  return %x\n}\nfunc @h(%x: f32[]) {\n  return %x\n}\n" + fine, "text/name"},
		"operator": {fine + "func @\"a::c\"(%p: bool[], %x: f32[]) {\n  %0 = cond %p, %x {then=@\"a::b\", else=@\"a::b\"} : f32[]\n  return %0\n}\n", "a::b"},
		"shape":    {"func @\"a::b\"(%x: f32[2]) {\n  %0 = neg %x : f32[3]\n  return %0\n}\n", "text/type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := text.ParseLibrary("ops.tpu", c.src)
			require.ErrorContains(t, err, c.want)
		})
	}
}
