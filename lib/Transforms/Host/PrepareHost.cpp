//===- PrepareHost.cpp - Record the host ABI --------------------*- C++ -*-===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/HostAbi/HostChecks.h"
#include "FTuner/Transforms/Passes.h"
#include "HostPreparation.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPREPAREHOSTPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

/// Element types that kernels can read and write, and that C can name.
static bool isSupportedElement(Type type) {
  if (type.isF32() || type.isF64() || type.isF16() || type.isBF16())
    return true;
  return type.isSignlessInteger(1) || type.isSignlessInteger(8) ||
         type.isSignlessInteger(16) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(64);
}

/// Emits an error at `loc` unless `type` is a tensor of the host ABI.
static LogicalResult checkTensor(Location loc, Type type, const Twine &what) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return emitError(loc) << "no lowering: expected " << what
                          << " to be a ranked tensor, but got " << type;
  if (tensor.getEncoding())
    return emitError(loc) << "no lowering: expected " << what
                          << " to be a dense tensor, but got " << type;
  if (!isSupportedElement(tensor.getElementType()))
    return emitError(loc)
           << "no lowering: expected " << what
           << " to have elements of type f16, bf16, f32, f64, i1, i8, i16, i32 "
              "or i64, but got "
           << type;
  return success();
}

static LogicalResult checkSignature(func::FuncOp func) {
  bool isRefused = false;
  for (BlockArgument argument : func.getArguments()) {
    Type type = argument.getType();
    if (type.isIndex() || isSupportedElement(type))
      continue;
    std::string what = ("argument " + Twine(argument.getArgNumber()) + " of '" +
                        func.getName() + "'")
                           .str();
    if (isa<TensorType>(type)) {
      isRefused |= failed(checkTensor(argument.getLoc(), type, what));
      continue;
    }
    isRefused = true;
    emitError(argument.getLoc())
        << "no lowering: expected " << what
        << " to be a ranked tensor, an index, an integer or a float, but got "
        << type;
  }
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    isRefused |= failed(
        checkTensor(func.getLoc(), type,
                    "result " + Twine(index) + " of '" + func.getName() + "'"));
  return failure(isRefused);
}

/// Begins an error about an attribute of a function.
using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// Checks the attribute `name` of `func`, if it has one: a dictionary with the
/// keys "arguments" and "results". `isList` accepts the type of a value, which
/// messages call `form`; `checkList` checks a value against the types of the
/// arguments or of the results.
static LogicalResult checkLists(
    func::FuncOp func, StringRef name, StringRef form,
    llvm::function_ref<bool(Attribute)> isList,
    llvm::function_ref<LogicalResult(NamedAttribute, ArrayRef<Type>, EmitError)>
        checkList) {
  Attribute given = func->getAttr(name);
  if (!given)
    return success();
  auto emitError = [&] {
    return func.emitError() << "'" << name << "' expected ";
  };
  auto lists = dyn_cast<DictionaryAttr>(given);
  if (!lists)
    return emitError() << "a dictionary, but got " << given;
  for (NamedAttribute list : lists) {
    bool isArguments = list.getName() == "arguments";
    if (!isList(list.getValue()) ||
        (!isArguments && list.getName() != "results"))
      return emitError() << form << " 'arguments' and 'results', but got '"
                         << list.getName().getValue()
                         << "' = " << list.getValue();
    ArrayRef<Type> types =
        isArguments ? func.getArgumentTypes() : func.getResultTypes();
    if (failed(checkList(list, types, emitError)))
      return failure();
  }
  return success();
}

/// Checks the attribute `ukernel.unsigned`, if there is one.
static LogicalResult checkUnsigned(func::FuncOp func) {
  auto checkList = [](NamedAttribute list, ArrayRef<Type> types,
                      EmitError emitError) -> LogicalResult {
    auto numbers = cast<DenseI64ArrayAttr>(list.getValue());
    for (int64_t number : numbers.asArrayRef()) {
      bool isThere = number >= 0 && number < static_cast<int64_t>(types.size());
      Type type = isThere ? getElementTypeOrSelf(types[number]) : Type();
      if (!type || !type.isSignlessInteger() || type.isInteger(1))
        return emitError() << "numbers of integers among "
                           << list.getName().getValue() << ", but got "
                           << number;
    }
    return success();
  };
  return checkLists(func, kUnsignedAttrName, "arrays of",
                    llvm::IsaPred<DenseI64ArrayAttr>, checkList);
}

/// Checks the attribute `ukernel.names`, if there is one.
static LogicalResult checkNames(func::FuncOp func) {
  auto isList = [](Attribute value) {
    auto names = dyn_cast<ArrayAttr>(value);
    return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
  };
  auto checkList = [](NamedAttribute list, ArrayRef<Type> types,
                      EmitError emitError) -> LogicalResult {
    auto names = cast<ArrayAttr>(list.getValue());
    if (names.size() != types.size())
      return emitError() << "one name for each of " << types.size() << ' '
                         << list.getName().getValue() << ", but got "
                         << names.size();
    return success();
  };
  return checkLists(func, kNamesAttrName, "lists of texts for", isList,
                    checkList);
}

/// Whether `func` calls itself, through whatever other functions.
static bool isRecursive(func::FuncOp func, SymbolTable &symbols) {
  SmallVector<func::FuncOp> worklist = {func};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!worklist.empty()) {
    bool found = false;
    worklist.pop_back_val().walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      found |= callee == func;
      if (callee && seen.insert(callee).second)
        worklist.push_back(callee);
    });
    if (found)
      return true;
  }
  return false;
}

