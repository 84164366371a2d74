//===- RowFormation.cpp - Reductions of rows to ukernel.row_reduction -----===//
#include "RowFormation.h"

#include "FTuner/Analysis/ConstantValues.h"
#include "OperatorSizes.h"
#include "Rows/RowPatterns.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace ftuner;
using ukernel::RowReductionOp;

namespace {

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Whether a body computes with its arguments, positions and constants alone.
bool isPlainBody(Block &body) {
  return llvm::all_of(body.without_terminator(), [&](Operation &op) {
    if (isa<linalg::IndexOp>(op))
      return true;
    return op.getNumRegions() == 0 &&
           isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
           llvm::all_of(op.getOperands(), [&](Value operand) {
             return operand.getParentBlock() == &body ||
                    !isa<ShapedType>(operand.getType());
           });
  });
}

bool isPlain(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op.getNumDpsInits() == 1 &&
         op->getNumResults() == 1 && isPlainBody(*op.getBlock()) &&
         llvm::all_of(op->getOperandTypes(),
                      [](Type type) { return !isa<UnrankedTensorType>(type); });
}

AffineMap initMapOf(linalg::LinalgOp op) {
  return op.getMatchingIndexingMap(op.getDpsInitOperand(0));
}

bool isElementwise(linalg::LinalgOp op) {
  return isPlain(op) && op.getNumParallelLoops() == op.getNumLoops() &&
         !op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) &&
         initMapOf(op).isPermutation();
}

/// The one loop that an operator reduces.
unsigned reductionLoopOf(linalg::LinalgOp op) {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  return loops.front();
}

/// How rows compute a reduction of linalg: in a wide accumulator, from what an
/// empty row gives.
struct Accumulation {
  /// Updates the accumulator, in the operator's body.
  Operation *combining;
  /// The operation by which rows do: booleans are integers there.
  OperationName name;
  /// f32, f64 or i32.
  Type type;
  /// What the operator starts from and is combined with the row's result: a
  /// constant, a scalar or a tensor; null where it makes no difference.
  Value start;
  Attribute constantStart;

  bool hasStart() const { return start || constantStart; }
};

/// The type in which rows accumulate values of a type, of 32 bits except for
/// f64; null for none. Sums of booleans are less than the length of a row.
Type accumulatorTypeOf(Operation *combining, Type own) {
  MLIRContext *context = own.getContext();
  if (own.isF64())
    return own;
  if (own.isF32() || own.isF16() || own.isBF16())
    return Float32Type::get(context);
  if (own.isSignlessInteger(1) || own.isSignlessInteger(8) ||
      own.isSignlessInteger(16) || own.isSignlessInteger(32))
    return IntegerType::get(context, 32);
  if (!own.isSignlessInteger(64) || !isa<arith::AddIOp>(combining))
    return Type();
  bool isCount = llvm::any_of(combining->getOperands(), [](Value addend) {
    auto extended = addend.getDefiningOp<arith::ExtUIOp>();
    return extended && extended.getIn().getType().isInteger(1);
  });
  return isCount ? IntegerType::get(context, 32) : Type();
}

/// The operation of wider integers that does what `combining` does; nothing
/// where there is none.
std::optional<OperationName> wideOperation(Operation *combining, Type own) {
  auto named = [&](StringRef name) {
    return OperationName(name, combining->getContext());
  };
  if (!isa<arith::OrIOp, arith::AndIOp, arith::XOrIOp>(combining))
    return combining->getName();
  if (!own.isInteger(1))
    return std::nullopt;
  if (isa<arith::OrIOp>(combining))
    return named(arith::MaxUIOp::getOperationName());
  if (isa<arith::AndIOp>(combining))
    return named(arith::MinUIOp::getOperationName());
  return named(arith::AddIOp::getOperationName());
}

/// Whether the operator reduces one loop, to one element for each point of the
/// others; how rows do.
std::optional<Accumulation> matchRowReduction(linalg::LinalgOp op) {
  if (!isPlain(op) || op.getNumReductionLoops() != 1 ||
      op.getNumLoops() > RowReductionOp::kMaxSpaceAxes + 1)
    return std::nullopt;
  unsigned numIndexed = 0;
  for (AffineExpr position : initMapOf(op).getResults())
    numIndexed += isa<AffineDimExpr>(position);
  Block &body = *op.getBlock();
  Operation *combining = ukernel::findCombiningOp(body);
  if (!combining || numIndexed + 1 != op.getNumLoops())
    return std::nullopt;
  OpOperand *init = op.getDpsInitOperand(0);
  Type own = getElementTypeOrSelf(init->get().getType());
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combining);
  Type type = accumulatorTypeOf(combining, own);
  std::optional<OperationName> name = wideOperation(combining, own);
  if (!neutral || !type || !name)
    return std::nullopt;
  // No path computes products of matrices in f64, and rows would read each
  // factor once for every element of the product.
  if (own.isF64() && isSumOfProducts(op))
    return std::nullopt;
  Accumulation result{combining, *name, type, {}, {}};
  // Extremes of narrow integers begin with another value than wide ones.
  bool isSameNeutral = own == result.type || !own.isInteger() ||
                       isa<arith::AddIOp, arith::MulIOp, arith::AndIOp,
                           arith::OrIOp, arith::XOrIOp>(combining);
  result.start = init->get();
  if (auto fill = result.start.getDefiningOp<linalg::FillOp>())
    result.start = fill.value();
  if (matchPattern(result.start, m_Constant(&result.constantStart))) {
    result.start = Value();
    auto splat = dyn_cast<SplatElementsAttr>(result.constantStart);
    if (splat)
      result.constantStart = splat.getSplatValue<Attribute>();
    else if (isa<ElementsAttr>(result.constantStart))
      return std::nullopt;
    if (isSameNeutral && result.constantStart == *neutral)
      result.constantStart = Attribute();
  }
  // What a count starts from may be wider than the count.
  if (own.isInteger(64) && result.hasStart())
    return std::nullopt;
  return result;
}

