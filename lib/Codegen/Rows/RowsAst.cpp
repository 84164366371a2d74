//===- RowsAst.cpp - Loops of a block of rows -----------------------------===//
#include "RowsAst.h"

#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

namespace {
class RowsDescriber {
public:
  RowsDescriber(const Workload &workload, const RowsLayout &layout,
                llvm::ArrayRef<int64_t> shape, int64_t launch, ProgramAst &ast)
      : workload(workload), layout(layout), schedule(layout.schedule),
        shape(shape), launch(launch), ast(ast), rows(workload),
        isHeld(layout.slices == 1 &&
               shape[layout.rowAxis] <= layout.heldElements()) {}

  void describe();

private:
  bool isAlongRow(const Computation &computation) const {
    return computation.axes.contains(layout.rowAxis);
  }
  /// The loops over a row's elements that a thread has, and of accesses.
  llvm::SmallVector<AstLoop, 6> elementLoops() const;
  llvm::SmallVector<AstLoop, 2> rowLoops() const;
  /// Over the rows that a lane has side by side.
  llvm::SmallVector<AstLoop, 1> laneRowLoop() const;
  /// Of the threads that share a row.
  llvm::SmallVector<AstLoop, 2> threadLoops() const;
  unsigned addGlobal(unsigned operand) {
    return ast.addBuffer(globalBuffer(workload, operand, shape));
  }
  unsigned addRegisters(llvm::StringRef name, ElementType type, bool isRow);
  void collect(unsigned computation, llvm::SmallVectorImpl<unsigned> &used,
               llvm::SmallVectorImpl<unsigned> &operands) const;
  void addReads(AstStatement &statement, llvm::ArrayRef<unsigned> operands);
  /// Adds a computation of each element, with those that it reads, to the open
  /// loops.
  AstStatement &addElementwise(std::string name, unsigned computation);
  void describeLoads();
  void describePass(unsigned computation);
  void describeReduction(unsigned computation);
  /// What slices have left of a reduction, one number of each row.
  unsigned addSlices(const Computation &reduction);
  void describeSlice(unsigned computation, unsigned from);
  void describeMerge(unsigned computation);
  void describeRowComputation(unsigned computation);

  const Workload &workload;
  const RowsLayout &layout;
  const RowsSchedule &schedule;
  llvm::ArrayRef<int64_t> shape;
  int64_t launch;
  ProgramAst &ast;
  RowReductionView rows;
  bool isHeld;
  /// What a thread holds of its row, of each operand: the number of a buffer.
  llvm::SmallVector<std::pair<unsigned, unsigned>, 4> held;
};
} // namespace

llvm::SmallVector<AstLoop, 2> RowsDescriber::rowLoops() const {
  unsigned blockAxis = layout.blockAxis(rows);
  int64_t atOnce = schedule.rowsAtOnce();
  llvm::SmallVector<AstLoop, 2> loops;
  if (schedule.rowLoop > 1)
    loops.push_back(
        {"row", schedule.rowLoop, LoopBinding::Serial, blockAxis, atOnce});
  loops.push_back({"row", atOnce / schedule.laneRows, LoopBinding::Thread,
                   blockAxis, schedule.laneRows});
  return loops;
}

llvm::SmallVector<AstLoop, 2> RowsDescriber::threadLoops() const {
  unsigned rowAxis = layout.rowAxis;
  llvm::SmallVector<AstLoop, 2> loops;
  if (schedule.warps > 1)
    loops.push_back(
        {"warp", schedule.warps, LoopBinding::Thread, rowAxis,
         layout.isAcross() ? 1 : RowsLayout::numPlaces * layout.unit,
         /*isReduction=*/true});
  if (schedule.lanes > 1)
    loops.push_back({"lane", schedule.lanes, LoopBinding::Thread, rowAxis,
                     layout.unit, /*isReduction=*/true});
  return loops;
}

llvm::SmallVector<AstLoop, 6> RowsDescriber::elementLoops() const {
  unsigned rowAxis = layout.rowAxis;
  int64_t round = layout.round();
  int64_t length = ceilDiv(shape[rowAxis], layout.slices);
  llvm::SmallVector<AstLoop, 6> loops;
  loops.push_back({"round", ceilDiv(length, round),
                   isHeld ? LoopBinding::Unrolled : LoopBinding::Serial,
                   rowAxis, round, /*isReduction=*/true});
  if (int64_t units = layout.roundUnits(); units > 1)
    loops.push_back(
        {"unit", units, LoopBinding::Unrolled, rowAxis,
         layout.isAcross() ? schedule.warps : schedule.lanes * layout.unit,
         /*isReduction=*/true});
  if (layout.isAcross()) {
    if (schedule.laneRows > 1)
      loops.push_back({"element", schedule.laneRows, LoopBinding::Vectorized,
                       layout.laneAxis, 1});
    return loops;
  }
  if (int64_t accesses = layout.accesses(); accesses > 1)
    loops.push_back({"access", accesses, LoopBinding::Unrolled, rowAxis,
                     layout.vector, /*isReduction=*/true});
  if (layout.vector > 1)
    loops.push_back({"element", layout.vector, LoopBinding::Vectorized, rowAxis,
                     1, /*isReduction=*/true});
  return loops;
}

