package tpu

import "context"

// trivial is a program that every plugin compiles.
const trivial = `module @describe {
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}`

// Describe asks the request's plugin for the facts about itself on this machine that do not depend on a program: API version, platform, and for
// the CPU the processor and its features. A child compiles a trivial program for the target; the request's own is not looked at. Errors are
// those of Compile; nothing is kept of a crash.
func Describe(ctx context.Context, req Request) (*Stats, error) {
	req.Program, req.noCrashFile = []byte(trivial), true
	r, err := Compile(ctx, req)
	if err != nil {
		return nil, err
	}
	s := r.Stats
	return &Stats{APIVersion: s.APIVersion, PlatformName: s.PlatformName, PlatformVersion: s.PlatformVersion, Devices: s.Devices, Processor: s.Processor, Features: s.Features}, nil
}
