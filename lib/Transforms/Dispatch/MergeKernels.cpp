//===- MergeKernels.cpp - Equal kernels are one ---------------------------===//
//
// Layers of a model repeat their operators: what differs is the name of the
// kernel and where it comes from, which is not part of its code. So kernels are
// addressed by content, and of equal ones the first stays.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/MapVector.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELMERGEKERNELSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

constexpr auto kContent = OperationEquivalence::IgnoreLocations;

ukernel::EntryAttr entryOf(gpu::GPUModuleOp kernel) {
  return kernel->getAttrOfType<ukernel::EntryAttr>(
      ukernel::UKernelDialect::kEntryAttrName);
}

ukernel::EntryAttr withUses(ukernel::EntryAttr entry,
                            ArrayRef<ukernel::UseAttr> uses) {
  return ukernel::EntryAttr::get(
      entry.getContext(), entry.getThreads(), entry.getSharedMemoryBytes(),
      entry.getAlignment(), entry.getParameters(), uses);
}

/// The attributes of a kernel's module or function that are content: all but
/// its name, and the uses that its entry tells.
DictionaryAttr contentOf(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase(SymbolTable::getSymbolAttrName());
  StringRef entry = ukernel::UKernelDialect::kEntryAttrName;
  if (auto described =
          dyn_cast_or_null<ukernel::EntryAttr>(attributes.get(entry)))
    attributes.set(entry, withUses(described, {}));
  return attributes.getDictionary(op->getContext());
}

llvm::hash_code hashOf(gpu::GPUModuleOp kernel) {
  llvm::hash_code hash = hash_value(contentOf(kernel));
  kernel.walk([&](Operation *op) {
    // Functions have the names of their kernels.
    if (op == kernel || isa<gpu::GPUFuncOp>(op))
      return;
    hash = llvm::hash_combine(
        hash, OperationEquivalence::computeHash(
                  op, OperationEquivalence::ignoreHashValue,
                  OperationEquivalence::ignoreHashValue, kContent));
  });
  return hash;
}

bool areEqual(gpu::GPUModuleOp lhs, gpu::GPUModuleOp rhs) {
  if (contentOf(lhs) != contentOf(rhs))
    return false;
  auto lhsOps = lhs.getOps(), rhsOps = rhs.getOps();
  auto a = lhsOps.begin(), b = rhsOps.begin();
  for (; a != lhsOps.end() && b != rhsOps.end(); ++a, ++b) {
    auto lhsFunc = dyn_cast<gpu::GPUFuncOp>(*a);
    auto rhsFunc = dyn_cast<gpu::GPUFuncOp>(*b);
    bool isEqual =
        lhsFunc && rhsFunc
            ? contentOf(lhsFunc) == contentOf(rhsFunc) &&
                  OperationEquivalence::isRegionEquivalentTo(
                      &lhsFunc.getBody(), &rhsFunc.getBody(), kContent)
            : OperationEquivalence::isEquivalentTo(&*a, &*b, kContent);
    if (!isEqual)
      return false;
  }
  return a == lhsOps.end() && b == rhsOps.end();
}

struct MergeKernelsPass
    : public ftuner::impl::UKernelMergeKernelsPassBase<MergeKernelsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::DenseMap<uint64_t, SmallVector<gpu::GPUModuleOp, 1>> kept;
    /// From the name of a kernel that goes to the one that stays.
    llvm::DenseMap<StringAttr, StringAttr> renamed;
    llvm::MapVector<gpu::GPUModuleOp, llvm::SetVector<ukernel::UseAttr>> uses;
    for (auto kernel :
         llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
      ukernel::EntryAttr entry = entryOf(kernel);
      if (!entry)
        continue;
      auto &candidates = kept[static_cast<uint64_t>(hashOf(kernel))];
      auto *equal = llvm::find_if(candidates, [&](gpu::GPUModuleOp other) {
        return areEqual(other, kernel);
      });
      bool isFirst = equal == candidates.end();
      gpu::GPUModuleOp stays = isFirst ? kernel : *equal;
      uses[stays].insert(entry.getUses().begin(), entry.getUses().end());
      if (isFirst) {
        candidates.push_back(kernel);
        continue;
      }
      renamed[kernel.getSymNameAttr()] = stays.getSymNameAttr();
      kernel.erase();
      ++numMerged;
    }
    if (renamed.empty())
      return markAllAnalysesPreserved();
    for (auto &[kernel, launches] : uses)
      kernel->setAttr(ukernel::UKernelDialect::kEntryAttrName,
                      withUses(entryOf(kernel), launches.getArrayRef()));
    module.walk([&](ukernel::LaunchOp launch) {
      StringAttr name = renamed.lookup(launch.getKernel().getRootReference());
      if (name)
        launch.setKernelAttr(
            SymbolRefAttr::get(name, {FlatSymbolRefAttr::get(name)}));
    });
  }
};

} // namespace
