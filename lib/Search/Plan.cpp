//===- Plan.cpp - The answer of a search ----------------------------------===//
#include "FTuner/Search/Plan.h"
#include <algorithm>

using namespace ftuner;

bool DispatchEntry::contains(llvm::ArrayRef<int64_t> shape) const {
  if (box.size() != shape.size())
    return false;
  for (unsigned axis = 0; axis < box.size(); ++axis)
    if (!box[axis].contains(shape[axis]))
      return false;
  return true;
}

std::optional<unsigned> ftuner::entryFor(llvm::ArrayRef<DispatchEntry> entries,
                                         llvm::ArrayRef<int64_t> shape) {
  for (unsigned index = 0; index < entries.size(); ++index)
    if (entries[index].contains(shape))
      return index;
  return std::nullopt;
}

int64_t Plan::alignedWidth() const {
  int64_t width = families[generalFamily].vectorWidth;
  for (const DispatchEntry &entry : entries)
    width = std::max(width, families[entry.family].vectorWidth);
  return width;
}

unsigned Plan::familyFor(llvm::ArrayRef<int64_t> shape,
                         int64_t vectorWidth) const {
  bool isAligned = vectorWidth >= alignedWidth();
  llvm::ArrayRef<DispatchEntry> candidates =
      isAligned ? entries : unalignedEntries;
  if (std::optional<unsigned> entry = entryFor(candidates, shape))
    return candidates[*entry].family;
  return isAligned ? generalFamily : fallbackFamily;
}
