//===- IreePatterns.h - Products that IREE can find again -------*- C++ -*-===//
//
// A transform spec of IREE names each product by its operators: the linalg
// operators from a root back to the values that they take. The functions here
// find these operators in a module, before workloads are formed.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TARGET_IREE_IREEPATTERNS_H
#define FTUNER_LIB_TARGET_IREE_IREEPATTERNS_H

#include "FTuner/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ftuner::iree {

/// Products of a module, each in a separate function. The function takes the
/// values that the product takes, with the same types and with tensors for
/// results, and returns the product's result. It holds only the operators of
/// the product.
struct ProductPatterns {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// With the most operators first: a smaller one may be part of a larger one.
  llvm::SmallVector<mlir::func::FuncOp> functions;
};

/// Finds the products that become one workload each: contractions with the
/// elementwise operators that take their results, and with what moves their
/// inputs. Equal ones become one function. Dynamic sizes have the ranges of the
/// module, as symbols of the new one.
///
/// IREE compares the bodies of operators by their own values, so one that
/// captures a value, or holds a constant, ends a product. Warns of such, and of
/// products that cannot be found at all. The functions' names begin with
/// `prefix`.
mlir::FailureOr<ProductPatterns>
findProductPatterns(mlir::ModuleOp module, const FTunerOptions &options,
                    llvm::StringRef prefix);

} // namespace ftuner::iree

#endif // FTUNER_LIB_TARGET_IREE_IREEPATTERNS_H
