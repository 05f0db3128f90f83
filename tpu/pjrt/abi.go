package pjrt

import (
	"reflect"
	"structs"
	"unsafe"
)

// The structs of pjrt_c_api.h, field for field, for 64-bit targets. They follow API 0.114; older plugins
// know shorter versions of a few and ignore the tail, because struct_size tells them where it ends.
//
// Pointer fields are unsafe.Pointer whoever owns the memory: for Go memory that keeps the object reachable
// while the struct is, and a C pointer in such a field is ignored by the collector. HostLayout says that the
// layout is C's, so that fields nobody sets stay.

// cptr is an opaque C object (PJRT_Client*, PJRT_Buffer*, ...) or a C array.
type cptr = unsafe.Pointer

// head starts every argument struct.
type head struct {
	_    structs.HostLayout
	size uintptr
	ext  cptr
}

// structSize is the header's X_STRUCT_SIZE: the end of the last field, without trailing padding.
func structSize[A any]() uintptr {
	t := reflect.TypeFor[A]()
	f := t.Field(t.NumField() - 1)
	return f.Offset + f.Type.Size()
}

// slot is the position of a function in the PJRT_Api table, after struct_size, extension_start and version.
type slot int

// Positions by the order in pjrt_c_api.h; only the functions this package calls are named.
const (
	fnErrorDestroy                slot = 0
	fnErrorMessage                slot = 1
	fnErrorGetCode                slot = 2
	fnPluginInitialize            slot = 3
	fnPluginAttributes            slot = 4
	fnEventDestroy                slot = 5
	fnEventIsReady                slot = 6
	fnEventError                  slot = 7
	fnEventOnReady                slot = 9
	fnClientCreate                slot = 10
	fnClientDestroy               slot = 11
	fnClientPlatformName          slot = 12
	fnClientPlatformVersion       slot = 14
	fnClientAddressableDevices    slot = 16
	fnClientCompile               slot = 20
	fnClientBufferFromHostBuffer  slot = 22
	fnDeviceDescriptionID         slot = 23
	fnDeviceDescriptionAttributes slot = 25
	fnDeviceDescriptionKind       slot = 26
	fnDeviceDescriptionToString   slot = 28
	fnDeviceGetDescription        slot = 29
	fnExecutableDestroy           slot = 40
	fnExecutableName              slot = 41
	fnExecutableNumPartitions     slot = 43
	fnExecutableNumOutputs        slot = 44
	fnExecutableGetCostAnalysis   slot = 46
	fnExecutableSerialize         slot = 49
	fnLoadedDestroy               slot = 50
	fnLoadedGetExecutable         slot = 51
	fnLoadedAddressableDevices    slot = 52
	fnLoadedExecute               slot = 55
	fnDeserializeAndLoad          slot = 56
	fnBufferDestroy               slot = 58
	fnBufferElementType           slot = 59
	fnBufferDimensions            slot = 60
	fnBufferOnDeviceSize          slot = 64
	fnBufferDelete                slot = 67
	fnBufferIsDeleted             slot = 68
	fnBufferToHostBuffer          slot = 70
	fnBufferReadyEvent            slot = 72
	fnBufferUnsafePointer         slot = 73
	fnTopologyCreate              slot = 82
	fnTopologyDestroy             slot = 83
	fnTopologyPlatformName        slot = 84
	fnTopologyPlatformVersion     slot = 85
	fnTopologyDeviceDescriptions  slot = 86
	fnTopologyAttributes          slot = 88
	fnCompile                     slot = 89
	fnExecutableOutputTypes       slot = 90
	fnExecutableOutputDims        slot = 91
	fnExecutableFingerprint       slot = 94
	fnExecutableMemoryStats       slot = 96
)

