//===- KernelEmitter.cpp - Kernels to gpu.func ------------------*- C++ -*-===//
//
// A ukernel.kernel @k becomes gpu.module @k { gpu.func @k }. What one block
// computes is the codegen path's; the grid, the two parts and the parameters
// are the same for all paths and are here.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Kernel/KernelParameters.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/Grid.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ftuner;

namespace {

using Position = TilePosition<ukernel::IndexArithmetic>;

class KernelEmitter {
public:
  KernelEmitter(ukernel::KernelOp kernel, const DeviceSpec &device)
      : kernel(kernel), device(device),
        tiles(llvm::to_vector(
            kernel.getCombine().getBody().getOps<ukernel::TileOp>())),
        workload(tiles.front().getOperator()),
        extents(workload.getStaticExtents()) {}

  FailureOr<EmittedKernel> emit();

private:
  LogicalResult checkFamily();
  LogicalResult checkOperands();
  Value buildOperand(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                     unsigned index, const Position &position);
  Value buildView(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func, unsigned index,
                  const Position &position);
  void buildBatchOffsets(ImplicitLocOpBuilder &b, const Position &position,
                         std::optional<Value> firstTilesOfPart);
  void buildOperands(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                     const Position &position, TileEmission &emission);
  Value buildPackedView(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                        unsigned index);
  OpFoldResult sizeOf(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                      unsigned index, ArrayRef<int64_t> dims,
                      const AffineForm &access);
  Value sizeOfDim(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func, unsigned index,
                  int64_t dim);
  bool isExact(ukernel::TileOp tile, unsigned axis, bool isSecond) const;
  void buildLoopSizes(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func);
  void enterSlice(ImplicitLocOpBuilder &b, const Position &position);
  LogicalResult addTensorMaps(unsigned part);
  LogicalResult addTensorMap(const TensorMap &map, unsigned part);
  SmallVector<TensorMapOperand, 2> buildTensorMaps(ImplicitLocOpBuilder &b,
                                                   gpu::GPUFuncOp func,
                                                   unsigned part,
                                                   const Position &position);
  LogicalResult emitBody(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func);
  FailureOr<Values> emitTiles(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                              const TileEmission &block, ValueRange first,
                              BlockTiles::Body body);
  FailureOr<Values> emitTile(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                             const TileEmission &block,
                             const Position &position, ValueRange state,
                             BlockTiles::Body body);
  FailureOr<Values> emitPart(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                             TileEmission &emission, unsigned part,
                             const Position &position, ValueRange state,
                             BlockTiles::Body body);

  /// The tiles as paths see them.
  struct Tiles final : BlockTiles {
    Tiles(KernelEmitter &emitter, gpu::GPUFuncOp func,
          const TileEmission &block)
        : BlockTiles(block), emitter(emitter), func(func) {}
    FailureOr<Values> forEach(ImplicitLocOpBuilder &b, ValueRange first,
                              Body body) override {
      return emitter.emitTiles(b, func, block, first, body);
    }
    SmallVector<Value> tensorMaps(unsigned part) override {
      return llvm::map_to_vector(emitter.tensorMaps[part],
                                 [&](const auto &map) {
                                   return emitter.signature.tensorMap(
                                       func, map.first.operand, map.second);
                                 });
    }

    KernelEmitter &emitter;
    gpu::GPUFuncOp func;
  };

