//===- AttachDevice.cpp - The target device as an attribute ---------------===//
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Transforms/Passes.h"

#include "llvm/ADT/StringExtras.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELATTACHDEVICEPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {
struct UKernelAttachDevicePass
    : public ftuner::impl::UKernelAttachDevicePassBase<
          UKernelAttachDevicePass> {
  using UKernelAttachDevicePassBase::UKernelAttachDevicePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    StringRef name = ukernel::UKernelDialect::kDeviceAttrName;
    // A wrong option has no location in the module.
    Location nowhere = UnknownLoc::get(&getContext());
    if (device.empty()) {
      // A module that has a device needs no option.
      if (module->hasAttr(name)) {
        if (failed(deviceOf(module)))
          signalPassFailure();
        return;
      }
      emitError(nowhere, "expected a device: the name of a built-in one (")
          << llvm::join(builtinDeviceNames(), ", ")
          << ") or the path of a description";
      return signalPassFailure();
    }
    llvm::Expected<DeviceSpec> spec = loadDeviceSpec(device);
    if (!spec) {
      emitError(nowhere, llvm::toString(spec.takeError()));
      return signalPassFailure();
    }
    ukernel::DeviceAttr attribute = toAttribute(&getContext(), *spec);
    if (failed(checkFits(module, attribute)))
      return signalPassFailure();
    module->setAttr(name, attribute);
  }

private:
  /// Checks that no plans or kernels in the module were made for another
  /// device.
  LogicalResult checkFits(ModuleOp module, ukernel::DeviceAttr device) {
    auto known = module->getAttrOfType<ukernel::DeviceAttr>(
        ukernel::UKernelDialect::kDeviceAttrName);
    if (!known || known == device)
      return success();
    for (Operation &op : *module.getBody()) {
      bool isMadeForDevice =
          isa<ukernel::PlanOp, ukernel::KernelOp>(op) ||
          op.hasAttr(ukernel::UKernelDialect::kEntryAttrName);
      if (!isMadeForDevice)
        continue;
      InFlightDiagnostic error = module.emitError("expected device '")
                                 << known.getName() << "', but got '"
                                 << device.getName() << "'";
      error.attachNote(op.getLoc())
          << "made for '" << known.getName() << "' already";
      return error;
    }
    return success();
  }
};
} // namespace
