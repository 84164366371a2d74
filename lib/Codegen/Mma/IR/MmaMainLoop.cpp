//===- MmaMainLoop.cpp - The reduction of one tile ------------------------===//
//
// A step is unrolled into k blocks, one for each depth of fragments
// (MainLoop.h). Addresses of fragments in the first stage are computed before
// the loop. Along k a fragment is two chunks of 16 bytes; an exclusive or with
// the fragment's number finds it behind the swizzle, since chunks of a row are
// permuted by an exclusive or, too.
//
//===----------------------------------------------------------------------===//
#include "MmaEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

/// Elements of four bytes that a quarter of a warp's lanes hold along k.
static constexpr int64_t kQuadElements = 4;

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

Value MmaTileEmitter::matrixPointer(const SharedTile &shared, Value memory,
                                    unsigned factor) {
  if (shared.matrices == 1)
    return memory;
  Value matrix = matrixOf(math, layout.batch, factor, batchElement);
  return offsetPointer(
      b, memory, math.mul(matrix, shared.matrixPitch() * layout.elementBytes));
}

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
  if (!layout.loadsMatrices(shared)) {
    LaneElement<IndexMath> element = laneElement(math, this->lane);
    Value first = math.add(math.mul(element.reduce, shared.pitch),
                           math.add(origin, element.space));
    addresses.bases.push_back(
        offsetPointer(b, memory, math.mul(first, layout.elementBytes)));
    addresses.stride = pitchBytes;
    return addresses;
  }
  auto addBase = [&](Value row, Value chunk) {
    Value ofRow = math.mul(row, pitchBytes);
    Value ofChunk = math.mul(chunk, kMmaChunkBytes);
    addresses.bases.push_back(
        offsetPointer(b, memory, math.add(ofRow, ofChunk)));
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

/// Of the registers of four matrices along k whose pairs of bytes are
/// transposed: the even elements along the space axis in order of k, and the
/// odd ones.
std::array<Values, 2> MmaTileEmitter::separateBytes(ValueRange matrices) {
  constexpr int64_t kBytes = 4;
  auto bytesOf = [&](Value matrix) -> Value {
    return LLVM::BitcastOp::create(b, VectorType::get({kBytes}, b.getI8Type()),
                                   matrix);
  };
  std::array<Values, 2> registers;
  for (size_t matrix = 0; matrix < matrices.size(); matrix += 2)
    for (int64_t odd : {0, 1}) {
      // One prmt.
      Value bytes = vector::ShuffleOp::create(
          b, bytesOf(matrices[matrix]), bytesOf(matrices[matrix + 1]),
          ArrayRef<int64_t>{odd, odd + 2, odd + kBytes, odd + kBytes + 2});
      registers[odd].push_back(
          LLVM::BitcastOp::create(b, b.getI32Type(), bytes));
    }
  return registers;
}

/// Registers of a fragment whose elements of four bytes lie in rows along k.
/// `firstSpace`: its first element along the space axis in the warp tile.
Values MmaTileEmitter::loadElements(const SharedTile &shared,
                                    const FragmentAddresses &addresses,
                                    Value stageBytes, int64_t firstSpace,
                                    int64_t depth, bool areRows) {
  Value stage = offsetPointer(b, addresses.bases[0], stageBytes);
  int64_t halves = areRows ? 2 : 1;
  Values registers;
  for (int64_t number = 0; number < 2 * halves; ++number) {
    int64_t reduce =
        depth * layout.fragmentDepth() + number / halves * kQuadElements;
    int64_t space = firstSpace + number % halves * kMmaRows / 2;
    Value pointer = offsetPointer(
        b, stage, reduce * addresses.stride + space * layout.elementBytes);
    registers.push_back(LLVM::LoadOp::create(b, b.getI32Type(), pointer,
                                             /*alignment=*/4));
  }
  return registers;
}

Values MmaTileEmitter::toFactors(Values registers, const MmaSide &side) {
  if (!isRoundedFactor(tile, side.factor))
    return registers;
  for (Value &value : registers) {
    Value number = arith::BitcastOp::create(b, b.getF32Type(), value);
    value = NVVM::ConvertFloatToTF32Op::create(b, b.getI32Type(), number,
                                               NVVM::FPRoundingMode::RNA);
  }
  return registers;
}

/// Registers of the fragment for 16 rows of instructions.
Values MmaTileEmitter::loadRow(Value stage, int64_t row, int64_t depth) {
  const SharedTile &shared = layout.rows.tile;
  if (!layout.loadsMatrices(shared))
    return loadElements(shared, rows.addresses, stage, row * kMmaRows, depth,
                        /*areRows=*/true);
  Values matrices =
      loadMatrices(fragmentPointer(shared, rows.addresses, stage, row, depth),
                   4, !shared.reduceContiguous);
  if (!layout.transposesBytes(shared))
    return matrices;
  auto [even, odd] = separateBytes(matrices);
  return {even[0], odd[0], even[1], odd[1]};
}

/// Registers of two fragments for 8 columns each from `column` on, or of the
/// last one.
Values MmaTileEmitter::loadColumns(Value stage, int64_t column, int64_t depth) {
  const SharedTile &shared = layout.columns.tile;
  int64_t end = std::min(column + 2, layout.columns.fragments());
  if (layout.loadsMatrices(shared)) {
    Values matrices = loadMatrices(
        fragmentPointer(shared, columns.addresses, stage, column / 2, depth),
        2 * (end - column), !shared.reduceContiguous);
    if (!layout.transposesBytes(shared))
      return matrices;
    auto [even, odd] = separateBytes(matrices);
    return {even[0], even[1], odd[0], odd[1]};
  }
  Values registers;
  for (; column < end; ++column)
    llvm::append_range(registers, loadElements(shared, columns.addresses, stage,
                                               column * kMmaColumns, depth,
                                               /*areRows=*/false));
  return registers;
}

/// Those of rows come first, four registers for each 16, then those of columns,
/// two for each 8.
Values MmaTileEmitter::loadFragments(Value stage, int64_t depth) {
  auto stageBytes = [&](const SharedTile &shared) {
    return math.mul(stage, shared.elements() * layout.elementBytes);
  };
  Value rowsStage = stageBytes(layout.rows.tile);
  Value columnsStage = stageBytes(layout.columns.tile);
  Values registers;
  for (int64_t row = 0; row < layout.rows.fragments(); ++row)
    llvm::append_range(registers,
                       toFactors(loadRow(rowsStage, row, depth), layout.rows));
  for (int64_t column = 0; column < layout.columns.fragments(); column += 2)
    llvm::append_range(
        registers,
        toFactors(loadColumns(columnsStage, column, depth), layout.columns));
  return registers;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// One instruction: adds a product to its accumulators, four or two.
Value MmaTileEmitter::multiplyOnce(ValueRange row, ValueRange column,
                                   ValueRange sum) {
  auto resultType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(sum.size(), accumulatorType));
  auto toOperands = [&](ValueRange registers) {
    Values operands;
    for (Value value : registers)
      operands.push_back(multiplied == ElementType::F16
                             ? LLVM::BitcastOp::create(
                                   b, VectorType::get({2}, elementType), value)
                                   .getResult()
                             : value);
    return operands;
  };
  std::optional<std::array<NVVM::MMATypes, 2>> types;
  std::optional<NVVM::MMAIntOverflow> overflow;
  if (multiplied == ElementType::BF16) {
    types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
  } else if (multiplied == ElementType::TF32) {
    types = {NVVM::MMATypes::tf32, NVVM::MMATypes::tf32};
  } else if (multiplied == ElementType::I8) {
    auto typeOf = [&](const MmaSide &side) {
      return isUnsignedFactor(tile, side.factor) ? NVVM::MMATypes::u8
                                                 : NVVM::MMATypes::s8;
    };
    types = {typeOf(layout.rows), typeOf(layout.columns)};
    overflow = NVVM::MMAIntOverflow::wrapped;
  }
  Values rows = toOperands(row), columns = toOperands(column);
  return NVVM::MmaOp::create(b, resultType, rows, columns, sum,
                             {instruction.rows, kMmaColumns, instruction.depth},
                             std::nullopt, overflow, types,
                             std::array<NVVM::MMALayout, 2>{
                                 NVVM::MMALayout::row, NVVM::MMALayout::col});
}

/// Adds the product of a fragment of rows (4 registers) and one of columns (2)
/// to four accumulators. Registers of the former hold 8 rows each, of the first
/// half along k and then of the second; an instruction may take 8 rows or half
/// of the depth.
Values MmaTileEmitter::multiplyFragment(ValueRange row, ValueRange column,
                                        Values sum) {
  int64_t times = layout.fragmentDepth() / instruction.depth;
  int64_t halves = kMmaRows / instruction.rows;
  size_t numSums = sum.size() / halves, ofColumn = column.size() / times,
         ofRow = row.size() / times / halves;
  for (int64_t part = 0; part < times; ++part)
    for (int64_t half = 0; half < halves; ++half) {
      Value product =
          multiplyOnce(row.slice((part * halves + half) * ofRow, ofRow),
                       column.slice(part * ofColumn, ofColumn),
                       ValueRange(sum).slice(half * numSums, numSums));
      for (size_t i = 0; i < numSums; ++i)
        sum[half * numSums + i] =
            LLVM::ExtractValueOp::create(b, product, int64_t(i));
    }
  return sum;
}

Values MmaTileEmitter::multiplyFragments(ValueRange fragments,
                                         Values accumulators) {
  int64_t columns = layout.columns.fragments();
  ValueRange ofRows = fragments.take_front(4 * layout.rows.fragments()),
             ofColumns = fragments.drop_front(ofRows.size());
  for (int64_t row = 0; row < layout.rows.fragments(); ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t first = 4 * (row * columns + column);
      Values sum = multiplyFragment(
          ofRows.slice(4 * row, 4), ofColumns.slice(2 * column, 2),
          Values(ValueRange(accumulators).slice(first, 4)));
      llvm::copy(sum, accumulators.begin() + first);
    }
  return accumulators;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

Values MmaTileEmitter::initialAccumulators() {
  Value start = tile.scalarStart(b, accumulatorType);
  if (!start)
    start = arith::ConstantOp::create(b, accumulatorType,
                                      b.getZeroAttr(accumulatorType));
  return Values(layout.accumulators(), start);
}

Values MmaTileEmitter::emitMainLoop() {
  Value lhsShared = sharedPointer(b, tile.sharedMemory, 0);
  Value rhsShared =
      sharedPointer(b, tile.sharedMemory, layout.bytesOf(layout.lhs()));
  auto copyOf = [&](unsigned factor, Value shared) {
    return createFactorCopy(b, tile, factor, layout.tileOf(factor), shared,
                            elementType, layout.threads(),
                            schedule.accessBytes);
  };
  TileCopy lhsCopy = copyOf(0, lhsShared), rhsCopy = copyOf(1, rhsShared);
  isAsynchronous =
      copiesAsynchronously(tile.device, *tile.described, schedule.accessBytes);
  prepareCopies(tile, lhsCopy, rhsCopy, isAsynchronous);

  Value rowsShared = matrixPointer(layout.lhs(), lhsShared, 0),
        columnsShared = matrixPointer(layout.rhs(), rhsShared, 1);
  if (layout.isSwapped())
    std::swap(rowsShared, columnsShared);
  rows.addresses = prepareFragments(
      layout.rows.tile, rowsShared, rowsMatrixRow(math, layout, lane),
      rows.origin, layout.rows.fragments(), kMmaRows);
  columns.addresses = prepareFragments(
      layout.columns.tile, columnsShared, columnsMatrixRow(math, layout, lane),
      columns.origin, ceilDiv(layout.columns.fragments(), 2), 2 * kMmaColumns);

  MainLoop loop{lhsCopy,
                rhsCopy,
                layout.stages,
                layout.bk,
                tile.extents[tile.axes.k],
                isAsynchronous};
  return loop.emit(b, initialAccumulators(),
                   MainLoop::KBlocks{layout.fragmentsOfStep(),
                                     [&](Value stage, int64_t depth) {
                                       return loadFragments(stage, depth);
                                     },
                                     [&](ValueRange fragments, Values sums) {
                                       return multiplyFragments(
                                           fragments, std::move(sums));
                                     }});
}