bool isRowReduction(linalg::LinalgOp op) {
  return matchRowReduction(op).has_value();
}

/// The value of the type in which rows accumulate, and back.
Value widen(OpBuilder &b, Value value, const Accumulation &how) {
  Location loc = value.getLoc();
  Type type = how.type;
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, loc, type, value);
  if (value.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, loc, type, value);
  StringRef name = how.name.getStringRef();
  if (name == arith::MaxUIOp::getOperationName() ||
      name == arith::MinUIOp::getOperationName())
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

Value narrow(OpBuilder &b, Value value, Type type) {
  Location loc = value.getLoc();
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::TruncFOp::create(b, loc, type, value);
  // Counts.
  if (value.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::TruncIOp::create(b, loc, type, value);
}

/// The operation of other operands, as wide as these.
Value createLike(OpBuilder &b, Operation *op, OperationName name,
                 ValueRange operands) {
  OperationState state(op->getLoc(), name);
  state.addOperands(operands);
  state.addTypes(operands.front().getType());
  // What narrow integers do not overflow, wide ones may.
  if (isa<FloatType>(operands.front().getType()))
    state.addAttributes(op->getAttrs());
  return b.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// RowGroup
//===----------------------------------------------------------------------===//

/// Along which dimensions an operand lies: it has one element for each row,
/// rows that are contiguous, or rows across.
enum class RowAccess { OncePerRow, AlongRow, AcrossRow };

/// Which elements the codegen paths take that compute rows.
class RowElements {
public:
  explicit RowElements(const PathSupport &support) : support(support) {}

  bool takes(Type type, RowAccess access) {
    type = getElementTypeOrSelf(type);
    auto [known, isNew] =
        taken.try_emplace({type, static_cast<unsigned>(access)}, false);
    if (!isNew)
      return known->second;
    Workload sums = Workload::rowSums({}, {});
    bool isOncePerRow = access == RowAccess::OncePerRow;
    Operand &operand = sums.operands[isOncePerRow];
    if (access == RowAccess::AcrossRow)
      std::swap(operand.axes.front(), operand.axes.back());
    operand = Operand(operand.role, operand.axes, toElementType(type));
    known->second = !llvm::errorToBool(support.check(sums));
    return known->second;
  }

private:
  const PathSupport &support;
  DenseMap<std::pair<Type, unsigned>, bool> taken;
};

/// What may belong to a group, beside its seed and what follows from it.
struct RowGroupOptions {
  /// Elementwise operators before the seed.
  bool hasProducers;
  /// Elementwise operators before the seed that it reads transposed, and
  /// operands that have the row in another place than the seed's.
  bool hasTransposed;
};

/// Less, where no path computes all.
constexpr RowGroupOptions kGroupOptions[] = {
    {/*hasProducers=*/true, /*hasTransposed=*/true},
    {/*hasProducers=*/true, /*hasTransposed=*/false},
    {/*hasProducers=*/false, /*hasTransposed=*/false}};

class RowsBuilder;

/// Operators that become one. Its loops are those of the seed, behind one of a
/// single row if the seed has none for rows. The layout of a value is the map
/// from them to its dimensions, where those of extent 1 may be the constant 0;
/// the value has an element for each of a row's where its layout has the
/// reduced loop.
class RowGroup {
public:
  RowGroup(linalg::LinalgOp seed, RowGroupOptions options,
           RowElements &elements);

  /// In the order of the program, without reshapes.
  ArrayRef<linalg::LinalgOp> getMembers() const { return members; }
  /// Erases the members and reshapes that nobody uses any more.
  void eraseMembers(RewriterBase &rewriter);
  /// Whether a path computes one operator of them.
  bool isComputed(const PathSupport &support, RewriterBase &rewriter);
  /// Makes one operator of them, where a path computes it.
  bool form(const PathSupport &support, RewriterBase &rewriter);

private:
  /// For each loop of an operator that of the group, or 0 for one of extent 1.
  using Loops = SmallVector<AffineExpr, 5>;

  bool isAlongRow(AffineMap layout) const {
    return layout.isFunctionOfDim(row);
  }
  /// The operator's axis: loops of rows by the innermost first, then the row.
  unsigned toAxis(unsigned loop) const {
    return loop == row  ? numLoops - 1
           : loop < row ? numLoops - 2 - loop
                        : numLoops - 1 - loop;
  }
  /// Whether a layout has all loops, or all of rows.
  bool isComplete(AffineMap layout) const {
    for (unsigned loop = hasSingleRow; loop < numLoops; ++loop)
      if (loop != row && !layout.isFunctionOfDim(loop))
        return false;
    return true;
  }
  /// A map over an operator's loops as one over the group's.
  AffineMap toGroup(AffineMap map, ArrayRef<AffineExpr> loops) const {
    return map.replaceDimsAndSymbols(loops, {}, numLoops, 0);
  }
  AffineMap accessOf(linalg::LinalgOp op, OpOperand *operand) const {
    return toGroup(op.getMatchingIndexingMap(operand), loops.at(op));
  }
  void add(linalg::LinalgOp op, Loops ofGroup) {
    layouts[op->getResult(0)] = toGroup(initMapOf(op), ofGroup);
    loops[op] = std::move(ofGroup);
  }
  bool isMember(Operation *op) const { return loops.contains(op); }
  /// What the loops of an operator are that reads values of the group, or what
  /// members read along all loops; nothing if it does not belong there.
  std::optional<Loops> matchLoops(linalg::LinalgOp op) const;
  /// Whether the paths take what an operator of such loops reads and writes.
  bool areOperandsTaken(linalg::LinalgOp op, ArrayRef<AffineExpr> loops) const;
  bool isTaken(Type type, AffineMap layout) const;
  /// The loops of an operator that belongs to the group.
  std::optional<Loops> loopsIn(linalg::LinalgOp op) const;
  /// The layout of a reshaped value, where only dimensions of extent 1 come or
  /// go; null for others.
  AffineMap layoutOfReshape(Operation *op) const;
  /// Notes what a member reads from outside along all loops.
  void addOutside(linalg::LinalgOp op);
  void addProducers();
  /// Operators that are behind the group: they need its values, but do not
  /// belong to it.
  using BehindOps = llvm::SmallPtrSet<Operation *, 16>;
  void addConsumers();
  /// Elementwise operators in front of a later reduction: those that were added
  /// for it, and those that do not belong to the group.
  struct Producers {
    const BehindOps &behind;
    SmallVector<linalg::LinalgOp> added;
    llvm::SmallPtrSet<Operation *, 16> rejected;
  };
  /// Adds the operators that compute what `op` reads from what members read.
  void addProducersOf(linalg::LinalgOp op, Producers &producers);
  /// Removes all of those that were added except the first `count`.
  void removeAdded(Producers &producers, size_t count);
  /// Adds a later reduction with what computes its elements; returns false if
  /// it is not one of the same rows.
  bool addReduction(linalg::LinalgOp op, const BehindOps &behind);
  /// Whether the seed is among the members, and all their accesses fit: a value
  /// may have joined behind an operator that reads it along other loops.
  bool isConsistent() const;
  /// The operator of a group, beside its members; null where no path computes
  /// it.
  RowReductionOp build(RowsBuilder &builder, const PathSupport &support,
                       RewriterBase &rewriter);
  /// The value of a member that a value of the group is, behind reshapes.
  Value memberOf(Value value) const {
    while (true) {
      Operation *op = value.getDefiningOp();
      if (!op || !aliases.contains(op))
        return value;
      value = op->getOperand(0);
    }
  }

  Block *block;
  linalg::LinalgOp seed;
  RowGroupOptions options;
  RowElements &elements;
  bool hasSingleRow;
  unsigned numLoops, row;
  SmallVector<linalg::LinalgOp> members;
  llvm::SmallPtrSet<Operation *, 16> aliases;
  DenseMap<Operation *, Loops> loops;
  /// Of members' values and their reshapes.
  llvm::MapVector<Value, AffineMap> layouts;
  /// Of operands from outside that members read along all loops.
  DenseMap<Value, AffineMap> outside;

  friend class RowsBuilder;
};

RowGroup::RowGroup(linalg::LinalgOp seed, RowGroupOptions options,
                   RowElements &elements)
    : block(seed->getBlock()), seed(seed), options(options), elements(elements),
      hasSingleRow(seed.getNumLoops() == 1),
      numLoops(seed.getNumLoops() + hasSingleRow),
      row(reductionLoopOf(seed) + hasSingleRow) {
  Loops own;
  for (unsigned loop = hasSingleRow; loop < numLoops; ++loop)
    own.push_back(getAffineDimExpr(loop, seed.getContext()));
  if (!areOperandsTaken(seed, own))
    return;
  add(seed, own);
  addProducers();
  addConsumers();
  llvm::sort(members, [](linalg::LinalgOp lhs, linalg::LinalgOp rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
}

/// Adds what a map over an operator's loops says of them, if it reads a value
/// of this layout; whether it may.
static bool unify(AffineMap map, AffineMap layout,
                  MutableArrayRef<AffineExpr> loops) {
  for (auto [index, position] :
       llvm::zip_equal(map.getResults(), layout.getResults())) {
    AffineExpr known = index;
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (dim)
      known = loops[dim.getPosition()];
    if (known && known != position)
      return false;
    if (dim)
      loops[dim.getPosition()] = position;
  }
  return true;
}

std::optional<RowGroup::Loops> RowGroup::matchLoops(linalg::LinalgOp op) const {
  Loops result(op.getNumLoops());
  bool isAlongside = false;
  for (OpOperand *operand : op.getDpsInputOperands())
    if (auto known = layouts.find(operand->get()); known != layouts.end()) {
      if (!unify(op.getMatchingIndexingMap(operand), known->second, result))
        return std::nullopt;
      isAlongside = true;
    }
  for (OpOperand *operand : op.getDpsInputOperands())
    if (auto known = outside.find(operand->get()); known != outside.end()) {
      Loops more = result;
      if (!unify(op.getMatchingIndexingMap(operand), known->second, more))
        continue;
      result = more;
      isAlongside = true;
    }
  if (!isAlongside)
    return std::nullopt;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  llvm::SmallBitVector used(numLoops);
  for (auto [loop, extent] : llvm::zip_equal(result, extents)) {
    if (!loop && extent == 1)
      loop = getAffineConstantExpr(0, op.getContext());
    if (!loop)
      return std::nullopt;
    auto dim = dyn_cast<AffineDimExpr>(loop);
    if (dim && used.test(dim.getPosition()))
      return std::nullopt;
    if (dim)
      used.set(dim.getPosition());
  }
  return result;
}

bool RowGroup::isTaken(Type type, AffineMap layout) const {
  SmallVector<unsigned> positions;
  for (AffineExpr position : layout.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(position))
      positions.push_back(dim.getPosition());
    else if (position != 0)
      return false;
  }
  llvm::SmallDenseSet<unsigned> distinct(positions.begin(), positions.end());
  if (distinct.size() != positions.size())
    return false;
  if (!isAlongRow(layout))
    return elements.takes(type, RowAccess::OncePerRow);
  bool isContiguous = positions.back() == row;
  if (!options.hasTransposed && isContiguous != (row + 1 == numLoops))
    return false;
  RowAccess access = isContiguous ? RowAccess::AlongRow : RowAccess::AcrossRow;
  return elements.takes(type, access);
}

bool RowGroup::areOperandsTaken(linalg::LinalgOp op,
                                ArrayRef<AffineExpr> loops) const {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap layout = toGroup(op.getMatchingIndexingMap(&operand), loops);
    auto type = cast<RankedTensorType>(operand.get().getType());
    for (auto [dim, position] : llvm::enumerate(layout.getResults()))
      if (isa<AffineConstantExpr>(position) && type.getDimSize(dim) != 1)
        return false;
    if (!isTaken(type, layout))
      return false;
  }
  // Numbers, which are read once a row; constants that a body takes from
  // outside are its own then.
  llvm::SetVector<Value> numbers;
  getUsedValuesDefinedAbove(op->getRegions(), numbers);
  numbers.remove_if(
      [](Value value) { return matchPattern(value, m_Constant()); });
  numbers.insert_range(op.getDpsInputs());
  for (Value number : numbers) {
    Type type = number.getType();
    if (isa<IndexType>(type))
      type = IntegerType::get(type.getContext(), 64);
    if (!isa<ShapedType>(type) && !elements.takes(type, RowAccess::OncePerRow))
      return false;
  }
  // Positions along rows, and along the two innermost loops of rows.
  for (auto index : op.getBlock()->getOps<linalg::IndexOp>())
    if (auto dim = dyn_cast<AffineDimExpr>(loops[index.getDim()]))
      if (toAxis(dim.getPosition()) > 1 && dim.getPosition() != row)
        return false;
  return true;
}

std::optional<RowGroup::Loops> RowGroup::loopsIn(linalg::LinalgOp op) const {
  // An output takes its sizes from what stands before the group.
  if (op.getNumDpsInits() != 1 ||
      layouts.contains(op.getDpsInitOperand(0)->get()))
    return std::nullopt;
  bool reduces = isRowReduction(op);
  if (!reduces && !isElementwise(op))
    return std::nullopt;
  std::optional<Loops> found = matchLoops(op);
  if (!found || !areOperandsTaken(op, *found) ||
      !isComplete(toGroup(initMapOf(op), *found)))
    return std::nullopt;
  AffineExpr along = getAffineDimExpr(row, op.getContext());
  if (reduces && (*found)[reductionLoopOf(op)] != along)
    return std::nullopt;
  return found;
}

AffineMap RowGroup::layoutOfReshape(Operation *op) const {
  if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return AffineMap();
  auto known = layouts.find(op->getOperand(0));
  if (known == layouts.end())
    return AffineMap();
  AffineMap layout = known->second;
  AffineExpr zero = getAffineConstantExpr(0, op->getContext());
  SmallVector<AffineExpr> positions;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    for (const ReassociationIndices &group :
         collapse.getReassociationIndices()) {
      AffineExpr &position = positions.emplace_back(zero);
      for (int64_t dim : group) {
        if (layout.getResult(dim) == zero)
          continue;
        if (position != zero)
          return AffineMap();
        position = layout.getResult(dim);
      }
    }
  } else {
    auto expand = cast<tensor::ExpandShapeOp>(op);
    // A number has no groups of dimensions.
    if (layout.getNumResults() == 0)
      positions.assign(expand.getResultType().getRank(), zero);
    for (auto [dim, group] :
         llvm::enumerate(expand.getReassociationIndices())) {
      AffineExpr position = layout.getResult(dim);
      for (int64_t part : group) {
        bool isUnit = expand.getResultType().getDimSize(part) == 1;
        if (!isUnit && position == zero)
          return AffineMap();
        // Of units alone the last one has the loop.
        bool isHere = !isUnit || part == group.back();
        positions.push_back(isHere ? position : zero);
        if (isHere)
          position = zero;
      }
    }
  }
  AffineMap result = AffineMap::get(numLoops, 0, positions, op->getContext());
  return isComplete(result) && isAlongRow(result) == isAlongRow(layout)
             ? result
             : AffineMap();
}

void RowGroup::addOutside(linalg::LinalgOp op) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap access = accessOf(op, operand);
    if (!layouts.contains(operand->get()) && isAlongRow(access) &&
        isComplete(access))
      outside.try_emplace(operand->get(), access);
  }
}

