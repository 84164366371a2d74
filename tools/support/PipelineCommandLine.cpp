//===- PipelineCommandLine.cpp - Pipeline options on a command line -------===//
#include "FTuner/Pipelines/Pipelines.h"
#include "ToolSupport.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <map>

using namespace llvm;

namespace ftuner::tool {

struct PipelineCommandLine::Impl {
  cl::OptionCategory category{"Options of the pipeline"};
  std::map<std::string, std::unique_ptr<cl::opt<std::string>>> options;
  cl::opt<bool> list{"list-options",
                     cl::desc("List the options of the pipeline as JSON"),
                     cl::cat(category), cl::callback([](const bool &isAsked) {
                       if (!isAsked)
                         return;
                       writeOptionList(outs());
                       outs().flush();
                       std::exit(EXIT_SUCCESS);
                     })};
};

static bool isSwitch(const OptionDecl &decl) {
  return std::holds_alternative<bool>(decl.defaultValue);
}

PipelineCommandLine::PipelineCommandLine() : impl(std::make_unique<Impl>()) {
  for (const DeclaredOption &option : pipelineOptionList().options())
    impl->options[option.decl->name] = std::make_unique<cl::opt<std::string>>(
        StringRef(option.decl->name), cl::desc(option.help),
        cl::value_desc("value"),
        // `--NAME` alone switches on what is on or off.
        isSwitch(*option.decl) ? cl::ValueOptional : cl::ValueRequired,
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
  for (const std::string &name : getGiven()) {
    const std::string &given = impl->options.at(name)->getValue();
    Expected<OptionValue> value =
        pipelineOptionList().find(name)->decl->parse(given);
    if (!value)
      return createStringError(inconvertibleErrorCode(),
                               "invalid value of option --" + name + ": '" +
                                   given + "': " + toString(value.takeError()));
    options.set(name, std::move(*value));
  }
  return Error::success();
}

} // namespace ftuner::tool
