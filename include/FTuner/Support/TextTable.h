//===- TextTable.h - Columns of text ----------------------------*- C++ -*-===//
#ifndef FTUNER_SUPPORT_TEXTTABLE_H
#define FTUNER_SUPPORT_TEXTTABLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace ftuner {

/// Rows of cells, printed in columns. Columns whose title begins with '<' are
/// aligned to the left.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> titles);

  /// Adds a row with a cell for each title.
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(llvm::raw_ostream &os, llvm::StringRef indent) const;

private:
  std::vector<bool> isLeft;
  std::vector<std::vector<std::string>> rows;
};

/// A number with `digits` digits after the point.
std::string fixed(double value, int digits = 3);
/// A number with four significant digits.
std::string general(double value);
/// Microseconds with a unit that keeps them readable: "5.850 µs", "58.67 ms",
/// "1.200 s".
std::string timeText(double microseconds);
/// A number of bytes likewise: "512 B", "9.83 kB", "1.25 MB".
std::string bytesText(double bytes);
/// A share with one digit: "2.8 %".
std::string percent(double share);

} // namespace ftuner

#endif // FTUNER_SUPPORT_TEXTTABLE_H
