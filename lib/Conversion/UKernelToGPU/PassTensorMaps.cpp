//===- PassTensorMaps.cpp - Tensor maps are passed by value ---------------===//
#include "FTuner/Conversion/Passes.h"
#include "FTuner/Kernel/KernelSignature.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPASSTENSORMAPSPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

struct UKernelPassTensorMaps
    : public ftuner::impl::UKernelPassTensorMapsPassBase<
          UKernelPassTensorMaps> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    auto entry = module->getAttrOfType<ukernel::EntryAttr>(
        ukernel::UKernelDialect::kEntryAttrName);
    if (!entry)
      return;
    KernelSignature signature = KernelSignature::of(entry);
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
        for (auto [number, parameter] :
             llvm::enumerate(signature.getParameters()))
          if (parameter.kind == ukernel::ParameterKind::TensorMap)
            passByValue(function, number);
  }

private:
  static void passByValue(LLVM::LLVMFuncOp function, unsigned number) {
    Builder b(function.getContext());
    auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), kTensorMapBytes);
    function.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(bytes));
    function.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(kTensorMapAddressAlignment));
    // Or the kernel would copy it, and copies of boxes take no copy.
    function.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(),
                        b.getUnitAttr());
  }
};

} // namespace
