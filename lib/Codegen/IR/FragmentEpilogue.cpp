//===- FragmentEpilogue.cpp - From fragments to the output ----------------===//
//
// Accumulators of a fragment lie in pairs of an instruction's columns: lane l
// has columns 2 · (l mod 4) and the next of rows l / 4 and l / 4 + 8. Stored
// from there, they would fill half a sector or less. So each warp takes 8 or 16
// rows of its tile at a time through a staging tile of shared memory, which no
// other warp touches. Staging tiles hold rows of the output: with swapped
// operands, instructions' columns.
//
// Where bulk copies store, results go to rows of shared memory in place of the
// output, or sums go there at once where nothing but rounding is left to do.
// One lane starts the copy of a row, and waits for it to have read the row
// before the warp lays down the next tile.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/IR/FragmentEpilogue.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/IR/StageBarriers.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

/// Some columns of the warp tile, as a staging tile holds them.
struct FragmentEpilogue::Columns {
  StagingRuns runs;
  /// Index of the first one in the tensor, and in the warp tile.
  Value first, inTile;
  /// What all runs of the lane read for their columns, where these are the
  /// same.
  Values ofLane;
};

bool FragmentEpilogue::isInVectors() const {
  return accessBytes > 1 && tile.hasVectorEpilogue();
}

static constexpr int64_t kAccumulatorBytes = FragmentTile::kAccumulatorBytes;
static constexpr int64_t kRows = FragmentTile::kRows,
                         kColumns = FragmentTile::kColumns;

int64_t FragmentEpilogue::runColumns() const {
  if (!isInVectors())
    return 1;
  // Vectors of all operands that are contiguous along n: the widest of the
  // narrowest elements.
  int64_t leastBytes = 4;
  auto consider = [&](Value operand, AffineMap map) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    // What does not fill its bytes is moved element by element.
    if (!type || map.getNumResults() == 0 || !fillsBytes(type))
      return;
    auto innermost = cast<AffineDimExpr>(map.getResults().back());
    if (innermost.getPosition() == tile.axes.n)
      leastBytes = std::min<int64_t>(leastBytes, elementBytesOf(type));
  };
  consider(tile.output, tile.outputMap);
  if (tile.init && isa<MemRefType>(tile.init.getType()))
    consider(tile.init, tile.initMap);
  for (auto [index, extra] : llvm::enumerate(tile.extras))
    consider(extra, tile.extraMaps[index]);
  return FragmentTile::runColumns(accessBytes, leastBytes);
}

Value FragmentEpilogue::distanceAlongRows(Value row) {
  if (fragments.rowDistance == kRows || fragments.rows == 1)
    return row;
  return math.add(math.mul(math.div(row, kRows), fragments.rowDistance),
                  math.rem(row, kRows));
}

Value FragmentEpilogue::insideColumn(Value column, int64_t width) {
  unsigned n = tile.axes.n;
  if (tile.exact[n])
    return column;
  return math.minimum(column, math.sub(tile.storedColumns(b, width), width));
}

Value FragmentEpilogue::stagingOffset() {
  int64_t stride =
      warp.stagingStride ? warp.stagingStride : fragments.stagingBytes();
  return math.add(math.mul(warp.number, stride), warp.stagingOffset);
}

void FragmentEpilogue::storeToStaging(Value staging, ValueRange accumulators,
                                      int64_t step, int64_t firstFragment,
                                      int64_t numFragments) {
  if (fragments.isSwapped)
    storeTransposed(accumulators, step);
  else
    storeRows(staging, /*firstRow=*/0, accumulators, step, firstFragment,
              numFragments);
}