/// Calls are inlined before this pass; those that remain cannot be compiled.
static LogicalResult checkCalls(func::FuncOp func, SymbolTable &symbols) {
  bool isRefused = false;
  func.walk([&](CallOpInterface call) {
    isRefused = true;
    auto name = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
    if (!name) {
      call->emitError("no lowering: indirect call");
      return;
    }
    StringRef callee = name.getLeafReference().getValue();
    auto target = symbols.lookup<func::FuncOp>(callee);
    if (target && !target.isExternal() && isRecursive(target, symbols))
      call->emitError() << "no lowering: '" << callee << "' is recursive";
    else if (target && !target.isExternal())
      call->emitError() << "no lowering: the call of '" << callee
                        << "' could not be inlined";
    else
      call->emitError() << "no lowering: '" << callee
                        << "' is called, but has no body";
  });
  return failure(isRefused);
}

/// A dimension that a tensor does not have is undefined, and not invalid IR.
static LogicalResult checkDimensions(func::FuncOp func) {
  bool isRefused = false;
  func.walk([&](tensor::DimOp dim) {
    auto tensor = dyn_cast<RankedTensorType>(dim.getSource().getType());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!tensor || !index || (*index >= 0 && *index < tensor.getRank()))
      return;
    dim.emitError("no lowering: expected a dimension of ")
        << tensor << ", but got " << *index;
    isRefused = true;
  });
  return failure(isRefused);
}

/// What works on tensors must have a form on memrefs.
static LogicalResult checkBufferizable(func::FuncOp func) {
  bool isRefused = false;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto isTensor = [](Type type) { return isa<TensorType>(type); };
    bool isOnTensors = llvm::any_of(op->getOperandTypes(), isTensor) ||
                       llvm::any_of(op->getResultTypes(), isTensor);
    if (!isOnTensors || isa<func::FuncOp, func::ReturnOp>(op) ||
        isa<bufferization::BufferizableOpInterface, BranchOpInterface>(op))
      return WalkResult::advance();
    op->emitError("no lowering: ") << op->getName();
    isRefused = true;
    return WalkResult::skip();
  });
  return failure(isRefused);
}

/// Gives every function a C name under which the names that derive from it are
/// free, too.
static void nameFunctions(ArrayRef<func::FuncOp> funcs, Operation *module) {
  llvm::StringSet<> taken = collectSymbols(module);
  for (func::FuncOp func : funcs) {
    std::string source = func.getName().str();
    taken.erase(source);
    std::string base = toIdentifier(source), name = base;
    for (unsigned i = 1;
         taken.contains(name) || taken.contains(name + "_result_sizes") ||
         taken.contains(name + "_workspace_size");
         ++i)
      name = base + "_" + std::to_string(i);
    taken.insert(name);
    taken.insert(name + "_result_sizes");
    taken.insert(name + "_workspace_size");
    func.setName(name);
    func->setAttr(kSourceNameAttrName,
                  StringAttr::get(func.getContext(), source));
  }
}

namespace {
struct PrepareHostPass
    : public ftuner::impl::UKernelPrepareHostPassBase<PrepareHostPass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> funcs;
    if (failed(selectFunctions(funcs)))
      return signalPassFailure();
    nameFunctions(funcs, getOperation());
    bool isRefused = false;
    for (func::FuncOp func : funcs)
      isRefused |= failed(prepare(func));
    if (isRefused)
      signalPassFailure();
  }

private:
  /// Finds the functions to compile, checks them, and drops unused helpers.
  LogicalResult selectFunctions(SmallVectorImpl<func::FuncOp> &funcs) {
    SymbolTable symbols(getOperation());
    bool isRefused = false;
    for (Operation &op : llvm::make_early_inc_range(
             getOperation().getBody()->getOperations())) {
      if (isa<ModuleOp>(op)) {
        op.emitError("no lowering: expected functions at the top level, but "
                     "got a nested module");
        isRefused = true;
      }
      auto interface = dyn_cast<FunctionOpInterface>(op);
      if (!interface)
        continue;
      auto func = dyn_cast<func::FuncOp>(op);
      if (!func) {
        op.emitError("no lowering: expected func.func, but got ")
            << op.getName();
        isRefused = true;
        continue;
      }
      if (func.isPublic() && !func.isExternal()) {
        isRefused |= failed(checkCalls(func, symbols));
        isRefused |= failed(checkSignature(func));
        isRefused |= failed(checkUnsigned(func));
        isRefused |= failed(checkNames(func));
        isRefused |= failed(checkDimensions(func));
        funcs.push_back(func);
      }
    }
    if (isRefused)
      return failure();
    for (Operation &op :
         llvm::make_early_inc_range(getOperation().getBody()->getOperations()))
      if (auto func = dyn_cast<func::FuncOp>(op))
        if (func.isPrivate() || func.isExternal())
          func.erase();
    return success();
  }

  LogicalResult prepare(func::FuncOp func) {
    FunctionType type = func.getFunctionType();
    func->setAttr(ukernel::UKernelDialect::kAbiTypeAttrName,
                  TypeAttr::get(type));
    for (unsigned i = 0; i < type.getNumInputs(); ++i)
      if (isa<TensorType>(type.getInput(i)))
        func.setArgAttr(i,
                        bufferization::BufferizationDialect::kWritableAttrName,
                        BoolAttr::get(func.getContext(), false));
    assertSteps(func);
    // Reads what importers assert of sizes.
    if (failed(fixLoopSizes(func)))
      return failure();
    describeAssertions(func);
    FailureOr<func::FuncOp> sizes =
        buildResultSizes(func, (func.getName() + "_result_sizes").str());
    if (succeeded(sizes))
      func->setAttr(kResultSizesAttrName, FlatSymbolRefAttr::get(*sizes));
    if (failed(decomposeForBufferization(func)))
      return failure();
    return failure(failed(checkBufferizable(func)) || failed(sizes));
  }
};
} // namespace
