//===- ContractionModel.cpp - What models of contractions share -----------===//
#include "FTuner/Codegen/ContractionModel.h"
#include "FTuner/Workload/Contraction.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <numeric>

using namespace ftuner;

/// Most batch axes beside m, n and k.
static constexpr unsigned kMaxBatchAxes = 3;
/// Instructions of a quotient, root or transcendental function.
static constexpr double kSpecialInstructions = 8;

llvm::Error ftuner::checkContractionLayout(const CodegenModel &path,
                                           const Workload &workload) {
  if (llvm::Error error = workload.checkContraction())
    return path.invalid(llvm::toString(std::move(error)));
  ContractionView view(workload);
  if (view.batchAxes().size() > kMaxBatchAxes)
    return path.invalid("expected up to " + llvm::Twine(kMaxBatchAxes) +
                        " batch axes");
  auto isContiguous = [](const Operand &operand, unsigned axis,
                         unsigned other) {
    return operand.contiguousAxis() == axis ||
           operand.contiguousAxis() == other;
  };
  if (!isContiguous(view.lhs(), view.m, view.k) ||
      !isContiguous(view.rhs(), view.n, view.k) ||
      !isContiguous(view.output(), view.n, view.n))
    return path.invalid("expected an lhs that is contiguous along m or k, an "
                        "rhs along n or k, and an output that is contiguous "
                        "along n");
  return llvm::Error::success();
}

static llvm::StringRef factorName(unsigned factor) {
  return factor == 0 ? "lhs" : "rhs";
}

llvm::Error ftuner::checkNoWindows(const CodegenModel &path,
                                   const Workload &workload) {
  ContractionView view(workload);
  for (unsigned factor : {0, 1})
    if (view.factor(factor).hasWindows())
      return path.invalid("expected factors with dimensions of one axis each, "
                          "but got windows over the " +
                          factorName(factor));
  return llvm::Error::success();
}

llvm::Error ftuner::checkWindows(const CodegenModel &path,
                                 const Workload &workload) {
  ContractionView view(workload);
  for (unsigned factor : {0, 1}) {
    if (!view.factor(factor).hasWindows())
      continue;
    auto fail = [&](const llvm::Twine &text) {
      return path.invalid("expected " + text + " with windows over the " +
                          factorName(factor));
    };
    if (view.prologue(factor))
      return fail("no prologue of a factor");
    if (std::optional<Identity> outside = view.factor(factor).outside;
        outside && *outside != Identity::Zero)
      return fail("zeros outside");
    // Positions are held against sizes without those along batch axes.
    for (const AffineForm &form : view.factor(factor).windows)
      if (view.factor(factor).outside && !form.asTerm() &&
          llvm::any_of(form.terms, [&](const AffineForm::Term &term) {
            return view.isBatch(term.axis);
          }))
        return fail("no batch axis in a position that may lie outside");
  }
  return llvm::Error::success();
}

int64_t ftuner::elementsWithinRun(const Workload &workload,
                                  const Operand &operand, int64_t width) {
  std::optional<int64_t> run = workload.contiguousRun(operand);
  return run ? std::gcd(*run, width) : width;
}

llvm::Error ftuner::checkUnpacked(const CodegenModel &path,
                                  const Workload &workload) {
  for (const Operand &operand : workload.operands)
    if (operand.isPacked)
      return path.invalid("expected an rhs that is not packed");
  return llvm::Error::success();
}

