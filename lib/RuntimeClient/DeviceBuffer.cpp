//===- DeviceBuffer.cpp - Memory of a GPU with guard bands ----------------===//
#include "FTuner/RuntimeClient/DeviceBuffer.h"

#include <algorithm>
#include <utility>

namespace ftuner {

/// Multiple of the alignment of device memory.
static constexpr int64_t kGuardBytes = 4096;
static constexpr char kPoison = static_cast<char>(0xff);

DeviceBuffer::DeviceBuffer(const RuntimeLibrary &library, void *stream,
                           int64_t bytes, int64_t offset)
    : library(&library), stream(stream), bytes(bytes),
      begin(kGuardBytes + offset),
      mirror(begin + bytes + kGuardBytes, kPoison) {}

DeviceBuffer::DeviceBuffer(DeviceBuffer &&other)
    : library(other.library), stream(other.stream), bytes(other.bytes),
      begin(other.begin), memory(std::exchange(other.memory, nullptr)),
      mirror(std::move(other.mirror)) {}

DeviceBuffer::~DeviceBuffer() {
  // Nobody could do anything about a failure; later calls report it.
  if (memory)
    (void)library->memory_free(memory, stream);
}

llvm::Expected<DeviceBuffer> DeviceBuffer::create(const RuntimeLibrary &library,
                                                  void *stream, int64_t bytes,
                                                  int64_t offset,
                                                  const char *data) {
  DeviceBuffer buffer(library, stream, bytes, offset);
  if (data)
    std::copy_n(data, bytes, buffer.mirror.data() + buffer.begin);
  void *memory = nullptr;
  if (llvm::Error error = library.check(
          library.memory_allocate(buffer.mirror.size(), stream, &memory)))
    return error;
  buffer.memory = static_cast<char *>(memory);
  if (llvm::Error error = library.check(library.memory_copy(
          memory, buffer.mirror.data(), buffer.mirror.size(), stream)))
    return error;
  return buffer;
}

llvm::Error DeviceBuffer::download() {
  return library->check(
      library->memory_copy(mirror.data(), memory, mirror.size(), stream));
}

bool DeviceBuffer::isIntact() const {
  auto isPoison = [](char byte) { return byte == kPoison; };
  auto data = mirror.begin() + begin;
  return std::all_of(mirror.begin(), data, isPoison) &&
         std::all_of(data + bytes, mirror.end(), isPoison);
}

} // namespace ftuner
