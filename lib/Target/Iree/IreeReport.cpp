//===- IreeReport.cpp - Report on dispatches of IREE ----------------------===//
#include "FTuner/Target/IreeReport.h"
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Target/WorkReport.h"

#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace ftuner;

/// Version of the format.
static constexpr int64_t kReportVersion = 1;

namespace {
/// FLOPs of one call at certain sizes.
struct Share {
  double workloadFlops = 0, allFlops = 0;
  void add(double flops, bool isWorkload) {
    allFlops += flops;
    if (isWorkload)
      workloadFlops += flops;
  }
  void write(llvm::json::OStream &json, StringRef prefix) const {
    json.attribute((prefix + "flops").str(), allFlops);
    if (allFlops > 0)
      json.attribute((prefix + "share").str(), workloadFlops / allFlops);
    else
      json.attribute((prefix + "share").str(), nullptr);
  }
};
} // namespace

static void writeShare(llvm::json::OStream &json, const FunctionOperators &work,
                       const Shape &shape) {
  std::vector<double> sizes(shape.begin(), shape.end());
  Share operators, contractions;
  for (const OperatorWork &op : work.operators) {
    std::optional<double> flops = evaluate(op.flops, sizes);
    operators.add(flops.value_or(0), op.isWorkload);
    if (op.isContraction)
      contractions.add(flops.value_or(0), op.isWorkload);
  }
  json.object([&] {
    json.attributeObject("sizes", [&] {
      for (auto [name, size] : llvm::zip_equal(work.sizeNames, shape))
        json.attribute(name, size);
    });
    operators.write(json, "");
    contractions.write(json, "contraction_");
  });
}

static void writeFunction(llvm::json::OStream &json,
                          const FunctionOperators &work) {
  auto writeOperators = [&](bool areWorkloads) {
    for (const OperatorWork &op : work.operators) {
      if (op.isWorkload != areWorkloads)
        continue;
      json.object([&] {
        json.attribute("operator", op.name);
        json.attribute("location", op.location);
        if (!areWorkloads)
          json.attribute("contraction", op.isContraction);
        json.attribute("flops", textOf(op.flops, work.sizeNames));
      });
    }
  };
  json.object([&] {
    json.attribute("name", work.name);
    json.attributeArray("dispatches", [&] { writeOperators(true); });
    json.attributeArray("left", [&] { writeOperators(false); });
    json.attributeArray("not_counted", [&] {
      for (const std::string &name : work.unknown)
        json.value(name);
    });
    json.attributeArray("shares", [&] {
      for (const Shape &shape : reportedShapes(work.sizes))
        writeShare(json, work, shape);
    });
  });
}

void ftuner::writeIreeReport(const IreeKernels &kernels,
                             llvm::raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/1);
  json.object([&] {
    json.attribute("version", kReportVersion);
    json.attribute("dispatches", kernels.numDispatches);
    json.attribute("kernels", static_cast<int64_t>(kernels.ptx.kernels.size()));
    json.attribute("ptx_bytes", static_cast<int64_t>(kernels.ptx.text.size()));
    json.attributeArray("functions", [&] {
      for (const FunctionOperators &work : kernels.work)
        writeFunction(json, work);
    });
  });
  os << '\n';
}
