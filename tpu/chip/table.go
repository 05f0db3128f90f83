package chip

// table is indexed by Chip. Sources, named by letter on the lines:
//
//	G  Google Cloud's page of the chip: https://docs.cloud.google.com/tpu/docs/ v4, v5e, v5p, v6e, tpu7x
//	J  JAX's table for Pallas, jax/_src/pallas/mosaic/tpu_info.py (numbers there are per TensorCore)
//	L  libtpu 0.0.52 itself, asked for topologies of one chip: names and options it takes, devices it then describes, its
//	   device_memory_bytes_limit, which its E1000 CompileTimeHbmOom message rounds (15.25G, 15.75G, 95.73G, 31.24G, 94.74G)
//	X  Google's xpk, src/xpk/core/system_characteristics.py: slice names and shapes
var table = [...]Facts{
	CPU: {Name: "cpu", Product: "the host's processor", Dims: 1, MaxChips: maxCPU},

	V4: {
		Name: "v4", LibTPU: "v4", Product: "TPU v4",
		// L: the default makes a device of each core; Google's v4 machines, and JAX on them, run both as one.
		ChipConfig:   "megacore",
		CoresPerChip: 2, DevicesPerChip: 1, // G; L
		HBM: 32 * giB, HBMUsable: 33_014_414_848, HBMBandwidth: 1200 * giga, // G: 32 GiB, 1200 GBps; L
		VMEM: 16 * miB, SMEM: 1 * miB, // J
		MXUs: 4, MXUSize: 128, // G; J
		PeakBF16: 275 * tera, PeakInt8: 275 * tera, // G: "275 teraflops (bf16 or int8)"
		// G gives no bandwidth of v4's interconnect.
		Dims: 3, MaxChips: 4096, CountsCores: true, // G; X
	},
	V5e: {
		Name: "v5e", LibTPU: "v5e", Product: "TPU v5e",
		CoresPerChip: 1, DevicesPerChip: 1, // G; L
		HBM: 16 * giB, HBMUsable: 16_909_336_064, HBMBandwidth: 819 * giga, // G: 16 GB, 819 GBps; J: 17.2e9 bytes; L
		VMEM: 128 * miB, SMEM: 1 * miB, // J
		MXUs: 4, MXUSize: 128, // G; J
		PeakBF16: 197 * tera, PeakInt8: 393 * tera, // G
		ICIBandwidth: 400 * giga, // G: bidirectional, per chip
		Dims:         2, MaxChips: 256,
		aliases: []string{"v5litepod", "v5lite", "v5-lite", "v5-lite-podslice"},
	},
	V5p: {
		Name: "v5p", LibTPU: "v5p", Product: "TPU v5p",
		CoresPerChip: 2, DevicesPerChip: 1, // G; L
		// J; G's 95 GiB is less than libtpu lets programs use.
		HBM: 103_000_000_000, HBMUsable: 102_786_661_888, HBMBandwidth: 2765 * giga, // J; L; G: 2765 GBps
		VMEM: 64 * miB, SMEM: 1 * miB, // J
		MXUs: 4, MXUSize: 128, // G; J
		PeakBF16: 459 * tera, PeakInt8: 918 * tera, PeakFP8: 459 * tera, // G (bf16, fp8); J (int8)
		ICIBandwidth: 1200 * giga,                          // G: bidirectional, per chip
		Dims:         3, MaxChips: 8960, CountsCores: true, // G: the Pod; its largest single job is 6144
	},
	V6e: {
		Name: "v6e", LibTPU: "v6e", Product: "TPU v6e (Trillium)",
		CoresPerChip: 1, DevicesPerChip: 1, // G; L
		HBM: 32 * giB, HBMUsable: 33_546_042_880, HBMBandwidth: 1638 * giga, // G: 32 GB, 1638 GBps; J: 34.4e9 bytes; L
		VMEM: 128 * miB, SMEM: 1 * miB, // J
		MXUs: 2, MXUSize: 256, // G: "two 256x256 matrix-multiply units"
		PeakBF16: 918 * tera, PeakInt8: 1836 * tera, PeakFP8: 918 * tera, // G; fp8 from the comparison on the tpu7x page
		ICIBandwidth: 800 * giga, // G: bidirectional, per chip
		Dims:         2, MaxChips: 256,
		aliases: []string{"v6", "v6lite", "trillium"},
	},
	V7x: {
		Name: "tpu7x", LibTPU: "TPU7x", Product: "TPU7x (Ironwood)",
		CoresPerChip: 2, DevicesPerChip: 2, // G: "two TPU devices instead of the single logical core"; L
		HBM: 192 * giB, HBMUsable: 101_724_453_888, HBMBandwidth: 7380 * giga, // G; L
		VMEM: 64 * miB, SMEM: 1 * miB, // J
		MXUs: 2, MXUSize: 256, // J
		PeakBF16: 2307 * tera, PeakFP8: 4614 * tera, // G; no source gives int8
		ICIBandwidth: 1200 * giga,                          // G: bidirectional, per chip
		Dims:         3, MaxChips: 9216, CountsCores: true, // G; X: tpu7x-8 is 2x2x1
		aliases: []string{"v7x", "7x", "tpu7", "v7", "ironwood"},
	},
}
