//===- RowGroup.cpp - Operators that one row reduction computes -----------===//
#include "RowGroup.h"
#include "RowAccumulation.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace ftuner;

bool RowElements::areSupported(Type type, RowAccess access) {
  type = getElementTypeOrSelf(type);
  auto [answer, isNew] =
      known.try_emplace({type, static_cast<unsigned>(access)}, false);
  if (!isNew)
    return answer->second;
  Workload sums = Workload::rowSums({}, {});
  bool isOncePerRow = access == RowAccess::OncePerRow;
  Operand &operand = sums.operands[isOncePerRow];
  if (access == RowAccess::AcrossRow)
    std::swap(operand.axes.front(), operand.axes.back());
  operand = Operand(operand.role, operand.axes, toElementType(type));
  answer->second = support.supports(sums);
  return answer->second;
}

RowGroup::RowGroup(linalg::LinalgOp seed, RowGroupOptions options,
                   RowElements &elements)
    : block(seed->getBlock()), seed(seed), options(options), elements(elements),
      isSingleRow(seed.getNumLoops() == 1),
      numLoops(seed.getNumLoops() + isSingleRow),
      row(getReductionLoop(seed) + isSingleRow) {
  Loops own;
  for (unsigned loop = isSingleRow; loop < numLoops; ++loop)
    own.push_back(getAffineDimExpr(loop, seed.getContext()));
  if (!areOperandsSupported(seed, own))
    return;
  add(seed, own);
  addProducers();
  addConsumers();
  llvm::sort(members, [](linalg::LinalgOp lhs, linalg::LinalgOp rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
}

bool RowGroup::isConsistent() const {
  if (!llvm::is_contained(members, seed))
    return false;
  return llvm::all_of(members, [&](linalg::LinalgOp op) {
    return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
      auto known = layouts.find(operand->get());
      return known == layouts.end() || known->second == getAccess(op, operand);
    });
  });
}

Value RowGroup::skipReshapes(Value value) const {
  for (Operation *op = value.getDefiningOp(); op && isReshape(op);
       op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

bool RowGroup::isComplete(AffineMap layout) const {
  for (unsigned loop = isSingleRow; loop < numLoops; ++loop)
    if (loop != row && !layout.isFunctionOfDim(loop))
      return false;
  return true;
}

void RowGroup::add(linalg::LinalgOp op, Loops opLoops) {
  layouts[op->getResult(0)] = toGroup(getInitMap(op), opLoops);
  loops[op] = std::move(opLoops);
}

void RowGroup::remove(linalg::LinalgOp op) {
  loops.erase(op);
  layouts.erase(op->getResult(0));
}

//===----------------------------------------------------------------------===//
// Matching of loops
//===----------------------------------------------------------------------===//

/// Fills in the loops of an operator that reads a value of this layout by
/// `map`, a map over its loops. Returns false if they contradict known loops.
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

bool RowGroup::isSupported(Type type, AffineMap layout) const {
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
    return elements.areSupported(type, RowAccess::OncePerRow);
  bool isContiguous = positions.back() == row;
  if (!options.hasTransposed && isContiguous != (row + 1 == numLoops))
    return false;
  RowAccess access = isContiguous ? RowAccess::AlongRow : RowAccess::AcrossRow;
  return elements.areSupported(type, access);
}

bool RowGroup::areScalarsSupported(linalg::LinalgOp op) const {
  // Constants that a body takes from outside become part of the row's bodies.
  llvm::SetVector<Value> scalars;
  getUsedValuesDefinedAbove(op->getRegions(), scalars);
  scalars.remove_if(
      [](Value value) { return matchPattern(value, m_Constant()); });
  scalars.insert_range(op.getDpsInputs());
  return llvm::all_of(scalars, [&](Value scalar) {
    Type type = scalar.getType();
    if (isa<IndexType>(type))
      type = IntegerType::get(type.getContext(), 64);
    return isa<ShapedType>(type) ||
           elements.areSupported(type, RowAccess::OncePerRow);
  });
}

bool RowGroup::areOperandsSupported(linalg::LinalgOp op,
                                    ArrayRef<AffineExpr> loops) const {
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type)
      continue;
    AffineMap layout = toGroup(op.getMatchingIndexingMap(&operand), loops);
    for (auto [dim, position] : llvm::enumerate(layout.getResults()))
      if (isa<AffineConstantExpr>(position) && type.getDimSize(dim) != 1)
        return false;
    if (!isSupported(type, layout))
      return false;
  }
  if (!areScalarsSupported(op))
    return false;
  // Rows know positions along the row and along the two innermost loops of
  // rows.
  for (auto index : op.getBlock()->getOps<linalg::IndexOp>())
    if (auto dim = dyn_cast<AffineDimExpr>(loops[index.getDim()]))
      if (toAxis(dim.getPosition()) > 1 && dim.getPosition() != row)
        return false;
  return true;
}

