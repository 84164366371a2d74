//===- PlanAttributeVerifiers.cpp - Rules of plans ------------------------===//
//
// Families, choices, rankings, predictions and plans.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/CodegenModel.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult ftuner::ukernel::verifyTiles(EmitError emitError,
                                           ScheduleAttrInterface schedule,
                                           int64_t axis,
                                           ArrayRef<DenseI64ArrayAttr> tiles) {
  if (tiles.empty() || tiles.size() > 2)
    return emitError() << "expected one or two tiles, but got " << tiles.size();
  int64_t rank = tiles.front().size();
  for (DenseI64ArrayAttr tile : tiles) {
    if (tile.size() != rank)
      return emitError() << "expected tiles of " << rank
                         << " axes, but got one of " << tile.size();
    for (int64_t size : tile.asArrayRef())
      if (size < 1)
        return emitError() << "expected tile sizes of at least 1, but got "
                           << size;
    if (failed(schedule.verifyTile(emitError, tile.asArrayRef())))
      return failure();
  }
  if (axis < 0 || axis >= rank)
    return emitError() << "expected axis below " << rank << ", but got "
                       << axis;
  if (tiles.size() == 1)
    return success();
  for (int64_t other = 0; other < rank; ++other)
    if (other != axis && tiles[0][other] != tiles[1][other])
      return emitError() << "expected equal tiles on axis " << other
                         << ", but got " << tiles[0][other] << " and "
                         << tiles[1][other];
  if (tiles[0][axis] >= tiles[1][axis])
    return emitError() << "expected the lower tile first, but got heights "
                       << tiles[0][axis] << " and " << tiles[1][axis];
  return success();
}

LogicalResult FamilyAttr::verify(EmitError emitError,
                                 ScheduleAttrInterface schedule, int64_t axis,
                                 ArrayRef<DenseI64ArrayAttr> tiles,
                                 ArrayRef<int64_t> reduce, int64_t split,
                                 int64_t balanced) {
  if (failed(verifyTiles(emitError, schedule, axis, tiles)))
    return failure();
  for (int64_t reduceAxis : reduce)
    if (reduceAxis < 0 || reduceAxis >= tiles.front().size() ||
        reduceAxis == axis)
      return emitError() << "expected reduce axes below "
                         << tiles.front().size() << " other than axis " << axis
                         << ", but got " << reduceAxis;
  if (split < 1)
    return emitError() << "expected a split-K factor of at least 1, but got "
                       << split;
  if (balanced < 0 || balanced > ftuner::maxBalancedSms)
    return emitError() << "expected 1 to " << ftuner::maxBalancedSms
                       << " SMs to balance blocks over, but got " << balanced;
  if (balanced != 0 && tiles.size() == 1)
    return emitError() << "expected two tiles with balanced partitions";
  return success();
}

LogicalResult ChoiceAttr::verify(EmitError emitError, ArrayRef<RangeAttr> box,
                                 int64_t family) {
  if (box.empty())
    return emitError() << "expected a box of at least one range";
  for (RangeAttr range : box)
    if (range.getStep() != 1 || range.getWeights())
      return emitError() << "expected ranges without step and weights, but got "
                         << range;
  for (RangeAttr range : box)
    if (range.getMin() > ftuner::maxExtent ||
        range.getMax() > ftuner::maxExtent)
      return emitError() << "expected ranges up to " << ftuner::maxExtent
                         << ", but got " << range;
  if (family < 0)
    return emitError() << "expected a family of at least 0, but got " << family;
  return success();
}

/// Predicted times are finite and above 0.
static LogicalResult verifyTimes(EmitError emitError,
                                 DenseF64ArrayAttr microseconds) {
  for (double time : microseconds.asArrayRef())
    if (!std::isfinite(time) || time <= 0)
      return emitError() << "expected finite microseconds above 0, but got "
                         << time;
  return success();
}

/// Measured times are as many as expected, or absent; 0 stands for none.
static LogicalResult verifyMeasured(EmitError emitError,
                                    DenseF64ArrayAttr measured, int64_t count) {
  if (!measured)
    return success();
  if (measured.size() != count)
    return emitError() << "expected " << count
                       << " measured microseconds, but got " << measured.size();
  for (double time : measured.asArrayRef())
    if (!std::isfinite(time) || time < 0)
      return emitError() << "expected finite measured microseconds of at least "
                            "0, but got "
                         << time;
  return success();
}

LogicalResult RankingAttr::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                  ArrayRef<FamilyAttr> families,
                                  DenseF64ArrayAttr scores,
                                  DenseF64ArrayAttr microseconds,
                                  DenseF64ArrayAttr measured) {
  if (families.empty() ||
      static_cast<int64_t>(families.size()) != scores.size())
    return emitError() << "expected families with one score for each, but got "
                       << families.size() << " families and " << scores.size()
                       << " scores";
  for (int64_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i]))
      return emitError() << "expected finite scores, but got " << scores[i];
    if (i > 0 && scores[i] > scores[i - 1])
      return emitError() << "expected scores that do not ascend, but got "
                         << scores[i] << " after " << scores[i - 1];
  }
  if (microseconds) {
    if (microseconds.size() != scores.size())
      return emitError() << "expected microseconds for each of "
                         << families.size() << " families, but got "
                         << microseconds.size();
    if (failed(verifyTimes(emitError, microseconds)))
      return failure();
  }
  if (failed(verifyMeasured(emitError, measured, scores.size())))
    return failure();
  for (int64_t size : shape)
    if (size < 1)
      return emitError() << "expected sizes of at least 1, but got " << size;
  for (FamilyAttr family : families)
    if (size_t rank = family.getRank(); rank != shape.size())
      return emitError() << "expected families of " << shape.size()
                         << " axes, but got one of " << rank;
  return success();
}

