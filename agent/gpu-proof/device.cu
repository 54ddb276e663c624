// The program on a card: one kernel that calls a function for each index.
#include <cuda_runtime.h>

#include "program.h"

namespace {

constexpr size_t kThreads = 128;
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
  explicit Device(const std::string& uuid) {
    int count = 0;
    check(cudaGetDeviceCount(&count));
    if (count != 1) throw proof::Fault{"DEVICE_ABSENT", std::to_string(count) + " cards are in the container"};
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0));
    const std::string present = textOf(properties.uuid);
    if (present != uuid) throw proof::Fault{"UUID_MISMATCH", present + " is in the container"};
    check(cudaSetDevice(0));
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
  template <class Work>
  void each(size_t count, const Work& work) {
    const size_t blocks = (count + kThreads - 1) / kThreads;
    if (blocks > kMaxBlocks) throw proof::Fault{"GPU_PROOF_FAILED", "more work than a card takes at once"};
    ::each<<<unsigned(blocks), kThreads>>>(count, work);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
  }

 private:
  std::vector<void*> taken_;
};

}  // namespace

int main(int count, char** arguments) { return proof::run<Device>(count, arguments); }
