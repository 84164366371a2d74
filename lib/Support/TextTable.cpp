//===- TextTable.cpp - Columns of text ------------------------------------===//
#include "FTuner/Support/TextTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Unicode.h"

using namespace ftuner;

static size_t widthOf(llvm::StringRef text) {
  int width = llvm::sys::unicode::columnWidthUTF8(text);
  return width < 0 ? text.size() : width;
}

TextTable::TextTable(std::vector<std::string> titles) {
  for (std::string &title : titles) {
    isLeft.push_back(llvm::StringRef(title).starts_with("<"));
    if (isLeft.back())
      title.erase(0, 1);
  }
  rows.push_back(std::move(titles));
}

void TextTable::print(llvm::raw_ostream &os, llvm::StringRef indent) const {
  std::vector<size_t> widths(isLeft.size(), 0);
  for (const std::vector<std::string> &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, widthOf(cell));
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (auto [left, width, cell] : llvm::zip_equal(isLeft, widths, row)) {
      std::string filling(width - widthOf(cell), ' ');
      line += (left ? cell + filling : filling + cell) + "  ";
    }
    os << indent << llvm::StringRef(line).rtrim() << "\n";
  }
}

std::string ftuner::fixed(double value, int digits) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*f", digits, value);
  return text;
}

std::string ftuner::general(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4g", value);
  return text;
}

std::string ftuner::timeText(double microseconds) {
  if (microseconds < 1e4)
    return fixed(microseconds) + " µs";
  return microseconds < 1e6 ? fixed(microseconds / 1e3) + " ms"
                            : fixed(microseconds / 1e6) + " s";
}

std::string ftuner::bytesText(double bytes) {
  if (bytes < 1e3)
    return fixed(bytes, 0) + " B";
  if (bytes < 1e6)
    return general(bytes / 1e3) + " kB";
  return bytes < 1e9 ? general(bytes / 1e6) + " MB"
                     : general(bytes / 1e9) + " GB";
}

std::string ftuner::percent(double share) {
  return fixed(100 * share, 1) + " %";
}