  ukernel::KernelOp kernel;
  const DeviceSpec &device;
  SmallVector<ukernel::TileOp> tiles;
  ukernel::OperatorOpInterface workload;
  Workload described;
  SmallVector<int64_t, 4> extents;
  const CodegenPath *path = nullptr;
  ukernel::FamilyAttr familyAttr;
  KernelFamily family;
  Grid grid;
  KernelSignature signature;
  /// Of each part: the path's tensor maps, and their numbers in the signature.
  SmallVector<std::pair<TensorMap, unsigned>, 2> tensorMaps[2];
  /// Of all axes; of the split one, in a tile, the length of its slice.
  SmallVector<Value, 4> sizes;
  /// Of the dimensions of the maps, of the split axis as a whole. Null of loops
  /// of an operator without windows.
  SmallVector<Value> dimSizes;
  /// By axis, the first element of a tile along batch axes; null where it is
  /// the first of all, and for other axes.
  SmallVector<Value, 5> batchOffsets;
  /// Whether a tile has more than one element along an axis, by axis: of batch
  /// axes alone.
  SmallVector<bool, 5> isBatchTiled;
  /// Of an operand, by axis: elements of memory from one to the next along such
  /// axes.
  SmallVector<Value, 5> batchStrides;
  /// Tiles of the first of two parts along the combine axis.
  Value firstTiles;
  /// The first element of the slice along that axis; null without split-K.
  Value sliceStart;
  KernelResources resources;
};

} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// The kernel may come from anywhere: its family must be one that the path can
/// emit for the device, as in a plan.
LogicalResult KernelEmitter::checkFamily() {
  auto sizes = llvm::map_to_vector(
      tiles, [](ukernel::TileOp tile) { return tile.getSizesAttr(); });
  described = toWorkload(workload);
  ukernel::CombineOp combine = kernel.getCombine();
  familyAttr = ukernel::FamilyAttr::get(
      kernel.getContext(), kernel.getSchedule(), combine.getAxis(), sizes,
      reduceAxesOf(described), combine.getSplit().value_or(1),
      combine.getBalanced().value_or(0));
  family = toKernelFamily(familyAttr);
  path = findCodegenPath(family.path());
  if (!path)
    return kernel.emitOpError("expected the schedule of a codegen path that "
                              "emits code, but got ")
           << kernel.getSchedule();
  if (llvm::Error error = family.path().check(described, family, device))
    return kernel.emitOpError(llvm::toString(std::move(error)));
  resources = family.path().resources(described, family);
  grid = gridOf(family);
  return success();
}

/// A view of a buffer needs strides, and every path takes neighbours along the
/// last dimension for neighbours in memory.
LogicalResult KernelEmitter::checkOperands() {
  for (auto [index, argument] : llvm::enumerate(kernel.getOperandArguments())) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type)
      continue;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return kernel.emitOpError("expected operand '")
             << workload.getOperandName(index)
             << "' in a buffer with strides, but got " << type;
    if (workload.takesAnyStrides())
      continue;
    if (!strides.empty() && strides.back() != 1)
      return kernel.emitOpError("expected operand '")
             << workload.getOperandName(index)
             << "' to be contiguous along its last dimension, but got " << type;
    if (!memref::CollapseShapeOp::isGuaranteedCollapsible(
            type, ukernel::groupDimensions(workload, index)))
      return kernel.emitOpError("expected operand '")
             << workload.getOperandName(index)
             << "' to be contiguous along the loops of fused axes, but got "
             << type;
    if (described.operands[index].isPacked && strides[0] != type.getDimSize(1))
      return kernel.emitOpError("expected packed operand '")
             << workload.getOperandName(index)
             << "' in one piece of memory, but got " << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// The size of a buffer's dimension that is known or a parameter.
Value KernelEmitter::sizeOfDim(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                               unsigned index, int64_t dim) {
  auto type = cast<MemRefType>(kernel.getOperandArguments()[index].getType());
  if (type.isDynamicDim(dim))
    return signature.size(b, func, index, dim);
  return arith::ConstantIndexOp::create(b, type.getDimSize(dim));
}

/// The size of a view's dimension, which some dimensions of the buffer make:
/// the one of the buffer, or, for a position of several axes that is not held
/// against it, up to the last element that is accessed.
OpFoldResult KernelEmitter::sizeOf(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                                   unsigned index, ArrayRef<int64_t> dims,
                                   const AffineForm &access) {
  auto type = cast<MemRefType>(kernel.getOperandArguments()[index].getType());
  if (isHeldAgainstSizes(workload, index) && !access.asAxis()) {
    int64_t dim = dims.front();
    AffineExpr position = workload.getMapOfOperand(index).getResult(dim);
    if (auto alone = dyn_cast<AffineDimExpr>(position))
      return getAsOpFoldResult(dimSizes[alone.getPosition()]);
    return getAsOpFoldResult(sizeOfDim(b, func, index, dim));
  }
  if (std::optional<unsigned> axis = access.asAxis()) {
    int64_t size = 1;
    for (int64_t dim : dims) {
      if (type.isDynamicDim(dim))
        return sizes[*axis];
      size *= type.getDimSize(dim);
    }
    return sliceStart && *axis == grid.reduceAxis()
               ? OpFoldResult(sizes[*axis])
               : OpFoldResult(b.getIndexAttr(size));
  }
  ukernel::IndexArithmetic math(b);
  Value size = math.constant(access.constant + 1);
  for (const AffineForm::Term &term : access.terms) {
    if (grid.batchNumber(term.axis) || term.coefficient < 0)
      continue;
    Value last = math.sub(sizes[term.axis], math.constant(1));
    size = math.add(size, math.mul(last, math.constant(term.coefficient)));
  }
  return getAsOpFoldResult(size);
}

