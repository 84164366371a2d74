//===- RowsEmitter.cpp - Warps that reduce rows ---------------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Schedule/Grid.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// A region of scalars some of whose arguments are the same for a whole row:
/// what depends on these alone is computed once, where the object is made.
class RowBody {
public:
  /// `known`: a value for each argument, null where elements differ.
  /// `position`: of the row, by axis.
  RowBody(ImplicitLocOpBuilder &b, Region &region, ValueRange known,
          ValueRange position)
      : b(b), body(region.front()) {
    for (auto [argument, value] : llvm::zip_equal(body.getArguments(), known))
      if (value)
        invariants.map(argument, value);
    for (Operation &op : body.without_terminator()) {
      if (auto index = dyn_cast<ukernel::IndexOp>(op))
        if (Value known = position[index.getAxis()]) {
          invariants.map(index.getResult(), known);
          continue;
        }
      bool isInvariant = op.getNumRegions() == 0 && isPure(&op) &&
                         !isa<ukernel::IndexOp>(op) &&
                         llvm::all_of(op.getOperands(), [&](Value operand) {
                           return invariants.contains(operand);
                         });
      if (isInvariant)
        clonePromoted(b, op, invariants);
      else
        rest.push_back(&op);
    }
  }

  /// Whether it may be computed of any elements, such as the zeros beyond the
  /// end of a row.
  bool isSpeculatable() const {
    return llvm::all_of(rest, [](Operation *op) { return isPure(op); });
  }
  /// What the region yields of one element: `arguments` are those that were not
  /// known, in their order; `element`: its number in the row.
  Values apply(ValueRange arguments, Value element) const {
    IRMapping mapping = invariants;
    auto next = arguments.begin();
    for (BlockArgument argument : body.getArguments())
      if (!mapping.contains(argument))
        mapping.map(argument, *next++);
    for (Operation *op : rest) {
      if (auto index = dyn_cast<ukernel::IndexOp>(op))
        mapping.map(index.getResult(), element);
      else
        clonePromoted(b, *op, mapping);
    }
    return llvm::map_to_vector(
        body.getTerminator()->getOperands(), [&](Value value) {
          return rounded(b, b.getLoc(), mapping.lookupOrDefault(value),
                         value.getType());
        });
  }

private:
  ImplicitLocOpBuilder &b;
  Block &body;
  IRMapping invariants;
  SmallVector<Operation *> rest;
};

class RowsEmitter {
public:
  RowsEmitter(ImplicitLocOpBuilder &b, const TileEmission &tile,
              ukernel::RowReductionOp op)
      : b(b), math(b), tile(tile), op(op), workload(*tile.described),
        schedule(RowsSchedule::of(tile.family.schedule)),
        layout(workload, tile.blockTile(), schedule), grid(gridOf(tile.family)),
        numInputs(op.getInputs().size()) {}
  void emit();

private:
  /// Some neighbouring elements of the row, in an access.
  struct Access {
    /// Of the first element.
    Value index;
    /// Whether it lies in the tensors; null if it does. Accesses do not reach
    /// beyond the end of a row that they begin in.
    Value isInside;
    /// Of each input along the row, a vector of its elements; null for others.
    Values inputs;
  };

  bool isAlongRow(unsigned number) {
    return llvm::is_contained(workload.operands[number].axes, layout.rowAxis);
  }
  Values indicesOf(unsigned number, Value element);
  Value loadVector(unsigned input, VectorType type, Value index);
  void storeVector(unsigned output, const Values &elements, Value index);
  /// The access of that number in a chunk, which begins at `chunk`. `isWhole`:
  /// the chunk is known to lie inside of the row.
  Access loadAccess(Value chunk, int64_t number, bool isWhole);
  /// The elements of the inputs of one element of an access.
  Values elementOf(const Access &access, int64_t element);
  /// The region's arguments that are the same for the whole row.
  Values knownOf(size_t numArguments);
  Value neutralOf(unsigned reduction);
  Value combine(unsigned reduction, Value lhs, Value rhs);
  Value reduceAccess(const RowBody &body, const Access &access, Value last);
  /// Visits the row's accesses of this thread: those in registers, then those
  /// that are read once more, in a loop with this state.
  Values forEachAccess(Values state,
                       llvm::function_ref<Values(const Access &, Values)> body);
  Value mergeLanes(unsigned reduction, Value value);
  Value mergeWarps(unsigned reduction, Value value);
  void emitReduction(unsigned reduction);
  void storeValues();
  void mapAccess(const RowBody &body, const Access &access);