std::optional<RowGroup::Loops>
RowGroup::matchMember(linalg::LinalgOp op) const {
  // An output takes its sizes from values before the group.
  if (op.getNumDpsInits() != 1 || isValue(op.getDpsInitOperand(0)->get()))
    return std::nullopt;
  bool reduces = isRowReduction(op);
  if (!reduces && !isElementwise(op))
    return std::nullopt;
  std::optional<Loops> found = matchLoops(op);
  if (!found || !areOperandsSupported(op, *found) ||
      !isComplete(toGroup(getInitMap(op), *found)))
    return std::nullopt;
  AffineExpr along = getAffineDimExpr(row, op.getContext());
  if (reduces && (*found)[getReductionLoop(op)] != along)
    return std::nullopt;
  return found;
}

/// Returns the layout of a collapsed value: of each group of dimensions at most
/// one is not of extent 1. Null for other reshapes.
static AffineMap collapseLayout(tensor::CollapseShapeOp op, AffineMap layout) {
  AffineExpr zero = getAffineConstantExpr(0, op->getContext());
  SmallVector<AffineExpr> positions;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    AffineExpr &position = positions.emplace_back(zero);
    for (int64_t dim : group) {
      if (layout.getResult(dim) == zero)
        continue;
      if (position != zero)
        return AffineMap();
      position = layout.getResult(dim);
    }
  }
  return AffineMap::get(layout.getNumDims(), 0, positions, op->getContext());
}

/// Returns the layout of an expanded value: of each group of dimensions at most
/// one is not of extent 1. Null for other reshapes.
static AffineMap expandLayout(tensor::ExpandShapeOp op, AffineMap layout) {
  AffineExpr zero = getAffineConstantExpr(0, op->getContext());
  SmallVector<AffineExpr> positions;
  // A number has no groups of dimensions.
  if (layout.getNumResults() == 0)
    positions.assign(op.getResultType().getRank(), zero);
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    AffineExpr position = layout.getResult(dim);
    for (int64_t part : group) {
      bool isUnit = op.getResultType().getDimSize(part) == 1;
      if (!isUnit && position == zero)
        return AffineMap();
      // If all are of extent 1, the last one has the loop.
      bool isHere = !isUnit || part == group.back();
      positions.push_back(isHere ? position : zero);
      if (isHere)
        position = zero;
    }
  }
  return AffineMap::get(layout.getNumDims(), 0, positions, op->getContext());
}

AffineMap RowGroup::getReshapedLayout(Operation *op) const {
  if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return AffineMap();
  auto known = layouts.find(op->getOperand(0));
  if (known == layouts.end())
    return AffineMap();
  AffineMap layout = known->second;
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
  AffineMap result =
      collapse ? collapseLayout(collapse, layout)
               : expandLayout(cast<tensor::ExpandShapeOp>(op), layout);
  return result && isComplete(result) &&
                 isAlongRow(result) == isAlongRow(layout)
             ? result
             : AffineMap();
}

//===----------------------------------------------------------------------===//
// Growth of the group
//===----------------------------------------------------------------------===//

void RowGroup::recordOutsideOperands(linalg::LinalgOp op) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap access = getAccess(op, operand);
    if (!isValue(operand->get()) && isAlongRow(access) && isComplete(access))
      outside.try_emplace(operand->get(), access);
  }
}