/// Whether dimensions lie in the order of loops.
static bool isInOrder(AffineMap layout) {
  SmallVector<unsigned> positions;
  for (AffineExpr position : layout.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(position))
      positions.push_back(dim.getPosition());
  return llvm::is_sorted(positions);
}

/// Elementwise operators whose results the seed reads along all loops.
void RowGroup::addProducers() {
  SmallVector<linalg::LinalgOp> next = {seed};
  while (!next.empty()) {
    linalg::LinalgOp op = next.pop_back_val();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
      AffineMap access = accessOf(op, operand);
      if (!options.hasProducers || !producer || isMember(producer) ||
          producer->getBlock() != block || !isElementwise(producer) ||
          !isAlongRow(access) || !isComplete(access) ||
          (!options.hasTransposed && !isInOrder(access)))
        continue;
      Loops ofProducer(producer.getNumLoops());
      (void)unify(initMapOf(producer), access, ofProducer);
      if (!areOperandsTaken(producer, ofProducer))
        continue;
      add(producer, ofProducer);
      next.push_back(producer);
    }
    addOutside(op);
  }
}

void RowGroup::addProducersOf(linalg::LinalgOp op, Producers &producers) {
  for (Value operand : op.getDpsInputs()) {
    auto producer = operand.getDefiningOp<linalg::LinalgOp>();
    if (!producer || isMember(producer) ||
        producers.behind.contains(producer) ||
        producers.rejected.contains(producer) ||
        producer->getBlock() != block || !isElementwise(producer))
      continue;
    size_t before = producers.added.size();
    addProducersOf(producer, producers);
    std::optional<Loops> found = loopsIn(producer);
    if (!found || !isAlongRow(toGroup(initMapOf(producer), *found))) {
      removeAdded(producers, before);
      producers.rejected.insert(producer);
      continue;
    }
    add(producer, *found);
    producers.added.push_back(producer);
  }
}