unsigned RowsDescriber::addRegisters(llvm::StringRef name, ElementType type,
                                     bool isRow) {
  AstBuffer buffer;
  buffer.name = name.str();
  buffer.memory = AstMemory::Registers;
  buffer.elementBytes = bytesOf(type);
  buffer.strides.assign(shape.size(), 0);
  buffer.strides[layout.blockAxis(rows)] = isRow ? shape[layout.rowAxis] : 1;
  if (isRow)
    buffer.strides[layout.rowAxis] = 1;
  buffer.elements = static_cast<double>(schedule.laneRows);
  if (isRow)
    for (const AstLoop &loop : elementLoops())
      buffer.elements *= static_cast<double>(loop.length);
  return ast.addBuffer(std::move(buffer));
}

/// The elementwise computations along the row that one reads, itself included,
/// and the operands that these read.
void RowsDescriber::collect(unsigned number,
                            llvm::SmallVectorImpl<unsigned> &used,
                            llvm::SmallVectorImpl<unsigned> &operands) const {
  if (llvm::is_contained(used, number))
    return;
  used.push_back(number);
  for (const Read &read : workload.computations[number].reads) {
    if (!read.isComputation()) {
      if (!llvm::is_contained(operands, read.number))
        operands.push_back(read.number);
      continue;
    }
    const Computation &other = workload.computations[read.number];
    if (isAlongRow(other) && !other.isReduction())
      collect(read.number, used, operands);
  }
}

void RowsDescriber::addReads(AstStatement &statement,
                             llvm::ArrayRef<unsigned> operands) {
  for (unsigned operand : operands) {
    auto it = llvm::find_if(
        held, [&](const auto &pair) { return pair.first == operand; });
    unsigned buffer = it == held.end() ? addGlobal(operand) : it->second;
    statement.accesses.push_back({buffer, true, false});
  }
}

void RowsDescriber::describeLoads() {
  ProgramAst::Nest threads(ast, threadLoops());
  ProgramAst::Nest elements(ast, elementLoops());
  for (auto [number, operand] : llvm::enumerate(workload.operands)) {
    if (!isInput(operand.role) || !rows.isAlong(operand))
      continue;
    unsigned buffer = addRegisters("row", operand.elementType, /*isRow=*/true);
    AstStatement &load = ast.addStatement("load");
    load.accesses.push_back({addGlobal(number), true, false});
    load.accesses.push_back({buffer, false, true});
    held.push_back({number, buffer});
  }
}

AstStatement &RowsDescriber::addElementwise(std::string name, unsigned number) {
  llvm::SmallVector<unsigned, 4> used, operands;
  collect(number, used, operands);
  AstStatement &statement = ast.addStatement(std::move(name));
  for (unsigned computation : used)
    statement.add(workload.computations[computation].operations);
  addReads(statement, operands);
  return statement;
}

void RowsDescriber::describeReduction(unsigned number) {
  const Computation &reduction = workload.computations[number];
  const State &state = *reduction.state;
  unsigned buffer =
      addRegisters(reduction.name, state.accumulators.front().type,
                   /*isRow=*/false);
  {
    ProgramAst::Nest threads(ast, threadLoops());
    {
      ProgramAst::Nest elements(ast, elementLoops());
      AstStatement &reduce = addElementwise("reduce " + reduction.name, number);
      reduce.accesses.push_back({buffer, true, true});
    }
    // Trees over the places of a chunk and over slots, once a row, by all
    // lanes.
    AstStatement &join = ast.addStatement("join " + reduction.name);
    double rounds = 2 * llvm::Log2_64(layout.slots());
    join.add(state.operationsOfMerge(), rounds);
    join.add(state.finalize);
    join.accesses.push_back({buffer, true, true});
    if (schedule.warps > 1) {
      AstBuffer exchange = ast.buffers()[buffer];
      exchange.name = "exchange";
      exchange.memory = AstMemory::Shared;
      exchange.elements = static_cast<double>(layout.exchangeBytes()) /
                          static_cast<double>(layout.accumulatorBytes);
      join.accesses.push_back({ast.addBuffer(exchange), true, true});
    }
  }
  if (layout.slices > 1)
    describeSlice(number, buffer);
}

llvm::SmallVector<AstLoop, 1> RowsDescriber::laneRowLoop() const {
  if (schedule.laneRows == 1)
    return {};
  return {{"element", schedule.laneRows, LoopBinding::Vectorized,
           layout.laneAxis, 1}};
}

