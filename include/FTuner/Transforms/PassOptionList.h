//===- PassOptionList.h - Declared options of passes and pipelines -*- C++ -*-//
//
// Makes an option of MLIR of each declaration in a list (Options.h), for a pass
// or for the options of a pipeline. Values are parsed and printed by the
// declaration's type; a printed pipeline reads back as it was.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TRANSFORMS_PASSOPTIONLIST_H
#define FTUNER_TRANSFORMS_PASSOPTIONLIST_H

#include "FTuner/Support/Options.h"
#include "mlir/Pass/PassOptions.h"
#include <memory>
#include <vector>

namespace llvm::cl {
/// Reads and prints one declared option.
template <>
class parser<ftuner::OptionValue> : public basic_parser<ftuner::OptionValue> {
public:
  using basic_parser::basic_parser;

  /// Returns true on failure, as llvm::cl has it.
  bool parse(Option &option, StringRef name, StringRef text,
             ftuner::OptionValue &value);
  static void print(raw_ostream &os, const ftuner::OptionValue &value);

  /// What stands for the value in `--help`.
  StringRef getValueName() const override;
  /// A switch may stand without a value.
  enum ValueExpected getValueExpectedFlagDefault() const;
  void printOptionDiff(const Option &, const ftuner::OptionValue &,
                       const OptionValue<ftuner::OptionValue> &, size_t) const {
  }

  const ftuner::OptionDecl *decl = nullptr;
};
} // namespace llvm::cl

namespace ftuner {

using OptionValueParser = llvm::cl::parser<OptionValue>;

/// The options of a pass or pipeline, and their values. A pass has it as a
/// member and makes it anew in its copy constructor; MLIR copies the values.
class PassOptionList {
public:
  /// `Option` is the template of that name in mlir::Pass, or that of
  /// mlir::PassPipelineOptions; `parent` the pass or the options. The
  /// declarations outlive the list.
  template <template <typename, typename> class Option, typename Parent>
  static PassOptionList make(Parent &parent,
                             llvm::ArrayRef<DeclaredOption> declared) {
    PassOptionList list;
    for (const DeclaredOption &option : declared) {
      auto made = std::make_unique<Option<OptionValue, OptionValueParser>>(
          parent, option.decl->name, llvm::cl::desc(option.help),
          llvm::cl::init(option.decl->defaultValue));
      made->getParser().decl = option.decl;
      list.options.push_back(std::move(made));
    }
    return list;
  }

  /// All values, also those that nobody gave.
  OptionValues values() const;
  /// Returns whether somebody gave the option a value.
  bool isGiven(llvm::StringRef name) const;
  /// Sets the options that are in the list and leaves out other names.
  void set(const OptionValues &values);

private:
  using PassOption =
      mlir::detail::PassOptions::Option<OptionValue, OptionValueParser>;
  std::vector<std::unique_ptr<PassOption>> options;
};

} // namespace ftuner

#endif // FTUNER_TRANSFORMS_PASSOPTIONLIST_H
