//===- MmaMainLoop.cpp - The reduction of one tile ------------------------===//
//
// A step is unrolled: fragments of the next depth are loaded before those of
// this one are multiplied. Addresses of fragments in the first stage are
// computed before the loop. Along k a fragment is two chunks of 16 bytes; an
// exclusive or with the fragment's number finds it behind the swizzle, since
// chunks of a row are permuted by an exclusive or, too.
//
//===----------------------------------------------------------------------===//
#include "MmaEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// `origin`: the warp's first element along the space axis; `extent`: elements
/// of a fragment along it.
MmaTileEmitter::FragmentAddresses
MmaTileEmitter::prepareFragments(const SharedTile &shared, Value memory,
                                 MatrixRow<IndexMath> lane, Value origin,
                                 int64_t fragments, int64_t extent) {
  int64_t pitchBytes = shared.pitch * layout.elementBytes;
  // Fragments of the loop that is not in `bases` are whole periods of the
  // swizzle apart.
  auto pattern = [&](Value chunk) {
    return shared.swizzle == 1
               ? chunk
               : math.bitXor(chunk, swizzlePattern(math, shared, lane.row));
  };
  FragmentAddresses addresses;
  auto addBase = [&](Value row, Value chunk) {
    Value bytes =
        math.add(math.mul(row, pitchBytes), math.mul(chunk, kMmaChunkBytes));
    addresses.bases.push_back(offsetPointer(b, memory, bytes));
  };
  if (shared.reduceContiguous) {
    Value row = math.add(origin, lane.row), chunk = pattern(lane.chunk);
    for (int64_t depth = 0; depth < layout.fragmentsOfStep(); ++depth)
      addBase(row, math.bitXor(chunk, math.constant(2 * depth)));
    addresses.stride = extent * pitchBytes;
    return addresses;
  }
  Value first = math.add(math.div(origin, shared.chunk), lane.chunk);
  for (int64_t fragment = 0; fragment < fragments; ++fragment)
    addBase(lane.row,
            pattern(math.add(first, fragment * extent / shared.chunk)));
  addresses.stride = layout.fragmentDepth() * pitchBytes;
  return addresses;
}

Value MmaTileEmitter::fragmentPointer(const SharedTile &shared,
                                      const FragmentAddresses &addresses,
                                      Value stageBytes, int64_t fragment,
                                      int64_t depth) {
  int64_t base = shared.reduceContiguous ? depth : fragment;
  int64_t steps = shared.reduceContiguous ? fragment : depth;
  Value pointer = offsetPointer(b, addresses.bases[base], stageBytes);
  return offsetPointer(b, pointer, steps * addresses.stride);
}

/// Registers of a lane, of type i32.
Values MmaTileEmitter::loadMatrices(Value pointer, int64_t matrices,
                                    bool isTransposed) {
  Type i32 = b.getI32Type();
  Type type = i32;
  if (matrices > 1)
    type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                            SmallVector<Type>(matrices, i32));
  Value loaded = NVVM::LdMatrixOp::create(
      b, type, pointer, static_cast<uint32_t>(matrices),
      isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  if (matrices == 1)
    return {loaded};
  Values registers;
  for (int64_t matrix = 0; matrix < matrices; ++matrix)
    registers.push_back(LLVM::ExtractValueOp::create(b, loaded, matrix));
  return registers;
}

MmaTileEmitter::Fragments
MmaTileEmitter::loadFragments(Value lhsStage, Value rhsStage, int64_t depth) {
  Fragments fragments;
  for (int64_t row = 0; row < layout.rowFragments(); ++row) {
    Value pointer =
        fragmentPointer(layout.lhs, lhsAddresses, lhsStage, row, depth);
    llvm::append_range(fragments.lhs,
                       loadMatrices(pointer, 4, !layout.lhs.reduceContiguous));
  }
  // Two fragments of the rhs at once.
  int64_t columns = layout.columnFragments();
  for (int64_t column = 0; column < columns; column += 2) {
    Value pointer =
        fragmentPointer(layout.rhs, rhsAddresses, rhsStage, column / 2, depth);
    llvm::append_range(fragments.rhs,
                       loadMatrices(pointer, column + 1 < columns ? 4 : 2,
                                    !layout.rhs.reduceContiguous));
  }
  return fragments;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Adds the product of a fragment of the lhs (4 registers) and one of the rhs
/// (2) to four accumulators.
Values MmaTileEmitter::multiplyFragment(ValueRange lhs, ValueRange rhs,
                                        ValueRange sum) {
  MLIRContext *context = b.getContext();
  auto resultType = LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(4, accumulatorType));
  std::optional<std::array<NVVM::MMATypes, 2>> types;
  auto toOperands = [&](ValueRange registers) {
    Values operands;
    for (Value value : registers)
      operands.push_back(elementType.isF16()
                             ? LLVM::BitcastOp::create(
                                   b, VectorType::get({2}, elementType), value)
                                   .getResult()
                             : value);
    return operands;
  };
  if (elementType.isBF16())
    types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
  Values result(sum);
  // An instruction may take half of a fragment's depth: two registers of the
  // lhs and one of the rhs.
  int64_t times = layout.fragmentDepth() / instruction.depth;
  for (int64_t part = 0; part < times; ++part) {
    size_t numLhs = lhs.size() / times, numRhs = rhs.size() / times;
    Value product = NVVM::MmaOp::create(
        b, resultType, toOperands(lhs.slice(part * numLhs, numLhs)),
        toOperands(rhs.slice(part * numRhs, numRhs)), result,
        {kMmaRows, kMmaColumns, instruction.depth}, std::nullopt, std::nullopt,
        types,
        std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                       NVVM::MMALayout::col});
    for (int64_t i = 0; i < 4; ++i)
      result[i] = LLVM::ExtractValueOp::create(b, product, i);
  }
  return result;
}