/// The accumulators of 16 rows of instructions. A lane has two neighbouring
/// columns of each fragment, or four of each two where even columns come first.
void FragmentEpilogue::storeRows(Value memory, int64_t firstRow,
                                 ValueRange accumulators, int64_t step,
                                 int64_t firstFragment, int64_t numFragments) {
  int64_t together = fragments.hasEvenColumnsFirst ? 2 : 1;
  int64_t width = 2 * together;
  Value row = math.div(warp.lane, 4),
        column = math.mul(math.rem(warp.lane, 4), width);
  auto memoryType = cast<MemRefType>(memory.getType());
  auto type = VectorType::get({width}, accumulators.front().getType());
  for (int64_t fragment = 0; fragment < numFragments; fragment += together)
    for (int64_t half = 0; half < 2; ++half) {
      Values held;
      for (int64_t number = 0; number < width; ++number)
        held.push_back(
            accumulators[4 * (step * fragments.columns + firstFragment +
                              fragment + number % together) +
                         2 * half + number / together]);
      Value run = vector::FromElementsOp::create(b, type, held);
      Value stored = rounded(b, b.getLoc(), run, memoryType.getElementType());
      vector::StoreOp::create(
          b, stored, memory,
          ValueRange{math.add(row, firstRow + 8 * half),
                     math.add(column, fragment * kColumns)},
          /*nontemporal=*/false,
          llvm::MaybeAlign(width * elementBytesOf(memoryType)));
    }
}

/// The accumulators of 8 or 16 columns of instructions, as rows: one by one, or
/// two neighbours where even columns come first, at constant distances of the
/// lane's first.
void FragmentEpilogue::storeTransposed(ValueRange accumulators, int64_t step) {
  bool hasPairs = fragments.hasEvenColumnsFirst;
  Value row = math.mul(math.rem(warp.lane, 4), 2);
  Value column = math.mul(math.div(warp.lane, 4), hasPairs ? 2 : 1);
  auto pairType = VectorType::get({2}, accumulators.front().getType());
  Value element = math.add(math.mul(row, fragments.stagingPitch()), column);
  Value first = offsetPointer(
      b, sharedPointer(b, tile.sharedMemory, 0),
      math.add(stagingOffset(), math.mul(element, kAccumulatorBytes)));
  int64_t ofStep = fragments.stagingRows() / kColumns;
  for (int64_t fragment = 0; fragment < ofStep; ++fragment)
    for (int64_t other = 0; other < fragments.rows; ++other)
      for (int64_t number = 0; number < (hasPairs ? 2 : 4); ++number) {
        int64_t held =
            4 * (other * fragments.columns + step * ofStep + fragment) + number;
        int64_t distance =
            (fragment * kColumns + number % 2) * fragments.stagingPitch() +
            other * kRows + number / 2 * 8;
        Value run = accumulators[held];
        if (hasPairs)
          run = vector::FromElementsOp::create(
              b, pairType, ValueRange{run, accumulators[held + 2]});
        LLVM::StoreOp::create(
            b, run, offsetPointer(b, first, distance * kAccumulatorBytes),
            kAccumulatorBytes * (hasPairs ? 2 : 1));
      }
}

/// The barrier of the block is number 0.
static constexpr int32_t kBarrierOfWarps = 1;

void FragmentEpilogue::awaitWarps() {
  if (warp.threads == 0) {
    gpu::BarrierOp::create(b);
    return;
  }
  NVVM::BarrierOp::create(b, TypeRange(), createI32(b, kBarrierOfWarps),
                          createI32(b, warp.threads),
                          NVVM::BarrierReductionAttr(), Value());
}

void FragmentEpilogue::awaitStaging(bool hasAsynchronousCopies) {
  // The staging tiles take the place of stages, which other warps may still
  // read.
  if (hasAsynchronousCopies)
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
  if (storesInBulk())
    awaitBulkCopies(b);
  if (warp.stagingOffset == 0)
    awaitWarps();
  else // Lanes may still read the tile before.
    awaitLanes();
}

void FragmentEpilogue::awaitLanes() {
  NVVM::SyncWarpOp::create(b, createI32(b, -1));
}

void FragmentEpilogue::awaitBulkCopies(ImplicitLocOpBuilder &b) {
  NVVM::CpAsyncBulkWaitGroupOp::create(b, 0, /*read=*/b.getUnitAttr());
}

Value FragmentEpilogue::bulkOffset() {
  return math.add(stagingOffset(), fragments.stagingBytes());
}

