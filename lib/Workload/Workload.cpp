//===- Workload.cpp - One operator with its iteration space ---------------===//
#include "FTuner/Workload/Workload.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

using namespace ftuner;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Workloads
//===----------------------------------------------------------------------===//

unsigned Workload::mainAxis() const {
  // Dynamic axes before fixed ones, open ranges before closed ones.
  auto rank = [&](unsigned index) {
    const Axis &axis = axes[index];
    return std::make_tuple(axis.isDynamic(), axis.range.isOpen(),
                           axis.range.max.value_or(maxExtent));
  };
  AxisSet candidates = spaceAxes();
  if (std::optional<ContractionView> product = asContraction())
    candidates = {product->m, product->n};
  unsigned best = candidates.empty() ? 0 : candidates.list().front();
  for (unsigned axis : candidates.list())
    if (rank(axis) > rank(best))
      best = axis;
  return best;
}

unsigned Workload::largestSpaceAxis() const {
  auto extent = [&](unsigned axis) {
    return axes[axis].range.max.value_or(maxExtent);
  };
  AxisSet space = spaceAxes();
  unsigned best = space.empty() ? 0 : space.list().front();
  for (unsigned axis : space.list())
    if (extent(axis) > extent(best))
      best = axis;
  return best;
}

AxisSet Workload::reduceAxes() const {
  AxisSet result;
  for (const Computation &computation : computations)
    result = result | computation.reduce;
  return result;
}

AxisSet Workload::spaceAxes() const {
  return AxisSet::first(axes.size()) - reduceAxes();
}

const Operand *Workload::find(OperandRole role) const {
  auto it = llvm::find_if(
      operands, [&](const Operand &operand) { return operand.role == role; });
  return it == operands.end() ? nullptr : &*it;
}

int64_t ftuner::modularInverse(int64_t value, int64_t modulus) {
  // Extended Euclid: value · x ≡ r modulo `modulus` throughout.
  int64_t r = value, x = 1;
  int64_t nextR = modulus, nextX = 0;
  while (nextR != 0) {
    int64_t quotient = r / nextR;
    r = std::exchange(nextR, r - quotient * nextR);
    x = std::exchange(nextX, x - quotient * nextX);
  }
  return (x % modulus + modulus) % modulus;
}

const Computation *Workload::reduction() const {
  auto it = llvm::find_if(computations, [](const Computation &computation) {
    return computation.isReduction();
  });
  return it == computations.end() ? nullptr : &*it;
}

const Computation &Workload::mainComputation() const {
  const Computation *found = reduction();
  return found ? *found : computations.front();
}

Computation *Workload::reduction() {
  return const_cast<Computation *>(std::as_const(*this).reduction());
}

std::optional<int64_t> Workload::contiguousRun(const Operand &operand) const {
  if (operand.windows.empty())
    return std::nullopt;
  std::optional<AffineForm::Term> term = operand.windows.back().asTerm();
  if (!term)
    return 1;
  if (term->loop == AffineForm::Term::wholeAxis)
    return std::nullopt;
  const std::vector<Loop> &loops = axes[term->axis].loops;
  const SizeRange &extent = loops[term->loop].range;
  return term->loop + 1 == loops.size() && extent.isFixed() ? extent.min : 1;
}

const Computation *Workload::epilogue() const {
  if (computations.empty() || computations.back().isReduction())
    return nullptr;
  return &computations.back();
}

ElementType Workload::accumulatorType() const {
  const Computation *found = reduction();
  return found && !found->state->accumulators.empty()
             ? found->state->accumulators.front().type
             : ElementType::F32;
}

void ftuner::setReduction(Workload &workload, AxisSet reduce,
                          std::vector<Operations> operations, State state,
                          std::vector<Operations> epilogue) {
  AxisSet all = AxisSet::first(workload.axes.size());
  Computation reduction, epilogueComputation;
  reduction.name = "reduction";
  reduction.axes = all;
  reduction.reduce = reduce;
  reduction.operations = std::move(operations);
  reduction.state = std::move(state);
  epilogueComputation.name = "epilogue";
  epilogueComputation.axes = all - reduce;
  epilogueComputation.reads = {Read::computation(0)};
  epilogueComputation.operations = std::move(epilogue);
  llvm::SmallVector<unsigned, 2> outputs;
  for (auto [number, operand] : llvm::enumerate(workload.operands)) {
    if (isInput(operand.role) || operand.role == OperandRole::Init)
      reduction.reads.push_back(Read::operand(number));
    else if (operand.role == OperandRole::Extra)
      epilogueComputation.reads.push_back(Read::operand(number));
    else
      outputs.push_back(number);
  }
  bool hasEpilogue = !epilogueComputation.operations.empty() ||
                     epilogueComputation.reads.size() > 1;
  (hasEpilogue ? epilogueComputation : reduction).writes = outputs;
  workload.computations = {std::move(reduction)};
  if (hasEpilogue)
    workload.computations.push_back(std::move(epilogueComputation));
}

