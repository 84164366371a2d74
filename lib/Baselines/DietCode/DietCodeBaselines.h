//===- DietCodeBaselines.h - What DietCode is compared with -----*- C++ -*-===//
//
// Source: DietCode (DietCodeSpace.h), sections 2, 4.1 and 5. Its peers tune
// static shapes, one search each, with tiles that divide the extents of that
// shape, and serve a range by what they found:
//
//     per-shape          each sampled shape has a search, and a kernel (Ansor)
//     largest            the kernel of the largest shape serves all, padded
//                        locally
//     loop-partitioning  the same, but what its full tiles do not cover along
//                        the main axis is left to blocks of one row of threads
//                        (Nimble)
//     bucket             the range is cut into buckets of equal width; a kernel
//                        is tuned for a bucket's end, and computes that end for
//                        every size of the bucket
//     global-padding     as `largest`; operands are padded to whole tiles in
//                        device memory
//
// Kernels here pad locally: blocks are as many as reach the extent. So a
// bucket has tiles of which its least size takes as many blocks as its end;
// then the kernel computes the end of the bucket, with no other means. Copies
// that pad and slice operands are no part of a plan; they are priced
// (`paddingCopies`).
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

/// Ends of at most `count` buckets of equal width that cover an axis,
/// ascending; of an open range they end where sampling does, at a constant
/// ratio.
std::vector<int64_t> bucketEnds(const Axis &axis, int64_t count);

/// Returns whether a family has as many blocks along each space axis for one
/// shape as for another.
bool haveEqualGrids(const KernelFamily &family, llvm::ArrayRef<int64_t> a,
                    llvm::ArrayRef<int64_t> b);

/// The family with blocks of fewest rows beside its own along the main axis, so
/// that full tiles cover what they can; none where the path has no such pair.
std::optional<KernelFamily> withPartitionedLoop(const SearchProblem &problem,
                                                const KernelFamily &family);

/// The cost of padding operands to a larger shape, and of slicing the result:
/// each operand whose size changes is copied once by a kernel of its own.
struct PaddingCopies {
  int64_t kernels = 0;
  double bytes = 0;

  /// By the bandwidth of device memory, and a launch for each kernel.
  double microseconds(const SearchProblem &problem) const;
};
PaddingCopies paddingCopies(const Workload &workload,
                            llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<int64_t> padded);

/// A plan as one of the peers has it. Ranks the plan's own program alone.
class DietCodeBaseline final : public ProgramRanker {
public:
  /// Makes the tuner of one shape; `searches` tuners share a budget. `spent`
  /// micro-kernels of this tuner's share were asked for before. Null if nothing
  /// of the share is left.
  using TunerFactory = llvm::function_ref<std::unique_ptr<DietCodeTuner>(
      llvm::ArrayRef<WeightedShape> shape, bool onlyDivisors, size_t searches,
      int64_t spent)>;

  /// Any mode but `Joint`. `instances` are the shapes that the plan is
  /// predicted for, and the searches of `PerShape`. `measurer` is null where
  /// predictions stand in. A search that finds no micro-kernel has that of
  /// another; null where none finds any.
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
