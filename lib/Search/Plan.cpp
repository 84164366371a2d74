//===- Plan.cpp - The answer of a search ----------------------------------===//
#include "FTuner/Search/Plan.h"

using namespace ftuner;

bool DispatchEntry::contains(llvm::ArrayRef<int64_t> shape) const {
  if (box.size() != shape.size())
    return false;
  for (unsigned axis = 0; axis < box.size(); ++axis)
    if (!box[axis].contains(shape[axis]))
      return false;
  return true;
}

std::optional<unsigned> Plan::entryFor(llvm::ArrayRef<int64_t> shape) const {
  for (unsigned index = 0; index < entries.size(); ++index)
    if (entries[index].contains(shape))
      return index;
  return std::nullopt;
}

unsigned Plan::familyFor(llvm::ArrayRef<int64_t> shape) const {
  std::optional<unsigned> entry = entryFor(shape);
  return entry ? entries[*entry].family : generalFamily;
}