static llvm::Error checkRange(llvm::StringRef kind, llvm::StringRef name,
                              const SizeRange &range) {
  if (range.min < 0 || range.min > maxExtent)
    return llvm::createStringError(
        kind + " '" + name + "': expected a least size from 0 to " +
        Twine(maxExtent) + ", but got " + Twine(range.min));
  if (range.step < 1)
    return llvm::createStringError(kind + " '" + name +
                                   "': expected a positive step, but got " +
                                   Twine(range.step));
  if (range.step > maxExtent)
    return llvm::createStringError(
        kind + " '" + name + "': expected a step up to " + Twine(maxExtent) +
        ", but got " + Twine(range.step));
  if (range.max && *range.max > maxExtent)
    return llvm::createStringError(
        kind + " '" + name + "': expected a largest size up to " +
        Twine(maxExtent) + ", but got " + Twine(*range.max));
  if (range.max && *range.max < range.min)
    return llvm::createStringError(
        kind + " '" + name + "': expected min <= max, but got " +
        Twine(range.min) + " > " + Twine(*range.max));
  return llvm::Error::success();
}

/// The axis's name, with the sizes that the user named if it is a product.
static std::string describe(const Axis &axis) {
  if (axis.symbols.empty() || (axis.symbols.size() == 1 && axis.factor == 1))
    return axis.name;
  std::string product = axis.factor == 1 ? "" : std::to_string(axis.factor);
  for (const std::string &symbol : axis.symbols)
    product += (product.empty() ? "" : " * ") + symbol;
  return axis.name + " = " + product;
}

static llvm::Error checkFactor(const Axis &axis) {
  if (axis.factor < 1 || axis.factor > maxExtent)
    return llvm::createStringError(
        "axis '" + axis.name + "': expected a factor from 1 to " +
        Twine(maxExtent) + ", but got " + Twine(axis.factor));
  return llvm::Error::success();
}

static llvm::Error checkWeights(const Axis &axis) {
  double sum = 0;
  for (const SizeWeight &entry : axis.weights) {
    if (!axis.range.contains(entry.size))
      return llvm::createStringError(
          "axis '" + axis.name +
          "': expected weights for sizes of its range, but got "
          "size " +
          Twine(entry.size));
    if (!std::isfinite(entry.weight) || entry.weight < 0)
      return llvm::createStringError(
          "axis '" + axis.name +
          "': expected weights that are at least 0 and finite, "
          "but size " +
          Twine(entry.size) + " has another");
    sum += entry.weight;
  }
  if (!axis.weights.empty() && !(sum > 0 && std::isfinite(sum)))
    return llvm::createStringError("axis '" + axis.name +
                                   "': expected weights with a positive sum");
  return llvm::Error::success();
}

static llvm::Error checkOperand(const Workload &workload, unsigned index) {
  const Operand &operand = workload.operands[index];
  unsigned numAxes = workload.axes.size();
  auto checkAxis = [&](unsigned axis) -> llvm::Error {
    if (axis < numAxes)
      return llvm::Error::success();
    return llvm::createStringError("operand " + Twine(index) +
                                   ": expected axes below " + Twine(numAxes) +
                                   ", but got " + Twine(axis));
  };
  for (unsigned axis : operand.axes)
    if (llvm::Error error = checkAxis(axis))
      return error;
  if (operand.elementBytes != bytesOf(operand.elementType))
    return llvm::createStringError("operand " + Twine(index) + ": expected " +
                                   Twine(bytesOf(operand.elementType)) +
                                   " bytes for an element of " +
                                   nameOf(operand.elementType) + ", but got " +
                                   Twine(operand.elementBytes));
  for (const Operand::Indirection &entry : operand.indirections) {
    if (entry.dim >= operand.rank() ||
        entry.indexOperand >= workload.operands.size() ||
        entry.indexOperand == index ||
        !isInteger(workload.operands[entry.indexOperand].elementType))
      return llvm::createStringError(
          "operand " + Twine(index) +
          ": expected positions by another operand, of integers, "
          "along one of its dimensions");
  }
  if (operand.windows.empty())
    return llvm::Error::success();
  if (operand.windows.size() != operand.axes.size())
    return llvm::createStringError(
        "operand " + Twine(index) + ": expected a position for " + "each of " +
        Twine(operand.axes.size()) + " dimensions, but got " +
        Twine(operand.windows.size()));
  for (auto [dim, form] : llvm::enumerate(operand.windows)) {
    for (const AffineForm::Term &term : form.terms) {
      if (llvm::Error error = checkAxis(term.axis))
        return error;
      if (term.coefficient == 0)
        return llvm::createStringError(
            "operand " + Twine(index) +
            ": expected coefficients that are not 0");
      size_t loops = workload.axes[term.axis].loops.size();
      if (term.loop != AffineForm::Term::wholeAxis && term.loop >= loops)
        return llvm::createStringError(
            "operand " + Twine(index) + ": expected one of the " +
            Twine(loops) + " loops of axis '" + workload.axes[term.axis].name +
            "', but got " + Twine(term.loop));
    }
    auto isOfAxis = [axis = operand.axes[dim]](const AffineForm::Term &term) {
      return term.axis == axis;
    };
    if (llvm::count_if(form.terms, isOfAxis) < 1)
      return llvm::createStringError(
          "operand " + Twine(index) + ": expected axis " +
          Twine(operand.axes[dim]) + " in the position along " + "dimension " +
          Twine(dim));
  }
  return llvm::Error::success();
}

