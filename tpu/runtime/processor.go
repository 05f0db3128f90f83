package runtime

import (
	"fmt"
	"slices"
	"strings"

	"tpuc/internal/processor"
	"tpuc/tpu/artifact"
	"tpuc/tpu/pjrt"
)

// probe is the program that a plugin is asked with for the features of the processor here.
const probe = `module @probe {
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}`

// unfitProcessor says why this machine's processor cannot run the artifact's executables, or nothing. The plugin is asked only where the processor
// is not the one that they were made on; what it does not tell is not held against them.
func (m *Model) unfitProcessor(man *artifact.Manifest) (string, error) {
	c := man.CPU
	here := processor.Here
	if m.opts.processor != nil {
		here = m.opts.processor
	}
	if c == nil || len(c.Features) == 0 || man.Target.Platform != "cpu" || c.Processor == here() {
		return "", nil
	}
	exe, err := m.client.Compile([]byte(probe), pjrt.CompileOptions{})
	if err != nil {
		return "", fmt.Errorf("asking the plugin for the features of this processor: %w", err)
	}
	defer exe.Close()
	code, err := exe.Executable().Serialize()
	if err != nil {
		return "", fmt.Errorf("asking the plugin for the features of this processor: %w", err)
	}
	_, features := processor.Of(code)
	if len(features) == 0 {
		return "", nil
	}
	var missing []string
	for _, f := range c.Features {
		if strings.HasPrefix(f, "+") && !slices.Contains(features, f) {
			missing = append(missing, f[1:])
		}
	}
	if len(missing) == 0 {
		return "", nil
	}
	return fmt.Sprintf("the executable uses features of a processor (%s) that this one lacks: %s", c.Processor, strings.Join(missing, ", ")), nil
}