Value FragmentEpilogue::bulkRows() {
  auto type = MemRefType::get(
      {fragments.outputRows(), fragments.bulkPitch()},
      cast<MemRefType>(tile.output.getType()).getElementType(),
      MemRefLayoutAttrInterface(),
      cast<MemRefType>(tile.sharedMemory.getType()).getMemorySpace());
  return memref::ViewOp::create(b, type, tile.sharedMemory, bulkOffset(),
                                ValueRange());
}

void FragmentEpilogue::storeInBulk() {
  fenceAsyncProxy(b);
  awaitLanes();
  auto [m, n] = std::pair(tile.axes.m, tile.axes.n);
  int64_t elementBytes = fragments.bulkElementBytes,
          columns = fragments.outputColumns();
  // Columns of the warp's rows that are its own to store.
  Value first = math.add(tile.columnOffset, warp.column), begin = first,
        end = math.add(first, columns);
  if (!tile.exact[n]) {
    end = math.minimum(end, tile.storedColumns(b, FragmentTile::kBulkAlignment /
                                                      elementBytes));
    if (Value least = tile.firstStored[n])
      begin = arith::MaxSIOp::create(b, begin, least);
  }
  Value source = offsetPointer(
      b, sharedPointer(b, tile.sharedMemory, 0),
      math.add(
          bulkOffset(),
          math.mul(b.createOrFold<arith::SubIOp>(begin, first), elementBytes)));
  auto output = memref::ExtractStridedMetadataOp::create(b, tile.output);
  Value target = globalPointer(b, tile.output);
  auto copyRow = [&](Value number, Value index) {
    Value element = math.add(math.mul(index, output.getStrides()[0]), begin);
    NVVM::CpAsyncBulkSharedCTAToGlobalOp::create(
        b, offsetPointer(b, target, math.mul(element, elementBytes)),
        offsetPointer(b, source,
                      math.mul(number, fragments.bulkPitch() * elementBytes)),
        b.createOrFold<arith::IndexCastOp>(
            b.getI32Type(),
            math.mul(b.createOrFold<arith::SubIOp>(end, begin), elementBytes)),
        /*l2CacheHint=*/Value(), /*byteMask=*/Value());
  };
  for (int64_t row = 0; row < fragments.outputRows();
       row += StagingRuns::kLanes) {
    Value number = math.add(warp.lane, row);
    Value index =
        math.add(math.add(tile.rowOffset, warp.row), distanceAlongRows(number));
    Value isCopied;
    auto require = [&](Value condition) {
      isCopied = isCopied
                     ? arith::AndIOp::create(b, isCopied, condition).getResult()
                     : condition;
    };
    if (fragments.outputRows() - row < StagingRuns::kLanes)
      require(
          math.less(warp.lane, math.constant(fragments.outputRows() - row)));
    if (!tile.exact[m]) {
      require(math.less(index, tile.extents[m]));
      if (Value least = tile.firstStored[m])
        require(
            arith::CmpIOp::create(b, arith::CmpIPredicate::sge, index, least));
    }
    if (!tile.exact[n])
      require(math.less(begin, end));
    if (isCopied)
      emitIf(b, isCopied, [&] { copyRow(number, index); });
    else
      copyRow(number, index);
  }
  NVVM::CpAsyncBulkCommitGroupOp::create(b);
}

