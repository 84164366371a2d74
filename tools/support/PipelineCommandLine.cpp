//===- PipelineCommandLine.cpp - Pipeline options on a command line -------===//
#include "FTuner/Pipelines/Pipelines.h"
#include "ToolSupport.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace llvm;

namespace ftuner::tool {

namespace {
/// Lists the options that FTunerOptions declares, by name.
struct DeclaredOptions : FTunerOptions {
  struct Description {
    std::string text;
    cl::ValueExpected value;
  };
  std::map<std::string, Description> describe() const {
    std::map<std::string, Description> descriptions;
    for (const auto &entry : OptionsMap)
      descriptions[entry.first.str()] = {entry.second->HelpStr.str(),
                                         entry.second->getValueExpectedFlag()};
    return descriptions;
  }
};
} // namespace

struct PipelineCommandLine::Impl {
  cl::OptionCategory category{"Options of the pipeline"};
  /// Descriptions stay alive for the options, which only refer to them.
  std::map<std::string, DeclaredOptions::Description> descriptions =
      DeclaredOptions().describe();
  std::map<std::string, std::unique_ptr<cl::opt<std::string>>> options;
};

PipelineCommandLine::PipelineCommandLine() : impl(std::make_unique<Impl>()) {
  for (const auto &[name, description] : impl->descriptions)
    impl->options[name] = std::make_unique<cl::opt<std::string>>(
        StringRef(name), cl::desc(description.text), cl::value_desc("value"),
        description.value, cl::cat(impl->category));
}

PipelineCommandLine::~PipelineCommandLine() = default;

std::vector<std::string> PipelineCommandLine::getGiven() const {
  std::vector<std::string> names;
  for (const auto &[name, option] : impl->options)
    if (option->getNumOccurrences() > 0)
      names.push_back(name);
  return names;
}

void PipelineCommandLine::hideOtherOptions(cl::OptionCategory &category) const {
  cl::HideUnrelatedOptions({&impl->category, &category});
}

Error PipelineCommandLine::apply(FTunerOptions &options) const {
  for (const auto &[name, option] : impl->options) {
    if (option->getNumOccurrences() == 0)
      continue;
    // `--NAME` alone switches on what is on or off.
    bool isSwitch = option->getValueExpectedFlag() == cl::ValueOptional;
    const std::string &given = option->getValue();
    const std::string value = given.empty() && isSwitch ? "true" : given;
    std::string complaint;
    raw_string_ostream stream(complaint);
    if (value.find('"') != std::string::npos ||
        failed(options.parseFromString(name + "=\"" + value + "\"", stream)))
      return createStringError(inconvertibleErrorCode(),
                               "invalid value of option --" + name + ": '" +
                                   value + "'");
  }
  return Error::success();
}

} // namespace ftuner::tool