void RowsDescriber::describeSlice(unsigned number, unsigned from) {
  const Computation &reduction = workload.computations[number];
  ProgramAst::Nest laneRows(ast, laneRowLoop());
  // One number of each of its slots in each of its segments, or of the slice.
  int64_t numbers = layout.numStates() / layout.slices;
  llvm::SmallVector<AstLoop, 1> slots;
  if (numbers > 1)
    slots.push_back({"slot", numbers, LoopBinding::Unrolled, std::nullopt, 1,
                     /*isReduction=*/true});
  ProgramAst::Nest ofSlots(ast, slots);
  AstStatement &leave = ast.addStatement("leave " + reduction.name);
  leave.accesses.push_back({from, true, false});
  AstAccess access{addSlices(reduction), false, true};
  for (unsigned loop : ast.openLoops())
    if (ast.loops()[loop].binding == LoopBinding::Grid &&
        ast.loops()[loop].isReduction)
      access.apart.push_back({loop, numbers});
  if (numbers > 1)
    access.apart.push_back({ast.openLoops().back(), 1});
  leave.accesses.push_back(std::move(access));
}

void RowsDescriber::describeRowComputation(unsigned number) {
  const Computation &computation = workload.computations[number];
  // One lane does, of each of the rows that it has.
  ProgramAst::Nest laneRows(ast, laneRowLoop());
  AstStatement &statement = ast.addStatement("finish " + computation.name);
  statement.add(computation.operations);
  for (const Read &read : computation.reads)
    if (!read.isComputation())
      statement.accesses.push_back({addGlobal(read.number), true, false});
  for (unsigned operand : computation.writes)
    statement.accesses.push_back({addGlobal(operand), false, true});
}

void RowsDescriber::describePass(unsigned number) {
  const Computation &computation = workload.computations[number];
  ProgramAst::Nest threads(ast, threadLoops());
  ProgramAst::Nest elements(ast, elementLoops());
  AstStatement &store = addElementwise("store " + computation.name, number);
  for (unsigned operand : computation.writes)
    store.accesses.push_back({addGlobal(operand), false, true});
}

unsigned RowsDescriber::addSlices(const Computation &reduction) {
  AstBuffer buffer;
  buffer.name = reduction.name + " of slices";
  buffer.elementBytes = bytesOf(reduction.state->accumulators.front().type);
  // Of a row, its slices lie beside each other.
  buffer.strides.assign(shape.size(), 0);
  buffer.strides[layout.blockAxis(rows)] = layout.numStates();
  buffer.elements = static_cast<double>(shape[layout.blockAxis(rows)]) *
                    static_cast<double>(layout.numStates());
  return ast.addBuffer(std::move(buffer));
}

void RowsDescriber::describeMerge(unsigned number) {
  const Computation &reduction = workload.computations[number];
  const State &state = *reduction.state;
  unsigned from = addSlices(reduction);
  unsigned into = addRegisters(reduction.name, state.accumulators.front().type,
                               /*isRow=*/false);
  ProgramAst::Nest laneRows(ast, laneRowLoop());
  ProgramAst::Nest slices(ast,
                          {{"slice", layout.numStates(), LoopBinding::Unrolled,
                            std::nullopt, 1, /*isReduction=*/true}});
  AstStatement &merge = ast.addStatement("merge " + reduction.name);
  merge.add(state.operationsOfMerge());
  AstAccess access{from, true, false};
  access.apart.push_back({ast.openLoops().back(), 1});
  merge.accesses.push_back(std::move(access));
  merge.accesses.push_back({into, true, true});
}

void RowsDescriber::describe() {
  ProgramAst::Nest eachRow(ast, rowLoops());
  if (isHeld)
    describeLoads();
  llvm::SmallVector<int64_t> phases = rows.phases();
  bool isLast = layout.slices == 1 || launch == rows.numPhases();
  for (unsigned number = 0; number < workload.computations.size(); ++number) {
    const Computation &computation = workload.computations[number];
    if (computation.isReduction() && layout.slices > 1) {
      if (phases[number] <= launch)
        describeMerge(number);
      else if (phases[number] == launch + 1)
        describeReduction(number);
    } else if (computation.isReduction())
      describeReduction(number);
    else if (!isLast)
      continue;
    else if (!isAlongRow(computation))
      describeRowComputation(number);
    else if (!computation.writes.empty())
      describePass(number);
  }
}

void ftuner::describeRowsBlock(const Workload &workload,
                               const RowsLayout &layout,
                               llvm::ArrayRef<int64_t> shape, int64_t launch,
                               ProgramAst &ast) {
  RowsDescriber(workload, layout, shape, launch, ast).describe();
}
