//===- FallbackKernels.cpp - Outline a linalg op into a kernel --*- C++ -*-===//
#include "FTuner/Kernel/Fallback/FallbackKernels.h"
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Kernel/Fallback/FallbackLoops.h"

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/HostAbi/HostChecks.h"
#include "FTuner/Kernel/KernelSignature.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ftuner;

/// `ukernel.kernel` of the op, if it has one.
static DictionaryAttr knownOf(linalg::LinalgOp op) {
  return op->getAttrOfType<DictionaryAttr>(kKernelAttrName);
}

namespace {

/// A buffer of the host.
struct Buffer {
  Value host;
  std::string name;
  bool isRead = false, isWritten = false;

  MemRefType getType() const { return cast<MemRefType>(host.getType()); }
  ukernel::ParameterAccess getAccess() const {
    return !isWritten ? ukernel::ParameterAccess::Read
           : isRead   ? ukernel::ParameterAccess::ReadWrite
                      : ukernel::ParameterAccess::Write;
  }
};

class FallbackOutliner {
public:
  FallbackOutliner(linalg::LinalgOp op, StringRef name, ModuleOp module)
      : op(op), name(name), module(module), split(splitLoops(op)) {
    DictionaryAttr known = knownOf(op);
    if (auto alignment =
            known ? known.getAs<IntegerAttr>("alignment") : IntegerAttr())
      split.vectorWidth = vectorWidthOf(op, split, alignment.getInt());
  }

  FailureOr<OutlinedFallback> outline();

private:
  LogicalResult collect();
  LogicalResult addValue(Value value, const Twine &valueName, bool isRead,
                         bool isWritten);
  void buildSignature();
  DictionaryAttr buildWork();
  gpu::GPUModuleOp buildKernel();
  Value rebuildBuffer(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                      unsigned number);
  void mapInputs(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func);
  SmallVector<Value> hostOperands() const;
  /// A block has as many points, whether threads have vectors of them or not.
  int64_t threadsOfBlock() const {
    return kFallbackThreads / split.vectorWidth;
  }
  void buildLaunch();
  void buildChecks(ImplicitLocOpBuilder &b, ArrayRef<Value> extents);
  Value hostSize(ImplicitLocOpBuilder &b, Value buffer, int64_t dim);

  linalg::LinalgOp op;
  StringRef name;
  ModuleOp module;
  LoopSplit split;
  /// The operands of the signature, one after the other.
  SmallVector<Buffer> buffers;
  SmallVector<Value> scalars;
  KernelSignature signature;
  SmallVector<memref::GetGlobalOp> globals;
  SmallVector<Operation *> constants;
  /// Host values to what stands for them in the kernel.
  IRMapping mapping;
  /// Sizes of buffers on the host.
  DenseMap<std::pair<Value, int64_t>, Value> hostSizes;
};
} // namespace

LogicalResult FallbackOutliner::addValue(Value value, const Twine &valueName,
                                         bool isRead, bool isWritten) {
  Operation *def = value.getDefiningOp();
  if (auto global = dyn_cast_or_null<memref::GetGlobalOp>(def)) {
    if (!llvm::is_contained(globals, global))
      globals.push_back(global);
    return success();
  }
  if (def && def->hasTrait<OpTrait::ConstantLike>()) {
    if (!llvm::is_contained(constants, def))
      constants.push_back(def);
    return success();
  }
  if (auto type = dyn_cast<MemRefType>(value.getType())) {
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return op->emitError("no lowering: ")
             << op->getName() << " on a memref without strides: " << type;
    auto it =
        llvm::find_if(buffers, [&](Buffer &b) { return b.host == value; });
    if (it == buffers.end()) {
      it = &buffers.emplace_back();
      it->host = value;
      it->name = valueName.str();
    }
    it->isRead |= isRead;
    it->isWritten |= isWritten;
    return success();
  }
  if (!value.getType().isIntOrIndexOrFloat())
    return op->emitError("no lowering: ")
           << op->getName() << " on an operand of type " << value.getType();
  if (!llvm::is_contained(scalars, value))
    scalars.push_back(value);
  return success();
}