llvm::Error ftuner::checkPrologues(const CodegenModel &path,
                                   const Workload &workload) {
  auto check = [&](ElementType type) -> llvm::Error {
    bool isFloat = type == ElementType::F32 || type == ElementType::F16 ||
                   type == ElementType::BF16;
    if (isFloat || (isInteger(type) && type != ElementType::I64))
      return llvm::Error::success();
    return path.invalid("expected prologues of f32, f16, bf16 and integers "
                        "of up to 32 bits, but got " +
                        nameOf(type));
  };
  for (unsigned factor : {0, 1})
    for (const Operations &operations : prologueOperations(workload, factor))
      for (ElementType type : {operations.operandType, operations.resultType})
        if (llvm::Error error = check(type))
          return error;
  for (const Operand &operand : workload.operands) {
    bool isInput = operand.role == OperandRole::Input;
    bool isComputed =
        (operand.role == OperandRole::Lhs && hasPrologue(workload, 0)) ||
        (operand.role == OperandRole::Rhs && hasPrologue(workload, 1));
    if (!isInput && !isComputed)
      continue;
    if (llvm::Error error = check(operand.elementType))
      return error;
    // Vectors of booleans are no bytes.
    if (operand.elementType == ElementType::I1 && operand.rank() != 0)
      return path.invalid("expected no tensor of booleans before a product");
  }
  return llvm::Error::success();
}

llvm::ArrayRef<Operations> ftuner::prologueOperations(const Workload &workload,
                                                      unsigned factor) {
  return ContractionView(workload).prologueOperations(factor);
}

llvm::ArrayRef<Operations>
ftuner::epilogueOperations(const Workload &workload) {
  return ContractionView(workload).epilogueOperations();
}

int64_t ftuner::pointsHeld(const Workload &workload, int64_t registers) {
  int64_t ofPoint = 0;
  if (const Computation *reduction = workload.reduction())
    for (const Accumulator &accumulator : reduction->state->accumulators)
      ofPoint += ceilDiv(bytesOf(accumulator.type), int64_t(4));
  return registers / std::max<int64_t>(ofPoint, 1);
}

double ftuner::instructionsOf(const Operations &operations) {
  return operations.count * (operations.unit() == OperationUnit::Special
                                 ? kSpecialInstructions
                                 : 1);
}

PrologueWork ftuner::prologueWork(const Workload &workload, unsigned factor,
                                  int64_t vectorWidth) {
  ContractionView view(workload);
  PrologueWork work;
  for (const Operations &operations : view.prologueOperations(factor))
    work.instructions += instructionsOf(operations);
  unsigned other = view.space(1 - factor);
  std::optional<unsigned> vectorAxis = view.factor(factor).contiguousAxis();
  for (const Operand &operand : workload.operands) {
    if (operand.role != OperandRole::Input || operand.axes.empty() ||
        llvm::is_contained(operand.axes, other))
      continue;
    // One element where all of a vector have the same.
    bool isSame = !vectorAxis || !llvm::is_contained(operand.axes, *vectorAxis);
    int64_t registers =
        ceilDiv((isSame ? 1 : vectorWidth) * operand.elementBytes, 4);
    work.registers += registers;
    if (llvm::is_contained(operand.axes, view.k))
      work.globalBytes += operand.elementBytes;
    else
      work.registersOfAllSteps += registers;
  }
  return work;
}

llvm::Error ftuner::checkContractionFamily(const CodegenModel &path,
                                           const Workload &workload,
                                           const KernelFamily &family,
                                           llvm::ArrayRef<unsigned> axes) {
  if (!llvm::is_contained(axes, family.combineAxis)) {
    auto texts = llvm::map_range(
        axes, [](unsigned axis) { return std::to_string(axis); });
    return path.invalid("expected parts along axis " +
                        llvm::join(texts, " or ") + ", but got " +
                        llvm::Twine(family.combineAxis));
  }
  if (family.reduceSplit > kMaxReduceSplit)
    return path.invalid("expected a split-K factor of up to " +
                        llvm::Twine(kMaxReduceSplit) + ", but got " +
                        llvm::Twine(family.reduceSplit));
  if (family.reduceSplit > 1 && workload.find(OperandRole::Output)->isPitched)
    return path.invalid("expected no split-K factor for an output with padded "
                        "rows, but got " +
                        llvm::Twine(family.reduceSplit));
  return llvm::Error::success();
}

