//===- UKernelToGPU.cpp - Kernel families to gpu.func -----------*- C++ -*-===//
//
// Each ukernel.kernel @k becomes gpu.module @k { gpu.func @k } with the kernel
// ABI: pointers, then sizes, strides and part counts as i32, then scalars. What
// one block computes is the codegen path's; the grid, the two parts and the ABI
// are the same for all paths and are here.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Conversion/Passes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/IndexArithmetic.h"
#include "FTuner/Schedule/Grid.h"
#include "FTuner/Transforms/FunctionWork.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Transforms/Stages.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {
#define GEN_PASS_DEF_CONVERTUKERNELTOGPUPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Parameters of the emitted function, in the order of the kernel ABI, and how
/// they bind to the kernel's block arguments.
struct Signature {
  SmallVector<Type> types;
  SmallVector<Attribute> descriptions;
  /// Parameter numbers.
  SmallVector<int64_t> pointers; // by operand; -1 for scalars
  SmallVector<int64_t> scalars;  // by operand; -1 for memrefs
  SmallVector<int64_t, 4> sizes; // by axis; -1 where static
  /// By operand, then by dimension; -1 where static.
  SmallVector<SmallVector<int64_t>> strides;
  int64_t part = -1;
};

using Position = TilePosition<ukernel::IndexArithmetic>;

class KernelEmitter {
public:
  KernelEmitter(ukernel::KernelOp kernel, const DeviceSpec &device)
      : kernel(kernel), device(device),
        tiles(llvm::to_vector(
            kernel.getCombine().getBody().getOps<ukernel::TileOp>())),
        workload(tiles.front().getOperator()),
        extents(workload.getStaticExtents()) {}

  /// Replaces the kernel; fills in what its launches must append.
  FailureOr<gpu::GPUModuleOp> emit(SymbolTable &symbols);
  const Signature &getSignature() const { return signature; }

private:
  LogicalResult checkFamily();
  void buildSignature();
  int64_t addParameter(Type type, StringRef kind, Twine name,
                       StringRef access = "");
  Position buildPosition(ImplicitLocOpBuilder &b);
  Value buildOperand(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                     unsigned index, const Position &position);
  LogicalResult emitBody(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func);
  LogicalResult emitTile(ImplicitLocOpBuilder &b, TileEmission &emission,
                         ukernel::TileOp tile, const Position &position,
                         std::optional<Value> firstBlocks);

  ukernel::KernelOp kernel;
  const DeviceSpec &device;
  SmallVector<ukernel::TileOp> tiles;
  ukernel::OperatorOpInterface workload;
  SmallVector<int64_t, 4> extents;
  const CodegenPath *path = nullptr;
  ukernel::FamilyAttr familyAttr;
  KernelFamily family;
  Grid grid;
  Signature signature;
  SmallVector<Value> operands;
  SmallVector<Value, 4> sizes;
  KernelResources resources;
};

int64_t KernelEmitter::addParameter(Type type, StringRef kind, Twine name,
                                    StringRef access) {
  Builder b(type.getContext());
  NamedAttrList fields;
  fields.set("kind", b.getStringAttr(kind));
  fields.set("name", b.getStringAttr(name));
  fields.set("type", TypeAttr::get(type));
  if (!access.empty())
    fields.set("access", b.getStringAttr(access));
  signature.descriptions.push_back(fields.getDictionary(type.getContext()));
  signature.types.push_back(kind == "pointer" ? MemRefType::get({}, type)
                                              : type);
  return signature.types.size() - 1;
}

