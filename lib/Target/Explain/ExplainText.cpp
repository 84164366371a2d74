//===- ExplainText.cpp - Explanations as text -----------------------------===//
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Support/TextTable.h"
#include "FTuner/Target/Explain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// "3 × 7 + 4 × 8", and what of it lies beyond the extent.
static std::string partitionText(const ReportedProgram &program) {
  std::vector<std::string> parts;
  int64_t counts[] = {program.partition.first, program.partition.second};
  for (unsigned part = 0; part < program.family.tiles.size(); ++part)
    if (counts[part] > 0)
      parts.push_back(llvm::formatv("{0} × {1}", counts[part],
                                    program.family.height(part)));
  std::string text = llvm::join(parts, " + ");
  if (program.partition.padded > 0)
    text += " − " + std::to_string(program.partition.padded);
  return text;
}

/// Returns the text of a partition, with the axis if it is not the main one:
/// "N: 36 × 64".
static std::string partitionText(const Workload &workload,
                                 const ReportedProgram &program) {
  unsigned axis = program.family.combineAxis;
  std::string text = partitionText(program);
  return axis == workload.mainAxis() ? text
                                     : workload.axes[axis].name + ": " + text;
}

/// The uKernels that run.
static std::string ukernelsText(const ReportedProgram &program) {
  const KernelFamily &family = program.family;
  std::string first = family.ukernel(0).str();
  std::string last = family.ukernel(family.tiles.size() - 1).str();
  if (program.partition.second == 0)
    return first;
  return program.partition.first == 0 ? last : first + " + " + last;
}

/// The codegen path and what its schedule says beside the shape of blocks.
static std::string scheduleText(const KernelFamily &family) {
  return (family.path().name() + " " + family.schedule.str()).str();
}

/// The uKernels that run, and their schedule.
static std::string kernelText(const ReportedProgram &program) {
  return ukernelsText(program) + ", " + scheduleText(program.family);
}

/// "M = 53, N = 2304, K = 768".
static std::string shapeText(const Workload &workload,
                             llvm::ArrayRef<int64_t> shape) {
  std::vector<std::string> parts;
  for (auto [axis, extent] : llvm::zip_equal(workload.axes, shape))
    parts.push_back(axis.name + " = " + std::to_string(extent));
  return llvm::join(parts, ", ");
}

/// "M = 16 · T from 16 to 2048 in steps of 16".
static std::string axisText(const Axis &axis) {
  if (!axis.isDynamic())
    return axis.name + " = " + std::to_string(axis.range.min);
  std::vector<std::string> factors = axis.symbols;
  if (axis.factor != 1)
    factors.insert(factors.begin(), std::to_string(axis.factor));
  std::string text = axis.name;
  if (!axis.symbols.empty())
    text += " = " + llvm::join(factors, " · ");
  text += " from " + std::to_string(axis.range.min);
  text += axis.range.max ? " to " + std::to_string(*axis.range.max) : " on";
  if (axis.range.step != 1)
    text += " in steps of " + std::to_string(axis.range.step);
  return text;
}

//===----------------------------------------------------------------------===//
// One shape in full
//===----------------------------------------------------------------------===//

namespace {
class TextWriter {
public:
  TextWriter(const ModuleExplanation &explanation, llvm::raw_ostream &os)
      : explanation(explanation), os(os) {}

  void writeHeader();
  /// Writes the shares and the operators of all functions.
  void writeFunctions(ReportDetail detail);
  /// Writes a line for each workload, the slowest first.
  void writeWorkloadLines();
  void writeWorkload(const WorkloadExplanation &workload);

private:
  bool predictsTime() const {
    return explanation.setup.costModel->predictsTime();
  }
  void writeFamilies(const Plan &plan);
  void writeShape(const WorkloadExplanation &workload,
                  const ShapeExplanation &shape);
  void writeChosen(const WorkloadExplanation &workload,
                   const ShapeExplanation &shape);
  void writeTerms(const CostBreakdown &score);
  void writePrediction(const ShapeExplanation &shape);
  /// Why the plan does not run the shape's best program.
  void writeLoss(const WorkloadExplanation &workload,
                 const ShapeExplanation &shape);
  void writeReason(const WorkloadExplanation &workload,
                   const ShapeExplanation &shape);
  void writeTimes(const WorkloadExplanation &workload,
                  const ShapeExplanation &shape);
  void writePrograms(const WorkloadExplanation &workload,
                     const ShapeExplanation &shape);
  void writeStages(const ShapeReport &report);
  void writeConstruction(const ShapeReport &report);
  void writeSummary(const WorkloadExplanation &workload);
  void writeSizes(const WorkloadExplanation &workload);
  /// Writes the measured times of the best programs, if any were measured.
  void writeMeasured(const ShapeExplanation &shape);