void FragmentEpilogue::emit(ValueRange accumulators,
                            bool hasAsynchronousCopies) {
  if (storesInBulk())
    results = bulkRows();
  if (fragments.storesSums) {
    awaitStaging(hasAsynchronousCopies);
    for (int64_t step = 0; step < fragments.rows; ++step)
      storeRows(results, step * kRows, accumulators, step, /*firstFragment=*/0,
                fragments.columns);
    return storeInBulk();
  }
  int64_t width = runColumns();
  ContractionEpilogue epilogue(b, tile, isInVectors() ? width : 0);
  // Sums that are rounded first of all are kept as they are then.
  Type sumType = accumulators.front().getType();
  FloatType roundedType = epilogue.roundedSum();
  bool isNarrow =
      roundedType && roundedType.getWidth() == 16 && fragments.canBeNarrow();
  auto stagingType = MemRefType::get(
      {fragments.stagingRows(),
       isNarrow ? fragments.narrowStagingPitch() : fragments.stagingPitch()},
      isNarrow ? roundedType : sumType, MemRefLayoutAttrInterface(),
      cast<MemRefType>(tile.sharedMemory.getType()).getMemorySpace());
  Value staging = memref::ViewOp::create(b, stagingType, tile.sharedMemory,
                                         stagingOffset(), ValueRange());

  Columns first = columnsFrom(math.constant(0), fragmentsOfStaging());
  if (warp.isActive) {
    awaitStaging(hasAsynchronousCopies);
    return emitIf(b, allLanes(warp.isActive), [&] {
      loadOfLane(epilogue, first);
      emitColumns(epilogue, staging, accumulators, first);
    });
  }
  // These are read while the staging tile is awaited and filled.
  loadOfLane(epilogue, first);
  awaitStaging(hasAsynchronousCopies);
  emitColumns(epilogue, staging, accumulators, first);
  if (storesInBulk())
    storeInBulk();
}

/// A vote, so that the assembler knows that the warp's lanes stay together.
Value FragmentEpilogue::allLanes(Value condition) {
  return NVVM::VoteSyncOp::create(b, b.getI1Type(), createI32(b, -1), condition,
                                  NVVM::VoteSyncKind::all);
}

int64_t FragmentEpilogue::fragmentsAlongColumns() const {
  return fragments.isSwapped ? 1 : fragments.columns;
}

int64_t FragmentEpilogue::fragmentsOfStaging() const {
  return fragments.stagingFragments ? fragments.stagingFragments
                                    : fragmentsAlongColumns();
}

FragmentEpilogue::Columns FragmentEpilogue::columnsFrom(Value fragment,
                                                        int64_t count) {
  int64_t columns =
      fragments.isSwapped ? fragments.outputColumns() : count * kColumns;
  return {{fragments.stagingRows(), columns, runColumns()},
          math.add(math.add(tile.columnOffset, warp.column),
                   math.mul(fragment, kColumns)),
          math.mul(fragment, kColumns),
          {}};
}

Value FragmentEpilogue::isInside(ContractionEpilogue &epilogue,
                                 const Columns &first) {
  int64_t ofStaging = fragmentsOfStaging(), all = fragmentsAlongColumns();
  int64_t lastFragment = (ceilDiv(all, ofStaging) - 1) * ofStaging;
  Columns last = columnsFrom(math.constant(lastFragment), all - lastFragment);
  Value zero = math.constant(0);
  return epilogue.areInside(
      {indexOfRow(zero, firstRowOf(zero)), indexOf(first, zero)},
      {indexOfRow(math.constant(fragments.stagingRows() - 1),
                  firstRowOf(math.constant(fragments.fillingsOfColumns() - 1))),
       indexOf(last, math.constant(last.runs.columns - 1))});
}

