// Memory on a cache-line boundary.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace incipit::kernels {

class AlignedMemory {
 public:
  AlignedMemory() = default;

  // Not initialised. Throws std::bad_alloc.
  explicit AlignedMemory(std::size_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new(bytes, alignment))), size_(bytes) {}

  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Makes room for `bytes`; what was in it is lost if it has to move. Throws std::bad_alloc.
  void require(std::size_t bytes) {
    if (bytes > size_) *this = AlignedMemory(bytes + bytes / 4);
  }

 private:
  static constexpr std::align_val_t alignment{64};

  struct Free {
    void operator()(std::byte* bytes) const noexcept { ::operator delete(bytes, alignment); }
  };

  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_ = 0;
};

}  // namespace incipit::kernels