void RowGroup::removeAdded(Producers &producers, size_t count) {
  while (producers.added.size() > count) {
    linalg::LinalgOp op = producers.added.pop_back_val();
    loops.erase(op);
    layouts.erase(op->getResult(0));
  }
}

bool RowGroup::addReduction(linalg::LinalgOp op, const BehindOps &behind) {
  Producers producers{behind, {}, {}};
  std::optional<Loops> found = loopsIn(op);
  if (!found && options.hasProducers) {
    addProducersOf(op, producers);
    found = loopsIn(op);
  }
  if (!found) {
    removeAdded(producers, 0);
    return false;
  }
  add(op, *found);
  producers.added.push_back(op);
  for (linalg::LinalgOp member : producers.added) {
    members.push_back(member);
    addOutside(member);
  }
  return true;
}

void RowGroup::addConsumers() {
  BehindOps behind;
  for (Operation &operation : *block) {
    Operation *op = &operation;
    bool isBehind = false, uses = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *definition = operand.getDefiningOp();
        isBehind |= definition && behind.contains(definition);
        uses |= layouts.contains(operand);
      }
    });
    auto member = dyn_cast<linalg::LinalgOp>(op);
    if (isMember(op) && !isBehind) {
      members.push_back(member);
      continue;
    }
    if (isMember(op)) {
      // It joined in front of the first reduction, but comes behind another.
      loops.erase(op);
      layouts.erase(op->getResult(0));
    }
    // Reductions of the same rows are one operator, though neither needs the
    // other.
    if (!uses && !isBehind && !(member && isRowReduction(member)))
      continue;
    if (AffineMap layout = isBehind ? AffineMap() : layoutOfReshape(op)) {
      aliases.insert(op);
      layouts[op->getResult(0)] = layout;
      continue;
    }
    bool reduces = member && !isBehind && isRowReduction(member);
    if (reduces && addReduction(member, behind))
      continue;
    std::optional<Loops> found;
    if (member && !isBehind && !reduces)
      found = loopsIn(member);
    if (!found) {
      if (!uses && !isBehind)
        continue;
      behind.insert(op);
      // What has effects stays where it is, and so does all behind it.
      if (!isMemoryEffectFree(op))
        return;
      continue;
    }
    add(member, *found);
    members.push_back(member);
    addOutside(member);
  }
}

