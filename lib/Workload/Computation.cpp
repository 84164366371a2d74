//===- Computation.cpp - One of the computations of an operator -----------===//
#include "FTuner/Workload/Computation.h"
#include "llvm/Support/ErrorHandling.h"

using namespace ftuner;

std::optional<AffineForm::Term> AffineForm::asTerm() const {
  if (constant != 0 || terms.size() != 1 || terms.front().coefficient != 1)
    return std::nullopt;
  return terms.front();
}

std::optional<unsigned> AffineForm::asAxis() const {
  std::optional<Term> term = asTerm();
  if (!term || term->loop != Term::wholeAxis)
    return std::nullopt;
  return term->axis;
}

llvm::StringRef ftuner::nameOf(OperationUnit unit) {
  switch (unit) {
  case OperationUnit::MultiplyAdd:
    return "multiply-add";
  case OperationUnit::Arithmetic:
    return "arithmetic";
  case OperationUnit::Special:
    return "special";
  case OperationUnit::Other:
    return "other";
  }
  llvm_unreachable("every unit has a name");
}

llvm::StringRef ftuner::nameOf(Merge merge) {
  switch (merge) {
  case Merge::Sum:
    return "sum";
  case Merge::Product:
    return "product";
  case Merge::Maximum:
    return "maximum";
  case Merge::Minimum:
    return "minimum";
  case Merge::ScaledSums:
    return "scaled-sums";
  case Merge::Moments:
    return "moments";
  case Merge::Other:
    return "other";
  }
  llvm_unreachable("every merge has a name");
}

std::vector<Operations> State::operationsOfMerge() const {
  if (!mergeOperations.empty())
    return mergeOperations;
  OperationKind kind = OperationKind::Add;
  if (merge == Merge::Product)
    kind = OperationKind::Multiply;
  else if (merge == Merge::Maximum || merge == Merge::Minimum)
    kind = OperationKind::Extreme;
  ElementType type = accumulators.front().type;
  return {{kind, type, type}};
}

OperationUnit Operations::unit() const {
  switch (kind) {
  case OperationKind::MultiplyAdd:
    return OperationUnit::MultiplyAdd;
  case OperationKind::Divide:
    return isInteger(operandType) ? OperationUnit::Arithmetic
                                  : OperationUnit::Special;
  case OperationKind::Function:
    return OperationUnit::Special;
  case OperationKind::Add:
  case OperationKind::Multiply:
  case OperationKind::Extreme:
  case OperationKind::Bitwise:
    return OperationUnit::Arithmetic;
  case OperationKind::Compare:
  case OperationKind::Select:
  case OperationKind::Cast:
    return OperationUnit::Other;
  }
  llvm_unreachable("every kind has a unit");
}

double Operations::flops() const {
  switch (unit()) {
  case OperationUnit::MultiplyAdd:
    return 2 * count;
  case OperationUnit::Arithmetic:
  case OperationUnit::Special:
    return count;
  case OperationUnit::Other:
    return 0;
  }
  llvm_unreachable("every unit counts");
}

double ftuner::flopsOf(llvm::ArrayRef<Operations> operations) {
  double flops = 0;
  for (const Operations &entry : operations)
    flops += entry.flops();
  return flops;
}

double ftuner::specialsOf(llvm::ArrayRef<Operations> operations) {
  double count = 0;
  for (const Operations &entry : operations)
    if (entry.unit() == OperationUnit::Special)
      count += entry.count;
  return count;
}

AxisSet Inequality::axes() const {
  AxisSet result;
  for (const AffineForm::Term &term : form.terms)
    result.insert(term.axis);
  return result;
}
