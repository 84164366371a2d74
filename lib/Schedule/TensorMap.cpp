//===- TensorMap.cpp - Operands that the device copies as boxes -----------===//
#include "FTuner/Schedule/TensorMap.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

template <typename... Args>
static llvm::Error invalid(const char *format, Args... args) {
  return llvm::createStringError(std::errc::invalid_argument, format, args...);
}

static bool isOneOf(int64_t value, llvm::ArrayRef<int64_t> values) {
  return llvm::is_contained(values, value);
}

llvm::Error ftuner::checkTensorMapBox(const TensorMapBox &box) {
  if (box.sizes.empty() || box.sizes.size() > kMaxTensorMapRank)
    return invalid("expected a box of 1 to %u dimensions, but got %zu",
                   kMaxTensorMapRank, box.sizes.size());
  for (long long size : box.sizes)
    if (size < 1 || size > kMaxTensorMapBox)
      return invalid("expected a box of 1 to %lld elements along a dimension, "
                     "but got %lld",
                     static_cast<long long>(kMaxTensorMapBox), size);
  if (!box.fitBelow.empty() && box.fitBelow.size() != box.sizes.size())
    return invalid("expected a number of fit_below for each of %zu dimensions, "
                   "but got %zu",
                   box.sizes.size(), box.fitBelow.size());
  for (long long below : box.fitBelow)
    if (below < 0 || below > kMaxTensorMapBox || below % kTensorMapFitRows != 0)
      return invalid("expected numbers of fit_below that are multiples of %lld "
                     "of at most %lld, but got %lld",
                     static_cast<long long>(kTensorMapFitRows),
                     static_cast<long long>(kMaxTensorMapBox), below);
  if (!isOneOf(box.swizzleBytes, {0, 32, 64, 128}))
    return invalid("expected a swizzle of 32, 64 or 128 bytes, or 0 for none, "
                   "but got %lld",
                   static_cast<long long>(box.swizzleBytes));
  if (!isOneOf(box.l2PromotionBytes, {0, 64, 128, 256}))
    return invalid("expected a promotion in L2 of 64, 128 or 256 bytes, or 0 "
                   "for none, but got %lld",
                   static_cast<long long>(box.l2PromotionBytes));
  return llvm::Error::success();
}

llvm::Error ftuner::checkTensorMapRows(const TensorMapBox &box,
                                       int64_t elementBytes) {
  long long rowBytes = box.sizes.front() * elementBytes;
  if (rowBytes % kTensorMapAlignment != 0)
    return invalid("expected rows of a box of a multiple of %lld bytes, but "
                   "got %lld",
                   static_cast<long long>(kTensorMapAlignment), rowBytes);
  if (box.swizzleBytes != 0 && rowBytes > box.swizzleBytes)
    return invalid("expected rows of a box of at most the %lld bytes of its "
                   "swizzle, but got %lld",
                   static_cast<long long>(box.swizzleBytes), rowBytes);
  return llvm::Error::success();
}
