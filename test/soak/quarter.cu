// The proof program on a quarter of a card. A green context restricts its kernels to a quarter of the multiprocessors, as a
// provider could who sells one card several times.
#include <cuda.h>

#define main proofMain
#include "../../agent/gpu-proof/device.cu"
#undef main

namespace {

// The driver's functions are looked up at run time: a compiler may have no library to link with.
template <class Function>
Function* driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  if (cudaGetDriverEntryPointByVersion(name, &found, 12050, cudaEnableDefault, &result) != cudaSuccess || found == nullptr) {
    fprintf(stderr, "the driver has no %s\n", name);
    exit(2);
  }
  return reinterpret_cast<Function*>(found);
}
#define DRIVER(function) driver<decltype(function)>(#function)

void must(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "the driver refused a part of the card: error %d\n", int(result));
  exit(2);
}

// The driver divides multiprocessors by eights.
constexpr unsigned kUnit = 8;

void restrictToQuarter() {
  must(DRIVER(cuInit)(0));
  CUdevice card;
  must(DRIVER(cuDeviceGet)(&card, 0));
  CUdevResource all, part, rest;
  must(DRIVER(cuDeviceGetDevResource)(card, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned groups = 1;
  const unsigned quarter = all.sm.smCount / (4 * kUnit) * kUnit;
  must(DRIVER(cuDevSmResourceSplitByCount)(&part, &groups, &all, &rest, 0, quarter));
  CUdevResourceDesc description;
  must(DRIVER(cuDevResourceGenerateDesc)(&description, &part, 1));
  CUgreenCtx green;
  must(DRIVER(cuGreenCtxCreate)(&green, description, card, CU_GREEN_CTX_DEFAULT_STREAM));
  CUcontext context;
  must(DRIVER(cuCtxFromGreenCtx)(&context, green));
  must(DRIVER(cuCtxSetCurrent)(context));
}

}  // namespace

int main(int count, char** arguments) {
  restrictToQuarter();
  return proofMain(count, arguments);
}
