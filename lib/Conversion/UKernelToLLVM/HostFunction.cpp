//===- HostFunction.cpp - The host ABI --------------------------*- C++ -*-===//
//
// From  func(tensors and scalars as memrefs and scalars…, results…, workspace)
// to    i32 func(argument pointers…, result pointers…, i64 sizes…, scalars…,
//                workspace, stream)
// with a prologue that rebuilds the memrefs. Sizes of results come from the
// function that computes them for the caller, too.
//
//===----------------------------------------------------------------------===//
#include "HostFunction.h"

#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// Lowers one function and the functions of its sizes.
class HostFunctionLowering {
public:
  HostFunctionLowering(func::FuncOp func, HostRuntime &runtime)
      : func(func), runtime(runtime), abiType(getAbiType(func)),
        pointer(runtime.getPointerType()),
        i64(IntegerType::get(func.getContext(), 64)),
        i32(IntegerType::get(func.getContext(), 32)) {}

  LogicalResult lower();

private:
  LogicalResult check();
  void lowerResultSizes();
  void lowerWorkspaceSize();
  void lowerMain();

  /// Gives `function`, which computes sizes, its type in the ABI: sizes and
  /// scalars, then `output` unless it is null, to `result`. Returns its exits,
  /// which still return what they computed.
  SmallVector<func::ReturnOp> enterSizeFunction(ImplicitLocOpBuilder &b,
                                                func::FuncOp function,
                                                Type output, Type result);
  /// Adds arguments for sizes and scalars to `block`.
  void addSizesAndScalars(Block *block, SmallVectorImpl<Type> &inputs);
  /// Fails if one of the sizes, arguments of `block` from `first` on, is
  /// negative.
  void checkSizes(ImplicitLocOpBuilder &b, Block *block, unsigned first);
  /// Starts a new entry block before that of `target`, with no arguments yet.
  Block *addPrologue(func::FuncOp target);
  /// The value of an argument's type in the body, from its type in the ABI.
  Value fromAbi(ImplicitLocOpBuilder &b, Value value, Type type);
  Type toAbi(Type type);
  Value buildMemRef(ImplicitLocOpBuilder &b, MemRefType type, Value base,
                    ArrayRef<Value> dynamicSizes);
  /// The sizes of the results, from the function that computes them.
  SmallVector<Value> loadResultSizes(ImplicitLocOpBuilder &b,
                                     ArrayRef<Value> sizesAndScalars,
                                     Value memory, int64_t count);
  /// The arguments of the body, from those of the prologue.
  SmallVector<Value> rebuildArguments(ImplicitLocOpBuilder &b, Block *prologue,
                                      Block *body, ArrayRef<Value> resultDims);
  Value elementAddress(ImplicitLocOpBuilder &b, Value array, int64_t index) {
    return LLVM::GEPOp::create(
        b, pointer, i64, array,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
  }
  /// Ends the prologue: goes on in the former entry block with `values`.
  void enterBody(ImplicitLocOpBuilder &b, Block *body, ArrayRef<Value> values);
  Value constant(ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  unsigned countScalars() {
    return llvm::count_if(abiType.getInputs(),
                          [](Type type) { return !isa<TensorType>(type); });
  }
  unsigned countTensors() { return abiType.getNumInputs() - countScalars(); }

  func::FuncOp func, resultSizes, workspaceSize;
  HostRuntime &runtime;
  FunctionType abiType;
  Type pointer, i64, i32;
};
} // namespace

/// Index is 64 bits wide, a boolean is a byte.
Type HostFunctionLowering::toAbi(Type type) {
  if (type.isIndex())
    return i64;
  if (type.isInteger(1))
    return IntegerType::get(func.getContext(), 8);
  return type;
}

Value HostFunctionLowering::fromAbi(ImplicitLocOpBuilder &b, Value value,
                                    Type type) {
  if (type.isIndex())
    return arith::IndexCastOp::create(b, type, value);
  if (type.isInteger(1)) {
    Value zero =
        arith::ConstantOp::create(b, b.getIntegerAttr(value.getType(), 0));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  return value;
}

void HostFunctionLowering::addSizesAndScalars(Block *block,
                                              SmallVectorImpl<Type> &inputs) {
  for (Type type : getSizeFunctionInputs(abiType)) {
    inputs.push_back(toAbi(type));
    block->addArgument(inputs.back(), func.getLoc());
  }
}

void HostFunctionLowering::checkSizes(ImplicitLocOpBuilder &b, Block *block,
                                      unsigned first) {
  Value zero = constant(b, 0);
  unsigned position = first;
  for (auto [number, type] : llvm::enumerate(abiType.getInputs())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue;
    for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
      if (!tensor.isDynamicDim(dim))
        continue;
      Value isNegative = arith::CmpIOp::create(
          b, arith::CmpIPredicate::slt, block->getArgument(position++), zero);
      failIf(b, runtime, isNegative,
             ("size of dimension " + Twine(dim) + " of argument " +
              Twine(number) + " is negative")
                 .str());
    }
  }
}

Block *HostFunctionLowering::addPrologue(func::FuncOp target) {
  auto *block = new Block();
  target.getBody().push_front(block);
  return block;
}

void HostFunctionLowering::enterBody(ImplicitLocOpBuilder &b, Block *body,
                                     ArrayRef<Value> values) {
  for (auto [argument, value] : llvm::zip_equal(body->getArguments(), values))
    argument.replaceAllUsesWith(value);
  body->eraseArguments(0, body->getNumArguments());
  cf::BranchOp::create(b, body);
}

/// A contiguous row-major memref at `base`.
Value HostFunctionLowering::buildMemRef(ImplicitLocOpBuilder &b,
                                        MemRefType type, Value base,
                                        ArrayRef<Value> dynamicSizes) {
  auto descriptor = MemRefDescriptor::poison(
      b, b.getLoc(), runtime.getTypes().convertType(type));
  descriptor.setAllocatedPtr(b, b.getLoc(), base);
  descriptor.setAlignedPtr(b, b.getLoc(), base);
  descriptor.setConstantOffset(b, b.getLoc(), 0);
  SmallVector<Value> sizes;
  for (int64_t size : type.getShape()) {
    if (ShapedType::isDynamic(size)) {
      sizes.push_back(dynamicSizes.front());
      dynamicSizes = dynamicSizes.drop_front();
    } else {
      sizes.push_back(constant(b, size));
    }
  }
  Value stride = constant(b, 1);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    descriptor.setSize(b, b.getLoc(), dim, sizes[dim]);
    descriptor.setStride(b, b.getLoc(), dim, stride);
    stride = b.createOrFold<arith::MulIOp>(stride, sizes[dim]);
  }
  return UnrealizedConversionCastOp::create(b, type, Value(descriptor))
      .getResult(0);
}

