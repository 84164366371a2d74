//===- FunctionWork.h - Work of a function's launches -----------*- C++ -*-===//
//
// The operations and bytes of every kernel that a host function launches,
// uKernels and fallback kernels alike, as formulas of the sizes that the
// function is called with. The share of uKernels in a function follows from
// them.
//
// A kernel's module carries its work as `ukernel.work`, in terms of the sizes
// that launches pass. Here these are followed back to the function's arguments.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_FUNCTIONWORK_H
#define FTUNER_ANALYSIS_FUNCTIONWORK_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Workload/Workload.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// gpu.module of a kernel: a dictionary with
///   amounts    affine_map<()[sizes of a launch] -> (operations, bytes,
///              accesses, loads of a thread)>: arithmetic operations on
///              elements (one for each op of arith and math except casts,
///              comparisons and choices, two for an FMA); bytes of all
///              operands, each element once for reading and once for writing;
///              for a fallback kernel also the number of loads and stores of
///              elements by all threads, and the number of loads by one thread
///   extents    for a workload's kernel: the sizes of its axes, also as a map
///   axes       for a workload's kernel: the names of its axes
inline constexpr llvm::StringLiteral kWorkAttrName = "ukernel.work";
/// gpu.module of a kernel that adds up the split-K slices of another one.
inline constexpr llvm::StringLiteral kAddsSlicesAttrName =
    "ukernel.adds_slices";
/// ukernel.launch: description of the launch, a dictionary of strings. A launch
/// of a workload's kernel has
///   name       the workload by its function and its number there; launches of
///              one are alternatives
///   workload   the equal workload that names the kernels
///   slices     the split-K factor of the alternative, if it has slices; all
///              kernels of the alternative have it
/// and every launch has
///   kind       the kind of the operator, a word of OperatorKind.h
///   operator   the operator that it computes
///   location   its location in the source
///   copied     what a copy copies, and why; others do not have it
inline constexpr llvm::StringLiteral kSiteAttrName = "ukernel.site";

/// Returns `ukernel.work` of a workload's kernel for launches that pass the
/// sizes of all axes.
mlir::DictionaryAttr workOf(ukernel::KernelOp kernel);
/// Returns `work` for launches that leave out the sizes of fixed axes.
mlir::DictionaryAttr dropFixedSizes(mlir::DictionaryAttr work,
                                    llvm::ArrayRef<bool> isPassed);

/// Launches of one kernel at one place of a function, or the alternatives of
/// one workload. Formulas are over the symbols of `FunctionWork::sizeNames`,
/// null where they do not follow from the function's sizes.
struct LaunchWork {
  /// Name of the item: "f_0" for a workload, "f_fallback_0" for a fallback
  /// kernel.
  std::string name;
  /// The workload that names the kernels, as in the manifest; empty for a
  /// fallback kernel. Equal workloads share kernels.
  std::string workload;
  /// The operator, and "file:line:column" without folders, empty if not known.
  std::string operatorName, location;
  mlir::AffineExpr operations, bytes, accesses, threadLoads;
  /// Names of a workload's axes, as in `Workload`, and their sizes.
  std::vector<std::string> axisNames;
  llvm::SmallVector<mlir::AffineExpr> extents;
  /// How often a call launches the item: the product of the trips of the loops
  /// around it. If a loop's trips are not known, it is null, and the item
  /// counts once. Branches count as taken.
  mlir::AffineExpr launches;
  /// Blocks of a launch of a fallback kernel; null for a workload, whose
  /// program determines its blocks.
  mlir::AffineExpr blocks;
  /// Positions in `FunctionWork::launches`, ascending, of the items that this
  /// one waits for: it reads or overwrites their results, or overwrites their
  /// inputs. Items that these wait for in turn are left out.
  std::vector<size_t> after;

  bool isFallback() const { return workload.empty(); }

  /// The operator's kind, a word of OperatorKind.h; empty if not known.
  std::string kind = {};
  /// Text that says what a copy copies, and why no operator reads or writes the
  /// elements in place; empty for other operators.
  std::string copied = {};
  /// Symbol of the kernel, of one alternative of a workload; and the sizes and
  /// strides that launches pass.
  std::string kernel = {};
  llvm::SmallVector<mlir::AffineExpr> passedSizes = {}, passedStrides = {};
};

struct FunctionWork {
  /// C name of the function.
  std::string name;
  /// The sizes that formulas are over: symbols, and other dynamic dimensions
  /// ("arg0_dim1") and scalars ("arg2") by their place.
  std::vector<std::string> sizeNames;
  /// The declared range of each size; open if none is declared.
  std::vector<Axis> sizes;
  /// In the order in which the host launches them.
  std::vector<LaunchWork> launches;
};

/// The names of the sizes of a function's arguments, which have these types, as
/// in `FunctionWork::sizeNames`.
std::vector<std::string> argumentSizeNames(mlir::func::FuncOp func,
                                           mlir::FunctionType type);

/// The work of a function of the host ABI after `ukernel-plan-workspace`, its
/// kernels emitted or not. With a number for each of its sizes, formulas are
/// constants, also of the least and the greatest of some sizes, which no
/// formula of symbols has.
FunctionWork collectWork(mlir::func::FuncOp func,
                         llvm::ArrayRef<double> sizes = {});

/// A formula with the names of sizes, e.g. "T * 1536 + 3072"; "" for null.
std::string textOf(mlir::AffineExpr formula,
                   llvm::ArrayRef<std::string> sizeNames);
/// A formula at these sizes; none for null.
std::optional<double> evaluateSigned(mlir::AffineExpr formula,
                                     llvm::ArrayRef<double> sizes);
/// Returns the value of `evaluateSigned`, at least 0.
std::optional<double> evaluate(mlir::AffineExpr formula,
                               llvm::ArrayRef<double> sizes);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_FUNCTIONWORK_H
