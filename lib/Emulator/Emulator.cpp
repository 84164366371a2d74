//===- Emulator.cpp - Runs lowered GPU kernels on the CPU -----------------===//
#include "FTuner/Emulator/Emulator.h"
#include "BlockRunner.h"
#include "ConvertNVVMToHost.h"
#include "KernelCompiler.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

using namespace ftuner::emulator;

namespace {
// What every CUDA device of today accepts (CUDA programming guide, table of
// technical specifications).
constexpr uint64_t kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxBlockZ = 64;
constexpr uint32_t kMaxGridX = 0x7fffffff;
constexpr uint32_t kMaxGridYZ = 65535;
/// The largest shared memory of a block on any device, bytes.
constexpr uint64_t kMaxSharedBytes = 227 * 1024;

struct Kernel {
  HostKernel host;
  std::optional<CompiledKernel> compiled;
};

std::string formatDim(const Dim3 &dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," +
         std::to_string(dim.z) + ")";
}

std::string formatLocation(mlir::Location location) {
  if (mlir::isa<mlir::UnknownLoc>(location))
    return "";
  if (auto file = location->findInstanceOf<mlir::FileLineColLoc>())
    return (llvm::Twine(file.getFilename().getValue()) + ":" +
            llvm::Twine(file.getLine()) + ":" + llvm::Twine(file.getColumn()))
        .str();
  std::string text;
  llvm::raw_string_ostream(text) << location;
  return text;
}
} // namespace

struct Emulator::Impl {
  EmulatorOptions options;
  std::unique_ptr<KernelCompiler> compiler;
  llvm::StringMap<Kernel> kernels;
  SiteTable sites;
  std::vector<Buffer> buffers; ///< Sorted by base.
  std::vector<std::unique_ptr<BlockRunner>> runners;
  std::mutex mutex;

  bool isChecked() const { return options.checkBounds || options.checkRaces; }
  llvm::Error convertModule(mlir::ModuleOp module);
  llvm::Error addKernel(mlir::Operation &op);
  llvm::Error checkConfig(llvm::StringRef name, const HostKernel &kernel,
                          const LaunchConfig &config) const;
  llvm::Error compile(Kernel &kernel);
  llvm::Error run(const Launch &launch);
  std::string describeSite(uint32_t site) const {
    return formatLocation(sites[site]);
  }
};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

llvm::Error Emulator::Impl::addKernel(mlir::Operation &op) {
  llvm::StringRef name = mlir::cast<mlir::SymbolOpInterface>(op).getName();
  if (kernels.contains(name))
    return llvm::createStringError(
        "expected unique kernel names, but got two kernels '" + name + "'");
  std::string diagnostics;
  mlir::ScopedDiagnosticHandler handler(
      op.getContext(), [&](mlir::Diagnostic &diagnostic) {
        if (!diagnostics.empty())
          diagnostics += "; ";
        std::string location = formatLocation(diagnostic.getLocation());
        if (!location.empty())
          diagnostics += location + ": ";
        diagnostics += diagnostic.str();
        return mlir::success();
      });
  mlir::FailureOr<HostKernel> host = convertToHost(&op, isChecked(), sites);
  if (mlir::failed(host))
    return llvm::createStringError("cannot emulate kernel '" + name +
                                   "': " + diagnostics);
  kernels[name].host = std::move(*host);
  return llvm::Error::success();
}

llvm::Error Emulator::Impl::convertModule(mlir::ModuleOp module) {
  llvm::Error result = llvm::Error::success();
  module.walk([&](mlir::gpu::GPUModuleOp gpuModule) {
    for (mlir::Operation &op : *gpuModule.getBody()) {
      if (mlir::isa<mlir::gpu::GPUFuncOp>(op))
        result = llvm::createStringError(
            "expected kernels at the level of the NVVM dialect, but got "
            "gpu.func '" +
            mlir::cast<mlir::gpu::GPUFuncOp>(op).getName() + "'");
      else if (isKernel(op))
        result = addKernel(op);
      if (result)
        return mlir::WalkResult::interrupt();
    }
    return mlir::WalkResult::advance();
  });
  return result;
}

