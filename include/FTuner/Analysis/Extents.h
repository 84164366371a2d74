//===- Extents.h - Sources of the sizes of tensors --------------*- C++ -*-===//
//
// The size of a dimension is followed through the operators that produce the
// tensor back to the arguments of the function. The result is a product of a
// number and of unknowns. Two sizes with equal products are equal at run time;
// ranges of the symbols give the range of a product.
//
// Upstream's ValueBoundsConstraintSet answers the same for sums, but not for
// products, which come with every reshape.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_EXTENTS_H
#define FTUNER_ANALYSIS_EXTENTS_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ftuner {

/// The product of a factor and of unknowns; without unknowns it is a number.
struct Extent {
  int64_t factor = 1;
  /// Unknowns by number (places in `ExtentAnalysis::unknowns`), ascending; one
  /// may occur several times.
  llvm::SmallVector<unsigned, 2> unknowns;

  bool isStatic() const { return unknowns.empty() || factor == 0; }
  bool operator==(const Extent &other) const {
    return factor == other.factor &&
           (factor == 0 || unknowns == other.unknowns);
  }
};

/// Sizes of the tensors of one function.
class ExtentAnalysis {
public:
  explicit ExtentAnalysis(mlir::FunctionOpInterface function);

  /// Returns the size of a dimension of a ranked tensor.
  Extent dimOf(mlir::Value tensor, int64_t dim);
  /// Returns the product of the sizes of some dimensions of a ranked tensor.
  Extent groupOf(mlir::Value source, llvm::ArrayRef<int64_t> dims);
  /// Returns the product of the sizes of dimensions, each of a ranked tensor.
  Extent productOf(llvm::ArrayRef<std::pair<mlir::Value, int64_t>> dimensions);
  /// Returns the extent of a value of type index.
  Extent valueOf(mlir::Value value);

  /// Assumes the equalities that the function's cf.assert before `op` state.
  /// Calls must follow the order of the program.
  void assumeAssertionsBefore(mlir::Operation *op);

  /// Returns the range of an extent; `0 to ?` if nothing is declared.
  ukernel::RangeAttr rangeOf(const Extent &extent);

  /// Returns the names of the extent's unknowns, sorted, if there is at least
  /// one and every one is a symbol.
  std::optional<llvm::SmallVector<mlir::StringAttr>>
  symbolsOf(const Extent &extent) const;

  /// Returns the name of an unknown in formulas: its symbol, "arg0_dim1", or
  /// "size2".
  std::string nameOf(unsigned unknown) const;

  /// Returns "dimension 1 of argument 0" if the extent is a dimension.
  std::optional<std::string> describe(const Extent &extent) const;
  /// Returns "'B' times 'T'" if the extent is a product of symbols whose
  /// declared ranges let it exceed the largest extent of an axis.
  std::optional<std::string> describeUnlessFits(const Extent &extent) const;

private:
  /// A symbol, a dimension of a value, or a value itself.
  struct Unknown {
    mlir::StringAttr symbol;
    mlir::Value value;
    int64_t dim;
    /// Argument and dimension where the unknown was found first.
    std::optional<std::pair<unsigned, int64_t>> origin;
    /// The extent that assertions declare equal, if any.
    std::optional<Extent> equal;
  };

  Extent unknown(mlir::StringAttr symbol, mlir::Value value, int64_t dim,
                 std::optional<std::pair<unsigned, int64_t>> origin = {});
  Extent argumentDim(mlir::BlockArgument argument, int64_t dim);
  Extent mixed(mlir::OpFoldResult size);
  std::optional<Extent> evaluate(mlir::AffineExpr expr, mlir::ValueRange dims,
                                 mlir::ValueRange symbols);
  /// Replaces every unknown that assertions declare equal to another extent by
  /// that extent, until only unknowns without such an extent are left.
  Extent resolve(const Extent &extent) const;
  void assumeEqual(Extent lhs, Extent rhs);

  mlir::FunctionOpInterface function;
  mlir::DictionaryAttr symbolRanges;
  std::vector<Unknown> unknowns;
  llvm::DenseMap<std::pair<const void *, int64_t>, unsigned> numbers;
  /// Assertions of the entry block that are not yet taken, last one first.
  llvm::SmallVector<mlir::cf::AssertOp> assertions;
};

} // namespace ftuner

#endif // FTUNER_ANALYSIS_EXTENTS_H
