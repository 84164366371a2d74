//===- ChainsEmitter.cpp - Threads with vectors of points --------------===//
#include "FTuner/Codegen/Chains/ChainsSchedule.h"
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Dialect/UKernel/Utils/Strides.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// An operand, as elements behind an address.
struct Source {
  /// The buffer from its first element on, in one dimension; null for a scalar.
  /// Booleans are bytes.
  Value elements;
  /// The value of a scalar, which all points share.
  Value scalar;
  PointAccess access = PointAccess::Scalar;
  bool isVector = false;
  /// Distance of the first point's element.
  Value first;
  /// Distance of elements from one point to the next by their number, and along
  /// each loop; null for 0.
  Value pointStride;
  SmallVector<Value> strides;

  bool needsLoops() const {
    return llvm::any_of(strides, [](Value stride) { return stride; });
  }
};

/// The position of a point: its number and, where some operand needs them, its
/// positions in the loops.
struct Point {
  Value number;
  SmallVector<Value> loops;
};

/// Elements of an operand at the points of a vector: a vector, or one value for
/// each point.
using Elements = SmallVector<Value, 8>;

/// Emits one tile of a kernel.
class ChainsEmitter {
public:
  ChainsEmitter(ImplicitLocOpBuilder &b, const TileEmission &tile,
                ukernel::PointwiseOp op)
      : b(b), math(b), tile(tile), op(op), workload(*tile.described),
        points(workload),
        layout(workload, ChainsSchedule::of(tile.family.schedule)),
        numInputs(op.getInputs().size()), end(tile.extents[0]) {}
  void emit();

private:
  // Operands and loops.
  void addStride(Value &sum, OpFoldResult stride, int64_t coefficient);
  Source createSource(unsigned number);
  bool areOneLoop(unsigned operand, unsigned first, unsigned last);
  void createLoops();
  Point pointAt(Value number);
  Value distanceOf(const Source &source, const Point &point);
  /// Returns the distance of neighbouring points' elements in a vector; null
  /// for 0.
  Value strideInVector(const Source &source) {
    return source.strides.empty() || !source.needsLoops()
               ? source.pointStride
               : source.strides.back();
  }

  // Points.
  Elements load(const Source &source, const Point &point, int64_t width);
  SmallVector<Elements> loadInputs(const Point &point, int64_t width);
  Value elementOf(const Elements &elements, int64_t number);
  /// Returns whether the points of a vector follow each other in the last loop.
  bool hasWholeTrips() {
    std::optional<int64_t> length = points.rowLength();
    return extents.empty() || points.hasTrips() ||
           (length && *length % layout.vector == 0);
  }
  Values computePoint(ArrayRef<Elements> inputs, Point point, int64_t number);
  void store(const Source &source, const Point &point, Values values);
  void computeVector(ArrayRef<Elements> inputs, const Point &point,
                     int64_t width);
  void emitVector(Value number, int64_t width);
  Value numberOf(int64_t vector) {
    return math.add(first, vector * layout.schedule.threads * layout.vector);
  }
  void emitWhole();
  void emitEdge();

