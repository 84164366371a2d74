//===- BatchTile.cpp - Elements of batch axes in a block ------------------===//
#include "FTuner/Codegen/BatchTile.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

BatchTile BatchTile::of(const Workload &workload, const BlockTile &tile) {
  ContractionView view(workload);
  BatchTile result;
  for (unsigned axis : view.batchAxes().list())
    if (tile[axis] > 1)
      result.sides.push_back({axis,
                              tile[axis],
                              {llvm::is_contained(view.lhs().axes, axis),
                               llvm::is_contained(view.rhs().axes, axis)}});
  return result;
}