  ImplicitLocOpBuilder &b;
  IndexMath math;
  const TileEmission &tile;
  ukernel::RowReductionOp op;
  const Workload &workload;
  RowsSchedule schedule;
  RowsLayout layout;
  Grid grid;
  unsigned numInputs;
  /// Of the thread: its row in the block, its number in the row.
  Value blockRow, lane;
  /// By axis; null for batch axes and along the row.
  Values position;
  /// Whether the thread has a row; null if all have.
  Value hasRow;
  /// Of each input that does not lie along the row, its element.
  Values ofRow;
  SmallVector<Access> held;
  Values results;
};

Values RowsEmitter::indicesOf(unsigned number, Value element) {
  Values indices;
  const Operand &operand = workload.operands[number];
  for (unsigned axis : operand.axes) {
    if (axis == layout.rowAxis)
      indices.push_back(element);
    else if (!grid.batchNumber(axis))
      indices.push_back(position[axis]);
  }
  return indices;
}

/// Booleans are bytes in memory, which vectors of them are not.
Value RowsEmitter::loadVector(unsigned input, VectorType type, Value index) {
  Value operand = tile.operands[input];
  if (fillsBytes(type))
    return vector::LoadOp::create(
        b, type, operand, indicesOf(input, index), /*nontemporal=*/false,
        llvm::MaybeAlign(layout.vector * elementBytesOf(type)));
  Values elements;
  for (int64_t element = 0; element < layout.vector; ++element)
    elements.push_back(memref::LoadOp::create(
        b, operand, indicesOf(input, math.add(index, element))));
  return vector::FromElementsOp::create(b, type, elements);
}

void RowsEmitter::storeVector(unsigned output, const Values &elements,
                              Value index) {
  Value operand = tile.operands[output];
  auto type = VectorType::get({layout.vector}, elements.front().getType());
  if (fillsBytes(type)) {
    Value vector = vector::FromElementsOp::create(b, type, elements);
    vector::StoreOp::create(
        b, vector, operand, indicesOf(output, index), /*nontemporal=*/false,
        llvm::MaybeAlign(layout.vector * elementBytesOf(type)));
    return;
  }
  for (auto [number, element] : llvm::enumerate(elements))
    memref::StoreOp::create(
        b, element, operand,
        indicesOf(output, math.add(index, static_cast<int64_t>(number))));
}

RowsEmitter::Access RowsEmitter::loadAccess(Value chunk, int64_t number,
                                            bool isWhole) {
  Access access;
  int64_t lanes = schedule.lanes();
  access.index = math.add(math.add(chunk, number * lanes * layout.vector),
                          math.mul(lane, layout.vector));
  access.isInside = hasRow;
  if (!isWhole) {
    Value isInRow = math.less(access.index, tile.extents[layout.rowAxis]);
    access.isInside =
        hasRow ? arith::AndIOp::create(b, hasRow, isInRow) : isInRow;
  }
  SmallVector<unsigned> numbers;
  SmallVector<Type> types;
  for (unsigned input = 0; input < numInputs; ++input) {
    if (!isAlongRow(input))
      continue;
    numbers.push_back(input);
    types.push_back(VectorType::get(
        {layout.vector}, getElementTypeOrSelf(tile.operands[input].getType())));
  }
  auto load = [&] {
    Values loaded;
    for (auto [input, type] : llvm::zip_equal(numbers, types))
      loaded.push_back(loadVector(input, cast<VectorType>(type), access.index));
    return loaded;
  };
  Values loaded;
  if (access.isInside && !numbers.empty()) {
    auto ifOp = scf::IfOp::create(b, types, access.isInside,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(b, load());
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, llvm::map_to_vector(types, [&](Type type) -> Value {
                           return arith::ConstantOp::create(
                               b, cast<TypedAttr>(b.getZeroAttr(type)));
                         }));
    loaded.assign(ifOp.result_begin(), ifOp.result_end());
  } else {
    loaded = load();
  }
  access.inputs.assign(numInputs, Value());
  for (auto [input, vector] : llvm::zip_equal(numbers, loaded))
    access.inputs[input] = vector;
  return access;
}

