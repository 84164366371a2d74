//===- KernelParameters.cpp - Kernels with the same parameters ------------===//
#include "FTuner/Kernel/KernelParameters.h"

using namespace mlir;
using namespace ftuner;
using ukernel::ParameterAccess;

/// The dynamic sizes that operands with windows are held against: of dimensions
/// that no loop or axis indexes alone, and of loops but the first of each axis.
static void addWindowSizes(ukernel::OperatorOpInterface op,
                           KernelSignature &signature) {
  MLIRContext *context = op->getContext();
  bool hasWindows = false;
  auto add = [&](unsigned operand, unsigned dim, const Twine &name) {
    auto type = cast<MemRefType>(op->getOperand(operand).getType());
    if (type.isDynamicDim(dim) && !signature.hasSize(operand, dim))
      signature.addSize(operand, dim, name, context);
  };
  for (unsigned number : llvm::seq(op->getNumOperands())) {
    auto type = dyn_cast<MemRefType>(op->getOperand(number).getType());
    if (!type || !isHeldAgainstSizes(op, number))
      continue;
    hasWindows = true;
    for (auto [dim, position] :
         llvm::enumerate(op.getMapOfOperand(number).getResults()))
      if (!isa<AffineDimExpr>(position))
        add(number, dim, op.getOperandName(number) + "_size" + Twine(dim));
  }
  if (!hasWindows)
    return;
  SmallVector<ukernel::FusedLoop> loops = op.getFusedLoops();
  for (unsigned axis : llvm::seq(op.getNumAxes())) {
    SmallVector<unsigned, 3> dims = op.getDimsOfAxis(axis);
    for (unsigned dim : llvm::drop_begin(dims)) {
      const ukernel::FusedLoop &loop = loops[dim - op.getNumAxes()];
      if (ShapedType::isStatic(loop.extent))
        continue;
      auto [operand, ofOperand] = sourceOf(op, dim);
      add(operand, ofOperand, loop.name);
    }
  }
}

bool ftuner::isHeldAgainstSizes(ukernel::OperatorOpInterface op,
                                unsigned number) {
  // Points of several loops follow from all their sizes.
  if (op.takesAnyStrides())
    return !op.getFusedLoops().empty();
  return (!op.getFusedLoops().empty() || op.getOutside(number)) &&
         !ukernel::axisMapOf(op, number);
}

std::pair<unsigned, unsigned> ftuner::sourceOf(ukernel::OperatorOpInterface op,
                                               unsigned dim) {
  auto [operand, ofOperand] = op.getExtentSource(dim);
  return {llvm::find(op->getOperands(), operand) - op->getOperands().begin(),
          ofOperand};
}

KernelSignature ftuner::signatureOf(ukernel::OperatorOpInterface op,
                                    Type slices) {
  MLIRContext *context = op->getContext();
  KernelSignature signature;
  for (auto [axis, extent] : llvm::enumerate(op.getStaticExtents()))
    if (ShapedType::isDynamic(extent))
      signature.addAxisSize(axis, op.getAxisName(axis), context);
  addWindowSizes(op, signature);
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    std::string name = op.getOperandName(index);
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type) {
      if (!constantOf(operand))
        signature.addScalar(index, name, operand.getType());
      continue;
    }
    bool isOutput = op.isOutput(index);
    if (isOutput && slices)
      signature.addPointer(op->getNumOperands(), "slices", slices,
                           ParameterAccess::Read);
    signature.addPointer(index, name, type.getElementType(),
                         !isOutput          ? ParameterAccess::Read
                         : op.readsOutput() ? ParameterAccess::ReadWrite
                                            : ParameterAccess::Write);
    auto [strides, offset] = type.getStridesAndOffset();
    for (auto [dim, stride] : llvm::enumerate(strides))
      if (ShapedType::isDynamic(stride))
        signature.addStride(index, dim, name + "_stride" + Twine(dim), context);
  }
  return signature;
}

std::optional<unsigned> ftuner::findParameter(const KernelSignature &signature,
                                              ukernel::ParameterKind kind,
                                              std::optional<unsigned> operand,
                                              unsigned index) {
  for (auto [number, parameter] : llvm::enumerate(signature.getParameters()))
    if (parameter.kind == kind && parameter.operand == operand &&
        parameter.index == index)
      return number;
  return std::nullopt;
}

void ftuner::replaceParameters(
    gpu::GPUModuleOp kernel, const KernelSignature &wanted,
    function_ref<Value(ImplicitLocOpBuilder &, unsigned, ValueRange)> valueOf) {
  MLIRContext *context = kernel.getContext();
  gpu::GPUFuncOp func = *kernel.getOps<gpu::GPUFuncOp>().begin();
  unsigned before = func.getNumArguments();
  TypeRange types = wanted.getFunctionType(context).getInputs();
  for (auto [number, type] : llvm::enumerate(types))
    (void)func.insertArgument(before + number, type, {}, func.getLoc());
  auto b = ImplicitLocOpBuilder::atBlockBegin(func.getLoc(),
                                              &func.getBody().front());
  ValueRange arguments = func.getArguments().slice(before, types.size());
  for (unsigned number = 0; number < before; ++number)
    func.getArgument(number).replaceAllUsesWith(valueOf(b, number, arguments));
  BitVector replaced(before + types.size());
  replaced.set(0, before);
  (void)func.eraseArguments(replaced);

  StringRef name = ukernel::UKernelDialect::kEntryAttrName;
  auto entry = kernel->getAttrOfType<ukernel::EntryAttr>(name);
  kernel->setAttr(name, ukernel::EntryAttr::get(
                            context, entry.getThreads(),
                            entry.getSharedMemoryBytes(), entry.getAlignment(),
                            wanted.toAttribute(context), entry.getUses()));
}

void ftuner::replaceParameters(EmittedKernel &kernel,
                               const KernelSignature &wanted) {
  replaceParameters(
      kernel.module, wanted,
      [&](ImplicitLocOpBuilder &, unsigned number, ValueRange arguments) {
        const KernelParameter &own = kernel.signature.getParameters()[number];
        std::optional<unsigned> same =
            findParameter(wanted, own.kind, own.operand, own.index);
        assert(same && "expected a parameter of every kernel");
        return arguments[*same];
      });
  kernel.signature = wanted;
}