/// Views the elements of a pointer parameter that belong to the block's batch
/// and slice. Dimensions that are the loops of a fused axis are one. A
/// dimension that a batch axis indexes alone is left out, and along others the
/// view starts where the batch axes and the split axis in their positions are.
/// Slices have outputs of their own, one behind the other.
Value KernelEmitter::buildView(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                               unsigned index, const Position &position) {
  auto type = cast<MemRefType>(kernel.getOperandArguments()[index].getType());
  auto [strides, typeOffset] = type.getStridesAndOffset();
  SmallVector<int64_t> shape, viewStrides;
  SmallVector<OpFoldResult> sizeValues, strideValues;
  OpFoldResult offset = b.getIndexAttr(0);
  auto advance = [&](Value elements, OpFoldResult stride) {
    Value distance = b.createOrFold<arith::MulIOp>(
        elements, getValueOrCreateConstantIndexOp(b, b.getLoc(), stride));
    offset = isa<Attribute>(offset)
                 ? distance
                 : b.createOrFold<arith::AddIOp>(cast<Value>(offset), distance);
  };
  batchStrides.assign(extents.size(), Value());
  auto addBatchStride = [&](const AffineForm::Term &term, OpFoldResult stride) {
    Value step = b.createOrFold<arith::MulIOp>(
        getValueOrCreateConstantIndexOp(b, b.getLoc(), stride),
        arith::ConstantIndexOp::create(b, term.coefficient));
    Value &sum = batchStrides[term.axis];
    sum = sum ? b.createOrFold<arith::AddIOp>(sum, step) : step;
  };
  bool isOutput = workload.isOutput(index);
  const Operand &operand = described.operands[index];
  auto groups = ukernel::groupDimensions(workload, index);
  for (auto [number, dims] : llvm::enumerate(groups)) {
    AffineForm access = operand.position(number);
    int64_t dim = dims.back();
    OpFoldResult stride = b.getIndexAttr(strides[dim]);
    if (Value passed = signature.stride(b, func, index, dim))
      stride = passed;
    for (const AffineForm::Term &term : access.terms) {
      Value element;
      if (grid.batchNumber(term.axis))
        element = batchOffsets[term.axis];
      else if (term.axis == grid.reduceAxis() && startsAtSlice(operand))
        element = sliceStart;
      if (isBatchTiled[term.axis])
        addBatchStride(term, stride);
      if (!element)
        continue;
      if (term.coefficient != 1)
        element = b.createOrFold<arith::MulIOp>(
            element, arith::ConstantIndexOp::create(b, term.coefficient));
      advance(element, stride);
    }
    OpFoldResult size = sizeOf(b, func, index, dims, access);
    if (sliceStart && isOutput && number == 0)
      advance(b.createOrFold<arith::MulIOp>(
                  *position.slice,
                  getValueOrCreateConstantIndexOp(b, b.getLoc(), size)),
              stride);
    std::optional<unsigned> axis = access.asAxis();
    if (axis && grid.batchNumber(*axis))
      continue;
    shape.push_back(isa<Attribute>(size) ? *getConstantIntValue(size)
                                         : ShapedType::kDynamic);
    viewStrides.push_back(strides[dim]);
    sizeValues.push_back(size);
    strideValues.push_back(stride);
  }
  int64_t viewOffset = isa<Attribute>(offset) ? 0 : ShapedType::kDynamic;
  auto viewType = MemRefType::get(
      shape, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), viewOffset, viewStrides));
  return memref::ReinterpretCastOp::create(b, viewType,
                                           signature.pointer(func, index),
                                           offset, sizeValues, strideValues);
}

