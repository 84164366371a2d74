//===- Options.h - Options, declared once -----------------------*- C++ -*-===//
//
// Whoever reads an option declares it, once: its name, a text, bounds or the
// values that it takes, the file that it names, and the member that holds it,
// whose initializer is the default. Command lines, caches, passes, pipelines,
// `--help`, the listing for other programs and the checks are made from the
// declarations, so that an option is added where it is read and nowhere else:
//
//   struct Annealing {
//     /// Programs of a generation.
//     int64_t population = 64;
//     /// Share of a worse score that is still taken at first.
//     double temperature = 0.2;
//   };
//   static const OptionTable<Annealing> options = {
//       option("population", &Annealing::population,
//              "Keeps this many programs of a generation").within(1, 4096),
//       option("temperature", &Annealing::temperature,
//              "Takes this share of a worse score at first").within(0, 1)};
//
//   Annealing own = options.read(problem.options.own);
//
// Values travel by name (`OptionValues`), which is what a command line and the
// text of a pass pipeline are made of. A struct of typed members is what code
// reads. The alternative, a struct for all options of all strategies, would
// have every new strategy change the files of all others.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SUPPORT_OPTIONS_H
#define FTUNER_SUPPORT_OPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ftuner {

/// A value of an option: a switch, a whole number, a number, or a text. The
/// alternative is the type of the option.
using OptionValue = std::variant<bool, int64_t, double, std::string>;

/// Values by the names of their options.
using OptionValues = std::map<std::string, OptionValue, std::less<>>;

/// The value as a user writes it: "true", "16", "0.95". Numbers read back are
/// the same to the last bit.
std::string toText(const OptionValue &value);

/// Returns an error about an option, in the form that all of them have: "option
/// --NAME: text", with a text such as "expected 1 to 24, but got 0".
llvm::Error optionError(llvm::StringRef name, const llvm::Twine &text);

/// Where help texts show an option.
enum class OptionLevel {
  /// On the first screen (`--help`).
  Basic,
  /// Behind `--help-all`, with the others of its group.
  Advanced,
  /// Behind `--help-hidden` only: an option that tests and studies set.
  Testing
};

/// The name of a level in the listing: "basic", "advanced", "testing".
llvm::StringRef nameOf(OptionLevel level);

/// A file that the value of an option may name. Command lines of other programs
/// make its path absolute, and caches of results depend on its content.
struct OptionFile {
  enum class Access {
    /// The file is read.
    Read,
    /// The file is written anew.
    Write,
    /// The file is read where it exists, and added to.
    Update,
    /// A command line is run: the files among its words decide its results.
    Command
  };
  /// The text before the path, such as "recorded:"; empty for a bare path.
  std::string prefix;
  Access access = Access::Read;
};

/// The name of an access in the listing: "read", "write", "update", "command".
llvm::StringRef nameOf(OptionFile::Access access);

/// The declaration of an option, as all that show, read or check it need it.
struct OptionDecl {
  /// Name on the command line: lower-case words joined by '-'.
  std::string name;
  /// A sentence for `--help` that stands for itself, without full stop, default
  /// and bounds.
  std::string text;
  OptionValue defaultValue;
  /// Bounds of a number, included. Whole numbers have bounds below 2^53.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  /// Names of options of the same table that are bounds too; empty for none.
  std::string atLeast, atMost;
  /// The texts that it may be; anything if there is none.
  std::vector<std::string> choices;
  /// Further checks of a text, e.g. that it names a file. Called once, before
  /// the value is used; the error need not name the option.
  std::function<llvm::Error(llvm::StringRef)> checkText;
  OptionLevel level = OptionLevel::Advanced;
  /// Files that a text may name; empty if it names none.
  std::vector<OptionFile> files;
  /// Returns the texts that name something built in where a file may stand;
  /// null if there are none.
  std::function<std::vector<std::string>()> builtinNames;

  /// "switch", "integer", "number", "file" or "string".
  llvm::StringRef typeName() const;
  /// Bounds or values in words, "1 to 1024"; empty if there are none.
  std::string bounds() const;
  /// Describes the legal values in words: "a whole number from 1 to 1024".
  std::string expectation() const;

  /// Reads a text as the option's type. Bounds are not checked; the error says
  /// what was expected and names neither the option nor the text.
  llvm::Expected<OptionValue> parse(llvm::StringRef text) const;
  /// Checks type, bounds and choices. `find` knows the values of the options
  /// that `atLeast` and `atMost` name. The error names the option, what is
  /// expected and the value.
  llvm::Error
  check(const OptionValue &value,
        llvm::function_ref<OptionValue(llvm::StringRef)> find) const;
};

/// Declarations, which live as long as the program.
using OptionDecls = std::vector<const OptionDecl *>;

/// Joins the declarations of several tables, in order.
OptionDecls joined(std::initializer_list<OptionDecls> lists);

/// Says which value is out of its option's bounds; what is not given has its
/// default. Values of other options are left alone.
llvm::Error checkValues(const OptionDecls &decls, const OptionValues &given);

/// A declaration that knows which member holds the value.
template <typename Options>
struct BoundOption {
  OptionDecl decl;
  std::function<OptionValue(const Options &)> get;
  /// The value must have passed `OptionDecl::check`.
  std::function<void(Options &, const OptionValue &)> set;