bool RowGroup::isConsistent() const {
  if (!llvm::is_contained(members, seed))
    return false;
  return llvm::all_of(members, [&](linalg::LinalgOp op) {
    return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
      auto known = layouts.find(operand->get());
      return known == layouts.end() || known->second == accessOf(op, operand);
    });
  });
}

void RowGroup::eraseMembers(RewriterBase &rewriter) {
  SmallVector<Operation *> ops(aliases.begin(), aliases.end());
  ops.append(members.begin(), members.end());
  // Users come first.
  llvm::sort(ops, [](Operation *lhs, Operation *rhs) {
    return rhs->isBeforeInBlock(lhs);
  });
  for (Operation *op : ops)
    if (op->use_empty())
      rewriter.eraseOp(op);
}

//===----------------------------------------------------------------------===//
// RowsBuilder
//===----------------------------------------------------------------------===//

/// A tensor without the dimensions that its layout has at 0, of extent 1.
std::pair<Value, AffineMap> withoutUnitDims(OpBuilder &b, Value value,
                                            AffineMap layout) {
  SmallVector<ReassociationIndices> groups;
  SmallVector<AffineExpr> positions;
  ReassociationIndices group;
  for (auto [dim, position] : llvm::enumerate(layout.getResults())) {
    group.push_back(dim);
    if (isa<AffineConstantExpr>(position))
      continue;
    groups.push_back(std::exchange(group, {}));
    positions.push_back(position);
  }
  if (positions.size() == layout.getNumResults())
    return {value, layout};
  if (!groups.empty())
    groups.back().append(group);
  return {tensor::CollapseShapeOp::create(b, value.getLoc(), value, groups),
          AffineMap::get(layout.getNumDims(), 0, positions, b.getContext())};
}

/// Makes the operator of a group.
class RowsBuilder {
public:
  RowsBuilder(RowGroup &group, RewriterBase &rewriter)
      : group(group), rewriter(rewriter) {
    for (linalg::LinalgOp op : group.members)
      if (std::optional<Accumulation> found = matchRowReduction(op)) {
        reductions.push_back(op);
        accumulations.try_emplace(op, *found);
      }
  }

  RowReductionOp build();
  /// Erases what `build` made, which may read values that go next.
  void discard(RowReductionOp op);
  /// Replaces the values that others use.
  void replaceOutputs(RowReductionOp op);

private:
  /// An element from outside, which is an argument of regions.
  struct Input {
    Value value;
    AffineMap map;
    bool isAlongRow;
    /// What the operator takes: the value without dimensions of extent 1, an
    /// integer for an index.
    Value operand;
    AffineMap operandMap;
  };
  struct Output {
    Value value;
    bool isAlongRow;
    Value tensor;
    AffineMap map;
  };

