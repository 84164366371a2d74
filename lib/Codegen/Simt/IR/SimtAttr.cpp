//===- SimtAttr.cpp - The schedule of the SIMT path in IR -----------------===//
#include "SimtAttr.h"
#include "FTuner/Codegen/IR/ContractionSchedule.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"

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
#include "SimtAttr.cpp.inc"

SimtAttr SimtAttr::get(MLIRContext *context, const Schedule &schedule) {
  SimtSchedule simt = SimtSchedule::of(schedule);
  return get(context, {simt.threadsM, simt.threadsN}, simt.stages,
             simt.vectorWidth);
}

Schedule SimtAttr::toSchedule() const {
  SimtSchedule simt;
  simt.threadsM = getThreads()[0];
  simt.threadsN = getThreads()[1];
  simt.stages = getStages();
  simt.vectorWidth = getVector();
  return simt.pack();
}

LogicalResult SimtAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> threads, int64_t stages,
                               int64_t vector) {
  if (failed(verifyContractionSchedule(emitError, "thread", threads, stages)))
    return failure();
  if (vector != 1 && vector != 2 && vector != 4)
    return emitError() << "expected vector of 1, 2 or 4, but got " << vector;
  return success();
}

LogicalResult SimtAttr::verifyTile(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> tile) const {
  if (failed(verifyContractionTile(emitError, tile)))
    return failure();
  for (auto [factor, threads] : llvm::enumerate(getThreads())) {
    unsigned axis = tileAxes.space(factor);
    if (tile[axis] % threads != 0)
      return emitError() << "expected the tile on axis " << axis
                         << " to be a multiple of " << threads
                         << " threads, but got " << tile[axis];
  }
  return success();
}

namespace ftuner {
void simtRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<SimtAttr>();
  });
}
} // namespace ftuner
