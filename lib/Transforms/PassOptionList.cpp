//===- PassOptionList.cpp - Declared options of passes and pipelines ------===//
#include "FTuner/Transforms/PassOptionList.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;

bool OptionValueParser::parse(llvm::cl::Option &option, llvm::StringRef name,
                              llvm::StringRef text,
                              ftuner::OptionValue &value) {
  llvm::Expected<ftuner::OptionValue> parsed = decl->parse(text);
  if (!parsed)
    return option.error(
        "'" + text + "' value invalid: " + llvm::toString(parsed.takeError()),
        name);
  value = std::move(*parsed);
  return false;
}

void OptionValueParser::print(llvm::raw_ostream &os,
                              const ftuner::OptionValue &value) {
  // Texts with spaces need braces.
  mlir::detail::pass_options::printOptionValue<OptionValueParser>(
      os, toText(value));
}

llvm::StringRef OptionValueParser::getValueName() const {
  return std::holds_alternative<bool>(decl->defaultValue) ? ""
                                                          : decl->typeName();
}

llvm::cl::ValueExpected OptionValueParser::getValueExpectedFlagDefault() const {
  return std::holds_alternative<bool>(decl->defaultValue)
             ? llvm::cl::ValueOptional
             : llvm::cl::ValueRequired;
}

OptionValues PassOptionList::values() const {
  OptionValues values;
  for (const std::unique_ptr<PassOption> &option : options)
    values[option->ArgStr.str()] = option->getValue();
  return values;
}

bool PassOptionList::isGiven(llvm::StringRef name) const {
  return llvm::any_of(options, [&](const std::unique_ptr<PassOption> &option) {
    return option->ArgStr == name && option->hasValue();
  });
}

void PassOptionList::set(const OptionValues &values) {
  for (const std::unique_ptr<PassOption> &option : options)
    if (auto it = values.find(option->ArgStr); it != values.end())
      *option = it->second;
}