  /// A map over the group's loops as one over the axes: rows by the innermost
  /// first, then the row.
  AffineMap toAxes(AffineMap map) const;
  void collectInputs();
  void collectOutputs();
  unsigned addInput(Value value, AffineMap map);
  unsigned addScalar(Value value) {
    return addInput(value,
                    AffineMap::get(group.numLoops, 0, rewriter.getContext()));
  }
  Value argumentOf(unsigned input);
  void buildRegion(Region &region, bool ofRows, unsigned numResults,
                   linalg::LinalgOp reduction, ArrayRef<Value> yielded);
  Value inlineBody(linalg::LinalgOp op, Value accumulator);
  /// The result of a reduction, of what a row's accumulator is in the end.
  Value finish(linalg::LinalgOp reduction, Value accumulator);
  Value elementOf(Value value);

  RowGroup &group;
  RewriterBase &rewriter;
  SmallVector<linalg::LinalgOp> reductions;
  DenseMap<Operation *, Accumulation> accumulations;
  SmallVector<Input> inputs;
  /// Members' values that others use; those of rows first.
  SmallVector<Output> outputs;
  /// Of the region that is built: arguments of inputs, accumulators in the end,
  /// and values of members.
  SmallVector<Value> inputArguments;
  DenseMap<Value, Value> results, scalars;
};

AffineMap RowsBuilder::toAxes(AffineMap map) const {
  SmallVector<AffineExpr> axes;
  for (unsigned loop = 0; loop < group.numLoops; ++loop)
    axes.push_back(getAffineDimExpr(group.toAxis(loop), map.getContext()));
  return map.replaceDimsAndSymbols(axes, {}, group.numLoops, 0);
}

unsigned RowsBuilder::addInput(Value value, AffineMap map) {
  for (auto [number, input] : llvm::enumerate(inputs))
    if (input.value == value && input.map == map)
      return number;
  Value operand = value;
  if (value.getType().isIndex())
    operand = arith::IndexCastOp::create(rewriter, value.getLoc(),
                                         rewriter.getI64Type(), value);
  AffineMap operandMap = map;
  if (isa<RankedTensorType>(value.getType()))
    std::tie(operand, operandMap) = withoutUnitDims(rewriter, value, map);
  inputs.push_back(
      {value, map, group.isAlongRow(map), operand, toAxes(operandMap)});
  return inputs.size() - 1;
}

void RowsBuilder::collectInputs() {
  for (linalg::LinalgOp op : group.members) {
    for (OpOperand *operand : op.getDpsInputOperands())
      if (!group.layouts.contains(operand->get()) &&
          op.payloadUsesValueFromOperand(operand))
        addInput(operand->get(), group.accessOf(op, operand));
    // Values that bodies take from outside.
    op.getBlock()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() != op.getBlock() &&
            !matchPattern(operand, m_Constant()))
          addScalar(operand);
    });
    auto reduction = accumulations.find(op);
    if (reduction == accumulations.end() || !reduction->second.start)
      continue;
    Value start = reduction->second.start;
    if (isa<RankedTensorType>(start.getType()))
      addInput(start, group.accessOf(op, op.getDpsInitOperand(0)));
    else
      addScalar(start);
  }
}

void RowsBuilder::collectOutputs() {
  auto isUsedOutside = [&](Value value) {
    SmallVector<Value> aliased = {value};
    while (!aliased.empty())
      for (Operation *user : aliased.pop_back_val().getUsers()) {
        if (group.aliases.contains(user))
          aliased.push_back(user->getResult(0));
        else if (!group.isMember(user))
          return true;
      }
    return false;
  };
  for (bool alongRow : {false, true})
    for (linalg::LinalgOp op : group.members)
      if (Value value = op->getResult(0);
          group.isAlongRow(group.layouts.lookup(value)) == alongRow &&
          isUsedOutside(value))
        outputs.push_back({value, alongRow, Value(), AffineMap()});
  for (Output &output : outputs) {
    auto type = cast<RankedTensorType>(output.value.getType());
    Location loc = output.value.getLoc();
    Value init = output.value.getDefiningOp<linalg::LinalgOp>()
                     .getDpsInitOperand(0)
                     ->get();
    if (auto fill = init.getDefiningOp<linalg::FillOp>())
      init = fill.output();
    SmallVector<OpFoldResult> sizes;
    SmallVector<AffineExpr> positions;
    if (group.hasSingleRow) {
      sizes.push_back(rewriter.getIndexAttr(1));
      positions.push_back(rewriter.getAffineDimExpr(0));
    }
    SmallVector<OpFoldResult> own = tensor::getMixedSizes(rewriter, loc, init);
    for (auto [size, position] : llvm::zip_equal(
             own, group.layouts.lookup(output.value).getResults())) {
      if (isa<AffineConstantExpr>(position))
        continue;
      sizes.push_back(size);
      positions.push_back(position);
    }
    output.tensor =
        tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
    output.map = toAxes(
        AffineMap::get(group.numLoops, 0, positions, rewriter.getContext()));
  }
}

Value RowsBuilder::argumentOf(unsigned input) {
  Value argument = inputArguments[input];
  if (!inputs[input].value.getType().isIndex())
    return argument;
  return arith::IndexCastOp::create(rewriter, argument.getLoc(),
                                    rewriter.getIndexType(), argument);
}

/// The scalar that a value of a member, or an input, is at a point.
Value RowsBuilder::elementOf(Value value) {
  value = group.memberOf(value);
  if (Value known = scalars.lookup(value))
    return known;
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  Value accumulator = results.lookup(value);
  Value scalar =
      accumulator ? finish(op, accumulator) : inlineBody(op, Value());
  scalars[value] = scalar;
  return scalar;
}

