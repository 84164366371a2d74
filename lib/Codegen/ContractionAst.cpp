//===- ContractionAst.cpp - Loops of a contraction's block ----------------===//
#include "FTuner/Codegen/ContractionAst.h"
#include "FTuner/Codegen/ContractionModel.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace ftuner;

namespace {
class BlockDescriber {
public:
  BlockDescriber(const Workload &workload, const KernelFamily &family,
                 unsigned part, llvm::ArrayRef<int64_t> shape,
                 const ContractionLoops &loops, ProgramAst &ast)
      : workload(workload), family(family), tile(family.tiles[part]),
        shape(shape), loops(loops), ast(ast), view(workload) {}

  void describe();

private:
  unsigned addGlobal(unsigned operand) {
    return ast.addBuffer(globalBuffer(workload, operand, shape));
  }
  unsigned numberOf(OperandRole role) const {
    return workload.find(role) - workload.operands.data();
  }
  bool isOf(const Operand &operand, unsigned axis) const {
    return llvm::is_contained(operand.axes, axis) ||
           llvm::any_of(operand.windows, [&](const AffineForm &form) {
             return llvm::any_of(form.terms, [&](const AffineForm::Term &term) {
               return term.axis == axis;
             });
           });
  }
  void addSums();
  unsigned addShared(unsigned factor);
  AstAccess addSlices();
  void describeCopy(unsigned factor);
  void describeProducts();
  void describeEpilogue();
  /// Loops over the elements of the output that a block computes.
  llvm::SmallVector<AstLoop, 12> outputLoops() const {
    llvm::SmallVector<AstLoop, 12> all(llvm::ArrayRef<AstLoop>(loops.threads));
    llvm::append_range(all, loops.points);
    llvm::append_range(all, loops.instruction);
    return all;
  }

  const Workload &workload;
  const KernelFamily &family;
  const BlockTile &tile;
  llvm::ArrayRef<int64_t> shape;
  const ContractionLoops &loops;
  ProgramAst &ast;
  ContractionView view;
  unsigned sums = 0, shared[2] = {0, 0};
};
} // namespace

void BlockDescriber::addSums() {
  AstBuffer buffer;
  buffer.name = "sums";
  buffer.memory = AstMemory::Registers;
  buffer.elementBytes = bytesOf(workload.accumulatorType());
  buffer.strides.assign(shape.size(), 0);
  int64_t stride = 1;
  for (unsigned axis = shape.size(); axis-- > 0;)
    if (axis != view.k) {
      buffer.strides[axis] = stride;
      stride *= tile[axis];
    }
  buffer.elements = 1;
  for (const AstLoop &loop :
       llvm::concat<const AstLoop>(loops.points, loops.instruction))
    buffer.elements *= static_cast<double>(loop.length);
  sums = ast.addBuffer(std::move(buffer));
}

unsigned BlockDescriber::addShared(unsigned factor) {
  const ContractionLoops::Copy &copy = loops.copies[factor];
  AstBuffer buffer;
  buffer.name = factor == 0 ? "lhs tile" : "rhs tile";
  buffer.memory = AstMemory::Shared;
  buffer.elementBytes = copy.elementBytes;
  buffer.tile = llvm::SmallVector<int64_t, 5>(tile);
  buffer.strides.assign(shape.size(), 0);
  unsigned inner = copy.tile.reduceContiguous ? view.k : view.space(factor);
  unsigned outer = copy.tile.reduceContiguous ? view.space(factor) : view.k;
  buffer.strides[inner] = 1;
  buffer.strides[outer] = copy.tile.pitch;
  int64_t stride = copy.tile.matrixPitch();
  for (unsigned axis = shape.size(); axis-- > 0;)
    if (view.isBatch(axis) && isOf(view.factor(factor), axis)) {
      buffer.strides[axis] = stride;
      stride *= tile[axis];
    }
  buffer.elements = static_cast<double>(copy.stages * copy.tile.elements());
  return ast.addBuffer(std::move(buffer));
}

/// Of so many threads those that share out a number: as many as divide it, if
/// that leaves few without work.
static int64_t sharedOut(int64_t number, int64_t threads) {
  int64_t most = std::clamp<int64_t>(threads, 1, number);
  for (int64_t some = most; 2 * some > most; --some)
    if (number % some == 0)
      return some;
  return most;
}