void FragmentEpilogue::emitColumns(ContractionEpilogue &epilogue, Value staging,
                                   ValueRange accumulators,
                                   const Columns &first) {
  auto emit = [&](Finish finish) {
    emitFillings(epilogue, staging, accumulators, first, finish);
  };
  auto finish = [&](const Columns &columns, Value filling, bool areInside) {
    emitTrips(epilogue, staging, columns, filling, areInside);
  };
  // Runs that are known to be inside are read, computed and stored together,
  // without a branch between them.
  Value inside = isInside(epilogue, first);
  if (!inside)
    return emit([&](const Columns &columns, Value filling) {
      finish(columns, filling, /*areInside=*/true);
    });
  inside = allLanes(inside);
  auto emitEither = [&](llvm::function_ref<void(bool areInside)> body) {
    auto ifOp = scf::IfOp::create(b, inside, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    body(/*areInside=*/true);
    b.setInsertionPointToStart(ifOp.elseBlock());
    body(/*areInside=*/false);
  };
  if (code.hasLoopOfFillings)
    return emit([&](const Columns &columns, Value filling) {
      emitEither([&](bool areInside) { finish(columns, filling, areInside); });
    });
  emitEither([&](bool areInside) {
    emit([&](const Columns &columns, Value filling) {
      finish(columns, filling, areInside);
    });
  });
}

void FragmentEpilogue::forEach(int64_t count,
                               llvm::function_ref<void(Value)> body) {
  if (!code.hasLoopOfFillings || count == 1) {
    for (int64_t number = 0; number < count; ++number)
      body(math.constant(number));
    return;
  }
  scf::ForOp loop =
      createLoop(b, Unrolling::Never, math.constant(count), 1, ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void FragmentEpilogue::emitFillings(ContractionEpilogue &epilogue,
                                    Value staging, ValueRange accumulators,
                                    const Columns &first, Finish finish) {
  int64_t ofStaging = fragmentsOfStaging(), all = fragmentsAlongColumns();
  int64_t ofColumns = fragments.fillingsOfColumns();
  bool isFirst = true;
  // Columns of the warp tile that are number `group` of those that the staging
  // tile holds at once: `count` fragments, as all from `least` to `most` have.
  auto emitGroup = [&](Value group, int64_t least, int64_t most,
                       int64_t count) {
    Columns columns = first;
    if (!isConstantIntValue(group, 0)) {
      columns = columnsFrom(math.mul(group, ofStaging), count);
      loadOfLane(epilogue, columns);
    }
    forEach(ofColumns, [&](Value filling) {
      // Lanes may still read the filling before.
      if (code.hasLoopOfFillings || !isFirst)
        awaitLanes();
      isFirst = false;
      // Sums lie in registers, which have constant numbers.
      Value number = math.add(math.mul(group, ofColumns), filling);
      emitSwitch(number, least * ofColumns, most * ofColumns + ofColumns - 1,
                 [&](int64_t constant) {
                   storeToStaging(staging, accumulators, constant % ofColumns,
                                  constant / ofColumns * ofStaging, count);
                 });
      awaitLanes();
      finish(columns, filling);
    });
  };
  int64_t whole = all / ofStaging;
  forEach(whole,
          [&](Value group) { emitGroup(group, 0, whole - 1, ofStaging); });
  if (int64_t rest = all % ofStaging)
    emitGroup(math.constant(whole), whole, whole, rest);
}

void FragmentEpilogue::emitSwitch(Value number, int64_t least, int64_t most,
                                  llvm::function_ref<void(int64_t)> body) {
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return body(*constant);
  auto cases = llvm::to_vector(llvm::seq(least, most));
  auto switchOp = scf::IndexSwitchOp::create(b, TypeRange(), number, cases,
                                             unsigned(cases.size()));
  auto emitRegion = [&](Region &region, int64_t constant) {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&region);
    body(constant);
    scf::YieldOp::create(b);
    // Tells the regions apart. Else upstream's patterns merge their equal
    // stores, and each turn moves the sums to the registers of one of them.
    for (Operation &op : *block)
      op.setDiscardableAttr("filling", b.getI64IntegerAttr(constant));
  };
  for (auto [constant, region] :
       llvm::zip_equal(cases, switchOp.getCaseRegions()))
    emitRegion(region, constant);
  emitRegion(switchOp.getDefaultRegion(), most);
}

Value FragmentEpilogue::firstRowOf(Value filling) {
  return math.mul(filling, fragments.isSwapped ? fragments.stagingRows()
                                               : fragments.rowDistance);
}

void FragmentEpilogue::loadOfLane(ContractionEpilogue &epilogue,
                                  Columns &columns) {
  if (!columns.runs.haveColumnOfLane())
    return;
  int64_t width = columns.runs.width;
  columns.ofLane = epilogue.loadRowInvariant(
      insideColumn(indexOf(columns, columnOfLane(columns.runs)), width), width);
}

void FragmentEpilogue::emitTrips(ContractionEpilogue &epilogue, Value staging,
                                 const Columns &columns, Value filling,
                                 bool areInside) {
  const StagingRuns &runs = columns.runs;
  auto runAt = [&](Value trip) {
    ContractionEpilogue::Run run = readRun(staging, columns, trip, filling);
    run.rowInvariant =
        runs.haveColumnOfLane()
            ? columns.ofLane
            : epilogue.loadRowInvariant(insideColumn(run.column, runs.width),
                                        runs.width);
    return run;
  };
  auto emitTogether = [&](Value trip, int64_t count) {
    SmallVector<ContractionEpilogue::Run> together;
    SmallVector<ContractionEpilogue::Inputs> inputs;
    for (int64_t number = 0; number < count; ++number) {
      together.push_back(runAt(math.add(trip, number)));
      inputs.push_back(epilogue.loadRun(together.back(), areInside));
    }
    if (!code.computesInLoop || count == 1) {
      for (auto [run, ofRun] : llvm::zip_equal(together, inputs))
        epilogue.storeRun(run, ofRun, areInside);
      return;
    }
    scf::ForOp loop =
        createLoop(b, Unrolling::Never, math.constant(count), 1, ValueRange());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar();
    epilogue.storeRun(runAt(math.add(trip, number)),
                      epilogue.select(inputs, number), areInside);
  };
  // Behind branches only what is read for rows gains by it.
  int64_t together = areInside || epilogue.readsRows() ? code.tripsTogether : 1;
  int64_t whole = runs.wholeTrips(), rest = whole % together;
  if (whole > together) {
    scf::ForOp loop =
        createLoop(b, Unrolling::Never, math.constant(whole - rest), together,
                   ValueRange());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    emitTogether(loop.getInductionVar(), together);
  } else if (whole == together) {
    emitTogether(math.constant(0), whole);
  }
  if (rest > 0)
    emitTogether(math.constant(whole - rest), rest);
  if (int64_t lanes = runs.lanesOfRest())
    emitIf(b, math.less(warp.lane, math.constant(lanes)),
           [&] { emitTogether(math.constant(whole), 1); });
}

ContractionEpilogue::Run FragmentEpilogue::readRun(Value staging,
                                                   const Columns &columns,
                                                   Value trip, Value filling) {
  const StagingRuns &runs = columns.runs;
  Value row, column;
  if (runs.haveColumnOfLane()) {
    row = math.add(math.mul(trip, runs.rowsOfTrip()),
                   math.div(warp.lane, runs.perRow()));
    column = columnOfLane(runs);
  } else {
    Value number = math.add(math.mul(trip, StagingRuns::kLanes), warp.lane);
    row = math.div(number, runs.perRow());
    column = math.mul(math.rem(number, runs.perRow()), runs.width);
  }
  Type element = cast<MemRefType>(staging.getType()).getElementType();
  Value sums =
      vector::LoadOp::create(b, VectorType::get({runs.width}, element), staging,
                             ValueRange{row, column},
                             /*nontemporal=*/false,
                             llvm::MaybeAlign(std::min<int64_t>(
                                 runs.width * elementBytesOf(element), 16)));
  ContractionEpilogue::Run run;
  run.accumulator = promoted(b, b.getLoc(), sums);
  run.column = indexOf(columns, column);
  run.index = indexOfRow(row, firstRowOf(filling));
  if (storesInBulk()) {
    run.results = results;
    run.inResults = {math.add(row, math.mul(filling, fragments.stagingRows())),
                     math.add(columns.inTile, column)};
  }
  return run;
}

Value FragmentEpilogue::indexOfRow(Value inStaging, Value firstRow) {
  return math.add(math.add(tile.rowOffset, warp.row),
                  math.add(fragments.stagingRow(math, inStaging), firstRow));
}

Value FragmentEpilogue::columnOfLane(const StagingRuns &runs) {
  return math.mul(math.rem(warp.lane, runs.perRow()), runs.width);
}

Value FragmentEpilogue::indexOf(const Columns &columns, Value inStaging) {
  if (fragments.isSwapped)
    inStaging = distanceAlongRows(inStaging);
  return math.add(columns.first, inStaging);
}
