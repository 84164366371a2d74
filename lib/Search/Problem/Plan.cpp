//===- Plan.cpp - The answer of a search ----------------------------------===//
#include "FTuner/Search/Problem/Plan.h"
#include "FTuner/Schedule/CodegenModel.h"
#include <algorithm>
#include <set>

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

int64_t Plan::alignment() const {
  int64_t alignment = families[generalFamily].alignment();
  for (const DispatchEntry &entry : entries)
    alignment = std::max(alignment, families[entry.family].alignment());
  return alignment;
}

bool Plan::needsAlignment() const {
  auto needs = [&](unsigned family) {
    return !families[family].takesAnyAlignment();
  };
  return needs(generalFamily) || std::any_of(entries.begin(), entries.end(),
                                             [&](const DispatchEntry &entry) {
                                               return needs(entry.family);
                                             });
}

std::vector<unsigned> Plan::usedFamilies() const {
  std::set<unsigned> used = {generalFamily, unalignedGeneralFamily};
  for (const DispatchEntry &entry : entries)
    used.insert(entry.family);
  if (needsAlignment())
    for (const DispatchEntry &entry : unalignedEntries)
      used.insert(entry.family);
  return {used.begin(), used.end()};
}

bool Plan::needsExactArchitecture() const {
  std::vector<unsigned> used = usedFamilies();
  return std::any_of(used.begin(), used.end(), [&](unsigned family) {
    return families[family].path().needsExactArchitecture();
  });
}

unsigned Plan::familyFor(llvm::ArrayRef<int64_t> shape,
                         int64_t alignment) const {
  bool isAligned = alignment >= this->alignment();
  llvm::ArrayRef<DispatchEntry> candidates =
      isAligned ? entries : unalignedEntries;
  if (std::optional<unsigned> entry = entryFor(candidates, shape))
    return candidates[*entry].family;
  return isAligned ? generalFamily : unalignedGeneralFamily;
}
