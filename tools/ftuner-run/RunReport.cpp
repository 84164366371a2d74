//===- RunReport.cpp - What ftuner-run says about a run -------------------===//
#include "RunReport.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
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
  os << format("  seconds: %.3f\n", report.run.seconds);
}

/// JSON has no infinity.
static json::Value number(double value) {
  return std::isfinite(value) ? json::Value(value) : json::Value(nullptr);
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
    json.attribute("workspace_bytes", report.run.workspaceBytes);
    if (!report.run.device.empty())
      json.attribute("device", report.run.device);
    json.attribute("seconds", report.run.seconds);
  });
  json.flush();
  os << '\n';
}

} // namespace ftuner