  ImplicitLocOpBuilder &b;
  IndexMath math;
  const TileEmission &tile;
  ukernel::PointwiseOp op;
  const Workload &workload;
  PointwiseView points;
  ChainsLayout layout;
  unsigned numInputs;
  /// The number of points.
  Value end;
  /// The first point of the thread.
  Value first;
  SmallVector<Source> sources;
  /// Extents of the loops that are left when adjacent ones are joined; empty if
  /// nothing needs positions in loops.
  SmallVector<Value> extents;
  /// For each loop of the operator the loop that it became.
  SmallVector<unsigned> joined;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands and loops
//===----------------------------------------------------------------------===//

/// Adds a multiple of a stride to a distance; null is 0.
void ChainsEmitter::addStride(Value &sum, OpFoldResult stride,
                              int64_t coefficient) {
  Value step = math.mul(getValueOrCreateConstantIndexOp(b, b.getLoc(), stride),
                        math.constant(coefficient));
  sum = sum ? math.add(sum, step) : step;
}

Source ChainsEmitter::createSource(unsigned number) {
  Source source;
  Value operand = tile.operands[number];
  const Operand &described = workload.operands[number];
  auto type = dyn_cast<MemRefType>(operand.getType());
  if (!type) {
    source.scalar = operand;
    return source;
  }
  if (type.getRank() == 0) {
    source.scalar = memref::LoadOp::create(b, operand, ValueRange());
    return source;
  }
  auto view = cast<memref::ReinterpretCastOp>(operand.getDefiningOp());
  source.access = points.accessOf(described);
  source.strides.assign(points.numLoops(), Value());
  bool isFused = workload.axes.front().isFused();
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    AffineForm position = described.position(dim);
    if (position.constant != 0)
      addStride(source.first, stride, position.constant);
    for (const AffineForm::Term &term : position.terms) {
      bool isWhole = !isFused || term.loop == AffineForm::Term::wholeAxis;
      addStride(isWhole ? source.pointStride : source.strides[term.loop],
                stride, term.coefficient);
    }
  }
  // Vectors need neighbours in memory, which views of the program may lack.
  source.isVector =
      points.isVector(described) && getConstantIntValue(strides.back()) == 1;
  auto flat = MemRefType::get({ShapedType::kDynamic}, type.getElementType());
  source.elements = memref::ReinterpretCastOp::create(
      b, flat, view.getSource(), b.getIndexAttr(0), ArrayRef<OpFoldResult>{end},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  // Vectors of booleans would be packed by bits. Buffers of both types become
  // the same descriptor.
  if (type.getElementType().isInteger(1))
    source.elements =
        UnrealizedConversionCastOp::create(
            b, MemRefType::get({ShapedType::kDynamic}, b.getI8Type()),
            source.elements)
            .getResult(0);
  return source;
}

/// Returns whether the elements of an operand follow each other through loops
/// `first` to `last` as they do within the last of them. Pairs of loops do not
/// tell: a loop of one trip is one with either neighbor.
bool ChainsEmitter::areOneLoop(unsigned operand, unsigned first,
                               unsigned last) {
  const Source &source = sources[operand];
  auto isNeeded = [&](unsigned loop) { return bool(source.strides[loop]); };
  if (!source.elements || !source.needsLoops() ||
      llvm::none_of(llvm::seq_inclusive(first, last), isNeeded))
    return true;
  const Operand &described = workload.operands[operand];
  SmallVector<std::optional<unsigned>> dims(last - first + 1);
  for (unsigned dim = 0; dim < described.rank(); ++dim)
    for (const AffineForm::Term &term : described.position(dim).terms) {
      if (term.loop < first || term.loop > last)
        continue;
      std::optional<unsigned> &found = dims[term.loop - first];
      if (!described.position(dim).asTerm() || found)
        return false;
      found = dim;
    }
  for (auto [number, dim] : llvm::enumerate(dims))
    if (!dim || *dim != *dims.front() + number)
      return false;
  auto type = cast<MemRefType>(op->getOperand(operand).getType());
  return haveOneStride(type, *dims.front(), dims.size());
}

/// Finds the loops in which positions are needed, and joins those that are
/// adjacent in all operands.
void ChainsEmitter::createLoops() {
  unsigned numLoops = points.numLoops();
  SmallVector<bool> isIndexed(numLoops, false);
  op.getMap().walk(
      [&](ukernel::IndexOp index) { isIndexed[index.getAxis()] = true; });
  bool isNeeded = llvm::is_contained(isIndexed, true) ||
                  llvm::any_of(sources, [](const Source &source) {
                    return source.needsLoops();
                  });
  if (numLoops == 1 || !isNeeded)
    return;
  // The first loop of the joined one.
  unsigned first = 0;
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    Value extent = tile.loopExtents[loop];
    bool isJoined =
        loop > 0 && !isIndexed[loop - 1] && !isIndexed[loop] &&
        llvm::all_of(llvm::seq<unsigned>(sources.size()), [&](unsigned number) {
          return areOneLoop(number, first, loop);
        });
    if (!isJoined)
      first = loop;
    if (isJoined)
      extents.back() = math.mul(extents.back(), extent);
    else
      extents.push_back(extent);
    joined.push_back(extents.size() - 1);
  }
  for (Source &source : sources) {
    SmallVector<Value> strides(extents.size());
    for (auto [loop, stride] : llvm::enumerate(source.strides))
      if (stride)
        strides[joined[loop]] = stride;
    // A joined loop has the stride of its last part.
    if (source.elements)
      source.strides = strides;
  }
}

