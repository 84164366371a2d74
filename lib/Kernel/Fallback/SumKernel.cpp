//===- SumKernel.cpp - The kernel that adds slices up ---------------------===//
#include "FTuner/Kernel/Fallback/SumKernel.h"
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Kernel/Fallback/FallbackKernels.h"
#include "FTuner/Kernel/KernelParameters.h"
#include "FTuner/Kernel/SplitReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ftuner;
using ukernel::ParameterKind;

FailureOr<gpu::GPUModuleOp>
ftuner::buildSumKernel(ModuleOp module, ukernel::OperatorOpInterface op,
                       ukernel::FamilyAttr family, StringRef name,
                       const KernelSignature &signature) {
  IsolatedOperator isolated = isolate(op);
  ukernel::OperatorOpInterface alone = isolated.op;
  func::FuncOp function = *isolated.function;
  unsigned numArguments = function.getNumArguments();
  SliceBuffer buffer = sliceBuffersOf(alone).front();
  if (failed(
          function.insertArgument(numArguments, buffer.type, {}, op.getLoc())))
    return failure();
  Value slices = function.getArgument(numArguments);

  OpBuilder b(alone);
  auto sum = cast<linalg::GenericOp>(
      alone.buildMerge(b, family.getSplit(), slices).front());
  sum->setAttr(
      kKernelAttrName,
      b.getDictionaryAttr(
          {b.getNamedAttr("site", b.getDictionaryAttr({})),
           b.getNamedAttr("use", ukernel::UseAttr::get(b.getContext(), family,
                                                       StringAttr()))}));
  FailureOr<OutlinedFallback> outlined = outlineFallback(sum, name, module);
  if (failed(outlined))
    return failure();

  // Its own parameters are those of the buffers that it reads.
  auto valueOf = [&](ImplicitLocOpBuilder &b, unsigned number,
                     ValueRange arguments) -> Value {
    const KernelParameter &own = outlined->signature.getParameters()[number];
    Value host = outlined->operands[*own.operand];
    bool isSlices = host == slices;
    unsigned operand =
        llvm::find(alone->getOperands(), host) - alone->getOperands().begin();
    if (own.kind != ParameterKind::Size)
      return arguments[*findParameter(signature, own.kind, operand, own.index)];
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
    };
    if (isSlices && own.index == 0)
      return constant(family.getSplit());
    unsigned axis =
        isSlices ? buffer.axes[own.index - 1]
                 : alone.getMapOfOperand(operand).getDimPosition(own.index);
    if (std::optional<unsigned> size =
            findParameter(signature, ParameterKind::Size, std::nullopt, axis))
      return arguments[*size];
    return constant(alone.getStaticExtents()[axis]);
  };
  replaceParameters(outlined->kernel, signature, valueOf);
  // It was told in terms of the sizes that the kernel had.
  outlined->kernel->removeAttr(kWorkAttrName);
  return outlined->kernel;
}
