//===- Workload.cpp - One operator with its iteration space ---------------===//
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

using namespace ftuner;
using llvm::Twine;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Elements and accesses
//===----------------------------------------------------------------------===//

int64_t ftuner::bytesOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
  case ElementType::I64:
  case ElementType::Other:
    return 8;
  case ElementType::F32:
  case ElementType::TF32:
  case ElementType::I32:
    return 4;
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::I16:
    return 2;
  case ElementType::I8:
  case ElementType::I1:
    return 1;
  }
  llvm_unreachable("every type has a size");
}

llvm::StringRef ftuner::nameOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return "f64";
  case ElementType::F32:
    return "f32";
  case ElementType::TF32:
    return "tf32";
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  case ElementType::I64:
    return "i64";
  case ElementType::I32:
    return "i32";
  case ElementType::I16:
    return "i16";
  case ElementType::I8:
    return "i8";
  case ElementType::I1:
    return "i1";
  case ElementType::Other:
    return "another type";
  }
  llvm_unreachable("every type has a name");
}

bool ftuner::isInteger(ElementType type) {
  switch (type) {
  case ElementType::I64:
  case ElementType::I32:
  case ElementType::I16:
  case ElementType::I8:
  case ElementType::I1:
    return true;
  default:
    return false;
  }
}

llvm::ArrayRef<llvm::StringLiteral> ftuner::factorPrecisionNames() {
  static constexpr llvm::StringLiteral names[] = {"f32", "tf32",
                                                  "tf32-truncate"};
  return names;
}

std::optional<FactorPrecision>
ftuner::findFactorPrecision(llvm::StringRef name) {
  const auto *found = llvm::find(factorPrecisionNames(), name);
  if (found == factorPrecisionNames().end())
    return std::nullopt;
  return static_cast<FactorPrecision>(found - factorPrecisionNames().begin());
}

std::optional<unsigned> AffineForm::asAxis() const {
  if (constant != 0 || terms.size() != 1 || terms.front().coefficient != 1)
    return std::nullopt;
  return terms.front().axis;
}

int64_t AffineForm::reach(llvm::ArrayRef<int64_t> sizes) const {
  int64_t last = 0;
  for (const Term &term : terms)
    last += std::abs(term.coefficient) * (sizes[term.axis] - 1);
  return last + 1;
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
  std::vector<unsigned> candidates = spaceAxes();
  if (isContraction())
    candidates = {kM, kN};
  unsigned best = candidates.empty() ? 0 : candidates.front();
  for (unsigned axis : candidates)
    if (rank(axis) > rank(best))
      best = axis;
  return best;
}

std::vector<unsigned> Workload::spaceAxes() const {
  std::vector<unsigned> result;
  for (auto [index, axis] : llvm::enumerate(axes))
    if (axis.kind == AxisKind::Space)
      result.push_back(index);
  return result;
}

