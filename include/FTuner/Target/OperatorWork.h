//===- OperatorWork.h - Work of a function's operators ----------*- C++ -*-===//
//
// The operations of every operator of a function on tensors, as formulas of the
// function's sizes. They show the share of the planned workloads if other
// compilers compile the rest. `FunctionWork` has the operations of launched
// kernels, once the function is on buffers.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_OPERATORWORK_H
#define FTUNER_TARGET_OPERATORWORK_H

#include "FTuner/Workload/Workload.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <string>
#include <vector>

namespace ftuner {

struct OperatorWork {
  /// Name of the operator, e.g. "linalg.batch_matmul".
  std::string name;
  /// "file:line:column" without folders, empty if not known.
  std::string location;
  bool isWorkload = false;
  /// A product of tensors that is summed over an axis: a workload may be one.
  bool isContraction = false;
  /// Over the symbols of `FunctionOperators::sizeNames`; counted as
  /// `kWorkAttrName` says.
  mlir::AffineExpr flops;
};

/// Operators in loops count once.
struct FunctionOperators {
  std::string name;
  /// The sizes that formulas are over: symbols, other sizes of arguments
  /// ("arg0_dim1"), and sizes of which nothing is known ("size2").
  std::vector<std::string> sizeNames;
  /// The declared range of each size; open if none is declared.
  std::vector<Axis> sizes;
  /// In the order of the function.
  std::vector<OperatorWork> operators;
  /// Names of the operations that compute tensors and are not counted.
  std::vector<std::string> unknown;
};

/// The work of a function after `ukernel-plan-workloads`.
FunctionOperators collectOperatorWork(mlir::FunctionOpInterface function);

} // namespace ftuner

#endif // FTUNER_TARGET_OPERATORWORK_H
