//===- DeviceSpec.h - Description of a GPU ----------------------*- C++ -*-===//
//
// Hardware facts of one GPU, read from a JSON file (lib/Device/devices/*.json,
// schema in docs/devices.md). Tuned constants do not belong here.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DEVICE_DEVICESPEC_H
#define FTUNER_DEVICE_DEVICESPEC_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// Element types that the tensor cores multiply: one rate for each. F16 stands
/// for bf16, too.
enum class TensorPipe { TF32, F16, I8 };

/// Instructions that an SM can start in a cycle, and the process that made it.
struct SmFacts {
  /// Warp schedulers.
  int64_t warpSchedulers = 4;
  /// Instructions of warps that all schedulers together issue in a cycle: one
  /// for each, or two where they issue pairs.
  int64_t issueSlots = 4;
  /// Lanes of the load/store units: threads that a cycle serves.
  int64_t loadStoreUnits = 32;
  /// Multiply-adds of f64 that a cycle starts.
  int64_t doubleLanes = 32;
  /// Feature size of the process, as its maker calls it.
  double processNm = 16;
  /// Blocks with half as many warps as there are schedulers: how many of them
  /// in a row begin at the same scheduler, 1 or 2.
  int64_t halfBlockRun = 1;
  /// Share of the tensor cores' peak that instructions of single warps reach
  /// (mma.sync); the peak itself takes those of four (wgmma) or of the whole
  /// block (tcgen05) where there are such.
  double warpTensorShare = 1;
};

/// Returns the facts of a compute capability (docs/devices.md, "Where a file is
/// silent"). A capability newer than the table has the facts of its newest one.
SmFacts smFactsOf(int computeCapabilityMajor, int computeCapabilityMinor);

/// Facts of one GPU. Field names equal the keys of the JSON file.
struct DeviceSpec {
  std::string name;
  std::string architecture;
  /// The chip's own name, such as GH100; empty if not stated. Boards of one die
  /// share what measurements say of its SMs (Calibration.h).
  std::string die;
  /// Compute capability, e.g. 9 and 0 of "9.0".
  int computeCapabilityMajor = 0;
  int computeCapabilityMinor = 0;
  int64_t smCount = 0;
  double clockMhz = 0;
  /// Dense peaks in TFLOP/s; 16-bit ones with f32 accumulation, that of 8-bit
  /// integers in TOP/s with i32. None: the tensor cores do not take the type.
  double fp32Tflops = 0;
  std::optional<double> tf32Tflops;
  std::optional<double> f16Tflops;
  std::optional<double> bf16Tflops;
  std::optional<double> i8Tops;
  double dramGbps = 0;
  double l2Mib = 0;
  int64_t sharedMemoryPerSmBytes = 0;
  int64_t sharedMemoryPerBlockBytes = 0;
  int64_t registersPerSm = 0;
  /// Most registers of one block: less than registersPerSm on compute
  /// capability 3.7. A file without it means registersPerSm.
  int64_t registersPerBlock = 0;
  int64_t maxRegistersPerThread = 255;
  int64_t maxThreadsPerSm = 0;
  int64_t maxThreadsPerBlock = 1024;
  int64_t maxBlocksPerSm = 0;
  // What a file may leave out; `smFacts` says what holds then.
  std::optional<int64_t> warpSchedulersPerSm;
  std::optional<int64_t> issueSlotsPerSm;
  std::optional<int64_t> loadStoreUnitsPerSm;
  std::optional<double> processNm;
  /// Power limit of the board, or of one GPU's share of it. Without it nothing
  /// is known of a limit.
  std::optional<double> boardPowerWatts;
  /// Clock that the board keeps while all SMs compute. Without it `clockMhz`,
  /// the one that the peaks are stated for, is taken to hold.
  std::optional<double> loadClockMhz;
  // What micro-benchmarks reach (benchmarks/gpu/bandwidths.cu): of device
  // memory and of the shared memory of all SMs in GB/s, and of f32 in TFLOP/s.
  std::optional<double> measuredDramGbps;
  std::optional<double> measuredSharedMemoryGbps;
  std::optional<double> measuredFp32Tflops;

  /// 10 · major + minor, e.g. 90.
  int smVersion() const {
    return 10 * computeCapabilityMajor + computeCapabilityMinor;
  }
  /// The LLVM processor name, e.g. "sm_90".
  std::string chip() const { return "sm_" + std::to_string(smVersion()); }
  /// Shared memory bandwidth in GB/s: SMs · clock · 128 B (32 banks of 4 B).
  double sharedMemoryGbps() const { return smCount * clockMhz * 128e-3; }
  bool hasMeasuredBandwidths() const {
    return measuredDramGbps && measuredSharedMemoryGbps;
  }
  /// Most registers that each thread of a block may have where an SM holds
  /// `blocks` of them: the busiest scheduler counts, and registers come in
  /// units of 8 for each thread.
  int64_t registersPerThreadOf(int64_t threads, int64_t blocks = 1) const;
  /// Blocks that an SM holds at once, at least 1.
  int64_t blocksPerSm(int64_t threads, int64_t registersPerThread,
                      int64_t sharedMemoryBytes) const;
  /// Shared memory that CUDA keeps for itself in each block.
  int64_t reservedSharedMemoryBytes() const {
    return computeCapabilityMajor >= 8 ? 1024 : 0;
  }
  /// Global to shared copies that bypass registers (cp.async).
  bool hasAsyncCopy() const { return computeCapabilityMajor >= 8; }
  /// The fields of the file, and for those it leaves out what its compute
  /// capability tells.
  SmFacts smFacts() const;
  /// f32 multiply-adds of an SM in a cycle: the peak over SMs and clock.
  /// Vendors round peaks, so a figure within 2 % of a multiple of 32 is that.
  double fp32LanesPerSm() const;
  /// Operations (a multiply-add is two) of an SM's tensor cores in a cycle: the
  /// peak over SMs and clock; 0 where they do not take the type. Rates are
  /// powers of two, and some peaks are stated for a clock below `clockMhz`, so
  /// a figure within 8 % of a power of two is that.
  double tensorOperationsPerCycle(TensorPipe pipe) const;
};

/// Parses and checks one description. An error names `sourceName`, the line and
/// the field, and says what was expected.
llvm::Expected<DeviceSpec> parseDeviceSpec(llvm::StringRef json,
                                           llvm::StringRef sourceName);

/// Writes a description that `parseDeviceSpec` reads back unchanged.
llvm::json::Object toJson(const DeviceSpec &device);

/// Finds a built-in device by name, or else reads the file at that path.
/// The error for an unknown name lists the built-in ones.
llvm::Expected<DeviceSpec> loadDeviceSpec(llvm::StringRef nameOrPath);

/// Names of the built-in devices, sorted.
std::vector<std::string> builtinDeviceNames();

} // namespace ftuner

#endif // FTUNER_DEVICE_DEVICESPEC_H
