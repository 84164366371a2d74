//===- ExplainJson.cpp - Explanations as JSON -----------------------------===//
#include "FTuner/Target/Explain.h"
#include "FamilyJson.h"

using namespace ftuner;

namespace {
class JsonWriter {
public:
  JsonWriter(const ModuleExplanation &explanation, llvm::raw_ostream &os)
      : explanation(explanation), json(os, /*IndentSize=*/2) {}

  void write();

private:
  void writeAxis(const Axis &axis);
  void writeMetrics(const Metrics &metrics);
  void writeProgram(const ReportedProgram &program);
  /// A program of a report, which the strategy has rated.
  void writeRated(const ReportedProgram &program);
  void writeStage(const StageReport &stage);
  /// In detail: with what the strategy did for the shape.
  void writeShape(const ShapeExplanation &shape, bool isDetailed);
  void writeWorkload(const WorkloadExplanation &workload);

  const ModuleExplanation &explanation;
  llvm::json::OStream json;
};
} // namespace

void JsonWriter::writeAxis(const Axis &axis) {
  json.object([&] {
    json.attribute("name", axis.name);
    json.attribute("kind", axis.kind == AxisKind::Space ? "space" : "reduce");
    json.attribute("min", axis.range.min);
    if (axis.range.max)
      json.attribute("max", *axis.range.max);
    else
      json.attribute("max", nullptr);
    json.attribute("step", axis.range.step);
    json.attribute("factor", axis.factor);
    json.attributeArray("symbols", [&] {
      for (const std::string &symbol : axis.symbols)
        json.value(symbol);
    });
  });
}

void JsonWriter::writeMetrics(const Metrics &metrics) {
  json.attributeObject("metrics", [&] {
    json.attribute("pad", metrics.pad);
    json.attribute("occ", metrics.occ);
    json.attribute("cmr", metrics.cmr);
    json.attribute("blocks", metrics.blocks);
  });
}

void JsonWriter::writeProgram(const ReportedProgram &program) {
  writeFamily(json, program.family);
  writeCover(json, program.family, program.cover);
  writeMetrics(program.metrics);
  json.attribute("score", program.score.score);
  json.attributeArray("terms", [&] {
    for (const CostTerm &term : program.score.terms)
      json.object([&] {
        json.attribute("name", term.name);
        json.attribute("weight", term.weight);
        json.attribute("value", term.value);
      });
  });
}

void JsonWriter::writeRated(const ReportedProgram &program) {
  writeProgram(program);
  json.attribute("rating", program.rating);
}

void JsonWriter::writeStage(const StageReport &stage) {
  json.object([&] {
    json.attribute("name", stage.name);
    json.attribute("requirement", stage.requirement);
    json.attribute("before", stage.before);
    json.attribute("kept", stage.kept);
    json.attribute("relaxed", stage.relaxed);
    if (!stage.dropped) {
      json.attribute("best_dropped", nullptr);
      return;
    }
    json.attributeObject("best_dropped", [&] {
      json.attributeObject("ukernel",
                           [&] { writeUKernel(json, stage.dropped->ukernel); });
      writeMetrics(stage.dropped->metrics);
      json.attribute("figure", stage.figure);
      json.attribute("value", stage.dropped->value);
    });
  });
}

void JsonWriter::writeShape(const ShapeExplanation &shape, bool isDetailed) {
  const ShapeReport &report = shape.report;
  json.object([&] {
    writeSizes(json, "shape", report.shape);
    json.attribute("family", shape.family);
    json.attribute("aligned", shape.isAligned);
    if (shape.entry)
      json.attribute("entry", *shape.entry);
    else
      json.attribute("entry", nullptr);
    json.attributeObject("program", [&] { writeProgram(shape.program); });
    json.attribute("best_score", shape.best().score.score);
    json.attribute("score_loss", shape.scoreLoss);
    json.attribute("plan_has_best", shape.planHasBest);
    if (report.bestSingle)
      json.attributeObject("best_single",
                           [&] { writeRated(*report.bestSingle); });
    else
      json.attribute("best_single", nullptr);
    if (!isDetailed)
      return;
    json.attribute("single_programs", report.singlePrograms);
    json.attribute("pair_programs", report.pairPrograms);
    json.attributeArray("programs", [&] {
      for (const ReportedProgram &program : report.programs)
        json.object([&] { writeRated(program); });
    });
    json.attribute("candidates", report.candidates);
    json.attributeArray("stages", [&] {
      for (const StageReport &stage : report.stages)
        writeStage(stage);
    });
  });
}

void JsonWriter::writeWorkload(const WorkloadExplanation &workload) {
  const Plan &plan = workload.plan;
  json.object([&] {
    json.attribute("name", workload.name);
    json.attributeArray("equal_workloads", [&] {
      for (const std::string &name : workload.equalWorkloads)
        json.value(name);
    });
    json.attribute("location", workload.location);
    json.attribute("plan", workload.planName);
    json.attributeArray("axes", [&] {
      for (const Axis &axis : workload.workload.axes)
        writeAxis(axis);
    });
    json.attribute("main_axis", workload.workload.mainAxis());
    json.attributeArray("families", [&] {
      for (const KernelFamily &family : plan.families)
        json.object([&] { writeFamily(json, family); });
    });
    json.attribute("general_family", plan.generalFamily);
    json.attribute("fallback_family", plan.fallbackFamily);
    json.attributeObject("statistics", [&] {
      for (const SearchStatistic &statistic : plan.statistics)
        json.attribute(statistic.name, statistic.value);
    });
    json.attributeArray("shapes", [&] {
      for (const ShapeExplanation &shape : workload.shapes)
        writeShape(shape, workload.isDetailed());
    });
  });
}

void JsonWriter::write() {
  json.object([&] {
    json.attribute("format_version", kExplanationFormatVersion);
    json.attribute("device", explanation.device.name);
    json.attribute("strategy", explanation.setup.strategy->name());
    json.attribute("cost_model", explanation.setup.costModel->name());
    json.attributeObject("sizes", [&] {
      for (const auto &[name, size] : explanation.sizes)
        json.attribute(name, size);
    });
    json.attributeArray("workloads", [&] {
      for (const WorkloadExplanation &workload : explanation.workloads)
        writeWorkload(workload);
    });
  });
  json.flush();
}

void ftuner::writeExplanationJson(const ModuleExplanation &explanation,
                                  llvm::raw_ostream &os) {
  JsonWriter(explanation, os).write();
  os << '\n';
}
