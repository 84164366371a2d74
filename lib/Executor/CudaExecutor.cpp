//===- CudaExecutor.cpp - Runs compiled functions on a GPU ----------------===//
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Executor/Executor.h"
#include "FTuner/PTX/PTX.h"
#include "FTuner/RuntimeClient/DeviceBuffer.h"
#include "FTuner/RuntimeClient/Gpu.h"
#include "HostFunction.h"

#include <chrono>
#include <cstring>

using namespace mlir;

namespace ftuner {

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
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

/// ftrt_tensor_map_encode() likewise.
static int32_t encodeTensorMap(const ftrt_tensor_map *kind, const void *address,
                               const int64_t *sizes, const int64_t *strides,
                               void *stream, void *map) {
  auto &run = *static_cast<RunStream *>(stream);
  return run.library.tensor_map_encode(kind, address, sizes, strides,
                                       run.stream, map);
}

/// ftrt_image_is_exact() likewise: the host code knows no module.
static int32_t imageIsExact(const ftrt_module *, void *stream, int32_t *exact) {
  auto &run = *static_cast<RunStream *>(stream);
  return run.kernels.isExact(run.stream, exact);
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
      return llvm::createStringError(
          "the compiled code wrote to tensor argument " + llvm::Twine(index));
    if (!buffer.isIntact())
      return llvm::createStringError(
          "the compiled code wrote outside of tensor argument " +
          llvm::Twine(index));
  }
  for (auto [index, tensor, buffer] : llvm::enumerate(results, outputs)) {
    if (!buffer.isIntact())
      return llvm::createStringError(
          "the compiled code wrote outside of result " + llvm::Twine(index));
    std::memcpy(tensor.data(), buffer.content(), tensor.getNumBytes());
  }
  if (!workspace.isIntact())
    return llvm::createStringError(
        "the compiled code wrote outside of the workspace");
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
    return llvm::createStringError("cannot run function '" + signature.name +
                                   "' on a GPU");
  FailureOr<PtxImages> ptx = translateImages(module);
  if (failed(ptx))
    return llvm::createStringError("cannot compile the kernels of function '" +
                                   signature.name + "' to PTX");
  const RuntimeLibrary &library = (*gpu)->library;
  auto kernels =
      std::make_unique<PtxKernels>(library, std::move(*ptx), "ftuner-run");
  if (llvm::Error error = kernels->prepare((*gpu)->stream))
    return error;
  auto function = HostFunction::create(
      module, signature.name,
      {&launchKernel, &encodeTensorMap, &imageIsExact, library.fail,
       library.fail_sizes, library.last_error});
  if (!function)
    return function.takeError();
  std::string device =
      *name + ", kernels for " + target->name + " (" + target->chip() + ")";
  return std::make_unique<CudaExecutor>(std::move(*gpu), std::move(kernels),
                                        std::move(*function), signature,
                                        std::move(device), options.offset);
}

} // namespace ftuner
