// The program on a host, single-threaded, for tests against shared/proof-of-work. It proves nothing: it accepts any UUID.
#include <memory>

#include "program.h"

class Host {
 public:
  explicit Host(const std::string&) {}
  template <class T>
  T* take(size_t count) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, count * sizeof(T)) != 0) {
      throw proof::Fault{"VRAM_UNAVAILABLE", "out of memory"};
    }
    taken_.emplace_back(memory, free);
    return static_cast<T*>(memory);
  }
  template <class T>
  void put(T* there, const T& value) { *there = value; }
  template <class T>
  std::vector<T> get(const T* there, size_t count) { return std::vector<T>(there, there + count); }
  template <class Work>
  void each(size_t count, const Work& work) {
    for (size_t index = 0; index < count; index++) work(index);
  }

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> taken_;
};

int main(int count, char** arguments) { return proof::run<Host>(count, arguments); }