LogicalResult HostFunctionLowering::check() {
  auto find = [&](StringRef attribute) {
    auto symbol = func->getAttrOfType<FlatSymbolRefAttr>(attribute);
    return symbol ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(func,
                                                                       symbol)
                  : func::FuncOp();
  };
  resultSizes = find(kResultSizesAttrName);
  workspaceSize = find(kWorkspaceSizeAttrName);
  for (auto [sizes, attribute] :
       {std::pair(resultSizes, StringRef(kResultSizesAttrName)),
        std::pair(workspaceSize, StringRef(kWorkspaceSizeAttrName))})
    if (!sizes || sizes.isExternal() ||
        !llvm::equal(sizes.getArgumentTypes(), getSizeFunctionInputs(abiType)))
      return func.emitError("expected '")
             << attribute
             << "' to name a function of the argument's sizes and scalars";
  unsigned expected = abiType.getNumInputs() + abiType.getNumResults() + 1;
  if (func.getNumArguments() != expected || func.getNumResults() != 0)
    return func.emitError("expected ")
           << expected << " arguments (those of '" << abiType
           << "', its results and the workspace) and no results, but got "
           << func.getFunctionType();
  return success();
}

SmallVector<func::ReturnOp> HostFunctionLowering::enterSizeFunction(
    ImplicitLocOpBuilder &b, func::FuncOp function, Type output, Type result) {
  Block *body = &function.getBody().front();
  SmallVector<func::ReturnOp> exits;
  function.walk([&](func::ReturnOp exit) { exits.push_back(exit); });
  Block *prologue = addPrologue(function);
  SmallVector<Type> inputs;
  addSizesAndScalars(prologue, inputs);
  if (output) {
    inputs.push_back(output);
    prologue->addArgument(output, func.getLoc());
  }
  function.setFunctionType(
      FunctionType::get(func.getContext(), inputs, {result}));
  function.setPublic();

  b.setInsertionPointToEnd(prologue);
  // Splitting blocks needs an operation to split at: enter the body first.
  SmallVector<Value> values;
  for (auto [argument, type] :
       llvm::zip(prologue->getArguments(), body->getArgumentTypes()))
    values.push_back(fromAbi(b, argument, type));
  enterBody(b, body, values);
  b.setInsertionPointToStart(prologue);
  checkSizes(b, prologue, 0);
  return exits;
}

void HostFunctionLowering::lowerResultSizes() {
  ImplicitLocOpBuilder b(func.getLoc(), func.getContext());
  SmallVector<func::ReturnOp> exits =
      enterSizeFunction(b, resultSizes, pointer, i32);
  Value out = resultSizes.getArguments().back();
  for (func::ReturnOp exit : exits) {
    b.setInsertionPoint(exit);
    for (auto [index, size] : llvm::enumerate(exit.getOperands())) {
      Value value = arith::IndexCastOp::create(b, i64, size);
      Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                               value, constant(b, 0));
      failIf(b, runtime, isNegative, "size of a result is negative");
      LLVM::StoreOp::create(b, value, elementAddress(b, out, index));
    }
    Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
    exit.getOperandsMutable().assign(zero);
  }
}

