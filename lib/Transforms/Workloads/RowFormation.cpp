//===- RowFormation.cpp - Reductions of rows to ukernel.row_reduction -----===//
#include "RowFormation.h"

#include "FTuner/Analysis/ConstantValues.h"
#include "OperatorSizes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ftuner;
using ukernel::RowReductionOp;

namespace {

/// What a value of a group has: an element for each of all points, or one for
/// each row.
enum class Reach { Elements, Rows };

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Whether a body computes with its arguments and constants alone.
bool isPlainBody(Block &body) {
  return llvm::all_of(body.without_terminator(), [&](Operation &op) {
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

bool isElementwise(linalg::LinalgOp op) {
  return isPlain(op) && op.getNumParallelLoops() == op.getNumLoops() &&
         !op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity();
}

/// The access to one element for each row: that along all loops but the last,
/// which may have a unit dimension of its own.
bool isRowAccess(AffineMap map, unsigned numLoops) {
  unsigned rank = map.getNumResults();
  if (rank == numLoops) {
    auto last = dyn_cast<AffineConstantExpr>(map.getResults().back());
    if (!last || last.getValue() != 0)
      return false;
    --rank;
  }
  if (rank + 1 != numLoops)
    return false;
  for (unsigned loop = 0; loop < rank; ++loop)
    if (map.getResult(loop) != getAffineDimExpr(loop, map.getContext()))
      return false;
  return true;
}

/// Whether the operator reduces the last of its loops alone, starting from what
/// an empty row gives, to one element for each row.
bool isRowReduction(linalg::LinalgOp op) {
  unsigned numLoops = op.getNumLoops();
  if (numLoops < 2 || numLoops > RowReductionOp::kMaxSpaceAxes + 1 ||
      !isPlain(op) || op.getNumReductionLoops() != 1 ||
      op.getIteratorTypesArray().back() != utils::IteratorType::reduction)
    return false;
  OpOperand *init = op.getDpsInitOperand(0);
  Type type = getElementTypeOrSelf(init->get().getType());
  Operation *combining = ukernel::findCombiningOp(*op.getBlock());
  if (!combining || (!type.isF32() && !type.isInteger(32)) ||
      !isRowAccess(op.getMatchingIndexingMap(init), numLoops))
    return false;
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combining);
  auto fill = init->get().getDefiningOp<linalg::FillOp>();
  Attribute start;
  return neutral && fill && matchPattern(fill.value(), m_Constant(&start)) &&
         start == *neutral;
}

/// Whether a reshape gives a tensor of rows a unit dimension behind the others,
/// or takes it away.
bool isUnitReshape(Operation *op) {
  auto check = [](RankedTensorType wide, RankedTensorType narrow,
                  ArrayRef<ReassociationIndices> groups) {
    return wide.getRank() == narrow.getRank() + 1 &&
           wide.getShape().back() == 1 && !groups.empty() &&
           groups.back().size() == 2;
  };
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return check(collapse.getSrcType(), collapse.getResultType(),
                 collapse.getReassociationIndices());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return check(expand.getResultType(), expand.getSrcType(),
                 expand.getReassociationIndices());
  return false;
}

//===----------------------------------------------------------------------===//
// RowGroup
//===----------------------------------------------------------------------===//

/// Which elements the codegen paths take that compute rows.
class RowElements {
public:
  explicit RowElements(const PathSupport &support) : support(support) {}

  bool takes(Type type) {
    auto [known, isNew] = taken.try_emplace(getElementTypeOrSelf(type), false);
    if (!isNew)
      return known->second;
    Workload sums = Workload::rowSums({}, {});
    Operand &input = sums.operands.front();
    input = Operand(input.role, input.axes, toElementType(type));
    known->second = !llvm::errorToBool(support.check(sums));
    return known->second;
  }
  /// Those that the operator reads and writes.
  bool take(linalg::LinalgOp op) {
    return llvm::all_of(op->getOperandTypes(),
                        [&](Type type) { return takes(type); });
  }

private:
  const PathSupport &support;
  DenseMap<Type, bool> taken;
};

/// Operators that become one.
class RowGroup {
public:
  /// `hasProducers`: elementwise operators before the seed may join.
  RowGroup(linalg::LinalgOp seed, bool hasProducers, RowElements &elements)
      : numLoops(seed.getNumLoops()), block(seed->getBlock()), seed(seed),
        elements(elements) {
    add(seed, Reach::Rows);
    addProducers(hasProducers);
    addConsumers();
  }

  /// In the order of the program, without reshapes.
  ArrayRef<linalg::LinalgOp> getMembers() const { return members; }
  /// Erases the members and reshapes that nobody uses any more.
  void eraseMembers(RewriterBase &rewriter);
  /// Makes one operator of them, where a path computes it.
  bool form(const PathSupport &support, RewriterBase &rewriter);

private:
  void add(linalg::LinalgOp op, Reach reach) {
    reaches[op->getResult(0)] = reach;
    joined.insert(op);
  }
  /// Whether an access of such a member fits: to another member's value, or to
  /// one from outside.
  bool isFit(linalg::LinalgOp op, OpOperand &operand, Reach reach) const;
  /// Whether an operator over all elements, or one over rows, belongs to the
  /// group.
  bool fits(linalg::LinalgOp op, Reach reach) const;
  /// What the operator would be in the group; nothing if it does not belong.
  std::optional<Reach> reachIn(linalg::LinalgOp op) const;
  /// Whether the operator has only rows, as loops or with a unit loop behind.
  bool hasRowsAlone(linalg::LinalgOp op) const;
  void addProducers(bool areJoined);
  void addConsumers();
  /// Whether the seed is among the members, and all their accesses fit: a value
  /// may have joined behind an operator that reads it along other loops.
  bool isConsistent() const;
  /// The value of a member that a value of the group is, behind reshapes.
  Value memberOf(Value value) const {
    while (true) {
      Operation *op = value.getDefiningOp();
      if (!op || !aliases.contains(op))
        return value;
      value = op->getOperand(0);
    }
  }

  unsigned numLoops;
  Block *block;
  linalg::LinalgOp seed;
  RowElements &elements;
  SmallVector<linalg::LinalgOp> members;
  llvm::SmallPtrSet<Operation *, 16> joined, aliases;
  llvm::MapVector<Value, Reach> reaches;
  /// Operands from outside that members read along all loops.
  llvm::SmallPtrSet<Value, 8> elementInputs;

  friend class RowsBuilder;
};

bool RowGroup::hasRowsAlone(linalg::LinalgOp op) const {
  if (op.getNumLoops() + 1 == numLoops)
    return true;
  return op.getNumLoops() == numLoops && op.getStaticLoopRanges().back() == 1;
}

bool RowGroup::isFit(linalg::LinalgOp op, OpOperand &operand,
                     Reach reach) const {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto known = reaches.find(operand.get());
  if (known != reaches.end()) {
    if (known->second == Reach::Elements)
      return reach == Reach::Elements && map.isIdentity();
    if (reach == Reach::Rows && map.isIdentity())
      return true;
    return isRowAccess(map, numLoops);
  }
  if (!map.isProjectedPermutation())
    return false;
  // A row is contiguous. Rows with a unit loop have no such access.
  for (auto [number, result] : llvm::enumerate(map.getResults()))
    if (cast<AffineDimExpr>(result).getPosition() + 1 == numLoops &&
        (reach == Reach::Rows || number + 1 != map.getNumResults()))
      return false;
  return true;
}

bool RowGroup::fits(linalg::LinalgOp op, Reach reach) const {
  // What tells that the loops are those of the group: an operand that members
  // have along all of them, or one of rows for an operator of rows.
  bool isAlongside = false;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!isFit(op, *operand, reach))
      return false;
    auto known = reaches.find(operand->get());
    isAlongside |= known != reaches.end()
                       ? known->second == reach
                       : reach == Reach::Elements &&
                             op.getMatchingIndexingMap(operand).isIdentity() &&
                             elementInputs.contains(operand->get());
  }
  return isAlongside;
}

std::optional<Reach> RowGroup::reachIn(linalg::LinalgOp op) const {
  // An output takes its sizes from what stands before the group.
  if (reaches.contains(op.getDpsInitOperand(0)->get()) || !elements.take(op))
    return std::nullopt;
  bool hasElements = op.getNumLoops() == numLoops;
  if (isRowReduction(op))
    return hasElements && fits(op, Reach::Elements) ? std::optional(Reach::Rows)
                                                    : std::nullopt;
  if (!isElementwise(op))
    return std::nullopt;
  // Rows of one element may be both.
  if (hasElements && fits(op, Reach::Elements))
    return Reach::Elements;
  if (hasRowsAlone(op) && fits(op, Reach::Rows))
    return Reach::Rows;
  return std::nullopt;
}

/// Elementwise operators whose results the first reduction reads along rows.
void RowGroup::addProducers(bool areJoined) {
  llvm::SetVector<linalg::LinalgOp> next;
  auto visit = [&](linalg::LinalgOp op) {
    for (OpOperand *operand : op.getDpsInputOperands()) {
      if (!op.getMatchingIndexingMap(operand).isIdentity())
        continue;
      auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
      bool joins =
          areJoined && producer && producer->getBlock() == block &&
          producer.getNumLoops() == numLoops && isElementwise(producer) &&
          elements.take(producer) &&
          llvm::all_of(producer.getDpsInputOperands(), [&](OpOperand *input) {
            return isFit(producer, *input, Reach::Elements);
          });
      if (joins)
        next.insert(producer);
      else
        elementInputs.insert(operand->get());
    }
  };
  visit(seed);
  while (!next.empty()) {
    linalg::LinalgOp op = next.pop_back_val();
    if (joined.contains(op))
      continue;
    add(op, Reach::Elements);
    visit(op);
  }
}

void RowGroup::addConsumers() {
  Operation *first = *joined.begin();
  for (Operation *op : joined)
    if (op->isBeforeInBlock(first))
      first = op;
  // What needs the group's values and is behind it.
  llvm::SmallPtrSet<Operation *, 16> behind;
  for (auto it = first->getIterator(); it != block->end(); ++it) {
    Operation *op = &*it;
    bool isBehind = false, uses = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *definition = operand.getDefiningOp();
        isBehind |= definition && behind.contains(definition);
        uses |= reaches.contains(operand);
      }
    });
    auto member = dyn_cast<linalg::LinalgOp>(op);
    if (joined.contains(op) && !isBehind) {
      members.push_back(member);
      continue;
    }
    if (joined.contains(op)) {
      // It joined in front of the first reduction, but comes behind another.
      joined.erase(op);
      reaches.erase(op->getResult(0));
    }
    // Reductions of the same rows are one operator, though neither needs the
    // other.
    if (!uses && !isBehind && !(member && isRowReduction(member)))
      continue;
    if (!isBehind && isUnitReshape(op) &&
        reaches.lookup(op->getOperand(0)) == Reach::Rows) {
      aliases.insert(op);
      reaches[op->getResult(0)] = Reach::Rows;
      continue;
    }
    std::optional<Reach> reach =
        member && !isBehind ? reachIn(member) : std::nullopt;
    if (!reach) {
      if (!uses && !isBehind)
        continue;
      behind.insert(op);
      // What has effects stays where it is, and so does all behind it.
      if (!isMemoryEffectFree(op))
        return;
      continue;
    }
    add(member, *reach);
    members.push_back(member);
    if (*reach == Reach::Rows && isElementwise(member))
      continue;
    for (OpOperand *operand : member.getDpsInputOperands())
      if (member.getMatchingIndexingMap(operand).isIdentity() &&
          !reaches.contains(operand->get()))
        elementInputs.insert(operand->get());
  }
}

