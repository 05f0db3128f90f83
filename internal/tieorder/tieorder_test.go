package tieorder_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc/internal/tieorder"
	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// cases are elements, one a digit, and the indices that torch.topk of torch 2.15 gives on the CPU.
var cases = []struct {
	x       string
	largest bool
	want    string
}{
	{"041113300", true, "1 5 6 4"},
	{"111421002", false, "6 7 5 0"},
	{"230", true, "1 0"},
	{"43244002244043334302101", true, "16 3 4 0 9 10 12 1 17 15 14 13 19 8 7 2 20 22 6 5 21 18"},
	{"2101313202142414232224022201103140032024", true, "39 32 15 11 21 13 17 4 35 6 30 19 20 0 23 24 25 36 38 9"},
	{"4210021302324312403204311214013034320413442240114302124420403101", false, "59 20 17 50 45 57 8 28 62 4 3 36 31 29 63 38 26 24 23 47 14 52 46 61 6 2 9 25 19 5 11 15 35 1 56 53 42 43 51 13 49 10 18 7 60 39 30 32 34 22 55 16 12 48 41 40 27 37 44 0 33 58 54"},
	{"422101410000020312011404211403332141124200301401033202121222424102112100103143344022432131130003041113124441210044221324142100222", true, "6 0"},
	{"11043124034231100033124003301214124020434244314410414122114113202340304113110433242034243111424141223110104320043204312243204441020334321422134431413324013020120334432434402032321124210444122120132230", false, "15 8 2"},
	{"4404101243133420121322142400022114303120312102031202102344430424031231021300130424224332004100214041", true, "0"},
}

func TestOrder(t *testing.T) {
	for _, c := range cases {
		k := len(strings.Fields(c.want))
		got := tieorder.Order(len(c.x), k, func(i, j int64) bool {
			if c.largest {
				return c.x[i] > c.x[j]
			}
			return c.x[i] < c.x[j]
		})
		require.Equal(t, c.want, strings.Trim(fmt.Sprint(got), "[]"), "topk %d of %s", k, c.x)
	}
}

// A module's topk takes torch's order, along any axis; its values are those of the operator itself.
func TestTorch(t *testing.T) {
	typ := tensor.Make(tensor.F32, 2, 9, 3)
	v := make([]float64, typ.Elements())
	for i := range v {
		v[i] = float64(cases[0].x[i/3%9] - '0')
	}
	x := tensor.FromFloats(typ, v)
	m := &ir.Module{Func: &ir.Func{Name: "main"}}
	require.False(t, tieorder.Torch(m))
	b := &ir.Builder{}
	m.Func.Results = op.TopK.MakeAll(b, op.TopKAttr{K: 4, Axis: 1, Largest: true}, m.Func.AddParam("x", typ))
	m.Func.Body = b.Body
	stable, err := eval.Run(m, []*tensor.Tensor{x}, eval.Options{})
	require.NoError(t, err)
	require.True(t, tieorder.Torch(m))
	torch, err := eval.Run(m, []*tensor.Tensor{x}, eval.Options{})
	require.NoError(t, err)
	require.Equal(t, stable.Outputs[0], torch.Outputs[0])
	require.NotEqual(t, stable.Outputs[1], torch.Outputs[1])
	for i, at := range torch.Outputs[1].Ints() {
		require.Equal(t, strings.Fields(cases[0].want)[i/3%4], fmt.Sprint(at))
	}
}
