//===- MmaAttr.cpp - The schedule of the mma path in IR -------------------===//
#include "MmaAttr.h"
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
  if (warps.size() != 2)
    return emitError() << "expected warps along m and n, but got "
                       << warps.size()
                       << (warps.size() == 1 ? " number" : " numbers");
  for (int64_t along : warps)
    if (along < 1)
      return emitError() << "expected at least 1 warp along m and n, but got "
                         << along;
  if (stages < 1)
    return emitError() << "expected at least 1 stage, but got " << stages;
  if (access != 1 && access != 4 && access != 8 && access != kMmaChunkBytes)
    return emitError() << "expected access of 1, 4, 8 or 16 bytes, but got "
                       << access;
  return success();
}

LogicalResult MmaAttr::verifyTile(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> tile) const {
  if (tile.size() < Workload::kFirstBatch)
    return emitError() << "expected tiles along m, n and k, but got "
                       << tile.size()
                       << (tile.size() == 1 ? " size" : " sizes");
  MmaSchedule mma = MmaSchedule::of(toSchedule());
  for (unsigned axis : {Workload::kM, Workload::kN}) {
    int64_t fragment = mma.fragmentAlong(axis), warps = mma.warpsAlong(axis);
    // Divided twice: the product may not fit.
    if (tile[axis] % fragment != 0 || tile[axis] / fragment % warps != 0)
      return emitError() << "expected the tile on axis " << axis
                         << " to be a multiple of " << fragment
                         << " elements for each of " << warps
                         << " warps, but got " << tile[axis];
  }
  return success();
}

namespace {
class MmaExtension : public DialectExtension<MmaExtension, UKernelDialect> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MmaExtension)

  void apply(MLIRContext *context, UKernelDialect *dialect) const override {
    dialect->addSchedule<MmaAttr>();
  }
};
} // namespace

namespace ftuner {
void mmaRegister(DialectRegistry &registry) {
  registry.addExtensions<MmaExtension>();
}
} // namespace ftuner
