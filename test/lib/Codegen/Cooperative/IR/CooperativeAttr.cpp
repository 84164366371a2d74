//===- CooperativeAttr.cpp - The schedule of the cooperative path in IR ---===//
#include "../CooperativeSchedule.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/TypeSwitch.h"

#define GET_ATTRDEF_CLASSES
#include "CooperativeAttr.h.inc"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

[[maybe_unused]] static OptionalParseResult
generatedAttributeParser(AsmParser &parser, StringRef *mnemonic, Type type,
                         Attribute &value);
[[maybe_unused]] static LogicalResult
generatedAttributePrinter(Attribute def, AsmPrinter &printer);

#define GET_ATTRDEF_CLASSES
#include "CooperativeAttr.cpp.inc"

CooperativeAttr CooperativeAttr::get(MLIRContext *context,
                                     const Schedule &schedule) {
  CooperativeSchedule own = CooperativeSchedule::of(schedule);
  return get(context, own.rows, own.warps);
}

Schedule CooperativeAttr::toSchedule() const {
  return CooperativeSchedule{getRows(), getWarps()}.pack();
}

LogicalResult
CooperativeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        int64_t rows, int64_t warps) {
  if (rows < 1 || warps < 1)
    return emitError() << "expected at least 1 row and 1 warp, but got " << rows
                       << " and " << warps;
  return success();
}

LogicalResult CooperativeAttr::verifyTile(function_ref<InFlightDiagnostic()>,
                                          ArrayRef<int64_t>) const {
  return success();
}

namespace ftuner {
void cooperativeRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<CooperativeAttr>();
  });
}
} // namespace ftuner
