//===- CopyRemarks.cpp - Remarks on copies that stay ----------------------===//
#include "LinalgPatterns.h"

#include "FTuner/Analysis/Extents.h"
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// One result of an operator whose elements are those of an input.
struct Copy {
  Operation *op;
  Value input, result;
  AffineMap inputMap, outputMap;
  /// The tensor that the operator fills in.
  Value init;
};
} // namespace

/// Returns the results of an operator that only yields elements of inputs;
/// nothing for other operators.
static SmallVector<Copy> matchCopies(DestinationStyleOpInterface op) {
  Block *body = nullptr;
  if (auto points = dyn_cast<ukernel::PointwiseOp>(op.getOperation()))
    body = &points.getMap().front();
  else if (auto structured = dyn_cast<linalg::LinalgOp>(op.getOperation()))
    body = structured.getBlock();
  if (!body || !op.hasPureTensorSemantics() || !llvm::hasSingleElement(*body))
    return {};
  auto mapOf = [&](OpOperand &operand) {
    if (auto structured = dyn_cast<linalg::LinalgOp>(op.getOperation()))
      return structured.getMatchingIndexingMap(&operand);
    return cast<ukernel::PointwiseOp>(op.getOperation())
        .getMatchingIndexingMap(&operand);
  };
  SmallVector<Copy> copies;
  for (auto [number, yielded] :
       llvm::enumerate(body->getTerminator()->getOperands())) {
    auto argument = dyn_cast<BlockArgument>(yielded);
    if (!argument || argument.getOwner() != body)
      return {};
    OpOperand &input = op->getOpOperand(argument.getArgNumber());
    // A number that fills a tensor is not copied.
    if (op.isDpsInit(&input) || !isa<RankedTensorType>(input.get().getType()))
      return {};
    OpOperand *init = op.getDpsInitOperand(number);
    copies.push_back({op, input.get(), op->getResult(number), mapOf(input),
                      mapOf(*init), init->get()});
  }
  return copies;
}

static std::string nameOf(Operation *op) {
  return "'" + op->getName().getStringRef().str() + "'";
}

/// Returns true if the operator fills in a part of a larger tensor, as it does
/// for parts of concatenations that no other operator writes.
static bool fillsPart(const Copy &copy) {
  return copy.init.getDefiningOp<tensor::ExtractSliceOp>() &&
         llvm::any_of(copy.result.getUsers(),
                      llvm::IsaPred<tensor::InsertSliceOp>);
}

/// Returns true if several operators read a value.
static bool hasSeveralReaders(Value value) {
  return llvm::count_if(value.getUsers(), [](Operation *user) {
           return !isa<tensor::DimOp>(user);
         }) > 1;
}

/// Returns why no operator writes a part of a concatenation in place.
static std::string reasonOfPart(const Copy &copy) {
  Value part = copy.input, source = part;
  while (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp>(source.getDefiningOp()))
    source = source.getDefiningOp()->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(source))
    return isa<FunctionOpInterface>(argument.getOwner()->getParentOp())
               ? "the part is an argument of the function"
               : "a loop carries the part";
  if (hasSeveralReaders(part) || hasSeveralReaders(source))
    return "other operators read the part, too";
  auto producer = part.getDefiningOp<DestinationStyleOpInterface>();
  if (!producer || isa<tensor::InsertSliceOp>(producer.getOperation()))
    return nameOf(part.getDefiningOp()) +
           ", which makes the part, is not an operator";
  if (producer->getBlock() != copy.op->getBlock())
    return "the part comes from outside of a loop or a branch";
  if (producer->getNumResults() > 1)
    return nameOf(producer) + ", which computes the part, has several results";
  return nameOf(producer) + " cannot write the part into another tensor";
}

namespace {
/// The operators that read a value, through views.
struct Readers {
  llvm::SmallSetVector<Operation *, 4> ops;
  /// A view that joins dimensions, if there is one.
  Operation *joining = nullptr;