bool RowGroup::isConsistent() const {
  if (!llvm::is_contained(members, seed))
    return false;
  return llvm::all_of(members, [&](linalg::LinalgOp op) {
    bool isOfRows =
        isElementwise(op) && reaches.lookup(op->getResult(0)) == Reach::Rows;
    return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
      return isFit(op, *operand, isOfRows ? Reach::Rows : Reach::Elements);
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

/// Makes the operator of a group.
class RowsBuilder {
public:
  RowsBuilder(RowGroup &group, RewriterBase &rewriter)
      : group(group), rewriter(rewriter) {
    for (linalg::LinalgOp op : group.members)
      if (isRowReduction(op))
        reductions.push_back(op);
  }

  RowReductionOp build();
  /// Replaces the values that others use.
  void replaceOutputs(RowReductionOp op);

private:
  /// An element from outside, which is an argument of regions.
  struct Input {
    Value value;
    AffineMap map;
    bool isAlongRow;
  };

  /// A map over a member's loops as one over the axes: rows by the innermost
  /// first, then the row.
  AffineMap toAxes(AffineMap map) const;
  AffineMap outputMap(Reach reach) const;
  void collectInputs();
  void collectOutputs();
  unsigned numberOf(Value value, AffineMap map);
  void buildRegion(Region &region, bool ofRows, unsigned numResults,
                   linalg::LinalgOp reduction, ArrayRef<Value> yielded);
  Value inlineBody(linalg::LinalgOp op, Value accumulator);
  Value elementOf(Value value);

  RowGroup &group;
  RewriterBase &rewriter;
  SmallVector<linalg::LinalgOp> reductions;
  SmallVector<Input> inputs;
  /// Members' values that others use; those of rows first.
  SmallVector<Value> outputs;
  SmallVector<Value> outputTensors;
  /// Of the region that is built: arguments of inputs, and values of members.
  SmallVector<Value> inputArguments;
  DenseMap<Value, Value> scalars;
};

AffineMap RowsBuilder::toAxes(AffineMap map) const {
  unsigned row = group.numLoops - 1;
  SmallVector<AffineExpr> axes;
  for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
    axes.push_back(
        getAffineDimExpr(loop < row ? row - 1 - loop : row, map.getContext()));
  return map.replaceDimsAndSymbols(axes, {}, row + 1, 0);
}

AffineMap RowsBuilder::outputMap(Reach reach) const {
  unsigned row = group.numLoops - 1;
  AffineMap all =
      AffineMap::getMultiDimIdentityMap(row + 1, rewriter.getContext());
  return toAxes(reach == Reach::Elements ? all : all.dropResult(row));
}

unsigned RowsBuilder::numberOf(Value value, AffineMap map) {
  for (auto [number, input] : llvm::enumerate(inputs))
    if (input.value == value && input.map == map)
      return number;
  inputs.push_back({value, map, map.isFunctionOfDim(group.numLoops - 1)});
  return inputs.size() - 1;
}

void RowsBuilder::collectInputs() {
  AffineMap scalar = AffineMap::get(group.numLoops, 0, rewriter.getContext());
  for (linalg::LinalgOp op : group.members) {
    for (OpOperand *operand : op.getDpsInputOperands())
      if (!group.reaches.contains(operand->get()) &&
          op.payloadUsesValueFromOperand(operand))
        numberOf(operand->get(), toAxes(op.getMatchingIndexingMap(operand)));
    // Values that bodies take from outside.
    op.getBlock()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() != op.getBlock() &&
            !matchPattern(operand, m_Constant()))
          numberOf(operand, scalar);
    });
  }
}

