//===- PackWeights.cpp - Weights in the order in which blocks read them ---===//
//
// A constant rhs is put into the order of PackedOrder.h: numbers of the program
// byte by byte, here; other values that constants determine by operations,
// which whoever compiles the rest computes before the program runs.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/ConstantValues.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/Bridge/WorkloadAnalysis.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPACKWEIGHTSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;
using ukernel::WorkloadOp;

//===----------------------------------------------------------------------===//
// Numbers of the program
//===----------------------------------------------------------------------===//

/// Elements of k × n (or, with k last, n × k) numbers in their packed order.
static std::vector<char> packBytes(ArrayRef<char> elements,
                                   const PackedOrder &order,
                                   bool isReduceLast) {
  std::vector<char> packed(elements.size());
  size_t bytes = order.elementBytes;
  for (int64_t k = 0; k < order.k; ++k)
    for (int64_t n = 0; n < order.n; ++n) {
      size_t from = isReduceLast ? n * order.k + k : k * order.n + n;
      std::copy_n(elements.data() + from * bytes, bytes,
                  packed.data() + order.positionOf(k, n) * bytes);
    }
  return packed;
}

/// Null where the numbers are not at hand.
static ElementsAttr packLiteral(ElementsAttr literal, const PackedOrder &order,
                                bool isReduceLast) {
  if (auto dense = dyn_cast<DenseElementsAttr>(literal)) {
    if (dense.isSplat())
      return dense;
    return DenseElementsAttr::getFromRawBuffer(
        dense.getType(), packBytes(dense.getRawData(), order, isReduceLast));
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(literal);
  AsmResourceBlob *blob =
      resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob ||
      blob->getData().size() != size_t(order.k * order.n * order.elementBytes))
    return {};
  std::vector<char> packed = packBytes(blob->getData(), order, isReduceLast);
  return DenseResourceElementsAttr::get(
      resource.getType(), (resource.getRawHandle().getKey() + "_packed").str(),
      HeapAsmResourceBlob::allocateAndCopyWithAlign(packed,
                                                    blob->getDataAlignment()));
}

//===----------------------------------------------------------------------===//
// Other values
//===----------------------------------------------------------------------===//