void KernelEmitter::buildSignature() {
  Type i32 = IntegerType::get(kernel.getContext(), 32);
  ValueRange args = kernel.getOperandArguments();
  unsigned count = args.size();
  signature.pointers.assign(count, -1);
  signature.scalars.assign(count, -1);
  signature.strides.resize(count);
  // The operands of the kernel are those of the operator in order.
  auto name = [&](unsigned index) { return workload.getOperandName(index); };
  for (auto [index, arg] : llvm::enumerate(args))
    if (auto type = dyn_cast<MemRefType>(arg.getType())) {
      bool isOutput = workload.getOperandRole(index) == OperandRole::Output;
      bool accumulates = isOutput && workload.readsOutput();
      signature.pointers[index] =
          addParameter(type.getElementType(), "pointer", name(index),
                       accumulates ? "readwrite"
                       : isOutput  ? "write"
                                   : "read");
    }
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    signature.sizes.push_back(
        ShapedType::isDynamic(extents[axis])
            ? addParameter(i32, "size", workload.getAxisName(axis))
            : -1);
  for (auto [index, arg] : llvm::enumerate(args))
    if (auto type = dyn_cast<MemRefType>(arg.getType())) {
      auto [strides, offset] = type.getStridesAndOffset();
      for (auto [dim, stride] : llvm::enumerate(strides))
        signature.strides[index].push_back(
            ShapedType::isDynamic(stride)
                ? addParameter(i32, "stride",
                               name(index) + "_stride" + Twine(dim))
                : -1);
    }
  if (tiles.size() == 2)
    signature.part = addParameter(i32, "part", "first_part_blocks");
  for (auto [index, arg] : llvm::enumerate(args))
    if (!isa<MemRefType>(arg.getType()) && !arg.use_empty())
      signature.scalars[index] =
          addParameter(arg.getType(), "scalar", name(index));
}

/// Views the elements of a pointer parameter that belong to the block's batch:
/// the operand's memref at the position on the batch axes, which the view does
/// not have. A scalar is a parameter or a constant.
Value KernelEmitter::buildOperand(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                                  unsigned index, const Position &position) {
  if (int64_t scalar = signature.scalars[index]; scalar >= 0)
    return func.getArgument(scalar);
  if (signature.pointers[index] < 0)
    return b.clone(*workload->getOperand(index).getDefiningOp())->getResult(0);
  auto type = cast<MemRefType>(kernel.getOperandArguments()[index].getType());
  Value pointer = func.getArgument(signature.pointers[index]);
  auto [strides, typeOffset] = type.getStridesAndOffset();
  SmallVector<int64_t> shape, viewStrides;
  SmallVector<OpFoldResult> sizeValues, strideValues;
  OpFoldResult offset = b.getIndexAttr(0);
  for (auto [dim, expr] : llvm::enumerate(workload.getMapOfOperand(index).getResults())) {
    unsigned axis = cast<AffineDimExpr>(expr).getPosition();
    int64_t parameter = signature.strides[index][dim];
    OpFoldResult stride = b.getIndexAttr(strides[dim]);
    if (parameter >= 0)
      stride = arith::IndexCastOp::create(b, b.getIndexType(),
                                          func.getArgument(parameter))
                   .getResult();
    if (std::optional<unsigned> number = grid.batchNumber(axis)) {
      std::optional<Value> element = position.batch[*number];
      if (!element)
        continue;
      Value distance = b.createOrFold<arith::MulIOp>(
          *element, getValueOrCreateConstantIndexOp(b, b.getLoc(), stride));
      offset =
          isa<Attribute>(offset)
              ? distance
              : b.createOrFold<arith::AddIOp>(cast<Value>(offset), distance);
      continue;
    }
    shape.push_back(type.getDimSize(dim));
    viewStrides.push_back(strides[dim]);
    sizeValues.push_back(type.isDynamicDim(dim)
                             ? OpFoldResult(sizes[axis])
                             : b.getIndexAttr(type.getDimSize(dim)));
    strideValues.push_back(stride);
  }
  int64_t viewOffset = isa<Attribute>(offset) ? 0 : ShapedType::kDynamic;
  auto viewType = MemRefType::get(
      shape, type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), viewOffset, viewStrides));
  return memref::ReinterpretCastOp::create(b, viewType, pointer, offset,
                                           sizeValues, strideValues);
}

