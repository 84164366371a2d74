//===- EmulatorExecutor.cpp - Runs compiled functions in the emulator ----===//
#include "FTuner/Executor/Executor.h"
#include "HostFunction.h"

#include <chrono>
#include <cstring>

using namespace mlir;

namespace ftuner {

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
      return llvm::createStringError("the compiled code wrote to argument " +
                                     llvm::Twine(index));
    if (!tensor.isIntact())
      return llvm::createStringError(
          "the compiled code wrote outside of argument " + llvm::Twine(index));
  }
  for (auto [index, tensor] : llvm::enumerate(results))
    if (!tensor.isIntact())
      return llvm::createStringError(
          "the compiled code wrote outside of result " + llvm::Twine(index));
  if (!workspace.isIntact())
    return llvm::createStringError(
        "the compiled code wrote outside of the workspace");
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
  auto results = function.createResults(signature, values, offset);
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

  RunResult result;
  emulator->setLaunchObserver(
      [&](llvm::StringRef kernel, const emulator::LaunchConfig &config) {
        result.launches.push_back({kernel.str(), config.grid.x, config.block.x,
                                   config.dynamicSharedBytes});
      });
  auto start = std::chrono::steady_clock::now();
  llvm::Error error =
      function.call(buffers, values, workspace->data(), emulator.get());
  emulator->setLaunchObserver(nullptr);
  result.counters = emulator->takeCounters();
  if (error)
    return error;
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (llvm::Error error = checkMemory(arguments, before, *results, *workspace))
    return error;

  result.results = std::move(*results);
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
  auto function =
      HostFunction::create(module, signature.name, emulator::getRuntimeAPI());
  if (!function)
    return function.takeError();
  return std::make_unique<EmulatorExecutor>(
      std::move(*emulator), std::move(*function), signature, options.offset);
}

} // namespace ftuner
