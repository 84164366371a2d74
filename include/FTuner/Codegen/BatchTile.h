//===- BatchTile.h - Elements of batch axes in a block ----------*- C++ -*-===//
//
// A block may compute several elements of batch axes, each a product of its
// own: where these are small, a block of one would leave most threads idle.
// Elements of the tile are numbered, the last axis fastest. A factor that lacks
// an axis has one matrix for all elements along it.
//
// Formulas are over a `Math` of the operations of IndexMath, so that emitters
// build IR from them and models count with numbers, by one text.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_BATCHTILE_H
#define FTUNER_CODEGEN_BATCHTILE_H

#include "FTuner/Schedule/KernelFamily.h"
#include "FTuner/Workload/Workload.h"

namespace ftuner {

struct BatchTile {
  struct Side {
    unsigned axis;
    int64_t elements;
    /// Whether lhs (0) and rhs (1) have the axis.
    bool isOf[2];
  };
  /// Batch axes with more than one element, in the order of axes.
  llvm::SmallVector<Side, 1> sides;

  static BatchTile of(const Workload &workload, const BlockTile &tile);

  int64_t elements() const {
    int64_t product = 1;
    for (const Side &side : sides)
      product *= side.elements;
    return product;
  }
  /// Matrices of a factor, lhs (0) or rhs (1).
  int64_t matrices(unsigned factor) const {
    int64_t product = 1;
    for (const Side &side : sides)
      if (side.isOf[factor])
        product *= side.elements;
    return product;
  }
};

/// The position of an element, or of a factor's matrix, along each side, by its
/// number; nothing along sides that the factor lacks.
template <typename Math>
llvm::SmallVector<std::optional<typename Math::Index>, 1>
batchPoint(Math &math, const BatchTile &tile, typename Math::Index number,
           std::optional<unsigned> factor = std::nullopt) {
  llvm::SmallVector<std::optional<typename Math::Index>, 1> point(
      tile.sides.size());
  int64_t left = factor ? tile.matrices(*factor) : tile.elements();
  auto rest = number;
  for (size_t i = tile.sides.size(); i-- > 0;) {
    const BatchTile::Side &side = tile.sides[i];
    if (factor && !side.isOf[*factor])
      continue;
    left /= side.elements;
    if (left == 1) {
      point[i] = rest;
      break;
    }
    point[i] = math.rem(rest, side.elements);
    rest = math.div(rest, side.elements);
  }
  return point;
}

/// The number of a factor's matrix for an element.
template <typename Math>
typename Math::Index matrixOf(Math &math, const BatchTile &tile,
                              unsigned factor, typename Math::Index number) {
  if (tile.matrices(factor) == tile.elements())
    return number;
  auto point = batchPoint(math, tile, number);
  auto matrix = math.constant(0);
  for (auto [side, position] : llvm::zip_equal(tile.sides, point))
    if (side.isOf[factor])
      matrix = math.add(math.mul(matrix, side.elements), *position);
  return matrix;
}

} // namespace ftuner

#endif // FTUNER_CODEGEN_BATCHTILE_H