/// Views a packed operand from the step on with which the slice begins: a row
/// for each column has the column's elements of the step.
Value KernelEmitter::buildPackedView(ImplicitLocOpBuilder &b,
                                     gpu::GPUFuncOp func, unsigned index) {
  auto type = cast<MemRefType>(kernel.getOperandArguments()[index].getType());
  PackedOrder order = described.packedOrder();
  OpFoldResult offset = b.getIndexAttr(0);
  // Slices are whole steps.
  if (sliceStart)
    offset = b.createOrFold<arith::MulIOp>(
        sliceStart, arith::ConstantIndexOp::create(b, order.n));
  auto viewType =
      MemRefType::get({order.n, order.step()}, type.getElementType(),
                      StridedLayoutAttr::get(
                          b.getContext(), sliceStart ? ShapedType::kDynamic : 0,
                          {order.step(), 1}));
  return memref::ReinterpretCastOp::create(
      b, viewType, signature.pointer(func, index), offset,
      ArrayRef<OpFoldResult>{b.getIndexAttr(order.n),
                             b.getIndexAttr(order.step())},
      ArrayRef<OpFoldResult>{b.getIndexAttr(order.step()), b.getIndexAttr(1)});
}

/// A view, or a scalar: a parameter or a constant.
Value KernelEmitter::buildOperand(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                                  unsigned index, const Position &position) {
  Value argument = kernel.getOperandArguments()[index];
  if (described.operands[index].isPacked)
    return buildPackedView(b, func, index);
  if (isa<MemRefType>(argument.getType()))
    return buildView(b, func, index, position);
  if (Value scalar = signature.scalar(b, func, index, argument.getType()))
    return scalar;
  return b.clone(*workload->getOperand(index).getDefiningOp())->getResult(0);
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// What the path gives may not fit buffers that come from anywhere.
LogicalResult KernelEmitter::addTensorMap(const TensorMap &map, unsigned part) {
  auto type =
      cast<MemRefType>(kernel.getOperandArguments()[map.operand].getType());
  Builder b(kernel.getContext());
  auto [strides, offset] = type.getStridesAndOffset();
  SmallVector<Attribute> sizeAttrs, strideAttrs;
  auto groups = ukernel::groupDimensions(workload, map.operand);
  for (unsigned group : map.dims) {
    std::optional<unsigned> axis =
        described.operands[map.operand].position(group).asAxis();
    unsigned dim = groups[group].back();
    if (!axis)
      return kernel.emitOpError("expected operand '")
             << workload.getOperandName(map.operand)
             << "' with a tensor map to follow one axis along dimension "
             << dim;
    if (ShapedType::isDynamic(extents[*axis]))
      sizeAttrs.push_back(b.getStringAttr(workload.getAxisName(*axis)));
    else
      sizeAttrs.push_back(b.getI64IntegerAttr(extents[*axis]));
    if (sizeAttrs.size() == 1)
      continue; // It is contiguous.
    std::optional<unsigned> number = findParameter(
        signature, ukernel::ParameterKind::Stride, map.operand, dim);
    if (number) {
      strideAttrs.push_back(
          b.getStringAttr(signature.getParameters()[*number].name));
      continue;
    }
    // One that no map can have keeps hosts from launching the kernel.
    strideAttrs.push_back(b.getI64IntegerAttr(strides[dim]));
  }
  tensorMaps[part].push_back(
      {map, signature.addTensorMap(map, sizeAttrs, strideAttrs)});
  return success();
}

LogicalResult KernelEmitter::addTensorMaps(unsigned part) {
  for (const TensorMap &map : family.path().tensorMaps(described, family, part))
    if (failed(addTensorMap(map, part)))
      return failure();
  return success();
}

SmallVector<TensorMapOperand, 2>
KernelEmitter::buildTensorMaps(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                               unsigned part, const Position &position) {
  SmallVector<TensorMapOperand, 2> result;
  for (const auto &[map, number] : tensorMaps[part]) {
    TensorMapOperand &operand = result.emplace_back();
    operand.map = signature.tensorMap(func, map.operand, number);
    for (unsigned dim : map.dims) {
      unsigned axis = *described.operands[map.operand].position(dim).asAxis();
      Value first;
      if (grid.batchNumber(axis))
        first = batchOffsets[axis];
      else if (axis == grid.reduceAxis())
        first = sliceStart;
      operand.origin.push_back(
          first ? first : arith::ConstantIndexOp::create(b, 0).getResult());
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

FailureOr<EmittedKernel> KernelEmitter::emit() {
  if (failed(checkFamily()) || failed(checkOperands()))
    return failure();
  signature = signatureOf(workload);
  for (unsigned part = 0; part < tiles.size(); ++part)
    if (failed(addTensorMaps(part)))
      return failure();
  if (tiles.size() == 2)
    signature.addPart(kernel.getContext());

  ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
  auto module = gpu::GPUModuleOp::create(b, kernel.getSymName());
  auto planned =
      kernel->getAttrOfType<ukernel::FamilyAttr>(kPlannedFamilyAttrName);
  b.setInsertionPointToStart(module.getBody());
  auto func = gpu::GPUFuncOp::create(b, kernel.getSymName(),
                                     signature.getFunctionType(b.getContext()));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  func.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(resources.threads), 1, 1}));
  if (grid.clusterBlocks > 1)
    func.setKnownClusterSizeAttr(
        b.getDenseI32ArrayAttr({int32_t(grid.clusterBlocks), 1, 1}));
  // Without it, ptxas aims at an occupancy of its own and may spill for it.
  func->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                b.getI32IntegerAttr(static_cast<int32_t>(
                    family.path().minBlocksPerSm(described, family, device))));
  module->setAttr(
      ukernel::UKernelDialect::kEntryAttrName,
      ukernel::EntryAttr::get(
          b.getContext(), resources.threads, resources.sharedMemoryBytes,
          std::max(family.alignment(), naturalAlignment(described)),
          signature.toAttribute(b.getContext()),
          ukernel::UseAttr::get(b.getContext(), planned ? planned : familyAttr,
                                kernel.getWorkloadAttr())));
  b.setInsertionPointToStart(&func.getBody().front());
  if (failed(emitBody(b, func))) {
    module.erase();
    return failure();
  }
  gpu::ReturnOp::create(b);
  return EmittedKernel{module, std::move(signature)};
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// From here on the split axis is the tile's slice.
void KernelEmitter::enterSlice(ImplicitLocOpBuilder &b,
                               const Position &position) {
  if (!position.slice || family.path().sharesOutSlices())
    return;
  ukernel::IndexArithmetic math(b);
  Value &extent = sizes[grid.reduceAxis()];
  auto [first, length] = reduceRangeOf(math, grid, *position.slice, extent);
  sliceStart = first;
  extent = length;
}

/// Those of axes, and of the loops of fused ones. The first loop of an axis is
/// what the others leave of it.
void KernelEmitter::buildLoopSizes(ImplicitLocOpBuilder &b,
                                   gpu::GPUFuncOp func) {
  dimSizes.assign(sizes.begin(), sizes.end());
  SmallVector<ukernel::FusedLoop> loops = workload.getFusedLoops();
  dimSizes.resize(sizes.size() + loops.size());
  if (llvm::none_of(llvm::seq(workload->getNumOperands()),
                    [&](unsigned number) {
                      return isHeldAgainstSizes(workload, number);
                    }))
    return;
  ukernel::IndexArithmetic math(b);
  for (unsigned axis = 0; axis < extents.size(); ++axis) {
    SmallVector<unsigned, 3> dims = workload.getDimsOfAxis(axis);
    if (dims.front() == axis)
      continue;
    Value rest = sizes[axis];
    for (unsigned dim : llvm::drop_begin(dims)) {
      int64_t extent = loops[dim - sizes.size()].extent;
      auto [operand, ofOperand] = sourceOf(workload, dim);
      dimSizes[dim] =
          ShapedType::isStatic(extent)
              ? arith::ConstantIndexOp::create(b, extent).getResult()
              : sizeOfDim(b, func, operand, ofOperand);
      rest = b.createOrFold<arith::DivUIOp>(rest, dimSizes[dim]);
    }
    dimSizes[dims.front()] = rest;
  }
}

LogicalResult KernelEmitter::emitBody(ImplicitLocOpBuilder &b,
                                      gpu::GPUFuncOp func) {
  for (unsigned axis = 0; axis < extents.size(); ++axis) {
    Value size = signature.axisSize(b, func, axis);
    if (!size)
      size = arith::ConstantIndexOp::create(b, extents[axis]);
    sizes.push_back(size);
  }
  if (tiles.size() == 2)
    firstTiles = signature.part(b, func);
  buildLoopSizes(b, func);

  auto workgroup =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  TileEmission block(device);
  block.op = tiles.front().getOperator();
  block.family = family;
  block.described = &described;
  block.extents.assign(sizes.begin(), sizes.end());
  llvm::append_range(block.loopExtents,
                     ArrayRef(dimSizes).drop_front(extents.size()));
  block.sharedMemory = gpu::DynamicSharedMemoryOp::create(
      b, MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                         MemRefLayoutAttrInterface(), workgroup));
  block.threadId = gpu::ThreadIdOp::create(b, gpu::Dimension::x,
                                           b.getIndexAttr(resources.threads));
  Tiles all(*this, func, block);
  return path->emitBlock(b, all);
}

