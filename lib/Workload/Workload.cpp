//===- Workload.cpp - One operator with its iteration space ---------------===//
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <cmath>
#include <tuple>
#include <utility>

using namespace ftuner;
using llvm::Twine;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

unsigned Workload::mainAxis() const {
  // Dynamic axes before fixed ones, open ranges before closed ones.
  auto rank = [&](unsigned index) {
    const Axis &axis = axes[index];
    return std::make_tuple(axis.isDynamic(), axis.range.isOpen(),
                           axis.range.max.value_or(maxExtent));
  };
  return rank(kN) > rank(kM) ? kN : kM;
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

bool Workload::isContraction() const {
  return axes.size() >= kFirstBatch && reduceAxes() == 1u << kK &&
         find(OperandRole::Lhs) && find(OperandRole::Rhs);
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

llvm::Error Workload::check() const {
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
  for (const Axis &axis : axes) {
    if (llvm::Error error = checkRange(axis))
      return error;
    if (llvm::Error error = checkWeights(axis))
      return error;
  }
  for (auto [index, operand] : llvm::enumerate(operands)) {
    for (unsigned axis : operand.axes)
      if (axis >= axes.size())
        return makeError("operand " + Twine(index) + ": expected axes below " +
                         Twine(axes.size()) + ", but got " + Twine(axis));
    if (operand.elementBytes < 1 || operand.elementBytes > 16)
      return makeError("operand " + Twine(index) +
                       ": expected elements of 1 to 16 bytes, but got " +
                       Twine(operand.elementBytes));
  }
  for (OperandRole role :
       {OperandRole::Lhs, OperandRole::Rhs, OperandRole::Output}) {
    auto hasRole = [&](const Operand &operand) { return operand.role == role; };
    if (llvm::count_if(operands, hasRole) != 1)
      return makeError("expected one left, one right and one output operand");
  }
  if (!std::isfinite(flopsPerPoint) || flopsPerPoint <= 0)
    return makeError("expected a positive number of operations per point");
  return llvm::Error::success();
}

Workload Workload::matmul(SizeRange m, SizeRange n, SizeRange k,
                          bool transposeLhs, bool transposeRhs) {
  Workload workload;
  workload.name = "matmul";
  workload.axes = {{"M", AxisKind::Space, m, {}},
                   {"N", AxisKind::Space, n, {}},
                   {"K", AxisKind::Reduce, k, {}}};
  auto operand = [](OperandRole role, unsigned outer, unsigned inner) {
    return Operand{role, {outer, inner}, 4};
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