void RowsBuilder::collectOutputs() {
  auto isUsedOutside = [&](Value value) {
    SmallVector<Value> aliased = {value};
    while (!aliased.empty())
      for (Operation *user : aliased.pop_back_val().getUsers()) {
        if (group.aliases.contains(user))
          aliased.push_back(user->getResult(0));
        else if (!group.joined.contains(user))
          return true;
      }
    return false;
  };
  for (Reach reach : {Reach::Rows, Reach::Elements})
    for (linalg::LinalgOp op : group.members)
      if (Value value = op->getResult(0);
          group.reaches.lookup(value) == reach && isUsedOutside(value))
        outputs.push_back(value);
  for (Value value : outputs) {
    auto type = cast<RankedTensorType>(value.getType());
    Value init =
        value.getDefiningOp<linalg::LinalgOp>().getDpsInitOperand(0)->get();
    if (auto fill = init.getDefiningOp<linalg::FillOp>())
      init = fill.output();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, value.getLoc(), init);
    bool isRows = group.reaches.lookup(value) == Reach::Rows;
    if (isRows)
      sizes.truncate(group.numLoops - 1);
    outputTensors.push_back(tensor::EmptyOp::create(
        rewriter, value.getLoc(), sizes, type.getElementType()));
  }
}

/// The scalar that a value of a member, or an input, is at a point.
Value RowsBuilder::elementOf(Value value) {
  value = group.memberOf(value);
  if (Value known = scalars.lookup(value))
    return known;
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  Value scalar = inlineBody(op, Value());
  scalars[value] = scalar;
  return scalar;
}