LogicalResult FallbackOutliner::collect() {
  unsigned inputs = 0, outputs = 0, captures = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isOutput = op.isDpsInit(&operand);
    bool isRead = op.payloadUsesValueFromOperand(&operand) ||
                  (isOutput && !split.sequential.empty());
    std::string valueName = isOutput ? "out" + std::to_string(outputs++)
                                     : "in" + std::to_string(inputs++);
    if (failed(addValue(operand.get(), valueName, isRead, isOutput)))
      return failure();
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured) {
    bool isWritten = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return op->isProperAncestor(user) && !isa<memref::LoadOp>(user);
    });
    if (failed(
            addValue(value, "captured" + Twine(captures++), true, isWritten)))
      return failure();
  }
  return success();
}

void FallbackOutliner::buildSignature() {
  MLIRContext *context = op->getContext();
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    MemRefType type = buffer.getType();
    signature.addPointer(number, buffer.name, type.getElementType(),
                         buffer.getAccess());
    auto [strides, offset] = type.getStridesAndOffset();
    bool isIdentity = type.getLayout().isIdentity();
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (type.isDynamicDim(dim))
        signature.addSize(number, dim, buffer.name + "_size" + Twine(dim),
                          context);
      if (ShapedType::isDynamic(strides[dim]) && !isIdentity)
        signature.addStride(number, dim, buffer.name + "_stride" + Twine(dim),
                            context);
    }
  }
  for (auto [index, scalar] : llvm::enumerate(scalars))
    signature.addScalar(buffers.size() + index, "scalar" + Twine(index),
                        scalar.getType());
}

/// The buffer with its shape and strides, from the kernel's parameters.
Value FallbackOutliner::rebuildBuffer(ImplicitLocOpBuilder &b,
                                      gpu::GPUFuncOp func, unsigned number) {
  MemRefType type = buffers[number].getType();
  auto [staticStrides, offset] = type.getStridesAndOffset();
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> sizes, strides(rank);
  for (int64_t dim = 0; dim < rank; ++dim) {
    Value size = signature.size(b, func, number, dim);
    sizes.push_back(size ? OpFoldResult(size)
                         : OpFoldResult(b.getIndexAttr(type.getDimSize(dim))));
  }
  Value stride = arith::ConstantIndexOp::create(b, 1);
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    if (!ShapedType::isDynamic(staticStrides[dim]))
      strides[dim] = b.getIndexAttr(staticStrides[dim]);
    else if (Value passed = signature.stride(b, func, number, dim))
      strides[dim] = passed;
    else
      strides[dim] = stride;
    Value size = getValueOrCreateConstantIndexOp(b, b.getLoc(), sizes[dim]);
    stride = b.createOrFold<arith::MulIOp>(stride, size);
  }
  MemRefLayoutAttrInterface layout;
  if (!type.getLayout().isIdentity())
    layout = StridedLayoutAttr::get(b.getContext(), 0, staticStrides);
  auto viewType =
      MemRefType::get(type.getShape(), type.getElementType(), layout);
  return memref::ReinterpretCastOp::create(b, viewType,
                                           signature.pointer(func, number),
                                           b.getIndexAttr(0), sizes, strides);
}

/// Builds what stands for the operands and captured values in the kernel.
void FallbackOutliner::mapInputs(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func) {
  for (auto [number, buffer] : llvm::enumerate(buffers))
    mapping.map(buffer.host, rebuildBuffer(b, func, number));
  for (auto [index, scalar] : llvm::enumerate(scalars))
    mapping.map(scalar, signature.scalar(b, func, buffers.size() + index,
                                         scalar.getType()));
  for (Operation *constant : constants)
    b.clone(*constant, mapping);
  for (auto [index, global] : llvm::enumerate(globals)) {
    auto source = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
        global, global.getNameAttr());
    memref::GlobalOp copy;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(func);
      copy = cast<memref::GlobalOp>(b.clone(*source));
      copy.setName(("data" + Twine(index)).str());
    }
    mapping.map(global.getResult(),
                memref::GetGlobalOp::create(b, global.getType(), copy.getName())
                    .getResult());
  }
}

