//===- PipelineCommandLine.cpp - Pipeline options on a command line -------===//
#include "FTuner/Pipelines/Pipelines.h"
#include "ToolSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <map>

using namespace llvm;

namespace ftuner::tool {

struct PipelineCommandLine::Impl {
  /// Shows every option of these categories, except for test options, and ends
  /// the program.
  void showAll() const;
  cl::OptionCategory &categoryFor(const DeclaredOption &option);

  /// Options of the first screen.
  cl::OptionCategory basic{"Options of the compiler"};
  /// The other options, by the titles of their groups.
  std::map<std::string, std::unique_ptr<cl::OptionCategory>> groups;
  std::map<std::string, std::unique_ptr<cl::opt<std::string>>> options;
  SmallVector<const cl::OptionCategory *> shown;
  cl::extrahelp hint{"\n--help-all lists every option, by group.\n"};
  cl::opt<bool> list{
      "list-options", cl::desc("List the options of the pipeline as JSON"),
      cl::Hidden, cl::cat(basic), cl::callback([](const bool &isAsked) {
        if (!isAsked)
          return;
        writeOptionList(outs());
        outs().flush();
        std::exit(EXIT_SUCCESS);
      })};
  cl::opt<bool> all{"help-all", cl::desc("Display every option, by group"),
                    cl::Hidden, cl::cat(basic),
                    cl::callback([this](const bool &isAsked) {
                      if (isAsked)
                        showAll();
                    })};
};

void PipelineCommandLine::Impl::showAll() const {
  for (auto &[name, option] : cl::getRegisteredOptions()) {
    auto declared = options.find(name.str());
    bool isForTests =
        declared != options.end() &&
        pipelineOptionList().find(name)->decl->level == OptionLevel::Testing;
    bool isOurs = any_of(option->Categories, [&](cl::OptionCategory *category) {
      return is_contained(shown, category);
    });
    if (isOurs && !isForTests)
      option->setHiddenFlag(cl::NotHidden);
  }
  cl::PrintHelpMessage(/*Hidden=*/false, /*Categorized=*/true);
  outs().flush();
  std::exit(EXIT_SUCCESS);
}

cl::OptionCategory &
PipelineCommandLine::Impl::categoryFor(const DeclaredOption &option) {
  if (option.decl->level == OptionLevel::Basic)
    return basic;
  auto [entry, isNew] = groups.try_emplace(option.group());
  if (isNew)
    entry->second = std::make_unique<cl::OptionCategory>(entry->first);
  return *entry->second;
}

static bool isSwitch(const OptionDecl &decl) {
  return std::holds_alternative<bool>(decl.defaultValue);
}

PipelineCommandLine::PipelineCommandLine() : impl(std::make_unique<Impl>()) {
  for (const DeclaredOption &option : pipelineOptionList().options()) {
    const OptionDecl &decl = *option.decl;
    impl->options[decl.name] = std::make_unique<cl::opt<std::string>>(
        StringRef(decl.name), cl::desc(option.help),
        cl::value_desc(decl.typeName()),
        // `--NAME` alone switches on what is on or off.
        isSwitch(decl) ? cl::ValueOptional : cl::ValueRequired,
        decl.level == OptionLevel::Basic ? cl::NotHidden : cl::Hidden,
        cl::cat(impl->categoryFor(option)));
  }
}

PipelineCommandLine::~PipelineCommandLine() = default;

std::vector<std::string> PipelineCommandLine::getGiven() const {
  std::vector<std::string> names;
  for (const auto &[name, option] : impl->options)
    if (option->getNumOccurrences() > 0)
      names.push_back(name);
  return names;
}

void PipelineCommandLine::prepareHelp(cl::OptionCategory &category) {
  impl->shown = {&category, &impl->basic};
  for (const auto &[title, group] : impl->groups)
    impl->shown.push_back(group.get());
  cl::HideUnrelatedOptions(impl->shown);
}

Error PipelineCommandLine::apply(FTunerOptions &options) const {
  for (const std::string &name : getGiven()) {
    const std::string &given = impl->options.at(name)->getValue();
    Expected<OptionValue> value =
        pipelineOptionList().find(name)->decl->parse(given);
    if (!value)
      return optionError(name, toString(value.takeError()) + ", but got '" +
                                   given + "'");
    options.set(name, std::move(*value));
  }
  return options.check();
}

} // namespace ftuner::tool