FailureOr<Values> KernelEmitter::emitTiles(ImplicitLocOpBuilder &b,
                                           gpu::GPUFuncOp func,
                                           const TileEmission &block,
                                           ValueRange first,
                                           BlockTiles::Body body) {
  ukernel::IndexArithmetic math(b);
  Value number = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  auto blocks = [&]() -> Value {
    return gpu::GridDimOp::create(b, gpu::Dimension::x);
  };
  if (grid.persistentBlocks == 0)
    return emitTile(b, func, block,
                    positionOf(math, grid, sizes, number, blocks), first, body);

  Value tiles = tilesOf(math, grid, sizes, firstTiles);
  Value step = blocks(), rank;
  if (grid.clusterBlocks != 1) {
    rank = math.rem(number, grid.clusterBlocks);
    number = math.div(number, grid.clusterBlocks);
    step = math.div(step, grid.clusterBlocks);
  }
  scf::ForOp loop = createLoop(b, Unrolling::Never, number, tiles, step, first);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Position position = positionOfTile<ukernel::IndexArithmetic>(
      math, grid, sizes, loop.getInductionVar(), [&] { return tiles; });
  if (rank)
    position.rank = rank;
  FailureOr<Values> next =
      emitTile(b, func, block, position, loop.getRegionIterArgs(), body);
  if (failed(next))
    return failure();
  if (!first.empty())
    scf::YieldOp::create(b, *next);
  return Values(loop.getResults());
}

