//===- EmulatorExecutor.cpp - Runs compiled functions in the emulator ----===//
#include "FTuner/Executor/Executor.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Runtime/ftrt.h"
#include "Jit.h"

#include "mlir/Pass/PassManager.h"
#include <chrono>
#include <cstring>

using namespace mlir;

namespace ftuner {

//===----------------------------------------------------------------------===//
// The runtime that host code calls
//===----------------------------------------------------------------------===//

namespace {
/// What host code gets as its stream.
struct RunStream {
  emulator::Emulator &emulator;
  std::vector<LaunchRecord> launches;
};
thread_local std::string lastError;
} // namespace

static int32_t failWith(int32_t code, std::string message) {
  lastError = std::move(message);
  return code;
}

static int32_t launchKernel(ftrt_kernel *kernel, uint32_t gridX,
                            uint32_t blockX, uint32_t dynamicSharedBytes,
                            void *stream, void **parameters) {
  auto &run = *static_cast<RunStream *>(stream);
  run.launches.push_back({kernel->name, gridX, blockX, dynamicSharedBytes});
  if (!run.emulator.hasKernel(kernel->name))
    return failWith(FTRT_ERROR_UNKNOWN_KERNEL,
                    std::string("unknown kernel '") + kernel->name + "'");
  emulator::LaunchConfig config;
  config.grid.x = gridX;
  config.block.x = blockX;
  config.dynamicSharedBytes = dynamicSharedBytes;
  if (llvm::Error error = run.emulator.launch(kernel->name, config, parameters))
    return failWith(FTRT_ERROR_LAUNCH_FAILED, llvm::toString(std::move(error)));
  return FTRT_SUCCESS;
}

static int32_t failFromHost(const char *message) {
  return failWith(FTRT_ERROR_HOST, message);
}

static const char *getLastError() { return lastError.c_str(); }

//===----------------------------------------------------------------------===//
// Calls by the host ABI
//===----------------------------------------------------------------------===//

static llvm::Error runError(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

namespace {
/// Host code of one function, compiled.
class HostFunction {
public:
  static llvm::Expected<HostFunction> create(ModuleOp module, StringRef name);

  /// i32 f_result_sizes(sizes…, scalars…, out)
  llvm::Expected<std::vector<int64_t>> getResultSizes(AbiValues values,
                                                      size_t count) const;
  /// i64 f_workspace_size(sizes…, scalars…)
  llvm::Expected<int64_t> getWorkspaceSize(AbiValues values) const;
  /// i32 f(arguments…, results…, sizes…, scalars…, workspace, stream)
  llvm::Error call(std::vector<void *> buffers, AbiValues values,
                   void *workspace, RunStream &stream) const;

private:
  using Packed = void (*)(void **);
  llvm::Expected<Packed> lookup(const llvm::Twine &suffix) const {
    return jit->lookupPacked(name + suffix.str());
  }
  std::unique_ptr<ExecutionEngine> jit;
  std::string name;
};
} // namespace

/// Appends a pointer to each value, as packed functions take them.
static void packValues(std::vector<void *> &packed, AbiValues &values) {
  for (int64_t &size : values.sizes)
    packed.push_back(&size);
  for (uint64_t &scalar : values.scalars)
    packed.push_back(&scalar);
}

llvm::Expected<HostFunction> HostFunction::create(ModuleOp module,
                                                  StringRef name) {
  OwningOpRef<ModuleOp> host = module.clone();
  PassManager pm(module.getContext());
  buildHostLoweringPipeline(pm);
  if (failed(pm.run(*host)))
    return runError("cannot lower the host code of function '" + name + "'");
  auto address = [](auto *function) {
    return reinterpret_cast<void *>(function);
  };
  auto jit = createJit(*host, {{"ftrt_launch", address(&launchKernel)},
                               {"ftrt_fail", address(&failFromHost)},
                               {"ftrt_last_error", address(&getLastError)}});
  if (!jit)
    return jit.takeError();
  HostFunction function;
  function.jit = std::move(*jit);
  function.name = name.str();
  return function;
}

llvm::Expected<std::vector<int64_t>>
HostFunction::getResultSizes(AbiValues values, size_t count) const {
  auto function = lookup("_result_sizes");
  if (!function)
    return function.takeError();
  std::vector<int64_t> sizes(count, 0);
  int64_t *out = sizes.data();
  int32_t code = 0;
  std::vector<void *> packed;
  packValues(packed, values);
  packed.insert(packed.end(), {&out, &code});
  (*function)(packed.data());
  if (code != FTRT_SUCCESS)
    return runError("computing the sizes of the results failed: " + lastError);
  return sizes;
}

llvm::Expected<int64_t> HostFunction::getWorkspaceSize(AbiValues values) const {
  auto function = lookup("_workspace_size");
  if (!function)
    return function.takeError();
  int64_t bytes = 0;
  std::vector<void *> packed;
  packValues(packed, values);
  packed.push_back(&bytes);
  (*function)(packed.data());
  if (bytes < 0)
    return runError("computing the size of the workspace failed: " + lastError);
  return bytes;
}

llvm::Error HostFunction::call(std::vector<void *> buffers, AbiValues values,
                               void *workspace, RunStream &stream) const {
  auto function = lookup("");
  if (!function)
    return function.takeError();
  int32_t code = 0;
  void *streamPointer = &stream;
  std::vector<void *> packed;
  for (void *&buffer : buffers)
    packed.push_back(&buffer);
  packValues(packed, values);
  packed.insert(packed.end(), {&workspace, &streamPointer, &code});
  (*function)(packed.data());
  if (code != FTRT_SUCCESS)
    return runError("running function '" + name + "' failed: " + lastError);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// A run
//===----------------------------------------------------------------------===//

/// Allocates the results, whose sizes the compiled code knows.
static llvm::Expected<std::vector<Tensor>>
allocateResults(const HostFunction &function, const Signature &signature,
                const AbiValues &values, int64_t offset) {
  size_t count = 0;
  for (const SignatureType &type : signature.results)
    count += type.shape.size();
  auto sizes = function.getResultSizes(values, count);
  if (!sizes)
    return sizes.takeError();
  std::vector<Tensor> results;
  llvm::ArrayRef<int64_t> rest = *sizes;
  for (const SignatureType &type : signature.results) {
    llvm::Expected<Tensor> tensor =
        Tensor::create(type.type, rest.take_front(type.shape.size()),
                       llvm::alignTo(offset, getByteSize(type.type)));
    if (!tensor)
      return tensor.takeError();
    results.push_back(std::move(*tensor));
    rest = rest.drop_front(type.shape.size());
  }
  return results;
}

/// Says which buffer was written to that must not be.
static llvm::Error checkMemory(llvm::ArrayRef<ArgumentValue> arguments,
                               llvm::ArrayRef<std::string> before,
                               llvm::ArrayRef<Tensor> results,
                               const GuardedBuffer &workspace) {
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    if (!argument.isTensor)
      continue;
    const Tensor &tensor = argument.tensor;
    if (std::memcmp(tensor.data(), before[index].data(), tensor.getNumBytes()))
      return runError("the compiled code wrote to argument " +
                      llvm::Twine(index));
    if (!tensor.isIntact())
      return runError("the compiled code wrote outside of argument " +
                      llvm::Twine(index));
  }
  for (auto [index, tensor] : llvm::enumerate(results))
    if (!tensor.isIntact())
      return runError("the compiled code wrote outside of result " +
                      llvm::Twine(index));
  if (!workspace.isIntact())
    return runError("the compiled code wrote outside of the workspace");
  return llvm::Error::success();
}

namespace {
class EmulatorExecutor : public Executor {
public:
  EmulatorExecutor(std::unique_ptr<emulator::Emulator> emulator,
                   HostFunction function, const Signature &signature,
                   int64_t offset)
      : emulator(std::move(emulator)), function(std::move(function)),
        signature(signature), offset(offset) {}

  llvm::Expected<RunResult>
  run(llvm::ArrayRef<ArgumentValue> arguments) override;

private:
  std::unique_ptr<emulator::Emulator> emulator;
  HostFunction function;
  Signature signature;
  int64_t offset;
};

/// Buffers that the emulator knows, for the time of a run.
class KnownBuffers {
public:
  explicit KnownBuffers(emulator::Emulator &emulator) : emulator(emulator) {}
  ~KnownBuffers() {
    for (void *base : bases)
      emulator.removeBuffer(base);
  }
  void add(void *base, int64_t bytes, std::string name, bool writable) {
    if (bytes == 0)
      return;
    emulator.addBuffer(base, bytes, std::move(name), writable);
    bases.push_back(base);
  }

private:
  emulator::Emulator &emulator;
  std::vector<void *> bases;
};
} // namespace

llvm::Expected<RunResult>
EmulatorExecutor::run(llvm::ArrayRef<ArgumentValue> arguments) {
  AbiValues values = getAbiValues(signature, arguments);
  auto results = allocateResults(function, signature, values, offset);
  if (!results)
    return results.takeError();
  auto workspaceBytes = function.getWorkspaceSize(values);
  if (!workspaceBytes)
    return workspaceBytes.takeError();
  auto workspace = GuardedBuffer::create(*workspaceBytes);
  if (!workspace)
    return workspace.takeError();

  std::vector<void *> buffers;
  KnownBuffers known(*emulator);
  std::vector<std::string> before;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    before.emplace_back();
    if (!argument.isTensor)
      continue;
    const Tensor &tensor = argument.tensor;
    before.back().assign(tensor.data(), tensor.getNumBytes());
    known.add(tensor.data(), tensor.getNumBytes(),
              "argument " + std::to_string(index), /*writable=*/false);
    buffers.push_back(tensor.data());
  }
  for (auto [index, tensor] : llvm::enumerate(*results)) {
    known.add(tensor.data(), tensor.getNumBytes(),
              "result " + std::to_string(index), /*writable=*/true);
    buffers.push_back(tensor.data());
  }
  known.add(workspace->data(), workspace->size(), "workspace",
            /*writable=*/true);

  RunStream stream{*emulator, {}};
  auto start = std::chrono::steady_clock::now();
  if (llvm::Error error =
          function.call(buffers, values, workspace->data(), stream))
    return error;
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (llvm::Error error = checkMemory(arguments, before, *results, *workspace))
    return error;

  RunResult result;
  result.results = std::move(*results);
  result.launches = std::move(stream.launches);
  result.workspaceBytes = *workspaceBytes;
  result.seconds = seconds.count();
  return result;
}

llvm::Expected<std::unique_ptr<Executor>>
createEmulatorExecutor(ModuleOp module, const Signature &signature,
                       const EmulatorExecutorOptions &options) {
  auto emulator = emulator::Emulator::create(module, options.emulator);
  if (!emulator)
    return emulator.takeError();
  auto function = HostFunction::create(module, signature.name);
  if (!function)
    return function.takeError();
  return std::make_unique<EmulatorExecutor>(
      std::move(*emulator), std::move(*function), signature, options.offset);
}

} // namespace ftuner