/// What the kernel computes and moves, in terms of the sizes of its launch.
DictionaryAttr FallbackOutliner::buildWork() {
  MLIRContext *context = op->getContext();
  DenseMap<std::pair<Value, int64_t>, AffineExpr> sizes;
  unsigned numSizes = 0;
  for (const KernelParameter &parameter : signature.getParameters())
    if (parameter.kind == ukernel::ParameterKind::Size)
      sizes[{buffers[*parameter.operand].host, parameter.index}] =
          getAffineSymbolExpr(numSizes++, context);
  return workOf(op, split, numSizes, [&](Value buffer, int64_t dim) {
    auto it = sizes.find({buffer, dim});
    return it != sizes.end()
               ? it->second
               : getAffineConstantExpr(
                     cast<MemRefType>(buffer.getType()).getDimSize(dim),
                     context);
  });
}

gpu::GPUModuleOp FallbackOutliner::buildKernel() {
  MLIRContext *context = op->getContext();
  ImplicitLocOpBuilder b(op.getLoc(), context);
  b.setInsertionPointToEnd(module.getBody());
  auto gpuModule = gpu::GPUModuleOp::create(b, name);
  int64_t alignment = 1;
  for (Buffer &buffer : buffers) {
    alignment = std::max(alignment, elementBytesOf(buffer.getType()));
  }
  SmallVector<ukernel::UseAttr> uses;
  if (DictionaryAttr known = knownOf(op))
    uses.push_back(known.getAs<ukernel::UseAttr>("use"));
  gpuModule->setAttr(ukernel::UKernelDialect::kEntryAttrName,
                     ukernel::EntryAttr::get(context, threadsOfBlock(),
                                             /*sharedMemoryBytes=*/0, alignment,
                                             signature.toAttribute(context),
                                             uses));
  gpuModule->setAttr(kWorkAttrName, buildWork());
  if (!uses.empty())
    gpuModule->setAttr(kAddsSlicesAttrName, b.getUnitAttr());
  b.setInsertionPointToStart(gpuModule.getBody());
  auto func =
      gpu::GPUFuncOp::create(b, name, signature.getFunctionType(context));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  func.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({static_cast<int32_t>(threadsOfBlock()), 1, 1}));

  b.setInsertionPointToEnd(&func.getBody().front());
  mapInputs(b, func);
  SmallVector<Value> extents =
      computeExtents(b, op, [&](unsigned operand, int64_t dim) -> Value {
        Value source = mapping.lookup(op->getOperand(operand));
        return b.createOrFold<memref::DimOp>(source, dim);
      });
  Value points = computePoints(b, split, extents);
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value threads = arith::ConstantIndexOp::create(b, threadsOfBlock());
  Value first = arith::MulIOp::create(b, block, threads);
  Value point = arith::AddIOp::create(b, first, thread), lane;
  if (split.isAcrossLanes) {
    Value lanes = arith::ConstantIndexOp::create(b, LoopSplit::kLanes);
    lane = arith::RemUIOp::create(b, thread, lanes);
    point = arith::DivUIOp::create(b, point, lanes);
  }
  Value isPoint =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, point, points);
  auto guarded = scf::IfOp::create(b, isPoint, /*withElseRegion=*/false);
  gpu::ReturnOp::create(b);
  b.setInsertionPointToStart(guarded.thenBlock());
  emitPoint(b, op, split, extents, point, lane, mapping);
  return gpuModule;
}