uint32_t Workload::reduceAxes() const {
  uint32_t mask = 0;
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    if (axes[axis].kind == AxisKind::Reduce)
      mask |= 1u << axis;
  return mask;
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

double Workload::flops(llvm::ArrayRef<int64_t> shape) const {
  double result = flopsPerPoint;
  for (int64_t extent : shape)
    result *= static_cast<double>(extent);
  return result;
}

static llvm::Error checkRange(const Axis &axis) {
  const SizeRange &range = axis.range;
  if (range.min < 0 || range.min > maxExtent)
    return makeError("axis '" + axis.name +
                     "': expected a least size from 0 to " + Twine(maxExtent) +
                     ", but got " + Twine(range.min));
  if (range.step < 1)
    return makeError("axis '" + axis.name +
                     "': expected a positive step, but got " +
                     Twine(range.step));
  if (range.step > maxExtent)
    return makeError("axis '" + axis.name + "': expected a step up to " +
                     Twine(maxExtent) + ", but got " + Twine(range.step));
  if (range.max && *range.max > maxExtent)
    return makeError("axis '" + axis.name +
                     "': expected a largest size up to " + Twine(maxExtent) +
                     ", but got " + Twine(*range.max));
  if (range.max && *range.max < range.min)
    return makeError("axis '" + axis.name + "': expected min <= max, but got " +
                     Twine(range.min) + " > " + Twine(*range.max));
  if (axis.factor < 1 || axis.factor > maxExtent)
    return makeError("axis '" + axis.name + "': expected a factor from 1 to " +
                     Twine(maxExtent) + ", but got " + Twine(axis.factor));
  return llvm::Error::success();
}

static llvm::Error checkWeights(const Axis &axis) {
  double sum = 0;
  for (const SizeWeight &entry : axis.weights) {
    if (!axis.range.contains(entry.size))
      return makeError("axis '" + axis.name +
                       "': expected weights for sizes of its range, but got "
                       "size " +
                       Twine(entry.size));
    if (!std::isfinite(entry.weight) || entry.weight < 0)
      return makeError("axis '" + axis.name +
                       "': expected weights that are at least 0 and finite, "
                       "but size " +
                       Twine(entry.size) + " has another");
    sum += entry.weight;
  }
  if (!axis.weights.empty() && !(sum > 0 && std::isfinite(sum)))
    return makeError("axis '" + axis.name +
                     "': expected weights with a positive sum");
  return llvm::Error::success();
}

static llvm::Error checkOperand(const Operand &operand, unsigned index,
                                unsigned numAxes) {
  auto checkAxis = [&](unsigned axis) -> llvm::Error {
    if (axis < numAxes)
      return llvm::Error::success();
    return makeError("operand " + Twine(index) + ": expected axes below " +
                     Twine(numAxes) + ", but got " + Twine(axis));
  };
  for (unsigned axis : operand.axes)
    if (llvm::Error error = checkAxis(axis))
      return error;
  if (operand.elementBytes != bytesOf(operand.elementType))
    return makeError("operand " + Twine(index) + ": expected " +
                     Twine(bytesOf(operand.elementType)) +
                     " bytes for an element of " + nameOf(operand.elementType) +
                     ", but got " + Twine(operand.elementBytes));
  if (operand.windows.empty())
    return llvm::Error::success();
  if (operand.windows.size() != operand.axes.size())
    return makeError("operand " + Twine(index) + ": expected a position for " +
                     "each of " + Twine(operand.axes.size()) +
                     " dimensions, but got " + Twine(operand.windows.size()));
  for (auto [dim, form] : llvm::enumerate(operand.windows)) {
    for (const AffineForm::Term &term : form.terms) {
      if (llvm::Error error = checkAxis(term.axis))
        return error;
      if (term.coefficient == 0)
        return makeError("operand " + Twine(index) +
                         ": expected coefficients that are not 0");
    }
    auto isOfAxis = [axis = operand.axes[dim]](const AffineForm::Term &term) {
      return term.axis == axis;
    };
    if (llvm::count_if(form.terms, isOfAxis) != 1)
      return makeError("operand " + Twine(index) + ": expected axis " +
                       Twine(operand.axes[dim]) + " in the position along " +
                       "dimension " + Twine(dim));
  }
  return llvm::Error::success();
}

llvm::Error Workload::check() const {
  if (axes.empty())
    return makeError("expected a workload with axes");
  for (const Axis &axis : axes) {
    if (llvm::Error error = checkRange(axis))
      return error;
    if (llvm::Error error = checkWeights(axis))
      return error;
  }
  for (auto [index, operand] : llvm::enumerate(operands))
    if (llvm::Error error = checkOperand(operand, index, axes.size()))
      return error;
  if (llvm::count_if(operands, [](const Operand &operand) {
        return operand.role == OperandRole::Output;
      }) != 1)
    return makeError("expected one output operand");
  double flops = 0;
  for (const Operations &entry : operations) {
    if (!std::isfinite(entry.count) || entry.count < 0)
      return makeError("expected counts of operations that are at least 0");
    flops += entry.flops();
  }
  if (!std::isfinite(flops) || flops <= 0)
    return makeError("expected a positive number of operations per point");
  if (flops != flopsPerPoint)
    return makeError("expected the operations of a point to add up");
  return llvm::Error::success();
}

std::optional<unsigned> Operand::contiguousAxis() const {
  if (axes.empty())
    return std::nullopt;
  if (isPacked)
    return Workload::kK;
  return windows.empty() ? axes.back() : windows.back().asAxis();
}

PackedOrder Workload::packedOrder() const {
  return {axes[kK].range.min, axes[kN].range.min,
          find(OperandRole::Rhs)->elementBytes};
}

/// That nothing but an rhs is packed, of k and n alone, fixed and whole.
static llvm::Error checkPacked(const Workload &workload) {
  for (auto [index, operand] : llvm::enumerate(workload.operands)) {
    if (!operand.isPacked)
      continue;
    auto isFixed = [&](unsigned axis) {
      return llvm::is_contained(operand.axes, axis) &&
             workload.axes[axis].range.isFixed();
    };
    if (operand.role != OperandRole::Rhs || operand.rank() != 2 ||
        !isFixed(Workload::kK) || !isFixed(Workload::kN) ||
        !workload.packedOrder().isWhole())
      return makeError("operand " + Twine(index) +
                       ": expected a packed right operand of fixed k and n, in "
                       "whole steps of " +
                       Twine(PackedOrder::kStepBytes) +
                       " bytes and whole groups of " +
                       Twine(PackedOrder::kGroup));
  }
  return llvm::Error::success();
}

llvm::Error Workload::checkContraction() const {
  if (axes.size() < kFirstBatch)
    return makeError("expected a workload with axes M, N and K, but got " +
                     Twine(axes.size()));
  for (auto [index, axis] : llvm::enumerate(axes)) {
    AxisKind kind = index == kK ? AxisKind::Reduce : AxisKind::Space;
    if (axis.kind != kind)
      return makeError("axis '" + axis.name + "': expected a " +
                       (kind == AxisKind::Reduce ? "reduce" : "space") +
                       " axis, since axes are M, N, K, then batch axes");
  }
  auto count = [&](OperandRole role) {
    return llvm::count_if(
        operands, [&](const Operand &operand) { return operand.role == role; });
  };
  if (count(OperandRole::Lhs) != 1 || count(OperandRole::Rhs) != 1 ||
      count(OperandRole::Output) != 1)
    return makeError("expected one left, one right and one output operand");
  if (combiner != Combiner::SumOfProducts)
    return makeError("expected a sum of products");
  for (auto [index, operand] : llvm::enumerate(operands))
    if (operand.role == OperandRole::Input &&
        llvm::is_contained(operand.axes, kM) &&
        llvm::is_contained(operand.axes, kN))
      return makeError("operand " + Twine(index) +
                       ": expected an input of one factor");
  for (auto [index, operand] : llvm::enumerate(operands))
    if (!operand.windows.empty())
      return makeError("operand " + Twine(index) +
                       ": expected dimensions of one axis each");
  return checkPacked(*this);
}

bool Workload::isContraction() const {
  llvm::Error error = checkContraction();
  bool holds = !error;
  llvm::consumeError(std::move(error));
  return holds;
}

Workload Workload::matmul(SizeRange m, SizeRange n, SizeRange k,
                          bool transposeLhs, bool transposeRhs) {
  Workload workload;
  workload.name = "matmul";
  workload.axes = {{"M", AxisKind::Space, m, {}},
                   {"N", AxisKind::Space, n, {}},
                   {"K", AxisKind::Reduce, k, {}}};
  auto operand = [](OperandRole role, unsigned outer, unsigned inner) {
    return Operand(role, {outer, inner});
  };
  workload.operands = {transposeLhs ? operand(OperandRole::Lhs, kK, kM)
                                    : operand(OperandRole::Lhs, kM, kK),
                       transposeRhs ? operand(OperandRole::Rhs, kN, kK)
                                    : operand(OperandRole::Rhs, kK, kN),
                       operand(OperandRole::Output, kM, kN)};
  return workload;
}

Workload Workload::batchMatmul(SizeRange batch, SizeRange m, SizeRange n,
                               SizeRange k, bool transposeLhs,
                               bool transposeRhs) {
  Workload workload = matmul(m, n, k, transposeLhs, transposeRhs);
  workload.name = "batch_matmul";
  workload.axes.push_back({"B", AxisKind::Space, batch, {}});
  for (Operand &operand : workload.operands)
    operand.axes.insert(operand.axes.begin(), kFirstBatch);
  return workload;
}
