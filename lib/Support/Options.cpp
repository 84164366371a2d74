//===- Options.cpp - Options, declared once -------------------------------===//
#include "FTuner/Support/Options.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>

using namespace ftuner;
using llvm::Twine;

llvm::Error ftuner::optionError(llvm::StringRef name, const Twine &text) {
  return llvm::createStringError("option --" + name + ": " + text);
}

llvm::StringRef ftuner::nameOf(OptionLevel level) {
  static constexpr llvm::StringLiteral names[] = {"basic", "advanced",
                                                  "testing"};
  return names[static_cast<size_t>(level)];
}

llvm::StringRef ftuner::nameOf(OptionFile::Access access) {
  static constexpr llvm::StringLiteral names[] = {"read", "write", "update",
                                                  "command"};
  return names[static_cast<size_t>(access)];
}

std::string ftuner::toText(const OptionValue &value) {
  if (const bool *isOn = std::get_if<bool>(&value))
    return *isOn ? "true" : "false";
  if (const int64_t *number = std::get_if<int64_t>(&value))
    return std::to_string(*number);
  if (const std::string *text = std::get_if<std::string>(&value))
    return *text;
  char buffer[32];
  char *end = std::to_chars(std::begin(buffer), std::end(buffer),
                            std::get<double>(value))
                  .ptr;
  return {buffer, end};
}

/// A bound; those of a whole number are whole numbers.
static std::string shown(double bound, const OptionValue &type) {
  if (std::holds_alternative<int64_t>(type))
    return toText(static_cast<int64_t>(bound));
  return toText(bound);
}

/// "0 to 1", "at least 0", "at most 1", or nothing.
static std::string rangeText(double min, double max, const OptionValue &type) {
  bool hasMin = std::isfinite(min), hasMax = std::isfinite(max);
  if (hasMin && hasMax)
    return shown(min, type) + " to " + shown(max, type);
  if (hasMin)
    return "at least " + shown(min, type);
  return hasMax ? "at most " + shown(max, type) : "";
}

