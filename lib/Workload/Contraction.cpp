//===- Contraction.cpp - Products as nests --------------------------------===//
#include "FTuner/Workload/Contraction.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

std::optional<unsigned> Operand::contiguousAxis() const {
  if (axes.empty())
    return std::nullopt;
  if (isPacked)
    return matmulAxes.k;
  if (windows.empty())
    return axes.back();
  // Space axes come before the reduce axis k, among axes and among terms.
  return windows.back().terms.front().axis;
}

PackedOrder Workload::packedOrder() const {
  return {axes[matmulAxes.k].range.min, axes[matmulAxes.n].range.min,
          find(OperandRole::Rhs)->elementBytes};
}

/// Checks that only an rhs is packed, and that it has only the axes k and n,
/// both of fixed size in whole steps and groups.
static llvm::Error checkPacked(const Workload &workload) {
  for (auto [index, operand] : llvm::enumerate(workload.operands)) {
    if (!operand.isPacked)
      continue;
    auto isFixed = [&, &operand = operand](unsigned axis) {
      return llvm::is_contained(operand.axes, axis) &&
             workload.axes[axis].range.isFixed();
    };
    if (operand.role != OperandRole::Rhs || operand.rank() != 2 ||
        !isFixed(matmulAxes.k) || !isFixed(matmulAxes.n) ||
        !workload.packedOrder().isWhole())
      return llvm::createStringError(
          "operand " + Twine(index) +
          ": expected a packed right operand of fixed k and n, in "
          "whole steps of " +
          Twine(PackedOrder::kStepBytes) + " bytes and whole groups of " +
          Twine(PackedOrder::kGroup));
  }
  return llvm::Error::success();
}

/// Returns whether the computation multiplies two factors, and adds the
/// products to one sum.
static bool isProduct(const Computation &computation) {
  const std::optional<State> &state = computation.state;
  return state && state->merge == Merge::Sum &&
         state->accumulators.size() == 1 && !state->correctedBy &&
         state->finalize.empty() && computation.reads.size() >= 2 &&
         computation.operations.size() == 1 &&
         computation.operations.front().kind == OperationKind::MultiplyAdd &&
         computation.operations.front().count == 1;
}

/// Returns whether the computations are at most a prologue for each factor, a
/// product, and at most an epilogue.
static bool isProductNest(const Workload &workload) {
  const Computation *product = workload.reduction();
  if (!product || !isProduct(*product))
    return false;
  size_t number = product - workload.computations.data();
  size_t numAfter = workload.computations.size() - number - 1;
  if (number > 2 || numAfter > 1 || (numAfter == 1 && !workload.epilogue()))
    return false;
  size_t prologues = 0;
  for (const Read &read : product->reads)
    prologues += read.isComputation();
  return prologues == number;
}

llvm::Error Workload::checkContraction() const {
  auto [m, n, k] = matmulAxes;
  if (axes.size() < 3)
    return llvm::createStringError(
        "expected a workload with axes M, N and K, but got " +
        Twine(axes.size()));
  AxisSet reduce = reduceAxes();
  for (auto [index, axis] : llvm::enumerate(axes))
    if (reduce.contains(index) != (index == k))
      return llvm::createStringError(
          "axis '" + axis.name + "': expected a " +
          (index == k ? "reduce" : "space") +
          " axis, since axes are M, N, K, then batch axes");
  auto count = [&](OperandRole role) {
    return llvm::count_if(
        operands, [&](const Operand &operand) { return operand.role == role; });
  };
  if (count(OperandRole::Lhs) != 1 || count(OperandRole::Rhs) != 1 ||
      count(OperandRole::Output) != 1)
    return llvm::createStringError(
        "expected one left, one right and one output operand");
  if (!isProductNest(*this))
    return llvm::createStringError("expected a sum of products");
  for (auto [index, operand] : llvm::enumerate(operands))
    if (operand.role == OperandRole::Input &&
        llvm::is_contained(operand.axes, m) &&
        llvm::is_contained(operand.axes, n))
      return llvm::createStringError("operand " + Twine(index) +
                                     ": expected an input of one factor");
  for (auto [index, operand] : llvm::enumerate(operands)) {
    bool isFactor =
        operand.role == OperandRole::Lhs || operand.role == OperandRole::Rhs;
    if ((operand.hasWindows() && !isFactor) || !operand.indirections.empty())
      return llvm::createStringError("operand " + Twine(index) +
                                     ": expected dimensions of one axis each");
    unsigned other = operand.role == OperandRole::Lhs ? n : m;
    for (const AffineForm &form : operand.windows)
      for (const AffineForm::Term &term : form.terms)
        if (term.axis == other)
          return llvm::createStringError(
              "operand " + Twine(index) +
              ": expected windows without the other factor's "
              "axis '" +
              axes[other].name + "'");
  }
  if (!domain.empty())
    return llvm::createStringError("expected every point of the axes");
  return checkPacked(*this);
}

bool Workload::isContraction() const {
  llvm::Error error = checkContraction();
  bool holds = !error;
  llvm::consumeError(std::move(error));
  return holds;
}

std::optional<ContractionView> Workload::asContraction() const {
  if (!isContraction())
    return std::nullopt;
  return ContractionView(*this);
}

