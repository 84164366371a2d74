//===- AstTemplate.h - Trees of many programs of one structure --*- C++ -*-===//
//
// A program's tree as JSON, in which a number may be a column of a table:
//
//   {"name": "m", "length": {"column": 0}, "binding": "grid", …}
//
// So a hundred thousand kernels that differ in lengths, distances and counts
// are one text and rows of numbers. The text is checked once, each row's
// numbers when they are bound.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_ASTTEMPLATE_H
#define FTUNER_SCHEDULE_ASTTEMPLATE_H

#include "FTuner/Schedule/ProgramAst.h"
#include "llvm/Support/Error.h"

namespace ftuner {

class AstTemplate {
public:
  /// Reads what `ProgramAst::write` has written as an object, with numbers
  /// below `numColumns` as columns. Loops are numbered in the order in which
  /// they open, each around a statement. `distances` and `ordering` may be left
  /// out; they must be those of the tree, and without columns. Errors name the
  /// line of syntax errors, and else the field: "loops[2].length: expected …".
  /// Lengths and the like are no greater than `maxExtent`, distances than 2^53
  /// and other numbers than 1e100.
  static llvm::Expected<AstTemplate> parse(llvm::StringRef json,
                                           size_t numColumns = 0);

  AstTemplate(AstTemplate &&) = default;
  AstTemplate &operator=(AstTemplate &&) = default;

  /// Takes a row of the table. An error leaves a tree with some of its numbers.
  llvm::Error bind(llvm::ArrayRef<double> row);
  /// The tree, of the row that was bound last.
  const ProgramAst &ast() const { return tree; }

private:
  class Reader;
  /// Bounds of a number.
  struct Bounds {
    double least, most;
  };
  /// A number of the tree that a column says: a whole one, or any.
  struct Slot {
    int64_t *whole;
    double *number;
    Bounds bounds;
    size_t column;
    std::string path;
  };

  AstTemplate() = default;
  static llvm::Error store(double value, int64_t *whole, double *number,
                           Bounds bounds, llvm::StringRef path);
  /// That distances, which are products, stay within their bounds.
  llvm::Error checkDistances() const;

  ProgramAst tree;
  // Places within the tree's vectors, which moves leave where they are.
  std::vector<Slot> slots;
};

} // namespace ftuner

#endif // FTUNER_SCHEDULE_ASTTEMPLATE_H
