//===- CudaExecutor.cpp - Runs compiled functions on a GPU ----------------===//
#include "DeviceBuffer.h"
#include "FTuner/Executor/Executor.h"
#include "FTuner/Target/PTX.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "HostFunction.h"

#include "llvm/ADT/StringMap.h"
#include <chrono>
#include <cstring>

using namespace mlir;

namespace ftuner {

static llvm::Error runError(const llvm::Twine &text) {
  return llvm::createStringError(text);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// The kernels of a compiled module as libftrt takes them: PTX.
class PtxKernels {
public:
  PtxKernels(const RuntimeLibrary &library, PtxModule ptx, int smVersion)
      : library(library), ptx(std::move(ptx)) {
    image = {FTRT_IMAGE_PTX, static_cast<uint32_t>(smVersion),
             this->ptx.text.c_str(), this->ptx.text.size() + 1};
    kernels.reserve(this->ptx.kernels.size());
    for (const PtxKernel &kernel : this->ptx.kernels) {
      kernels.push_back({kernel.entry.c_str(), &module, nullptr});
      pointers.push_back(&kernels.back());
      byName[kernel.entry] = &kernels.back();
    }
    module = {FTRT_ABI_VERSION, 1,    "ftuner-run", &image, pointers.data(),
              pointers.size(),  "{}", nullptr};
  }
  // The runtime keeps pointers to the members.
  PtxKernels(const PtxKernels &) = delete;
  ~PtxKernels() { (void)library.release(&module); }

  /// Loads all kernels on the stream's device.
  llvm::Error prepare(void *stream) {
    return library.check(library.prepare(&module, stream));
  }
  /// The kernel of that name, or null.
  ftrt_kernel *find(llvm::StringRef name) const { return byName.lookup(name); }

private:
  const RuntimeLibrary &library;
  PtxModule ptx;
  ftrt_image image;
  std::vector<ftrt_kernel> kernels;
  std::vector<ftrt_kernel *> pointers;
  llvm::StringMap<ftrt_kernel *> byName;
  ftrt_module module;
};

/// What host code gets as its stream: launches are noted on their way.
struct RunStream {
  const RuntimeLibrary &library;
  const PtxKernels &kernels;
  void *stream;
  std::vector<LaunchRecord> launches;
};
} // namespace

/// ftrt_launch() as the host code sees it.
static int32_t launchKernel(ftrt_kernel *kernel, uint32_t gridX,
                            uint32_t blockX, uint32_t dynamicSharedBytes,
                            void *stream, void **parameters) {
  auto &run = *static_cast<RunStream *>(stream);
  run.launches.push_back({kernel->name, gridX, blockX, dynamicSharedBytes});
  ftrt_kernel *known = run.kernels.find(kernel->name);
  if (!known) {
    run.library.fail(
        ("unknown kernel '" + std::string(kernel->name) + "'").c_str());
    return FTRT_ERROR_UNKNOWN_KERNEL;
  }
  return run.library.launch(known, gridX, blockX, dynamicSharedBytes,
                            run.stream, parameters);
}

//===----------------------------------------------------------------------===//
// The GPU
//===----------------------------------------------------------------------===//

namespace {
/// A GPU, selected, with a stream of its own.
class Gpu {
public:
  static llvm::Expected<std::unique_ptr<Gpu>>
  create(const std::string &runtimeLibrary);
  ~Gpu() {
    if (stream)
      (void)library.stream_destroy(stream);
  }

  /// E.g. "NVIDIA H200 (sm_90)".
  llvm::Expected<std::string> describe() const;
  llvm::Error synchronize() const {
    return library.check(library.stream_synchronize(stream));
  }

  RuntimeLibrary library;
  void *stream = nullptr;

private:
  /// The first one; CUDA_VISIBLE_DEVICES chooses which that is.
  static constexpr int32_t kDevice = 0;
  explicit Gpu(const RuntimeLibrary &library) : library(library) {}
};
} // namespace

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
// A run
//===----------------------------------------------------------------------===//

namespace {
class CudaExecutor : public Executor {
public:
  CudaExecutor(std::unique_ptr<Gpu> gpu, std::unique_ptr<PtxKernels> kernels,
               HostFunction function, const Signature &signature,
               std::string device, int64_t offset)
      : gpu(std::move(gpu)), kernels(std::move(kernels)),
        function(std::move(function)), signature(signature),
        device(std::move(device)), offset(offset) {}

