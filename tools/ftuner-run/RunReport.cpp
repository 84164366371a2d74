//===- RunReport.cpp - Report of ftuner-run about a run -------------------===//
#include "RunReport.h"
#include "FTuner/Support/TextTable.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace ftuner {

Error RunReport::check() const {
  for (auto [index, comparison] : enumerate(comparisons)) {
    if (comparison.isWithin(tolerances[index]))
      continue;
    std::string text;
    raw_string_ostream stream(text);
    stream << "result " << index << " differs from the reference: ";
    if (comparison.numMismatches)
      stream << comparison.numMismatches << " of "
             << run.results[index].getNumElements() << " elements mismatch, ";
    stream << format("relative error %.3g above the tolerance %.3g",
                     comparison.relativeError, tolerances[index])
           << " (" << comparison.worst << ")";
    if (comparison.relativeError <= tolerances[index]) {
      text.clear();
      stream << "result " << index
             << " differs from the reference: " << comparison.numMismatches
             << " of " << run.results[index].getNumElements()
             << " elements mismatch (" << comparison.worst << ")";
    }
    return createStringError(inconvertibleErrorCode(), text);
  }
  return Error::success();
}

using emulator::InstructionKind;
using emulator::KernelCounters;
using emulator::RequestCounters;
using emulator::RequestKind;

/// Calls `function` for each kind of requests that a kernel makes.
template <typename Function>
static void forEachRequest(const KernelCounters &counters, Function function) {
  for (size_t i = 0; i < emulator::kNumRequestKinds; ++i)
    if (counters.requests[i].requests)
      function(static_cast<RequestKind>(i), counters.requests[i]);
}

/// A table of requests to global or to shared memory; nothing where there are
/// none.
static void printRequests(const KernelCounters &counters, bool ofShared,
                          raw_ostream &os) {
  const char *unit = ofShared ? "wavefronts" : "sectors";
  TextTable table(
      {"<", "requests", "bytes", unit, "a request", "ideal", "over the ideal"});
  bool any = false;
  forEachRequest(counters, [&](RequestKind kind, const RequestCounters &sum) {
    if (isShared(kind) != ofShared)
      return;
    any = true;
    std::string name = getName(kind);
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add({name, std::to_string(sum.requests), std::to_string(sum.bytes),
               std::to_string(sum.transfers),
               fixed(double(sum.transfers) / double(sum.requests), 2),
               std::to_string(sum.idealTransfers),
               std::to_string(sum.transfers - sum.idealTransfers)});
  });
  if (any)
    table.print(os, "    ");
}

static void printText(const KernelCounters &counters, raw_ostream &os) {
  os << "  counters of " << counters.kernel
     << " (launches: " << counters.launches << ", blocks: " << counters.blocks
     << ", warps: " << counters.warps << ", barriers: " << counters.barriers
     << ", bank conflicts: " << counters.bankConflicts();
  if (counters.boxRows)
    os << ", rows of boxes: " << counters.boxRows << ", "
       << counters.boxRowsOutside << " of them outside of their tensors";
  os << ")\n";
  printRequests(counters, /*ofShared=*/false, os);
  printRequests(counters, /*ofShared=*/true, os);
  TextTable table({"<instructions of warps", "", "a warp"});
  for (size_t i = 0; i < emulator::kNumInstructionKinds; ++i) {
    uint64_t number = counters.instructions[i];
    if (number == 0)
      continue;
    std::string name = getName(static_cast<InstructionKind>(i));
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add({name, std::to_string(number),
               fixed(double(number) / double(counters.warps), 1)});
  }
  table.print(os, "    ");
}

