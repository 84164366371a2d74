//===- Plan.cpp - The answer of a search ----------------------------------===//
#include "FTuner/Search/Plan.h"

using namespace ftuner;

unsigned Plan::familyFor(llvm::ArrayRef<int64_t> shape) const {
  for (const DispatchEntry &entry : entries) {
    bool inside = entry.box.size() == shape.size();
    for (unsigned axis = 0; inside && axis < shape.size(); ++axis)
      inside = entry.box[axis].contains(shape[axis]);
    if (inside)
      return entry.family;
  }
  return generalFamily;
}