// slotNames are the names for error texts and for the test against the header's order.
var slotNames = map[slot]string{
	fnErrorDestroy:                "PJRT_Error_Destroy",
	fnErrorMessage:                "PJRT_Error_Message",
	fnErrorGetCode:                "PJRT_Error_GetCode",
	fnPluginInitialize:            "PJRT_Plugin_Initialize",
	fnPluginAttributes:            "PJRT_Plugin_Attributes",
	fnEventDestroy:                "PJRT_Event_Destroy",
	fnEventIsReady:                "PJRT_Event_IsReady",
	fnEventError:                  "PJRT_Event_Error",
	fnEventOnReady:                "PJRT_Event_OnReady",
	fnClientCreate:                "PJRT_Client_Create",
	fnClientDestroy:               "PJRT_Client_Destroy",
	fnClientPlatformName:          "PJRT_Client_PlatformName",
	fnClientPlatformVersion:       "PJRT_Client_PlatformVersion",
	fnClientAddressableDevices:    "PJRT_Client_AddressableDevices",
	fnClientCompile:               "PJRT_Client_Compile",
	fnClientBufferFromHostBuffer:  "PJRT_Client_BufferFromHostBuffer",
	fnDeviceDescriptionID:         "PJRT_DeviceDescription_Id",
	fnDeviceDescriptionAttributes: "PJRT_DeviceDescription_Attributes",
	fnDeviceDescriptionKind:       "PJRT_DeviceDescription_Kind",
	fnDeviceDescriptionToString:   "PJRT_DeviceDescription_ToString",
	fnDeviceGetDescription:        "PJRT_Device_GetDescription",
	fnExecutableDestroy:           "PJRT_Executable_Destroy",
	fnExecutableName:              "PJRT_Executable_Name",
	fnExecutableNumPartitions:     "PJRT_Executable_NumPartitions",
	fnExecutableNumOutputs:        "PJRT_Executable_NumOutputs",
	fnExecutableGetCostAnalysis:   "PJRT_Executable_GetCostAnalysis",
	fnExecutableSerialize:         "PJRT_Executable_Serialize",
	fnLoadedDestroy:               "PJRT_LoadedExecutable_Destroy",
	fnLoadedGetExecutable:         "PJRT_LoadedExecutable_GetExecutable",
	fnLoadedAddressableDevices:    "PJRT_LoadedExecutable_AddressableDevices",
	fnLoadedExecute:               "PJRT_LoadedExecutable_Execute",
	fnDeserializeAndLoad:          "PJRT_Executable_DeserializeAndLoad",
	fnBufferDestroy:               "PJRT_Buffer_Destroy",
	fnBufferElementType:           "PJRT_Buffer_ElementType",
	fnBufferDimensions:            "PJRT_Buffer_Dimensions",
	fnBufferOnDeviceSize:          "PJRT_Buffer_OnDeviceSizeInBytes",
	fnBufferDelete:                "PJRT_Buffer_Delete",
	fnBufferIsDeleted:             "PJRT_Buffer_IsDeleted",
	fnBufferToHostBuffer:          "PJRT_Buffer_ToHostBuffer",
	fnBufferReadyEvent:            "PJRT_Buffer_ReadyEvent",
	fnBufferUnsafePointer:         "PJRT_Buffer_UnsafePointer",
	fnTopologyCreate:              "PJRT_TopologyDescription_Create",
	fnTopologyDestroy:             "PJRT_TopologyDescription_Destroy",
	fnTopologyPlatformName:        "PJRT_TopologyDescription_PlatformName",
	fnTopologyPlatformVersion:     "PJRT_TopologyDescription_PlatformVersion",
	fnTopologyDeviceDescriptions:  "PJRT_TopologyDescription_GetDeviceDescriptions",
	fnTopologyAttributes:          "PJRT_TopologyDescription_Attributes",
	fnCompile:                     "PJRT_Compile",
	fnExecutableOutputTypes:       "PJRT_Executable_OutputElementTypes",
	fnExecutableOutputDims:        "PJRT_Executable_OutputDimensions",
	fnExecutableFingerprint:       "PJRT_Executable_Fingerprint",
	fnExecutableMemoryStats:       "PJRT_Executable_GetCompiledMemoryStats",
}

func (s slot) String() string { return slotNames[s] }

// apiHead is the fixed start of PJRT_Api; function pointers follow it.
type apiHead struct {
	_       structs.HostLayout
	size    uintptr
	ext     cptr
	version struct {
		head
		major, minor int32
	}
}

// extHead is PJRT_Extension_Base, the link of the plugin's list of extensions.
type extHead struct {
	_    structs.HostLayout
	size uintptr
	kind int32
	next *extHead
}

// layoutsExt is PJRT_Layouts_Extension. Older plugins end before paramLayouts; size tells.
type layoutsExt struct {
	_ structs.HostLayout
	extHead
	destroy       uintptr
	serialize     uintptr
	clientDefault uintptr
	bufferLayout  uintptr
	topoDefault   uintptr
	outputLayouts uintptr
	paramLayouts  uintptr
}

// objArgs is every argument struct that holds one object and nothing else: destroy, delete, await, ...
type objArgs struct {
	_ structs.HostLayout
	head
	obj cptr
}

// objOut is an object in, one pointer out.
type objOut struct {
	_ structs.HostLayout
	head
	obj cptr
	out cptr
}

// objInt32 is an object in, one int or enum out.
type objInt32 struct {
	_ structs.HostLayout
	head
	obj cptr
	out int32
}

// objBool is an object in, one bool out.
type objBool struct {
	_ structs.HostLayout
	head
	obj cptr
	out bool
}

