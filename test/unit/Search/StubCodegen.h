//===- StubCodegen.h - A codegen model for tests ----------------*- C++ -*-===//
//
// A path with few and unusual granules, so that tests of the search do not
// depend on what a real path can emit today.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_SEARCH_STUBCODEGEN_H
#define FTUNER_TEST_UNIT_SEARCH_STUBCODEGEN_H

#include "FTuner/Codegen/CodegenModel.h"

namespace ftuner {

class StubCodegen : public CodegenModel {
public:
  /// Combines heights along `axes`.
  explicit StubCodegen(llvm::SmallVector<unsigned> axes = {Workload::kM})
      : axes(std::move(axes)) {}

  llvm::StringRef name() const override { return "stub"; }
  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &) const override {
    if (workload.axes.size() <= 6)
      return llvm::Error::success();
    return llvm::createStringError("stub: expected at most six axes");
  }
  TileGranules granules(const Workload &, const DeviceSpec &) const override {
    TileGranules granules;
    granules.registerTiles = {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4}};
    granules.stages = {2, 3};
    granules.combineAxes = axes;
    return granules;
  }
  int64_t restRegisters(const Workload &, const UKernel &) const override {
    return 40;
  }
  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    KernelResources result;
    result.threads = family.threads();
    for (const UKernel &part : family.parts) {
      int64_t bytes = 4 * family.stages * part.smemTile[2] *
                      (part.smemTile[0] + part.smemTile[1]);
      int64_t registers =
          part.regTile[0] * part.regTile[1] + restRegisters(workload, part);
      result.sharedMemoryBytes = std::max(result.sharedMemoryBytes, bytes);
      result.registersPerThread =
          std::max(result.registersPerThread, registers);
    }
    return result;
  }
  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    return resources(workload, family).registersPerThread + 32;
  }
  BlockWork work(const Workload &, const UKernel &part,
                 const KernelFamily &family,
                 const DeviceSpec &) const override {
    BlockWork work;
    work.warps = ceilDiv(part.threads(), 32);
    work.stepDepth = part.smemTile[2];
    work.fma =
        work.warps * part.smemTile[2] * part.regTile[0] * part.regTile[1];
    work.globalBytes =
        4 * part.smemTile[2] * (part.smemTile[0] + part.smemTile[1]);
    work.registersPerThread = part.regTile[0] * part.regTile[1] + 40;
    work.stepsAhead = family.stages - 1;
    return work;
  }
  llvm::Error check(const Workload &, const KernelFamily &family,
                    const DeviceSpec &) const override {
    if (family.vectorWidth != 1 && family.vectorWidth != 4)
      return llvm::createStringError("stub: expected vector width 1 or 4");
    return llvm::Error::success();
  }
  int64_t vectorWidth(const Workload &,
                      llvm::ArrayRef<int64_t> shape) const override {
    return shape[1] % 4 == 0 ? 4 : 1;
  }
  int64_t guaranteedVectorWidth(const Workload &workload) const override {
    const SizeRange &n = workload.axes[1].range;
    return n.min % 4 == 0 && (n.isFixed() || n.step % 4 == 0) ? 4 : 1;
  }

private:
  llvm::SmallVector<unsigned> axes;
};

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_SEARCH_STUBCODEGEN_H