  void add(Value value) {
    for (Operation *user : value.getUsers()) {
      if (isa<tensor::DimOp>(user))
        continue;
      if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
               tensor::ExtractSliceOp>(user)) {
        // Bodies of operators may read elements.
        auto around = user->getParentOfType<linalg::LinalgOp>();
        ops.insert(around ? around.getOperation() : user);
        continue;
      }
      if (isa<tensor::CollapseShapeOp>(user))
        joining = user;
      add(user->getResult(0));
    }
  }
};
} // namespace

/// Returns why no operator reads elements in place that are copied in this way.
static std::string reasonOfReaders(const Copy &copy, StringRef way) {
  Readers readers;
  readers.add(copy.result);
  auto *isReturn = llvm::find_if(readers.ops, [](Operation *op) {
    return op->hasTrait<OpTrait::IsTerminator>();
  });
  if (isReturn != readers.ops.end())
    return isa<FunctionOpInterface>((*isReturn)->getParentOp())
               ? "the function returns the result"
               : "a loop or a branch returns the result";
  auto *other = llvm::find_if_not(readers.ops,
                                  llvm::IsaPred<ukernel::OperatorOpInterface>);
  if (other != readers.ops.end()) {
    if (isa<tensor::InsertSliceOp>(*other))
      return "the result is a part of another tensor";
    return nameOf(*other) + ", which is not a uKernel, reads the result";
  }
  if (readers.joining)
    return nameOf(readers.joining) + " joins dimensions of the result";
  if (readers.ops.size() != 1)
    return "several operators read the result";
  return nameOf(readers.ops.front()) + " does not read its operand " +
         way.str();
}

/// Returns what is copied, and why.
static std::string describe(const Copy &copy) {
  if (fillsPart(copy))
    return "a part of a concatenation is copied, since " + reasonOfPart(copy);
  StringRef way =
      copy.inputMap == copy.outputMap ? "in place"
      : copy.inputMap.getNumResults() < copy.outputMap.getNumResults() ||
              !copy.inputMap.isProjectedPermutation()
          ? "repeated"
          : "transposed";
  return ("elements are " + (way == "in place" ? "copied" : way)).str() +
         ", since " + reasonOfReaders(copy, way);
}

/// Returns the bytes of the results, e.g. "512 * B * T bytes"; an empty string
/// if they have different formulas.
static std::string bytesText(ArrayRef<Copy> copies, ExtentAnalysis &extents) {
  std::optional<Extent> sum;
  for (const Copy &copy : copies) {
    auto type = cast<RankedTensorType>(copy.result.getType());
    Extent extent = extents.groupOf(copy.result,
                                    llvm::to_vector(llvm::seq(type.getRank())));
    extent.factor *= elementBytesOf(type);
    if (!sum)
      sum = extent;
    else if (sum->unknowns == extent.unknowns)
      sum->factor += extent.factor;
    else
      return {};
  }
  std::string text = std::to_string(sum->factor);
  if (!sum->isStatic())
    for (unsigned unknown : sum->unknowns)
      text += " * " + extents.nameOf(unknown);
  return text + " bytes";
}

void ftuner::remarkOnCopies(FunctionOpInterface function) {
  ExtentAnalysis extents(function);
  function->walk([&](DestinationStyleOpInterface op) {
    SmallVector<Copy> copies = matchCopies(op);
    if (copies.empty())
      return;
    SmallVector<std::string> texts;
    for (const Copy &copy : copies)
      if (std::string text = describe(copy); !llvm::is_contained(texts, text))
        texts.push_back(std::move(text));
    std::string text = llvm::join(texts, "; ");
    op->setAttr(kCopyAttrName, StringAttr::get(op.getContext(), text));
    std::string bytes = bytesText(copies, extents);
    emitRemark(op.getLoc(), "copy: ")
        << text << (bytes.empty() ? "" : " (" + bytes + ")");
  });
}