Values RowsEmitter::elementOf(const Access &access, int64_t element) {
  Values elements;
  for (Value vector : access.inputs)
    if (vector)
      elements.push_back(vector::ExtractOp::create(b, vector, element));
  return elements;
}

Values RowsEmitter::knownOf(size_t numArguments) {
  Values known = ofRow;
  llvm::append_range(known, results);
  known.resize(numArguments);
  return known;
}

Value RowsEmitter::neutralOf(unsigned reduction) {
  return arith::ConstantOp::create(
      b, *arith::getNeutralElement(op.getCombiningOp(reduction)));
}

Value RowsEmitter::combine(unsigned reduction, Value lhs, Value rhs) {
  Operation *combined = b.clone(*op.getCombiningOp(reduction));
  combined->setOperands({lhs, rhs});
  return combined->getResult(0);
}

Value RowsEmitter::reduceAccess(const RowBody &body, const Access &access,
                                Value last) {
  auto compute = [&] {
    Value next = last;
    for (int64_t element = 0; element < layout.vector; ++element) {
      Values arguments = elementOf(access, element);
      arguments.push_back(next);
      next = body.apply(arguments, math.add(access.index, element)).front();
    }
    return next;
  };
  if (!access.isInside)
    return compute();
  if (body.isSpeculatable())
    return arith::SelectOp::create(b, access.isInside, compute(), last);
  auto ifOp = scf::IfOp::create(b, last.getType(), access.isInside,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, compute());
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, last);
  return ifOp.getResult(0);
}

Values RowsEmitter::forEachAccess(
    Values state, llvm::function_ref<Values(const Access &, Values)> body) {
  for (const Access &access : held)
    state = body(access, std::move(state));
  Value first = math.constant(schedule.heldChunks * layout.chunk);
  auto loop = scf::ForOp::create(b, first, tile.extents[layout.rowAxis],
                                 math.constant(layout.chunk), state);
  OpBuilder::InsertionGuard guard(b);
  if (state.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(loop.getBody());
  Values inner(loop.getRegionIterArgs());
  for (int64_t number = 0; number < layout.accesses(); ++number)
    inner = body(loadAccess(loop.getInductionVar(), number,
                            /*isWhole=*/tile.exact[layout.rowAxis]),
                 std::move(inner));
  if (!state.empty())
    scf::YieldOp::create(b, inner);
  return Values(loop.getResults());
}

/// Operations that update accumulators commute, so all lanes get the same bits.
Value RowsEmitter::mergeLanes(unsigned reduction, Value value) {
  for (int64_t distance = RowsSchedule::warpSize / 2; distance > 0;
       distance /= 2)
    value = combine(reduction, value, shuffleXor(b, value, distance));
  return value;
}

Value RowsEmitter::mergeWarps(unsigned reduction, Value value) {
  if (schedule.warps == 1)
    return value;
  // Each reduction has its own numbers, one of each warp of each row, so no
  // barrier need keep one from overwriting what is read for another.
  int64_t numWarps = schedule.blockRows * schedule.warps;
  auto workgroup =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({numWarps}, value.getType(),
                              MemRefLayoutAttrInterface(), workgroup);
  Value numbers = memref::ViewOp::create(
      b, type, tile.sharedMemory, math.constant(4 * numWarps * reduction),
      ValueRange());
  Value first = math.mul(blockRow, schedule.warps);
  Value isFirstLane = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, math.rem(lane, RowsSchedule::warpSize),
      math.constant(0));
  auto ifOp = scf::IfOp::create(b, isFirstLane, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    memref::StoreOp::create(
        b, value, numbers,
        math.add(first, math.div(lane, RowsSchedule::warpSize)));
  }
  gpu::BarrierOp::create(b);
  Value merged;
  for (int64_t warp = 0; warp < schedule.warps; ++warp) {
    Value other = memref::LoadOp::create(b, numbers, math.add(first, warp));
    merged = merged ? combine(reduction, merged, other) : other;
  }
  return merged;
}

void RowsEmitter::emitReduction(unsigned reduction) {
  Region &region = op.getReductions()[reduction];
  Values known = knownOf(region.getNumArguments());
  known.back() = Value();
  RowBody body(b, region, known, position);
  Values state = forEachAccess(
      {neutralOf(reduction)}, [&](const Access &access, Values last) {
        return Values{reduceAccess(body, access, last.front())};
      });
  results.push_back(
      mergeWarps(reduction, mergeLanes(reduction, state.front())));
}