  const ModuleExplanation &explanation;
  llvm::raw_ostream &os;
};
} // namespace

void TextWriter::writeTerms(const CostBreakdown &score) {
  TextTable table({"<term", "weight", "value", "weight · value"});
  double sum = 0;
  for (const CostTerm &term : score.terms) {
    sum += term.weight * term.value;
    table.add({term.name, general(term.weight), fixed(term.value),
               fixed(term.weight * term.value)});
  }
  table.add({"sum", "", "", fixed(sum)});
  table.print(os, "    ");
  // A model may do more than add up its terms.
  if (std::abs(sum - score.score) > 5e-4)
    os << "    score " << fixed(score.score) << "\n";
}

void TextWriter::writeChosen(const WorkloadExplanation &workload,
                             const ShapeExplanation &shape) {
  const ReportedProgram &program = shape.program;
  const KernelFamily &family = program.family;
  const std::string &axis = workload.workload.axes[family.combineAxis].name;
  int64_t extent = shape.report.shape[family.combineAxis];
  os << "  Chosen: family " << shape.family << ", ";
  if (!shape.isAligned && shape.entry)
    os << "by entry " << *shape.entry
       << " of the plan for operands that are not aligned: rows of this shape "
          "are not\n";
  else if (!shape.isAligned)
    os << "the unaligned general family: rows of this shape are not aligned "
          "for wider "
          "accesses\n";
  else if (shape.entry)
    os << "by entry " << *shape.entry << " of the plan\n";
  else
    os << "the general one: no entry of the plan holds the shape\n";
  int64_t counts[] = {program.partition.first, program.partition.second};
  for (unsigned part = 0; part < family.tiles.size(); ++part)
    if (counts[part] > 0)
      os << "    uKernel " << family.ukernel(part).str() << ": " << counts[part]
         << (family.clusterBlocks() > 1 ? " cluster" : " block")
         << (counts[part] == 1 ? "" : "s") << " along " << axis << "\n";
  os << "    " << axis << ": " << extent << " = " << partitionText(program);
  if (program.partition.padded > 0)
    os << " (" << program.partition.padded << " padded)";
  if (family.reduceSplit > 1)
    os << "\n    in " << family.reduceSplit
       << " slices of the reduce axis, which "
       << (family.path().sharesOutSlices() ? "later launches merge"
                                           : "a second kernel adds up");
  os << "\n    " << program.metrics.blocks
     << (program.metrics.blocks == 1 ? " block" : " blocks") << " of "
     << family.threads() << " threads in all, " << scheduleText(family) << "\n";
  if (int64_t outside = program.boxRows.outside)
    os << "    " << outside << " of " << program.boxRows.copied
       << " rows that tensor maps copy lie outside of the operands\n";
  if (!predictsTime())
    writeTerms(program.score);
  writePrediction(shape);
}

/// "dram bytes" for "dram_bytes".
static std::string withSpaces(llvm::StringRef name) {
  return llvm::join(llvm::split(name, '_'), " ");
}

/// A figure of a prediction with its unit, by the end of its name.
static std::string figureText(const CostTerm &figure) {
  llvm::StringRef name = figure.name;
  if (name.ends_with("_bytes"))
    return withSpaces(name) + " " + bytesText(figure.value);
  if (name.ends_with("_time"))
    return withSpaces(name) + " " + timeText(figure.value);
  // Counts of waves and blocks: small fractions say no more than 0.
  return withSpaces(name) + " " +
         (std::abs(figure.value) < 0.1 ? fixed(figure.value)
                                       : general(figure.value));
}

