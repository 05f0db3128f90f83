// Command embed serves a compiled model over HTTP: an example of a program that embeds tpuc's runtime. It links no compiler and needs no Python.
//
//	tpuc compile model.pt2 --embed-weights --dim batch=1,8 -o model.tpuc
//	embed -model model.tpuc -on-miss pad -listen localhost:8080
//	curl -d '{"inputs": [{"dims": [2, 16], "data": [...]}]}' localhost:8080/run
//
// POST /run makes one call with inputs in the model's order and answers with its outputs; GET /model says what the model takes and gives; GET /stats
// counts calls by what became of them. A call of shapes that no program has is refused, padded or compiled, as -on-miss says.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"tpuc/ir/tensor"
	"tpuc/tpu/runtime"
)

func main() {
	path := flag.String("model", "model.tpuc", "artifact made by tpuc compile")
	listen := flag.String("listen", "localhost:8080", "address to serve on")
	onMiss := flag.String("on-miss", "strict", "what becomes of shapes that no program has: strict, compile or pad")
	sessions := flag.Int("sessions", 4, "calls that run side by side")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *path, *listen, *onMiss, *sessions); err != nil {
		log.Fatal(err)
	}
}

// serve loads the model and serves it until ctx ends.
func serve(ctx context.Context, path, listen, onMiss string, sessions int) error {
	model, err := runtime.Open(ctx, path, runtime.Options{OnMiss: runtime.Policy(onMiss), Notify: func(line string) { log.Print(line) }})
	if err != nil {
		return err
	}
	defer model.Close()
	h, err := newServer(ctx, model, sessions)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: listen, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(end) // ListenAndServe tells
	})
	log.Printf("%s is served on %s", model.Manifest().Model.Name, listen)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// server answers requests with a fixed number of sessions: a session is one sequence of calls, and the model's weights are shared by all.
type server struct {
	model *runtime.Model
	free  chan *runtime.Session
}

// newServer makes the handler. The model's Close closes its sessions.
func newServer(ctx context.Context, model *runtime.Model, sessions int) (http.Handler, error) {
	s := &server{model, make(chan *runtime.Session, max(sessions, 1))}
	for range cap(s.free) {
		session, err := model.NewSession(ctx)
		if err != nil {
			return nil, err
		}
		s.free <- session
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", s.run)
	mux.HandleFunc("GET /model", func(w http.ResponseWriter, _ *http.Request) {
		man := model.Manifest()
		answer(w, map[string]any{"model": man.Model, "inputs": man.Inputs, "outputs": man.Outputs, "programs": len(man.Programs)})
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { answer(w, model.Stats()) })
	return mux, nil
}

// value is a tensor in a request or an answer, row-major.
type value struct {
	Name string    `json:"name,omitempty"`
	Dims []int64   `json:"dims"`
	Data []float64 `json:"data"`
}

// maxRequest bounds the bytes of a request.
const maxRequest = 64 << 20

func (s *server) run(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Inputs []value `json:"inputs"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	inputs, err := s.inputs(request.Inputs)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var session *runtime.Session
	select {
	case session = <-s.free:
	case <-r.Context().Done():
		return
	}
	defer func() { s.free <- session }()
	// Each request begins with the model's own state. Without state this costs nothing.
	if err := session.Reset(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	outputs, err := session.Run(r.Context(), inputs)
	if err != nil { // it names every input that does not fit, what was wanted and what was given
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	var response struct {
		Outputs []value `json:"outputs"`
	}
	for i, x := range outputs {
		response.Outputs = append(response.Outputs, value{s.model.Manifest().Outputs[i].Name, x.Dims, x.Floats()})
	}
	answer(w, response)
}

// inputs makes tensors of the dtypes that the model takes.
func (s *server) inputs(values []value) ([]*tensor.Tensor, error) {
	signatures := s.model.Manifest().Inputs
	if len(values) != len(signatures) {
		return nil, fmt.Errorf("%d inputs, wanted %d", len(values), len(signatures))
	}
	out := make([]*tensor.Tensor, len(values))
	for i, v := range values {
		dtype, err := tensor.ParseDType(signatures[i].DType)
		if err != nil {
			return nil, err
		}
		t := tensor.Make(dtype, v.Dims...)
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("input %d (%q): %w", i, signatures[i].Name, err)
		}
		if t.Elements() != int64(len(v.Data)) {
			return nil, fmt.Errorf("input %d (%q): %d numbers, wanted %d for %v", i, signatures[i].Name, len(v.Data), t.Elements(), v.Dims)
		}
		if dtype.IsFloat() {
			out[i] = tensor.FromFloats(t, v.Data)
			continue
		}
		whole := make([]int64, len(v.Data))
		for k, x := range v.Data {
			whole[k] = int64(x)
		}
		out[i] = tensor.FromInts(t, whole)
	}
	return out, nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil { // NaN has no place in JSON, or the client is gone
		log.Print(err)
	}
}
