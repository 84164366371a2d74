//===- JsonFile.h - JSON that still knows its lines -------------*- C++ -*-===//
//
// Descriptions that people write (devices, calibrations): what the JSON parser
// does not keep is the line of each field, and fields that occur twice.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SUPPORT_JSONFILE_H
#define FTUNER_SUPPORT_JSONFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace ftuner {

/// Largest text in bytes.
constexpr size_t maxJsonFileBytes = 1 << 20;

/// An object that was read from a text. Fields of an object inside it are named
/// by both names: "constants.fma".
struct JsonFile {
  std::string sourceName;
  llvm::json::Object fields;
  /// Line of each field, from 1.
  llvm::StringMap<unsigned> lines;
  /// Lines of the fields of objects that are fields themselves.
  llvm::StringMap<llvm::StringMap<unsigned>> innerLines;
  /// Line of the closing brace, where a missing field would stand.
  unsigned lastLine = 1;

  /// `source:line: field 'key': message`.
  llvm::Error error(llvm::StringRef key, const llvm::Twine &message) const;
  /// `source:line: field 'outer.key': message`.
  llvm::Error error(llvm::StringRef outer, llvm::StringRef key,
                    const llvm::Twine &message) const;
  /// An error for the first field, in the order of the file, that `isKnown`
  /// refuses: "expected WHAT".
  llvm::Error checkKeys(llvm::function_ref<bool(llvm::StringRef)> isKnown,
                        const llvm::Twine &expected) const;
  /// Checks the keys inside the object `outer`.
  llvm::Error checkKeys(llvm::StringRef outer,
                        llvm::function_ref<bool(llvm::StringRef)> isKnown,
                        const llvm::Twine &expected) const;
  /// A text of 1 to `maxLength` printable characters that are not all blank.
  llvm::Expected<std::string> text(llvm::StringRef key, size_t maxLength) const;
};

/// Parses the text into one object with the fields of `what` ("a device").
/// Refuses texts over `maxJsonFileBytes`, nesting deeper than 16 levels, syntax
/// errors and repeated fields. Errors name `sourceName` and the line.
llvm::Expected<JsonFile> parseJsonFile(llvm::StringRef json,
                                       llvm::StringRef sourceName,
                                       llvm::StringRef expected);

/// Refuses nesting deeper than 16 levels, of which the JSON parser, which is
/// recursive, might overflow the stack. The error begins with
/// `sourceName:line`.
llvm::Error checkJsonDepth(llvm::StringRef json, llvm::StringRef sourceName);

/// A value as a message shows it: short, on one line.
std::string shown(const llvm::json::Value &value);

} // namespace ftuner

#endif // FTUNER_SUPPORT_JSONFILE_H
