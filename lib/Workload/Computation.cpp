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

llvm::StringRef ftuner::nameOf(OperationKind kind) {
  switch (kind) {
  case OperationKind::MultiplyAdd:
    return "multiply-add";
  case OperationKind::Arithmetic:
    return "arithmetic";
  case OperationKind::Special:
    return "special";
  case OperationKind::Other:
    return "other";
  }
  llvm_unreachable("every kind has a name");
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

double Operations::flops() const {
  switch (kind) {
  case OperationKind::MultiplyAdd:
    return 2 * count;
  case OperationKind::Arithmetic:
  case OperationKind::Special:
    return count;
  case OperationKind::Other:
    return 0;
  }
  llvm_unreachable("every kind counts");
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
    if (entry.kind == OperationKind::Special)
      count += entry.count;
  return count;
}

AxisSet Inequality::axes() const {
  AxisSet result;
  for (const AffineForm::Term &term : form.terms)
    result.insert(term.axis);
  return result;
}
