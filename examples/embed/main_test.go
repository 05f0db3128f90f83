package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tpuc"
	"tpuc/tpu"
	"tpuc/tpu/plugin"
	"tpuc/tpu/runtime"
)

func TestMain(m *testing.M) {
	tpu.ChildMain()
	os.Exit(m.Run())
}

// The server answers requests of mixed batches side by side, larger programs padded to, with what each batch gives by itself.
func TestServer(t *testing.T) {
	required := strings.Contains(os.Getenv("TPUC_REQUIRE"), "cpu")
	if _, err := plugin.Locate(t.Context(), plugin.CPU, plugin.Options{Offline: !required}); err != nil && !required {
		t.Skipf("no CPU plugin (TPUC_REQUIRE=cpu demands it): %v", err)
	}
	path := filepath.Join(t.TempDir(), "llama.tpuc")
	_, err := tpuc.Compile(t.Context(), filepath.Join("..", "..", "testdata", "models", "llama_prefill_dynamic", "model.pt2"), tpuc.CompileOptions{
		Dims: map[string][]int64{"input_ids.0": {2, 4}, "input_ids.1": {8}}, EmbedWeights: true, Output: path,
	})
	require.NoError(t, err)
	model, err := runtime.Open(t.Context(), path, runtime.Options{OnMiss: runtime.Pad})
	require.NoError(t, err)
	defer model.Close()
	h, err := newServer(t.Context(), model, 3)
	require.NoError(t, err)
	s := httptest.NewServer(h)
	defer s.Close()

	run := func(batch int) ([]float64, string, int) {
		var ids []float64
		for i := range batch * 8 {
			ids = append(ids, float64(1+i*7%100))
		}
		body, err := json.Marshal(map[string]any{"inputs": []value{{Dims: []int64{int64(batch), 8}, Data: ids}}})
		require.NoError(t, err)
		r, err := http.Post(s.URL+"/run", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		var got struct{ Outputs []value }
		if r.StatusCode == http.StatusOK {
			require.NoError(t, json.Unmarshal(text, &got))
			require.Equal(t, []int64{int64(batch), 8, 128}, got.Outputs[0].Dims)
			return got.Outputs[0].Data, "", r.StatusCode
		}
		return nil, string(text), r.StatusCode
	}
	four, _, code := run(4)
	require.Equal(t, http.StatusOK, code)
	require.NotZero(t, four[0])
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			batch := 1 + i%4
			got, message, code := run(batch)
			if code != http.StatusOK {
				t.Errorf("batch %d: %s", batch, message)
				return
			}
			for k, v := range got { // the first rows of every batch are the same
				if d := v - four[k]; d > 1e-4 || d < -1e-4 {
					t.Errorf("batch %d, element %d: %v, wanted %v", batch, k, v, four[k])
					return
				}
			}
		})
	}
	wg.Wait()
	_, message, code := run(5)
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, message, "is 5, wanted 2 or 4")

	r, err := http.Get(s.URL + "/stats")
	require.NoError(t, err)
	defer r.Body.Close()
	var stats runtime.Stats
	require.NoError(t, json.NewDecoder(r.Body).Decode(&stats))
	require.Equal(t, runtime.Stats{Calls: 14, Exact: 7, Padded: 6, Refused: 1}, stats)

	for body, want := range map[string]string{
		`{`:                                      "unexpected EOF",
		`{"inputs":[]}`:                          "0 inputs, wanted 1",
		`{"inputs":[{"dims":[1,8],"data":[1]}]}`: "1 numbers, wanted 8",
		`{"inputs":[{"dims":[-1],"data":[1]}]}`:  "dimension 0 is -1",
	} {
		r, err := http.Post(s.URL+"/run", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		r.Body.Close()
		require.Equal(t, http.StatusBadRequest, r.StatusCode, fmt.Sprint(body))
		require.Contains(t, string(text), want)
	}
}
