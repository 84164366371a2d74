//===- KernelFamily.h - Kernel families and their covers --------*- C++ -*-===//
//
// A uKernel is what one thread block computes (paper, section III). Along the
// main axis its height is g·h: g threads with h rows each. Two uKernels with
// the same g and equal tiles on the other axes make a kernel family: one kernel
// with the number of blocks of the first part as a parameter. Heights g·a and
// g·b with coprime a < b cover H exactly whenever g divides H and H/g ≥ (a −
// 1)·(b − 1); e.g. g = 1, a = 7, b = 8: 53 = 3·7 + 4·8. So one family serves
// almost every size in closed form, also in open ranges. Where no exact cover
// exists the last block pads locally.
//
// An exact cover takes as few low blocks as it can, so the last wave may leave
// most SMs idle. A balanced cover takes as many blocks as give each of S SMs
// the same number, and as few high ones as cover the extent: with heights 96
// and 112 and 18 blocks beside each other on 132 SMs, 640 rows are exactly 2 ·
// 96 + 4 · 112, 108 blocks; balanced they are 7 blocks of 96, 126 blocks, each
// less work, in the same one round. What is padded is less than the difference
// of the heights where there are high blocks, else less than the low height.
//
// A family is block tiles and a schedule (Schedule.h). What the schedule makes of
// a tile (threads, tiles in registers, resources) its codegen path says
// (CodegenModel.h); g is the path's granule of heights.
//
// Rejected: a kernel for each size (80 to 116 kernels for 128 sizes); parts of
// different schedules (the paper asks for equal threads and equal tiles on the
// other axes, so g is equal too).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_KERNELFAMILY_H
#define FTUNER_SCHEDULE_KERNELFAMILY_H