llvm::Error ftuner::checkNoBatchTiles(const CodegenModel &path,
                                      const ContractionAxes &axes,
                                      const BlockTile &tile) {
  for (unsigned axis = 0; axis < tile.size(); ++axis)
    if (axes.isBatch(axis) && tile[axis] != 1)
      return path.invalid("expected tiles of 1 on batch axes, but got " +
                          tileText(tile));
  return llvm::Error::success();
}

BlockTile ftuner::batchWorkers(const KernelFamily &family, unsigned part,
                               int64_t workers) {
  const BlockTile &tile = family.tiles[part];
  ContractionAxes axes = family.contractionAxes();
  BlockTile along(tile.size(), 1);
  for (unsigned axis = tile.size(); axis-- > 0;)
    if (axes.isBatch(axis) && axis != family.combineAxis) {
      along[axis] = std::gcd(tile[axis], workers);
      workers /= along[axis];
    }
  if (axes.isBatch(family.combineAxis) && family.combineAxis < tile.size())
    along[family.combineAxis] = workers;
  return along;
}

llvm::Error ftuner::checkBatchTiles(const CodegenModel &path,
                                    const KernelFamily &family, unsigned part,
                                    int64_t workers) {
  const BlockTile &tile = family.tiles[part];
  BlockTile along = batchWorkers(family, part, workers);
  int64_t shared = 1;
  bool areEqual = true;
  for (auto [size, count] : llvm::zip_equal(tile, along)) {
    shared *= count;
    areEqual &= size % count == 0;
  }
  if (areEqual && shared == workers)
    return llvm::Error::success();
  return path.invalid("expected tiles along batch axes whose elements " +
                      llvm::Twine(workers) +
                      " workers share equally, but got " + tileText(tile));
}

llvm::Error ftuner::checkBlockFits(const CodegenModel &path,
                                   const KernelResources &needs,
                                   const DeviceSpec &device) {
  if (needs.sharedMemoryBytes > device.sharedMemoryPerBlockBytes)
    return path.invalid("expected at most " +
                        llvm::Twine(device.sharedMemoryPerBlockBytes) +
                        " bytes of shared memory, but got " +
                        llvm::Twine(needs.sharedMemoryBytes));
  int64_t registers = std::min(device.maxRegistersPerThread,
                               device.registersPerSm / needs.threads);
  if (needs.registersPerThread > registers)
    return path.invalid("expected at most " + llvm::Twine(registers) +
                        " registers per thread, but got " +
                        llvm::Twine(needs.registersPerThread));
  return llvm::Error::success();
}

UKernel ftuner::contractionUKernel(const KernelFamily &family, unsigned part,
                                   int64_t workersM, int64_t workersN,
                                   int64_t workersBatch) {
  workersM = std::max<int64_t>(workersM, 1);
  workersN = std::max<int64_t>(workersN, 1);
  workersBatch = std::max<int64_t>(workersBatch, 1);
  ContractionAxes axes = family.contractionAxes();
  UKernel ukernel;
  ukernel.blockTile = family.tiles[part];
  ukernel.registerTile.assign(ukernel.blockTile.size(), 1);
  // The higher one of both.
  if (axes.n < ukernel.blockTile.size()) {
    ukernel.registerTile[axes.m] = ukernel.blockTile[axes.m] / workersM;
    ukernel.registerTile[axes.n] = ukernel.blockTile[axes.n] / workersN;
  }
  BlockTile along = batchWorkers(family, part, workersBatch);
  for (unsigned axis = 0; axis < along.size(); ++axis)
    if (axes.isBatch(axis))
      ukernel.registerTile[axis] = ukernel.blockTile[axis] / along[axis];
  ukernel.workers = workersM * workersN * workersBatch;
  ukernel.reduceSplit = family.reduceSplit;
  return ukernel;
}
