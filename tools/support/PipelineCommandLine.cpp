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
  std::map<std::string, std::string> describe() const {
    std::map<std::string, std::string> descriptions;
    for (const auto &entry : OptionsMap)
      descriptions[entry.first.str()] = entry.second->HelpStr.str();
    return descriptions;
  }
};
} // namespace

struct PipelineCommandLine::Impl {
  cl::OptionCategory category{"Options of the pipeline"};
  /// Descriptions stay alive for the options, which only refer to them.
  std::map<std::string, std::string> descriptions =
      DeclaredOptions().describe();
  std::map<std::string, std::unique_ptr<cl::opt<std::string>>> options;
};

PipelineCommandLine::PipelineCommandLine() : impl(std::make_unique<Impl>()) {
  for (const auto &[name, description] : impl->descriptions)
    impl->options[name] = std::make_unique<cl::opt<std::string>>(
        StringRef(name), cl::desc(description), cl::value_desc("value"),
        cl::cat(impl->category));
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
    const std::string &value = option->getValue();
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
