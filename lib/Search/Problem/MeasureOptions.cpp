//===- MeasureOptions.cpp - Options of measurements -----------------------===//
#include "FTuner/Search/Problem/MeasureOptions.h"
#include "FTuner/CostModel/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;

/// Bounds beyond what any search needs.
static constexpr double maxPrograms = 1 << 20, maxBudget = 1e8, maxMib = 1e8,
                        maxSeconds = 1e6;

std::pair<llvm::StringRef, llvm::StringRef>
ftuner::splitMeasurerName(llvm::StringRef name) {
  return name.split(':');
}

/// Checks the name of a measurer. Files are checked where they are used.
static llvm::Error checkMeasurerName(llvm::StringRef name) {
  auto [kind, argument] = splitMeasurerName(name);
  bool hasMore = name.contains(':');
  if (!hasMore &&
      (kind.empty() ||
       llvm::is_contained({"gpu", "ptxas", "cost-model", "log"}, kind)))
    return llvm::Error::success();
  if ((kind == "recorded" || kind == "command") && !argument.trim().empty())
    return llvm::Error::success();
  if (kind == "model" && hasMore) {
    const CostModel *model = findCostModel(argument);
    if (model && model->predictsTime())
      return llvm::Error::success();
    return llvm::createStringError(
        "expected a cost model that predicts time, but got '" + argument + "'");
  }
  return llvm::createStringError(
      "expected 'gpu', 'recorded:FILE', 'command:CMD' or 'model:NAME', but "
      "got '" +
      name + "'");
}

const OptionTable<MeasureOptions> &ftuner::measureOptions() {
  using Options = MeasureOptions;
  static const OptionTable<MeasureOptions> table = {
      option("measure-top", &Options::top,
             "This number of best programs of each sampled shape is measured; "
             "the measured times rank them again")
          .basic()
          .within(0, maxPrograms),
      option("measure", &Options::set,
             "Besides the programs of 'measure-top', no program is measured "
             "('none'), or every one that the strategy ranks for a shape "
             "('filter')",
             {{"none", MeasuredSet::None}, {"filter", MeasuredSet::Filter}}),
      option(
          "measurer", &Options::measurer,
          "Programs are timed on the GPU ('gpu'), by a log of measurements "
          "('recorded:FILE'), by a command line that is run for each program "
          "('command:CMD'), or by a cost model that stands in ('model:NAME')")
          .file(OptionFile::Access::Read, "recorded:")
          .file(OptionFile::Access::Command, "command:")
          .basic()
          .checkedBy(checkMeasurerName),
      option("measure-budget", &Options::budget,
             "At most this number of programs is measured for a workload, "
             "including those that the log knows")
          .within(0, maxBudget),
      option(
          "measure-log", &Options::log,
          "The search reuses the measurements in this file, and adds its own")
          .file(OptionFile::Access::Update),
      option("measure-unsure", &Options::unsure,
             "Only shapes are measured where the cost model's confidence in "
             "its choice is below this number; 0 measures all")
          .within(0, 1),
      option("measure-memory", &Options::memoryMib,
             "A shape is not measured if its operands take more MiB than this; "
             "0 sets no limit")
          .within(0, maxMib),
      option("measure-seconds", &Options::commandSeconds,
             "The measurer's command may take this number of seconds for one "
             "program")
          .within(1, maxSeconds),
  };
  return table;
}

llvm::Error MeasureOptions::checkMeasurer() const {
  if (!isOn())
    return llvm::Error::success();
  if (measurer.empty())
    return llvm::createStringError("option --measurer: expected who measures "
                                   "what 'measure-top' or 'measure' asks for");
  if (llvm::is_contained({"ptxas", "log"}, measurer))
    return llvm::createStringError(
        "option --measurer: expected a measurer of times" +
        llvm::StringRef(byStrategy ? "" : " for 'measure-top' or 'measure'") +
        ", but got '" + measurer + "'");
  return llvm::Error::success();
}

std::vector<std::string>
ftuner::unreadMeasureOptions(const OptionValues &given,
                             const MeasureOptions &options) {
  std::vector<std::string> lines;
  if (options.isOn())
    return lines;
  for (const OptionDecl *decl : measureOptions().decls()) {
    auto value = given.find(decl->name);
    if (value != given.end() && value->second != decl->defaultValue)
      lines.push_back("option --" + decl->name + "=" + toText(value->second) +
                      " has no effect without 'measure-top' or 'measure'");
  }
  return lines;
}
