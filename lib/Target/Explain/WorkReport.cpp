//===- WorkReport.cpp - How much of a function uKernels carry -------------===//
#include "FTuner/Target/WorkReport.h"
#include "FTuner/Support/TextTable.h"
#include "FTuner/Workload/Sampling.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace ftuner;

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

std::optional<double> WorkShare::flopsShare() const {
  double all = ukernelFlops + fallbackFlops;
  return all > 0 ? std::optional(ukernelFlops / all) : std::nullopt;
}

std::optional<double> WorkShare::timeShare() const {
  if (!ukernelMicroseconds)
    return std::nullopt;
  double all = *ukernelMicroseconds + fallbackMicroseconds;
  return all > 0 ? std::optional(*ukernelMicroseconds / all) : std::nullopt;
}

size_t FunctionReport::numFallbackKernels() const {
  return llvm::count_if(
      work.launches, [](const LaunchWork &item) { return item.isFallback(); });
}

/// "T = 128, arg1_dim0 = 4096".
static std::string sizesText(const FunctionWork &work, const WorkShare &share) {
  std::vector<std::string> parts;
  for (auto [name, size] : llvm::zip_equal(work.sizeNames, share.sizes))
    parts.push_back(name + " = " + std::to_string(static_cast<int64_t>(size)));
  return llvm::join(parts, ", ");
}

/// The sizes that lists of kernels are for.
static std::string lastSizesText(const FunctionReport &report) {
  std::string text = sizesText(report.work, report.shares.back());
  return text.empty() ? "fixed sizes" : text;
}

std::string FunctionReport::warning() const {
  const WorkShare &share = shares.back();
  std::optional<double> flops = share.flopsShare(), time = share.timeShare();
  if (numFallbackKernels() == 0 || (flops.value_or(1) >= kSmallFlopsShare &&
                                    time.value_or(1) >= kSmallTimeShare))
    return "";
  std::string text = "uKernels carry only ";
  if (flops)
    text += percent(*flops) + " of the FLOPs";
  if (time)
    text += (flops ? " and " : "") + percent(*time) + " of the predicted time";
  std::string sizes = sizesText(work, share);
  if (!sizes.empty())
    text += " at " + sizes;
  size_t count = numFallbackKernels();
  return text + ": " + std::to_string(count) +
         (count == 1 ? " fallback kernel computes"
                     : " fallback kernels compute") +
         " the rest, one thread for each element";
}

static Shape shapeOf(const LaunchWork &item, ArrayRef<double> sizes) {
  Shape shape;
  for (AffineExpr extent : item.extents) {
    std::optional<double> size = evaluate(extent, sizes);
    if (!size)
      return {};
    shape.push_back(
        static_cast<int64_t>(std::min(*size, static_cast<double>(maxExtent))));
  }
  return shape;
}

/// Predicted time of one launch; none where it is not known.
static std::optional<double> timeOf(const LaunchWork &item,
                                    ArrayRef<double> sizes,
                                    const WorkReportOptions &options) {
  if (item.isFallback()) {
    std::optional<double> operations = evaluate(item.operations, sizes);
    std::optional<double> bytes = evaluate(item.bytes, sizes);
    std::optional<double> accesses = evaluate(item.accesses, sizes);
    std::optional<double> threadLoads = evaluate(item.threadLoads, sizes);
    if (!operations || !bytes || !accesses || !threadLoads)
      return std::nullopt;
    FallbackWork work{*operations, *bytes, *accesses, *threadLoads};
    if (work.bytes == 0 && work.accesses == 0)
      return 0; // Without elements nothing is launched.
    return predictFallback(options.device, options.calibration, work);
  }
  Shape shape = shapeOf(item, sizes);
  if (shape.empty())
    return std::nullopt;
  return llvm::is_contained(shape, 0) ? 0 : options.workloadTime(item, shape);
}