/// The operands of the signature.
SmallVector<Value> FallbackOutliner::hostOperands() const {
  auto operands = llvm::map_to_vector(
      buffers, [](const Buffer &buffer) { return buffer.host; });
  llvm::append_range(operands, scalars);
  return operands;
}

Value FallbackOutliner::hostSize(ImplicitLocOpBuilder &b, Value buffer,
                                 int64_t dim) {
  Value &size = hostSizes[{buffer, dim}];
  if (!size)
    size = b.createOrFold<memref::DimOp>(buffer, dim);
  return size;
}

/// Every operand must have what its loops read and write: a kernel would run
/// beyond its end.
void FallbackOutliner::buildChecks(ImplicitLocOpBuilder &b,
                                   ArrayRef<Value> extents) {
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(predicate, lhs, rhs);
  };
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> last;
  Value isEmpty = arith::ConstantOp::create(b, b.getBoolAttr(false));
  for (Value extent : extents) {
    last.push_back(b.createOrFold<arith::SubIOp>(extent, one));
    isEmpty = b.createOrFold<arith::OrIOp>(
        isEmpty, compare(arith::CmpIPredicate::eq, extent, zero));
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    std::string where = " of " + describeBuffer(operand.get());
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      if (isa<AffineConstantExpr>(expr))
        continue;
      Value size = hostSize(b, operand.get(), dim);
      std::string message =
          "sizes of the operands do not fit each other: dimension " +
          std::to_string(dim) + where + " is {0}, but expected ";
      if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
        Value extent = extents[loop.getPosition()];
        assertSizes(b, compare(arith::CmpIPredicate::eq, size, extent),
                    message + "{1}", {size, extent});
        continue;
      }
      Value greatest =
          affine::expandAffineExpr(b, b.getLoc(), expr, last, ValueRange());
      Value fits = b.createOrFold<arith::OrIOp>(
          isEmpty, compare(arith::CmpIPredicate::sgt, size, greatest));
      assertSizes(b, fits, message + "more than {1}", {size, greatest});
    }
  }
}

void FallbackOutliner::buildLaunch() {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> extents =
      computeExtents(b, op, [&](unsigned operand, int64_t dim) -> Value {
        return hostSize(b, op->getOperand(operand), dim);
      });
  buildChecks(b, extents);
  SmallVector<Value> operands = hostOperands();
  KernelSignature::LaunchOperands passed = signature.launchOperands(
      b, operands, [&](const KernelParameter &parameter) {
        return hostSize(b, operands[*parameter.operand], parameter.index);
      });
  Value points = computePoints(b, split, extents);
  Value blocks = b.createOrFold<arith::CeilDivUIOp>(
      points,
      arith::ConstantIndexOp::create(b, threadsOfBlock() / split.threads()));
  auto kernel = SymbolRefAttr::get(
      b.getContext(), name, {FlatSymbolRefAttr::get(b.getContext(), name)});
  auto launch = ukernel::LaunchOp::create(b, kernel, blocks, passed.args,
                                          passed.sizes, passed.strides,
                                          /*parts=*/ValueRange());
  DictionaryAttr known = knownOf(op);
  launch->setAttr(kSiteAttrName, known ? known.get("site") : siteOf(op));
}

FailureOr<OutlinedFallback> FallbackOutliner::outline() {
  if (!op.getShapesToLoopsMap())
    return op->emitError("no lowering: the loops of ")
           << op->getName() << " do not follow from its operands' shapes";
  if (failed(collect()))
    return failure();
  buildSignature();
  OutlinedFallback outlined{buildKernel(), signature, hostOperands()};
  buildLaunch();
  op->erase();
  for (memref::GetGlobalOp global : globals)
    if (global->use_empty())
      global.erase();
  return outlined;
}

FailureOr<OutlinedFallback>
ftuner::outlineFallback(linalg::LinalgOp op, StringRef name, ModuleOp module) {
  return FallbackOutliner(op, name, module).outline();
}
