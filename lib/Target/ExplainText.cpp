//===- ExplainText.cpp - Explanations as text -----------------------------===//
#include "FTuner/Target/Explain.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Tables and words
//===----------------------------------------------------------------------===//

namespace {
/// Rows of cells, printed in columns. Columns whose first cell begins with '<'
/// are aligned to the left.
class Table {
public:
  explicit Table(std::vector<std::string> header) {
    for (std::string &title : header) {
      isLeft.push_back(llvm::StringRef(title).starts_with("<"));
      if (isLeft.back())
        title.erase(0, 1);
    }
    rows.push_back(std::move(header));
  }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(llvm::raw_ostream &os, llvm::StringRef indent) const;

private:
  static size_t widthOf(llvm::StringRef text) {
    int width = llvm::sys::unicode::columnWidthUTF8(text);
    return width < 0 ? text.size() : width;
  }

  std::vector<bool> isLeft;
  std::vector<std::vector<std::string>> rows;
};
} // namespace

void Table::print(llvm::raw_ostream &os, llvm::StringRef indent) const {
  std::vector<size_t> widths(isLeft.size(), 0);
  for (const std::vector<std::string> &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, widthOf(cell));
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (auto [left, width, cell] : llvm::zip_equal(isLeft, widths, row)) {
      std::string filling(width - widthOf(cell), ' ');
      line += (left ? cell + filling : filling + cell) + "  ";
    }
    os << indent << llvm::StringRef(line).rtrim() << "\n";
  }
}

static std::string fixed(double value, int digits = 3) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*f", digits, value);
  return text;
}

static std::string general(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4g", value);
  return text;
}

/// "3 × 7 + 4 × 8", and what of it lies beyond the extent.
static std::string coverText(const ReportedProgram &program) {
  std::vector<std::string> parts;
  auto add = [&](const UKernel &part, int64_t blocks) {
    if (blocks > 0)
      parts.push_back(llvm::formatv("{0} × {1}", blocks,
                                    part.smemTile[program.family.combineAxis]));
  };
  add(program.family.parts.front(), program.cover.first);
  if (program.family.parts.size() > 1)
    add(program.family.parts.back(), program.cover.second);
  std::string text = llvm::join(parts, " + ");
  if (program.cover.padded > 0)
    text += " − " + std::to_string(program.cover.padded);
  return text;
}

/// The uKernels that run.
static std::string ukernelsText(const ReportedProgram &program) {
  std::string first = program.family.parts.front().str();
  std::string last = program.family.parts.back().str();
  if (program.cover.second == 0)
    return first;
  return program.cover.first == 0 ? last : first + " + " + last;
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

  void write();

private:
  void writeWorkload(const WorkloadExplanation &workload);
  void writeShape(const WorkloadExplanation &workload,
                  const ShapeExplanation &shape);
  void writeChosen(const WorkloadExplanation &workload,
                   const ShapeExplanation &shape);
  void writeTerms(const CostBreakdown &score);
  /// Why the plan does not run the shape's best program.
  void writeLoss(const WorkloadExplanation &workload,
                 const ShapeExplanation &shape);
  void writePrograms(const WorkloadExplanation &workload,
                     const ShapeExplanation &shape);
  void writeStages(const ShapeReport &report);
  void writeSizes(const WorkloadExplanation &workload);

  const ModuleExplanation &explanation;
  llvm::raw_ostream &os;
};
} // namespace

void TextWriter::writeTerms(const CostBreakdown &score) {
  Table table({"<term", "weight", "value", "weight · value"});
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
  if (!shape.isAligned)
    os << "the fallback: rows of this shape are not aligned for wider "
          "accesses\n";
  else if (shape.entry)
    os << "by entry " << *shape.entry << " of the plan\n";
  else
    os << "the general one: no entry of the plan holds the shape\n";
  auto writePart = [&](const UKernel &part, int64_t blocks) {
    if (blocks > 0)
      os << "    uKernel " << part.str() << ": " << blocks
         << (blocks == 1 ? " block" : " blocks") << " along " << axis << "\n";
  };
  writePart(family.parts.front(), program.cover.first);
  if (family.parts.size() > 1)
    writePart(family.parts.back(), program.cover.second);
  os << "    " << axis << ": " << extent << " = " << coverText(program);
  if (program.cover.padded > 0)
    os << " (" << program.cover.padded << " padded)";
  os << "\n    " << program.metrics.blocks
     << (program.metrics.blocks == 1 ? " block" : " blocks") << " of "
     << family.threads() << " threads in all, " << family.stages
     << " stages, accesses of " << family.vectorWidth
     << (family.vectorWidth == 1 ? " element" : " elements") << "\n";
  writeTerms(program.score);
}

