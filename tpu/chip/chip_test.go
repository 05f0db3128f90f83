package chip

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	cases := []struct {
		in, canonical, topology string
		chips, cores, devices   int
	}{
		{"cpu", "cpu", "", 0, 0, 1},
		{" CPU ", "cpu", "", 0, 0, 1},
		{"cpu:1", "cpu", "", 0, 0, 1},
		{"cpu:8", "cpu:8", "", 0, 0, 8},
		{"v6e:2x4", "v6e:2x4", "v6e:2x4", 8, 8, 8},
		{"v6e-8", "v6e:2x4", "v6e:2x4", 8, 8, 8},
		{"V6E-1", "v6e:1x1", "v6e:1x1", 1, 1, 1},
		{"v6e-256", "v6e:16x16", "v6e:16x16", 256, 256, 256},
		{"v6e-2x4", "v6e:2x4", "v6e:2x4", 8, 8, 8},
		{"v6e:2x4x1", "v6e:2x4", "v6e:2x4", 8, 8, 8},
		{"tpu-v6e-4", "v6e:2x2", "v6e:2x2", 4, 4, 4},
		{"tpuv6e:2x2", "v6e:2x2", "v6e:2x2", 4, 4, 4},
		{"trillium-4", "v6e:2x2", "v6e:2x2", 4, 4, 4},
		{"v5litepod-16", "v5e:4x4", "v5e:4x4", 16, 16, 16},
		{"v5e-256", "v5e:16x16", "v5e:16x16", 256, 256, 256},
		{"v5e-8", "v5e:2x4", "v5e:2x4", 8, 8, 8},
		{"tpu-v5-lite-podslice:2x4", "v5e:2x4", "v5e:2x4", 8, 8, 8},
		{"v5p-8", "v5p:2x2x1", "v5p:2x2x1", 4, 8, 4},
		{"v5p-64", "v5p:2x4x4", "v5p:2x4x4", 32, 64, 32},
		{"v5p:2x2", "v5p:2x2x1", "v5p:2x2x1", 4, 8, 4},
		{"v5p-12288", "v5p:16x16x24", "v5p:16x16x24", 6144, 12288, 6144},
		{"v5p:4x4x16", "v5p:4x4x16", "v5p:4x4x16", 256, 512, 256},
		{"v4-8", "v4:2x2x1", "v4:2x2x1", 4, 8, 4},
		{"v4:2x2x1", "v4:2x2x1", "v4:2x2x1", 4, 8, 4},
		{"v4-512", "v4:4x8x8", "v4:4x8x8", 256, 512, 256},
		{"tpu7x-8", "tpu7x:2x2x1", "TPU7x:2x2x1", 4, 8, 8},
		{"tpu7x-2", "tpu7x:1x1x1", "TPU7x:1x1x1", 1, 2, 2},
		{"TPU7x:2x2x1", "tpu7x:2x2x1", "TPU7x:2x2x1", 4, 8, 8},
		{"v7x:2x2x1", "tpu7x:2x2x1", "TPU7x:2x2x1", 4, 8, 8},
		{"v7x-128", "tpu7x:4x4x4", "TPU7x:4x4x4", 64, 128, 128},
		{"ironwood-8", "tpu7x:2x2x1", "TPU7x:2x2x1", 4, 8, 8},
	}
	for _, c := range cases {
		t.Run(c.in, func(t *testing.T) {
			got, err := Parse(c.in)
			require.NoError(t, err)
			require.Equal(t, c.canonical, got.String())
			require.Equal(t, c.topology, got.Topology())
			require.Equal(t, [3]int{c.chips, c.cores, c.devices}, [3]int{got.Chips(), got.Cores(), got.Devices()})
			require.Equal(t, c.topology != "", got.IsTPU())
			again, err := Parse(got.String())
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func TestParseErrors(t *testing.T) {
	cases := []struct{ in, want string }{
		{"", `target "" is not known, want one like cpu, v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x2, tpu7x:2x2x1 (tpuc list targets shows all)`},
		{"h100", `target "h100" is not known, want one like cpu, v4:2x2x1`},
		{"TPU", `target "TPU": names no chip, want one like v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x2, tpu7x:2x2x1 (tpuc list targets shows all)`},
		{"gpu", `target "gpu" is not known, want one like cpu (`},
		{"v66e-8", `target "v66e-8" is not known, want one like v6e-8,`},
		{"v6-e:2x4", `want one like v6e-1`},
		{"tp7x-8", `target "tp7x-8" is not known, want one like tpu7x-8,`},
		{"v3-8", `target "v3-8" is not known, want one like v4-8 (`},
		{"v6e", `target "v6e": names a chip but no size, want one like v6e-1, v6e-4, v6e-8,`},
		{"v6e:", `"" is neither a count nor a shape`},
		{"v6e:8", `a count is written after a hyphen, a shape after a colon, want one like v6e-1,`},
		{"v6e-9", `target "v6e-9": no v6e slice has 9 chips, want one like v6e-1, v6e-4, v6e-8, v6e-16,`},
		{"v6e-0", `no v6e slice has 0 chips`},
		{"v6e-512", `no v6e slice has 512 chips, want one like v6e-1,`},
		{"v6e:4x2", `target "v6e:4x2": v6e has no slice of shape 4x2, want one like v6e:2x4, `},
		{"v6e:-2x4", `"-2x4" is neither a count nor a shape`},
		{"v6e:2x4x2", `v6e has no slice of shape 2x4x2`},
		{"v6e:2x2x2x2", `"2x2x2x2" is neither`},
		{"v6e:99999999999999999999", `is neither a count nor a shape`},
		{"v5p-7", `no v5p slice has 7 TensorCores, 2 a chip, want one like v5p-2, v5p-8,`},
		{"v5p-9", `no v5p slice has 9 TensorCores`},
		{"v5p:4x2x2", `want one like v5p:2x2x4, `},
		{"v4:16x16x32", `v4 has no slice of shape 16x16x32`},
		{"tpu7x:4x4x3", `want one like tpu7x:2x4x4`},
		{"cpu:0", `target "cpu:0": cpu takes a number of devices from 1 to 1024, want one like cpu, cpu:4 (`},
		{"cpu8", `cpu takes a number of devices`},
		{"cpu:", `cpu takes a number of devices`},
		{"cpu:+4", `cpu takes a number of devices`},
		{strings.Repeat("v", 1000), `too long`},
	}
	for _, c := range cases {
		t.Run(c.in, func(t *testing.T) {
			_, err := Parse(c.in)
			require.ErrorContains(t, err, c.want)
			require.Less(t, len(err.Error()), 400)
			var parse *ParseError
			require.ErrorAs(t, err, &parse)
			require.NotEmpty(t, parse.Near)
			for _, near := range parse.Near {
				_, err := Parse(near)
				require.NoError(t, err, "a near match that is not understood")
			}
		})
	}
}

// The shapes of whole cubes that Google's table for v5p has.
func TestShapeOfCubes(t *testing.T) {
	for n, want := range map[int]string{
		64: "4x4x4", 128: "4x4x8", 192: "4x4x12", 256: "4x8x8", 512: "8x8x8", 1024: "8x8x16", 2048: "8x16x16", 4096: "16x16x16",
		6144: "16x16x24", 576: "4x12x12", 2304: "12x12x16",
	} {
		require.Equal(t, want, shapeText(shapeOf(V5p.Facts(), n)), n)
	}
	for _, n := range []int{-64, 0, 2, 3, 63, 96, 9024} {
		require.Nil(t, shapeOf(V5p.Facts(), n), n)
	}
}

func TestListIsSoundAndInOrder(t *testing.T) {
	list := List()
	require.Equal(t, Target{}, list[0].Target)
	seen := map[string]bool{}
	for _, e := range list {
		name := e.Target.String()
		require.False(t, seen[name], name)
		seen[name] = true
		got, err := Parse(name)
		require.NoError(t, err)
		require.Equal(t, e.Target, got)
		if e.Cloud == "" {
			continue
		}
		got, err = Parse(e.Cloud)
		require.NoError(t, err)
		require.Equal(t, e.Target, got, "%s and %s differ", e.Cloud, name)
		require.LessOrEqual(t, e.Chips, e.Target.Facts().MaxChips)
		require.Equal(t, e.Chips, e.Target.Chips())
	}
	for i := 2; i < len(list); i++ {
		a, b := list[i-1], list[i]
		require.True(t, a.Target.Chip < b.Target.Chip || a.Chips < b.Chips, "%s before %s", a.Target, b.Target)
	}
	for _, want := range []string{"v6e:2x4", "v5e:16x16", "v5p:16x20x28", "v4:16x16x16", "tpu7x:16x24x24"} {
		require.True(t, seen[want], want)
	}
}

func TestFactsAreConsistent(t *testing.T) {
	require.Len(t, table, len(Chips)+1)
	for _, c := range Chips {
		f := c.Facts()
		t.Run(f.Name, func(t *testing.T) {
			require.Equal(t, strings.ToLower(f.Name), f.Name)
			require.Equal(t, f.Name, strings.ToLower(f.LibTPU))
			require.LessOrEqual(t, f.HBMUsable, f.HBMPerDevice())
			require.Greater(t, f.HBMUsable, f.HBMPerDevice()*9/10)
			require.Zero(t, f.CoresPerChip%f.DevicesPerChip)
			require.NotNil(t, shapeOf(f, f.MaxChips), "the largest slice has no shape")
			// The rate at which the matrix units reach the peak, one product a cycle: a slip of a factor of ten shows. It is
			// 1 to 2 GHz up to v5p; v6e and TPU7x come to 3.5 and 4.4 GHz by the same sources.
			perCycle := float64(2 * f.MXUSize * f.MXUSize * f.MXUs * f.CoresPerChip)
			hertz := float64(f.PeakBF16) / perCycle
			require.Greater(t, hertz, 0.5e9)
			require.Less(t, hertz, 5e9)
		})
	}
	require.Equal(t, "cpu", Chip(200).Facts().Name)
	require.False(t, Target{Chip: 200}.IsTPU())
	require.Equal(t, int64(0), CPU.Facts().HBMPerDevice())
}

func TestTargetIsTextInManifests(t *testing.T) {
	in := map[string]Target{}
	for _, s := range []string{"cpu", "cpu:4", "v6e:2x4", "tpu7x:2x2x1"} {
		got, err := Parse(s)
		require.NoError(t, err)
		in[s] = got
	}
	data, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"cpu":"cpu","cpu:4":"cpu:4","v6e:2x4":"v6e:2x4","tpu7x:2x2x1":"tpu7x:2x2x1"}`, string(data))
	var out map[string]Target
	require.NoError(t, json.Unmarshal(data, &out))
	require.Empty(t, cmp.Diff(in, out, cmp.Comparer(func(a, b Target) bool { return a == b })))
	require.Error(t, json.Unmarshal([]byte(`{"a":"v6e:3x3"}`), &out))
}

func TestShapeIsACopy(t *testing.T) {
	got, err := Parse("v6e:2x4")
	require.NoError(t, err)
	got.Shape()[0] = 100
	require.Equal(t, []int{2, 4}, got.Shape())
	require.Equal(t, []int{1, 1}, shapes2D[0])
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"cpu:4", "v6e:2x4", "v6e-8", "tpu7x-2x2x1", "v5litepod-16", "v4:16x16x16", "v5p-00008", "tpu-v5-lite-podslice-8",
		"", "cpu", "cpu:1", "cpu:0", "cpu-4", "v6e", "v6e:", "v6e:8", "v6e-7", "v6e:x", "v6e:3x3", "v6e:2x4x1", "v4:2x2", "v5p-7", "v5p:1x1x1x1", "v9", "tpu", "v4:99999x1x1",
		"a name that is much longer than any name of a target is, and so is refused before it is looked at, whatever it may say"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse(s)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.Positive(t, got.Devices())
		again, err := Parse(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
		if c := got.Cloud(); c != "" {
			same, err := Parse(c)
			require.NoError(t, err)
			require.Equal(t, got.Chips(), same.Chips())
		}
	})
}