void BlockDescriber::describeCopy(unsigned factor) {
  const ContractionLoops::Copy &copy = loops.copies[factor];
  unsigned inner = copy.tile.reduceContiguous ? view.k : view.space(factor);
  unsigned outer = copy.tile.reduceContiguous ? view.space(factor) : view.k;
  // A tile arrives at each block of a cluster, whichever of them has copied it.
  llvm::SmallVector<AstLoop, 6> nest;
  llvm::copy_if(
      loops.threads, std::back_inserter(nest),
      [](const AstLoop &loop) { return loop.binding == LoopBinding::Grid; });
  int64_t rows = copy.tile.outer;
  // Batch axes of which the tile has several elements, as matrices.
  llvm::SmallVector<unsigned, 2> matrices;
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    if (view.isBatch(axis) && tile[axis] > 1 && isOf(view.factor(factor), axis))
      matrices.push_back(axis);
  if (copy.isBulk) {
    for (unsigned axis : matrices)
      nest.push_back({"matrix", tile[axis], LoopBinding::Unrolled, axis, 1});
    nest.push_back({"row", rows, LoopBinding::Vectorized, outer, 1});
    nest.push_back(
        {"element", copy.tile.inner, LoopBinding::Vectorized, inner, 1});
  } else {
    int64_t width = copy.vectorWidth;
    int64_t vectors = ceilDiv(copy.tile.inner, width);
    int64_t threadsAlong = sharedOut(vectors, copy.threads);
    int64_t threadsAcross = sharedOut(rows, copy.threads / threadsAlong);
    // Threads that one matrix leaves have others.
    int64_t left = copy.threads / threadsAlong / threadsAcross;
    for (unsigned axis : matrices) {
      int64_t shared = sharedOut(tile[axis], left);
      left /= shared;
      nest.push_back({"matrix", shared, LoopBinding::Thread, axis, 1});
      nest.push_back({"matrix", ceilDiv(tile[axis], shared),
                      LoopBinding::Unrolled, axis, shared});
    }
    nest.push_back({"thread", threadsAcross, LoopBinding::Thread, outer, 1});
    nest.push_back({"thread", threadsAlong, LoopBinding::Thread, inner, width});
    nest.push_back({"slot", ceilDiv(rows, threadsAcross), LoopBinding::Unrolled,
                    outer, threadsAcross});
    nest.push_back({"slot", ceilDiv(vectors, threadsAlong),
                    LoopBinding::Unrolled, inner, threadsAlong * width});
    nest.push_back({"element", width, LoopBinding::Vectorized, inner, 1});
  }
  ProgramAst::Nest open(ast, nest);
  AstStatement &statement =
      ast.addStatement(factor == 0 ? "copy lhs" : "copy rhs");
  statement.add(view.prologueOperations(factor));
  ElementType type = view.factor(factor).elementType;
  if (type != view.multipliedType())
    statement.add({{OperationKind::Cast, type, view.multipliedType()}});
  unsigned role = numberOf(factor == 0 ? OperandRole::Lhs : OperandRole::Rhs);
  statement.accesses.push_back({addGlobal(role), true, false});
  if (const Computation *prologue = view.prologue(factor))
    for (const Read &read : prologue->reads)
      if (!read.isComputation() && read.number != role)
        statement.accesses.push_back({addGlobal(read.number), true, false});
  statement.accesses.push_back({shared[factor], false, true});
}

void BlockDescriber::describeProducts() {
  llvm::SmallVector<AstLoop, 16> nest(llvm::ArrayRef<AstLoop>(loops.threads));
  llvm::append_range(nest, loops.depth);
  llvm::append_range(nest, loops.points);
  llvm::append_range(nest, loops.instruction);
  llvm::append_range(nest, loops.instructionDepth);
  ProgramAst::Nest open(ast, nest);
  AstStatement &statement = ast.addStatement("multiply");
  statement.add(view.product().operations);
  statement.accesses.push_back({shared[0], true, false});
  statement.accesses.push_back({shared[1], true, false});
  statement.accesses.push_back({sums, true, true});
}