/// Numbers of points and loops have 32 bits, which divide faster than 64.
Point ChainsEmitter::pointAt(Value number) {
  Point point;
  point.number = number;
  if (extents.empty())
    return point;
  point.loops.resize(extents.size());
  Type narrow = b.getI32Type();
  Value rest = arith::IndexCastOp::create(b, narrow, number);
  for (unsigned loop = extents.size(); loop-- > 1;) {
    Value extent = b.createOrFold<arith::IndexCastOp>(narrow, extents[loop]);
    Value quotient = arith::DivUIOp::create(b, rest, extent);
    Value product = arith::MulIOp::create(b, quotient, extent);
    Value position = arith::SubIOp::create(b, rest, product);
    point.loops[loop] = toIndex(b, position);
    rest = quotient;
  }
  point.loops.front() = toIndex(b, rest);
  return point;
}

Value ChainsEmitter::distanceOf(const Source &source, const Point &point) {
  Value distance = source.first;
  auto add = [&](Value position, Value stride) {
    if (!stride)
      return;
    Value step = math.mul(position, stride);
    distance = distance ? math.add(distance, step) : step;
  };
  add(point.number, source.pointStride);
  if (source.needsLoops())
    for (auto [position, stride] : llvm::zip_equal(point.loops, source.strides))
      add(position, stride);
  return distance ? distance : math.constant(0);
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

Elements ChainsEmitter::load(const Source &source, const Point &point,
                             int64_t width) {
  if (source.scalar)
    return {source.scalar};
  Value distance = distanceOf(source, point);
  Type element = getElementTypeOrSelf(source.elements.getType());
  if (width > 1 && source.isVector)
    return {vector::LoadOp::create(
        b, VectorType::get({width}, element), source.elements, distance,
        /*nontemporal=*/false,
        llvm::MaybeAlign(width * elementBytesOf(element)))};
  Value stride = strideInVector(source);
  Elements elements;
  for (int64_t number = 0; number < (stride ? width : 1); ++number) {
    Value position =
        number == 0 ? distance : math.add(distance, math.mul(stride, number));
    elements.push_back(memref::LoadOp::create(b, source.elements, position));
  }
  return elements;
}

SmallVector<Elements> ChainsEmitter::loadInputs(const Point &point,
                                                int64_t width) {
  SmallVector<Elements> inputs;
  for (unsigned input = 0; input < numInputs; ++input)
    inputs.push_back(op.getMap().getArgument(input).use_empty()
                         ? Elements()
                         : load(sources[input], point, width));
  return inputs;
}

Value ChainsEmitter::elementOf(const Elements &elements, int64_t number) {
  if (elements.empty())
    return {};
  if (isa<VectorType>(elements.front().getType()))
    return vector::ExtractOp::create(b, elements.front(), number);
  return elements.size() == 1 ? elements.front() : elements[number];
}

/// Returns the values of the outputs at one point of a vector.
Values ChainsEmitter::computePoint(ArrayRef<Elements> inputs, Point point,
                                   int64_t number) {
  Block &body = op.getMap().front();
  // A vector may begin in one row and end in the next if no operand needs the
  // position in the row, only the body.
  int64_t stepsInRow = number;
  if (number > 0 && !hasWholeTrips()) {
    point = pointAt(math.add(point.number, number));
    stepsInRow = 0;
  }
  IRMapping mapping;
  for (auto [argument, elements] : llvm::zip_equal(body.getArguments(), inputs))
    if (Value element = elementOf(elements, number)) {
      if (element.getType() != argument.getType())
        element = arith::TruncIOp::create(b, argument.getType(), element);
      mapping.map(argument, element);
    }
  for (Operation &inner : body.without_terminator()) {
    auto index = dyn_cast<ukernel::IndexOp>(inner);
    if (!index) {
      clonePromoted(b, inner, mapping);
      continue;
    }
    unsigned loop = point.loops.empty() ? 0 : joined[index.getAxis()];
    bool isLast = loop + 1 == std::max<size_t>(point.loops.size(), 1);
    Value position = point.loops.empty() ? point.number : point.loops[loop];
    mapping.map(index.getResult(),
                isLast ? math.add(position, stepsInRow) : position);
  }
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(), [&](Value value) {
        return rounded(b, b.getLoc(), mapping.lookupOrDefault(value),
                       value.getType());
      });
}