/// Puts the elements into their packed order, in a tensor of the same shape.
static Value packByOperations(ImplicitLocOpBuilder &b, Value weights,
                              const PackedOrder &order, bool isReduceLast) {
  auto type = cast<RankedTensorType>(weights.getType());
  Type element = type.getElementType();
  int64_t runs = order.step() / order.run();
  // What k and n are cut into, and how the parts are ordered.
  SmallVector<int64_t> ofK = {order.k / order.step(), runs, order.run()},
                       ofN = {order.n / PackedOrder::kGroup,
                              PackedOrder::kGroup};
  SmallVector<int64_t> cut, permutation;
  SmallVector<ReassociationIndices> parts;
  if (isReduceLast) {
    llvm::append_range(cut, ofN);
    llvm::append_range(cut, ofK);
    parts = {{0, 1}, {2, 3, 4}};
    permutation = {2, 0, 3, 1, 4};
  } else {
    llvm::append_range(cut, ofK);
    llvm::append_range(cut, ofN);
    parts = {{0, 1, 2}, {3, 4}};
    permutation = {0, 3, 1, 4, 2};
  }
  Value pieces = tensor::ExpandShapeOp::create(
      b, RankedTensorType::get(cut, element), weights, parts);
  SmallVector<int64_t> ordered = applyPermutation(cut, permutation);
  Value empty = tensor::EmptyOp::create(b, ordered, element);
  Value packed =
      linalg::TransposeOp::create(b, pieces, empty, permutation)->getResult(0);
  // By way of one dimension: neither k nor n is a product of neighbours now.
  Value line = tensor::CollapseShapeOp::create(
      b, packed, ArrayRef<ReassociationIndices>{{0, 1, 2, 3, 4}});
  return tensor::ExpandShapeOp::create(b, type, line,
                                       ArrayRef<ReassociationIndices>{{0, 1}});
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct UKernelPackWeightsPass
    : public ftuner::impl::UKernelPackWeightsPassBase<UKernelPackWeightsPass> {
  using UKernelPackWeightsPassBase::UKernelPackWeightsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    workloads = &getAnalysis<WorkloadAnalysis>();
    markAnalysesPreserved<WorkloadAnalysis>();
    if (failed(findPaths()))
      return signalPassFailure();
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return signalPassFailure();
    for (auto function : module.getOps<FunctionOpInterface>()) {
      if (function.isExternal())
        continue;
      DenseSet<Value> constants = findConstantValues(function);
      packed.clear();
      function.walk([&](WorkloadOp op) {
        // A plan that is given was made for weights as they are.
        if (op.hasTensors() && !op.getPacked() && !op.getPlanAttr() &&
            constants.contains(op.getRhs()))
          pack(op, *device);
      });
      eraseUnused();
    }
  }

private:
  /// Whether k is the last dimension of the weights, on which it depends how
  /// they are put in order.
  static bool isReduceLast(WorkloadOp op) {
    return cast<AffineDimExpr>(op.getRhsMap().getResult(1)).getPosition() ==
           WorkloadOp::kK;
  }

  LogicalResult findPaths() {
    if (paths.empty()) {
      models.assign(codegenModels().begin(), codegenModels().end());
      return success();
    }
    llvm::Expected<SmallVector<const CodegenModel *>> given =
        parseCodegenModels(paths);
    if (!given)
      return emitError(UnknownLoc::get(&getContext()),
                       llvm::toString(given.takeError()));
    models = std::move(*given);
    return success();
  }

  void pack(WorkloadOp op, const DeviceSpec &device) {
    if (llvm::Error error = checkPackable(op, device))
      return remarkLeft(op, llvm::toString(std::move(error)));
    Value &weights = packed[{op.getRhs(), isReduceLast(op)}];
    if (!weights)
      weights = packedValue(op);
    if (!weights)
      return remarkLeft(op, "expected numbers that the program holds");
    workloads->erase(op);
    op.getRhsMutable().assign(weights);
    op.setPacked(true);
    ++numPacked;
  }

  /// That one of the paths computes the workload with a packed rhs.
  llvm::Error checkPackable(WorkloadOp op, const DeviceSpec &device) {
    auto type = cast<RankedTensorType>(op.getRhs().getType());
    Type element = type.getElementType();
    if (type.getRank() != 2 || !type.hasStaticShape() || type.getEncoding())
      return llvm::createStringError(
          "expected weights of static k and n alone, without an encoding");
    // As the operator's verifier has it.
    if (!element.isIntOrFloat() ||
        !llvm::is_contained({8u, 16u, 32u}, element.getIntOrFloatBitWidth()))
      return llvm::createStringError(
          "expected weights with elements of 1, 2 or 4 bytes");
    Workload workload = workloads->get(op);
    workload.operands[op.getRhsMutable().getOperandNumber()].isPacked = true;
    std::vector<std::string> reasons;
    for (const CodegenModel *path : models) {
      llvm::Error error = path->supports(workload, device);
      if (!error)
        return error;
      reasons.push_back(llvm::toString(std::move(error)));
    }
    return llvm::createStringError(llvm::join(reasons, "; "));
  }

  /// The weights in packed order; null where their numbers are not known and
  /// operations are not allowed.
  Value packedValue(WorkloadOp op) {
    Value weights = op.getRhs();
    PackedOrder order = op.getPackedOrder();
    ImplicitLocOpBuilder b(weights.getLoc(), weights.getContext());
    b.setInsertionPointAfterValue(weights);
    ElementsAttr literal;
    if (matchPattern(weights, m_Constant(&literal)))
      if (ElementsAttr attribute =
              packLiteral(literal, order, isReduceLast(op)))
        return arith::ConstantOp::create(b, cast<TypedAttr>(attribute));
    return anyConstant ? packByOperations(b, weights, order, isReduceLast(op))
                       : Value();
  }

  static void remarkLeft(WorkloadOp op, const Twine &reason) {
    auto function = op->getParentOfType<FunctionOpInterface>();
    remark::missed(op.getLoc(),
                   remark::RemarkOpts::name("weights")
                       .category("ukernel-pack-weights")
                       .function(function ? function.getName() : StringRef()))
        << ("constant weights are not packed: " + reason).str();
  }

  /// Numbers that nobody reads any more.
  void eraseUnused() {
    llvm::SetVector<Operation *> literals;
    for (const auto &entry : packed) {
      Value weights = entry.first.first;
      if (weights.use_empty() &&
          weights.getDefiningOp()->hasTrait<OpTrait::ConstantLike>())
        literals.insert(weights.getDefiningOp());
    }
    for (Operation *literal : literals)
      literal->erase();
  }

  llvm::SmallVector<const CodegenModel *> models;
  WorkloadAnalysis *workloads = nullptr;
  /// Weights of the function that are packed already, by what they were and
  /// whether k is their last dimension: products may read one both ways.
  llvm::DenseMap<std::pair<Value, unsigned>, Value> packed;
};
} // namespace
