//===- Gpu.cpp - A GPU through libftrt ------------------------------------===//
#include "FTuner/RuntimeClient/Gpu.h"
#include "FTuner/RuntimeClient/ImageArchitecture.h"

#include <utility>

namespace ftuner {

//===----------------------------------------------------------------------===//
// The GPU
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Gpu>>
Gpu::create(const std::string &runtimeLibrary) {
  auto library = RuntimeLibrary::open(runtimeLibrary);
  if (!library)
    return library.takeError();
  std::unique_ptr<Gpu> gpu(new Gpu(*library));
  if (llvm::Error error = library->check(library->device_select(kDevice)))
    return error;
  if (llvm::Error error = library->check(library->stream_create(&gpu->stream)))
    return error;
  return gpu;
}

Gpu::~Gpu() {
  if (stream)
    (void)library.stream_destroy(stream);
}

llvm::Expected<std::string> Gpu::describe() const {
  // Of cuda.h's CUdevice_attribute.
  constexpr int32_t kComputeCapabilityMajor = 75;
  constexpr int32_t kComputeCapabilityMinor = 76;
  char name[256] = "";
  int32_t major = 0, minor = 0;
  if (llvm::Error error =
          library.check(library.device_name(kDevice, name, sizeof(name))))
    return error;
  if (llvm::Error error = library.check(
          library.device_attribute(kDevice, kComputeCapabilityMajor, &major)))
    return error;
  if (llvm::Error error = library.check(
          library.device_attribute(kDevice, kComputeCapabilityMinor, &minor)))
    return error;
  return (llvm::Twine(name) + " (sm_" + llvm::Twine(10 * major + minor) + ")")
      .str();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

PtxKernels::PtxKernels(const RuntimeLibrary &library, PtxImages ptxImages,
                       llvm::StringRef moduleName)
    : library(library), ptx(std::move(ptxImages)), name(moduleName.str()) {
  auto addImage = [&](const PtxModule &image) {
    images.push_back({FTRT_IMAGE_PTX,
                      toImageArchitecture(image.target.architecture),
                      image.text.c_str(), image.text.size() + 1});
  };
  addImage(ptx.own);
  if (ptx.portable)
    addImage(*ptx.portable);
  for (llvm::StringRef entry : ptx.entries())
    entries.push_back(entry.str());
  kernels.reserve(entries.size());
  for (const std::string &entry : entries) {
    kernels.push_back({entry.c_str(), &module, nullptr});
    pointers.push_back(&kernels.back());
    byName[entry] = &kernels.back();
  }
  module = {FTRT_ABI_VERSION,
            static_cast<uint32_t>(images.size()),
            name.c_str(),
            images.data(),
            pointers.data(),
            pointers.size(),
            "{}",
            nullptr};
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

llvm::Expected<GpuEvent> GpuEvent::create(const RuntimeLibrary &library) {
  GpuEvent event(library);
  if (llvm::Error error = library.check(library.event_create(&event.event)))
    return error;
  return event;
}

GpuEvent::GpuEvent(GpuEvent &&other)
    : library(other.library), event(std::exchange(other.event, nullptr)) {}

GpuEvent::~GpuEvent() {
  if (event)
    (void)library->event_destroy(event);
}

llvm::Error GpuEvent::record(void *stream) {
  return library->check(library->event_record(event, stream));
}

llvm::Expected<double> GpuEvent::since(const GpuEvent &start) const {
  double microseconds = 0;
  if (llvm::Error error = library->check(
          library->event_elapsed(start.event, event, &microseconds)))
    return error;
  return microseconds;
}

} // namespace ftuner