void ChainsEmitter::store(const Source &source, const Point &point,
                          Values values) {
  Value distance = distanceOf(source, point);
  auto width = static_cast<int64_t>(values.size());
  Type element = getElementTypeOrSelf(source.elements.getType());
  if (values.front().getType() != element)
    for (Value &value : values)
      value = arith::ExtUIOp::create(b, element, value);
  if (width > 1 && source.isVector) {
    auto type = VectorType::get({width}, element);
    Value vector = vector::FromElementsOp::create(b, type, values);
    vector::StoreOp::create(b, vector, source.elements, distance,
                            /*nontemporal=*/false,
                            llvm::MaybeAlign(width * elementBytesOf(element)));
    return;
  }
  Value stride = strideInVector(source);
  for (auto [number, value] : llvm::enumerate(values)) {
    Value position =
        number == 0 ? distance
                    : math.add(distance,
                               math.mul(stride, static_cast<int64_t>(number)));
    memref::StoreOp::create(b, value, source.elements, position);
  }
}

void ChainsEmitter::computeVector(ArrayRef<Elements> inputs, const Point &point,
                                  int64_t width) {
  SmallVector<Values> columns(op.getOutputs().size());
  for (int64_t number = 0; number < width; ++number)
    for (auto [column, value] :
         llvm::zip_equal(columns, computePoint(inputs, point, number)))
      column.push_back(value);
  for (auto [output, column] : llvm::enumerate(columns))
    store(sources[numInputs + output], point, column);
}

void ChainsEmitter::emitVector(Value number, int64_t width) {
  Point point = pointAt(number);
  computeVector(loadInputs(point, width), point, width);
}

/// Emits the vectors of a thread in a block whose points all exist: loads come
/// before everything else.
void ChainsEmitter::emitWhole() {
  SmallVector<Point> all;
  SmallVector<SmallVector<Elements>> inputs;
  for (int64_t vector = 0; vector < layout.vectors; ++vector) {
    all.push_back(pointAt(numberOf(vector)));
    inputs.push_back(loadInputs(all.back(), layout.vector));
  }
  for (auto [point, loaded] : llvm::zip_equal(all, inputs))
    computeVector(loaded, point, layout.vector);
}

/// Emits the vectors of a thread in the block at the end.
void ChainsEmitter::emitEdge() {
  int64_t step = layout.schedule.threads * layout.vector;
  auto loop = createLoop(b, Unrolling::Never,
                         math.constant(layout.vectors * step), step, {});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value number = math.add(first, loop.getInductionVar());
  Value last = math.add(number, layout.vector - 1);
  if (layout.vector == 1) {
    emitIf(b, math.less(number, end), [&] { emitVector(number, 1); });
    return;
  }
  auto ifOp = scf::IfOp::create(b, math.less(last, end),
                                /*withElseRegion=*/true);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitVector(number, layout.vector);
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::ForOp single =
      createLoop(b, Unrolling::Never, number, end, math.constant(1), {});
  b.setInsertionPoint(single.getBody()->getTerminator());
  emitVector(single.getInductionVar(), 1);
}

void ChainsEmitter::emit() {
  first = math.add(tile.rowOffset, math.mul(tile.threadId, layout.vector));
  for (unsigned number = 0; number < tile.operands.size(); ++number)
    sources.push_back(createSource(number));
  createLoops();
  if (tile.exact[0]) {
    emitWhole();
    return;
  }
  Value last = math.add(tile.rowOffset, layout.tile() - 1);
  auto ifOp =
      scf::IfOp::create(b, math.less(last, end), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitWhole();
  b.setInsertionPointToStart(ifOp.elseBlock());
  emitEdge();
}

//===----------------------------------------------------------------------===//
// Path
//===----------------------------------------------------------------------===//

namespace {
class ChainsPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return chainsModel(); }

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
    // The kernel may come from anywhere.
    auto op = dyn_cast<ukernel::PointwiseOp>(*tile.op);
    if (!op)
      return tile.op->emitOpError(
          "expected a 'ukernel.pointwise' for this path");
    ChainsEmitter(builder, tile, op).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
FTUNER_DEFINE_CODEGEN_PATH(chains, ChainsPath)
} // namespace ftuner