static std::optional<double> numberOf(const OptionValue &value) {
  if (const int64_t *number = std::get_if<int64_t>(&value))
    return static_cast<double>(*number);
  if (const double *number = std::get_if<double>(&value))
    return *number;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// OptionDecl
//===----------------------------------------------------------------------===//

llvm::StringRef OptionDecl::typeName() const {
  static constexpr llvm::StringLiteral names[] = {"switch", "integer", "number",
                                                  "string"};
  return files.empty() ? llvm::StringRef(names[defaultValue.index()]) : "file";
}

std::string OptionDecl::bounds() const {
  std::string text = choices.empty() ? rangeText(min, max, defaultValue)
                                     : llvm::join(choices, ", ");
  auto add = [&](llvm::StringRef words, llvm::StringRef name) {
    if (!name.empty())
      text += ((text.empty() ? "" : ", ") + words + name).str();
  };
  add("at least ", atLeast);
  add("at most ", atMost);
  return text;
}

std::string OptionDecl::expectation() const {
  if (!choices.empty())
    return "one of " + llvm::join(choices, ", ");
  if (std::holds_alternative<bool>(defaultValue))
    return "true or false";
  if (std::holds_alternative<std::string>(defaultValue))
    return "a text";
  std::string range = rangeText(min, max, defaultValue);
  bool isBetween = std::isfinite(min) && std::isfinite(max);
  return std::string(std::holds_alternative<int64_t>(defaultValue)
                         ? "a whole number"
                         : "a number") +
         (range.empty() ? "" : (isBetween ? " from " : " of ") + range);
}

llvm::Expected<OptionValue> OptionDecl::parse(llvm::StringRef given) const {
  auto unexpected = [&] {
    return llvm::createStringError("expected " + expectation());
  };
  if (std::holds_alternative<std::string>(defaultValue))
    return OptionValue(given.str());
  if (std::holds_alternative<bool>(defaultValue)) {
    // A switch alone is on.
    auto isOn = llvm::StringSwitch<std::optional<bool>>(given.lower())
                    .Cases({"", "true", "on", "1"}, true)
                    .Cases({"false", "off", "0"}, false)
                    .Default(std::nullopt);
    return isOn ? llvm::Expected<OptionValue>(*isOn) : unexpected();
  }
  if (std::holds_alternative<int64_t>(defaultValue)) {
    int64_t number = 0;
    if (given.getAsInteger(/*Radix=*/0, number))
      return unexpected();
    return OptionValue(number);
  }
  double number = 0;
  if (!llvm::to_float(given, number))
    return unexpected();
  return OptionValue(number);
}

llvm::Error
OptionDecl::check(const OptionValue &value,
                  llvm::function_ref<OptionValue(llvm::StringRef)> find) const {
  auto unexpected = [&](const Twine &noun, llvm::StringRef got) {
    return optionError(name, "expected " + noun + ", but got " + got);
  };
  if (value.index() != defaultValue.index())
    return unexpected(expectation(), "'" + toText(value) + "'");
  if (const std::string *text = std::get_if<std::string>(&value))
    if (!choices.empty() && !llvm::is_contained(choices, *text))
      return unexpected(expectation(), "'" + *text + "'");
  std::optional<double> number = numberOf(value);
  if (!number)
    return llvm::Error::success();
  double low = min, high = max;
  if (!atLeast.empty())
    low = std::max(low, numberOf(find(atLeast)).value_or(low));
  if (!atMost.empty())
    high = std::min(high, numberOf(find(atMost)).value_or(high));
  // NaN is no number between bounds, and none without them either.
  if (*number >= low && *number <= high)
    return llvm::Error::success();
  std::string range = rangeText(low, high, value);
  return unexpected(range.empty() ? expectation() : range, toText(value));
}

//===----------------------------------------------------------------------===//
// OptionList
//===----------------------------------------------------------------------===//

static std::string helpOf(const DeclaredOption &option) {
  const OptionDecl &decl = *option.decl;
  std::vector<std::string> notes;
  if (std::string bounds = decl.bounds(); !bounds.empty())
    notes.push_back(bounds);
  std::string value = toText(decl.defaultValue);
  if (!value.empty())
    notes.push_back("default: " + value);
  std::vector<std::string> names;
  for (const OptionReader &reader : option.readers)
    if (!reader.name.empty())
      names.push_back(reader.name);
  if (!names.empty())
    notes.push_back("read by " + llvm::join(names, ", "));
  return decl.text +
         (notes.empty() ? "" : " (" + llvm::join(notes, "; ") + ")");
}

std::string DeclaredOption::group() const {
  if (decl->level == OptionLevel::Testing)
    return "Testing";
  if (!readers.front().group.empty())
    return readers.front().group;
  auto isReadBy = [&](llvm::StringRef kind) {
    return llvm::any_of(readers, [&](const OptionReader &reader) {
      return reader.kind == kind;
    });
  };
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
      titles[] = {{"pipeline", "Compilation"},
                  {"search", "Search"},
                  {"cost model", "Cost models"}};
  for (const auto &[kind, title] : titles)
    if (isReadBy(kind))
      return title.str();
  bool isOfBaselines = !isReadBy("strategy");
  if (readers.size() == 1)
    return (isOfBaselines ? "Baseline '" : "Strategy '") + readers[0].name +
           "'";
  if (readers.size() == 2)
    return (isOfBaselines ? "Baselines '" : "Strategies '") + readers[0].name +
           "' and '" + readers[1].name + "'";
  return isOfBaselines ? "Several baselines" : "Several strategies";
}

OptionDecls ftuner::joined(std::initializer_list<OptionDecls> lists) {
  OptionDecls all;
  for (const OptionDecls &list : lists)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

llvm::Error ftuner::checkValues(const OptionDecls &decls,
                                const OptionValues &given) {
  auto valueOf = [&](const OptionDecl &decl) -> const OptionValue & {
    auto it = given.find(decl.name);
    return it == given.end() ? decl.defaultValue : it->second;
  };
  auto find = [&](llvm::StringRef name) {
    for (const OptionDecl *decl : decls)
      if (decl->name == name)
        return valueOf(*decl);
    return OptionValue();
  };
  // A default may be out of bounds that another option is.
  for (const OptionDecl *decl : decls)
    if (llvm::Error error = decl->check(valueOf(*decl), find))
      return error;
  return llvm::Error::success();
}

void OptionList::add(const OptionReader &reader, const OptionDecls &decls) {
  for (const OptionDecl *decl : decls) {
    auto known = llvm::find_if(declared, [&](const DeclaredOption &option) {
      return option.decl->name == decl->name;
    });
    if (known == declared.end())
      known = declared.insert(known, {decl, {}, {}});
    if (known->decl != decl) {
      clashing.push_back(decl->name);
      continue;
    }
    known->readers.push_back(reader);
    known->help = helpOf(*known);
  }
}

const DeclaredOption *OptionList::find(llvm::StringRef name) const {
  for (const DeclaredOption &option : declared)
    if (option.decl->name == name)
      return &option;
  return nullptr;
}

llvm::Error OptionList::check(const OptionValues &given) const {
  for (const auto &[name, value] : given)
    if (!find(name))
      return llvm::createStringError("unknown option --" + name);
  OptionDecls decls;
  for (const DeclaredOption &option : declared)
    decls.push_back(option.decl);
  return checkValues(decls, given);
}

llvm::Error OptionList::checkTexts(const OptionValues &given) const {
  for (const auto &[name, value] : given) {
    const DeclaredOption *option = find(name);
    const std::string *text = std::get_if<std::string>(&value);
    if (!option || !option->decl->checkText || !text)
      continue;
    if (llvm::Error error = option->decl->checkText(*text))
      return optionError(name, llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}