void RowsEmitter::storeValues() {
  SmallVector<unsigned, 2> outputs = op.getOutputNumbers(/*alongRow=*/false);
  if (outputs.empty())
    return;
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                                        math.constant(0));
  if (hasRow)
    isFirst = arith::AndIOp::create(b, hasRow, isFirst);
  auto ifOp = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  Values known;
  for (Value value : ofRow)
    if (value)
      known.push_back(value);
  llvm::append_range(known, results);
  Values values =
      RowBody(b, op.getValues(), known, position).apply({}, Value());
  for (auto [number, value] : llvm::zip_equal(outputs, values))
    memref::StoreOp::create(b, value, tile.operands[number],
                            indicesOf(number, Value()));
}

void RowsEmitter::mapAccess(const RowBody &body, const Access &access) {
  SmallVector<unsigned, 2> outputs = op.getOutputNumbers(/*alongRow=*/true);
  SmallVector<Values> columns(outputs.size());
  OpBuilder::InsertionGuard guard(b);
  if (access.isInside) {
    auto ifOp = scf::IfOp::create(b, access.isInside, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifOp.thenBlock());
  }
  for (int64_t element = 0; element < layout.vector; ++element)
    for (auto [column, value] :
         llvm::zip_equal(columns, body.apply(elementOf(access, element),
                                             math.add(access.index, element))))
      column.push_back(value);
  for (auto [number, column] : llvm::zip_equal(outputs, columns))
    storeVector(number, column, access.index);
}

void RowsEmitter::emit() {
  blockRow = math.div(tile.threadId, schedule.lanes());
  lane = math.rem(tile.threadId, schedule.lanes());
  position.assign(workload.axes.size(), Value());
  unsigned rows = grid.rowAxis();
  position[rows] = math.add(tile.rowOffset, blockRow);
  if (std::optional<unsigned> columns = grid.columnAxis())
    position[*columns] = tile.columnOffset;
  if (!tile.exact[rows])
    hasRow = math.less(position[rows], tile.extents[rows]);

  // A thread without a row reads another's.
  if (hasRow) {
    Value last = math.sub(tile.extents[rows], 1);
    Value own = position[rows];
    position[rows] = math.minimum(own, last);
  }
  ofRow.assign(numInputs, Value());
  for (unsigned input = 0; input < numInputs; ++input) {
    if (isAlongRow(input))
      continue;
    Value operand = tile.operands[input];
    ofRow[input] =
        isa<MemRefType>(operand.getType())
            ? memref::LoadOp::create(b, operand, indicesOf(input, Value()))
                  .getResult()
            : operand;
  }
  // Rows may end before a chunk that is held.
  int64_t length =
      ukernel::OperatorOpInterface(op).getStaticExtents()[layout.rowAxis];
  for (int64_t chunk = 0; chunk < schedule.heldChunks; ++chunk) {
    bool isWhole =
        !ShapedType::isDynamic(length) && (chunk + 1) * layout.chunk <= length;
    for (int64_t number = 0; number < layout.accesses(); ++number)
      held.push_back(
          loadAccess(math.constant(chunk * layout.chunk), number, isWhole));
  }

  for (unsigned reduction = 0; reduction < op.getReductions().size();
       ++reduction)
    emitReduction(reduction);
  storeValues();
  if (op.getOutputNumbers(/*alongRow=*/true).empty())
    return;
  RowBody body(b, op.getMap(), knownOf(op.getMap().getNumArguments()),
               position);
  forEachAccess({}, [&](const Access &access, const Values &) {
    mapAccess(body, access);
    return Values();
  });
}

class RowsPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return rowsModel(); }

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
    auto op = dyn_cast<ukernel::RowReductionOp>(*tile.op);
    if (!op)
      return tile.op->emitOpError(
          "expected a 'ukernel.row_reduction' for this path");
    RowsEmitter(builder, tile, op).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
struct RowsAttr {
  static constexpr llvm::StringLiteral name = "ukernel.rows";
  static const CodegenModel &model() { return rowsModel(); }
};

void rowsRegister(DialectRegistry &registry) {
  registerSchedule<RowsAttr>(registry);
}

const CodegenPath &rowsPath() {
  static const RowsPath path;
  return path;
}
} // namespace ftuner