Value RowsBuilder::inlineBody(linalg::LinalgOp op, Value accumulator) {
  Block &body = *op.getBlock();
  IRMapping mapping;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(operand))
      continue;
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    if (group.reaches.contains(operand->get()))
      mapping.map(argument, elementOf(operand->get()));
    else
      mapping.map(
          argument,
          inputArguments[numberOf(operand->get(),
                                  toAxes(op.getMatchingIndexingMap(operand)))]);
  }
  if (accumulator)
    mapping.map(op.getRegionOutputArgs().front(), accumulator);
  AffineMap scalar = AffineMap::get(group.numLoops, 0, rewriter.getContext());
  for (Operation &inner : body.without_terminator()) {
    for (Value operand : inner.getOperands()) {
      if (operand.getParentBlock() == &body || mapping.contains(operand))
        continue;
      if (matchPattern(operand, m_Constant()))
        rewriter.clone(*operand.getDefiningOp(), mapping);
      else
        mapping.map(operand, inputArguments[numberOf(operand, scalar)]);
    }
    rewriter.clone(inner, mapping);
  }
  Value result = body.getTerminator()->getOperand(0);
  if (result.getParentBlock() != &body && !mapping.contains(result)) {
    if (matchPattern(result, m_Constant()))
      return rewriter.clone(*result.getDefiningOp())->getResult(0);
    return inputArguments[numberOf(result, scalar)];
  }
  return mapping.lookup(result);
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
  scalars.clear();
  for (auto [argument, input] : llvm::zip_equal(inputArguments, inputs))
    if (!ofRows || !input.isAlongRow)
      argument =
          block->addArgument(getElementTypeOrSelf(input.value.getType()), loc);
  auto typeOf = [](linalg::LinalgOp op) {
    return getElementTypeOrSelf(op->getResult(0).getType());
  };
  for (linalg::LinalgOp before : ArrayRef(reductions).take_front(numResults))
    scalars[before->getResult(0)] = block->addArgument(typeOf(before), loc);
  SmallVector<Value> values;
  if (reduction)
    values.push_back(
        inlineBody(reduction, block->addArgument(typeOf(reduction), loc)));
  for (Value value : yielded)
    values.push_back(elementOf(value));
  ukernel::YieldOp::create(rewriter, loc, values);
}

