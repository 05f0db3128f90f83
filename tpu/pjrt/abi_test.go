package pjrt

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cStructs are the C structs of pjrt_c_api.h and pjrt_c_api_layouts_extension.h of API 0.114 as a C compiler
// lays them out on amd64: X_STRUCT_SIZE and the offset of every leaf field (a union counts as its first arm).
var cStructs = []struct {
	c       string
	typ     reflect.Type
	got     uintptr
	size    uintptr
	offsets []uintptr
}{
	{"PJRT_Plugin_Initialize_Args", reflect.TypeFor[head](), structSize[head](), 16, []uintptr{0, 8}},
	{"PJRT_Error_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Event_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Event_Error_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Client_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Executable_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_LoadedExecutable_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Buffer_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Buffer_Delete_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_TopologyDescription_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Layouts_MemoryLayout_Destroy_Args", reflect.TypeFor[objArgs](), structSize[objArgs](), 24, []uintptr{0, 8, 16}},
	{"PJRT_Device_GetDescription_Args", reflect.TypeFor[objOut](), structSize[objOut](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_LoadedExecutable_GetExecutable_Args", reflect.TypeFor[objOut](), structSize[objOut](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_Buffer_ReadyEvent_Args", reflect.TypeFor[objOut](), structSize[objOut](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_Buffer_UnsafePointer_Args", reflect.TypeFor[objOut](), structSize[objOut](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args", reflect.TypeFor[objOut](), structSize[objOut](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_Error_GetCode_Args", reflect.TypeFor[objInt32](), structSize[objInt32](), 28, []uintptr{0, 8, 16, 24}},
	{"PJRT_DeviceDescription_Id_Args", reflect.TypeFor[objInt32](), structSize[objInt32](), 28, []uintptr{0, 8, 16, 24}},
	{"PJRT_Buffer_ElementType_Args", reflect.TypeFor[objInt32](), structSize[objInt32](), 28, []uintptr{0, 8, 16, 24}},
	{"PJRT_Event_IsReady_Args", reflect.TypeFor[objBool](), structSize[objBool](), 25, []uintptr{0, 8, 16, 24}},
	{"PJRT_Buffer_IsDeleted_Args", reflect.TypeFor[objBool](), structSize[objBool](), 25, []uintptr{0, 8, 16, 24}},
	{"PJRT_Executable_NumOutputs_Args", reflect.TypeFor[objSize](), structSize[objSize](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_Executable_NumPartitions_Args", reflect.TypeFor[objSize](), structSize[objSize](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_Buffer_OnDeviceSizeInBytes_Args", reflect.TypeFor[objSize](), structSize[objSize](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_Error_Message_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Client_PlatformName_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Client_PlatformVersion_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Client_AddressableDevices_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_DeviceDescription_Kind_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_DeviceDescription_ToString_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Executable_Name_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Executable_Fingerprint_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Executable_OutputElementTypes_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_LoadedExecutable_AddressableDevices_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Buffer_Dimensions_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_TopologyDescription_PlatformName_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_TopologyDescription_PlatformVersion_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_TopologyDescription_GetDeviceDescriptions_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_TopologyDescription_Attributes_Args", reflect.TypeFor[objArray](), structSize[objArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_DeviceDescription_Attributes_Args", reflect.TypeFor[objCountArray](), structSize[objCountArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Executable_GetCostAnalysis_Args", reflect.TypeFor[objCountArray](), structSize[objCountArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args", reflect.TypeFor[objCountArray](), structSize[objCountArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args", reflect.TypeFor[objCountArray](), structSize[objCountArray](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Event_OnReady_Args", reflect.TypeFor[eventOnReadyArgs](), structSize[eventOnReadyArgs](), 40, []uintptr{0, 8, 16, 24, 32}},
	{"PJRT_Plugin_Attributes_Args", reflect.TypeFor[pluginAttributesArgs](), structSize[pluginAttributesArgs](), 32, []uintptr{0, 8, 16, 24}},
	{"PJRT_NamedValue", reflect.TypeFor[namedValue](), structSize[namedValue](), 56, []uintptr{0, 8, 16, 24, 32, 40, 48}},
	{"PJRT_Client_Create_Args", reflect.TypeFor[clientCreateArgs](), structSize[clientCreateArgs](), 88, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80}},
	{"PJRT_TopologyDescription_Create_Args", reflect.TypeFor[topologyCreateArgs](), structSize[topologyCreateArgs](), 56, []uintptr{0, 8, 16, 24, 32, 40, 48}},
	{"PJRT_Program", reflect.TypeFor[program](), structSize[program](), 48, []uintptr{0, 8, 16, 24, 32, 40}},
	{"PJRT_Client_Compile_Args", reflect.TypeFor[clientCompileArgs](), structSize[clientCompileArgs](), 56, []uintptr{0, 8, 16, 24, 32, 40, 48}},
	{"PJRT_Compile_Args", reflect.TypeFor[compileArgs](), structSize[compileArgs](), 64, []uintptr{0, 8, 16, 24, 32, 40, 48, 56}},
	{"PJRT_Executable_Serialize_Args", reflect.TypeFor[serializeArgs](), structSize[serializeArgs](), 56, []uintptr{0, 8, 16, 24, 32, 40, 48}},
	{"PJRT_Layouts_MemoryLayout_Serialize_Args", reflect.TypeFor[serializeArgs](), structSize[serializeArgs](), 56, []uintptr{0, 8, 16, 24, 32, 40, 48}},
	{"PJRT_Executable_DeserializeAndLoad_Args", reflect.TypeFor[deserializeArgs](), structSize[deserializeArgs](), 72, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64}},
	{"PJRT_Executable_OutputDimensions_Args", reflect.TypeFor[outputDimsArgs](), structSize[outputDimsArgs](), 48, []uintptr{0, 8, 16, 24, 32, 40}},
	{"PJRT_Executable_GetCompiledMemoryStats_Args", reflect.TypeFor[memoryStatsArgs](), structSize[memoryStatsArgs](), 144, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136}},
	{"PJRT_ExecuteOptions", reflect.TypeFor[executeOptions](), structSize[executeOptions](), 144, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136}},
	{"PJRT_LoadedExecutable_Execute_Args", reflect.TypeFor[executeArgs](), structSize[executeArgs](), 80, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72}},
	{"PJRT_Client_BufferFromHostBuffer_Args", reflect.TypeFor[fromHostArgs](), structSize[fromHostArgs](), 120, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112}},
	{"PJRT_Buffer_MemoryLayout_Tiled", reflect.TypeFor[tiledLayout](), structSize[tiledLayout](), 56, []uintptr{0, 8, 16, 24, 32, 40, 48}},
	{"PJRT_Buffer_MemoryLayout", reflect.TypeFor[memoryLayout](), structSize[memoryLayout](), 76, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72}},
	{"PJRT_Buffer_ToHostBuffer_Args", reflect.TypeFor[toHostArgs](), structSize[toHostArgs](), 56, []uintptr{0, 8, 16, 24, 32, 40, 48}},
	{"PJRT_Layouts_Extension", reflect.TypeFor[layoutsExt](), structSize[layoutsExt](), 80, []uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72}},
	{"PJRT_Extension_Base", reflect.TypeFor[extHead](), structSize[extHead](), 24, []uintptr{0, 8, 16}},
}

