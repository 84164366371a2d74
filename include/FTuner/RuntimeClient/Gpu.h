//===- Gpu.h - A GPU through libftrt ----------------------------*- C++ -*-===//
#ifndef FTUNER_RUNTIMECLIENT_GPU_H
#define FTUNER_RUNTIMECLIENT_GPU_H

#include "FTuner/PTX/PTX.h"
#include "FTuner/RuntimeClient/RuntimeLibrary.h"

#include "llvm/ADT/StringMap.h"
#include <memory>
#include <string>
#include <vector>

namespace ftuner {

/// A GPU, selected, with a stream of its own.
class Gpu {
public:
  /// The first one; CUDA_VISIBLE_DEVICES chooses which that is. An error says
  /// what was looked for where there is no libftrt, no driver or no GPU.
  static llvm::Expected<std::unique_ptr<Gpu>>
  create(const std::string &runtimeLibrary);
  Gpu(const Gpu &) = delete;
  ~Gpu();

  /// E.g. "NVIDIA H200 (sm_90)".
  llvm::Expected<std::string> describe() const;
  llvm::Error synchronize() const {
    return library.check(library.stream_synchronize(stream));
  }

  RuntimeLibrary library;
  void *stream = nullptr;

private:
  static constexpr int32_t kDevice = 0;
  explicit Gpu(const RuntimeLibrary &library) : library(library) {}
};

/// The kernels of a module as libftrt takes them: PTX, in one or two images.
class PtxKernels {
public:
  /// `name` is for the messages of the runtime. The library outlives them.
  PtxKernels(const RuntimeLibrary &library, PtxImages ptx,
             llvm::StringRef name);
  // The runtime keeps pointers to the members.
  PtxKernels(const PtxKernels &) = delete;
  ~PtxKernels() { (void)library.release(&module); }

  /// Loads all kernels on the stream's device.
  llvm::Error prepare(void *stream) {
    return library.check(library.prepare(&module, stream));
  }
  /// ftrt_image_is_exact() of the module.
  int32_t isExact(void *stream, int32_t *exact) const {
    return library.image_is_exact(&module, stream, exact);
  }
  /// The kernel of that name, or null.
  ftrt_kernel *find(llvm::StringRef name) const { return byName.lookup(name); }

private:
  const RuntimeLibrary &library;
  PtxImages ptx;
  std::string name;
  std::vector<ftrt_image> images;
  std::vector<std::string> entries;
  std::vector<ftrt_kernel> kernels;
  std::vector<ftrt_kernel *> pointers;
  llvm::StringMap<ftrt_kernel *> byName;
  ftrt_module module;
};

/// A point of a stream; what lies between two can be timed.
class GpuEvent {
public:
  static llvm::Expected<GpuEvent> create(const RuntimeLibrary &library);
  GpuEvent(GpuEvent &&other);
  GpuEvent &operator=(GpuEvent &&) = delete;
  ~GpuEvent();

  llvm::Error record(void *stream);
  /// Microseconds from there to here; waits until the GPU has come here.
  llvm::Expected<double> since(const GpuEvent &start) const;

private:
  explicit GpuEvent(const RuntimeLibrary &library) : library(&library) {}

  const RuntimeLibrary *library;
  void *event = nullptr;
};

} // namespace ftuner

#endif // FTUNER_RUNTIMECLIENT_GPU_H