  llvm::Expected<RunResult>
  run(llvm::ArrayRef<ArgumentValue> arguments) override;

private:
  /// A buffer on the GPU for each tensor, as large as the tensor.
  llvm::Expected<std::vector<DeviceBuffer>>
  createBuffers(llvm::ArrayRef<const Tensor *> tensors, bool copies) const;

  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<PtxKernels> kernels;
  HostFunction function;
  Signature signature;
  std::string device;
  int64_t offset;
};
} // namespace

llvm::Expected<std::vector<DeviceBuffer>>
CudaExecutor::createBuffers(llvm::ArrayRef<const Tensor *> tensors,
                            bool copies) const {
  std::vector<DeviceBuffer> buffers;
  for (const Tensor *tensor : tensors) {
    auto buffer = DeviceBuffer::create(
        gpu->library, gpu->stream, tensor->getNumBytes(),
        llvm::alignTo(offset, getByteSize(tensor->getType())),
        copies ? tensor->data() : nullptr);
    if (!buffer)
      return buffer.takeError();
    buffers.push_back(std::move(*buffer));
  }
  return buffers;
}

/// Copies everything back; says which buffer was written to that must not be.
static llvm::Error fetch(const Gpu &gpu,
                         llvm::ArrayRef<const Tensor *> arguments,
                         llvm::MutableArrayRef<DeviceBuffer> inputs,
                         llvm::MutableArrayRef<Tensor> results,
                         llvm::MutableArrayRef<DeviceBuffer> outputs,
                         DeviceBuffer &workspace) {
  for (DeviceBuffer &buffer : inputs)
    if (llvm::Error error = buffer.download())
      return error;
  for (DeviceBuffer &buffer : outputs)
    if (llvm::Error error = buffer.download())
      return error;
  if (llvm::Error error = workspace.download())
    return error;
  if (llvm::Error error = gpu.synchronize())
    return error;

  for (auto [index, tensor, buffer] : llvm::enumerate(arguments, inputs)) {
    if (std::memcmp(buffer.content(), tensor->data(), tensor->getNumBytes()))
      return runError("the compiled code wrote to tensor argument " +
                      llvm::Twine(index));
    if (!buffer.isIntact())
      return runError("the compiled code wrote outside of tensor argument " +
                      llvm::Twine(index));
  }
  for (auto [index, tensor, buffer] : llvm::enumerate(results, outputs)) {
    if (!buffer.isIntact())
      return runError("the compiled code wrote outside of result " +
                      llvm::Twine(index));
    std::memcpy(tensor.data(), buffer.content(), tensor.getNumBytes());
  }
  if (!workspace.isIntact())
    return runError("the compiled code wrote outside of the workspace");
  return llvm::Error::success();
}

llvm::Expected<RunResult>
CudaExecutor::run(llvm::ArrayRef<ArgumentValue> arguments) {
  AbiValues values = getAbiValues(signature, arguments);
  auto results = function.createResults(signature, values, /*offset=*/0);
  if (!results)
    return results.takeError();
  auto workspaceBytes = function.getWorkspaceSize(values);
  if (!workspaceBytes)
    return workspaceBytes.takeError();

  std::vector<const Tensor *> inputTensors, outputTensors;
  for (const ArgumentValue &argument : arguments)
    if (argument.isTensor)
      inputTensors.push_back(&argument.tensor);
  for (const Tensor &tensor : *results)
    outputTensors.push_back(&tensor);
  auto inputs = createBuffers(inputTensors, /*copies=*/true);
  if (!inputs)
    return inputs.takeError();
  auto outputs = createBuffers(outputTensors, /*copies=*/false);
  if (!outputs)
    return outputs.takeError();
  auto workspace = DeviceBuffer::create(gpu->library, gpu->stream,
                                        *workspaceBytes, /*offset=*/0, nullptr);
  if (!workspace)
    return workspace.takeError();
  if (llvm::Error error = gpu->synchronize())
    return error;

  std::vector<void *> pointers;
  for (const DeviceBuffer &buffer : *inputs)
    pointers.push_back(buffer.data());
  for (const DeviceBuffer &buffer : *outputs)
    pointers.push_back(buffer.data());
  RunStream stream{gpu->library, *kernels, gpu->stream, {}};
  auto start = std::chrono::steady_clock::now();
  if (llvm::Error error =
          function.call(pointers, values, workspace->data(), &stream))
    return error;
  if (llvm::Error error = gpu->synchronize())
    return error;
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (llvm::Error error =
          fetch(*gpu, inputTensors, *inputs, *results, *outputs, *workspace))
    return error;

  RunResult result;
  result.results = std::move(*results);
  result.launches = std::move(stream.launches);
  result.workspaceBytes = *workspaceBytes;
  result.device = device;
  result.seconds = seconds.count();
  return result;
}

llvm::Expected<std::unique_ptr<Executor>>
createCudaExecutor(ModuleOp module, const Signature &signature,
                   const CudaExecutorOptions &options) {
  // First of all: without a GPU there is no use in compiling.
  auto gpu = Gpu::create(options.runtimeLibrary);
  if (!gpu)
    return gpu.takeError();
  auto name = (*gpu)->describe();
  if (!name)
    return name.takeError();
  FailureOr<DeviceSpec> target = deviceOf(module);
  if (failed(target))
    return runError("cannot run function '" + signature.name + "' on a GPU");
  FailureOr<PtxModule> ptx = translateToPtx(module);
  if (failed(ptx))
    return runError("cannot compile the kernels of function '" +
                    signature.name + "' to PTX");
  const RuntimeLibrary &library = (*gpu)->library;
  auto kernels = std::make_unique<PtxKernels>(library, std::move(*ptx),
                                              target->smVersion());
  if (llvm::Error error = kernels->prepare((*gpu)->stream))
    return error;
  auto function =
      HostFunction::create(module, signature.name,
                           {&launchKernel, library.fail, library.last_error});
  if (!function)
    return function.takeError();
  std::string device =
      *name + ", kernels for " + target->name + " (" + target->chip() + ")";
  return std::make_unique<CudaExecutor>(std::move(*gpu), std::move(kernels),
                                        std::move(*function), signature,
                                        std::move(device), options.offset);
}

} // namespace ftuner