#include "FTuner/Schedule/Schedule.h"
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ftuner {

/// Tile sizes of a thread block along each axis of the workload, in elements.
using BlockTile = llvm::SmallVector<int64_t, 6>;

/// What one block of a family computes, by its tiles at two memory levels
/// (paper, table I): the block's in shared memory, a worker's in registers. A
/// worker is what holds a tile of its own: a thread, or a warp of tensor core
/// instructions. Codegen paths derive it from the block tile and the schedule.
struct UKernel {
  BlockTile blockTile;
  /// Reduce axes have register tile 1.
  BlockTile registerTile;
  /// Workers of the block.
  int64_t workers = 1;
  /// Slices of the reduce axis that different blocks sum; 1 means unsplit.
  int64_t reduceSplit = 1;

  /// e.g. "[112,64,16]/[7,4,1]".
  std::string str() const;
};

/// More SMs than any device has (`KernelFamily::balancedSms`): the host
/// multiplies by them.
constexpr int64_t maxBalancedSms = 1 << 16;

/// The unit of code: one block tile, or two whose heights on `combineAxis` are
/// g·a and g·b, a < b, in one kernel with one schedule.
struct KernelFamily {
  /// One or two, of ascending heights; equal on the other axes.
  llvm::SmallVector<BlockTile, 2> tiles;
  /// How the codegen path computes the tiles.
  Schedule schedule;
  /// Axis along which the two parts lie; meaningful also with one part.
  unsigned combineAxis = Workload::kM;
  /// The workload's reduce axes, a bit for each: blocks step through them.
  uint32_t reduceAxes = 1u << Workload::kK;
  /// Slices of the reduce axis that different blocks sum; 1 means unsplit.
  int64_t reduceSplit = 1;
  /// SMs over which covers by two parts balance the blocks; 0 for exact covers.
  int64_t balancedSms = 0;

  const CodegenModel &path() const { return schedule.path(); }
  bool isReduceAxis(unsigned axis) const { return reduceAxes >> axis & 1; }
  /// Rows of a part's blocks: its tile along the combine axis.
  int64_t height(unsigned part) const { return tiles[part][combineAxis]; }
  int64_t lowHeight() const { return tiles.front()[combineAxis]; }
  int64_t highHeight() const { return tiles.back()[combineAxis]; }
  bool operator==(const KernelFamily &other) const {
    return tiles == other.tiles && schedule == other.schedule &&
           combineAxis == other.combineAxis &&
           reduceAxes == other.reduceAxes &&
           reduceSplit == other.reduceSplit &&
           balancedSms == other.balancedSms;
  }
  // What the path derives (CodegenModel.h has the details).
  int64_t threads() const;
  /// Bytes to which every pointer and row must be aligned.
  int64_t alignment() const;
  /// Whether elements' own alignment is enough.
  bool takesAnyAlignment() const;
  UKernel ukernel(unsigned part) const;
  /// The path, uKernels, axis and schedule, e.g.
  /// "PATH [112,64,16]/[7,4,1] axis 0 stages 3 vector 4".
  std::string str() const;
};

/// e.g. "[112,64,16]".
std::string tileText(llvm::ArrayRef<int64_t> tile);

/// What every path asks of a family for a workload: one or two tiles of as many
/// axes, of ascending heights on a space axis and equal elsewhere; sizes whose
/// products fit in 64 bits; a positive split; balanced covers of two tiles
/// alone.
llvm::Error checkTiles(const Workload &workload, const KernelFamily &family);

/// How many blocks of each part cover an extent of the combine axis.
struct Cover {
  int64_t first = 0;
  int64_t second = 0;
  /// Elements beyond the extent that the last block pads locally.
  int64_t padded = 0;
  int64_t blocks() const { return first + second; }
};

/// Covers `extent` of the combine axis with the family, which has
/// `blocksBeside` ≥ 1 blocks for each one along it. Exact where possible with
/// the smallest `first`, otherwise with the larger part alone and local
/// padding; or balanced (`balancedCover`). A family with one part has all its
/// blocks in `first`.
///
/// Closed form, in units of gcd(heights): with u = ceil(extent / unit) and the
/// heights a < b in units, first = u · a⁻¹ mod b, where a⁻¹ is the inverse of a
/// modulo b (Diophantine u = first · a + second · b).
///
/// Holds for every extent ≥ 1 and all heights 1 ≤ low < high: blocks lie one
/// after the other from row 0 on, so each row below the extent is written once
/// if the heights sum up to `extent` + `padded` with padded ≥ 0, and only the
/// last block pads if padded is less than its height.
///   Exact: every cover of u units has first · a ≡ u (mod b), so its `first` is
///   u · a⁻¹ mod b or a multiple of b more, and there is none if already the
///   least of these needs more than u units. Else (u − first · a) / b is whole
///   and at least 0, and padded = u · unit − extent < unit ≤ low.
///   Not exact: ceil(u / b) high blocks hold at least u units, and one less
///   would not, so padded < high.
Cover coverExtent(const KernelFamily &family, int64_t extent,
                  int64_t blocksBeside);
/// The same for a shape: the extents of all axes.
Cover coverShape(const KernelFamily &family, llvm::ArrayRef<int64_t> shape);
/// Blocks of the family for each one along the combine axis.
int64_t blocksBeside(const KernelFamily &family, llvm::ArrayRef<int64_t> shape);

/// A cover by heights low < high that gives each of `sms` SMs the same number
/// of blocks: from the fewest blocks that can cover, u = ceil(extent / high),
/// with q = ceil(u · blocksBeside / sms) of them on an SM, to
///
///   n = clamp(floor(q · sms / blocksBeside), u, ceil(extent / low))
///
/// blocks along the axis, of which s = max(0, ceil((extent − n · low) / (high −
/// low))) are high ones.
///
/// Holds for every extent ≥ 1, all heights 1 ≤ low < high and any n from u to
/// t = ceil(extent / low), so whatever the SMs and the blocks beside are (as
/// for `coverExtent`, each row once and padding in the last block alone):
///   0 ≤ s ≤ n, since n ≥ u gives n · high ≥ extent, that is extent − n · low ≤
///   n · (high − low).
///   All rows: n · low + s · (high − low) ≥ extent by the choice of s.
///   With s > 0: one high block less would not reach, n · low + (s − 1) · (high
///   − low) < extent, so padded < high − low < high, the last block's height.
///   With s = 0: n · low ≥ extent, so n = t, and padded = t · low − extent <
///   low, the last block's height.
Cover balancedCover(int64_t low, int64_t high, int64_t sms,
                    int64_t blocksBeside, int64_t extent);

/// What `coverExtent` needs to know of two heights.
struct CoverConstants {
  int64_t unit = 1;    ///< gcd of the heights
  int64_t low = 1;     ///< smaller height in units (a)
  int64_t high = 1;    ///< larger height in units (b)
  int64_t inverse = 1; ///< a⁻¹ modulo b, in [0, b)
};
/// Heights are positive, `low` < `high`.
CoverConstants coverConstants(int64_t low, int64_t high);
/// `coverExtent` of two uKernels with these heights; `extent` is positive.
Cover coverWithPair(const CoverConstants &constants, int64_t extent);

/// The family without the part that has no blocks in the cover: families with
/// equal running parts run the same program.
KernelFamily runningParts(const KernelFamily &family, const Cover &cover);

/// A family together with its cover of one shape.
struct Program {
  const KernelFamily *family = nullptr;
  Cover cover;
};

} // namespace ftuner

#endif // FTUNER_SCHEDULE_KERNELFAMILY_H