/// The kernel may come from anywhere: its family must be one that the path can
/// emit for the device, as in a plan.
LogicalResult KernelEmitter::checkFamily() {
  auto sizes = llvm::map_to_vector(
      tiles, [](ukernel::TileOp tile) { return tile.getSizesAttr(); });
  Workload described = toWorkload(workload);
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

FailureOr<gpu::GPUModuleOp> KernelEmitter::emit(SymbolTable &symbols) {
  if (failed(checkFamily()))
    return failure();
  buildSignature();

  ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
  auto module = gpu::GPUModuleOp::create(b, kernel.getSymName());
  b.setInsertionPointToStart(module.getBody());
  auto func = gpu::GPUFuncOp::create(
      b, kernel.getSymName(),
      FunctionType::get(b.getContext(), signature.types, {}));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  func.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(resources.threads), 1, 1}));
  // Without it, ptxas aims at an occupancy of its own and may spill for it.
  func->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                b.getI32IntegerAttr(1));
  module->setAttr(
      ukernel::UKernelDialect::kEntryAttrName,
      ukernel::EntryAttr::get(b.getContext(), resources.threads,
                              resources.sharedMemoryBytes, family.alignment(),
                              b.getArrayAttr(signature.descriptions), familyAttr,
                              kernel.getWorkloadAttr()));
  auto isPassed = llvm::map_to_vector(
      signature.sizes, [](int64_t parameter) { return parameter >= 0; });
  module->setAttr(kWorkAttrName, dropFixedSizes(workOf(kernel), isPassed));
  b.setInsertionPointToStart(&func.getBody().front());
  if (failed(emitBody(b, func)))
    return failure();
  gpu::ReturnOp::create(b);
  symbols.erase(kernel);
  symbols.insert(module);
  return module;
}

/// The tile of the block that runs.
Position KernelEmitter::buildPosition(ImplicitLocOpBuilder &b) {
  ukernel::IndexArithmetic math(b);
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  return positionOf(math, grid, sizes, block, [&]() -> Value {
    return gpu::GridDimOp::create(b, gpu::Dimension::x);
  });
}

LogicalResult KernelEmitter::emitBody(ImplicitLocOpBuilder &b,
                                      gpu::GPUFuncOp func) {
  auto asIndex = [&](Value parameter) -> Value {
    return arith::IndexCastOp::create(b, b.getIndexType(), parameter);
  };
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    sizes.push_back(
        signature.sizes[axis] < 0
            ? arith::ConstantIndexOp::create(b, extents[axis]).getResult()
            : asIndex(func.getArgument(signature.sizes[axis])));
  Position position = buildPosition(b);
  for (unsigned index = 0; index < kernel.getOperandArguments().size(); ++index)
    operands.push_back(buildOperand(b, func, index, position));

  auto workgroup =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  Value sharedMemory = gpu::DynamicSharedMemoryOp::create(
      b, MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                         MemRefLayoutAttrInterface(), workgroup));
  TileEmission emission(device);
  emission.family = family;
  emission.extents.assign(sizes.begin(), sizes.end());
  emission.sharedMemory = sharedMemory;
  emission.threadId = gpu::ThreadIdOp::create(
      b, gpu::Dimension::x, b.getIndexAttr(resources.threads));
  emission.operands = operands;

  if (tiles.size() == 1)
    return emitTile(b, emission, tiles[0], position, std::nullopt);

  Value firstBlocks = asIndex(func.getArgument(signature.part));
  ukernel::IndexArithmetic math(b);
  Value inFirst = isInFirstPart(math, grid, position, firstBlocks);
  auto ifOp = scf::IfOp::create(b, inFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  if (failed(emitTile(b, emission, tiles[0], position, std::nullopt)))
    return failure();
  b.setInsertionPointToStart(ifOp.elseBlock());
  return emitTile(b, emission, tiles[1], position, firstBlocks);
}