/// That the loops of a fused axis have sizes, and make up fixed extents.
static llvm::Error checkLoops(const Axis &axis) {
  double product = 1;
  for (const Loop &loop : axis.loops) {
    if (llvm::Error error = checkRange("loop", loop.name, loop.range))
      return error;
    product *= loop.range.isFixed() ? double(loop.range.min) : 0;
  }
  if (axis.isFused() && product > 0 &&
      !(axis.range.isFixed() && double(axis.range.min) == product))
    return llvm::createStringError("axis '" + axis.name +
                                   "': expected the extent of its loops, " +
                                   Twine(uint64_t(product)));
  return llvm::Error::success();
}

static llvm::Error checkOperations(llvm::ArrayRef<Operations> operations) {
  for (const Operations &entry : operations)
    if (!std::isfinite(entry.count) || entry.count < 0)
      return llvm::createStringError(
          "expected counts of operations that are at least 0");
  return llvm::Error::success();
}

static llvm::Error checkState(const Workload &workload, unsigned index) {
  const Computation &computation = workload.computations[index];
  if (!computation.state) {
    if (computation.reduce.empty())
      return llvm::Error::success();
    return llvm::createStringError("computation '" + computation.name +
                                   "': expected a state, for it reduces axes");
  }
  const State &state = *computation.state;
  if (state.accumulators.empty())
    return llvm::createStringError("computation '" + computation.name +
                                   "': expected accumulators");
  for (const Accumulator &accumulator : state.accumulators)
    if (!computation.space().containsAll(accumulator.invariantAxes))
      return llvm::createStringError(
          "computation '" + computation.name + "': expected accumulator '" +
          accumulator.name + "' to lack space axes of its computation alone");
  if (state.correctedBy && (*state.correctedBy >= index ||
                            !workload.computations[*state.correctedBy].state))
    return llvm::createStringError(
        "computation '" + computation.name +
        "': expected an earlier state that scales its own");
  for (llvm::ArrayRef<Operations> operations :
       {llvm::ArrayRef(state.mergeOperations), llvm::ArrayRef(state.finalize)})
    if (llvm::Error error = checkOperations(operations))
      return error;
  return llvm::Error::success();
}

/// That a computation writes outputs, and no element of them twice.
static llvm::Error checkWrites(const Workload &workload,
                               const Computation &computation) {
  for (auto [position, number] : llvm::enumerate(computation.writes)) {
    if (number >= workload.operands.size() ||
        workload.operands[number].role != OperandRole::Output)
      return llvm::createStringError(
          "computation '" + computation.name +
          "': expected outputs that it writes, but operand " + Twine(number) +
          " is none");
    if (computation.state && position >= computation.state->accumulators.size())
      return llvm::createStringError(
          "computation '" + computation.name +
          "': expected an accumulator for each output");
    AxisSet axes = AxisSet::containing(workload.operands[number].axes);
    AxisSet written = computation.space();
    if (computation.state)
      written =
          written - computation.state->accumulators[position].invariantAxes;
    if (axes != written)
      return llvm::createStringError(
          "computation '" + computation.name +
          "': expected an output along its space axes, but "
          "operand " +
          Twine(number) + " has others");
  }
  return llvm::Error::success();
}

static llvm::Error checkComputation(const Workload &workload, unsigned index) {
  const Computation &computation = workload.computations[index];
  auto fail = [&](const Twine &text) {
    return llvm::createStringError("computation '" + computation.name +
                                   "': " + text);
  };
  AxisSet all = AxisSet::first(workload.axes.size());
  if (!all.containsAll(computation.axes))
    return fail("expected axes below " + Twine(workload.axes.size()));
  if (!computation.axes.containsAll(computation.reduce))
    return fail("expected to reduce axes of its own");
  for (const Read &read : computation.reads) {
    if (!read.isComputation()) {
      if (read.number >= workload.operands.size())
        return fail("expected operands below " +
                    Twine(workload.operands.size()) + ", but got " +
                    Twine(read.number));
      continue;
    }
    if (read.number >= index)
      return fail("expected to read earlier computations alone");
    if (!computation.axes.containsAll(
            workload.computations[read.number].space()))
      return fail("expected the space axes of '" +
                  workload.computations[read.number].name +
                  "', which it reads");
  }
  if (llvm::Error error = checkState(workload, index))
    return error;
  if (llvm::Error error = checkOperations(computation.operations))
    return error;
  return checkWrites(workload, computation);
}

