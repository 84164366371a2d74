//===- ConvertWarpgroupOps.cpp - Asynchronous products of a warpgroup -----===//
//
// The result of a wgmma is there only after the wait for it. So D lies in
// memory of the thread, its home, as it lies in registers of a GPU, and the
// value of the operation is a version of this memory: an i32, 0 for a value
// that comes from elsewhere. Products whose results reach one another, directly
// or as arguments of blocks, have one home. Where anything else uses a result,
// the runtime reads the home, and reports products in flight.
//
//===----------------------------------------------------------------------===//
#include "KernelConverter.h"
#include "Matrices/WarpMatrix.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace ftuner::emulator;

static std::optional<MmaElement> convertElement(NVVM::WGMMATypes type) {
  switch (type) {
  case NVVM::WGMMATypes::f16:
    return MmaElement::F16;
  case NVVM::WGMMATypes::bf16:
    return MmaElement::BF16;
  case NVVM::WGMMATypes::tf32:
    return MmaElement::TF32;
  case NVVM::WGMMATypes::s8:
    return MmaElement::S8;
  case NVVM::WGMMATypes::u8:
    return MmaElement::U8;
  default:
    return std::nullopt;
  }
}

/// The variant of `op`, if the emulator has it.
static std::optional<GroupVariant> getVariant(NVVM::WgmmaMmaAsyncOp op) {
  std::optional<MmaElement> a = convertElement(op.getTypeA());
  std::optional<MmaElement> b = convertElement(op.getTypeB());
  if (!a || !b)
    return std::nullopt;
  GroupVariant variant{};
  variant.a = *a;
  variant.b = *b;
  bool isInteger = MmaVariant::packing(*a) == 4;
  if (isInteger ? MmaVariant::packing(*b) != 4 : *a != *b)
    return std::nullopt;
  bool saturates = op.getSatfinite().value_or(NVVM::MMAIntOverflow::wrapped) ==
                   NVVM::MMAIntOverflow::satfinite;
  if (isInteger && op.getTypeD() == NVVM::WGMMATypes::s32)
    variant.accumulator =
        saturates ? MmaAccumulator::SaturatedI32 : MmaAccumulator::I32;
  else if (!isInteger && op.getTypeD() == NVVM::WGMMATypes::f32)
    variant.accumulator = MmaAccumulator::F32;
  else if (*a == MmaElement::F16 && op.getTypeD() == NVVM::WGMMATypes::f16)
    variant.accumulator = MmaAccumulator::F16;
  else
    return std::nullopt;
  variant.columns = static_cast<unsigned>(op.getShape().getN());
  variant.startsAtZero = op.getScaleD() == NVVM::WGMMAScaleOut::zero;
  variant.isNegative = op.getScaleA() != op.getScaleB();
  variant.hasRowsInner = op.getLayoutA() == NVVM::MMALayout::col;
  variant.hasColumnsInner = op.getLayoutB() == NVVM::MMALayout::row;
  auto isRegister = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.getNumElements() == 2 &&
                        vector.getElementTypeBitWidth() == 16
                  : type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 32;
  };
  ArrayRef<Type> registers =
      cast<LLVM::LLVMStructType>(op.getInouts().getType()).getBody();
  bool isTransposed = variant.hasRowsInner || variant.hasColumnsInner;
  if (op.getShape().getM() != static_cast<int>(GroupVariant::kRows) ||
      op.getShape().getK() !=
          static_cast<int>(8 * MmaVariant::packing(variant.a)) ||
      variant.columns == 0 || variant.columns % 8 != 0 ||
      variant.columns > GroupVariant::kMaxColumns ||
      registers.size() != variant.registersOfD() ||
      !llvm::all_of(registers, isRegister) ||
      (isTransposed && MmaVariant::packing(variant.a) != 2))
    return std::nullopt;
  return variant;
}

//===----------------------------------------------------------------------===//
// Values that stay in homes
//===----------------------------------------------------------------------===//

namespace {
/// The products of a kernel.
class ProductWebs {
public:
  explicit ProductWebs(ArrayRef<NVVM::WgmmaMmaAsyncOp> products);

  bool contains(Value value) const { return values.contains(value); }
  const llvm::SetVector<Value> &getValues() const { return values; }
  /// Any value of the same home, the same for all of them.
  Value leaderOf(Value value) const { return classes.getLeaderValue(value); }

private:
  llvm::SetVector<Value> values;
  llvm::EquivalenceClasses<Value> classes;
};
} // namespace

/// The argument of a block that `use` gives its value, or null.
static BlockArgument getTarget(OpOperand &use) {
  auto branch = dyn_cast<BranchOpInterface>(use.getOwner());
  if (!branch)
    return {};
  return branch.getSuccessorBlockArgument(use.getOperandNumber())
      .value_or(BlockArgument());
}