// objSize is an object in, one size_t out.
type objSize struct {
	_ structs.HostLayout
	head
	obj cptr
	out uintptr
}

// objArray is an object in, pointer and count out (strings, devices, dims, types, attributes).
type objArray struct {
	_ structs.HostLayout
	head
	obj cptr
	ptr cptr
	n   uintptr
}

// objCountArray is objArray for the structs that put the count first.
type objCountArray struct {
	_ structs.HostLayout
	head
	obj cptr
	n   uintptr
	ptr cptr
}

type eventOnReadyArgs struct {
	_ structs.HostLayout
	head
	event    cptr
	callback uintptr
	userArg  uintptr
}

type pluginAttributesArgs struct {
	_ structs.HostLayout
	head
	ptr cptr
	n   uintptr
}

type namedValue struct {
	_ structs.HostLayout
	head
	name     cptr
	nameSize uintptr
	kind     int32
	value    uint64 // union: pointer, int64, float or bool in the low bytes
	size     uintptr
}

type clientCreateArgs struct {
	_ structs.HostLayout
	head
	options     cptr
	numOptions  uintptr
	kvGet       cptr
	kvGetArg    cptr
	kvPut       cptr
	kvPutArg    cptr
	client      cptr // out
	kvTryGet    cptr
	kvTryGetArg cptr
}

type topologyCreateArgs struct {
	_ structs.HostLayout
	head
	name       cptr
	nameSize   uintptr
	options    cptr
	numOptions uintptr
	topology   cptr // out
}

type program struct {
	_ structs.HostLayout
	head
	code       cptr
	codeSize   uintptr
	format     cptr
	formatSize uintptr
}

type clientCompileArgs struct {
	_ structs.HostLayout
	head
	client      cptr
	program     *program
	options     cptr
	optionsSize uintptr
	executable  cptr // out
}

type compileArgs struct {
	_ structs.HostLayout
	head
	topology    cptr
	program     *program
	options     cptr
	optionsSize uintptr
	client      cptr
	executable  cptr // out
}

type serializeArgs struct {
	_ structs.HostLayout
	head
	obj     cptr
	bytes   cptr    // out
	size    uintptr // out
	backing cptr    // out
	deleter uintptr // out
}

type deserializeArgs struct {
	_ structs.HostLayout
	head
	client       cptr
	bytes        cptr
	size         uintptr
	executable   cptr // out
	override     cptr
	overrideSize uintptr
	loadOptions  cptr
}

type outputDimsArgs struct {
	_ structs.HostLayout
	head
	executable cptr
	numOutputs uintptr
	dims       cptr // out
	dimSizes   cptr // out
}

type memoryStatsArgs struct {
	_ structs.HostLayout
	head
	executable cptr
	stats      MemoryStats // out
}

type executeOptions struct {
	_ structs.HostLayout
	head
	sendCallbacks    cptr
	recvCallbacks    cptr
	numSend          uintptr
	numRecv          uintptr
	launchID         int32
	nonDonatable     cptr
	numNonDonatable  uintptr
	context          cptr
	callLocation     cptr
	numTasks         uintptr
	taskIDs          cptr
	incarnationIDs   cptr
	multiSliceConfig cptr
	majorToMinor     bool
	hloOutput        cptr
	numHLOOutput     uintptr
}

type executeArgs struct {
	_ structs.HostLayout
	head
	executable cptr
	options    *executeOptions
	arguments  cptr // PJRT_Buffer* const* const*, [devices][args]
	numDevices uintptr
	numArgs    uintptr
	outputs    cptr // PJRT_Buffer** const*, [devices][outputs]
	complete   cptr // PJRT_Event**, [devices]
	device     cptr
}

type fromHostArgs struct {
	_ structs.HostLayout
	head
	client       cptr
	data         cptr
	kind         int32
	dims         cptr
	numDims      uintptr
	strides      cptr
	numStrides   uintptr
	semantics    int32
	device       cptr
	memory       cptr
	deviceLayout cptr
	done         cptr // out: PJRT_Event
	buffer       cptr // out
}

// memoryLayout is PJRT_Buffer_MemoryLayout holding the tiled arm of its union.
type memoryLayout struct {
	_ structs.HostLayout
	head
	tiled tiledLayout
	kind  int32 // 0 = tiled
}

type tiledLayout struct {
	_ structs.HostLayout
	head
	minorToMajor cptr
	rank         uintptr
	tileDims     cptr
	tileDimSizes cptr
	numTiles     uintptr
}

type toHostArgs struct {
	_ structs.HostLayout
	head
	src     cptr
	layout  *memoryLayout
	dst     cptr
	dstSize uintptr
	event   cptr // out
}