  BoundOption within(double min, double max) && {
    decl.min = min;
    decl.max = max;
    return std::move(*this);
  }
  /// Another option of the table is its least value.
  BoundOption atLeast(llvm::StringRef name) && {
    decl.atLeast = name.str();
    return std::move(*this);
  }
  /// Another option of the table is its largest value.
  BoundOption atMost(llvm::StringRef name) && {
    decl.atMost = name.str();
    return std::move(*this);
  }
  BoundOption oneOf(std::vector<std::string> choices) && {
    decl.choices = std::move(choices);
    return std::move(*this);
  }
  BoundOption checkedBy(std::function<llvm::Error(llvm::StringRef)> check) && {
    decl.checkText = std::move(check);
    return std::move(*this);
  }
  /// Shows the option on the first screen of help texts.
  BoundOption basic() && {
    decl.level = OptionLevel::Basic;
    return std::move(*this);
  }
  /// Hides the option from users.
  BoundOption testing() && {
    decl.level = OptionLevel::Testing;
    return std::move(*this);
  }
  /// The value may be the path of a file, behind a prefix if there is one.
  BoundOption file(OptionFile::Access access, llvm::StringRef prefix = "") && {
    decl.files.push_back({prefix.str(), access});
    return std::move(*this);
  }
  /// The value may also be one of these names.
  BoundOption orBuiltin(std::function<std::vector<std::string>()> names) && {
    decl.builtinNames = std::move(names);
    return std::move(*this);
  }
};

/// Declares an option that a member of type bool, int64_t, double or
/// std::string holds; its initializer is the default.
template <typename Options, typename T>
BoundOption<Options> option(llvm::StringRef name, T Options::*member,
                            llvm::StringRef text) {
  BoundOption<Options> bound;
  bound.decl.name = name.str();
  bound.decl.text = text.str();
  bound.decl.defaultValue = Options().*member;
  bound.get = [member](const Options &options) -> OptionValue {
    return options.*member;
  };
  bound.set = [member](Options &options, const OptionValue &value) {
    options.*member = std::get<T>(value);
  };
  return bound;
}

/// Declares an option that an enumeration holds; each of its values has a text.
template <typename Options, typename Enum>
BoundOption<Options>
option(llvm::StringRef name, Enum Options::*member, llvm::StringRef text,
       const std::vector<std::pair<std::string, Enum>> &choices) {
  static_assert(std::is_enum_v<Enum>);
  BoundOption<Options> bound;
  bound.decl.name = name.str();
  bound.decl.text = text.str();
  for (const auto &choice : choices)
    bound.decl.choices.push_back(choice.first);
  bound.get = [member, choices](const Options &options) -> OptionValue {
    for (const auto &[text, value] : choices)
      if (options.*member == value)
        return text;
    return std::string();
  };
  bound.set = [member, choices](Options &options, const OptionValue &given) {
    for (const auto &[text, value] : choices)
      if (std::get<std::string>(given) == text)
        options.*member = value;
  };
  bound.decl.defaultValue = bound.get(Options());
  return bound;
}

/// The options that a struct holds.
template <typename Options>
class OptionTable {
public:
  OptionTable(std::initializer_list<BoundOption<Options>> options)
      : options(options) {}

  /// Their declarations, which live as long as the table.
  OptionDecls decls() const {
    OptionDecls decls;
    for (const BoundOption<Options> &option : options)
      decls.push_back(&option.decl);
    return decls;
  }

  /// Sets the members of which a value is given. Values must have passed
  /// `checkValues`; other names are left alone.
  void read(const OptionValues &given, Options &target) const {
    for (const BoundOption<Options> &option : options)
      if (auto it = given.find(option.decl.name); it != given.end())
        option.set(target, it->second);
  }
  Options read(const OptionValues &given) const {
    Options result;
    read(given, result);
    return result;
  }

  /// Says which member is out of its bounds.
  llvm::Error check(const Options &values) const {
    auto find = [&](llvm::StringRef name) {
      for (const BoundOption<Options> &option : options)
        if (option.decl.name == name)
          return option.get(values);
      return OptionValue();
    };
    for (const BoundOption<Options> &option : options)
      if (llvm::Error error = option.decl.check(option.get(values), find))
        return error;
    return llvm::Error::success();
  }

private:
  std::vector<BoundOption<Options>> options;
};

/// A reader of options: a part of the compiler.
struct OptionReader {
  /// "search", "strategy", "baseline", "cost model" or "pipeline".
  std::string kind;
  /// Name of the strategy or cost model; empty where the kind has one member.
  std::string name;
  /// Title of the options in help texts, where the kind has several groups.
  std::string group = "";
};

/// An option and all that read it.
struct DeclaredOption {
  const OptionDecl *decl = nullptr;
  std::vector<OptionReader> readers;
  /// One line for `--help`: the text, bounds, default and readers.
  std::string help;

  /// Title of the options that help texts show together. It follows from the
  /// readers: "Compilation", "Search", "Cost models", "Strategy 'ftuner'",
  /// "Several strategies", "Baselines 'roller' and 'gensor'", or the group
  /// that the first reader has; "Testing" for options of that level.
  std::string group() const;
};

/// Options by name, each once, in the order in which they were added.
class OptionList {
public:
  /// Adds what a reader reads; an option that is declared already gets one more
  /// reader. A name must not be declared in two ways (`clashes`).
  void add(const OptionReader &reader, const OptionDecls &decls);

  llvm::ArrayRef<DeclaredOption> options() const { return declared; }
  const DeclaredOption *find(llvm::StringRef name) const;
  /// Names that two readers declare apart from each other. The first
  /// declaration counts; a test sees that there are none.
  llvm::ArrayRef<std::string> clashes() const { return clashing; }

  /// Says which value is of no option, or out of its option's bounds
  /// (`checkValues`).
  llvm::Error check(const OptionValues &given) const;
  /// Runs `OptionDecl::checkText` on the values that are given.
  llvm::Error checkTexts(const OptionValues &given) const;

private:
  std::vector<DeclaredOption> declared;
  std::vector<std::string> clashing;
};

} // namespace ftuner

#endif // FTUNER_SUPPORT_OPTIONS_H
