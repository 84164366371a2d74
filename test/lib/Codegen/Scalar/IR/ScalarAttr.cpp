//===- ScalarAttr.cpp - The schedule of the scalar path in IR -------------===//
#include "../ScalarSchedule.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "TestOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/TypeSwitch.h"

#define GET_ATTRDEF_CLASSES
#include "ScalarAttr.h.inc"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

[[maybe_unused]] static OptionalParseResult
generatedAttributeParser(AsmParser &parser, StringRef *mnemonic, Type type,
                         Attribute &value);
[[maybe_unused]] static LogicalResult
generatedAttributePrinter(Attribute def, AsmPrinter &printer);

#define GET_ATTRDEF_CLASSES
#include "ScalarAttr.cpp.inc"

static LogicalResult verifyThreads(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t threadsM, int64_t threadsN) {
  if (threadsM < 1 || threadsN < 1)
    return emitError() << "expected at least 1 thread, but got " << threadsM
                       << " x " << threadsN;
  return success();
}

ScalarAttr ScalarAttr::get(MLIRContext *context, const Schedule &schedule) {
  ScalarSchedule scalar = ScalarSchedule::of(schedule);
  return get(context, scalar.threadsM, scalar.threadsN);
}

Schedule ScalarAttr::toSchedule() const {
  return ScalarSchedule{getThreadsM(), getThreadsN()}.pack(scalarModel());
}

LogicalResult ScalarAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t threadsM, int64_t threadsN) {
  return verifyThreads(emitError, threadsM, threadsN);
}

LogicalResult ScalarAttr::verifyTile(function_ref<InFlightDiagnostic()>,
                                     ArrayRef<int64_t>) const {
  return success();
}

ExactAttr ExactAttr::get(MLIRContext *context, const Schedule &schedule) {
  ScalarSchedule scalar = ScalarSchedule::of(schedule);
  return get(context, scalar.threadsM, scalar.threadsN);
}

Schedule ExactAttr::toSchedule() const {
  return ScalarSchedule{getThreadsM(), getThreadsN()}.pack(exactModel());
}

LogicalResult ExactAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t threadsM, int64_t threadsN) {
  return verifyThreads(emitError, threadsM, threadsN);
}

LogicalResult ExactAttr::verifyTile(function_ref<InFlightDiagnostic()>,
                                    ArrayRef<int64_t>) const {
  return success();
}

MappedAttr MappedAttr::get(MLIRContext *context, const Schedule &schedule) {
  ScalarSchedule scalar = ScalarSchedule::of(schedule);
  return get(context, scalar.threadsM, scalar.threadsN, scalar.hasMaps);
}

Schedule MappedAttr::toSchedule() const {
  return ScalarSchedule{getThreadsM(), getThreadsN(), getMaps()}.pack(
      mappedModel());
}

LogicalResult MappedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t threadsM, int64_t threadsN, bool) {
  return verifyThreads(emitError, threadsM, threadsN);
}

LogicalResult MappedAttr::verifyTile(function_ref<InFlightDiagnostic()>,
                                     ArrayRef<int64_t>) const {
  return success();
}

namespace ftuner {
/// Programs with the path have the operators that it computes, too.
void scalarRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<ScalarAttr>();
  });
  test::registerTestDialect(registry);
}

void exactRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<ExactAttr>();
  });
}

void mappedRegister(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, UKernelDialect *dialect) {
    dialect->addSchedule<MappedAttr>();
  });
}
} // namespace ftuner