RowReductionOp RowsBuilder::build() {
  Operation *last = group.members.back();
  rewriter.setInsertionPointAfter(last);
  collectInputs();
  collectOutputs();
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  SmallVector<Type> types;
  for (const Input &input : inputs) {
    values.push_back(input.value);
    maps.push_back(input.map);
  }
  for (auto [value, tensor] : llvm::zip_equal(outputs, outputTensors)) {
    maps.push_back(outputMap(group.reaches.lookup(value)));
    types.push_back(tensor.getType());
  }
  auto op = RowReductionOp::create(
      rewriter, last->getLoc(), types, values, outputTensors,
      rewriter.getAffineMapArrayAttr(maps),
      /*ranges=*/ArrayAttr(), /*plan=*/FlatSymbolRefAttr(),
      /*reductionsCount=*/reductions.size());
  for (auto [number, reduction] : llvm::enumerate(reductions))
    buildRegion(op.getReductions()[number], /*ofRows=*/false, number, reduction,
                {});
  unsigned numRows = llvm::count_if(outputs, [&](Value value) {
    return group.reaches.lookup(value) == Reach::Rows;
  });
  buildRegion(op.getValues(), /*ofRows=*/true, reductions.size(), {},
              ArrayRef(outputs).take_front(numRows));
  buildRegion(op.getMap(), /*ofRows=*/false, reductions.size(), {},
              ArrayRef(outputs).drop_front(numRows));
  return op;
}

