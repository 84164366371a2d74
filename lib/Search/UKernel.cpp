//===- UKernel.cpp - uKernels, kernel families and covers -----------------===//
#include "FTuner/Search/UKernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <numeric>

using namespace ftuner;

static std::string listOf(llvm::ArrayRef<int64_t> values) {
  auto texts = llvm::map_range(
      values, [](int64_t value) { return std::to_string(value); });
  return "[" + llvm::join(texts, ",") + "]";
}

std::string UKernel::str() const {
  std::string text = listOf(smemTile) + "/" + listOf(regTile);
  if (reduceSplit != 1)
    text += "/split" + std::to_string(reduceSplit);
  return text;
}

std::string KernelFamily::str() const {
  auto texts = llvm::map_range(
      parts, [](const UKernel &ukernel) { return ukernel.str(); });
  return path + " " + llvm::join(texts, " + ") + " axis " +
         std::to_string(combineAxis) + " stages " + std::to_string(stages) +
         " vector " + std::to_string(vectorWidth) +
         (balancedSms ? " balanced over " + std::to_string(balancedSms) : "");
}

int64_t ftuner::blocksBeside(const KernelFamily &family,
                             llvm::ArrayRef<int64_t> shape) {
  const UKernel &any = family.parts.front();
  int64_t blocks = any.reduceSplit;
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    if (axis != family.combineAxis && axis != Workload::kK)
      blocks *= ceilDiv(shape[axis], any.smemTile[axis]);
  return std::max<int64_t>(blocks, 1);
}

Cover ftuner::coverShape(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape) {
  int64_t beside = family.balancedSms ? blocksBeside(family, shape) : 1;
  return coverExtent(family, shape[family.combineAxis], beside);
}

Cover ftuner::balancedCover(int64_t low, int64_t high, int64_t sms,
                            int64_t blocksBeside, int64_t extent) {
  int64_t fewest = ceilDiv(extent, high), most = ceilDiv(extent, low);
  int64_t rounds = ceilDiv(fewest * blocksBeside, sms);
  int64_t blocks = std::clamp(rounds * sms / blocksBeside, fewest, most);
  Cover cover;
  if (blocks * low < extent)
    cover.second = ceilDiv(extent - blocks * low, high - low);
  cover.first = blocks - cover.second;
  cover.padded = blocks * low + cover.second * (high - low) - extent;
  return cover;
}

Cover ftuner::coverExtent(const KernelFamily &family, int64_t extent,
                          int64_t blocksBeside) {
  Cover cover;
  if (extent <= 0)
    return cover;
  unsigned axis = family.combineAxis;
  if (family.parts.size() == 1) {
    int64_t height = family.parts.front().smemTile[axis];
    cover.first = ceilDiv(extent, height);
    cover.padded = cover.first * height - extent;
    return cover;
  }
  int64_t low = family.parts.front().smemTile[axis];
  int64_t high = family.parts.back().smemTile[axis];
  if (family.balancedSms)
    return balancedCover(low, high, family.balancedSms, blocksBeside, extent);
  return coverWithPair(coverConstants(low, high), extent);
}

Cover ftuner::coverWithPair(const CoverConstants &c, int64_t extent) {
  Cover cover;
  int64_t units = ceilDiv(extent, c.unit);
  int64_t first = (units % c.high) * c.inverse % c.high;
  if (first * c.low <= units) {
    cover.first = first;
    cover.second = (units - first * c.low) / c.high;
  } else {
    cover.second = ceilDiv(units, c.high);
  }
  cover.padded =
      c.unit * (cover.first * c.low + cover.second * c.high) - extent;
  return cover;
}

CoverConstants ftuner::coverConstants(int64_t low, int64_t high) {
  CoverConstants constants;
  constants.unit = std::gcd(low, high);
  constants.low = low / constants.unit;
  constants.high = high / constants.unit;
  constants.inverse = modularInverse(constants.low, constants.high);
  return constants;
}

KernelFamily ftuner::runningParts(const KernelFamily &family,
                                  const Cover &cover) {
  KernelFamily running = family;
  if (family.parts.size() == 2 && (cover.first == 0 || cover.second == 0)) {
    running.parts.erase(running.parts.begin() + (cover.first > 0 ? 1 : 0));
    running.balancedSms = 0;
  }
  return running;
}