Value RowsBuilder::finish(linalg::LinalgOp reduction, Value accumulator) {
  const Accumulation &how = accumulations.at(reduction);
  Location loc = reduction.getLoc();
  if (how.hasStart()) {
    Value start;
    if (how.constantStart)
      start = arith::ConstantOp::create(rewriter, loc,
                                        cast<TypedAttr>(how.constantStart));
    else if (isa<RankedTensorType>(how.start.getType()))
      start = argumentOf(
          addInput(how.start,
                   group.accessOf(reduction, reduction.getDpsInitOperand(0))));
    else
      start = argumentOf(addScalar(how.start));
    accumulator = createLike(rewriter, how.combining, how.name,
                             {widen(rewriter, start, how), accumulator});
  }
  return narrow(rewriter, accumulator,
                getElementTypeOrSelf(reduction->getResult(0).getType()));
}

Value RowsBuilder::inlineBody(linalg::LinalgOp op, Value accumulator) {
  Block &body = *op.getBlock();
  IRMapping mapping;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(operand))
      continue;
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    if (group.layouts.contains(operand->get()))
      mapping.map(argument, elementOf(operand->get()));
    else
      mapping.map(argument, argumentOf(addInput(operand->get(),
                                                group.accessOf(op, operand))));
  }
  auto valueOf = [&](Value value) -> Value {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    if (matchPattern(value, m_Constant()))
      return rewriter.clone(*value.getDefiningOp())->getResult(0);
    return argumentOf(addScalar(value));
  };
  const Accumulation *how = accumulator ? &accumulations.at(op) : nullptr;
  // Products that are added up are as wide as their sum.
  bool isWide = how && isa<FloatType>(how->type) && isSumOfProducts(op);
  for (Operation &inner : body.without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      auto dim = dyn_cast<AffineDimExpr>(group.loops.at(op)[index.getDim()]);
      mapping.map(
          index.getResult(),
          dim ? ukernel::IndexOp::create(rewriter, index.getLoc(),
                                         group.toAxis(dim.getPosition()))
                    .getResult()
              : arith::ConstantIndexOp::create(rewriter, index.getLoc(), 0)
                    .getResult());
      continue;
    }
    bool combines = how && &inner == how->combining;
    if (combines || (isWide && isa<arith::MulFOp>(inner))) {
      SmallVector<Value> operands;
      for (Value operand : inner.getOperands())
        operands.push_back(operand == op.getRegionOutputArgs().front()
                               ? accumulator
                               : widen(rewriter, valueOf(operand), *how));
      mapping.map(inner.getResult(0),
                  createLike(rewriter, &inner,
                             combines ? how->name : inner.getName(), operands));
      continue;
    }
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != &body)
        mapping.map(operand, valueOf(operand));
    rewriter.clone(inner, mapping);
  }
  return valueOf(body.getTerminator()->getOperand(0));
}

/// A region that takes elements of inputs (`ofRows`: those without the row
/// alone) and results of the first reductions, and yields the elements of these
/// values, or the next accumulator of a reduction.
void RowsBuilder::buildRegion(Region &region, bool ofRows, unsigned numResults,
                              linalg::LinalgOp reduction,
                              ArrayRef<Value> yielded) {
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = group.members.front().getLoc();
  Block *block = rewriter.createBlock(&region);
  inputArguments.assign(inputs.size(), Value());
  results.clear();
  scalars.clear();
  for (auto [argument, input] : llvm::zip_equal(inputArguments, inputs))
    if (!ofRows || !input.isAlongRow)
      argument = block->addArgument(
          getElementTypeOrSelf(input.operand.getType()), loc);
  for (linalg::LinalgOp before : ArrayRef(reductions).take_front(numResults))
    results[before->getResult(0)] =
        block->addArgument(accumulations.at(before).type, loc);
  SmallVector<Value> values;
  if (reduction)
    values.push_back(inlineBody(
        reduction, block->addArgument(accumulations.at(reduction).type, loc)));
  for (Value value : yielded)
    values.push_back(elementOf(value));
  ukernel::YieldOp::create(rewriter, loc, values);
}

RowReductionOp RowsBuilder::build() {
  Operation *last = group.members.back();
  rewriter.setInsertionPointAfter(last);
  collectInputs();
  collectOutputs();
  SmallVector<Value> values, tensors;
  SmallVector<AffineMap> maps;
  SmallVector<Type> types;
  for (const Input &input : inputs) {
    values.push_back(input.operand);
    maps.push_back(input.operandMap);
  }
  SmallVector<Value> ofRows, ofElements;
  for (const Output &output : outputs) {
    tensors.push_back(output.tensor);
    maps.push_back(output.map);
    types.push_back(output.tensor.getType());
    (output.isAlongRow ? ofElements : ofRows).push_back(output.value);
  }
  auto op = RowReductionOp::create(
      rewriter, last->getLoc(), types, values, tensors,
      rewriter.getAffineMapArrayAttr(maps),
      /*ranges=*/ArrayAttr(), /*plan=*/FlatSymbolRefAttr(),
      /*phase=*/IntegerAttr(),
      /*reductionsCount=*/reductions.size());
  for (auto [number, reduction] : llvm::enumerate(reductions))
    buildRegion(op.getReductions()[number], /*ofRows=*/false, number, reduction,
                {});
  buildRegion(op.getValues(), /*ofRows=*/true, reductions.size(), {}, ofRows);
  buildRegion(op.getMap(), /*ofRows=*/false, reductions.size(), {}, ofElements);
  return op;
}

void RowsBuilder::discard(RowReductionOp op) {
  // All of it lies between the group's last member and the operator.
  SmallVector<Operation *> made = {op};
  while (made.back()->getPrevNode() != group.members.back())
    made.push_back(made.back()->getPrevNode());
  for (Operation *operation : made)
    rewriter.eraseOp(operation);
}