LogicalResult PredictionsAttr::verify(
    EmitError emitError, ArrayRef<int64_t> sizes, ArrayRef<int64_t> families,
    DenseF64ArrayAttr microseconds, DenseF64ArrayAttr regrets,
    DenseF64ArrayAttr confidences, DenseF64ArrayAttr measured) {
  size_t count = families.size();
  if (count == 0 || sizes.empty() || sizes.size() % count != 0)
    return emitError() << "expected shapes with a family for each, but got "
                       << sizes.size() << " sizes and " << count << " families";
  for (auto [name, figures] :
       {std::pair(StringRef("microseconds"), microseconds),
        std::pair(StringRef("regrets"), regrets),
        std::pair(StringRef("confidences"), confidences)})
    if (static_cast<size_t>(figures.size()) != count)
      return emitError() << "expected " << name << " for each of " << count
                         << " shapes, but got " << figures.size();
  for (int64_t size : sizes)
    if (size < 1)
      return emitError() << "expected sizes of at least 1, but got " << size;
  for (int64_t family : families)
    if (family < 0)
      return emitError() << "expected families of at least 0, but got "
                         << family;
  for (double regret : regrets.asArrayRef())
    if (!std::isfinite(regret) || regret < 0)
      return emitError() << "expected finite regrets of at least 0, but got "
                         << regret;
  for (double confidence : confidences.asArrayRef())
    if (!(confidence >= 0.5 && confidence <= 1))
      return emitError() << "expected confidences from 0.5 to 1, but got "
                         << confidence;
  if (failed(verifyMeasured(emitError, measured, microseconds.size())))
    return failure();
  return verifyTimes(emitError, microseconds);
}

LogicalResult PlanAttr::verify(EmitError emitError,
                               ArrayRef<FamilyAttr> families,
                               ArrayRef<ChoiceAttr> choices, int64_t general,
                               ArrayRef<ChoiceAttr> unaligned,
                               int64_t unalignedGeneral, DictionaryAttr search,
                               DictionaryAttr, PredictionsAttr predictions,
                               ArrayRef<RankingAttr> rankings) {
  if (families.empty())
    return emitError() << "expected at least one family";
  size_t rank = families.front().getRank();
  for (FamilyAttr family : families)
    if (size_t other = family.getRank(); other != rank)
      return emitError() << "expected families of " << rank
                         << " axes, but got one of " << other;
  auto verifyIndex = [&](StringRef subject, int64_t index) -> LogicalResult {
    if (index >= 0 && index < static_cast<int64_t>(families.size()))
      return success();
    return emitError() << "expected " << subject << " below " << families.size()
                       << ", but got " << index;
  };
  for (ChoiceAttr choice : llvm::concat<const ChoiceAttr>(choices, unaligned)) {
    if (failed(verifyIndex("the family of a choice", choice.getFamily())))
      return failure();
    if (choice.getBox().size() != rank)
      return emitError() << "expected boxes of " << rank
                         << " ranges, but got one of "
                         << choice.getBox().size();
  }
  for (RankingAttr ranking : rankings)
    if (ranking.getShape().size() != rank)
      return emitError() << "expected rankings of " << rank
                         << " sizes, but got one of "
                         << ranking.getShape().size();
  if (predictions) {
    if (predictions.getRank() != rank)
      return emitError() << "expected predictions of " << rank
                         << " sizes, but got some of " << predictions.getRank();
    for (int64_t family : predictions.getFamilies())
      if (failed(verifyIndex("the family of a prediction", family)))
        return failure();
  }
  if (search)
    for (NamedAttribute entry : search)
      if (!isa<StringAttr>(entry.getValue()))
        return emitError() << "expected strings in 'search', but got "
                           << entry.getName() << " = " << entry.getValue();
  if (failed(verifyIndex("general", general)) ||
      failed(verifyIndex("unaligned_general", unalignedGeneral)))
    return failure();
  // Wider accesses would leave operands that are not aligned for them.
  auto verifyAny = [&](StringRef subject, int64_t index) -> LogicalResult {
    Schedule schedule = families[index].getSchedule().toSchedule();
    if (schedule.path().takesAnyAlignment(schedule))
      return success();
    return emitError() << "expected " << subject
                       << " for operands of any alignment, but family " << index
                       << " asks for " << schedule.path().alignment(schedule)
                       << " bytes";
  };
  for (ChoiceAttr choice : unaligned)
    if (failed(verifyAny("unaligned families", choice.getFamily())))
      return failure();
  return verifyAny("an unaligned general family", unalignedGeneral);
}
