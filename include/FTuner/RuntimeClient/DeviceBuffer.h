//===- DeviceBuffer.h - Memory of a GPU with guard bands --------*- C++ -*-===//
#ifndef FTUNER_RUNTIMECLIENT_DEVICEBUFFER_H
#define FTUNER_RUNTIMECLIENT_DEVICEBUFFER_H

#include "FTuner/RuntimeClient/RuntimeLibrary.h"

#include <vector>

namespace ftuner {

/// Memory on a stream's device. Around it are bands of known bytes; `offset`
/// moves it off its alignment to 256 bytes.
class DeviceBuffer {
public:
  /// Filled with `data`, or with 0xff bytes (NaN) where that is null, once the
  /// stream comes to it. The stream and the library must outlive the buffer.
  static llvm::Expected<DeviceBuffer> create(const RuntimeLibrary &library,
                                             void *stream, int64_t bytes,
                                             int64_t offset, const char *data);
  DeviceBuffer(DeviceBuffer &&other);
  DeviceBuffer &operator=(DeviceBuffer &&) = delete;
  ~DeviceBuffer();

  char *data() const { return memory + begin; }

  /// Starts to copy the whole of it to the host; complete when the stream is
  /// synchronized.
  llvm::Error download();
  /// The content as downloaded.
  const char *content() const { return mirror.data() + begin; }
  /// Whether nobody wrote into the bands, as downloaded.
  bool isIntact() const;

private:
  DeviceBuffer(const RuntimeLibrary &library, void *stream, int64_t bytes,
               int64_t offset);

  const RuntimeLibrary *library;
  void *stream;
  int64_t bytes;
  int64_t begin;            ///< Where the data is in the memory.
  char *memory = nullptr;   ///< On the device, as large as the mirror.
  std::vector<char> mirror; ///< On the host.
};

} // namespace ftuner

#endif // FTUNER_RUNTIMECLIENT_DEVICEBUFFER_H