void TextWriter::writePrediction(const ShapeExplanation &shape) {
  const CostBreakdown &predicted = shape.program.predicted;
  double time = shape.program.microseconds();
  os << "    Predicted time " << fixed(time) << " µs, "
     << general(time / shape.rooflineMicroseconds) << " times the roofline of "
     << fixed(shape.rooflineMicroseconds) << " µs\n";
  TextTable table({"<term", "µs", "share"});
  for (const CostTerm &term : predicted.terms)
    table.add({term.name, fixed(term.value), percent(term.value / time)});
  table.print(os, "    ");
  os << "    "
     << llvm::join(llvm::map_range(predicted.figures, figureText), ", ")
     << "\n";
}

void TextWriter::writeReason(const WorkloadExplanation &workload,
                             const ShapeExplanation &shape) {
  auto limit = static_cast<size_t>(explanation.setup.options.maxKernels);
  if (!shape.isAligned && !shape.entry)
    os << "the unaligned general family serves every shape without "
          "alignment.\n";
  else if (!shape.entry)
    os << "the plan was made for other shapes.\n";
  else if (shape.planHasBest)
    os << "sizes nearby share a family.\n";
  else if (workload.plan.families.size() >= limit)
    os << "its family is not in the plan, which holds at most " << limit
       << " (option max-kernels).\n";
  else
    os << "its family is not in the plan.\n";
}

void TextWriter::writeLoss(const WorkloadExplanation &workload,
                           const ShapeExplanation &shape) {
  double best = shape.best().score.score, loss = shape.scoreLoss;
  if (predictsTime()) { // With the accesses that the shape allows.
    best = shape.best().microseconds();
    loss = shape.program.microseconds() - best;
  }

  if (runsTheSame(shape.program, shape.best())) {
    os << "  It is the best program of the shape.\n";
    return;
  }
  if (loss == 0) {
    os << "  It scores as the best program of the shape does.\n";
    return;
  }
  if (loss < 0 && predictsTime()) {
    os << "  It takes " << fixed(-loss)
       << " µs less than the best program of the strategy's pool for the "
          "shape:\n  it is in the pools of other sizes alone.\n";
    return;
  }
  if (loss < 0) {
    os << "  It scores " << fixed(-loss)
       << " more than the best program of the shape, which the strategy "
          "prefers: the\n  chosen one misses what the stages below ask for, or "
          "is in the pools of other sizes alone.\n";
    return;
  }
  if (predictsTime())
    os << "  The best program of the shape takes " << fixed(best)
       << " µs: " << fixed(loss) << " µs";
  else
    os << "  The best program of the shape scores " << fixed(best) << ": "
       << fixed(loss);
  if (best != 0)
    os << " (" << percent(loss / std::abs(best)) << ")";
  os << " is lost, since ";
  writeReason(workload, shape);
}

void TextWriter::writeTimes(const WorkloadExplanation &workload,
                            const ShapeExplanation &shape) {
  os << "\n  Predicted times beside it\n";
  TextTable table({"<", "µs", "over the fastest", "<", "<"});
  auto add = [&](std::string label, const ReportedProgram &program) {
    table.add({std::move(label), fixed(program.microseconds()),
               percent(shape.regretOf(program)),
               partitionText(workload.workload, program), kernelText(program)});
  };
  add("chosen", shape.program);
  add("fastest that was seen", shape.fastest);
  if (shape.next)
    add("next to it", *shape.next);
  if (shape.report.bestSingle)
    add("best single uKernel", *shape.report.bestSingle);
  add("choice by SIA", shape.siaChoice);
  table.print(os, "    ");
  if (shape.next)
    os << "    The fastest is at least as fast as the next with a confidence "
          "of "
       << percent(shape.confidence) << ";\n    measuring the two would gain "
       << percent(shape.measurementGain) << " on average.\n";
}

void TextWriter::writeMeasured(const ShapeExplanation &shape) {
  if (shape.report.measurer.empty())
    return;
  os << "\n  Measured by " << shape.report.measurer << ", in the order of the "
     << "strategy; the predictions are beside it\n";
  TextTable table({"<", "measured µs", "predicted µs", "<", "<"});
  auto add = [&](std::string label, const ReportedProgram &program) {
    table.add({std::move(label),
               program.measuredMicroseconds
                   ? fixed(*program.measuredMicroseconds)
                   : std::string("-"),
               fixed(program.microseconds()), partitionText(program),
               kernelText(program)});
  };
  add("chosen", shape.program);
  for (auto [index, program] : llvm::enumerate(shape.report.programs))
    add(std::to_string(index + 1), program);
  table.print(os, "    ");
}

