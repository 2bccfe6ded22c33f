/* NVIDIA's driver on a machine without one: eight H100s, as far as NVML is asked about them, and no
   device for the driver's own calls. Under both names: libnvidia-ml.so.1 and libcuda.so.1. */
#include <stdio.h>

typedef struct {
    unsigned long long total, free, used;
} Memory;

static int devices[8];

int nvmlInit(void) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 8; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &devices[index]; return 0; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) { *major = 9; *minor = 0; return 0; }
int nvmlDeviceGetName(void *device, char *name, unsigned size) { snprintf(name, size, "NVIDIA H100 80GB HBM3"); return 0; }
int nvmlDeviceGetUUID(void *device, char *name, unsigned size) { snprintf(name, size, "GPU-%d", (int)((int *)device - devices)); return 0; }
int nvmlDeviceGetMemoryInfo(void *device, Memory *found) { found->total = found->free = 80ULL << 30; found->used = 0; return 0; }
int nvmlDeviceGetP2PStatus(void *one, void *other, int index, int *status) { *status = 0; return 0; }

#define NO_DEVICE(name) int name(void) { return 100; }
NO_DEVICE(cuCtxGetCurrent) NO_DEVICE(cuCtxSetCurrent) NO_DEVICE(cuDeviceGetAttribute)
NO_DEVICE(cuDevicePrimaryCtxRetain) NO_DEVICE(cuGetErrorString) NO_DEVICE(cuGetProcAddress_v2)
NO_DEVICE(cuMemAddressFree) NO_DEVICE(cuMemAddressReserve) NO_DEVICE(cuMemCreate)
NO_DEVICE(cuMemGetAllocationGranularity) NO_DEVICE(cuMemMap) NO_DEVICE(cuMemRelease)
NO_DEVICE(cuMemSetAccess) NO_DEVICE(cuMemUnmap) NO_DEVICE(cuPointerGetAttribute)
NO_DEVICE(cuTensorMapEncodeTiled)