ProductWebs::ProductWebs(ArrayRef<NVVM::WgmmaMmaAsyncOp> products) {
  for (NVVM::WgmmaMmaAsyncOp op : products)
    values.insert(op.getResults());
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses())
      if (BlockArgument target = getTarget(use))
        values.insert(target);
  for (Value value : values)
    classes.insert(value);
  for (Value value : values)
    for (OpOperand &use : value.getUses()) {
      if (BlockArgument target = getTarget(use))
        classes.unionSets(value, target);
      else if (auto op = dyn_cast<NVVM::WgmmaMmaAsyncOp>(use.getOwner()))
        classes.unionSets(value, op.getResults());
    }
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

/// Puts each extraction from a value of the webs directly before its users:
/// it only names a register.
static void sinkExtractions(const ProductWebs &webs,
                            SmallPtrSetImpl<Operation *> &erased) {
  for (Value value : webs.getValues())
    for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
      auto extract = dyn_cast<LLVM::ExtractValueOp>(user);
      if (!extract)
        continue;
      for (OpOperand &use : llvm::make_early_inc_range(extract->getUses())) {
        OpBuilder builder(use.getOwner());
        use.set(builder.clone(*extract)->getResult(0));
      }
      erased.insert(extract);
      extract->erase();
    }
}

