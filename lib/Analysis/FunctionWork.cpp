//===- FunctionWork.cpp - Work of a function's launches -------------------===//
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Analysis/LaunchOrder.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "SizeTracer.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Returns how often a call runs `op`: the product of the trips of the loops
/// around it; null if one is not known.
static AffineExpr tripsAround(Operation *op, SizeTracer &tracer) {
  AffineExpr trips = getAffineConstantExpr(1, op->getContext());
  for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent);
       parent = parent->getParentOp()) {
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      AffineExpr low = tracer.trace(loop.getLowerBound());
      AffineExpr high = tracer.trace(loop.getUpperBound());
      AffineExpr step = tracer.trace(loop.getStep());
      if (!low || !high || !step)
        return {};
      trips = trips * (high - low).ceilDiv(step);
    } else if (isa<LoopLikeOpInterface>(parent)) {
      return {};
    }
  }
  return trips;
}

/// Returns whether control may come back from the operation's block to itself.
static bool isInCycle(func::FuncOp func, Operation *op) {
  Block *start = func.getBody().findAncestorOpInRegion(*op)->getBlock();
  SmallVector<Block *> worklist(start->getSuccessors());
  llvm::SmallPtrSet<Block *, 8> seen;
  while (!worklist.empty()) {
    Block *block = worklist.pop_back_val();
    if (block == start)
      return true;
    if (seen.insert(block).second)
      llvm::append_range(worklist, block->getSuccessors());
  }
  return false;
}

/// The kernel's work in terms of the launch's sizes; null for a kernel that
/// does not tell.
static DictionaryAttr findWork(ukernel::LaunchOp launch) {
  auto module = launch->getParentOfType<ModuleOp>();
  Operation *kernel = SymbolTable::lookupSymbolIn(
      module, launch.getKernel().getRootReference());
  if (auto unlowered = dyn_cast_or_null<ukernel::KernelOp>(kernel))
    return workOf(unlowered);
  return kernel ? kernel->getAttrOfType<DictionaryAttr>(kWorkAttrName)
                : DictionaryAttr();
}

/// The results of a map at the launch's sizes.
static SmallVector<AffineExpr>
applyTo(AffineMapAttr map, ukernel::LaunchOp launch, SizeTracer &tracer) {
  SmallVector<AffineExpr> sizes, results;
  for (Value size : launch.getSizes())
    sizes.push_back(tracer.trace(size));
  for (AffineExpr result : map.getValue().getResults()) {
    bool isKnown = map.getValue().getNumSymbols() <= sizes.size();
    result.walk([&](AffineExpr inner) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(inner))
        isKnown = isKnown && sizes[symbol.getPosition()];
    });
    results.push_back(isKnown ? result.replaceSymbols(sizes) : AffineExpr());
  }
  return results;
}

namespace {
/// Collects the accesses of a function's launches to buffers, by items of its
/// work. Launches that are not an item have a place, too: others may wait for
/// them.
class LaunchOrderBuilder {
public:
  /// `name` of an item of several launches; empty for one that has one.
  void add(ukernel::LaunchOp launch, StringRef name) {
    size_t place = accesses.size();
    if (!name.empty())
      place = places.try_emplace(name, place).first->second;
    if (place == accesses.size())
      accesses.emplace_back();
    llvm::append_range(accesses[place], accessesOf(launch));
    last = place;
  }
  /// The launch that was added last begins the next item.
  void beginItem() { items.push_back(last); }
  void write(MutableArrayRef<LaunchWork> launches);

private:
  llvm::StringMap<size_t> places;
  std::vector<std::vector<BufferAccess>> accesses;
  /// The place of each item.
  std::vector<size_t> items;
  size_t last = 0;
};
} // namespace

void LaunchOrderBuilder::write(MutableArrayRef<LaunchWork> launches) {
  std::vector<std::vector<size_t>> order = launchOrder(accesses);
  DenseMap<size_t, size_t> itemAt;
  for (auto [item, place] : llvm::enumerate(items))
    itemAt[place] = item;
  for (auto [item, place] : llvm::enumerate(items)) {
    SmallVector<size_t> open(order[place].begin(), order[place].end());
    llvm::SmallSetVector<size_t, 4> after;
    while (!open.empty()) {
      size_t next = open.pop_back_val();
      if (auto known = itemAt.find(next); known != itemAt.end())
        after.insert(known->second);
      else
        open.append(order[next].begin(), order[next].end());
    }
    launches[item].after.assign(after.begin(), after.end());
    llvm::sort(launches[item].after);
  }
}

