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

/// The warning where uKernels carry little; empty elsewhere.
static std::string smallShareText(const FunctionReport &report) {
  const WorkShare &share = report.shares.back();
  std::optional<double> flops = share.flopsShare(), time = share.timeShare();
  size_t count = report.numFallbackKernels();
  if (count == 0 || (flops.value_or(1) >= kSmallFlopsShare &&
                     time.value_or(1) >= kSmallTimeShare))
    return "";
  std::string text = "uKernels carry only ";
  if (flops)
    text += percent(*flops) + " of the FLOPs";
  if (time)
    text += (flops ? " and " : "") + percent(*time) + " of the predicted time";
  std::string sizes = sizesText(report.work, share);
  if (!sizes.empty())
    text += " at " + sizes;
  return text + ": " + std::to_string(count) +
         (count == 1 ? " fallback kernel computes"
                     : " fallback kernels compute") +
         " the rest, one thread for each element";
}

/// "linalg.matmul at file:line:column (f_0)".
static std::string placeText(const LaunchWork &item) {
  std::string text = item.operatorName;
  if (!item.location.empty())
    text += " at " + item.location;
  return text + " (" + item.name + ")";
}

std::vector<std::string> FunctionReport::warnings() const {
  std::vector<std::string> result;
  if (std::string text = smallShareText(*this); !text.empty())
    result.push_back(std::move(text));
  const WorkShare &share = shares.back();
  for (auto [position, multiple] : share.implausible)
    result.push_back(llvm::formatv(
        "{0} is predicted to take {1}, {2} times the roofline of its "
        "operator",
        placeText(work.launches[position]),
        timeText(*share.microseconds[position]), fixed(multiple, 0)));
  return result;
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
                         const FallbackRates &rates,
                         const WorkReportOptions &options) {
  WorkShare share;
  share.sizes = std::move(sizes);
  for (auto [position, item] : llvm::enumerate(work.launches)) {
    std::optional<double> flops = evaluate(item.operations, share.sizes), time;
    double count = evaluate(item.launches, share.sizes).value_or(1);
    if (flops)
      time = timeOf(item, share.sizes, options);
    std::optional<double> roofline = rooflineOf(item, share.sizes, rates);
    if (time && roofline && *time > kImplausibleRoofline * *roofline)
      share.implausible.emplace_back(position, *time / *roofline);
    if (time)
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
    report.shares.push_back(
        shareAt(report.work, std::move(sizes), report.rates, options));
  return report;
}

std::optional<double> ftuner::predictedByPlan(const Plan &plan,
                                              llvm::ArrayRef<int64_t> shape,
                                              const Calibration &calibration) {
  const ShapePrediction *nearest = nullptr;
  double minDistance = 0, ratio = 1;
  for (const ShapePrediction &prediction : plan.predictions) {
    if (prediction.shape.size() != shape.size())
      continue;
    double distance = 0, points = 1;
    for (auto [size, seen] : llvm::zip_equal(shape, prediction.shape)) {
      double factor = static_cast<double>(size) / static_cast<double>(seen);
      distance += std::abs(std::log(factor));
      points *= factor;
    }
    if (!nearest || distance < minDistance) {
      nearest = &prediction;
      minDistance = distance;
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
    json.attribute("kind", item.kind);
    json.attribute("operator", item.operatorName);
    json.attribute("location", item.location);
    if (!item.copied.empty())
      json.attribute("copied", item.copied);
    json.attribute("grows_beyond_data", growsBeyondData(item));
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
    json.attributeArray("implausible", [&] {
      for (auto [position, multiple] : share.implausible)
        json.value(report.work.launches[position].name);
    });
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
  std::vector<std::string> warnings = report.warnings();
  if (warnings.empty())
    json.attribute("warning", nullptr);
  else
    json.attribute("warning", llvm::join(warnings, "; "));
}

void ftuner::writeWork(llvm::json::OStream &json,
                       const FunctionReport &report) {
  WorkWriter(json, report).write();
}

/// Returns a share as text; "not known" if there is no value.
static std::string shareText(std::optional<double> share) {
  return share ? percent(*share) : "not known";
}

/// "5.850 µs", "not known".
static std::string totalText(const WorkShare &share) {
  if (!share.ukernelMicroseconds)
    return "not known";
  return timeText(*share.ukernelMicroseconds + share.fallbackMicroseconds);
}

namespace {
/// Writes one function for people.
class WorkTextWriter {
public:
  WorkTextWriter(llvm::raw_ostream &os, const FunctionReport &report,
                 ReportDetail detail)
      : os(os), report(report), detail(detail) {}

  void write();

private:
  /// The number of entries of a list that are written.
  size_t shown(size_t count, size_t limit) const {
    return detail == ReportDetail::Full ? count : std::min(count, limit);
  }
  void writeShares();
  /// Lines with the same beginning, at most `limit` in a summary.
  void writeLines(StringRef beginning, ArrayRef<std::string> lines,
                  size_t limit);
  void writeGrowth();
  void writeCopies();
  void writeOperators();
  void writeFallbackKernels();

  llvm::raw_ostream &os;
  const FunctionReport &report;
  ReportDetail detail;
};
} // namespace

/// The number of entries of each list in a summary.
static constexpr size_t kSummaryShares = 3, kSummaryLines = 2,
                        kSummaryOperators = 4, kSummaryFunctions = 10;

void WorkTextWriter::writeShares() {
  TextTable table({"<", "FLOPs", "by uKernels", "predicted time", "by uKernels",
                   "of it fallback kernels"});
  // The lists below are for the last sizes.
  ArrayRef<WorkShare> shares(report.shares);
  size_t first = shares.size() - shown(shares.size(), kSummaryShares);
  for (const WorkShare &share : shares.drop_front(first)) {
    std::string sizes = sizesText(report.work, share);
    table.add({sizes.empty() ? "fixed sizes" : sizes,
               general(share.ukernelFlops + share.fallbackFlops),
               shareText(share.flopsShare()), totalText(share),
               shareText(share.timeShare()),
               timeText(share.fallbackMicroseconds)});
  }
  table.print(os, "    ");
}

void WorkTextWriter::writeLines(StringRef beginning,
                                ArrayRef<std::string> lines, size_t limit) {
  size_t count = shown(lines.size(), limit);
  for (const std::string &line : lines.take_front(count))
    os << "  " << beginning << line << "\n";
  if (count < lines.size())
    os << "  … " << lines.size() - count << " more\n";
}

void WorkTextWriter::writeGrowth() {
  std::vector<std::string> lines;
  for (const LaunchWork &item : report.work.launches)
    if (growsBeyondData(item))
      lines.push_back(
          llvm::formatv("{0}: FLOPs {1}, bytes {2}", placeText(item),
                        textOf(item.operations, report.work.sizeNames),
                        textOf(item.bytes, report.work.sizeNames)));
  writeLines("costs more than linearly in its data: ", lines, kSummaryLines);
}

/// Writes what each copy copies, and why.
void WorkTextWriter::writeCopies() {
  std::vector<std::string> lines;
  for (const LaunchWork &item : report.work.launches)
    if (!item.copied.empty())
      lines.push_back(llvm::formatv(
          "{0}: {1}; {2} bytes read and written", placeText(item), item.copied,
          item.bytes ? textOf(item.bytes, report.work.sizeNames)
                     : "not known:"));
  writeLines("copy: ", lines, lines.size());
}

/// Writes how many launches each operator has, and their predicted time at the
/// last sizes; the slowest first.
void WorkTextWriter::writeOperators() {
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
  os << "  Predicted time by operator at " << lastSizesText(report) << "\n";
  TextTable table({"time", "of all", "kernels", "<operator"});
  size_t count = shown(ordered.size(), kSummaryOperators);
  for (const auto &[name, total] : ArrayRef(ordered).take_front(count))
    table.add({(total.isKnown ? "" : "over ") + timeText(total.microseconds),
               all > 0 ? percent(total.microseconds / all) : "",
               std::to_string(total.launches), name.str()});
  table.print(os, "    ");
  if (count < ordered.size())
    os << "    … " << ordered.size() - count << " more\n";
}

void WorkTextWriter::writeFallbackKernels() {
  os << "  Fallback kernels, one thread for each element; time of all "
        "launches, predicted at "
     << lastSizesText(report) << "\n";
  TextTable table(
      {"<kernel", "time", "<launches", "<FLOPs", "<bytes", "<operator", "<at"});
  auto formula = [&](AffineExpr expr) {
    return expr ? textOf(expr, report.work.sizeNames)
                : std::string("not known");
  };
  for (auto [item, time] :
       llvm::zip_equal(report.work.launches, report.shares.back().microseconds))
    if (item.isFallback())
      table.add({item.name, time ? timeText(*time) : "",
                 item.launches ? formula(item.launches) : "in a loop",
                 formula(item.operations), formula(item.bytes),
                 item.operatorName, item.location});
  table.print(os, "    ");
}

void WorkTextWriter::write() {
  os << "\nFunction " << report.work.name << ", all of it\n";
  writeShares();
  if (!report.openSizes.empty())
    os << "  no maximum of " << llvm::join(report.openSizes, ", ")
       << " is declared: " << kOpenReportedSize << " is taken\n";
  writeLines("warning: ", report.warnings(), kSummaryLines);
  writeGrowth();
  if (size_t unknown = report.shares.back().unknownKernels)
    os << "  " << unknown
       << (unknown == 1 ? " kernel is not counted: its work does not follow "
                        : " kernels are not counted: their work does not "
                          "follow ")
       << "from the function's sizes\n";
  if (report.work.launches.size() > 1 || report.numFallbackKernels() > 0)
    writeOperators();
  if (detail == ReportDetail::Full)
    writeCopies();
  if (detail == ReportDetail::Full && report.numFallbackKernels() > 0)
    writeFallbackKernels();
}

void ftuner::writeWorkText(llvm::raw_ostream &os, const FunctionReport &report,
                           ReportDetail detail) {
  WorkTextWriter(os, report, detail).write();
}

void ftuner::writeFunctionLines(llvm::raw_ostream &os,
                                ArrayRef<FunctionReport> reports) {
  os << "\nFunctions\n";
  TextTable table({"<", "<sizes", "FLOPs", "by uKernels", "predicted time",
                   "by uKernels", "warnings"});
  for (const FunctionReport &report : reports.take_front(kSummaryFunctions)) {
    const WorkShare &share = report.shares.back();
    table.add({report.work.name, lastSizesText(report),
               general(share.ukernelFlops + share.fallbackFlops),
               shareText(share.flopsShare()), totalText(share),
               shareText(share.timeShare()),
               std::to_string(report.warnings().size())});
  }
  table.print(os, "    ");
  if (reports.size() > kSummaryFunctions)
    os << "    … " << reports.size() - kSummaryFunctions << " more\n";
}
