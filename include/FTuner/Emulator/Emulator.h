//===- Emulator.h - Runs lowered GPU kernels on the CPU ---------*- C++ -*-===//
//
// Runs kernels that were lowered to the NVVM dialect without a GPU, so that
// their correctness can be tested on any machine.
//
// Each function at the level of the LLVM and NVVM dialects, *before*
// `convert-nvvm-to-llvm` (which turns much of it into inline PTX), is converted
// for the host: address spaces are flattened, special registers become loads
// from a record of the thread, barriers, asynchronous copies and warp
// collectives become calls into a small runtime. The result is compiled with
// LLVM's JIT. One GPU thread is one fiber, which runs until it reaches a
// barrier or a warp collective. The blocks of a grid run one after another, or
// on several cores where no checks are on; those of a cluster
// (nvvm.cluster_dim) take turns on one core.
//
// What a GPU leaves undefined is made visible as far as it costs little:
//  * shared memory starts as 0xff bytes (NaN) in every block;
//  * an asynchronous copy writes as late as it may (`lazyAsyncCopies`), so a
//    missing wait yields wrong data;
//  * a barrier that some threads of a block miss, barriers that diverge within
//    a warp, and collectives whose lanes do not all arrive are errors, no
//    hangs;
//  * products of a warpgroup (wgmma) are performed when they are waited for,
//    and use of their accumulators before is an error;
//  * bulk copies end when a thread waits for their mbarrier and no other can go
//    on; threads that wait for each other in vain are an error;
//  * asynchronous copies and products still pending at the kernel's end are
//    errors;
//  * shared memory of another block of a cluster that is used before a barrier
//    of the cluster, or after that block's end, is an error.
// `checkBounds` and `checkRaces` watch every access at the cost of speed.
//
// Limits: threads that wait for each other without a barrier or an mbarrier
// (spin loops) hang; blocks that order their accesses by atomics look like
// races; what has no emulation rule (inline PTX, libdevice calls, ...) is an
// error of `create`.
//
// Libraries compiled ahead of time run in the same emulator without MLIR
// (HostImage.h), and without the checks of every access.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EMULATOR_EMULATOR_H
#define FTUNER_EMULATOR_EMULATOR_H

#include "FTuner/Emulator/Counters.h"
#include "FTuner/Runtime/ftrt.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ftuner::emulator {

struct EmulatorOptions {
  /// Check that every access lies in a registered buffer (writes in a writable
  /// one), the block's shared memory, the thread's own stack or a module's
  /// constant, and that it is aligned as the operation promises.
  bool checkBounds = false;
  /// Check that no two threads access the same bytes of shared or global
  /// memory, one of them writing, without a barrier in between, and that nobody
  /// touches the target of an asynchronous copy before the wait and barrier.
  /// Threads of different blocks are never ordered, but for those of a cluster.
  bool checkRaces = false;
  /// Asynchronous copies write when they are waited for (true) or at once.
  bool lazyAsyncCopies = true;
  /// The order in which blocks, and threads between two barriers, run.
  /// `Shuffled` draws a new order of the threads after every barrier.
  enum ThreadOrder { Forward, Reverse, Shuffled } order = Forward;
  unsigned seed = 0;
  /// Count what the kernels ask of the machine (Counters.h).
  bool counters = false;
  /// CPU threads that run blocks at the same time; 0 takes the cores there are.
  /// With checks or counters on, always one.
  unsigned workers = 0;
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct LaunchConfig {
  Dim3 grid;  ///< Blocks along each axis; 0 launches nothing.
  Dim3 block; ///< Threads along each axis; 1 to 1024 in all.
  uint32_t dynamicSharedBytes = 0;
};

class Emulator {
public:
  ~Emulator();
  Emulator(const Emulator &) = delete;
  Emulator &operator=(const Emulator &) = delete;

  /// Converts the kernels of every `gpu.module` in `module` for the host. The
  /// module is left unchanged; its context must outlive the emulator. A kernel
  /// is a function with a body that is marked `gpu.kernel` or `nvvm.kernel`;
  /// kernels need names that are unique across the gpu.modules, other symbols
  /// do not. Each kernel is compiled on its first launch.
  ///
  /// Fails, naming operation and location, where something has no emulation
  /// rule.
  static llvm::Expected<std::unique_ptr<Emulator>>
  create(mlir::ModuleOp module, const EmulatorOptions &options = {});

  /// Runs a kernel to its end. `parameters` holds a pointer to each argument,
  /// as for cuLaunchKernel. Fails for an unknown kernel, a configuration that
  /// no GPU accepts or that contradicts the kernel's known block size or its
  /// clusters, and for every error found while it ran: then the text gives
  /// their number and the first few, each with block, thread, kind, address and
  /// source location. Launches from several threads are serialised.
  llvm::Error launch(llvm::StringRef kernel, const LaunchConfig &config,
                     void **parameters);

  bool hasKernel(llvm::StringRef kernel) const;

  /// Called at the start of every launch, whether it succeeds or not; it must
  /// not call the emulator. Null takes the observer away.
  using LaunchObserver =
      std::function<void(llvm::StringRef kernel, const LaunchConfig &config)>;
  void setLaunchObserver(LaunchObserver observer);

  /// The counters of the launches since the last call, by kernel, in the order
  /// of their first launch. Empty without EmulatorOptions::counters. A launch
  /// that failed counts as far as it came.
  std::vector<KernelCounters> takeCounters();

  /// Makes `bytes` bytes at `base` known as global memory; needed only with
  /// `checkBounds`. `name` appears in errors. A buffer at the same base is
  /// replaced. Buffers must not overlap.
  void addBuffer(void *base, size_t bytes, std::string name, bool writable);
  void removeBuffer(void *base);

private:
  struct Impl;
  explicit Emulator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// The functions of FTuner/Runtime/ftrt.h that compiled host code calls.
struct RuntimeAPI {
  decltype(&ftrt_launch) launch;
  decltype(&ftrt_tensor_map_encode) encodeTensorMap;
  decltype(&ftrt_image_is_exact) imageIsExact;
  decltype(&ftrt_fail) fail;
  decltype(&ftrt_fail_sizes) failSizes;
  decltype(&ftrt_last_error) lastError;
};

/// Functions that launch kernels on an emulator: the stream is an `Emulator *`.
const RuntimeAPI &getRuntimeAPI();

} // namespace ftuner::emulator

#endif // FTUNER_EMULATOR_EMULATOR_H