FailureOr<Values>
KernelEmitter::emitTile(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                        const TileEmission &block, const Position &position,
                        ValueRange state, BlockTiles::Body body) {
  // The extents of the slice are those of this tile alone.
  llvm::SaveAndRestore keepSizes(sizes);
  llvm::SaveAndRestore keepSlice(sliceStart);
  enterSlice(b, position);
  TileEmission emission = block;
  emission.extents.assign(sizes.begin(), sizes.end());
  emission.sliceStart = sliceStart;
  if (family.path().sharesOutSlices())
    emission.slice = position.slice.value_or(Value());
  // Parts along a batch axis begin at elements of their own.
  bool isPairOfBatches =
      tiles.size() == 2 && grid.batchNumber(grid.combineAxis);
  if (!isPairOfBatches) {
    buildBatchOffsets(b, position, std::nullopt);
    buildOperands(b, func, position, emission);
  }
  if (tiles.size() == 1)
    return emitPart(b, func, emission, 0, position, state, body);

  ukernel::IndexArithmetic math(b);
  Value inFirst = isInFirstPart(math, grid, position, firstTiles);
  auto ifOp = scf::IfOp::create(b, TypeRange(state), inFirst,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (unsigned part : {0, 1}) {
    b.setInsertionPointToStart(part == 0 ? ifOp.thenBlock() : ifOp.elseBlock());
    if (isPairOfBatches) {
      buildBatchOffsets(b, position,
                        part == 1 ? std::optional(firstTiles) : std::nullopt);
      buildOperands(b, func, position, emission);
    }
    FailureOr<Values> next =
        emitPart(b, func, emission, part, position, state, body);
    if (failed(next))
      return failure();
    if (!state.empty())
      scf::YieldOp::create(b, *next);
  }
  return Values(ifOp.getResults());
}

/// Where a tile begins along batch axes; of the second part, behind the tiles
/// of the first.
void KernelEmitter::buildBatchOffsets(ImplicitLocOpBuilder &b,
                                      const Position &position,
                                      std::optional<Value> firstTilesOfPart) {
  ukernel::IndexArithmetic math(b);
  batchOffsets.assign(extents.size(), Value());
  isBatchTiled.assign(extents.size(), false);
  for (unsigned number = 0; number < position.batch.size(); ++number) {
    unsigned axis = *grid.batchAxis(number);
    isBatchTiled[axis] = grid.tile[axis] != 1 || grid.isPairAlong(axis);
    if (!position.batch[number])
      continue;
    batchOffsets[axis] =
        isBatchTiled[axis]
            ? offsetAlong(math, grid, position, firstTilesOfPart, axis)
            : *position.batch[number];
  }
}

void KernelEmitter::buildOperands(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                                  const Position &position,
                                  TileEmission &emission) {
  emission.operands.clear();
  emission.batchStrides.clear();
  for (unsigned index = 0; index < kernel.getOperandArguments().size();
       ++index) {
    batchStrides.assign(extents.size(), Value());
    emission.operands.push_back(buildOperand(b, func, index, position));
    emission.batchStrides.push_back(batchStrides);
  }
  emission.batchOffsets.assign(extents.size(), Value());
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    if (isBatchTiled[axis])
      emission.batchOffsets[axis] =
          batchOffsets[axis] ? batchOffsets[axis]
                             : arith::ConstantIndexOp::create(b, 0).getResult();
}

FailureOr<Values> KernelEmitter::emitPart(ImplicitLocOpBuilder &b,
                                          gpu::GPUFuncOp func,
                                          TileEmission &emission, unsigned part,
                                          const Position &position,
                                          ValueRange state,
                                          BlockTiles::Body body) {
  ukernel::TileOp tile = tiles[part];
  ukernel::OperatorOpInterface op = tile.getOperator();
  emission.op = op;
  emission.part = part;
  emission.tensorMaps = buildTensorMaps(b, func, part, position);
  emission.exact.clear();
  for (unsigned axis = 0; axis < op.getNumAxes(); ++axis)
    emission.exact.push_back(isExact(tile, axis, part == 1));
  ukernel::IndexArithmetic math(b);
  auto [row, column] =
      offsetsOf(math, grid, position,
                part == 1 ? std::optional(firstTiles) : std::nullopt);
  emission.rowOffset = row;
  emission.columnOffset = column;
  emission.clusterRank = position.rank.value_or(Value());
  return body(emission, state);
}

/// Whether tiles that begin at a multiple of their size never reach beyond the
/// extent of an axis. `ukernel.pad` says so of dimensions that the axis indexes
/// alone; without any of an input, the extent must be known.
static bool dividesExtent(ukernel::TileOp tile, unsigned axis) {
  ukernel::OperatorOpInterface op = tile.getOperator();
  bool isPadded = false, isAlone = false;
  for (OpOperand &operand : op->getOpOperands()) {
    auto pad = operand.get().getDefiningOp<ukernel::PadOp>();
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [dim, position] : llvm::enumerate(map.getResults())) {
      if (position != getAffineDimExpr(axis, op->getContext()))
        continue;
      isAlone |= op.isInput(operand.getOperandNumber());
      isPadded |= pad && !pad.isExact(dim);
    }
  }
  if (isAlone || isPadded)
    return !isPadded;
  int64_t extent = op.getStaticExtents()[axis];
  return !ShapedType::isDynamic(extent) && extent % tile.getSizes()[axis] == 0;
}

/// Whether tiles of a part never reach beyond the extent of an axis.
bool KernelEmitter::isExact(ukernel::TileOp tile, unsigned axis,
                            bool isSecond) const {
  if (!dividesExtent(tile, axis))
    return false;
  if (!isSecond || !grid.isPairAlong(axis))
    return true;
  return !ShapedType::isDynamic(extents[axis]) &&
         isSecondNeverPadded(grid.partition(), extents[axis]);
}

void ftuner::registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, gpu::GPUDialect, math::MathDialect,
                  memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                  vector::VectorDialect>();
}

void ftuner::loadKernelDialects(MLIRContext *context) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  context->appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context->getOrLoadDialect(name);
}

FailureOr<EmittedKernel> ftuner::emitKernel(ukernel::KernelOp kernel,
                                            const DeviceSpec &device) {
  return KernelEmitter(kernel, device).emit();
}
