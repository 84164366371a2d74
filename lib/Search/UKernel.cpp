//===- UKernel.cpp - uKernels, kernel families and covers -----------------===//
#include "FTuner/Search/UKernel.h"
#include "FTuner/Schedule/Grid.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

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

/// How the family covers its combine axis.
static CoverRule coverRuleOf(const KernelFamily &family) {
  unsigned axis = family.combineAxis;
  CoverRule rule;
  rule.first = family.parts.front().smemTile[axis];
  if (family.parts.size() == 2)
    rule.second = family.parts.back().smemTile[axis];
  rule.balancedSms = family.balancedSms;
  return rule;
}

Grid ftuner::gridOf(const KernelFamily &family) {
  CoverRule rule = coverRuleOf(family);
  Grid grid;
  grid.tile.append(family.parts.front().smemTile);
  grid.combineAxis = family.combineAxis;
  grid.secondHeight = rule.second;
  grid.balancedSms = rule.balancedSms;
  grid.reduceSplit = family.parts.front().reduceSplit;
  return grid;
}

int64_t ftuner::blocksBeside(const KernelFamily &family,
                             llvm::ArrayRef<int64_t> shape) {
  NumberArithmetic math;
  return std::max<int64_t>(blocksBeside(math, gridOf(family), shape), 1);
}

Cover ftuner::coverShape(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape) {
  int64_t beside = family.balancedSms ? blocksBeside(family, shape) : 1;
  return coverExtent(family, shape[family.combineAxis], beside);
}

Cover ftuner::coverExtent(const KernelFamily &family, int64_t extent,
                          int64_t blocksBeside) {
  return coverExtent(coverRuleOf(family), extent, blocksBeside);
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
