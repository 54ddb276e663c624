// The program on a host, single-threaded: proves memory, or a disk by a file at a path. In tests it takes the place of a
// card: it accepts any UUID.
//   proof memory | proof disk PATH | proof UUID
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "program.h"

namespace {

struct OneThread {
  size_t first() const { return 0; }
  size_t step() const { return 1; }
  void sync() const {}
};

[[noreturn]] void fail(const char* what) { throw proof::Fault{"GPU_PROOF_FAILED", std::string(what) + ": " + strerror(errno)}; }

class Host {
 public:
  explicit Host(const std::vector<std::string>& place) {
    if (place.size() == 1 && place[0] != "disk") return;
    if (place.size() != 2 || place[0] != "disk") proof::refuse("neither memory nor disk");
    file_ = open(place[1].c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file_ < 0) fail("the file was not created");
    // Nothing is left behind when the program is killed.
    unlink(place[1].c_str());
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  template <class T>
  T* take(size_t count) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, count * sizeof(T)) != 0) {
      throw proof::Fault{"VRAM_UNAVAILABLE", "out of memory"};
    }
    taken_.emplace_back(memory, free);
    return static_cast<T*>(memory);
  }
  // Memory of the fill, or the file mapped into memory.
  template <class T>
  T* takeStored(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (file_ < 0) return take<T>(count);
    errno = posix_fallocate(file_, 0, off_t(bytes));
    if (errno != 0) fail("the disk has too little space");
    mapped_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (mapped_ == MAP_FAILED) fail("the file was not mapped");
    mappedBytes_ = bytes;
    return static_cast<T*>(mapped_);
  }
  // Writes the file to the disk. Later reads bypass the page cache where the file system allows it.
  void store() {
    if (file_ < 0) return;
    if (msync(mapped_, mappedBytes_, MS_SYNC) != 0 || fsync(file_) != 0) fail("the file was not written");
    // Mapped pages stay in the page cache.
    madvise(mapped_, mappedBytes_, MADV_DONTNEED);
    posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
    const std::string again = "/proc/self/fd/" + std::to_string(file_);
    const int direct = open(again.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (direct >= 0 && pread(direct, buffer(), proof::kLeafBytes, 0) == ssize_t(proof::kLeafBytes)) file_ = direct;
  }
  std::vector<uint8_t> stored(const uint64_t* there, size_t bytes) {
    const uint8_t* from = reinterpret_cast<const uint8_t*>(there);
    if (file_ < 0) return std::vector<uint8_t>(from, from + bytes);
    const off_t at = off_t(from - static_cast<uint8_t*>(mapped_));
    if (bytes != proof::kLeafBytes || pread(file_, buffer(), bytes, at) != ssize_t(bytes)) fail("the file was not read");
    return std::vector<uint8_t>(buffer(), buffer() + bytes);
  }
  template <class T>
  void put(T* there, const T& value) { *there = value; }
  template <class T>
  std::vector<T> get(const T* there, size_t count) { return std::vector<T>(there, there + count); }
  template <class Work>
  void each(size_t count, const Work& work) {
    for (size_t index = 0; index < count; index++) work(index);
  }
  void multiply(const uint8_t* a, const uint8_t* b, size_t n, int32_t* c) {
    each(n * n / (proof::kTile * proof::kTile), proof::Multiply{a, b, n, c});
  }
  template <class Work>
  void lanes(size_t count, const Work& work) {
    uint64_t mixed[proof::kFillWords];
    for (size_t lane = 0; lane < count; lane++) work(OneThread{}, lane, mixed);
  }

 private:
  // Direct reads need memory that is aligned to pages.
  uint8_t* buffer() { return buffer_; }
  alignas(4096) uint8_t buffer_[proof::kLeafBytes];
  int file_ = -1;
  void* mapped_ = nullptr;
  size_t mappedBytes_ = 0;
  std::vector<std::unique_ptr<void, void (*)(void*)>> taken_;
};

}  // namespace

int main(int count, char** arguments) { return proof::run<Host>(count, arguments); }
