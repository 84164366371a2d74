//===- MmaAttr.cpp - The schedule of the mma path in IR -------------------===//
#include "MmaAttr.h"
#include "FTuner/Codegen/IR/ContractionSchedule.h"
#include "FTuner/Codegen/Mma/MmaLayout.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

// The dialect finds the attribute by its name (`addSchedule`).
[[maybe_unused]] static OptionalParseResult
generatedAttributeParser(AsmParser &parser, StringRef *mnemonic, Type type,
                         Attribute &value);
[[maybe_unused]] static LogicalResult
generatedAttributePrinter(Attribute def, AsmPrinter &printer);

#define GET_ATTRDEF_CLASSES
#include "MmaAttr.cpp.inc"

MmaAttr MmaAttr::get(MLIRContext *context, const Schedule &schedule) {
  MmaSchedule mma = MmaSchedule::of(schedule);
  return get(context, {mma.warpsM, mma.warpsN}, mma.stages, mma.accessBytes,
             mma.swapOperands);
}

Schedule MmaAttr::toSchedule() const {
  MmaSchedule mma;
  mma.warpsM = getWarps()[0];
  mma.warpsN = getWarps()[1];
  mma.stages = getStages();
  mma.accessBytes = getAccess();
  mma.swapOperands = getSwapOperands();
  return mma.pack();
}

LogicalResult MmaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              ArrayRef<int64_t> warps, int64_t stages,
                              int64_t access, bool swapOperands) {
  if (failed(verifyContractionSchedule(emitError, "warp", warps, stages)))
    return failure();
  if (access != 1 && access != 4 && access != 8 && access != kMmaChunkBytes)
    return emitError() << "expected access of 1, 4, 8 or 16 bytes, but got "
                       << access;
  return success();
}

LogicalResult MmaAttr::verifyTile(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> tile) const {
  if (failed(verifyContractionTile(emitError, tile)))
    return failure();
  MmaSchedule mma = MmaSchedule::of(toSchedule());
  for (unsigned factor : {0, 1}) {
    unsigned axis = tileAxes.space(factor);
    int64_t fragment = mma.fragmentAlong(factor),
            warps = mma.warpsAlong(factor);
    // Divided twice: the product may not fit.
    if (tile[axis] % fragment != 0 || tile[axis] / fragment % warps != 0)
      return emitError() << "expected the tile on axis " << axis
                         << " to be a multiple of " << fragment
                         << " elements for each of " << warps
                         << " warps, but got " << tile[axis];
  }
  return success();
}

namespace ftuner {
void mmaRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<MmaAttr>();
  });
}
} // namespace ftuner