/// Whether `ukernel.pad` says that a tile may reach beyond an axis.
bool isPadded(Value operand, AffineMap map, unsigned axis) {
  auto pad = operand.getDefiningOp<ukernel::PadOp>();
  if (!pad)
    return false;
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (cast<AffineDimExpr>(expr).getPosition() == axis)
      return pad.getTile()[dim] != 1;
  return false;
}

LogicalResult KernelEmitter::emitTile(ImplicitLocOpBuilder &b,
                                      TileEmission &emission,
                                      ukernel::TileOp tile,
                                      const Position &position,
                                      std::optional<Value> firstBlocks) {
  ukernel::OperatorOpInterface op = tile.getOperator();
  emission.op = op;
  emission.part = firstBlocks ? 1 : 0;
  emission.exact.clear();
  for (unsigned axis = 0; axis < op.getNumAxes(); ++axis)
    emission.exact.push_back(
        llvm::none_of(op->getOpOperands(), [&](OpOperand &operand) {
          return isPadded(operand.get(), op.getMatchingIndexingMap(&operand),
                          axis);
        }));
  ukernel::IndexArithmetic math(b);
  auto [row, column] = offsetsOf(math, grid, position, firstBlocks);
  emission.rowOffset = row;
  emission.columnOffset = column;
  return path->emitTile(b, emission);
}

/// Points a launch to the emitted function and appends what the ABI adds.
void updateLaunch(ukernel::LaunchOp launch, const Signature &signature) {
  ImplicitLocOpBuilder b(launch.getLoc(), launch);
  StringAttr name = launch.getKernel().getRootReference();
  SmallVector<Value> sizes, strides, args;
  for (auto [axis, parameter] : llvm::enumerate(signature.sizes))
    if (parameter >= 0)
      sizes.push_back(launch.getSizes()[axis]);
  for (auto [arg, parameters] :
       llvm::zip_equal(launch.getArgs(), signature.strides)) {
    if (llvm::all_of(parameters, [](int64_t p) { return p < 0; }))
      continue;
    auto metadata = memref::ExtractStridedMetadataOp::create(b, arg);
    for (auto [dim, parameter] : llvm::enumerate(parameters))
      if (parameter >= 0)
        strides.push_back(metadata.getStrides()[dim]);
  }
  for (auto [index, arg] : llvm::enumerate(launch.getArgs()))
    if (signature.pointers[index] >= 0 || signature.scalars[index] >= 0)
      args.push_back(arg);
  launch.setKernelAttr(
      SymbolRefAttr::get(name, {FlatSymbolRefAttr::get(name)}));
  launch.getArgsMutable().assign(args);
  launch.getSizesMutable().assign(sizes);
  launch.getStridesMutable().assign(strides);
  if (signature.part < 0)
    launch.getPartsMutable().clear();
}

struct ConvertUKernelToGPUPass
    : public ftuner::impl::ConvertUKernelToGPUPassBase<
          ConvertUKernelToGPUPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectStages(module, getArgument(),
                            {Stage::Formed, Stage::Planned, Stage::Bufferized,
                             Stage::Dispatched, Stage::Outlined})))
      return signalPassFailure();
    auto kernels = llvm::to_vector(module.getOps<ukernel::KernelOp>());
    if (kernels.empty())
      return;
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return signalPassFailure();
    SymbolTable symbols(module);
    llvm::StringMap<Signature> signatures;
    for (ukernel::KernelOp kernel : kernels) {
      std::string name = kernel.getSymName().str();
      KernelEmitter emitter(kernel, *device);
      if (failed(emitter.emit(symbols)))
        return signalPassFailure();
      signatures[name] = emitter.getSignature();
    }
    module.walk([&](ukernel::LaunchOp launch) {
      auto it = signatures.find(launch.getKernel().getRootReference());
      if (it != signatures.end() &&
          launch.getKernel().getNestedReferences().empty())
        updateLaunch(launch, it->second);
    });
  }
};

} // namespace