static llvm::Error checkInequality(const Workload &workload,
                                   const Inequality &inequality) {
  for (const AffineForm::Term &term : inequality.form.terms) {
    if (term.axis >= workload.axes.size() || term.coefficient == 0)
      return llvm::createStringError("domain: expected axes below " +
                                     Twine(workload.axes.size()) +
                                     " with coefficients that are not 0");
    if (size_t loops = workload.axes[term.axis].loops.size();
        term.loop != AffineForm::Term::wholeAxis && term.loop >= loops)
      return llvm::createStringError("domain: expected loops of axis '" +
                                     workload.axes[term.axis].name +
                                     "' below " + Twine(loops));
  }
  for (const Inequality::OperandTerm &term : inequality.operands)
    if (term.operand >= workload.operands.size() ||
        !isInteger(workload.operands[term.operand].elementType))
      return llvm::createStringError("domain: expected operands of integers");
  if (inequality.form.terms.empty() && inequality.operands.empty())
    return llvm::createStringError(
        "domain: expected conditions of axes or operands");
  return llvm::Error::success();
}

llvm::Error Workload::check() const {
  if (axes.empty() || axes.size() > maxAxes)
    return llvm::createStringError("expected a workload with 1 to " +
                                   Twine(maxAxes) + " axes, but got " +
                                   Twine(axes.size()));
  for (const Axis &axis : axes) {
    if (llvm::Error error = checkRange("axis", describe(axis), axis.range))
      return error;
    if (llvm::Error error = checkFactor(axis))
      return error;
    if (llvm::Error error = checkLoops(axis))
      return error;
    if (llvm::Error error = checkWeights(axis))
      return error;
  }
  for (unsigned index = 0; index < operands.size(); ++index)
    if (llvm::Error error = checkOperand(*this, index))
      return error;
  if (computations.empty())
    return llvm::createStringError("expected a workload with computations");
  for (unsigned index = 0; index < computations.size(); ++index)
    if (llvm::Error error = checkComputation(*this, index))
      return error;
  for (const Inequality &inequality : domain)
    if (llvm::Error error = checkInequality(*this, inequality))
      return error;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    auto writes = [number = unsigned(index)](const Computation &computation) {
      return llvm::count(computation.writes, number);
    };
    int64_t count = 0;
    for (const Computation &computation : computations)
      count += writes(computation);
    if (operand.role == OperandRole::Output && count != 1)
      return llvm::createStringError(
          "operand " + Twine(index) +
          ": expected an output that one computation writes, but "
          "got " +
          Twine(count));
  }
  if (llvm::none_of(operands, [](const Operand &operand) {
        return operand.role == OperandRole::Output;
      }))
    return llvm::createStringError("expected an output operand");
  double sum = 0;
  for (const Computation &computation : computations)
    sum += flopsOf(computation.operations);
  // Points may move elements and compute nothing.
  if (!std::isfinite(sum) || sum < 0 || (sum == 0 && reduction()))
    return llvm::createStringError(
        "expected a positive number of operations per point");
  return llvm::Error::success();
}

Workload Workload::vectorSum(SizeRange p) {
  Workload workload;
  workload.name = "vector_sum";
  workload.axes = {{"P", p}};
  workload.operands = {{OperandRole::Input, {0}},
                       {OperandRole::Input, {0}},
                       {OperandRole::Output, {0}}};
  Computation map;
  map.name = "map";
  map.axes = {0};
  map.reads = {Read::operand(0), Read::operand(1)};
  map.operations = {{OperationKind::Add}};
  map.writes = {2};
  workload.computations = {map};
  return workload;
}

Workload Workload::rowSums(SizeRange m, SizeRange r) {
  Workload workload;
  workload.name = "row_sums";
  workload.axes = {{"M", m}, {"R", r}};
  workload.operands = {{OperandRole::Input, {0, 1}},
                       {OperandRole::Output, {0}}};
  Computation sum, values;
  sum.name = "sum";
  sum.axes = {0, 1};
  sum.reduce = {1};
  sum.reads = {Read::operand(0)};
  sum.operations = {{OperationKind::Add}};
  sum.state.emplace();
  values.name = "values";
  values.axes = {0};
  values.reads = {Read::computation(0)};
  values.writes = {1};
  workload.computations = {std::move(sum), std::move(values)};
  return workload;
}