/// Terms that are not 0 everywhere, by name.
static std::vector<CostTerm>
termsOf(llvm::ArrayRef<const CostBreakdown *> breakdowns) {
  std::vector<CostTerm> result;
  for (const CostBreakdown *breakdown : breakdowns)
    for (const CostTerm &term : breakdown->terms)
      if (fixed(term.value) != fixed(0) &&
          llvm::none_of(result, [&](const CostTerm &other) {
            return other.name == term.name;
          }))
        result.push_back(term);
  return result;
}

void TextWriter::writePrograms(const WorkloadExplanation &workload,
                               const ShapeExplanation &shape) {
  const ShapeReport &report = shape.report;
  os << "\n  Best programs of the shape, of " << report.singlePrograms
     << " with one uKernel and " << report.pairPrograms
     << " with two (* chosen, 1 best single uKernel)\n";
  std::vector<const ReportedProgram *> programs;
  auto isListed = [&](const ReportedProgram &wanted) {
    return llvm::any_of(programs, [&](const ReportedProgram *program) {
      return runsTheSame(*program, wanted);
    });
  };
  for (const ReportedProgram &program : report.programs)
    programs.push_back(&program);
  if (!isListed(shape.program))
    programs.push_back(&shape.program);
  if (report.bestSingle && !isListed(*report.bestSingle))
    programs.push_back(&*report.bestSingle);

  // Programs with their scores or, where these are times, what is predicted
  // for the accesses that the shape allows.
  bool isTime = predictsTime();
  bool isRated = !isTime && llvm::any_of(report.programs, [](const auto &item) {
    return item.rating != item.score.score;
  });
  std::vector<const CostBreakdown *> breakdowns;
  for (const ReportedProgram *program : programs)
    breakdowns.push_back(isTime ? &program->predicted : &program->score);
  std::vector<CostTerm> terms = termsOf(breakdowns);
  std::vector<std::string> header = {"#", "<"};
  header.push_back(isTime ? "µs" : "score");
  if (isRated)
    header.push_back("rating");
  for (const CostTerm &term : terms)
    header.push_back(
        (isTime || term.weight == 1 ? "" : general(term.weight) + " · ") +
        term.name);
  if (!isTime)
    header.push_back("µs");
  header.insert(header.end(),
                {"blocks", "threads", "<schedule", "<partition", "<uKernels"});

  TextTable table(std::move(header));
  for (auto [index, program] : llvm::enumerate(programs)) {
    std::string marks;
    if (runsTheSame(*program, shape.program))
      marks += "*";
    if (report.bestSingle && runsTheSame(*program, *report.bestSingle))
      marks += "1";
    bool isRanked = index < report.programs.size();
    std::string time = fixed(program->microseconds());
    std::vector<std::string> row = {
        isRanked ? std::to_string(index + 1) : "…", marks,
        isTime ? time : fixed(program->score.score)};
    if (isRated) // The strategy rates the programs of its own pool.
      row.push_back(program == &shape.program ? "" : fixed(program->rating));
    for (const CostTerm &term : terms) {
      double value = 0;
      for (const CostTerm &own : breakdowns[index]->terms)
        if (own.name == term.name)
          value = isTime ? own.value : own.weight * own.value;
      row.push_back(fixed(value));
    }
    if (!isTime)
      row.push_back(time);
    row.insert(row.end(), {std::to_string(program->metrics.blocks),
                           std::to_string(program->family.threads()),
                           scheduleText(program->family),
                           partitionText(workload.workload, *program),
                           ukernelsText(*program)});
    table.add(std::move(row));
  }
  table.print(os, "    ");
}

void TextWriter::writeStages(const ShapeReport &report) {
  os << "\n  Stages for the shape, from " << report.candidates
     << " candidates\n";
  TextTable table({"<stage", "before", "kept", "<requirement",
                   "<best candidate thrown out, and its figure"});
  for (const StageReport &stage : report.stages) {
    std::string dropped;
    if (stage.dropped)
      dropped = llvm::formatv("{0}: {1} {2}", stage.dropped->ukernel.str(),
                              stage.figure, general(stage.dropped->value));
    std::string name =
        stage.path.empty() ? stage.name : stage.path + " " + stage.name;
    table.add({name, std::to_string(stage.before), std::to_string(stage.kept),
               stage.requirement +
                   (stage.relaxed ? " (relaxed: nothing would be left)" : ""),
               dropped});
  }
  table.print(os, "    ");
}

