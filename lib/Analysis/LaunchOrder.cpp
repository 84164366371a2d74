//===- LaunchOrder.cpp - Order of launches --------------------------------===//
#include "FTuner/Analysis/LaunchOrder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace ftuner;

/// The memory that a memref is of; null if not known.
static Value bufferOf(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    // Each buffer of the workspace is one view of it.
    if (isa<memref::ViewOp, memref::AllocOp, memref::GetGlobalOp>(op))
      return memref;
    if (auto transpose = dyn_cast<memref::TransposeOp>(op))
      memref = transpose.getIn();
    else if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      memref = view.getViewSource();
    else
      return {};
  }
  auto argument = cast<BlockArgument>(memref);
  return argument.getOwner()->isEntryBlock() &&
                 isa<FunctionOpInterface>(argument.getOwner()->getParentOp())
             ? memref
             : Value();
}

/// Marks the accesses of a kernel that is not emitted to its operands.
static void markOperands(ukernel::KernelOp kernel,
                         MutableArrayRef<BufferAccess> operands) {
  ukernel::OperatorOpInterface op;
  kernel.walk([&](ukernel::OperatorOpInterface inner) { op = inner; });
  for (auto [number, operand] : llvm::enumerate(operands)) {
    operand.isWritten = op.getOperandRole(number) == OperandRole::Output;
    operand.isRead = !operand.isWritten || op.readsOutput();
  }
}

/// Marks the accesses of an emitted kernel. Its entry describes its pointers,
/// one for each memref, in their order.
static void markPointers(ukernel::EntryAttr entry,
                         MutableArrayRef<BufferAccess> memrefs) {
  SmallVector<StringRef> accesses;
  for (auto parameter : entry.getParameters().getAsRange<DictionaryAttr>())
    if (auto access = parameter.getAs<StringAttr>("access"))
      accesses.push_back(access.getValue());
  if (accesses.size() != memrefs.size())
    return;
  for (auto [memref, access] : llvm::zip_equal(memrefs, accesses)) {
    memref.isRead = access != "write";
    memref.isWritten = access != "read";
  }
}

std::vector<BufferAccess> ftuner::accessesOf(ukernel::LaunchOp launch) {
  SmallVector<BufferAccess> accesses;
  for (Value argument : launch.getArgs())
    accesses.push_back(
        {isa<BaseMemRefType>(argument.getType()) ? bufferOf(argument) : Value(),
         true, true});
  Operation *kernel =
      SymbolTable::lookupSymbolIn(launch->getParentOfType<ModuleOp>(),
                                  launch.getKernel().getRootReference());
  auto unlowered = dyn_cast_or_null<ukernel::KernelOp>(kernel);
  if (unlowered &&
      unlowered.getOperandArguments().size() == launch.getArgs().size())
    markOperands(unlowered, accesses);
  std::vector<BufferAccess> ofMemrefs;
  for (auto [argument, access] : llvm::zip_equal(launch.getArgs(), accesses))
    if (isa<BaseMemRefType>(argument.getType()))
      ofMemrefs.push_back(access);
  if (kernel)
    if (auto entry = kernel->getAttrOfType<ukernel::EntryAttr>(
            ukernel::UKernelDialect::kEntryAttrName))
      markPointers(entry, ofMemrefs);
  return ofMemrefs;
}

/// Returns whether one of two launches writes a buffer that the other one
/// accesses.
static bool areOrdered(ArrayRef<BufferAccess> earlier,
                       ArrayRef<BufferAccess> later) {
  return llvm::any_of(earlier, [&](const BufferAccess &a) {
    return llvm::any_of(later, [&](const BufferAccess &b) {
      return (a.isWritten || b.isWritten) &&
             (!a.buffer || !b.buffer || a.buffer == b.buffer);
    });
  });
}

std::vector<std::vector<size_t>>
ftuner::launchOrder(ArrayRef<std::vector<BufferAccess>> launches) {
  std::vector<std::vector<size_t>> order(launches.size());
  // Launches that each launch waits for, directly or through others.
  std::vector<llvm::BitVector> before(launches.size(),
                                      llvm::BitVector(launches.size()));
  for (size_t later = 0; later < launches.size(); ++later) {
    for (size_t earlier = later; earlier-- > 0;) {
      if (before[later].test(earlier) ||
          !areOrdered(launches[earlier], launches[later]))
        continue;
      before[later] |= before[earlier];
      before[later].set(earlier);
      order[later].insert(order[later].begin(), earlier);
    }
  }
  return order;
}