/// The sizes that are formulas of others in every call: by their positions.
/// Calls fail unless the assertions of a function hold, such as that a size
/// which PyTorch knows as `2*D` is twice another one.
static llvm::MapVector<unsigned, AffineExpr>
assertedFormulas(func::FuncOp func, SizeTracer &tracer) {
  llvm::MapVector<unsigned, AffineExpr> formulas;
  for (auto assertion : func.getBody().front().getOps<ukernel::AssertOp>()) {
    auto equality = assertion.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!equality || equality.getPredicate() != arith::CmpIPredicate::eq)
      continue;
    AffineExpr lhs = tracer.trace(equality.getLhs()),
               rhs = tracer.trace(equality.getRhs());
    if (!lhs || !rhs)
      continue;
    if (!isa<AffineSymbolExpr>(lhs))
      std::swap(lhs, rhs);
    auto size = dyn_cast<AffineSymbolExpr>(lhs);
    // Sizes that are equal keep both names.
    if (!size || !isa<AffineBinaryOpExpr>(rhs))
      continue;
    for (const auto &[position, formula] : formulas)
      rhs = rhs.replace(getAffineSymbolExpr(position, func.getContext()),
                        formula);
    if (!rhs.isFunctionOfSymbol(size.getPosition()))
      formulas.insert({size.getPosition(), rhs});
  }
  return formulas;
}

/// Returns every size of a function as a formula of the sizes that stay: those
/// without a known formula, which are renumbered.
static SmallVector<AffineExpr>
formulasOfSizes(size_t numSizes,
                const llvm::MapVector<unsigned, AffineExpr> &formulas,
                MLIRContext *context) {
  SmallVector<AffineExpr> result;
  for (unsigned position : llvm::seq<unsigned>(numSizes))
    result.push_back(
        formulas.contains(position)
            ? AffineExpr()
            : getAffineSymbolExpr(
                  llvm::count_if(result,
                                 [](AffineExpr known) { return bool(known); }),
                  context));
  auto isKnown = [&](AffineExpr formula) {
    bool isMissing = false;
    formula.walk([&](AffineExpr part) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
        isMissing |= !result[symbol.getPosition()];
    });
    return !isMissing;
  };
  // A formula may name a size whose formula was found later.
  for (size_t round = 0; round < formulas.size(); ++round)
    for (const auto &[position, formula] : formulas)
      if (!result[position] && isKnown(formula))
        result[position] = formula.replaceSymbols(result);
  return result;
}

/// Replaces the sizes of a function by formulas of the sizes that stay.
static void replaceSizes(FunctionWork &work, ArrayRef<AffineExpr> formulas) {
  auto replace = [&](AffineExpr &formula) {
    if (formula)
      formula = formula.replaceSymbols(formulas);
  };
  for (LaunchWork &item : work.launches) {
    for (AffineExpr *formula :
         {&item.operations, &item.bytes, &item.accesses, &item.threadLoads,
          &item.launches, &item.blocks})
      replace(*formula);
    llvm::for_each(item.extents, replace);
    llvm::for_each(item.passedSizes, replace);
    llvm::for_each(item.passedStrides, replace);
  }
  FunctionWork kept;
  for (auto [formula, name, axis] :
       llvm::zip_equal(formulas, work.sizeNames, work.sizes))
    if (formula ==
        getAffineSymbolExpr(kept.sizes.size(), formula.getContext())) {
      kept.sizeNames.push_back(std::move(name));
      kept.sizes.push_back(std::move(axis));
    }
  work.sizeNames = std::move(kept.sizeNames);
  work.sizes = std::move(kept.sizes);
}

