package plugin

import (
	"fmt"
	"path"
	"strings"
)

// Pin is one published plugin, fixed to the byte.
type Pin struct {
	Kind     Kind
	Name     string // package name, normalised as PEP 503 says
	Version  string
	OS, Arch string // the only platform it runs on, as runtime.GOOS and runtime.GOARCH spell them

	Wheel       string // file name of the wheel; its tags are Python's, not ours: only the library in it is used
	WheelSHA256 string
	WheelSize   int64 // bytes

	Member        string // path of the library in the wheel
	LibrarySHA256 string
	LibrarySize   int64 // bytes

	Licence string // as the package's metadata names it
	Terms   string // what its licence file says of use, shortened, or where to read it
}

// Pins are the plugins that tpuc fetches, one a kind.
var Pins = []Pin{
	{
		Kind: CPU, Name: "lammps-jax-pjrt-cpu", Version: "0.11.2", OS: "linux", Arch: "amd64",
		Wheel:         "lammps_jax_pjrt_cpu-0.11.2-py3-none-manylinux_2_27_x86_64.whl",
		WheelSHA256:   "1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1",
		WheelSize:     62711338,
		Member:        "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
		LibrarySHA256: "ad1309ac822b1b24d51b7f9947c7c9fa9ef5d67f390584cbc3d1fa2428fed9c2",
		LibrarySize:   201600336,
		Licence:       "Apache-2.0",
		Terms:         "LICENSE and THIRD_PARTY_NOTICES are in the wheel",
	},
	{
		Kind: TPU, Name: "libtpu", Version: "0.0.52", OS: "linux", Arch: "amd64",
		Wheel:         "libtpu-0.0.52-cp311-cp311-manylinux_2_31_x86_64.whl",
		WheelSHA256:   "f5e2e596eaea9357fbb5a6755a7a9007c6ab75bfde4a55191b03eff402971140",
		WheelSize:     137064406,
		Member:        "libtpu/libtpu.so",
		LibrarySHA256: "f86de4d04a058e6b5101f73e0824b95f27e2cec996d2b9191d9cffda75c03077",
		LibrarySize:   467479448,
		Licence:       "Google Cloud Platform Terms of Service",
		Terms:         "proprietary to Google LLC, under your Google Cloud agreement or https://cloud.google.com/terms",
	},
}

// PipCommand is the command that downloads exactly the pinned wheel into DIR, with any version of Python.
func (p Pin) PipCommand() string {
	// name-version-python-abi-platform.whl (PEP 427); the names here have no build tag.
	tags := strings.Split(strings.TrimSuffix(p.Wheel, ".whl"), "-")
	args := "pip download --no-deps --only-binary=:all:"
	if n := len(tags); n >= 5 {
		python, abi, platform := tags[n-3], tags[n-2], tags[n-1]
		args += " --platform " + platform
		if strings.HasPrefix(python, "cp3") {
			args += fmt.Sprintf(" --implementation cp --python-version 3.%s --abi %s", python[3:], abi)
		}
	}
	return fmt.Sprintf("%s -d DIR %s==%s", args, p.Name, p.Version)
}

// library is the file name of the unpacked library.
func (p Pin) library() string { return path.Base(p.Member) }

// dir is the name of the directory that holds the unpacked library: a new pin never meets an old copy.
func (p Pin) dir() string { return fmt.Sprintf("%s-%s-%s", p.Name, p.Version, p.LibrarySHA256[:12]) }

// plugin describes the library at file, which has the pinned digest.
func (p Pin) plugin(file, source string) *Plugin {
	return &Plugin{
		Kind: p.Kind, Path: file, Digest: p.LibrarySHA256, Size: p.LibrarySize,
		Name: p.Name, Version: p.Version, Licence: p.Licence, Source: source, Pinned: true,
	}
}
