//===- ExplainJson.cpp - Explanations as JSON -----------------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "FTuner/Target/Explain.h"

#include "mlir/IR/MLIRContext.h"

using namespace ftuner;

namespace {
class JsonWriter {
public:
  JsonWriter(const ModuleExplanation &explanation, llvm::raw_ostream &os)
      : explanation(explanation), json(os, /*IndentSize=*/2) {
    mlir::DialectRegistry registry;
    registerUKernelDialect(registry);
    context.appendDialectRegistry(registry);
  }

  void write();

private:
  void writeAxis(const Axis &axis, bool isReduce);
  void writeMetrics(const Metrics &metrics);
  /// With the attribute by which a plan holds the family.
  void writeFamily(const KernelFamily &family);
  void writeProgram(const ReportedProgram &program);
  void writePrediction(const ReportedProgram &program);
  /// A program of a report, which the strategy has rated.
  void writeRated(const ReportedProgram &program);
  void writeStage(const StageReport &stage);
  /// In detail: with what the strategy did for the shape.
  void writeShape(const ShapeExplanation &shape, double weight,
                  bool isDetailed);
  void writeRegret(llvm::StringRef name,
                   const ExplanationSummary::Regret &regret,
                   const WorkloadExplanation &workload);
  void writeSummary(const WorkloadExplanation &workload);
  void writeWorkload(const WorkloadExplanation &workload);

  const ModuleExplanation &explanation;
  /// For attributes, of which the explanation holds none.
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  llvm::json::OStream json;
};
} // namespace

