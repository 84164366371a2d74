//===- RowWorkloads.h - Softmax and a norm of rows --------------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_COSTMODEL_ROWWORKLOADS_H
#define FTUNER_TEST_UNIT_COSTMODEL_ROWWORKLOADS_H

#include "FTuner/Workload/Workload.h"

namespace ftuner {

inline Operations operations(OperationKind kind, double count = 1) {
  return {kind, ElementType::F32, ElementType::F32, count};
}
inline Operations arithmetic(double count) {
  return operations(OperationKind::Add, count);
}

/// Rows of fixed sizes, to which computations are added in their order.
struct RowsBuilder {
  Workload workload;

  explicit RowsBuilder(int64_t rows, int64_t length) {
    workload.axes = {{"M", SizeRange::fixed(rows)},
                     {"R", SizeRange::fixed(length)}};
  }
  unsigned operand(OperandRole role, llvm::SmallVector<unsigned> axes) {
    workload.operands.emplace_back(role, std::move(axes));
    return static_cast<unsigned>(workload.operands.size() - 1);
  }
  unsigned add(Computation computation) {
    workload.computations.push_back(std::move(computation));
    return static_cast<unsigned>(workload.computations.size() - 1);
  }
  /// Adds a reduction of each row to one number.
  unsigned reduce(std::vector<Read> reads, std::vector<Operations> operations,
                  Merge merge = Merge::Sum) {
    Computation computation;
    computation.axes = {0, 1};
    computation.reduce = {1};
    computation.reads = std::move(reads);
    computation.operations = std::move(operations);
    computation.state.emplace();
    computation.state->merge = merge;
    return add(computation);
  }
  /// Adds a computation of each row or of each element.
  unsigned compute(AxisSet axes, std::vector<Read> reads,
                   std::vector<Operations> operations) {
    Computation computation;
    computation.axes = axes;
    computation.reads = std::move(reads);
    computation.operations = std::move(operations);
    return add(computation);
  }
};

/// Softmax of f32, as its linalg operation is formed.
inline Workload softmax(int64_t rows, int64_t length) {
  RowsBuilder builder(rows, length);
  Read x = Read::operand(builder.operand(OperandRole::Input, {0, 1}));
  unsigned output = builder.operand(OperandRole::Output, {0, 1});
  Read greatest = Read::computation(builder.reduce(
      {x}, {operations(OperationKind::Extreme)}, Merge::Maximum));
  Read sum = Read::computation(builder.reduce(
      {x, greatest}, {arithmetic(2), operations(OperationKind::Function)}));
  unsigned values =
      builder.compute({0, 1}, {x, greatest, sum},
                      {arithmetic(1), operations(OperationKind::Function),
                       operations(OperationKind::Divide)});
  builder.workload.computations[values].writes = {output};
  return builder.workload;
}

/// Layer norm of f32 with a scale and a shift, by the mean and then the squares
/// of what is left.
inline Workload layerNorm(int64_t rows, int64_t length) {
  RowsBuilder builder(rows, length);
  Read x = Read::operand(builder.operand(OperandRole::Input, {0, 1}));
  Read scale = Read::operand(builder.operand(OperandRole::Input, {1}));
  Read shift = Read::operand(builder.operand(OperandRole::Input, {1}));
  unsigned output = builder.operand(OperandRole::Output, {0, 1});
  Read sum = Read::computation(builder.reduce({x}, {arithmetic(1)}));
  Read mean = Read::computation(
      builder.compute({0}, {sum}, {operations(OperationKind::Divide)}));
  Read squares = Read::computation(builder.reduce({x, mean}, {arithmetic(3)}));
  Read deviation =
      Read::computation(builder.compute({0}, {squares},
                                        {operations(OperationKind::Divide, 2),
                                         operations(OperationKind::Function)}));
  unsigned values = builder.compute({0, 1}, {x, mean, deviation, scale, shift},
                                    {arithmetic(4)});
  builder.workload.computations[values].writes = {output};
  return builder.workload;
}

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_COSTMODEL_ROWWORKLOADS_H