void MmaTileEmitter::multiplyFragments(const Fragments &fragments,
                                       Values &accumulators) {
  int64_t columns = layout.columnFragments();
  for (int64_t row = 0; row < layout.rowFragments(); ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t first = 4 * (row * columns + column);
      Values sum =
          multiplyFragment(ValueRange(fragments.lhs).slice(4 * row, 4),
                           ValueRange(fragments.rhs).slice(2 * column, 2),
                           ValueRange(accumulators).slice(first, 4));
      llvm::copy(sum, accumulators.begin() + first);
    }
}

Values MmaTileEmitter::multiply(Value stage, Values accumulators) {
  auto stageBytes = [&](const SharedTile &shared) {
    return math.mul(stage, shared.elements() * layout.elementBytes);
  };
  Value lhsStage = stageBytes(layout.lhs), rhsStage = stageBytes(layout.rhs);
  Fragments fragments = loadFragments(lhsStage, rhsStage, 0);
  for (int64_t depth = 0; depth < layout.fragmentsOfStep(); ++depth) {
    Fragments next;
    if (depth + 1 < layout.fragmentsOfStep())
      next = loadFragments(lhsStage, rhsStage, depth + 1);
    multiplyFragments(fragments, accumulators);
    fragments = std::move(next);
  }
  return accumulators;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

Values MmaTileEmitter::initialAccumulators() {
  Value start;
  if (tile.init && !isa<MemRefType>(tile.init.getType())) {
    start = tile.init;
    if (start.getType() != accumulatorType)
      start = arith::ExtFOp::create(b, accumulatorType, start);
  } else {
    start = arith::ConstantOp::create(b, accumulatorType,
                                      b.getZeroAttr(accumulatorType));
  }
  return Values(layout.accumulators(), start);
}

Values MmaTileEmitter::emitMainLoop() {
  Value lhsShared = sharedPointer(b, tile.sharedMemory, 0);
  Value rhsShared =
      sharedPointer(b, tile.sharedMemory, layout.bytesOf(layout.lhs));
  int64_t vectorWidth = accessBytes / layout.elementBytes;
  TileCopy lhsCopy(b, layout.lhs, tile.lhs, lhsShared, layout.threads(),
                   vectorWidth);
  TileCopy rhsCopy(b, layout.rhs, tile.rhs, rhsShared, layout.threads(),
                   vectorWidth);
  Value reduceExtent = tile.extents[Workload::kK];
  bool reduceExact = tile.exact[Workload::kK];
  lhsCopy.prepare(tile.threadId, tile.rowOffset, tile.extents[Workload::kM],
                  tile.exact[Workload::kM], reduceExtent, reduceExact);
  rhsCopy.prepare(tile.threadId, tile.columnOffset, tile.extents[Workload::kN],
                  tile.exact[Workload::kN], reduceExtent, reduceExact);

  lhsAddresses =
      prepareFragments(layout.lhs, lhsShared,
                       lhsMatrixRow(math, layout.lhs.reduceContiguous, lane),
                       warpRow, layout.rowFragments(), kMmaRows);
  rhsAddresses = prepareFragments(
      layout.rhs, rhsShared,
      rhsMatrixRow(math, layout.rhs.reduceContiguous, lane), warpColumn,
      ceilDiv(layout.columnFragments(), 2), 2 * kMmaColumns);

  MainLoop loop{lhsCopy,       rhsCopy,
                layout.stages, layout.bk,
                reduceExtent,  copiesAsynchronously(tile.device, accessBytes)};
  return loop.emit(b, initialAccumulators(), [&](Value stage, Values values) {
    return multiply(stage, std::move(values));
  });
}