//===----------------------------------------------------------------------===//
// The view
//===----------------------------------------------------------------------===//

ContractionView::ContractionView(const Workload &workload)
    : ContractionAxes(ContractionAxes::forReduceAxes(workload.reduceAxes())),
      workload(&workload) {}

const Computation *ContractionView::prologue(unsigned factor) const {
  const Read &read = product().reads[factor];
  return read.isComputation() ? &workload->computations[read.number] : nullptr;
}

llvm::ArrayRef<Operations>
ContractionView::prologueOperations(unsigned factor) const {
  const Computation *found = prologue(factor);
  return found ? llvm::ArrayRef(found->operations)
               : llvm::ArrayRef<Operations>();
}

llvm::ArrayRef<Operations> ContractionView::epilogueOperations() const {
  const Computation *found = workload->epilogue();
  return found ? llvm::ArrayRef(found->operations)
               : llvm::ArrayRef<Operations>();
}

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

void ftuner::setContraction(Workload &workload, const ContractionParts &parts) {
  auto [m, n, k] = matmulAxes;
  AxisSet all = AxisSet::first(workload.axes.size());
  Operations multiply;
  multiply.operandType = parts.multipliedType;
  multiply.resultType = parts.accumulatorType;
  multiply.truncates = parts.truncatesFactors;
  State sum;
  sum.accumulators.front().type = parts.accumulatorType;
  setReduction(workload, {k}, {multiply}, std::move(sum), parts.epilogue);
  // In place of the operands: the factors, in their order, then init.
  std::vector<Computation> prologues;
  llvm::SmallVector<Read> reads;
  for (unsigned factor : {0, 1}) {
    unsigned other = factor == 0 ? n : m;
    llvm::SmallVector<Read> ofFactor;
    for (auto [number, operand] : llvm::enumerate(workload.operands))
      if (operand.role == (factor == 0 ? OperandRole::Lhs : OperandRole::Rhs) ||
          (operand.role == OperandRole::Input &&
           !parts.prologues[factor].empty() &&
           !llvm::is_contained(operand.axes, other)))
        ofFactor.push_back(Read::operand(number));
    if (parts.prologues[factor].empty()) {
      reads.append(ofFactor);
      continue;
    }
    Computation prologue;
    prologue.name = factor == 0 ? "left" : "right";
    prologue.axes = all - AxisSet{other};
    prologue.reads.assign(ofFactor.begin(), ofFactor.end());
    prologue.operations = parts.prologues[factor];
    reads.push_back(Read::computation(prologues.size()));
    prologues.push_back(std::move(prologue));
  }
  Computation &product = *workload.reduction();
  product.name = "product";
  for (const Read &read : product.reads)
    if (workload.operands[read.number].role == OperandRole::Init)
      reads.push_back(read);
  product.reads.assign(reads.begin(), reads.end());
  for (Computation &epilogue : llvm::drop_begin(workload.computations))
    for (Read &read : epilogue.reads)
      if (read.isComputation())
        read.number += prologues.size();
  workload.computations.insert(workload.computations.begin(), prologues.begin(),
                               prologues.end());
}

ContractionParts ftuner::contractionParts(const Workload &workload) {
  ContractionView view(workload);
  ContractionParts parts;
  parts.multipliedType = view.multipliedType();
  parts.accumulatorType = workload.accumulatorType();
  parts.truncatesFactors = view.truncatesFactors();
  for (unsigned factor : {0, 1})
    parts.prologues[factor] = view.prologueOperations(factor).vec();
  parts.epilogue = view.epilogueOperations().vec();
  return parts;
}

void ftuner::changeContraction(
    Workload &workload, llvm::function_ref<void(ContractionParts &)> change) {
  ContractionParts parts = contractionParts(workload);
  change(parts);
  setContraction(workload, parts);
}

Workload Workload::matmul(SizeRange rows, SizeRange columns, SizeRange depth,
                          bool transposeLhs, bool transposeRhs) {
  Workload workload;
  workload.name = "matmul";
  workload.axes = {{"M", rows}, {"N", columns}, {"K", depth}};
  auto operand = [](OperandRole role, unsigned outer, unsigned inner) {
    return Operand(role, {outer, inner});
  };
  auto [m, n, k] = matmulAxes;
  workload.operands = {transposeLhs ? operand(OperandRole::Lhs, k, m)
                                    : operand(OperandRole::Lhs, m, k),
                       transposeRhs ? operand(OperandRole::Rhs, n, k)
                                    : operand(OperandRole::Rhs, k, n),
                       operand(OperandRole::Output, m, n)};
  setContraction(workload, ContractionParts());
  return workload;
}

Workload Workload::batchMatmul(SizeRange batch, SizeRange m, SizeRange n,
                               SizeRange k, bool transposeLhs,
                               bool transposeRhs) {
  Workload workload = matmul(m, n, k, transposeLhs, transposeRhs);
  workload.name = "batch_matmul";
  workload.axes.push_back({"B", batch});
  for (Operand &operand : workload.operands)
    operand.axes.insert(operand.axes.begin(), workload.axes.size() - 1);
  setContraction(workload, ContractionParts());
  return workload;
}
