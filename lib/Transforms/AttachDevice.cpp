//===- AttachDevice.cpp - The target device as an attribute ---------------===//
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Transforms/PlanAttributes.h"

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
    if (device.empty()) {
      // A module that says for which device it is needs no option.
      if (module->hasAttr(name)) {
        if (failed(deviceOf(module)))
          signalPassFailure();
        return;
      }
      module.emitError("expected a device: the name of a built-in one (")
          << llvm::join(builtinDeviceNames(), ", ")
          << ") or the path of a description";
      return signalPassFailure();
    }
    llvm::Expected<DeviceSpec> spec = loadDeviceSpec(device);
    if (!spec) {
      module.emitError(llvm::toString(spec.takeError()));
      return signalPassFailure();
    }
    module->setAttr(name, toAttribute(&getContext(), *spec));
  }
};
} // namespace