void TextWriter::writeConstruction(const ShapeReport &report) {
  if (report.construction.empty())
    return;
  os << "\n  How the strategy's best program was constructed\n";
  TextTable table({"step", "<action", "probability", "<state"});
  for (auto [index, step] : llvm::enumerate(report.construction))
    table.add({std::to_string(index + 1), step.action, fixed(step.probability),
               step.state});
  table.print(os, "    ");
}

void TextWriter::writeShape(const WorkloadExplanation &workload,
                            const ShapeExplanation &shape) {
  os << "\n  Shape " << shapeText(workload.workload, shape.report.shape)
     << "\n\n";
  writeChosen(workload, shape);
  os << "\n";
  writeLoss(workload, shape);
  writeTimes(workload, shape);
  writePrograms(workload, shape);
  writeMeasured(shape);
  writeStages(shape.report);
  writeConstruction(shape.report);
}

//===----------------------------------------------------------------------===//
// Many sizes, and the whole
//===----------------------------------------------------------------------===//

/// "B = 2, T = 53".
static std::string namesText(const NamedSizes &sizes) {
  return llvm::join(llvm::map_range(sizes,
                                    [](const auto &entry) {
                                      return entry.first + " = " +
                                             std::to_string(entry.second);
                                    }),
                    ", ");
}

/// The sizes of the main axis from one shape to another: "M = 5 to 8".
static std::string sizesText(const WorkloadExplanation &workload, size_t first,
                             size_t last) {
  unsigned axis = workload.workload.mainAxis();
  auto sizeOf = [&](size_t index) {
    return std::to_string(workload.shapes[index].report.shape[axis]);
  };
  std::string text = workload.workload.axes[axis].name + " = " + sizeOf(first);
  return first == last ? text : text + " to " + sizeOf(last);
}

void TextWriter::writeSummary(const WorkloadExplanation &workload) {
  const ExplanationSummary &summary = workload.summary;
  os << "\n  Predicted times over " << workload.shapes.size()
     << " sizes, weighted by how often they occur\n";
  TextTable table(
      {"<over the fastest program that was seen", "mean", "worst", "<at"});
  auto add = [&](std::string label, const ExplanationSummary::Regret &regret) {
    table.add({std::move(label), percent(regret.mean), percent(regret.worst),
               sizesText(workload, regret.worstShape, regret.worstShape)});
  };
  add("chosen programs", summary.chosen);
  if (summary.bestSingle)
    add("best single uKernels", *summary.bestSingle);
  add("choices by SIA", summary.siaChoice);
  table.print(os, "    ");
  os << "    " << general(summary.timesRoofline)
     << " times the roofline on average. Share of the time: ";
  std::vector<std::string> shares;
  for (const auto &[name, share] : summary.termShares)
    if (share >= 5e-4)
      shares.push_back(name + " " + percent(share));
  os << llvm::join(shares, ", ") << "\n    Sizes by the confidence that the "
     << "fastest beats the next: ";
  std::vector<std::string> bands;
  for (auto [index, band] : llvm::enumerate(summary.confidence)) {
    bool isLast = index + 1 == summary.confidence.size();
    double bound =
        isLast ? summary.confidence[index - 1].atLeast : band.atLeast;
    bands.push_back(llvm::formatv("{0} {1} {2} %", band.shapes,
                                  isLast ? "below" : "from",
                                  fixed(100 * bound, 0)));
  }
  os << llvm::join(bands, ", ") << "\n";
  if (summary.worthMeasuring.empty())
    return;
  os << "    Measuring the two fastest would pay most at\n";
  TextTable places({"<", "gain there", "of all", "<fastest", "<next"});
  for (const ExplanationSummary::Measurement &item : summary.worthMeasuring) {
    const ShapeExplanation &shape = workload.shapes[item.firstShape];
    places.add({sizesText(workload, item.firstShape, item.lastShape),
                percent(item.gain), percent(item.gainOfAll),
                kernelText(shape.fastest), kernelText(*shape.next)});
  }
  places.print(os, "      ");
}