void printText(const RunReport &report, raw_ostream &os) {
  os << report.function << '(' << report.arguments << ") by the "
     << report.executor << '\n';
  for (auto [index, result] : enumerate(report.run.results)) {
    os << "  result " << index << ": " << result.getTypeString();
    if (index < report.comparisons.size())
      os << format(", relative error %.3g (tolerance %.3g)",
                   report.comparisons[index].relativeError,
                   report.tolerances[index]);
    if (index < report.files.size())
      os << ", saved as " << report.files[index];
    os << '\n';
  }
  if (report.executor != "reference") {
    os << "  launches: " << report.run.launches.size();
    for (auto [index, launch] : enumerate(report.run.launches))
      os << (index == 0 ? " (" : ", ") << launch.kernel << ": " << launch.blocks
         << " x " << launch.threads;
    os << (report.run.launches.empty() ? "\n" : ")\n");
  }
  if (!report.run.device.empty())
    os << "  device: " << report.run.device << '\n';
  for (const KernelCounters &counters : report.run.counters)
    printText(counters, os);
  os << format("  seconds: %.3f\n", report.run.seconds);
}

/// JSON has no infinity.
static json::Value number(double value) {
  return std::isfinite(value) ? json::Value(value) : json::Value(nullptr);
}

static void printJson(const KernelCounters &counters, json::OStream &json) {
  json.attribute("kernel", counters.kernel);
  json.attribute("launches", counters.launches);
  json.attribute("blocks", counters.blocks);
  json.attribute("warps", counters.warps);
  json.attribute("barriers", counters.barriers);
  json.attribute("bank_conflicts", counters.bankConflicts());
  if (counters.boxRows)
    json.attributeObject("box_rows", [&] {
      json.attribute("copied", counters.boxRows);
      json.attribute("outside", counters.boxRowsOutside);
    });
  json.attributeObject("requests", [&] {
    forEachRequest(counters, [&](RequestKind kind, const RequestCounters &sum) {
      std::string unit = isShared(kind) ? "wavefronts" : "sectors";
      json.attributeObject(getName(kind), [&] {
        json.attribute("requests", sum.requests);
        json.attribute("bytes", sum.bytes);
        json.attribute(unit, sum.transfers);
        json.attribute("ideal_" + unit, sum.idealTransfers);
      });
    });
  });
  json.attributeObject("instructions", [&] {
    for (size_t i = 0; i < emulator::kNumInstructionKinds; ++i)
      json.attribute(getName(static_cast<InstructionKind>(i)),
                     counters.instructions[i]);
  });
}

void printJson(const RunReport &report, raw_ostream &os) {
  json::OStream json(os);
  json.object([&] {
    json.attribute("function", report.function);
    json.attribute("executor", report.executor);
    json.attribute("args", report.arguments);
    json.attributeArray("results", [&] {
      for (auto [index, result] : enumerate(report.run.results))
        json.object([&, index = index, &result = result] {
          json.attribute("type", result.getTypeString());
          json.attribute("element_type", getName(result.getType()));
          json.attributeArray("shape", [&] {
            for (int64_t size : result.getShape())
              json.value(size);
          });
          if (index < report.comparisons.size()) {
            const Comparison &comparison = report.comparisons[index];
            json.attribute("relative_error", number(comparison.relativeError));
            json.attribute("mismatches", comparison.numMismatches);
            json.attribute("ok", comparison.isWithin(report.tolerances[index]));
          }
          if (index < report.tolerances.size())
            json.attribute("tolerance", report.tolerances[index]);
          if (index < report.files.size())
            json.attribute("file", report.files[index]);
        });
    });
    json.attributeArray("launches", [&] {
      for (const LaunchRecord &launch : report.run.launches)
        json.object([&] {
          json.attribute("kernel", launch.kernel);
          json.attribute("blocks", launch.blocks);
          json.attribute("threads", launch.threads);
          json.attribute("dynamic_shared_memory_bytes",
                         launch.dynamicSharedBytes);
        });
    });
    if (!report.run.counters.empty())
      json.attributeArray("counters", [&] {
        for (const KernelCounters &counters : report.run.counters)
          json.object([&] { printJson(counters, json); });
      });
    json.attribute("workspace_bytes", report.run.workspaceBytes);
    if (!report.run.device.empty())
      json.attribute("device", report.run.device);
    json.attribute("seconds", report.run.seconds);
  });
  json.flush();
  os << '\n';
}

} // namespace ftuner
