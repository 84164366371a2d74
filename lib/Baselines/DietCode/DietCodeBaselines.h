//===- DietCodeBaselines.h - Peers of DietCode ------------------*- C++ -*-===//
//
// Source: DietCode (DietCodeSpace.h), sections 2, 4.1 and 5. Its peers tune
// static shapes, one search each, with tiles that divide the extents of that
// shape, and serve a range by what they found:
//
//     per-shape          each sampled shape has a search, and a kernel (Ansor)
//     largest            the kernel of the largest shape serves all, padded
//                        locally
//     loop-partitioning  as `largest`; blocks of one row of threads compute
//                        the rows along the main axis that full tiles do not
//                        cover (Nimble)
//     bucket             the range is cut into buckets of equal width; a kernel
//                        is tuned for a bucket's end, and computes that end for
//                        every size of the bucket
//     global-padding     as `largest`; operands are padded to whole tiles in
//                        device memory
//
// Kernels here pad locally: a grid has the blocks that reach the extent. So the
// tiles of a bucket are such that its smallest size takes as many blocks as its
// end; then the kernel always computes the end of the bucket. Copies that pad
// and slice operands are not part of a plan; `paddingCopies` gives their price.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODEBASELINES_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODEBASELINES_H

#include "DietCodeTuner.h"
#include "FTuner/Search/Ranking/ProgramRanker.h"

namespace ftuner {

enum class DietCodeMode {
  Joint,
  PerShape,
  Largest,
  LoopPartitioning,
  Bucket,
  GlobalPadding,
};

/// Returns the ends of at most `count` buckets of equal width that cover an
/// axis, ascending. Buckets of an open range have a constant ratio, and end
/// with the last sample.
std::vector<int64_t> bucketEnds(const Axis &axis, int64_t count);

/// Returns whether a family has as many blocks along each space axis for one
/// shape as for another.
bool haveEqualGrids(const KernelFamily &family, llvm::ArrayRef<int64_t> a,
                    llvm::ArrayRef<int64_t> b);

/// Returns the family with a second tile of as few rows along the main axis as
/// possible, which computes the rows that full tiles do not cover; no value if
/// the path has no such pair.
std::optional<KernelFamily> withPartitionedLoop(const SearchProblem &problem,
                                                const KernelFamily &family);

/// Cost of padding operands to a larger shape, and of slicing the result: one
/// kernel copies each operand whose size changes.
struct PaddingCopies {
  int64_t kernels = 0;
  double bytes = 0;

  /// Returns the time at the bandwidth of device memory, plus a launch for each
  /// kernel.
  double microseconds(const SearchProblem &problem) const;
};
PaddingCopies paddingCopies(const Workload &workload,
                            llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<int64_t> padded);

/// The plan of one of the peers. Ranks only the plan's own program.
class DietCodeBaseline final : public ProgramRanker {
public:
  /// Makes the tuner of one shape; `searches` tuners share a budget. `spent`
  /// micro-kernels of this tuner's share were asked for before. Null if nothing
  /// of the share is left.
  using TunerFactory = llvm::function_ref<std::unique_ptr<DietCodeTuner>(
      llvm::ArrayRef<WeightedShape> shape, bool onlyDivisors, size_t searches,
      int64_t spent)>;

  /// Searches for the plan of any mode except `Joint`. `instances` are the
  /// shapes that the plan is predicted for, and that `PerShape` searches for.
  /// `measurer` is null if predictions replace measurements. A search that
  /// finds no micro-kernel gets one of another search; returns null if no
  /// search finds any.
  static llvm::Expected<std::unique_ptr<DietCodeBaseline>>
  create(const SearchProblem &problem, DietCodeMode mode, int64_t buckets,
         std::vector<WeightedShape> instances,
         std::unique_ptr<LoggingMeasurer> measurer, TunerFactory makeTuner);

  llvm::Expected<RankedShape> rank(llvm::ArrayRef<int64_t> shape) override;
  void describe(const RankedShape &ranked, ShapeReport &report) override;

  const Plan plan;

private:
  DietCodeBaseline(const SearchProblem &problem, CandidateSet set, Plan plan)
      : ProgramRanker(problem, std::move(set)), plan(std::move(plan)) {}
};

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODEBASELINES_H