void RowsBuilder::replaceOutputs(RowReductionOp op) {
  rewriter.setInsertionPointAfter(op);
  for (auto [output, result] : llvm::zip_equal(outputs, op.getResults())) {
    Value value = output.value, replacement = result;
    Location loc = value.getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    if (group.hasSingleRow) {
      // One row: its dimension goes, or is all there is.
      SmallVector<ReassociationIndices> groups;
      if (output.isAlongRow)
        groups.push_back({0, 1});
      replacement =
          tensor::CollapseShapeOp::create(rewriter, loc, replacement, groups);
    }
    auto own = cast<RankedTensorType>(replacement.getType());
    if (own.getRank() != type.getRank()) {
      // Dimensions of extent 1 lie before or behind others.
      SmallVector<ReassociationIndices> groups(own.getRank());
      SmallVector<OpFoldResult> given =
          tensor::getMixedSizes(rewriter, loc, replacement);
      SmallVector<OpFoldResult> sizes;
      SmallVector<int64_t> shape;
      int64_t next = 0;
      for (auto [dim, position] :
           llvm::enumerate(group.layouts.lookup(value).getResults())) {
        bool isUnit = isa<AffineConstantExpr>(position);
        if (!groups.empty())
          groups[isUnit ? std::max<int64_t>(next - 1, 0) : next].push_back(dim);
        sizes.push_back(isUnit ? rewriter.getIndexAttr(1) : given[next]);
        shape.push_back(isUnit ? 1 : own.getDimSize(next));
        next += !isUnit;
      }
      replacement = tensor::ExpandShapeOp::create(
          rewriter, loc, RankedTensorType::get(shape, own.getElementType()),
          replacement, groups, sizes);
    }
    if (replacement.getType() != type)
      replacement = tensor::CastOp::create(rewriter, loc, type, replacement);
    rewriter.replaceUsesWithIf(value, replacement, [&](OpOperand &use) {
      return !group.isMember(use.getOwner());
    });
  }
}

RowReductionOp RowGroup::build(RowsBuilder &builder, const PathSupport &support,
                               RewriterBase &rewriter) {
  RowReductionOp op = builder.build();
  bool isComputed = !op.getOutputs().empty();
  // The length of rows comes from an operand that lies along them.
  for (unsigned axis : llvm::seq(numLoops))
    isComputed &= static_cast<bool>(
        ukernel::OperatorOpInterface(op).getExtentSource(axis).first);
  if (isComputed) {
    // Whatever is wrong, the operators can stay as they are.
    ScopedDiagnosticHandler silence(op.getContext(),
                                    [](Diagnostic &) { return success(); });
    isComputed = succeeded(op.verifyRegions());
  }
  if (isComputed && !llvm::errorToBool(support.check(toWorkload(op))))
    return op;
  builder.discard(op);
  return {};
}

bool RowGroup::isComputed(const PathSupport &support, RewriterBase &rewriter) {
  if (!isConsistent())
    return false;
  RowsBuilder builder(*this, rewriter);
  RowReductionOp op = build(builder, support, rewriter);
  if (!op)
    return false;
  builder.discard(op);
  return true;
}

bool RowGroup::form(const PathSupport &support, RewriterBase &rewriter) {
  if (!isConsistent())
    return false;
  RowsBuilder builder(*this, rewriter);
  RowReductionOp op = build(builder, support, rewriter);
  if (!op)
    return false;
  ExtentAnalysis extents(op->getParentOfType<FunctionOpInterface>());
  extents.assumeAssertionsBefore(op);
  declareSizes(op, extents, rewriter);
  assertSizes(op, extents, rewriter, "rows");
  builder.replaceOutputs(op);
  // Others that use the group's values may have stood before its last member.
  sortTopologically(block);
  return true;
}

/// Whether anything of a function reduces.
bool reduces(FunctionOpInterface function) {
  return function
      ->walk([](Operation *op) {
        auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        bool isReduction = isa<linalg::SoftmaxOp>(op) ||
                           (linalgOp && linalgOp.getNumReductionLoops() != 0);
        return isReduction ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

int64_t ftuner::formRowReductions(FunctionOpInterface function,
                                  const PathSupport &support,
                                  const DenseSet<Value> &constants,
                                  RewriterBase &rewriter) {
  RowElements elements(support);
  if (!reduces(function) ||
      !elements.takes(rewriter.getF32Type(), RowAccess::AlongRow))
    return 0;
  normalizeRows(
      function,
      [&](Type type) { return elements.takes(type, RowAccess::AlongRow); },
      [&](linalg::LinalgOp seed) {
        return isRowReduction(seed) &&
               llvm::any_of(kGroupOptions, [&](RowGroupOptions options) {
                 return RowGroup(seed, options, elements)
                     .isComputed(support, rewriter);
               });
      },
      rewriter);
  SmallVector<linalg::LinalgOp> seeds;
  function->walk([&](linalg::LinalgOp op) {
    if (isRowReduction(op) && !hasConstantOperands(op, constants))
      seeds.push_back(op);
  });
  int64_t numFormed = 0;
  llvm::SmallPtrSet<Operation *, 16> taken;
  for (linalg::LinalgOp seed : seeds) {
    if (taken.contains(seed))
      continue;
    for (RowGroupOptions options : kGroupOptions) {
      RowGroup group(seed, options, elements);
      if (!group.form(support, rewriter))
        continue;
      for (linalg::LinalgOp member : group.getMembers())
        taken.insert(member);
      group.eraseMembers(rewriter);
      ++numFormed;
      break;
    }
  }
  return numFormed;
}