func TestStructsMatchTheHeader(t *testing.T) {
	for _, s := range cStructs {
		t.Run(s.c, func(t *testing.T) {
			require.Equal(t, s.size, s.got)
			require.Equal(t, s.offsets, leafOffsets(s.typ, 0))
		})
	}
}

// leafOffsets lists the offsets of the fields that are no structs, depth first.
func leafOffsets(t reflect.Type, base uintptr) []uintptr {
	var out []uintptr
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, leafOffsets(f.Type, base+f.Offset)...)
		} else {
			out = append(out, base+f.Offset)
		}
	}
	return out
}

// cFunctions is the order of the function table in struct PJRT_Api, the same in API 0.90 and 0.114.
const cFunctions = `
	PJRT_Error_Destroy PJRT_Error_Message PJRT_Error_GetCode
	PJRT_Plugin_Initialize PJRT_Plugin_Attributes PJRT_Event_Destroy
	PJRT_Event_IsReady PJRT_Event_Error PJRT_Event_Await
	PJRT_Event_OnReady PJRT_Client_Create PJRT_Client_Destroy
	PJRT_Client_PlatformName PJRT_Client_ProcessIndex PJRT_Client_PlatformVersion
	PJRT_Client_Devices PJRT_Client_AddressableDevices PJRT_Client_LookupDevice
	PJRT_Client_LookupAddressableDevice PJRT_Client_AddressableMemories PJRT_Client_Compile
	PJRT_Client_DefaultDeviceAssignment PJRT_Client_BufferFromHostBuffer PJRT_DeviceDescription_Id
	PJRT_DeviceDescription_ProcessIndex PJRT_DeviceDescription_Attributes PJRT_DeviceDescription_Kind
	PJRT_DeviceDescription_DebugString PJRT_DeviceDescription_ToString PJRT_Device_GetDescription
	PJRT_Device_IsAddressable PJRT_Device_LocalHardwareId PJRT_Device_AddressableMemories
	PJRT_Device_DefaultMemory PJRT_Device_MemoryStats PJRT_Memory_Id
	PJRT_Memory_Kind PJRT_Memory_DebugString PJRT_Memory_ToString
	PJRT_Memory_AddressableByDevices PJRT_Executable_Destroy PJRT_Executable_Name
	PJRT_Executable_NumReplicas PJRT_Executable_NumPartitions PJRT_Executable_NumOutputs
	PJRT_Executable_SizeOfGeneratedCodeInBytes PJRT_Executable_GetCostAnalysis PJRT_Executable_OutputMemoryKinds
	PJRT_Executable_OptimizedProgram PJRT_Executable_Serialize PJRT_LoadedExecutable_Destroy
	PJRT_LoadedExecutable_GetExecutable PJRT_LoadedExecutable_AddressableDevices PJRT_LoadedExecutable_Delete
	PJRT_LoadedExecutable_IsDeleted PJRT_LoadedExecutable_Execute PJRT_Executable_DeserializeAndLoad
	PJRT_LoadedExecutable_Fingerprint PJRT_Buffer_Destroy PJRT_Buffer_ElementType
	PJRT_Buffer_Dimensions PJRT_Buffer_UnpaddedDimensions PJRT_Buffer_DynamicDimensionIndices
	PJRT_Buffer_GetMemoryLayout PJRT_Buffer_OnDeviceSizeInBytes PJRT_Buffer_Device
	PJRT_Buffer_Memory PJRT_Buffer_Delete PJRT_Buffer_IsDeleted
	PJRT_Buffer_CopyToDevice PJRT_Buffer_ToHostBuffer PJRT_Buffer_IsOnCpu
	PJRT_Buffer_ReadyEvent PJRT_Buffer_UnsafePointer PJRT_Buffer_IncreaseExternalReferenceCount
	PJRT_Buffer_DecreaseExternalReferenceCount PJRT_Buffer_OpaqueDeviceMemoryDataPointer PJRT_CopyToDeviceStream_Destroy
	PJRT_CopyToDeviceStream_AddChunk PJRT_CopyToDeviceStream_TotalBytes PJRT_CopyToDeviceStream_GranuleSize
	PJRT_CopyToDeviceStream_CurrentBytes PJRT_TopologyDescription_Create PJRT_TopologyDescription_Destroy
	PJRT_TopologyDescription_PlatformName PJRT_TopologyDescription_PlatformVersion PJRT_TopologyDescription_GetDeviceDescriptions
	PJRT_TopologyDescription_Serialize PJRT_TopologyDescription_Attributes PJRT_Compile
	PJRT_Executable_OutputElementTypes PJRT_Executable_OutputDimensions PJRT_Buffer_CopyToMemory
	PJRT_Client_CreateViewOfDeviceBuffer PJRT_Executable_Fingerprint PJRT_Client_TopologyDescription
	PJRT_Executable_GetCompiledMemoryStats`

func TestSlotsMatchTheHeader(t *testing.T) {
	order := strings.Fields(cFunctions)
	for s, name := range slotNames {
		require.Less(t, int(s), len(order), name)
		require.Equal(t, order[s], name, "slot %d", s)
	}
}

func TestMissingFunction(t *testing.T) {
	api := &apiHead{size: structSize[apiHead]()}
	api.version.minor = 95
	p := &Plugin{api: api}
	_, err := p.fn(fnExecutableMemoryStats)
	require.EqualError(t, err, "PJRT_Executable_GetCompiledMemoryStats: UNIMPLEMENTED: the plugin (PJRT API 0.95) does not have this function")
	require.ErrorContains(t, p.check(), "its function table has 40 bytes")
	api.size = 1000
	require.NoError(t, p.check())
	api.version.major = 1
	require.ErrorContains(t, p.check(), "it speaks PJRT API 1.95, want 0.90 or newer")
}