void RowsBuilder::replaceOutputs(RowReductionOp op) {
  rewriter.setInsertionPointAfter(op);
  for (auto [value, result] : llvm::zip_equal(outputs, op.getResults())) {
    Value replacement = result;
    auto type = cast<RankedTensorType>(value.getType());
    if (auto own = cast<RankedTensorType>(result.getType());
        own.getRank() != type.getRank()) {
      SmallVector<ReassociationIndices> groups;
      for (int64_t dim = 0; dim < own.getRank(); ++dim)
        groups.push_back({dim});
      groups.back().push_back(own.getRank());
      SmallVector<OpFoldResult> sizes =
          tensor::getMixedSizes(rewriter, value.getLoc(), result);
      sizes.push_back(rewriter.getIndexAttr(1));
      SmallVector<int64_t> shape(own.getShape());
      shape.push_back(1);
      replacement = tensor::ExpandShapeOp::create(
          rewriter, value.getLoc(),
          RankedTensorType::get(shape, own.getElementType()), result, groups,
          sizes);
    }
    if (replacement.getType() != type)
      replacement =
          tensor::CastOp::create(rewriter, value.getLoc(), type, replacement);
    rewriter.replaceUsesWithIf(value, replacement, [&](OpOperand &use) {
      return !group.joined.contains(use.getOwner());
    });
  }
}

bool RowGroup::form(const PathSupport &support, RewriterBase &rewriter) {
  if (!isConsistent())
    return false;
  RowsBuilder builder(*this, rewriter);
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
  if (!isComputed || llvm::errorToBool(support.check(toWorkload(op)))) {
    rewriter.eraseOp(op);
    return false;
  }
  ExtentAnalysis extents(op->getParentOfType<FunctionOpInterface>());
  extents.assumeAssertionsBefore(op);
  declareSizes(op, extents, rewriter);
  assertSizes(op, extents, rewriter, "rows");
  builder.replaceOutputs(op);
  // Others that use the group's values may have stood before its last member.
  sortTopologically(block);
  return true;
}

} // namespace

/// A named softmax as its parts.
static void decomposeSoftmax(FunctionOpInterface function,
                             RewriterBase &rewriter) {
  SmallVector<linalg::SoftmaxOp> ops;
  function->walk([&](linalg::SoftmaxOp op) {
    if (op.hasPureTensorSemantics())
      ops.push_back(op);
  });
  for (linalg::SoftmaxOp op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> parts = op.decomposeOperation(rewriter);
    if (succeeded(parts))
      rewriter.replaceOp(op, *parts);
  }
}

int64_t ftuner::formRowReductions(FunctionOpInterface function,
                                  const PathSupport &support,
                                  const DenseSet<Value> &constants,
                                  RewriterBase &rewriter) {
  RowElements elements(support);
  if (!elements.takes(rewriter.getF32Type()))
    return 0;
  decomposeSoftmax(function, rewriter);
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
    // Without what comes before, where no path computes it.
    for (bool hasProducers : {true, false}) {
      RowGroup group(seed, hasProducers, elements);
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