/// Returns true if dimensions lie in the order of loops.
static bool isInOrder(AffineMap layout) {
  SmallVector<unsigned> positions;
  for (AffineExpr position : layout.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(position))
      positions.push_back(dim.getPosition());
  return llvm::is_sorted(positions);
}

void RowGroup::addProducers() {
  SmallVector<linalg::LinalgOp> next = {seed};
  while (!next.empty()) {
    linalg::LinalgOp op = next.pop_back_val();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
      AffineMap access = getAccess(op, operand);
      if (!options.hasProducers || !producer || isMember(producer) ||
          producer->getBlock() != block || !isElementwise(producer) ||
          !isAlongRow(access) || !isComplete(access) ||
          (!options.hasTransposed && !isInOrder(access)))
        continue;
      Loops producerLoops(producer.getNumLoops());
      (void)unify(getInitMap(producer), access, producerLoops);
      if (!areOperandsSupported(producer, producerLoops))
        continue;
      add(producer, producerLoops);
      next.push_back(producer);
    }
    recordOutsideOperands(op);
  }
}

void RowGroup::addProducersOf(linalg::LinalgOp op, Producers &producers) {
  for (Value operand : op.getDpsInputs()) {
    auto producer = operand.getDefiningOp<linalg::LinalgOp>();
    if (!producer || isMember(producer) || producers.later.contains(producer) ||
        producers.rejected.contains(producer) ||
        producer->getBlock() != block || !isElementwise(producer))
      continue;
    size_t before = producers.added.size();
    addProducersOf(producer, producers);
    std::optional<Loops> found = matchMember(producer);
    if (!found || !isAlongRow(toGroup(getInitMap(producer), *found))) {
      removeAdded(producers, before);
      producers.rejected.insert(producer);
      continue;
    }
    add(producer, *found);
    producers.added.push_back(producer);
  }
}

void RowGroup::removeAdded(Producers &producers, size_t count) {
  while (producers.added.size() > count)
    remove(producers.added.pop_back_val());
}

bool RowGroup::addReduction(linalg::LinalgOp op, const LaterOps &later) {
  Producers producers{later, {}, {}};
  std::optional<Loops> found = matchMember(op);
  if (!found && options.hasProducers) {
    addProducersOf(op, producers);
    found = matchMember(op);
  }
  if (!found) {
    removeAdded(producers, 0);
    return false;
  }
  add(op, *found);
  producers.added.push_back(op);
  for (linalg::LinalgOp member : producers.added) {
    members.push_back(member);
    recordOutsideOperands(member);
  }
  return true;
}

void RowGroup::addConsumers() {
  LaterOps later;
  for (Operation &operation : *block) {
    Operation *op = &operation;
    bool isLater = false, uses = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *definition = operand.getDefiningOp();
        isLater |= definition && later.contains(definition);
        uses |= isValue(operand);
      }
    });
    auto member = dyn_cast<linalg::LinalgOp>(op);
    if (isMember(op) && !isLater) {
      members.push_back(member);
      continue;
    }
    // An operator may join before the first reduction, and yet depend on an
    // operator after it.
    if (isMember(op))
      remove(member);
    // Reductions of the same rows are one operator even if neither needs the
    // other.
    if (!uses && !isLater && !(member && isRowReduction(member)))
      continue;
    if (AffineMap layout = isLater ? AffineMap() : getReshapedLayout(op)) {
      reshapes.insert(op);
      layouts[op->getResult(0)] = layout;
      continue;
    }
    bool reduces = member && !isLater && isRowReduction(member);
    if (reduces && addReduction(member, later))
      continue;
    std::optional<Loops> found;
    if (member && !isLater && !reduces)
      found = matchMember(member);
    if (!found) {
      if (!uses && !isLater)
        continue;
      later.insert(op);
      // An operation with effects stays where it is, and so do all after it.
      if (!isMemoryEffectFree(op))
        return;
      continue;
    }
    add(member, *found);
    members.push_back(member);
    recordOutsideOperands(member);
  }
}