static WorkShare shareAt(const FunctionWork &work, std::vector<double> sizes,
                         const WorkReportOptions &options) {
  WorkShare share;
  share.sizes = std::move(sizes);
  for (const LaunchWork &item : work.launches) {
    std::optional<double> flops = evaluate(item.operations, share.sizes), time;
    double count = evaluate(item.launches, share.sizes).value_or(1);
    if (flops && (time = timeOf(item, share.sizes, options)))
      *time *= count;
    share.microseconds.push_back(time);
    if (!flops || (item.isFallback() && !time)) {
      ++share.unknownKernels;
    } else if (item.isFallback()) {
      share.fallbackFlops += count * *flops;
      share.fallbackMicroseconds += *time;
    } else {
      share.ukernelFlops += count * *flops;
      if (!time)
        share.ukernelMicroseconds.reset();
      else if (share.ukernelMicroseconds)
        *share.ukernelMicroseconds += *time;
    }
  }
  return share;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static std::vector<Axis> withEnds(llvm::ArrayRef<Axis> axes) {
  std::vector<Axis> closed = axes.vec();
  for (Axis &axis : closed)
    if (axis.range.isOpen())
      axis.range.max = std::max(kOpenReportedSize, smallestSize(axis));
  return closed;
}

std::vector<Shape> ftuner::reportedShapes(llvm::ArrayRef<Axis> axes) {
  return representativeShapes(withEnds(axes));
}

/// The sizes of a function that the named ones tell, by symbols or by axes of
/// its workloads; a middle of the range for the others.
static std::vector<double> namedSizes(const FunctionWork &work,
                                      const NamedSizes &named) {
  std::vector<double> sizes;
  for (auto [name, axis] :
       llvm::zip_equal(work.sizeNames, withEnds(work.sizes))) {
    auto known = named.find(name);
    std::vector<int64_t> some = representativeSizes(axis);
    sizes.push_back(static_cast<double>(
        known != named.end() ? known->second : some[some.size() / 2]));
  }
  for (const LaunchWork &item : work.launches)
    for (auto [extent, name] : llvm::zip(item.extents, item.axisNames)) {
      auto symbol = dyn_cast_or_null<AffineSymbolExpr>(extent);
      auto known = named.find(name);
      if (symbol && known != named.end() &&
          !named.count(work.sizeNames[symbol.getPosition()]))
        sizes[symbol.getPosition()] = static_cast<double>(known->second);
    }
  return sizes;
}

FunctionReport ftuner::reportWork(FunctionWork work,
                                  const WorkReportOptions &options) {
  std::vector<std::vector<double>> chosen;
  for (const NamedSizes &sizes : options.sizes)
    chosen.push_back(namedSizes(work, sizes));
  if (options.sizes.empty())
    for (const Shape &shape : reportedShapes(work.sizes))
      chosen.emplace_back(shape.begin(), shape.end());
  FunctionReport report{std::move(work), {}, {}, {}};
  report.rates = fallbackRates(options.device, options.calibration);
  if (options.sizes.empty())
    for (auto [name, axis] :
         llvm::zip_equal(report.work.sizeNames, report.work.sizes))
      if (axis.range.isOpen())
        report.openSizes.push_back(name);
  for (std::vector<double> &sizes : chosen)
    report.shares.push_back(shareAt(report.work, std::move(sizes), options));
  return report;
}

std::optional<double> ftuner::predictedByPlan(const Plan &plan,
                                              llvm::ArrayRef<int64_t> shape,
                                              const Calibration &calibration) {
  const ShapePrediction *nearest = nullptr;
  double least = 0, ratio = 1;
  for (const ShapePrediction &prediction : plan.predictions) {
    if (prediction.shape.size() != shape.size())
      continue;
    double distance = 0, points = 1;
    for (auto [size, seen] : llvm::zip_equal(shape, prediction.shape)) {
      double factor = static_cast<double>(size) / static_cast<double>(seen);
      distance += std::abs(std::log(factor));
      points *= factor;
    }
    if (!nearest || distance < least) {
      nearest = &prediction;
      least = distance;
      ratio = points;
    }
  }
  if (!nearest)
    return std::nullopt;
  double launch = std::min(calibration.constants.launch, nearest->microseconds);
  return launch + (nearest->microseconds - launch) * ratio;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

namespace {
/// Writes one function as JSON.
class WorkWriter {
public:
  WorkWriter(llvm::json::OStream &json, const FunctionReport &report)
      : json(json), report(report), names(report.work.sizeNames) {}

  void write();

private:
  void writeFormula(AffineExpr formula);
  void writeFormula(StringRef key, AffineExpr formula);
  void writeNumber(StringRef key, std::optional<double> value);
  void writeLaunch(size_t index);
  void writeShare(const WorkShare &share);

  llvm::json::OStream &json;
  const FunctionReport &report;
  ArrayRef<std::string> names;
};
} // namespace

void WorkWriter::writeFormula(AffineExpr formula) {
  if (!formula)
    json.value(nullptr);
  else if (auto constant = dyn_cast<AffineConstantExpr>(formula))
    json.value(constant.getValue());
  else
    json.value(textOf(formula, names));
}

void WorkWriter::writeFormula(StringRef key, AffineExpr formula) {
  json.attributeBegin(key);
  writeFormula(formula);
  json.attributeEnd();
}

void WorkWriter::writeNumber(StringRef key, std::optional<double> value) {
  if (value)
    json.attribute(key, *value);
  else
    json.attribute(key, nullptr);
}

void WorkWriter::writeLaunch(size_t index) {
  const LaunchWork &item = report.work.launches[index];
  json.object([&] {
    if (item.isFallback()) {
      json.attribute("kernel", item.name);
    } else {
      json.attribute("workload", item.name);
      json.attribute("kernels_of", item.workload);
      json.attributeArray("axes", [&] {
        for (StringRef name : item.axisNames)
          json.value(name);
      });
      json.attributeArray("extents", [&] {
        for (AffineExpr extent : item.extents)
          writeFormula(extent);
      });
    }
    json.attribute("operator", item.operatorName);
    json.attribute("location", item.location);
    writeFormula("launches", item.launches);
    writeFormula("flops", item.operations);
    writeFormula("bytes", item.bytes);
    if (item.isFallback()) {
      writeFormula("accesses", item.accesses);
      writeFormula("thread_loads", item.threadLoads);
    }
    json.attributeArray("predicted_us", [&] {
      for (const WorkShare &share : report.shares)
        if (std::optional<double> time = share.microseconds[index])
          json.value(*time);
        else
          json.value(nullptr);
    });
    if (item.isFallback())
      writeFormula("blocks", item.blocks);
    json.attribute("position", static_cast<int64_t>(index));
    json.attributeArray("after", [&] {
      for (size_t earlier : item.after)
        json.value(static_cast<int64_t>(earlier));
    });
  });
}

void WorkWriter::writeShare(const WorkShare &share) {
  json.object([&] {
    json.attributeObject("sizes", [&] {
      for (auto [name, size] : llvm::zip_equal(names, share.sizes))
        json.attribute(name, static_cast<int64_t>(size));
    });
    json.attribute("ukernel_flops", share.ukernelFlops);
    json.attribute("fallback_flops", share.fallbackFlops);
    writeNumber("flops_share", share.flopsShare());
    writeNumber("ukernel_us", share.ukernelMicroseconds);
    json.attribute("fallback_us", share.fallbackMicroseconds);
    writeNumber("time_share", share.timeShare());
    json.attribute("unknown_kernels",
                   static_cast<int64_t>(share.unknownKernels));
  });
}

void WorkWriter::write() {
  json.attributeArray("sizes", [&] {
    for (const std::string &name : names)
      json.value(name);
  });
  json.attributeArray("size_ranges", [&] {
    for (const Axis &axis : report.work.sizes)
      json.array([&] {
        json.value(smallestSize(axis));
        if (axis.range.isOpen())
          json.value(nullptr);
        else
          json.value(axis.range.max);
      });
  });
  for (bool isFallback : {false, true})
    json.attributeArray(isFallback ? "fallback_kernels" : "workloads", [&] {
      for (size_t index = 0; index < report.work.launches.size(); ++index)
        if (report.work.launches[index].isFallback() == isFallback)
          writeLaunch(index);
    });
  json.attributeArray("open_sizes", [&] {
    for (const std::string &name : report.openSizes)
      json.value(name);
  });
  json.attributeObject("rates", [&] {
    const FallbackRates &rates = report.rates;
    json.attribute("launch_us", rates.launch);
    json.attribute("us_per_byte", rates.perByte);
    json.attribute("us_per_flop", rates.perOperation);
    json.attribute("us_per_access", rates.perAccess);
    json.attribute("us_per_thread_load", rates.perThreadLoad);
  });
  json.attributeArray("shares", [&] {
    for (const WorkShare &share : report.shares)
      writeShare(share);
  });
  std::string warning = report.warning();
  if (warning.empty())
    json.attribute("warning", nullptr);
  else
    json.attribute("warning", warning);
}

void ftuner::writeWork(llvm::json::OStream &json,
                       const FunctionReport &report) {
  WorkWriter(json, report).write();
}

/// A share, or nothing where there is none.
static std::string shareText(std::optional<double> share) {
  return share ? percent(*share) : "not known";
}

/// How many launches each operator has, and their predicted time at the last
/// sizes; the slowest first.
static void writeOperators(llvm::raw_ostream &os,
                           const FunctionReport &report) {
  struct Total {
    size_t launches = 0;
    double microseconds = 0;
    bool isKnown = true;
  };
  llvm::MapVector<StringRef, Total> totals;
  double all = 0;
  for (auto [item, time] : llvm::zip_equal(report.work.launches,
                                           report.shares.back().microseconds)) {
    Total &total = totals[item.operatorName];
    ++total.launches;
    total.microseconds += time.value_or(0);
    total.isKnown &= time.has_value();
    all += time.value_or(0);
  }
  auto ordered = totals.takeVector();
  llvm::stable_sort(ordered, [](const auto &a, const auto &b) {
    return a.second.microseconds > b.second.microseconds;
  });
  os << "  Predicted µs by operator at " << lastSizesText(report) << "\n";
  TextTable table({"µs", "of all", "kernels", "<operator"});
  for (const auto &[name, total] : ordered)
    table.add({total.isKnown ? fixed(total.microseconds)
                             : "over " + fixed(total.microseconds),
               all > 0 ? percent(total.microseconds / all) : "",
               std::to_string(total.launches), name.str()});
  table.print(os, "    ");
}

void ftuner::writeWorkText(llvm::raw_ostream &os,
                           const FunctionReport &report) {
  const FunctionWork &work = report.work;
  os << "\nFunction " << work.name << ", all of it\n";
  TextTable shares({"<", "FLOPs", "by uKernels", "predicted µs", "by uKernels",
                    "of it fallback kernels µs"});
  for (const WorkShare &share : report.shares) {
    std::string sizes = sizesText(work, share);
    std::optional<double> time = share.ukernelMicroseconds;
    shares.add({sizes.empty() ? "fixed sizes" : sizes,
                general(share.ukernelFlops + share.fallbackFlops),
                shareText(share.flopsShare()),
                time ? fixed(*time + share.fallbackMicroseconds) : "not known",
                shareText(share.timeShare()),
                fixed(share.fallbackMicroseconds)});
  }
  shares.print(os, "    ");
  if (!report.openSizes.empty())
    os << "  without a declared greatest size of "
       << llvm::join(report.openSizes, ", ") << ", " << kOpenReportedSize
       << " is taken for it\n";
  if (std::string warning = report.warning(); !warning.empty())
    os << "  warning: " << warning << "\n";
  if (size_t unknown = report.shares.back().unknownKernels)
    os << "  " << unknown
       << " kernels are not counted: their work does not follow from the "
          "function's sizes\n";
  if (work.launches.size() > 1)
    writeOperators(os, report);
  if (report.numFallbackKernels() == 0)
    return;
  os << "  Fallback kernels, one thread for each element; µs of all launches, "
        "predicted at "
     << lastSizesText(report) << "\n";
  TextTable table(
      {"<kernel", "µs", "<launches", "<FLOPs", "<bytes", "<operator", "<at"});
  auto formula = [&](AffineExpr expr) {
    return expr ? textOf(expr, work.sizeNames) : std::string("not known");
  };
  for (auto [item, time] :
       llvm::zip_equal(work.launches, report.shares.back().microseconds))
    if (item.isFallback())
      table.add({item.name, time ? fixed(*time) : "",
                 item.launches ? formula(item.launches) : "in a loop",
                 formula(item.operations), formula(item.bytes),
                 item.operatorName, item.location});
  table.print(os, "    ");
}