void TextWriter::writeLoss(const WorkloadExplanation &workload,
                           const ShapeExplanation &shape) {
  double best = shape.best().score.score;
  if (runsTheSame(shape.program, shape.best())) {
    os << "  It is the best program of the shape.\n";
    return;
  }
  if (shape.scoreLoss == 0) {
    os << "  It scores as the best program of the shape does.\n";
    return;
  }
  if (shape.scoreLoss < 0) {
    os << "  It scores " << fixed(-shape.scoreLoss)
       << " more than the best program of the shape, which the strategy "
          "prefers: the\n  chosen one misses what the stages below ask for, or "
          "is in the pools of other sizes alone.\n";
    return;
  }
  os << "  The best program of the shape scores " << fixed(best) << ": "
     << fixed(shape.scoreLoss);
  if (best != 0)
    os << " (" << fixed(100 * shape.scoreLoss / std::abs(best), 1) << " %)";
  os << " is lost, since ";
  auto limit = static_cast<size_t>(explanation.setup.options.maxKernels);
  if (!shape.isAligned)
    os << "the fallback serves every shape without alignment.\n";
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

void TextWriter::writePrograms(const WorkloadExplanation &workload,
                               const ShapeExplanation &shape) {
  const ShapeReport &report = shape.report;
  os << "\n  Best programs of the shape, of " << report.singlePrograms
     << " with one uKernel and " << report.pairPrograms
     << " with two (* chosen, 1 best single uKernel)\n";
  unsigned combineAxis = shape.program.family.combineAxis;
  bool isRated = llvm::any_of(report.programs, [](const auto &program) {
    return program.rating != program.score.score;
  });
  std::vector<std::string> header = {"#", "<", "score"};
  if (isRated)
    header.push_back("rating");
  for (const CostTerm &term : shape.program.score.terms)
    header.push_back((term.weight == 1 ? "" : general(term.weight) + " · ") +
                     term.name);
  header.push_back("blocks");
  header.push_back("threads");
  header.push_back("stages");
  header.push_back("<" + workload.workload.axes[combineAxis].name);
  header.push_back("<uKernels");
  Table table(std::move(header));
  auto add = [&](std::string rank, const ReportedProgram &program) {
    bool isChosen = &program == &shape.program;
    std::string marks;
    if (runsTheSame(program, shape.program))
      marks += "*";
    if (report.bestSingle && runsTheSame(program, *report.bestSingle))
      marks += "1";
    std::vector<std::string> row = {std::move(rank), marks,
                                    fixed(program.score.score)};
    if (isRated) // The strategy rates the programs of its own pool.
      row.push_back(isChosen ? "" : fixed(program.rating));
    for (const CostTerm &term : program.score.terms)
      row.push_back(fixed(term.weight * term.value));
    row.push_back(std::to_string(program.metrics.blocks));
    row.push_back(std::to_string(program.family.threads()));
    row.push_back(std::to_string(program.family.stages));
    row.push_back(coverText(program));
    row.push_back(ukernelsText(program));
    table.add(std::move(row));
  };
  auto isListed = [&](const ReportedProgram &wanted) {
    return llvm::any_of(report.programs, [&](const ReportedProgram &program) {
      return runsTheSame(program, wanted);
    });
  };
  for (auto [index, program] : llvm::enumerate(report.programs))
    add(std::to_string(index + 1), program);
  if (!isListed(shape.program))
    add("…", shape.program);
  if (report.bestSingle && !isListed(*report.bestSingle) &&
      !runsTheSame(*report.bestSingle, shape.program))
    add("…", *report.bestSingle);
  table.print(os, "    ");
}

void TextWriter::writeStages(const ShapeReport &report) {
  os << "\n  Stages for the shape, from " << report.candidates
     << " candidates\n";
  Table table({"<stage", "before", "kept", "<requirement",
               "<best candidate thrown out, and its figure"});
  for (const StageReport &stage : report.stages) {
    std::string dropped;
    if (stage.dropped)
      dropped = llvm::formatv("{0}: {1} {2}", stage.dropped->ukernel.str(),
                              stage.figure, general(stage.dropped->value));
    table.add({stage.name, std::to_string(stage.before),
               std::to_string(stage.kept),
               stage.requirement +
                   (stage.relaxed ? " (relaxed: nothing would be left)" : ""),
               dropped});
  }
  table.print(os, "    ");
}

void TextWriter::writeShape(const WorkloadExplanation &workload,
                            const ShapeExplanation &shape) {
  os << "\n  Shape " << shapeText(workload.workload, shape.report.shape)
     << "\n\n";
  writeChosen(workload, shape);
  os << "\n";
  writeLoss(workload, shape);
  writePrograms(workload, shape);
  writeStages(shape.report);
}

//===----------------------------------------------------------------------===//
// Many sizes, and the whole
//===----------------------------------------------------------------------===//

void TextWriter::writeSizes(const WorkloadExplanation &workload) {
  unsigned mainAxis = workload.workload.mainAxis();
  os << "\n  Sizes along " << workload.workload.axes[mainAxis].name;
  Shape shape = workload.shapes.front().report.shape;
  std::vector<std::string> others;
  for (auto [index, axis] : llvm::enumerate(workload.workload.axes))
    if (index != mainAxis && axis.isDynamic() &&
        workload.shapes.back().report.shape[index] == shape[index])
      others.push_back(axis.name + " = " + std::to_string(shape[index]));
  if (!others.empty())
    os << ", at " << llvm::join(others, ", ");
  os << ": the chosen program, and the best single uKernel\n";
  Table table({"size", "family", "score", "lost", "pad", "occ", "cmr",
               "<program", "score", "pad", "occ", "cmr", "<single uKernel"});
  for (const ShapeExplanation &shape : workload.shapes) {
    const Metrics &metrics = shape.program.metrics;
    std::vector<std::string> row = {
        std::to_string(shape.report.shape[mainAxis]),
        std::to_string(shape.family),
        fixed(shape.program.score.score),
        fixed(shape.scoreLoss),
        fixed(metrics.pad),
        fixed(metrics.occ),
        fixed(metrics.cmr),
        coverText(shape.program)};
    if (const auto &single = shape.report.bestSingle)
      row.insert(row.end(),
                 {fixed(single->score.score), fixed(single->metrics.pad),
                  fixed(single->metrics.occ), fixed(single->metrics.cmr),
                  ukernelsText(*single)});
    else
      row.resize(row.size() + 5);
    table.add(std::move(row));
  }
  table.print(os, "    ");
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
  const Plan &plan = workload.plan;
  for (auto [index, family] : llvm::enumerate(plan.families)) {
    os << "    " << index << ": " << family.str();
    if (index == plan.generalFamily)
      os << ", general";
    if (index == plan.fallbackFamily)
      os << ", fallback for operands that are not aligned";
    os << "\n";
  }
  if (workload.isDetailed())
    writeShape(workload, workload.shapes.front());
  else
    writeSizes(workload);
}

void TextWriter::write() {
  os << "Device " << explanation.device.name << ", strategy "
     << explanation.setup.strategy->name() << ", cost model "
     << explanation.setup.costModel->name() << "\n";
  for (const WorkloadExplanation &workload : explanation.workloads)
    writeWorkload(workload);
}

void ftuner::writeExplanationText(const ModuleExplanation &explanation,
                                  llvm::raw_ostream &os) {
  TextWriter(explanation, os).write();
}
