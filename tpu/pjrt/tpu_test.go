package pjrt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/tpu/chip"
	"tpuc/tpu/pjrt"
	"tpuc/tpu/plugin"
)

func TestTopologyCompile(t *testing.T) {
	p := open(t, plugin.TPU)
	topo, err := p.NewTopology("v6e:1x1")
	require.NoError(t, err)
	defer topo.Close()
	require.Equal(t, "tpu", topo.PlatformName())
	require.NotEmpty(t, topo.PlatformVersion())
	require.Len(t, topo.Devices(), 1)
	require.Equal(t, "TPU v6 lite", topo.Devices()[0].Kind)
	_, err = topo.Attributes()
	require.NoError(t, err)

	e, err := topo.Compile([]byte(`module @mm { func.func public @main(%a: tensor<256x512xbf16> {mhlo.layout_mode = "{0,1}"}, %b: tensor<512x128xbf16>) -> tensor<256x128xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x512xbf16>, tensor<512x128xbf16>) -> tensor<256x128xf32>
  return %0 : tensor<256x128xf32> } }`), pjrt.CompileOptions{})
	require.NoError(t, err)
	defer e.Close()
	blob, err := e.Serialize()
	require.NoError(t, err)
	require.NotEmpty(t, blob)
	stats, err := e.MemoryStats()
	require.NoError(t, err)
	require.EqualValues(t, 2*(256*512+512*128), stats.Argument)
	require.EqualValues(t, 4*256*128, stats.Output)
	require.Positive(t, stats.GeneratedCode)
	require.GreaterOrEqual(t, stats.Peak, stats.Argument+stats.Output)
	types, err := e.OutputTypes()
	require.NoError(t, err)
	require.Equal(t, []pjrt.BufferType{pjrt.F32}, types)
	dims, err := e.OutputDims()
	require.NoError(t, err)
	require.Equal(t, [][]int64{{256, 128}}, dims)
	cost, err := e.CostAnalysis()
	require.NoError(t, err)
	flops := map[string]any{}
	for _, v := range cost {
		flops[v.Name] = v.Value
	}
	require.InDelta(t, 2*256*512*128, flops["flops"], 1e6)
	params, err := e.ParameterLayouts()
	require.NoError(t, err)
	require.Len(t, params, 2)
	require.False(t, params[0].RowMajor(), params[0])
	require.True(t, params[1].RowMajor(), params[1])
	outs, err := e.OutputLayouts()
	require.NoError(t, err)
	require.Len(t, outs, 1)
	require.True(t, outs[0].RowMajor(), outs[0])
}

func TestTopologyErrors(t *testing.T) {
	p := open(t, plugin.TPU)
	_, err := p.NewTopology("v99:1x1")
	var perr *pjrt.Error
	require.ErrorAs(t, err, &perr)
	require.Equal(t, "PJRT_TopologyDescription_Create", perr.Func)
	_, err = open(t, plugin.CPU).NewTopology("cpu:1x1")
	require.ErrorAs(t, err, &perr)
	require.Equal(t, pjrt.Unimplemented, perr.Code)
}

// Every slice that tpuc lists is a topology libtpu knows, with as many devices as the table says.
func TestListedTopologies(t *testing.T) {
	p := open(t, plugin.TPU)
	for _, e := range chip.List() {
		if !e.Target.IsTPU() || e.Devices > 1024 {
			continue
		}
		t.Run(e.Target.String(), func(t *testing.T) {
			var opts []pjrt.NamedValue
			if c := e.Target.Facts().ChipConfig; c != "" {
				opts = append(opts, pjrt.NamedValue{Name: "chip_config_name", Value: c})
			}
			topo, err := p.NewTopology(e.Target.Topology(), opts...)
			require.NoError(t, err)
			defer topo.Close()
			require.Len(t, topo.Devices(), e.Devices)
		})
	}
}
