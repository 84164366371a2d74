//===- RollerTree.h - Tiles as Roller constructs them -----------*- C++ -*-===//
//
// Source: Zhu et al., "ROLLER: Fast and Efficient Tensor Compilation for Deep
// Learning", OSDI 2022, and its artifact (artifacts/roller in
// github.com/microsoft/nnfusion), from which the constants come.
//
// Aligned tiles (rTiles). Register tiles are powers of two. A block has whole
// warps, at most 512 threads, and at most half of a block's registers; its
// rows begin and end at memory transactions of 32 bytes. For one shape a size s
// of an axis with extent e is allowed if it pads little: ceil_by(e, s) ≤ (1 +
// ε) · e.
//
// Construction. A tile grows step by step, always to the next aligned size and
// first along the axis with the greatest data reuse score
//
//     (Q(T) − Q(T')) / (F(T') − F(T))      T' the tile after the step
//
// with the traffic Q that the tile causes and its footprint F. It passes when
// it is compute bound or nothing larger fits or is a candidate; then the next
// level grows:
//
//     level      Q                          F                     limit
//     register   M·N·K · (1/rm + 1/rn)      rm·rn + rm + rn       registers
//     block      |A| · gridN + |B| · gridM  bytes of (bm, bn)     threads,
//                                                        shared memory
//
// That is a tree of which the first 10 leaves count. ε begins at 0 and rises by
// 0.2 up to 1 while there are fewer. Scale-out: a leaf with fewer blocks than
// SMs is halved along the axis with the least reuse until it has enough.
//
// Performance model: one padded tile at the device's peak figures, times the
// tiles that the device has time for until all blocks are done.
//
//     seconds  = max(slots(w) · max(flops / peak, shared bytes / bw_S),
//                    slots(4) · global bytes / bw_G)
//     slots(w) = ceil_by(blocks, SMs · active)       beyond SMs · active blocks
//                ceil_by(blocks · w, 4 · SMs) / w    up to there
//
// with w warps in a block, at most the 4 schedulers of an SM, and `active`
// blocks that an SM holds at once.
//
// Ours: tiles are those candidates of HardwareAlign (Candidates.h) that are
// aligned as above, so programs compare with those of other strategies; steps
// along the reduce axis follow the rule there, since reuse is blind to them;
// each codegen path has a tree, and a register tile belongs to one of its
// workers (threads on CUDA cores); the peaks come from the device description,
// while the artifact measures them by micro-benchmarks; and if no tile passes,
// first the 128 threads that a block must have for the schedulers of an SM are
// given up, then ε.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_ROLLER_ROLLERTREE_H
#define FTUNER_LIB_BASELINES_ROLLER_ROLLERTREE_H

#include "FTuner/Search/Ranking/Candidates.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <array>
#include <map>

namespace ftuner {

/// The performance model for one shape (every extent ≥ 1) and codegen path.
class RollerModel {
public:
  /// Problem outlives the model.
  RollerModel(const SearchProblem &problem, const CodegenModel &path,
              llvm::ArrayRef<int64_t> shape);

  /// Predicted time of a uKernel that covers the shape alone.
  double seconds(const UKernel &ukernel,
                 const KernelResources &resources) const;
  /// Thread blocks that cover the shape, at most `maxBlocks`.
  int64_t blocks(int64_t bm, int64_t bn) const;

  bool isRegisterTileComputeBound(int64_t rm, int64_t rn) const;
  bool isBlockTileComputeBound(int64_t bm, int64_t bn) const;

  /// Data reuse scores of growing a tile to `to` on one axis; of shrinking it,
  /// with the arguments exchanged.
  double registerReuse(std::array<int64_t, 2> from,
                       std::array<int64_t, 2> to) const;
  double blockReuse(std::array<int64_t, 2> from,
                    std::array<int64_t, 2> to) const;

private:
  const SearchProblem &problem;
  ContractionAxes axes;
  Shape shape;
  /// FLOP/s of the path.
  double peak = 1, flopsPerPoint = 2;
  /// Elements of lhs, rhs and output in bytes.
  double lhsBytes = 4, rhsBytes = 4, outputBytes = 4;
  /// Product of the batch extents.
  double batch = 1;
};

/// Counts of the construction for one shape.
struct RollerCounts {
  int64_t registerTiles = 0, registerTilesKept = 0;
  int64_t blockTiles = 0, blockTilesKept = 0;
  /// Padding threshold ε of the last tree.
  double epsilon = 0;
  /// Blocks with fewer than 128 threads, or more padding than ε allows.
  bool relaxedWarps = false, relaxedPadding = false;
};

/// Returns the candidates of a product that are aligned in Roller's sense, or
/// an error if no candidate is.
llvm::Expected<CandidateSet>
enumerateAlignedTiles(const SearchProblem &problem);

class RollerTree {
public:
  /// The tree of one path. Problem and set (of `enumerateAlignedTiles`) outlive
  /// it.
  RollerTree(const SearchProblem &problem, const CandidateSet &set,
             const CodegenModel &path);

  /// Tells whether a candidate (by index) may be constructed.
  using Allowed = llvm::function_ref<bool(unsigned)>;

  /// Candidates constructed for a shape, each once, in the order of
  /// construction; empty only if none is allowed.
  std::vector<unsigned> construct(llvm::ArrayRef<int64_t> shape,
                                  Allowed isAllowed,
                                  RollerCounts &counts) const;

  using Tile = std::array<int64_t, 2>;
  /// A register and a block tile, without the reduce axis.
  using Tiles = std::pair<Tile, Tile>;
  static Tiles tilesOf(const ContractionAxes &axes, const UKernel &ukernel);
  /// Candidates with the tiles of this one: they differ in the step along the
  /// reduce axis alone.
  llvm::ArrayRef<unsigned> variantsOf(unsigned candidate) const;

private:
  friend class RollerBuilder;

  /// The allowed candidate with these tiles, or null.
  const unsigned *find(const Tile &reg, const Tile &block,
                       Allowed isAllowed) const;
  /// The candidate with half the block along an axis, or null. Half the
  /// register tile along that axis keeps the threads; where the path cannot,
  /// the block has half as many threads, or, if 128 would not be left, half the
  /// register tile along the other axis.
  const unsigned *halve(const UKernel &ukernel, unsigned axis,
                        Allowed isAllowed) const;
  /// Halves a candidate along the axis with the least reuse until there is a
  /// block for each SM.
  unsigned scaleOut(unsigned candidate, const RollerModel &model,
                    Allowed isAllowed) const;

  const SearchProblem &problem;
  ContractionAxes axes;
  const CandidateSet &set;
  const CodegenModel &path;
  /// Minimum bytes of shared memory for each row of a block tile.
  int64_t minRowBytes = 0;
  /// Threads of a worker: 1, or 32 if workers are warps.
  int64_t threadsPerWorker = 1;
  /// By register and block tile.
  std::map<Tiles, std::vector<unsigned>> variants;
  /// Register tile → block tile → candidate.
  std::map<Tile, std::map<Tile, unsigned>> tiles;
};

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_ROLLER_ROLLERTREE_H
