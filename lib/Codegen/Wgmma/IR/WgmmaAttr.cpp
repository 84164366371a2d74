//===- WgmmaAttr.cpp - The schedule of the wgmma path in IR ---------------===//
#include "WgmmaAttr.h"
#include "FTuner/Codegen/IR/ContractionSchedule.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"

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
#include "WgmmaAttr.cpp.inc"

WgmmaAttr WgmmaAttr::get(MLIRContext *context, const Schedule &schedule) {
  WgmmaSchedule wgmma = WgmmaSchedule::of(schedule);
  return get(context, {wgmma.groupsM, wgmma.groupsN}, wgmma.stages,
             wgmma.accessBytes, wgmma.swapOperands);
}

Schedule WgmmaAttr::toSchedule() const {
  WgmmaSchedule wgmma;
  wgmma.groupsM = getGroups()[0];
  wgmma.groupsN = getGroups()[1];
  wgmma.stages = getStages();
  wgmma.accessBytes = getAccess();
  wgmma.swapOperands = getSwapOperands();
  return wgmma.pack();
}

LogicalResult WgmmaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> groups, int64_t stages,
                                int64_t access, bool swapOperands) {
  if (failed(verifyContractionSchedule(emitError, "group", groups, stages)))
    return failure();
  if (access != 1 && access != 4 && access != 8 && access != 16)
    return emitError() << "expected access of 1, 4, 8 or 16 bytes, but got "
                       << access;
  return success();
}

LogicalResult
WgmmaAttr::verifyTile(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<int64_t> tile) const {
  if (failed(verifyContractionTile(emitError, tile)))
    return failure();
  WgmmaSchedule wgmma = WgmmaSchedule::of(toSchedule());
  for (unsigned axis : {Workload::kM, Workload::kN}) {
    int64_t granule = wgmma.granuleAlong(axis),
            groups = wgmma.groupsAlong(axis);
    // Divided twice: the product may not fit.
    if (tile[axis] % granule != 0 || tile[axis] / granule % groups != 0)
      return emitError() << "expected the tile on axis " << axis
                         << " to be a multiple of " << granule
                         << " elements for each of " << groups
                         << " groups, but got " << tile[axis];
  }
  return success();
}

namespace ftuner {
void wgmmaRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<WgmmaAttr>();
  });
}
} // namespace ftuner
