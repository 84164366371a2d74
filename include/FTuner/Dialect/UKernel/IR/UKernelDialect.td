//===- UKernelDialect.td - The ukernel dialect --------------*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELDIALECT
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELDIALECT

include "mlir/IR/OpBase.td"

def UKernel_Dialect : Dialect {
  let name = "ukernel";
  let cppNamespace = "::ftuner::ukernel";
  let summary = "Operators with dynamic shapes as compositions of uKernels";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Function argument: symbolic shape, e.g. ["T", 768].
    static constexpr ::llvm::StringLiteral kShapeAttrName = "ukernel.shape";
    /// Module: ranges of the symbols, a dictionary of #ukernel.range.
    static constexpr ::llvm::StringLiteral kSymbolsAttrName = "ukernel.symbols";
    /// Module: the device that the module is compiled for, #ukernel.device.
    static constexpr ::llvm::StringLiteral kDeviceAttrName = "ukernel.device";
    /// Function: its type on tensors, before bufferization (the host ABI).
    static constexpr ::llvm::StringLiteral kAbiTypeAttrName = "ukernel.abi_type";
    /// gpu.module: launch descriptor of its kernel, #ukernel.entry.
    static constexpr ::llvm::StringLiteral kEntryAttrName = "ukernel.entry";
  }];
}

#endif
