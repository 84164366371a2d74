//===- UnreadSymbols.cpp - Declared sizes that no shape has ---------------===//
#include "FTuner/Analysis/SizeSources.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "OperatorSizes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

/// Collects names of sizes from a list of names and numbers.
static void collectNames(Attribute list, llvm::SetVector<StringRef> &names) {
  if (auto sizes = dyn_cast_or_null<ArrayAttr>(list))
    for (Attribute size : sizes)
      if (auto name = dyn_cast<StringAttr>(size))
        names.insert(name.getValue());
}

/// Returns the known name that is most like `name`; empty if none is like it.
static StringRef findClosest(StringRef name, ArrayRef<StringRef> known) {
  StringRef closest;
  unsigned minDistance = std::max<unsigned>(1, name.size() / 2) + 1;
  for (StringRef candidate : known) {
    unsigned distance = name.edit_distance_insensitive(candidate);
    if (distance < minDistance) {
      minDistance = distance;
      closest = candidate;
    }
  }
  return closest;
}

void ftuner::warnOfUnreadSymbols(ModuleOp module) {
  auto declared = module->getAttrOfType<DictionaryAttr>(
      ukernel::UKernelDialect::kSymbolsAttrName);
  if (!declared)
    return;
  llvm::SetVector<StringRef> names;
  module.walk([&](Operation *op) {
    collectNames(op->getAttr(kSizesAttrName), names);
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        collectNames(
            function.getArgAttr(i, ukernel::UKernelDialect::kShapeAttrName),
            names);
  });
  SmallVector<StringRef> unread, known;
  for (StringRef name : names)
    if (!declared.contains(name))
      known.push_back(name);
  // A misspelt range leaves a name without one.
  if (known.empty())
    known.append(names.begin(), names.end());
  for (NamedAttribute symbol : declared)
    if (!names.contains(symbol.getName().getValue()))
      unread.push_back(symbol.getName().getValue());
  for (StringRef name : unread) {
    auto range = cast<ukernel::RangeAttr>(declared.get(name));
    InFlightDiagnostic warning =
        module.emitWarning("no shape has the size '")
        << name << "', so its range"
        << (range.getWeights() ? " with weights" : "") << " in '"
        << ukernel::UKernelDialect::kSymbolsAttrName << "' changes nothing";
    if (StringRef closest = findClosest(name, known); !closest.empty())
      warning << "; did you mean '" << closest << "'?";
  }
}
