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

#include <map>

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

  /// A dimension along which a position is a sum, of the loops of points and of
  /// the window, or may lie outside.
  struct Window {
    AffineForm form;
    Value stride, size;
    std::optional<int64_t> knownSize;
    bool isPadded;
  };
  SmallVector<Window, 2> windows;
  /// Distance from one tap to the next in the other dimensions, along each loop
  /// over the window; null for 0.
  SmallVector<Value, 3> tapStrides;
  bool hasTaps = false;
  /// The value of reads outside; null if there are none.
  TypedAttr padding;
  /// False at run time if the input is empty, so that not even an element
  /// inside may be read; null if it has elements wherever there are points.
  Value hasElements;

  bool needsLoops() const {
    return !windows.empty() ||
           llvm::any_of(strides, [](Value stride) { return stride; });
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

/// The position of a tap in its window, along each loop: a number where the
/// loop is unrolled, else the loop's variable.
struct Tap {
  SmallVector<int64_t, 3> numbers;
  SmallVector<Value, 3> variables;
};

/// Reads of one input at the windows of a vector's points: terms of distances,
/// and elements. Neighbouring points share them.
struct WindowReads {
  /// Distance that all taps and points have in common; null before the first
  /// read.
  Value first;
  /// By the number of a window's dimension and the offset along it, its
  /// distance, and whether it lies inside; null if it always does.
  std::map<std::pair<unsigned, int64_t>, std::pair<Value, Value>> positions;
  std::map<SmallVector<int64_t, 6>, Value> elements;
};

/// Emits one tile of a kernel.
class ChainsEmitter {
public:
  ChainsEmitter(ImplicitLocOpBuilder &b, const TileEmission &tile,
                ukernel::PointwiseOp op)
      : b(b), math(b), tile(tile), op(op), workload(*tile.described),
        points(workload),
        layout(workload, ChainsSchedule::of(tile.family.schedule)),
        numInputs(op.getInputs().size()), plainInputs(op.getPlainInputs()),
        end(tile.extents[0]), taps(points.taps()) {}
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
    bool isFused = workload.axes.front().isFused();
    return isFused && source.needsLoops() ? source.strides.back()
                                          : source.pointStride;
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
  void cloneBody(Block &body, ArrayRef<Value> arguments, const Point &point,
                 int64_t stepsInRow, IRMapping &mapping);
  Values computePoint(ArrayRef<Elements> inputs, Point point, int64_t number,
                      ValueRange accumulators);
  void store(const Source &source, const Point &point, Values values);
  void computeVector(ArrayRef<Elements> inputs, const Point &point,
                     int64_t width, ArrayRef<Values> accumulators);

  // Windows.
  bool addWindow(Source &source, const AffineForm &position,
                 OpFoldResult stride, OpFoldResult size);
  std::optional<int64_t> lastPosition(const Source::Window &window,
                                      int64_t offset, int64_t width,
                                      const Tap &tap);
  std::pair<Value, Value> positionInWindow(const Source &source,
                                           unsigned window, int64_t offset,
                                           const Point &point, int64_t width,
                                           const Tap &tap, WindowReads &reads);
  Value readTap(const Source &source, const Point &point, int64_t number,
                int64_t width, const Tap &tap, WindowReads &reads);
  Value loadAt(const Source &source, Value distance, int64_t width,
               Value isInside);
  Values reduceTap(ArrayRef<Elements> inputs, const Point &point, int64_t width,
                   const Tap &tap, ValueRange accumulators,
                   MutableArrayRef<WindowReads> reads);
  Values reduceLoops(ArrayRef<Elements> inputs, const Point &point,
                     int64_t width, Tap tap, ValueRange accumulators,
                     MutableArrayRef<WindowReads> reads);
  /// Returns the accumulators of each point of a vector.
  SmallVector<Values> reduceWindows(ArrayRef<Elements> inputs,
                                    const Point &point, int64_t width);
  void emitVector(Value number, int64_t width);
  Value numberOf(int64_t vector) {
    return math.add(first, vector * layout.schedule.threads * layout.vector);
  }
  void emitWhole();
  void emitEdge();
  void emitTile();
  void emitGuarded();

  ImplicitLocOpBuilder &b;
  IndexMath math;
  const TileEmission &tile;
  ukernel::PointwiseOp op;
  const Workload &workload;
  PointwiseView points;
  ChainsLayout layout;
  unsigned numInputs;
  /// The inputs without taps.
  SmallVector<unsigned> plainInputs;
  /// The number of points.
  Value end;
  /// The first point of the thread.
  Value first;
  SmallVector<Source, 0> sources;
  /// Extents of the loops that are left when adjacent ones are joined; empty if
  /// nothing needs positions in loops.
  SmallVector<Value> extents;
  /// For each loop of the operator the loop that it became.
  SmallVector<unsigned> joined;
  /// Extents of the loops over a window; empty without taps.
  SmallVector<int64_t, 3> taps;
  /// True while code is emitted for inputs that may be empty.
  bool isGuarded = false;
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

/// Adds a dimension of an input with windows: its position is a sum of loops
/// and taps, or may lie outside. Returns false for other dimensions.
bool ChainsEmitter::addWindow(Source &source, const AffineForm &position,
                              OpFoldResult stride, OpFoldResult size) {
  bool isOfPoints = false, isOfTaps = false;
  for (const AffineForm::Term &term : position.terms)
    (term.axis == 0 ? isOfPoints : isOfTaps) = true;
  bool isPadded = source.padding && !position.asTerm();
  if (!isPadded && !(isOfPoints && isOfTaps))
    return false;
  Source::Window window{position,
                        getValueOrCreateConstantIndexOp(b, b.getLoc(), stride),
                        getValueOrCreateConstantIndexOp(b, b.getLoc(), size),
                        getConstantIntValue(size), isPadded};
  if (isPadded && window.knownSize.value_or(0) == 0) {
    Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, window.size,
                                       math.constant(0));
    source.hasElements =
        source.hasElements
            ? arith::AndIOp::create(b, source.hasElements, some).getResult()
            : some;
  }
  source.windows.push_back(window);
  return true;
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
  source.hasTaps = points.hasTaps(described);
  source.tapStrides.assign(taps.size(), Value());
  source.padding = op.getPadding(number);
  bool isFused = workload.axes.front().isFused();
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    AffineForm position = described.position(dim);
    if (addWindow(source, position, stride, view.getMixedSizes()[dim]))
      continue;
    if (position.constant != 0)
      addStride(source.first, stride, position.constant);
    for (const AffineForm::Term &term : position.terms) {
      bool isAll = term.loop == AffineForm::Term::wholeAxis;
      if (term.axis == 0)
        addStride(isAll || !isFused ? source.pointStride
                                    : source.strides[term.loop],
                  stride, term.coefficient);
      else if (!isAll)
        addStride(source.tapStrides[term.loop], stride, term.coefficient);
      // Taps that lie in one piece: the last loop is fastest.
      for (int64_t loop = isAll && term.axis == 1 ? taps.size() : 0,
                   step = term.coefficient;
           loop-- > 0; step *= taps[loop])
        addStride(source.tapStrides[loop], stride, step);
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
  auto isNeeded = [&](unsigned loop) {
    return source.strides[loop] ||
           llvm::any_of(source.windows, [&](const Source::Window &window) {
             return llvm::any_of(window.form.terms, [&](const auto &term) {
               return term.axis == 0 && term.loop == loop;
             });
           });
  };
  if (!source.elements || !source.needsLoops() ||
      llvm::none_of(llvm::seq_inclusive(first, last), isNeeded))
    return true;
  const Operand &described = workload.operands[operand];
  SmallVector<std::optional<unsigned>> dims(last - first + 1);
  for (unsigned dim = 0; dim < described.rank(); ++dim)
    for (const AffineForm::Term &term : described.position(dim).terms) {
      if (term.axis != 0 || term.loop < first || term.loop > last)
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
  op->walk([&](ukernel::IndexOp index) { isIndexed[index.getAxis()] = true; });
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
  if (source.needsLoops() && !point.loops.empty())
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
  SmallVector<Elements> inputs(numInputs);
  auto isUsed = [](Region &region, unsigned number) {
    return !region.empty() && !region.getArgument(number).use_empty();
  };
  for (auto [number, input] : llvm::enumerate(plainInputs))
    if (isUsed(op.getMap(), number) || isUsed(op.getStart(), number) ||
        isUsed(op.getReduce(), input))
      inputs[input] = load(sources[input], point, width);
  return inputs;
}

Value ChainsEmitter::elementOf(const Elements &elements, int64_t number) {
  if (elements.empty())
    return {};
  if (isa<VectorType>(elements.front().getType()))
    return vector::ExtractOp::create(b, elements.front(), number);
  return elements.size() == 1 ? elements.front() : elements[number];
}

/// Clones a body for a point. `arguments` are its arguments, null for those
/// that it does not use; `stepsInRow` is the point's distance from `point`.
void ChainsEmitter::cloneBody(Block &body, ArrayRef<Value> arguments,
                              const Point &point, int64_t stepsInRow,
                              IRMapping &mapping) {
  for (auto [argument, element] :
       llvm::zip_equal(body.getArguments(), arguments)) {
    if (!element)
      continue;
    // Booleans are bytes in memory.
    Value value = element;
    if (argument.getType().isInteger(1) && !element.getType().isInteger(1))
      value = arith::TruncIOp::create(b, argument.getType(), element);
    mapping.map(argument, value);
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
}

/// Returns the values of the outputs at one point of a vector.
Values ChainsEmitter::computePoint(ArrayRef<Elements> inputs, Point point,
                                   int64_t number, ValueRange accumulators) {
  // A vector may begin in one row and end in the next if no operand needs the
  // position in the row, only the body.
  int64_t stepsInRow = number;
  if (number > 0 && !hasWholeTrips()) {
    point = pointAt(math.add(point.number, number));
    stepsInRow = 0;
  }
  SmallVector<Value> arguments;
  for (unsigned input : plainInputs)
    arguments.push_back(elementOf(inputs[input], number));
  llvm::append_range(arguments, accumulators);
  IRMapping mapping;
  Block &body = op.getMap().front();
  cloneBody(body, arguments, point, stepsInRow, mapping);
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
                                  int64_t width,
                                  ArrayRef<Values> accumulators) {
  SmallVector<Values> columns(op.getOutputs().size());
  for (int64_t number = 0; number < width; ++number)
    for (auto [column, value] :
         llvm::zip_equal(columns, computePoint(inputs, point, number,
                                               accumulators[number])))
      column.push_back(value);
  for (auto [output, column] : llvm::enumerate(columns))
    store(sources[numInputs + output], point, column);
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Returns the largest position that a dimension with windows may have at an
/// offset, for the first point of a vector; no value if it is not known.
std::optional<int64_t> ChainsEmitter::lastPosition(const Source::Window &window,
                                                   int64_t offset,
                                                   int64_t width,
                                                   const Tap &tap) {
  int64_t last = offset;
  for (const AffineForm::Term &term : window.form.terms) {
    if (term.axis == 1) {
      if (tap.variables[term.loop])
        last += term.coefficient * (taps[term.loop] - 1);
      continue;
    }
    const Axis &axis = workload.axes.front();
    bool isWhole = term.loop == AffineForm::Term::wholeAxis;
    const SizeRange &range = isWhole ? axis.range : axis.loops[term.loop].range;
    if (!range.isFixed())
      return std::nullopt;
    bool isLast = isWhole || term.loop + 1 == points.numLoops();
    last += term.coefficient * (range.min - (isLast ? width : 1));
  }
  return last;
}

/// Returns the distance of a position along a dimension with windows, and
/// whether the position lies inside, null if it always does. `offset` is the
/// position's distance from that of the vector's first point, apart from loops
/// over the window that are not unrolled. Positions that may lie outside have
/// 32 bits, of which bounds are cheaper.
std::pair<Value, Value> ChainsEmitter::positionInWindow(
    const Source &source, unsigned window, int64_t offset, const Point &point,
    int64_t width, const Tap &tap, WindowReads &reads) {
  auto [found, isNew] = reads.positions.try_emplace({window, offset});
  if (!isNew)
    return found->second;
  const Source::Window &dim = source.windows[window];
  std::optional<int64_t> last = lastPosition(dim, offset, width, tap);
  bool mayBeBelow = dim.isPadded && offset < 0;
  bool mayBeBeyond =
      dim.isPadded && !(last && dim.knownSize && *last < *dim.knownSize);
  Value position = math.constant(0);
  for (const AffineForm::Term &term : dim.form.terms) {
    Value along;
    if (term.axis == 0)
      along =
          point.loops.empty() ? point.number : point.loops[joined[term.loop]];
    else
      along = tap.variables[term.loop];
    if (along)
      position = math.add(position, math.mul(along, term.coefficient));
  }
  if (!mayBeBelow && !mayBeBeyond) {
    found->second = {math.mul(math.add(position, offset), dim.stride), Value()};
    return found->second;
  }
  auto narrow = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, b.getI32Type(), value);
  };
  Value size = narrow(dim.size);
  position = arith::AddIOp::create(b, narrow(position), createI32(b, offset));
  // Unsigned: a negative position is beyond any size.
  Value isInside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, position, size);
  if (mayBeBeyond)
    position = arith::MinSIOp::create(
        b, position, arith::SubIOp::create(b, size, createI32(b, 1)));
  if (mayBeBelow)
    position = arith::MaxSIOp::create(b, position, createI32(b, 0));
  found->second = {math.mul(toIndex(b, position), dim.stride), isInside};
  return found->second;
}

/// Returns an element, or a vector of them, or the padding if it lies outside.
Value ChainsEmitter::loadAt(const Source &source, Value distance, int64_t width,
                            Value isInside) {
  Type element = getElementTypeOrSelf(source.elements.getType());
  bool isVector = width > 1 && source.isVector;
  auto type = isVector ? Type(VectorType::get({width}, element)) : element;
  auto load = [&]() -> Value {
    if (isVector)
      return vector::LoadOp::create(
          b, cast<VectorType>(type), source.elements, distance,
          /*nontemporal=*/false,
          llvm::MaybeAlign(width * elementBytesOf(element)));
    return memref::LoadOp::create(b, source.elements, distance);
  };
  if (!isInside)
    return load();
  TypedAttr value = source.padding;
  if (auto number = dyn_cast<IntegerAttr>(value))
    value = b.getIntegerAttr(element, number.getType().isInteger(1)
                                          ? number.getValue().getZExtValue()
                                          : number.getValue().getSExtValue());
  if (isVector)
    value = DenseElementsAttr::get(cast<VectorType>(type), Attribute(value));
  Value padding = arith::ConstantOp::create(b, type, value);
  if (isGuarded && source.hasElements) {
    auto ifOp = scf::IfOp::create(b, TypeRange(type), source.hasElements,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, padding);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Value selected = arith::SelectOp::create(b, isInside, load(), padding);
    scf::YieldOp::create(b, selected);
    return ifOp.getResult(0);
  }
  return arith::SelectOp::create(b, isInside, load(), padding);
}

/// Returns an input's element at a tap of a point of a vector, or its vector of
/// all points.
Value ChainsEmitter::readTap(const Source &source, const Point &point,
                             int64_t number, int64_t width, const Tap &tap,
                             WindowReads &reads) {
  bool isVector = width > 1 && source.isVector;
  if (isVector)
    number = 0;
  unsigned last = points.numLoops() - 1;
  // Offsets along dimensions with windows, and of all others together.
  SmallVector<int64_t, 6> key;
  for (const Source::Window &window : source.windows) {
    int64_t offset = window.form.constant;
    for (const AffineForm::Term &term : window.form.terms) {
      if (term.axis == 1)
        offset += term.coefficient * tap.numbers[term.loop];
      else if (term.loop == last || term.loop == AffineForm::Term::wholeAxis)
        offset += term.coefficient * number;
    }
    key.push_back(offset);
  }
  for (auto [stride, tapNumber] :
       llvm::zip_equal(source.tapStrides, tap.numbers))
    key.push_back(stride ? tapNumber : 0);
  Value stepStride = strideInVector(source);
  key.push_back(stepStride ? number : 0);
  auto [found, isNew] = reads.elements.try_emplace(key);
  if (!isNew)
    return found->second;

  if (!reads.first)
    reads.first = distanceOf(source, point);
  Value distance = reads.first, isInside;
  for (auto [loop, stride] : llvm::enumerate(source.tapStrides)) {
    if (!stride)
      continue;
    if (Value variable = tap.variables[loop])
      distance = math.add(distance, math.mul(stride, variable));
    distance = math.add(distance, math.mul(stride, tap.numbers[loop]));
  }
  if (stepStride)
    distance = math.add(distance, math.mul(stepStride, number));
  for (unsigned window = 0; window < source.windows.size(); ++window) {
    auto [along, isInsideAlong] =
        positionInWindow(source, window, key[window], point, width, tap, reads);
    distance = math.add(distance, along);
    if (isInsideAlong)
      isInside =
          isInside
              ? arith::AndIOp::create(b, isInside, isInsideAlong).getResult()
              : isInsideAlong;
  }
  found->second = loadAt(source, distance, width, isInside);
  return found->second;
}

/// Returns the accumulators of all points of a vector, one point's after the
/// other, after one more tap.
Values ChainsEmitter::reduceTap(ArrayRef<Elements> inputs, const Point &point,
                                int64_t width, const Tap &tap,
                                ValueRange accumulators,
                                MutableArrayRef<WindowReads> reads) {
  Block &body = op.getReduce().front();
  size_t numAccumulators = body.getTerminator()->getNumOperands();
  Values next;
  for (int64_t number = 0; number < width; ++number) {
    SmallVector<Value> arguments;
    for (unsigned input = 0; input < numInputs; ++input) {
      Value element;
      if (!body.getArgument(input).use_empty())
        element = sources[input].hasTaps
                      ? elementOf({readTap(sources[input], point, number, width,
                                           tap, reads[input])},
                                  number)
                      : elementOf(inputs[input], number);
      arguments.push_back(element);
    }
    llvm::append_range(arguments, accumulators.slice(number * numAccumulators,
                                                     numAccumulators));
    IRMapping mapping;
    cloneBody(body, arguments, point, number, mapping);
    for (Value value : body.getTerminator()->getOperands())
      next.push_back(promoted(b, b.getLoc(), mapping.lookupOrDefault(value)));
  }
  return next;
}

/// Emits the loops over a window behind those that `tap` has.
Values ChainsEmitter::reduceLoops(ArrayRef<Elements> inputs, const Point &point,
                                  int64_t width, Tap tap,
                                  ValueRange accumulators,
                                  MutableArrayRef<WindowReads> reads) {
  unsigned loop = tap.numbers.size();
  if (loop == taps.size())
    return reduceTap(inputs, point, width, tap, accumulators, reads);
  tap.numbers.push_back(0);
  tap.variables.push_back(Value());
  if (ChainsLayout::hasUnrolledTaps(taps, loop)) {
    Values next(accumulators);
    for (; tap.numbers.back() < taps[loop]; ++tap.numbers.back())
      next = reduceLoops(inputs, point, width, tap, next, reads);
    return next;
  }
  scf::ForOp forOp = createLoop(b, Unrolling::Never, math.constant(taps[loop]),
                                1, accumulators);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  tap.variables.back() = forOp.getInductionVar();
  SmallVector<WindowReads> ofStep(reads.size());
  Values next =
      reduceLoops(inputs, point, width, tap, forOp.getRegionIterArgs(), ofStep);
  scf::YieldOp::create(b, next);
  return Values(forOp.getResults());
}

SmallVector<Values> ChainsEmitter::reduceWindows(ArrayRef<Elements> inputs,
                                                 const Point &point,
                                                 int64_t width) {
  SmallVector<Values> ofPoints(width);
  if (taps.empty())
    return ofPoints;
  Block &start = op.getStart().front();
  ValueRange yielded = start.getTerminator()->getOperands();
  Values accumulators;
  for (int64_t number = 0; number < width; ++number) {
    SmallVector<Value> arguments;
    for (unsigned input : plainInputs)
      arguments.push_back(elementOf(inputs[input], number));
    IRMapping mapping;
    cloneBody(start, arguments, point, number, mapping);
    for (Value value : yielded)
      accumulators.push_back(
          promoted(b, b.getLoc(), mapping.lookupOrDefault(value)));
  }
  SmallVector<WindowReads> reads(numInputs);
  accumulators = reduceLoops(inputs, point, width, Tap(), accumulators, reads);
  for (auto [number, value] : llvm::enumerate(accumulators))
    ofPoints[number / yielded.size()].push_back(rounded(
        b, b.getLoc(), value, yielded[number % yielded.size()].getType()));
  return ofPoints;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void ChainsEmitter::emitVector(Value number, int64_t width) {
  Point point = pointAt(number);
  SmallVector<Elements> inputs = loadInputs(point, width);
  computeVector(inputs, point, width, reduceWindows(inputs, point, width));
}

/// Emits the vectors of a thread in a block whose points all exist: loads come
/// before everything else.
void ChainsEmitter::emitWhole() {
  SmallVector<Point> all;
  SmallVector<SmallVector<Elements>> inputs;
  SmallVector<SmallVector<Values>> accumulators;
  for (int64_t vector = 0; vector < layout.vectors; ++vector) {
    all.push_back(pointAt(numberOf(vector)));
    inputs.push_back(loadInputs(all.back(), layout.vector));
  }
  for (auto [point, loaded] : llvm::zip_equal(all, inputs))
    accumulators.push_back(reduceWindows(loaded, point, layout.vector));
  for (auto [point, loaded, reduced] :
       llvm::zip_equal(all, inputs, accumulators))
    computeVector(loaded, point, layout.vector, reduced);
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

/// Emits the points of a thread one by one, for a tile whose padded inputs may
/// be empty.
void ChainsEmitter::emitGuarded() {
  isGuarded = true;
  Value stop = math.minimum(math.add(tile.rowOffset, layout.tile()), end);
  scf::ForOp loop =
      createLoop(b, Unrolling::Never, math.add(tile.rowOffset, tile.threadId),
                 stop, math.constant(layout.schedule.threads), {});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  emitVector(loop.getInductionVar(), 1);
  isGuarded = false;
}

void ChainsEmitter::emitTile() {
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

void ChainsEmitter::emit() {
  first = math.add(tile.rowOffset, math.mul(tile.threadId, layout.vector));
  for (unsigned number = 0; number < tile.operands.size(); ++number)
    sources.push_back(createSource(number));
  createLoops();
  Value haveElements;
  for (const Source &source : sources)
    if (Value some = source.hasElements)
      haveElements =
          haveElements
              ? arith::AndIOp::create(b, haveElements, some).getResult()
              : some;
  if (!haveElements) {
    emitTile();
    return;
  }
  auto ifOp = scf::IfOp::create(b, haveElements, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitTile();
  b.setInsertionPointToStart(ifOp.elseBlock());
  emitGuarded();
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
