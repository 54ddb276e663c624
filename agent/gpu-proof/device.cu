// The program on a card: a kernel that calls a function for each index, one that calls it for each lane of a fill, and one
// that multiplies matrices on the card's tensor cores.
#include <cuda_runtime.h>

#include "program.h"
#include "tensor.h"

namespace {

constexpr size_t kThreads = 128, kWarp = 32;
constexpr size_t kMaxBlocks = 1 << 30;

// Maps driver errors to the agent's fault codes.
const char* codeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "VRAM_UNAVAILABLE";
    // The fabric manager of the NVSwitches is not ready.
    case cudaErrorSystemNotReady:
      return "FABRIC_NOT_READY";
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInvalidDevice:
      return "DEVICE_ABSENT";
    default:
      return "GPU_PROOF_FAILED";
  }
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw proof::Fault{codeOf(error), cudaGetErrorString(error)};
}

template <class Work>
__global__ void each(size_t count, Work work) {
  const size_t index = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (index < count) work(index);
}

// The threads of a warp.
struct Warp {
  __device__ size_t first() const { return threadIdx.x % kWarp; }
  __device__ size_t step() const { return kWarp; }
  __device__ void sync() const { __syncwarp(); }
};

template <class Work>
__global__ void lanes(size_t count, Work work) {
  __shared__ uint64_t mixed[kThreads / kWarp][proof::kFillWords];
  const size_t warp = threadIdx.x / kWarp, lane = blockIdx.x * (kThreads / kWarp) + warp;
  if (lane < count) work(Warp{}, lane, mixed[warp]);
}

// Returns the card's UUID in the format of nvidia-smi.
std::string textOf(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int at = 0; at < 16; at++) {
    char two[3];
    snprintf(two, sizeof two, "%02x", uint8_t(uuid.bytes[at]));
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    text += two;
  }
  return text;
}

class Device {
 public:
  explicit Device(const std::vector<std::string>& words) {
    if (words.size() != 1) proof::refuse("the arguments name no card");
    const std::string& uuid = words[0];
    int count = 0;
    check(cudaGetDeviceCount(&count));
    if (count != 1) throw proof::Fault{"DEVICE_ABSENT", std::to_string(count) + " cards are in the container"};
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0));
    const std::string present = textOf(properties.uuid);
    if (present != uuid) throw proof::Fault{"UUID_MISMATCH", present + " is in the container"};
    cudaFuncAttributes compiled;
    check(cudaFuncGetAttributes(&compiled, proof::tensorProduct));
    hasTensorCores_ = compiled.binaryVersion >= proof::kTensorVersion;
    if (hasTensorCores_) {
      const auto limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
      check(cudaFuncSetAttribute(proof::tensorProduct, limit, proof::kTensorSharedBytes));
    }
  }
  ~Device() {
    for (void* memory : taken_) cudaFree(memory);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  template <class T>
  T* take(size_t count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(T)));
    taken_.push_back(memory);
    return static_cast<T*>(memory);
  }
  template <class T>
  void put(T* there, const T& value) {
    check(cudaMemcpy(there, &value, sizeof(T), cudaMemcpyHostToDevice));
  }
  template <class T>
  std::vector<T> get(const T* there, size_t count) {
    std::vector<T> here(count);
    check(cudaMemcpy(here.data(), there, count * sizeof(T), cudaMemcpyDeviceToHost));
    return here;
  }
  // Memory of the fill. A card has no other storage.
  template <class T>
  T* takeStored(size_t count) { return take<T>(count); }
  void store() {}
  std::vector<uint8_t> stored(const uint64_t* there, size_t bytes) {
    return get(reinterpret_cast<const uint8_t*>(there), bytes);
  }
  template <class Work>
  void each(size_t count, const Work& work) {
    ::each<<<blocksFor(count, kThreads), kThreads>>>(count, work);
    finish();
  }
  // C = A·B, with A by row and B by column.
  void multiply(const uint8_t* a, const uint8_t* b, size_t n, int32_t* c) {
    if (!hasTensorCores_) return each(n * n / (proof::kTile * proof::kTile), proof::Multiply{a, b, n, c});
    const size_t across = (n + proof::kTensorTile - 1) / proof::kTensorTile;
    const unsigned blocks = blocksFor(across * across, 1);
    proof::tensorProduct<<<blocks, proof::kTensorThreads, proof::kTensorSharedBytes>>>(a, b, n, c);
    finish();
  }
  template <class Work>
  void lanes(size_t count, const Work& work) {
    ::lanes<<<blocksFor(count, kThreads / kWarp), kThreads>>>(count, work);
    finish();
  }

 private:
  static unsigned blocksFor(size_t count, size_t perBlock) {
    const size_t blocks = (count + perBlock - 1) / perBlock;
    if (blocks > kMaxBlocks) throw proof::Fault{"GPU_PROOF_FAILED", "more work than a card takes at once"};
    return unsigned(blocks);
  }
  static void finish() {
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
  }
  bool hasTensorCores_ = false;
  std::vector<void*> taken_;
};

}  // namespace

int main(int count, char** arguments) { return proof::run<Device>(count, arguments); }