Emulator::Emulator(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Emulator::~Emulator() = default;

llvm::Expected<std::unique_ptr<Emulator>>
Emulator::create(mlir::ModuleOp module, const EmulatorOptions &options) {
  mlir::MLIRContext *context = module.getContext();
  mlir::registerBuiltinDialectTranslation(*context);
  mlir::registerLLVMDialectTranslation(*context);
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->sites.push_back(mlir::UnknownLoc::get(context));
  auto compiler = KernelCompiler::create();
  if (!compiler)
    return compiler.takeError();
  impl->compiler = std::move(*compiler);
  if (llvm::Error error = impl->convertModule(module))
    return error;
  return std::unique_ptr<Emulator>(new Emulator(std::move(impl)));
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

static bool isBelow(const Buffer &a, const Buffer &b) {
  return reinterpret_cast<uintptr_t>(a.base) <
         reinterpret_cast<uintptr_t>(b.base);
}

void Emulator::addBuffer(void *base, size_t bytes, std::string name,
                         bool writable) {
  removeBuffer(base);
  std::lock_guard<std::mutex> lock(impl->mutex);
  Buffer buffer{static_cast<char *>(base), bytes, std::move(name), writable};
  auto position = std::upper_bound(impl->buffers.begin(), impl->buffers.end(),
                                   buffer, isBelow);
  impl->buffers.insert(position, std::move(buffer));
}

void Emulator::removeBuffer(void *base) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  auto &buffers = impl->buffers;
  buffers.erase(
      std::remove_if(buffers.begin(), buffers.end(),
                     [&](const Buffer &buffer) { return buffer.base == base; }),
      buffers.end());
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

bool Emulator::hasKernel(llvm::StringRef kernel) const {
  return impl->kernels.contains(kernel);
}

llvm::Error Emulator::Impl::checkConfig(llvm::StringRef name,
                                        const HostKernel &kernel,
                                        const LaunchConfig &config) const {
  auto fail = [&](const llvm::Twine &text) {
    return llvm::createStringError("cannot launch kernel '" + name +
                                   "': " + text);
  };
  const Dim3 &grid = config.grid, &block = config.block;
  uint64_t threads = uint64_t(block.x) * block.y;
  if (threads == 0 || threads > kMaxThreadsPerBlock || block.z == 0 ||
      block.z > kMaxBlockZ || threads * block.z > kMaxThreadsPerBlock)
    return fail("expected a block of 1 to 1024 threads, but got " +
                formatDim(block));
  if (grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ)
    return fail("expected a grid of at most (2147483647,65535,65535) blocks, "
                "but got " +
                formatDim(grid));
  uint64_t sharedBytes =
      uint64_t(config.dynamicSharedBytes) + kernel.staticSharedBytes;
  if (sharedBytes > kMaxSharedBytes)
    return fail("expected at most " + llvm::Twine(kMaxSharedBytes) +
                " bytes of shared memory, but got " + llvm::Twine(sharedBytes));
  if (kernel.knownBlock) {
    Dim3 known{(*kernel.knownBlock)[0], (*kernel.knownBlock)[1],
               (*kernel.knownBlock)[2]};
    if (known.x != block.x || known.y != block.y || known.z != block.z)
      return fail("expected a block of " + formatDim(known) +
                  " threads, but got " + formatDim(block));
  }
  if (kernel.maxThreads && threads * block.z > *kernel.maxThreads)
    return fail("expected a block of at most " +
                llvm::Twine(*kernel.maxThreads) + " threads, but got " +
                llvm::Twine(threads * block.z));
  return llvm::Error::success();
}

llvm::Error Emulator::Impl::compile(Kernel &kernel) {
  auto compiled = compiler->compile(kernel.host);
  if (!compiled)
    return compiled.takeError();
  kernel.compiled = std::move(*compiled);
  kernel.host.module = nullptr;
  return llvm::Error::success();
}

llvm::Error Emulator::Impl::run(const Launch &launch) {
  uint64_t blocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  uint64_t workers =
      options.workers ? options.workers : std::thread::hardware_concurrency();
  if (launch.checker)
    workers = 1;
  workers = std::clamp<uint64_t>(workers, 1, blocks);
  while (runners.size() < workers)
    runners.push_back(std::make_unique<BlockRunner>());
  for (uint64_t i = 0; i < workers; ++i)
    if (!runners[i]->prepare(launch))
      return llvm::createStringError("cannot allocate the threads' stacks");

  std::atomic<uint64_t> next{0};
  // A stride that has no factor in common with the number of blocks visits
  // each of them once.
  uint64_t stride = 1;
  if (launch.order == RunOrder::Shuffled)
    for (stride = blocks * 5 / 8 + 1 + launch.seed % 7;
         std::__gcd(stride, blocks) != 1;)
      ++stride;
  auto work = [&](BlockRunner &runner) {
    uint64_t turn;
    while ((turn = next++) < blocks && !launch.log->isFull()) {
      uint64_t block = turn * stride % blocks;
      if (launch.order == RunOrder::Reverse)
        block = blocks - 1 - turn;
      runner.runBlock(block);
    }
  };
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < workers; ++i)
    others.emplace_back(work, std::ref(*runners[i]));
  work(*runners[0]);
  for (std::thread &thread : others)
    thread.join();
  return llvm::Error::success();
}

static RunOrder convertOrder(EmulatorOptions::ThreadOrder order) {
  switch (order) {
  case EmulatorOptions::Forward:
    return RunOrder::Forward;
  case EmulatorOptions::Reverse:
    return RunOrder::Reverse;
  case EmulatorOptions::Shuffled:
    return RunOrder::Shuffled;
  }
  return RunOrder::Forward;
}

llvm::Error Emulator::launch(llvm::StringRef name, const LaunchConfig &config,
                             void **parameters) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  auto it = impl->kernels.find(name);
  if (it == impl->kernels.end())
    return llvm::createStringError("unknown kernel '" + name + "'");
  Kernel &kernel = it->second;
  if (llvm::Error error = impl->checkConfig(name, kernel.host, config))
    return error;
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0)
    return llvm::Error::success();
  if (!kernel.compiled)
    if (llvm::Error error = impl->compile(kernel))
      return error;

  std::vector<Buffer> buffers;
  if (impl->isChecked()) {
    buffers = impl->buffers;
    buffers.insert(buffers.end(), kernel.compiled->constants.begin(),
                   kernel.compiled->constants.end());
    std::sort(buffers.begin(), buffers.end(), isBelow);
  }
  ErrorLog log([this](uint32_t site) { return impl->describeSite(site); });
  MemoryChecker checker({impl->options.checkBounds, impl->options.checkRaces},
                        buffers, log);
  Launch launch{};
  launch.entry = kernel.compiled->entry;
  launch.parameters = parameters;
  uint32_t grid[3] = {config.grid.x, config.grid.y, config.grid.z};
  uint32_t block[3] = {config.block.x, config.block.y, config.block.z};
  std::copy_n(grid, 3, launch.grid);
  std::copy_n(block, 3, launch.block);
  launch.dynamicSharedBytes = config.dynamicSharedBytes;
  launch.staticSharedBytes = kernel.host.staticSharedBytes;
  launch.order = convertOrder(impl->options.order);
  launch.seed = impl->options.seed;
  launch.lazyAsyncCopies = impl->options.lazyAsyncCopies;
  launch.log = &log;
  launch.checker = impl->isChecked() ? &checker : nullptr;
  if (llvm::Error error = impl->run(launch))
    return error;
  if (log.count() == 0)
    return llvm::Error::success();
  std::string text =
      ("kernel '" + name + "': " + llvm::Twine(log.count()) +
       (log.isFull() ? " errors or more" : " errors") + " in emulation")
          .str();
  for (const std::string &message : log.texts())
    text += "\n  " + message;
  return llvm::createStringError(text);
}
