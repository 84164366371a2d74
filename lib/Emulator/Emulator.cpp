//===- Emulator.cpp - Runs lowered GPU kernels on the CPU -----------------===//
#include "FTuner/Emulator/Emulator.h"
#include "ConvertNVVMToHost.h"
#include "EmulatedKernelCompiler.h"
#include "GridRunner.h"
#include "LaunchCounter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

using namespace ftuner::emulator;

namespace {
struct Kernel {
  HostKernel host;
  std::optional<CompiledKernel> compiled;
};

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
  std::unique_ptr<EmulatedKernelCompiler> compiler;
  llvm::StringMap<Kernel> kernels;
  SiteTable sites;
  std::vector<Buffer> buffers; ///< Sorted by base.
  GridRunner runner;
  LaunchObserver observer;
  std::vector<KernelCounters> counters;
  std::mutex mutex;

  bool isChecked() const { return options.checkBounds || options.checkRaces; }
  llvm::Error convertModule(mlir::ModuleOp module);
  llvm::Error compile(Kernel &kernel);
  /// Runs a launch that was checked.
  llvm::Error run(const std::string &name, const Kernel &kernel,
                  Launch &launch);
  KernelCounters &countersOf(const std::string &kernel);
  std::string describeSite(uint32_t site) const {
    return formatLocation(sites[site]);
  }
};

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

namespace {
/// Collects the diagnostics of its lifetime as text.
class DiagnosticText {
public:
  explicit DiagnosticText(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (!text.empty())
            text += "; ";
          std::string location = formatLocation(diagnostic.getLocation());
          if (!location.empty())
            text += location + ": ";
          text += diagnostic.str();
          return mlir::success();
        }) {}
  const std::string &str() const { return text; }

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};
} // namespace

llvm::Error Emulator::Impl::convertModule(mlir::ModuleOp module) {
  DiagnosticText diagnostics(module.getContext());
  auto found = findKernels(module);
  if (mlir::failed(found))
    return llvm::createStringError(diagnostics.str());
  for (mlir::Operation *op : *found) {
    llvm::StringRef name = mlir::cast<mlir::SymbolOpInterface>(op).getName();
    Instrumentation instrumentation;
    instrumentation.accesses = isChecked() || options.counters;
    instrumentation.basicBlocks = options.counters;
    mlir::FailureOr<HostKernel> host =
        convertToHost(op, instrumentation, sites);
    if (mlir::failed(host))
      return llvm::createStringError("cannot emulate kernel '" + name +
                                     "': " + diagnostics.str());
    kernels[name].host = std::move(*host);
  }
  return llvm::Error::success();
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
  auto compiler = EmulatedKernelCompiler::create();
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

void Emulator::setLaunchObserver(LaunchObserver observer) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  impl->observer = std::move(observer);
}

llvm::Error Emulator::Impl::compile(Kernel &kernel) {
  auto compiled = compiler->compile(kernel.host);
  if (!compiled)
    return compiled.takeError();
  kernel.compiled = std::move(*compiled);
  kernel.host.module = nullptr;
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

std::vector<KernelCounters> Emulator::takeCounters() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return std::exchange(impl->counters, {});
}

KernelCounters &Emulator::Impl::countersOf(const std::string &kernel) {
  for (KernelCounters &known : counters)
    if (known.kernel == kernel)
      return known;
  counters.emplace_back();
  counters.back().kernel = kernel;
  return counters.back();
}

llvm::Error Emulator::Impl::run(const std::string &name, const Kernel &kernel,
                                Launch &launch) {
  std::vector<Buffer> known;
  if (isChecked()) {
    known = buffers;
    known.insert(known.end(), kernel.compiled->constants.begin(),
                 kernel.compiled->constants.end());
    std::sort(known.begin(), known.end(), isBelow);
  }
  ErrorLog log([this](uint32_t site) { return describeSite(site); });
  MemoryChecker checker({options.checkBounds, options.checkRaces,
                         options.checkRaces && kernel.host.hasPartialOrder},
                        known, log);
  launch.entry = kernel.compiled->entry;
  launch.log = &log;
  launch.checker = isChecked() ? &checker : nullptr;
  std::optional<LaunchCounter> counter;
  if (options.counters) {
    KernelCounters &sums = countersOf(name);
    ++sums.launches;
    launch.counter = &counter.emplace(kernel.host.basicBlocks, sums);
  }
  std::string error = runner.run(launch, options.workers);
  if (error.empty())
    error = log.summary(name);
  return error.empty() ? llvm::Error::success()
                       : llvm::createStringError(error);
}

llvm::Error Emulator::launch(llvm::StringRef name, const LaunchConfig &config,
                             void **parameters) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  if (impl->observer)
    impl->observer(name, config);
  auto it = impl->kernels.find(name);
  if (it == impl->kernels.end())
    return llvm::createStringError("unknown kernel '" + name + "'");
  Kernel &kernel = it->second;
  Launch launch{};
  launch.parameters = parameters;
  uint32_t grid[3] = {config.grid.x, config.grid.y, config.grid.z};
  uint32_t block[3] = {config.block.x, config.block.y, config.block.z};
  std::copy_n(grid, 3, launch.grid);
  std::copy_n(block, 3, launch.block);
  launch.dynamicSharedBytes = config.dynamicSharedBytes;
  launch.staticSharedBytes = kernel.host.limits.staticSharedBytes;
  launch.clusterSize = kernel.host.limits.clusterSize;
  launch.order = convertOrder(impl->options.order);
  launch.seed = impl->options.seed;
  launch.lazyAsyncCopies = impl->options.lazyAsyncCopies;
  std::string error = checkLaunch(name.str(), kernel.host.limits, launch);
  if (!error.empty())
    return llvm::createStringError(error);
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0)
    return llvm::Error::success();
  if (!kernel.compiled)
    if (llvm::Error error = impl->compile(kernel))
      return error;
  return impl->run(name.str(), kernel, launch);
}