FunctionWork ftuner::collectWork(func::FuncOp func, ArrayRef<double> sizes) {
  FunctionWork names, work;
  SizeTracer symbolic(func, names);
  SmallVector<AffineExpr> formulas = formulasOfSizes(
      names.sizes.size(), assertedFormulas(func, symbolic), func.getContext());
  SmallVector<double> numbers;
  if (!sizes.empty())
    for (AffineExpr formula : formulas)
      numbers.push_back(*evaluate(formula, sizes));
  work.name = func.getName().str();
  SizeTracer tracer(func, work, numbers);
  llvm::StringSet<> sites;
  // Workloads with an alternative that has no slices.
  llvm::StringSet<> whole;
  // If there are two images, the device's kernels are in the exact one.
  auto isElsewhere = [](ukernel::LaunchOp launch) {
    return !ukernel::imagesAt(launch).exact;
  };
  func.walk([&](ukernel::LaunchOp launch) {
    auto site = launch->getAttrOfType<DictionaryAttr>(kSiteAttrName);
    if (site && !site.contains("slices") && !isElsewhere(launch))
      if (auto name = site.getAs<StringAttr>("name"))
        whole.insert(name.getValue());
  });
  LaunchOrderBuilder order;
  func.walk([&](ukernel::LaunchOp launch) {
    if (isElsewhere(launch))
      return;
    auto site = launch->getAttrOfType<DictionaryAttr>(kSiteAttrName);
    auto textAt = [&](StringRef key) {
      auto text = site ? site.getAs<StringAttr>(key) : StringAttr();
      return text ? text.str() : std::string();
    };
    order.add(launch, textAt("name"));
    DictionaryAttr fields = findWork(launch);
    auto amounts = fields ? fields.getAs<AffineMapAttr>("amounts") : nullptr;
    // What adds slices up is part of the workload's time, and the alternatives
    // without slices tell its work.
    if (amounts && !textAt("slices").empty() &&
        (!fields.contains("axes") || whole.contains(textAt("name"))))
      return;
    if (!amounts || amounts.getValue().getNumResults() != 4 ||
        amounts.getValue().getNumDims() != 0 ||
        (!textAt("name").empty() && !sites.insert(textAt("name")).second))
      return;
    SmallVector<AffineExpr> results = applyTo(amounts, launch, tracer);
    LaunchWork item{textAt("name"),
                    textAt("workload"),
                    textAt("operator"),
                    textAt("location"),
                    results[0],
                    results[1],
                    results[2],
                    results[3],
                    {},
                    {},
                    tripsAround(launch, tracer),
                    {},
                    {}};
    if (isInCycle(func, launch))
      item.launches = {};
    item.kind = textAt("kind");
    item.copied = textAt("copied");
    item.kernel = launch.getKernel().getRootReference().str();
    for (Value size : launch.getSizes())
      item.passedSizes.push_back(tracer.trace(size));
    for (Value stride : launch.getStrides())
      item.passedStrides.push_back(tracer.trace(stride));
    if (item.name.empty())
      item.name = item.kernel;
    if (auto extents = fields.getAs<AffineMapAttr>("extents");
        extents && extents.getValue().getNumDims() == 0)
      item.extents = applyTo(extents, launch, tracer);
    if (auto names = fields.getAs<ArrayAttr>("axes"))
      for (auto name : names.getAsRange<StringAttr>())
        item.axisNames.push_back(name.str());
    if (item.isFallback())
      item.blocks = tracer.trace(launch.getBlocks());
    order.beginItem();
    work.launches.push_back(std::move(item));
  });
  order.write(work.launches);
  replaceSizes(work, formulas);
  return work;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

std::string ftuner::textOf(AffineExpr formula,
                           llvm::ArrayRef<std::string> sizeNames) {
  if (!formula)
    return "";
  std::string printed, text;
  llvm::raw_string_ostream(printed) << formula;
  // Symbols are printed as s0, s1, …; every other letter is part of a word.
  for (size_t i = 0; i < printed.size(); ++i) {
    bool isSymbol = printed[i] == 's' && i + 1 < printed.size() &&
                    isdigit(printed[i + 1]) &&
                    (i == 0 || !isalnum(printed[i - 1]));
    if (!isSymbol) {
      text += printed[i];
      continue;
    }
    size_t number = 0;
    while (i + 1 < printed.size() && isdigit(printed[i + 1]))
      number = 10 * number + (printed[++i] - '0');
    text += number < sizeNames.size() ? sizeNames[number] : "?";
  }
  return text;
}

static double evaluateExact(AffineExpr formula, ArrayRef<double> sizes) {
  if (auto constant = dyn_cast<AffineConstantExpr>(formula))
    return static_cast<double>(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(formula))
    return sizes[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(formula);
  double lhs = evaluateExact(binary.getLHS(), sizes);
  double rhs = evaluateExact(binary.getRHS(), sizes);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return rhs == 0 ? 0 : std::floor(lhs / rhs);
  case AffineExprKind::CeilDiv:
    return rhs == 0 ? 0 : std::ceil(lhs / rhs);
  default:
    return rhs == 0 ? 0 : lhs - rhs * std::floor(lhs / rhs);
  }
}

std::optional<double> ftuner::evaluateSigned(AffineExpr formula,
                                             ArrayRef<double> sizes) {
  if (!formula)
    return std::nullopt;
  return evaluateExact(formula, sizes);
}

std::optional<double> ftuner::evaluate(AffineExpr formula,
                                       ArrayRef<double> sizes) {
  std::optional<double> value = evaluateSigned(formula, sizes);
  if (value)
    value = std::max(0.0, *value);
  return value;
}