void HostFunctionLowering::lowerWorkspaceSize() {
  ImplicitLocOpBuilder b(func.getLoc(), func.getContext());
  for (func::ReturnOp exit : enterSizeFunction(b, workspaceSize, {}, i64)) {
    b.setInsertionPoint(exit);
    Value size = arith::IndexCastOp::create(b, i64, exit.getOperand(0));
    exit.getOperandsMutable().assign(size);
    Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, size,
                                             constant(b, 0));
    failIf(b, runtime, isNegative, "size of an intermediate is negative");
  }
}

SmallVector<Value>
HostFunctionLowering::loadResultSizes(ImplicitLocOpBuilder &b,
                                      ArrayRef<Value> sizesAndScalars,
                                      Value memory, int64_t count) {
  SmallVector<Value> operands(sizesAndScalars), sizes;
  operands.push_back(memory);
  auto call = func::CallOp::create(b, resultSizes, operands);
  returnIfFailed(b, call.getResult(0));
  for (int64_t i = 0; i < count; ++i)
    sizes.push_back(LLVM::LoadOp::create(b, i64, elementAddress(b, memory, i)));
  return sizes;
}

SmallVector<Value>
HostFunctionLowering::rebuildArguments(ImplicitLocOpBuilder &b, Block *prologue,
                                       Block *body,
                                       ArrayRef<Value> resultDims) {
  SmallVector<Value> values;
  unsigned nextPointer = 0, nextDim = 0;
  unsigned nextSize = countTensors() + abiType.getNumResults();
  unsigned nextScalar = prologue->getNumArguments() - 2 - countScalars();
  for (auto [type, bodyType] :
       llvm::zip(abiType.getInputs(), body->getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      values.push_back(
          fromAbi(b, prologue->getArgument(nextScalar++), bodyType));
      continue;
    }
    SmallVector<Value> sizes;
    for (unsigned i = 0, e = tensor.getNumDynamicDims(); i < e; ++i)
      sizes.push_back(prologue->getArgument(nextSize++));
    values.push_back(buildMemRef(b, cast<MemRefType>(bodyType),
                                 prologue->getArgument(nextPointer++), sizes));
  }
  for (auto [index, type] : llvm::enumerate(abiType.getResults())) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < tensor.getRank(); ++dim, ++nextDim)
      if (tensor.isDynamicDim(dim))
        sizes.push_back(resultDims[nextDim]);
    auto bodyType = cast<MemRefType>(
        body->getArgument(abiType.getNumInputs() + index).getType());
    values.push_back(
        buildMemRef(b, bodyType, prologue->getArgument(nextPointer++), sizes));
  }
  // Nobody asks for the size of the workspace as a whole.
  values.push_back(
      buildMemRef(b, cast<MemRefType>(body->getArguments().back().getType()),
                  prologue->getArgument(prologue->getNumArguments() - 2),
                  constant(b, std::numeric_limits<int64_t>::max())));
  return values;
}

void HostFunctionLowering::lowerMain() {
  Block *body = &func.getBody().front();
  Block *prologue = addPrologue(func);
  SmallVector<Type> inputs(countTensors() + abiType.getNumResults(), pointer);
  for (Type type : inputs)
    prologue->addArgument(type, func.getLoc());
  unsigned firstSize = inputs.size();
  addSizesAndScalars(prologue, inputs);
  for (unsigned i = 0; i < 2; ++i) { // Workspace and stream.
    inputs.push_back(pointer);
    prologue->addArgument(pointer, func.getLoc());
  }
  func.walk([&](func::ReturnOp exit) {
    ImplicitLocOpBuilder b(exit.getLoc(), exit);
    exit.getOperandsMutable().assign(
        arith::ConstantOp::create(b, b.getI32IntegerAttr(0)).getResult());
  });
  func.setFunctionType(FunctionType::get(func.getContext(), inputs, {i32}));
  func.setArgAttrsAttr(nullptr);

  ImplicitLocOpBuilder b(func.getLoc(), func.getContext());
  b.setInsertionPointToEnd(prologue);
  auto placeholder = cf::BranchOp::create(b, body);
  b.setInsertionPoint(placeholder);
  // The memory for the sizes of results, before the block is split.
  int64_t numDims = 0;
  for (Type type : abiType.getResults())
    numDims += cast<RankedTensorType>(type).getRank();
  Value dims = LLVM::AllocaOp::create(b, pointer, i64, constant(b, numDims));
  checkSizes(b, prologue, firstSize);
  SmallVector<Value> operands(
      prologue->getArguments().drop_front(firstSize).drop_back(2));
  SmallVector<Value> resultDims = loadResultSizes(b, operands, dims, numDims);

  enterBody(b, body, rebuildArguments(b, prologue, body, resultDims));
  placeholder->erase();
}

LogicalResult HostFunctionLowering::lower() {
  if (failed(check()))
    return failure();
  lowerResultSizes();
  lowerWorkspaceSize();
  lowerMain();
  return success();
}

LogicalResult ftuner::lowerHostFunction(func::FuncOp func,
                                        HostRuntime &runtime) {
  return HostFunctionLowering(func, runtime).lower();
}