AstAccess BlockDescriber::addSlices() {
  AstBuffer buffer;
  buffer.name = "slices";
  buffer.elementBytes = bytesOf(workload.accumulatorType());
  buffer.strides.assign(shape.size(), 0);
  int64_t stride = 1;
  llvm::SmallVector<unsigned, 4> axes = {view.n, view.m};
  for (unsigned axis = shape.size(); axis-- > 0;)
    if (view.isBatch(axis))
      axes.push_back(axis);
  for (unsigned axis : axes) {
    buffer.strides[axis] = stride;
    stride *= shape[axis];
  }
  buffer.elements =
      static_cast<double>(stride) * static_cast<double>(family.reduceSplit);
  AstAccess access{ast.addBuffer(std::move(buffer)), false, true};
  for (unsigned loop : ast.openLoops())
    if (ast.loops()[loop].binding == LoopBinding::Grid &&
        ast.loops()[loop].axis == view.k)
      access.apart.push_back({loop, stride});
  return access;
}

void BlockDescriber::describeEpilogue() {
  ProgramAst::Nest open(ast, outputLoops());
  unsigned from = sums;
  if (loops.isStaged) {
    AstBuffer staging = ast.buffers()[sums];
    staging.name = "staging tile";
    staging.memory = AstMemory::Shared;
    from = ast.addBuffer(staging);
    AstStatement &stage = ast.addStatement("stage sums");
    stage.accesses.push_back({sums, true, false});
    stage.accesses.push_back({from, false, true});
  }
  AstStatement &store = ast.addStatement("store");
  store.accesses.push_back({from, true, false});
  if (family.reduceSplit > 1) {
    store.accesses.push_back(addSlices());
    return;
  }
  store.add(view.epilogueOperations());
  for (auto [number, operand] : llvm::enumerate(workload.operands))
    if (operand.role == OperandRole::Extra)
      store.accesses.push_back({addGlobal(number), true, false});
  for (auto [number, operand] : llvm::enumerate(workload.operands))
    if (operand.role == OperandRole::Output)
      store.accesses.push_back({addGlobal(number), false, true});
}

void BlockDescriber::describe() {
  addSums();
  {
    ProgramAst::Nest open(ast, outputLoops());
    AstStatement &start = ast.addStatement("initialize");
    // A number is a parameter of the kernel.
    if (const Operand *init = workload.find(OperandRole::Init);
        init && init->rank() > 0)
      start.accesses.push_back(
          {addGlobal(init - workload.operands.data()), true, false});
    start.accesses.push_back({sums, false, true});
  }
  for (unsigned factor : {0, 1})
    shared[factor] = addShared(factor);
  {
    int64_t depth = tile[view.k];
    int64_t extent =
        ceilDiv(ceilDiv(shape[view.k], depth), family.reduceSplit) * depth;
    ProgramAst::Nest steps(ast, {{"step", ceilDiv(extent, depth),
                                  LoopBinding::Serial, view.k, depth, true}});
    describeCopy(0);
    describeCopy(1);
    describeProducts();
  }
  describeEpilogue();
}

void ftuner::describeContractionBlock(const Workload &workload,
                                      const KernelFamily &family, unsigned part,
                                      llvm::ArrayRef<int64_t> shape,
                                      const ContractionLoops &loops,
                                      ProgramAst &ast) {
  BlockDescriber(workload, family, part, shape, loops, ast).describe();
}

void ftuner::addBatchLoops(const Workload &workload, const KernelFamily &family,
                           unsigned part, int64_t groups,
                           ContractionLoops &loops) {
  const BlockTile &tile = family.tiles[part];
  BlockTile along = batchWorkers(family, part, groups);
  ContractionAxes axes = family.contractionAxes();
  for (unsigned axis = 0; axis < tile.size(); ++axis) {
    if (!axes.isBatch(axis) || tile[axis] == 1)
      continue;
    if (along[axis] > 1)
      loops.threads.push_back(
          {"batch", along[axis], LoopBinding::Thread, axis, 1});
    if (int64_t own = tile[axis] / along[axis]; own > 1)
      loops.points.push_back(
          {"batch", own, LoopBinding::Unrolled, axis, along[axis]});
  }
}