/// The largest term of a prediction and its share: "l2 50 %".
static std::string largestTerm(const ReportedProgram &program) {
  const CostTerm *largest = nullptr;
  for (const CostTerm &term : program.predicted.terms)
    if (!largest || term.value > largest->value)
      largest = &term;
  if (!largest)
    return "";
  return largest->name + " " +
         fixed(100 * largest->value / program.microseconds(), 0) + " %";
}

void TextWriter::writeSizes(const WorkloadExplanation &workload) {
  unsigned mainAxis = workload.workload.mainAxis();
  bool areGiven = !explanation.sizes.empty();
  if (areGiven)
    os << "\n  Sizes as they were given";
  else
    os << "\n  Sizes along " << workload.workload.axes[mainAxis].name;
  Shape shape = workload.shapes.front().report.shape;
  std::vector<std::string> others;
  for (auto [index, axis] : llvm::enumerate(workload.workload.axes))
    if (!areGiven && index != mainAxis && axis.isDynamic() &&
        workload.shapes.back().report.shape[index] == shape[index])
      others.push_back(axis.name + " = " + std::to_string(shape[index]));
  if (!others.empty())
    os << ", at " << llvm::join(others, ", ");
  os << ": the chosen program, the best single uKernel, the choice by SIA\n";
  std::vector<std::string> header = {"size",   "family",     "µs",
                                     "regret", "confidence", "<largest term"};
  if (!predictsTime())
    header.insert(header.end(), {"score", "lost"});
  header.insert(header.end(), {"pad", "occ", "cmr", "<program", "single: µs",
                               "<uKernel", "SIA: µs", "roofline: µs"});
  TextTable table(std::move(header));
  for (auto [index, shape] : llvm::enumerate(workload.shapes)) {
    const ReportedProgram &program = shape.program;
    std::vector<std::string> row = {
        areGiven ? namesText(explanation.sizes[index])
                 : std::to_string(shape.report.shape[mainAxis]),
        std::to_string(shape.family),
        fixed(program.microseconds()),
        percent(shape.regret()),
        percent(shape.confidence),
        largestTerm(program)};
    if (!predictsTime())
      row.insert(row.end(),
                 {fixed(program.score.score), fixed(shape.scoreLoss)});
    row.insert(row.end(),
               {fixed(program.metrics.pad), fixed(program.metrics.occ),
                fixed(program.metrics.cmr),
                partitionText(workload.workload, program)});
    if (const auto &single = shape.report.bestSingle)
      row.insert(row.end(),
                 {fixed(single->microseconds()), ukernelsText(*single)});
    else
      row.insert(row.end(), {"", ""});
    row.push_back(fixed(shape.siaChoice.microseconds()));
    row.push_back(fixed(shape.rooflineMicroseconds));
    table.add(std::move(row));
  }
  table.print(os, "    ");
}

void TextWriter::writeFamilies(const Plan &plan) {
  for (auto [index, family] : llvm::enumerate(plan.families)) {
    os << "    " << index << ": " << family.str();
    if (index == plan.generalFamily)
      os << ", general";
    if (index == plan.unalignedGeneralFamily)
      os << ", general for operands that are not aligned";
    os << "\n";
  }
}

void TextWriter::writeWorkload(const WorkloadExplanation &workload) {
  os << "\nWorkload " << workload.name;
  if (!workload.location.empty())
    os << " (" << workload.location << ")";
  os << ", plan @" << workload.planName << "\n";
  if (!workload.equalWorkloads.empty())
    os << "  The same holds for " << llvm::join(workload.equalWorkloads, ", ")
       << "\n";
  os << "  Axes: "
     << llvm::join(llvm::map_range(workload.workload.axes, axisText), "; ")
     << "\n  Families:\n";
  writeFamilies(workload.plan);
  if (workload.portable) {
    os << "  Families on other architectures, plan @" << workload.portableName
       << ":\n";
    writeFamilies(*workload.portable);
  }
  if (workload.isDetailed()) {
    writeShape(workload, workload.shapes.front());
    return;
  }
  writeSummary(workload);
  writeSizes(workload);
}

//===----------------------------------------------------------------------===//
// Summary
//===----------------------------------------------------------------------===//

/// The number of workloads that a summary lists.
static constexpr size_t kSummaryWorkloads = 6;

