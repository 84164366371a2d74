//===- RowComputations.cpp - Computations of row reductions ---------------===//
#include "FTuner/Dialect/UKernel/IR/Computations.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// Describes the scalar regions of a row reduction as computations.
class RowDescriber {
public:
  RowDescriber(Workload &workload, const RowBodies &bodies)
      : workload(workload), bodies(bodies),
        all(AxisSet::first(bodies.rowAxis + 1)),
        space(AxisSet::first(bodies.rowAxis)) {
    for (auto [number, isAlongRow] : llvm::enumerate(bodies.inputsAlongRow)) {
      elements.push_back(Read::operand(number));
      if (!isAlongRow)
        rowValues.push_back(Read::operand(number));
    }
  }

  void describe();

private:
  std::vector<Operations> elementOperations(Block &body, size_t numResults);
  void addReduction(unsigned number);
  void addStates();
  void addOutputs(StringRef name, AxisSet axes, std::vector<Read> reads,
                  std::vector<Operations> operations,
                  ArrayRef<unsigned> outputs);

  Workload &workload;
  const RowBodies &bodies;
  /// All axes, and all except the row's.
  AxisSet all, space;
  /// Inputs and results of reductions so far: `elements` has all of them,
  /// `rowValues` only those with one value for a row.
  std::vector<Read> elements, rowValues;
};

} // namespace

/// Returns the operations of a body for each element, without those whose value
/// is the same for the whole row, which are computed once. The body takes the
/// results of the first `numResults` reductions.
std::vector<Operations> RowDescriber::elementOperations(Block &body,
                                                        size_t numResults) {
  llvm::DenseSet<Value> known;
  size_t numInputs = bodies.inputsAlongRow.size();
  for (BlockArgument argument : body.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (number < numInputs ? !bodies.inputsAlongRow[number]
                           : number < numInputs + numResults)
      known.insert(argument);
  }
  std::vector<Operations> result;
  for (Operation &inner : body) {
    auto index = dyn_cast<ukernel::IndexOp>(inner);
    if (index ? index.getAxis() != bodies.rowAxis
              : isInvariant(inner,
                            [&](Value value) { return known.contains(value); }))
      known.insert(inner.result_begin(), inner.result_end());
    else
      collectOperations(inner, result);
  }
  return result;
}

void RowDescriber::addReduction(unsigned number) {
  Block &body = *bodies.reductions[number];
  Computation reduction;
  reduction.name = "reduction" + std::to_string(number);
  reduction.axes = all;
  reduction.reduce = {bodies.rowAxis};
  // Only the arguments in use: other reductions may share a pass with this one,
  // and other operands need not be loaded for it.
  for (auto [read, argument] : llvm::zip(elements, body.getArguments()))
    if (!argument.use_empty())
      reduction.reads.push_back(read);
  reduction.operations = elementOperations(body, number);
  reduction.state.emplace();
  auto [merge, identity] = mergeOf(body);
  reduction.state->merge = merge;
  Accumulator &accumulator = reduction.state->accumulators.front();
  accumulator.name = reduction.name;
  accumulator.type = toElementType(body.getArguments().back().getType());
  accumulator.identity = identity;
  workload.computations.push_back(std::move(reduction));
  elements.push_back(Read::computation(number));
  rowValues.push_back(Read::computation(number));
}

/// Adds the computation that a slice of a row ends with: it writes the state of
/// every reduction, unchanged, to an output of the operator, for a later kernel
/// that merges the slices.
void RowDescriber::addStates() {
  Computation states;
  states.name = "states";
  states.axes = space;
  // The computations so far are the reductions, under the same numbers.
  for (auto [reduction, output] : llvm::enumerate(bodies.states)) {
    states.reads.push_back(Read::computation(reduction));
    states.writes.push_back(output);
  }
  workload.computations.push_back(std::move(states));
}

void RowDescriber::addOutputs(StringRef name, AxisSet axes,
                              std::vector<Read> reads,
                              std::vector<Operations> operations,
                              ArrayRef<unsigned> outputs) {
  if (outputs.empty())
    return;
  Computation computation;
  computation.name = name.str();
  computation.axes = axes;
  computation.reads = std::move(reads);
  computation.operations = std::move(operations);
  computation.writes.assign(outputs.begin(), outputs.end());
  workload.computations.push_back(std::move(computation));
}

void RowDescriber::describe() {
  size_t numReductions = bodies.reductions.size();
  for (unsigned number : llvm::seq<unsigned>(numReductions))
    addReduction(number);
  if (!bodies.states.empty())
    addStates();
  addOutputs("values", space, std::move(rowValues),
             collectOperations(*bodies.values), bodies.valueOutputs);
  addOutputs("map", all, std::move(elements),
             elementOperations(*bodies.map, numReductions), bodies.mapOutputs);
}

void ftuner::setRowComputations(Workload &workload, const RowBodies &bodies) {
  RowDescriber(workload, bodies).describe();
}
