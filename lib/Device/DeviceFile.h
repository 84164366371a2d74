//===- DeviceFile.h - Text of a device description --------------*- C++ -*-===//
//
// What the JSON parser does not keep: the line of each field, and fields that
// occur twice.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_DEVICE_DEVICEFILE_H
#define FTUNER_LIB_DEVICE_DEVICEFILE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace ftuner {

/// A parsed description that still knows where its fields are.
struct DeviceFile {
  std::string sourceName;
  llvm::json::Object fields;
  llvm::StringMap<unsigned> lines;
  /// Line of the closing brace, where a missing field would stand.
  unsigned lastLine = 1;

  /// `source:line: field 'key': message`.
  llvm::Error error(llvm::StringRef key, const llvm::Twine &message) const;
};

/// Parses the text into one object. Refuses texts over 1 MiB, nesting deeper
/// than 16 levels, syntax errors and duplicate fields.
llvm::Expected<DeviceFile> parseDeviceFile(llvm::StringRef json,
                                           llvm::StringRef sourceName);

/// Largest description in bytes.
constexpr size_t maxDeviceFileBytes = 1 << 20;

} // namespace ftuner

#endif // FTUNER_LIB_DEVICE_DEVICEFILE_H