LogicalResult KernelConverter::convertProducts(LLVM::LLVMFuncOp kernel,
                                               SmallVector<Operation *> &ops) {
  SmallVector<NVVM::WgmmaMmaAsyncOp> products;
  for (Operation *op : ops)
    if (auto product = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op)) {
      if (product->getParentOfType<LLVM::LLVMFuncOp>() != kernel)
        return product.emitError("no emulation rule for ")
               << product->getName() << " in a function that a kernel calls";
      if (!getVariant(product))
        return product.emitError("no emulation rule for ")
               << product->getName() << " of this shape and these types";
      products.push_back(product);
    }
  if (products.empty())
    return success();
  ProductWebs webs(products);
  SmallPtrSet<Operation *, 16> erased;
  sinkExtractions(webs, erased);

  // Where reads of a value may share one: between two waits of a block.
  llvm::DenseMap<Operation *, unsigned> placeOf;
  unsigned segment = 0;
  llvm::DenseMap<Operation *, unsigned> segmentOf;
  for (Block &block : kernel.getBody()) {
    ++segment;
    for (Operation &op : block) {
      segment += isa<NVVM::WgmmaWaitGroupSyncOp>(op);
      segmentOf[&op] = segment;
      placeOf[&op] = static_cast<unsigned>(placeOf.size());
    }
  }

  // Homes, and room for what enters or leaves them.
  Location loc = kernel.getLoc();
  OpBuilder entry = OpBuilder::atBlockBegin(&kernel.getBody().front());
  auto allocate = [&](unsigned words) -> Value {
    return LLVM::AllocaOp::create(entry, loc, pointerType, i32Type,
                                  i32(entry, loc, words), /*alignment=*/16);
  };
  Value room = allocate(GroupVariant::kMaxColumns / 2);
  Value zero = i32(entry, loc, 0);
  llvm::MapVector<Value, Value> homes;
  for (Value value : webs.getValues()) {
    Value &home = homes[webs.leaderOf(value)];
    if (home)
      continue;
    auto type = cast<LLVM::LLVMStructType>(value.getType());
    home = allocate(static_cast<unsigned>(type.getBody().size()) +
                    kAccumulatorHeader);
    LLVM::StoreOp::create(entry, loc, zero, home);
  }
  auto homeOf = [&](Value value) { return homes[webs.leaderOf(value)]; };
  auto registerAt = [&](OpBuilder &builder, Location at,
                        size_t index) -> Value {
    return LLVM::GEPOp::create(builder, at, pointerType, i32Type, room,
                               ArrayRef<LLVM::GEPArg>{int32_t(index)});
  };
  auto store = [&](OpBuilder &builder, Location at, Value value) {
    auto type = cast<LLVM::LLVMStructType>(value.getType());
    for (size_t i = 0; i < type.getBody().size(); ++i)
      LLVM::StoreOp::create(
          builder, at,
          LLVM::ExtractValueOp::create(builder, at, value, int64_t(i)),
          registerAt(builder, at, i), /*alignment=*/1);
  };

  // The versions; those of products are known once they are converted.
  llvm::DenseMap<Value, Value> versions;
  for (Value value : webs.getValues())
    if (auto argument = dyn_cast<BlockArgument>(value))
      versions[value] = argument.getOwner()->addArgument(i32Type, loc);
  SmallVector<std::pair<LLVM::CallOp, Value>> calls;
  for (NVVM::WgmmaMmaAsyncOp op : products) {
    OpBuilder builder(op);
    Value from = op.getInouts();
    // A product's own result is in its home.
    if (!from.getDefiningOp<NVVM::WgmmaMmaAsyncOp>())
      store(builder, op.getLoc(), from);
    LLVM::CallOp call = callRuntime(
        op, "ftuner_emulator_multiply_group", i32Type,
        {homeOf(op.getResults()), room, zero, op.getDescriptorA(),
         op.getDescriptorB(),
         i32(builder, op.getLoc(), getVariant(op)->encode()), site(op)});
    versions[op.getResults()] = call.getResult();
    calls.push_back({call, from});
  }
  constexpr unsigned kVersionOperand = 3; // Of the runtime function.
  for (auto [call, from] : calls)
    if (webs.contains(from))
      call->setOperand(kVersionOperand, versions[from]);

  // Edges: an argument takes its version after all others of its block, in
  // the order in which they were added.
  for (Value value : webs.getValues()) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      continue;
    Block *block = argument.getOwner();
    llvm::SmallPtrSet<Operation *, 4> seen;
    for (Block *predecessor : block->getPredecessors()) {
      auto branch = cast<BranchOpInterface>(predecessor->getTerminator());
      if (!seen.insert(branch).second)
        continue;
      for (unsigned i = 0, e = branch->getNumSuccessors(); i < e; ++i) {
        if (branch->getSuccessor(i) != block)
          continue;
        SuccessorOperands operands = branch.getSuccessorOperands(i);
        Value from = operands[argument.getArgNumber()];
        operands.append(webs.contains(from) ? versions[from] : zero);
      }
    }
  }

  // Other uses read the home, once between two waits.
  llvm::MapVector<std::pair<Value, unsigned>, SmallVector<OpOperand *>> reads;
  for (Value value : webs.getValues())
    for (OpOperand &use : value.getUses())
      if (!getTarget(use) && !isa<NVVM::WgmmaMmaAsyncOp>(use.getOwner()) &&
          segmentOf.contains(use.getOwner()))
        reads[{value, segmentOf[use.getOwner()]}].push_back(&use);
  for (auto &[key, uses] : reads) {
    Value value = key.first;
    Operation *first = uses.front()->getOwner();
    for (OpOperand *use : uses)
      if (placeOf[use->getOwner()] < placeOf[first])
        first = use->getOwner();
    OpBuilder builder(first);
    Location at = first->getLoc();
    auto type = cast<LLVM::LLVMStructType>(value.getType());
    if (isa<BlockArgument>(value))
      store(builder, at, value);
    callRuntime(first, "ftuner_emulator_read_accumulators", voidType,
                {homeOf(value), room, versions[value],
                 i32(builder, at, static_cast<int64_t>(type.getBody().size())),
                 site(first)});
    Value result = LLVM::PoisonOp::create(builder, at, type);
    for (auto [i, member] : llvm::enumerate(type.getBody()))
      result = LLVM::InsertValueOp::create(
          builder, at, result,
          LLVM::LoadOp::create(builder, at, member, registerAt(builder, at, i),
                               /*alignment=*/4),
          ArrayRef<int64_t>{int64_t(i)});
    for (OpOperand *use : uses)
      use->set(result);
  }

  for (NVVM::WgmmaMmaAsyncOp op : products) {
    OpBuilder builder(op);
    Value poison =
        LLVM::PoisonOp::create(builder, op.getLoc(), op.getResults().getType());
    op.getResults().replaceAllUsesWith(poison);
    erased.insert(op);
  }
  for (NVVM::WgmmaMmaAsyncOp op : products)
    op.erase();
  llvm::erase_if(ops, [&](Operation *op) { return erased.contains(op); });
  return success();
}

LogicalResult KernelConverter::convertTiedAssembly(LLVM::InlineAsmOp op) {
  auto record = op->getNumResults() == 1
                    ? dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType())
                    : LLVM::LLVMStructType();
  SmallVector<StringRef> constraints;
  op.getConstraints().split(constraints, ',');
  size_t count = record ? record.getBody().size() : 1;
  if (!op.getAsmString().empty() || op->getNumResults() != 1 ||
      op.getOperands().size() != count || constraints.size() != 2 * count)
    return reject(op);
  for (size_t i = 0; i < count; ++i) {
    Type type = record ? record.getBody()[i] : op->getResult(0).getType();
    if (!constraints[i].starts_with("=") ||
        constraints[count + i] != std::to_string(i) ||
        op.getOperand(i).getType() != type)
      return reject(op);
  }
  OpBuilder builder(op);
  Value result =
      record ? LLVM::PoisonOp::create(builder, op.getLoc(), record).getResult()
             : op.getOperand(0);
  if (record)
    for (size_t i = 0; i < count; ++i)
      result = LLVM::InsertValueOp::create(builder, op.getLoc(), result,
                                           op.getOperand(i),
                                           ArrayRef<int64_t>{int64_t(i)});
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
  return success();
}
