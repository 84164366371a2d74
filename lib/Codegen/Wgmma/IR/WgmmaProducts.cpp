//===- WgmmaProducts.cpp - Products of a warpgroup ------------------------===//
//
// Instructions read both factors from shared memory, where descriptors of 64
// bits say how they lie (PTX ISA, "Matrix Descriptor Format"): addresses and
// strides in units of 16 bytes, and the swizzle, if any. A stage, an
// instruction's rows and a depth add to the address alone.
//
//===----------------------------------------------------------------------===//
#include "WgmmaProducts.h"
#include "FTuner/Codegen/IR/FragmentEpilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

/// Bytes of a unit of addresses and strides, and bits of an address.
static constexpr int64_t kUnitBytes = 16;
static constexpr int64_t kAddressBits = 18;
/// First bits of the strides from panel to panel, or core matrix to core matrix
/// along k, and from eight rows to the next, and of the swizzle.
static constexpr unsigned kPanelStrideBit = 16, kRowStrideBit = 32,
                          kSwizzleBit = 62;
/// Numbers of no swizzle, and of that of 128 bytes.
static constexpr uint64_t kNoSwizzle = 0, kSwizzle128 = 1;

Value WgmmaProducts::advanced(Value descriptor, Value count, int64_t bytes) {
  Value units;
  if (count.getType().isIndex())
    units = b.createOrFold<arith::IndexCastOp>(
        b.getI64Type(), math.mul(count, bytes / kUnitBytes));
  else
    units = arith::ExtUIOp::create(
        b, b.getI64Type(),
        arith::MulIOp::create(b, count, wgmma.constant(bytes / kUnitBytes)));
  return arith::AddIOp::create(b, descriptor, units);
}

Value WgmmaProducts::advanced(Value descriptor, int64_t bytes) {
  if (bytes == 0)
    return descriptor;
  return arith::AddIOp::create(
      b, descriptor,
      arith::ConstantOp::create(b, b.getI64IntegerAttr(bytes / kUnitBytes)));
}

Value WgmmaProducts::descriptorOf(const WgmmaSide &side, Value memory,
                                  Value warpgroup) {
  // The stride from panel to panel is not read where there is one; it is 1.
  uint64_t panelStride = 1;
  if (side.isPacked)
    panelStride = layout.packedStride() / kUnitBytes;
  else if (!side.tile.reduceContiguous)
    panelStride = layout.panelStride(side.tile) / kUnitBytes;
  uint64_t format = panelStride << kPanelStrideBit |
                    uint64_t(layout.rowStride() / kUnitBytes) << kRowStrideBit |
                    (side.isPacked ? kNoSwizzle : kSwizzle128) << kSwizzleBit;
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getI64IntegerAttr(static_cast<int64_t>(value)));
  };
  Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), memory);
  address = arith::AndIOp::create(
      b, address, constant((uint64_t(1) << kAddressBits) - kUnitBytes));
  address = arith::ShRUIOp::create(b, address, constant(4));
  Value descriptor = arith::OrIOp::create(b, address, constant(format));
  return advanced(descriptor, warpgroup,
                  layout.offsetOf(side, side.warpgroupExtent(), /*depth=*/0));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static NVVM::WGMMATypes typeOf(ElementType multiplied, bool isUnsigned) {
  switch (multiplied) {
  case ElementType::F16:
    return NVVM::WGMMATypes::f16;
  case ElementType::BF16:
    return NVVM::WGMMATypes::bf16;
  case ElementType::TF32:
    return NVVM::WGMMATypes::tf32;
  default:
    return isUnsigned ? NVVM::WGMMATypes::u8 : NVVM::WGMMATypes::s8;
  }
}

/// One instruction: adds a product of matrices to its sums.
Value WgmmaProducts::multiplyOnce(Value rows, Value columns, Value sums) {
  auto sideType = [&](const WgmmaSide &side) {
    return typeOf(wgmma.multiplied,
                  wgmma.multiplied == ElementType::I8 &&
                      isUnsignedFactor(wgmma.tile, side.factor));
  };
  MLIRContext *context = b.getContext();
  auto layoutOf = [&](bool isRow) {
    return NVVM::MMALayoutAttr::get(context, isRow ? NVVM::MMALayout::row
                                                   : NVVM::MMALayout::col);
  };
  auto type = [&](NVVM::WGMMATypes kind) {
    return NVVM::WGMMATypesAttr::get(context, kind);
  };
  auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
  return NVVM::WgmmaMmaAsyncOp::create(
      b, sumsType, sums, rows, columns,
      NVVM::MMAShapeAttr::get(context, kWgmmaRows,
                              layout.columns.warpgroupExtent(),
                              kWgmmaDepthBytes / layout.elementBytes),
      type(sideType(layout.rows)), type(sideType(layout.columns)),
      type(accumulatorType.isInteger() ? NVVM::WGMMATypes::s32
                                       : NVVM::WGMMATypes::f32),
      NVVM::WGMMAScaleOutAttr::get(context, NVVM::WGMMAScaleOut::one), one, one,
      layoutOf(layout.rows.tile.reduceContiguous),
      layoutOf(!layout.columns.tile.reduceContiguous),
      NVVM::MMAIntOverflowAttr());
}

