package pjrt

import "encoding/binary"

// CompileOptions are the fields of XLA's CompileOptionsProto that matter here. The zero value means one
// device: one replica, one partition, device 0.
type CompileOptions struct {
	NumReplicas   int   // 0 = 1
	NumPartitions int   // 0 = 1
	DeviceIDs     []int // NumReplicas*NumPartitions ids, replica-major; nil = 0, 1, 2, ...
	SPMD          bool  // partition the module by its shardings
	Shardy        bool  // the shardings are sdy attributes
	PropagateNaN  bool  // CPU: a reduction by maximum or minimum over a NaN is NaN, as StableHLO has it; XLA:CPU's default is faster and drops it
	KeepRounding  bool  // every operator rounds its result; XLA's default leaves that out where a result in bf16 is widened next
}

// OptionsFor are the options that every program is compiled with: a partition on each of the devices. On the CPU a NaN stays a NaN, and numbers are
// rounded where the program says, as torch rounds there.
func OptionsFor(devices []*Device, cpu bool) CompileOptions {
	n := len(devices)
	o := CompileOptions{NumPartitions: n, SPMD: n > 1, Shardy: n > 1, PropagateNaN: cpu, KeepRounding: cpu}
	for _, d := range devices {
		o.DeviceIDs = append(o.DeviceIDs, d.ID)
	}
	return o
}

// Field numbers of xla/pjrt/proto/compile_options.proto and of DeviceAssignmentProto in xla/xla_data.proto.
const (
	optBuildOptions = 3
	optOverrides    = 7 // map from a field of DebugOptions to its value

	buildDeviceOrdinal    = 1
	buildNumReplicas      = 4
	buildNumPartitions    = 5
	buildUseSPMD          = 6
	buildDeviceAssignment = 9
	buildUseShardy        = 19

	assignReplicaCount     = 1
	assignComputationCount = 2
	assignDevices          = 3
	assignReplicaDeviceIDs = 1

	mapKey       = 1
	mapValue     = 2
	overrideBool = 2
)

// Encode is the serialized CompileOptionsProto. Fields are in ascending order, so equal options are equal bytes.
func (o CompileOptions) Encode() []byte {
	replicas, partitions := max(o.NumReplicas, 1), max(o.NumPartitions, 1)
	id := func(replica, partition int) int {
		if i := replica*partitions + partition; i < len(o.DeviceIDs) {
			return o.DeviceIDs[i]
		} else {
			return i
		}
	}
	var assign []byte
	assign = protoInt(assign, assignReplicaCount, int64(replicas))
	assign = protoInt(assign, assignComputationCount, int64(partitions))
	for p := range partitions {
		var ids, dev []byte
		for r := range replicas {
			ids = binary.AppendUvarint(ids, uint64(id(r, p)))
		}
		dev = protoBytes(dev, assignReplicaDeviceIDs, ids) // packed repeated int64
		assign = protoBytes(assign, assignDevices, dev)
	}
	var build []byte
	build = protoInt(build, buildDeviceOrdinal, -1)
	build = protoInt(build, buildNumReplicas, int64(replicas))
	build = protoInt(build, buildNumPartitions, int64(partitions))
	if o.SPMD {
		build = protoInt(build, buildUseSPMD, 1)
	}
	build = protoBytes(build, buildDeviceAssignment, assign)
	if o.Shardy {
		build = protoInt(build, buildUseShardy, 1)
	}
	out := protoBytes(nil, optBuildOptions, build)
	for _, off := range []struct {
		set  bool
		flag string
	}{
		{o.KeepRounding, "xla_allow_excess_precision"},
		{o.PropagateNaN, "xla_cpu_enable_fast_min_max"},
	} {
		if off.set {
			entry := protoBytes(nil, mapKey, []byte(off.flag))
			entry = protoBytes(entry, mapValue, protoInt(nil, overrideBool, 0))
			out = protoBytes(out, optOverrides, entry)
		}
	}
	return out
}

// protoInt appends a varint field; negative numbers take ten bytes, as protobuf has it.
func protoInt(b []byte, field int, v int64) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3)
	return binary.AppendUvarint(b, uint64(v))
}

// protoBytes appends a length-delimited field.
func protoBytes(b []byte, field int, v []byte) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}