void JsonWriter::writeAxis(const Axis &axis, bool isReduce) {
  json.object([&] {
    json.attribute("name", axis.name);
    json.attribute("kind", isReduce ? "reduce" : "space");
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

void JsonWriter::writeFamily(const KernelFamily &family) {
  ftuner::writeFamily(json, family);
  std::string text;
  llvm::raw_string_ostream(text)
      << mlir::Attribute(llvm::cantFail(toAttribute(&context, family)));
  json.attribute("attribute", text);
}

void JsonWriter::writeProgram(const ReportedProgram &program) {
  writeFamily(program.family);
  writePartition(json, program.family, program.partition);
  writeMetrics(program.metrics);
  if (program.boxRows.copied)
    json.attributeObject("box_rows", [&] {
      json.attribute("copied", program.boxRows.copied);
      json.attribute("outside", program.boxRows.outside);
    });
  json.attribute("score", program.score.score);
  json.attributeArray("terms", [&] {
    for (const CostTerm &term : program.score.terms)
      json.object([&] {
        json.attribute("name", term.name);
        json.attribute("weight", term.weight);
        json.attribute("value", term.value);
      });
  });
  writePrediction(program);
}

void JsonWriter::writePrediction(const ReportedProgram &program) {
  double time = program.microseconds();
  json.attribute("predicted_us", time);
  if (program.measuredMicroseconds)
    json.attribute("measured_us", *program.measuredMicroseconds);
  json.attributeArray("predicted_terms", [&] {
    for (const CostTerm &term : program.predicted.terms)
      json.object([&] {
        json.attribute("name", term.name);
        json.attribute("us", term.value);
        json.attribute("share", term.value / time);
      });
  });
  json.attributeObject("predicted_figures", [&] {
    for (const CostTerm &figure : program.predicted.figures)
      json.attribute(figure.name, figure.value);
  });
}

void JsonWriter::writeRated(const ReportedProgram &program) {
  writeProgram(program);
  json.attribute("rating", program.rating);
}

void JsonWriter::writeStage(const StageReport &stage) {
  json.object([&] {
    json.attribute("name", stage.name);
    if (!stage.path.empty())
      json.attribute("path", stage.path);
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

void JsonWriter::writeShape(const ShapeExplanation &shape, double weight,
                            bool isDetailed) {
  const ShapeReport &report = shape.report;
  json.object([&] {
    writeSizes(json, "shape", report.shape);
    json.attribute("weight", weight);
    if (!report.measurer.empty())
      json.attribute("measurer", report.measurer);
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
    json.attributeObject("sia_choice", [&] { writeProgram(shape.siaChoice); });
    json.attributeObject("fastest", [&] { writeProgram(shape.fastest); });
    json.attribute("regret", shape.regret());
    if (shape.next)
      json.attributeObject("next", [&] { writeProgram(*shape.next); });
    else
      json.attribute("next", nullptr);
    json.attribute("confidence", shape.confidence);
    json.attribute("measurement_gain", shape.measurementGain);
    json.attribute("roofline_us", shape.rooflineMicroseconds);
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
    if (report.construction.empty())
      return;
    json.attributeArray("construction", [&] {
      for (const ConstructionStep &step : report.construction)
        json.object([&] {
          json.attribute("action", step.action);
          json.attribute("probability", step.probability);
          json.attribute("state", step.state);
        });
    });
  });
}

void JsonWriter::writeRegret(llvm::StringRef name,
                             const ExplanationSummary::Regret &regret,
                             const WorkloadExplanation &workload) {
  json.attributeObject(name, [&] {
    json.attribute("mean", regret.mean);
    json.attribute("worst", regret.worst);
    writeSizes(json, "worst_shape",
               workload.shapes[regret.worstShape].report.shape);
  });
}

void JsonWriter::writeSummary(const WorkloadExplanation &workload) {
  const ExplanationSummary &summary = workload.summary;
  json.attributeObject("summary", [&] {
    writeRegret("regret", summary.chosen, workload);
    if (summary.bestSingle)
      writeRegret("best_single_regret", *summary.bestSingle, workload);
    else
      json.attribute("best_single_regret", nullptr);
    writeRegret("sia_choice_regret", summary.siaChoice, workload);
    json.attribute("times_roofline", summary.timesRoofline);
    json.attributeObject("term_shares", [&] {
      for (const auto &[name, share] : summary.termShares)
        json.attribute(name, share);
    });
    json.attributeArray("confidence", [&] {
      for (const ExplanationSummary::ConfidenceBand &band : summary.confidence)
        json.object([&] {
          json.attribute("at_least", band.atLeast);
          json.attribute("shapes", static_cast<int64_t>(band.shapes));
        });
    });
    json.attributeArray("worth_measuring", [&] {
      for (const ExplanationSummary::Measurement &item : summary.worthMeasuring)
        json.object([&] {
          writeSizes(json, "first_shape",
                     workload.shapes[item.firstShape].report.shape);
          writeSizes(json, "last_shape",
                     workload.shapes[item.lastShape].report.shape);
          json.attribute("gain", item.gain);
          json.attribute("gain_of_all", item.gainOfAll);
        });
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
    json.attribute("fingerprint",
                   workload.workload.fingerprint(FingerprintOf::Kernels));
    json.attribute("location", workload.location);
    json.attribute("plan", workload.planName);
    json.attributeArray("axes", [&] {
      for (auto [index, axis] : llvm::enumerate(workload.workload.axes))
        writeAxis(axis, workload.workload.isReduceAxis(index));
    });
    json.attribute("main_axis", workload.workload.mainAxis());
    json.attributeArray("families", [&] {
      for (const KernelFamily &family : plan.families)
        json.object([&] { writeFamily(family); });
    });
    json.attribute("general_family", plan.generalFamily);
    json.attribute("unaligned_general_family", plan.unalignedGeneralFamily);
    if (workload.portable)
      json.attributeObject("portable", [&] {
        json.attribute("plan", workload.portableName);
        json.attributeArray("families", [&] {
          for (const KernelFamily &family : workload.portable->families)
            json.object([&] { writeFamily(family); });
        });
      });
    json.attributeObject("statistics", [&] {
      for (const SearchStatistic &statistic : plan.statistics)
        json.attribute(statistic.name, statistic.value);
    });
    writeSummary(workload);
    json.attributeArray("shapes", [&] {
      for (auto [shape, weight] :
           llvm::zip_equal(workload.shapes, workload.weights))
        writeShape(shape, weight, workload.isDetailed());
    });
  });
}

void JsonWriter::write() {
  json.object([&] {
    json.attribute("format_version", kExplanationFormatVersion);
    json.attribute("device", explanation.device.name);
    json.attribute("strategy", explanation.setup.strategy->name());
    json.attribute("cost_model", explanation.setup.costModel->name());
    json.attribute("calibration", explanation.calibration);
    if (explanation.transferError)
      json.attribute("transfer_error", *explanation.transferError);
    json.attributeArray("sizes", [&] {
      for (const NamedSizes &sizes : explanation.sizes)
        json.object([&] {
          for (const auto &[name, size] : sizes)
            json.attribute(name, size);
        });
    });
    json.attributeArray("workloads", [&] {
      for (const WorkloadExplanation &workload : explanation.workloads)
        writeWorkload(workload);
    });
    if (!explanation.knowsLaunches) {
      json.attribute("functions", nullptr);
      return;
    }
    json.attributeArray("functions", [&] {
      for (const FunctionReport &function : explanation.functions)
        json.object([&] {
          json.attribute("symbol", function.work.name);
          json.attributeObject("work", [&] { writeWork(json, function); });
        });
    });
  });
  json.flush();
}

void ftuner::writeExplanationJson(const ModuleExplanation &explanation,
                                  llvm::raw_ostream &os) {
  JsonWriter(explanation, os).write();
  os << '\n';
}
