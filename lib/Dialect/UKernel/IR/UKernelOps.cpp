//===- UKernelOps.cpp - Operations ----------------------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace ftuner::ukernel;

//===----------------------------------------------------------------------===//
// Parts of a combine: [%n1 x 112, 128] or [128]
//===----------------------------------------------------------------------===//

static ParseResult
parseParts(OpAsmParser &parser,
           std::optional<OpAsmParser::UnresolvedOperand> &count,
           DenseI64ArrayAttr &heights) {
  if (parser.parseLSquare())
    return failure();
  SmallVector<int64_t, 2> values;
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult hasCount = parser.parseOptionalOperand(operand);
  if (hasCount.has_value()) {
    if (failed(*hasCount) || parser.parseKeyword("x") ||
        parser.parseInteger(values.emplace_back()) || parser.parseComma())
      return failure();
    count = operand;
  }
  if (parser.parseInteger(values.emplace_back()) || parser.parseRSquare())
    return failure();
  heights = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printParts(OpAsmPrinter &printer, CombineOp, Value count,
                       DenseI64ArrayAttr heights) {
  printer << "[";
  if (count)
    printer << count << " x ";
  llvm::interleaveComma(heights.asArrayRef(), printer);
  printer << "]";
}

#define GET_OP_CLASSES
#include "FTuner/Dialect/UKernel/IR/UKernelOps.cpp.inc"

//===----------------------------------------------------------------------===//
// YieldOp
//===----------------------------------------------------------------------===//

LogicalResult YieldOp::verify() {
  Operation *parent = (*this)->getParentOp();
  if (isa_and_nonnull<OperatorOpInterface>(parent))
    return success();
  InFlightDiagnostic error =
      emitOpError("expected to be in a region of an operator");
  if (parent)
    error << ", but got '" << parent->getName() << "'";
  return error;
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc location;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.getCurrentLocation(&location) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  // Without this check, another attribute would be taken for a missing
  // schedule.
  Attribute schedule = result.attributes.get(getScheduleAttrName(result.name));
  if (schedule && !isa<ScheduleAttrInterface>(schedule))
    return parser.emitError(location)
           << "expected the schedule of a codegen path, but got " << schedule;
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(
      getBody().getArguments(), printer,
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/true);
}

LogicalResult KernelOp::verify() {
  if (getBody().empty())
    return emitOpError("expected a body");
  return success();
}

/// kernel_c1.
static LogicalResult verifyArguments(KernelOp op) {
  unsigned numIndexArguments = op.getNumAxes() + 1;
  TypeRange types = op.getBody().getArgumentTypes();
  if (types.size() < 1 + numIndexArguments)
    return op.emitOpError("expected operands and ")
           << numIndexArguments << " arguments of type index, but got "
           << types.size() << " arguments";
  for (Type type : types.take_back(numIndexArguments))
    if (!type.isIndex())
      return op.emitOpError("expected the last ")
             << numIndexArguments << " arguments of type index, but got "
             << type;
  return success();
}

/// The kernel argument that an operand of the tile's operator reads.
static Value stripPads(Value value) {
  while (auto pad = value.getDefiningOp<PadOp>())
    value = pad.getSource();
  return value;
}

LogicalResult KernelOp::verifyRegions() {
  Block &body = getBody().front();
  if (body.empty() || !isa<CombineOp>(body.back()))
    return emitOpError("expected a body that ends with a 'ukernel.combine'");
  for (Operation &op : llvm::drop_end(body))
    if (!op.hasTrait<OpTrait::ConstantLike>())
      return emitOpError("expected only constants before 'ukernel.combine', "
                         "but got '")
             << op.getName() << "'";
  if (failed(verifyArguments(*this)))
    return failure();
  ValueRange arguments = getOperandArguments();
  WalkResult result = walk([&](OperatorOpInterface op) {
    if (op->getNumOperands() != arguments.size())
      return WalkResult(op->emitOpError("expected ")
                        << arguments.size()
                        << " operands as the kernel has, but got "
                        << op->getNumOperands());
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      bool isConstant = !isa<MemRefType>(operand.getType()) &&
                        matchPattern(operand, m_Constant());
      if (!isConstant && stripPads(operand) != arguments[index])
        return WalkResult(op->emitOpError("expected operand ")
                          << index << " to be argument " << index
                          << " of the kernel");
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

ValueRange KernelOp::getOperandArguments() {
  return ValueRange(getBody().getArguments()).drop_back(getNumAxes() + 1);
}

unsigned KernelOp::getNumAxes() {
  auto tile = cast<TileOp>(getCombine().getBody().front().front());
  return tile.getSizes().size();
}

CombineOp KernelOp::getCombine() {
  return cast<CombineOp>(getBody().front().back());
}

//===----------------------------------------------------------------------===//
// CombineOp, TileOp
//===----------------------------------------------------------------------===//

LogicalResult CombineOp::verify() {
  size_t numHeights = getHeights().size();
  if (numHeights < 1 || numHeights > 2)
    return emitOpError("expected one or two heights, but got ") << numHeights;
  if ((numHeights == 2) != static_cast<bool>(getCount()))
    return emitOpError("expected a count for two heights only, but got ")
           << numHeights << (numHeights == 1 ? " height" : " heights")
           << (getCount() ? " with" : " without") << " a count";
  if (std::optional<uint64_t> split = getSplit();
      split && static_cast<int64_t>(*split) < 1)
    return emitOpError("expected a split-K factor of at least 1, but got ")
           << static_cast<int64_t>(*split);
  return success();
}

LogicalResult CombineOp::verifyRegions() {
  SmallVector<DenseI64ArrayAttr, 2> tiles;
  for (Operation &op : getBody().front()) {
    auto tile = dyn_cast<TileOp>(op);
    if (!tile)
      return emitOpError("expected a body of 'ukernel.tile', but got '")
             << op.getName() << "'";
    tiles.push_back(tile.getSizesAttr());
  }
  if (tiles.size() != getHeights().size())
    return emitOpError("expected one tile for each of ")
           << getHeights().size() << " heights, but got " << tiles.size();
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  int64_t axis = getAxis();
  if (failed(verifyTiles([&] { return emitOpError(); }, kernel.getSchedule(),
                         axis, tiles)))
    return failure();
  for (auto [tile, height] : llvm::zip_equal(tiles, getHeights()))
    if (tile[axis] != height)
      return emitOpError("expected height ")
             << tile[axis] << " of the tile, but got " << height;
  if (getSplit().value_or(1) == 1)
    return success();
  // Slices are sums: the kernel that adds them up starts from the operand and
  // computes the epilogue, once for all slices.
  for (auto tile : getBody().front().getOps<TileOp>()) {
    auto op = dyn_cast<ReductionOpInterface>(tile.getOperator().getOperation());
    if (op && (op.hasEpilogue() ||
               isa<ShapedType>(op.getStartOperand().get().getType())))
      return emitOpError("expected operators without epilogue that start from "
                         "a scalar, as each of ")
             << *getSplit() << " slices is a sum by itself";
  }
  return success();
}

LogicalResult TileOp::verifyRegions() {
  Block &body = getBody().front();
  OperatorOpInterface op =
      body.empty() ? nullptr : dyn_cast<OperatorOpInterface>(body.back());
  if (!op)
    return emitOpError("expected a body that ends with an operator such as "
                       "'ukernel.workload'");
  for (Operation &before : llvm::drop_end(body))
    if (!isa<PadOp>(before))
      return emitOpError("expected only 'ukernel.pad' before the operator, "
                         "but got '")
             << before.getName() << "'";
  if (op.hasTensors())
    return emitOpError("expected an operator on memrefs");
  size_t rank = getSizes().size();
  if (unsigned numAxes = op.getNumAxes(); rank != numAxes)
    return emitOpError("expected sizes of ")
           << numAxes << " axes, but got " << rank;
  return success();
}

OperatorOpInterface TileOp::getOperator() {
  return cast<OperatorOpInterface>(getBody().front().back());
}

//===----------------------------------------------------------------------===//
// PadOp
//===----------------------------------------------------------------------===//

LogicalResult PadOp::verify() {
  auto type = cast<MemRefType>(getSource().getType());
  if (type.getRank() != static_cast<int64_t>(getTile().size()))
    return emitOpError("expected one tile size for each of ")
           << type.getRank() << " dimensions, but got " << getTile().size();
  for (int64_t size : getTile())
    if (size < 1)
      return emitOpError("expected tile sizes of at least 1, but got ") << size;
  return success();
}

bool PadOp::isExact(unsigned dim) {
  int64_t size = getTile()[dim];
  int64_t extent = cast<MemRefType>(getSource().getType()).getDimSize(dim);
  return size == 1 || (ShapedType::isStatic(extent) && extent % size == 0);
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  SmallVector<int64_t> tile(getTile());
  for (auto [dim, size] : llvm::enumerate(tile))
    if (isExact(dim))
      size = 1;
  if (llvm::all_of(tile, [](int64_t size) { return size == 1; }))
    return getSource();
  if (ArrayRef<int64_t>(tile) == getTile())
    return {};
  setTile(tile);
  return getResult();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verify() {
  for (Type type : getArgs().getTypes())
    if (!isa<MemRefType>(type) && !type.isIntOrIndexOrFloat())
      return emitOpError("expected arguments that are memrefs or scalars, "
                         "but got ")
             << type;
  return success();
}

/// Returns whether an argument fits the kernel's parameter (launch_c3).
static bool isCompatible(Type argument, Type parameter) {
  auto given = dyn_cast<MemRefType>(argument);
  auto wanted = dyn_cast<MemRefType>(parameter);
  if (!given || !wanted)
    return argument == parameter;
  return given.getElementType() == wanted.getElementType() &&
         given.getRank() == wanted.getRank();
}

LogicalResult PlanOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  FlatSymbolRefAttr name = getPortableAttr();
  if (!name)
    return success();
  auto portable = symbolTable.lookupNearestSymbolFrom<PlanOp>(*this, name);
  if (!portable || portable == *this)
    return emitOpError("expected ") << name << " to be another 'ukernel.plan'";
  if (portable.getPortableAttr())
    return emitOpError("expected ")
           << name << " to be portable, but it names a portable plan itself";
  size_t rank = getPlan().getFamilies().front().getRank();
  size_t portableRank = portable.getPlan().getFamilies().front().getRank();
  if (rank != portableRank)
    return emitOpError("expected a portable plan of ")
           << rank << " axes, but got " << portableRank;
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  Operation *target =
      symbolTable.lookupNearestSymbolFrom(getOperation(), getKernelAttr());
  if (!isa_and_nonnull<KernelOp, FunctionOpInterface>(target))
    return emitOpError("expected ")
           << getKernelAttr() << " to be a 'ukernel.kernel' or a function";
  auto kernel = dyn_cast<KernelOp>(target);
  if (!kernel)
    return success();
  ValueRange parameters = kernel.getOperandArguments();
  if (parameters.size() != getArgs().size())
    return emitOpError("expected ")
           << parameters.size() << " arguments, but got " << getArgs().size();
  for (auto [index, argument] : llvm::enumerate(getArgs()))
    if (!isCompatible(argument.getType(), parameters[index].getType()))
      return emitOpError("expected argument ")
             << index << " of type " << parameters[index].getType()
             << ", but got " << argument.getType();
  if (getSizes().size() != kernel.getNumAxes())
    return emitOpError("expected ")
           << kernel.getNumAxes() << " sizes, but got " << getSizes().size();
  if (getParts().size() > 1)
    return emitOpError("expected at most one part, but got ")
           << getParts().size();
  return success();
}

//===----------------------------------------------------------------------===//
// AssertOp
//===----------------------------------------------------------------------===//

/// assert_c1.
LogicalResult AssertOp::verify() {
  constexpr size_t kMaxSizes = 10;
  if (getSizes().size() <= kMaxSizes)
    return success();
  return emitOpError() << "expected at most " << kMaxSizes << " sizes, but got "
                       << getSizes().size();
}

LogicalResult AssertOp::canonicalize(AssertOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return failure();
  rewriter.eraseOp(op);
  return success();
}