Values WgmmaProducts::multiply(Value stage, Values sums) {
  auto inStage = [&](const WgmmaSide &side, Value descriptor) {
    return advanced(descriptor, stage, layout.stageStride(side));
  };
  Value rows = inStage(layout.rows, rowsMatrix);
  Value columns = inStage(layout.columns, columnsMatrix);
  NVVM::WgmmaFenceAlignedOp::create(b);
  for (int64_t depth = 0; depth < layout.depths(); ++depth) {
    Value right = advanced(columns, layout.offsetOf(layout.columns, 0, depth));
    for (auto [number, sum] : llvm::enumerate(sums)) {
      Value left = advanced(
          rows, layout.offsetOf(layout.rows, number * kWgmmaRows, depth));
      sum = multiplyOnce(left, right, sum);
    }
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return sums;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Values WgmmaProducts::initialSums() {
  Value start = wgmma.tile.scalarStart(b, accumulatorType);
  if (!start)
    start = arith::ConstantOp::create(b, accumulatorType,
                                      b.getZeroAttr(accumulatorType));
  Values ofInstruction(accumulatorsOfInstruction(), start);
  // Also of a loop of one step, which is none: registers are written before the
  // fence that hands them to the products.
  Values sums;
  for (int64_t number = 0; number < layout.instructions(); ++number)
    sums.push_back(inRegisters(ofInstruction));
  return sums;
}

int64_t WgmmaProducts::accumulatorsOfInstruction() const {
  return int64_t(cast<LLVM::LLVMStructType>(sumsType).getBody().size());
}

/// Sums of an instruction as an empty assembly takes and returns them.
Value WgmmaProducts::inRegisters(const Values &accumulators) {
  std::string outputs, inputs;
  for (size_t number = 0; number < accumulators.size(); ++number) {
    outputs += accumulatorType.isInteger() ? "=r," : "=f,";
    inputs += (number ? "," : "") + std::to_string(number);
  }
  return LLVM::InlineAsmOp::create(
             b, sumsType, accumulators, /*asm_string=*/"", outputs + inputs,
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      ->getResult(0);
}

Values WgmmaProducts::pinned(ValueRange sums) {
  // Nothing else ties arithmetic on sums to the wait for them.
  Values accumulators;
  int64_t count = accumulatorsOfInstruction();
  for (Value sum : sums) {
    Values waited;
    for (int64_t number = 0; number < count; ++number)
      waited.push_back(LLVM::ExtractValueOp::create(b, sum, number));
    Value result = inRegisters(waited);
    for (int64_t number = 0; number < count; ++number)
      accumulators.push_back(LLVM::ExtractValueOp::create(b, result, number));
  }
  return accumulators;
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

WgmmaProducts::WgmmaProducts(const WgmmaTile &wgmma)
    : b(wgmma.b), math(b), wgmma(wgmma), layout(wgmma.layout),
      accumulatorType(wgmma.multiplied == ElementType::I8 ? Type(b.getI32Type())
                                                          : b.getF32Type()) {
  int64_t ofInstruction =
      layout.warpTile().accumulators() / layout.instructions();
  sumsType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(ofInstruction, accumulatorType));
  Value warpgroup = math.div(wgmma.thread.warp, kWgmmaWarps);
  if (layout.consumerSets > 1)
    warpgroup = math.rem(warpgroup, layout.warpgroupsOfSet());
  auto along = [&](int64_t warpgroups, Value number) {
    return warpgroups == 1 ? math.constant(0) : number;
  };
  rowWarpgroup = along(layout.rows.warpgroups,
                       math.div(warpgroup, layout.columns.warpgroups));
  columnWarpgroup = along(layout.columns.warpgroups,
                          math.rem(warpgroup, layout.columns.warpgroups));
  Value rowsShared = wgmma.stagesOf(layout.isSwapped() ? 1 : 0);
  Value columnsShared = wgmma.stagesOf(layout.isSwapped() ? 0 : 1);
  rowsMatrix = descriptorOf(layout.rows, rowsShared, rowWarpgroup);
  columnsMatrix = descriptorOf(layout.columns, columnsShared, columnWarpgroup);
}

void WgmmaProducts::wait(int64_t newer) {
  NVVM::WgmmaWaitGroupSyncOp::create(b, newer);
}

void WgmmaProducts::store(ValueRange sums, bool hasAsynchronousCopies) {
  Values accumulators = pinned(sums);
  Value row = math.add(
      math.mul(rowWarpgroup, layout.rows.warpgroupExtent()),
      math.mul(math.rem(wgmma.thread.warp, kWgmmaWarps), FragmentTile::kRows));
  Value column = math.mul(columnWarpgroup, layout.columns.warpgroupExtent());
  if (layout.isSwapped())
    std::swap(row, column);
  FragmentTile fragments = layout.warpTile();
  int64_t threads = layout.producerWarpgroups ? layout.consumerThreads() : 0;
  ContractionTile tile = movedInside(wgmma);
  FragmentEpilogue(b, tile, fragments, wgmma.schedule.accessBytes,
                   {wgmma.thread.warp, wgmma.thread.lane, row, column, threads,
                    layout.stagingOffset(), layout.stagingStride})
      .emit(accumulators, hasAsynchronousCopies);
}
