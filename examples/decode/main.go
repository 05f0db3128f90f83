// Command decode writes tokens with a small language model, one step at a time: an example of a model that keeps its KV cache on the device from
// call to call. The cache is state of the session, not an input: nothing of it passes through the host.
//
//	tpuc compile testdata/models/qwen3_decode/model.pt2 --embed-weights -o decode.tpuc
//	decode -model decode.tpuc -prompt 3,17,4 -tokens 8 -save after.safetensors
//	decode -model decode.tpuc -load after.safetensors -at 11 -prompt 5 -tokens 4
//
// The model is one decode step: it takes a token and its place, and gives the scores of the next token.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"tpuc/ir/tensor"
	"tpuc/tpu/runtime"
)

// options say what to write.
type options struct {
	model      string
	prompt     []int64
	tokens     int
	at         int64  // place of the prompt's first token
	load, save string // files of the state
}

func main() {
	var o options
	flag.StringVar(&o.model, "model", "decode.tpuc", "artifact of a decode step made by tpuc compile")
	prompt := flag.String("prompt", "1", "tokens to begin with, separated by commas")
	flag.IntVar(&o.tokens, "tokens", 8, "tokens to write")
	flag.Int64Var(&o.at, "at", 0, "place of the prompt's first token, where a loaded state has others before it")
	flag.StringVar(&o.load, "load", "", "take the state from this file first")
	flag.StringVar(&o.save, "save", "", "write the state to this file in the end")
	flag.Parse()
	for _, s := range strings.Split(*prompt, ",") {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			log.Fatalf("prompt %q, wanted numbers separated by commas", *prompt)
		}
		o.prompt = append(o.prompt, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := decode(ctx, o, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// decode feeds the prompt and then every token that the model finds likeliest, and prints those.
func decode(ctx context.Context, o options, w io.Writer) (err error) {
	model, err := runtime.Open(ctx, o.model, runtime.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	if n := len(model.Manifest().Inputs); n != 2 {
		return fmt.Errorf("the model has %d inputs, wanted a token and its place", n)
	}
	s, err := model.NewSession(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.load != "" {
		if err := s.LoadState(ctx, o.load); err != nil {
			return err
		}
	}
	var next int64
	at := o.at
	step := func(token int64) error {
		out, err := s.Run(ctx, []*tensor.Tensor{
			tensor.FromInts(tensor.Make(tensor.I64, 1, 1), []int64{token}),
			tensor.FromInts(tensor.Make(tensor.I64, 1), []int64{at}),
		})
		if err != nil {
			return err
		}
		next, at = likeliest(out[0].Floats()), at+1
		return nil
	}
	for _, token := range o.prompt {
		if err := step(token); err != nil {
			return err
		}
	}
	start := time.Now()
	for i := range o.tokens {
		fmt.Fprintf(w, "%d\n", next)
		if i == o.tokens-1 {
			break
		}
		if err := step(next); err != nil {
			return err
		}
	}
	log.Printf("%d tokens, the next place is %d, %.2f ms a step", o.tokens, at, time.Since(start).Seconds()*1e3/float64(max(o.tokens-1, 1)))
	if o.save != "" {
		return s.SaveState(ctx, o.save)
	}
	return nil
}

// likeliest is the place of the largest score.
func likeliest(scores []float64) int64 {
	best := 0
	for i, v := range scores {
		if v > scores[best] {
			best = i
		}
	}
	return int64(best)
}