void TextWriter::writeHeader() {
  os << "Device " << explanation.device.name << ", strategy "
     << explanation.setup.strategy->name() << ", cost model "
     << explanation.setup.costModel->name() << ", calibration "
     << explanation.calibration;
  if (explanation.transferError)
    os << llvm::formatv(", a transfer from other devices that may be off by "
                        "{0:f0} %",
                        100 * *explanation.transferError);
  os << "\n";
}

void TextWriter::writeFunctions(ReportDetail detail) {
  if (detail == ReportDetail::Summary && explanation.functions.size() > 1)
    writeFunctionLines(os, explanation.functions);
  else
    for (const FunctionReport &function : explanation.functions)
      writeWorkText(os, function, detail);
  if (!explanation.knowsLaunches)
    os << "\nThe other launches of the functions are not known: the module "
          "does not compile\n";
}

/// The shape with the longest predicted time.
static const ShapeExplanation &
slowestShape(const WorkloadExplanation &workload) {
  return *llvm::max_element(workload.shapes, [](const ShapeExplanation &a,
                                                const ShapeExplanation &b) {
    return a.program.microseconds() < b.program.microseconds();
  });
}

void TextWriter::writeWorkloadLines() {
  std::vector<const WorkloadExplanation *> workloads;
  for (const WorkloadExplanation &workload : explanation.workloads)
    workloads.push_back(&workload);
  if (workloads.empty())
    return;
  llvm::stable_sort(workloads, [](const auto *a, const auto *b) {
    return slowestShape(*a).program.microseconds() >
           slowestShape(*b).program.microseconds();
  });
  os << "\nWorkloads, each at its slowest size\n";
  TextTable table({"<", "<size", "time", "× roofline", "<largest term",
                   "over the fastest", "<program"});
  size_t count = std::min(workloads.size(), kSummaryWorkloads);
  for (const WorkloadExplanation *workload :
       llvm::ArrayRef(workloads).take_front(count)) {
    const ShapeExplanation &shape = slowestShape(*workload);
    std::string name = workload->name;
    if (size_t others = workload->equalWorkloads.size())
      name += " and " + std::to_string(others) + " alike";
    double time = shape.program.microseconds();
    table.add({name, shapeText(workload->workload, shape.report.shape),
               timeText(time), fixed(time / shape.rooflineMicroseconds, 1),
               largestTerm(shape.program), percent(shape.regret()),
               partitionText(workload->workload, shape.program) + " by " +
                   kernelText(shape.program)});
  }
  table.print(os, "    ");
  if (count < workloads.size())
    os << "    … " << workloads.size() - count << " more\n";
  os << "  --workload=" << workloads.front()->name
     << " explains one of them, --all everything\n";
}

/// Returns the workload that has a name, or that equals a workload of that
/// name.
static llvm::Expected<const WorkloadExplanation *>
findWorkload(const ModuleExplanation &explanation, llvm::StringRef name) {
  std::vector<std::string> known;
  for (const WorkloadExplanation &workload : explanation.workloads) {
    if (workload.name == name ||
        llvm::is_contained(workload.equalWorkloads, name))
      return &workload;
    known.push_back(workload.name);
  }
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      "option --workload: expected " +
          (known.empty()
               ? std::string("none, since the module has no workloads")
               : "one of " + llvm::join(known, ", ")) +
          ", but got '" + name.str() + "'" + didYouMean(name, known));
}

llvm::Error ftuner::writeExplanationText(const ModuleExplanation &explanation,
                                         const ExplanationView &view,
                                         llvm::raw_ostream &os) {
  TextWriter writer(explanation, os);
  if (!view.workload.empty()) {
    llvm::Expected<const WorkloadExplanation *> workload =
        findWorkload(explanation, view.workload);
    if (!workload)
      return workload.takeError();
    writer.writeHeader();
    writer.writeWorkload(**workload);
    return llvm::Error::success();
  }
  writer.writeHeader();
  writer.writeFunctions(view.isFull ? ReportDetail::Full
                                    : ReportDetail::Summary);
  if (!view.isFull)
    writer.writeWorkloadLines();
  else
    for (const WorkloadExplanation &workload : explanation.workloads)
      writer.writeWorkload(workload);
  return llvm::Error::success();
}
