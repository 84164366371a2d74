//===- HostAbi.h - Attributes that carry the host ABI -----------*- C++ -*-===//
//
// Passes on host functions pass these attributes to each other; a reader of a
// compiled module needs them to call its functions. docs/abi.md states the ABI.
//
// After `ukernel-prepare-host`, every function to be compiled carries
// `ukernel.abi_type`, its type on tensors, and `ukernel.name`, its name in the
// source; its symbol is a C identifier. Two private functions on scalars
// belong to it, both of type
//   (index for every dynamic dimension of the tensor arguments in order,
//    then the scalar arguments in order) -> …
// and are named by an attribute of the function:
//   `ukernel.result_sizes`     -> one index per dimension of the results
//   `ukernel.workspace_size`   -> one index, the workspace in bytes, or a
//                                 negative number if there is none
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_HOSTABI_HOSTABI_H
#define FTUNER_HOSTABI_HOSTABI_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace ftuner {

/// Function: its name in the source, where its symbol is the C name.
inline constexpr llvm::StringLiteral kSourceNameAttrName = "ukernel.name";
/// Function: the function that computes the sizes of its results.
inline constexpr llvm::StringLiteral kResultSizesAttrName =
    "ukernel.result_sizes";
/// Function: the function that computes the size of its workspace.
inline constexpr llvm::StringLiteral kWorkspaceSizeAttrName =
    "ukernel.workspace_size";

/// Function, in the input: numbers of the arguments and results that callers
/// see as unsigned, {arguments = array<i64: 0>, results = array<i64: 0, 1>}.
/// Kernels know no signs; the manifest tells callers.
inline constexpr llvm::StringLiteral kUnsignedAttrName = "ukernel.unsigned";

/// Function, in the input: names of its arguments and results in the source,
/// {arguments = ["x", ""], results = ["y"]}; a value without a name has an
/// empty one. The manifest, headers, reports and messages use them.
inline constexpr llvm::StringLiteral kNamesAttrName = "ukernel.names";

/// Intermediates start at multiples of this many bytes in the workspace.
inline constexpr int64_t kWorkspaceAlignment = 256;
/// Threads of a block of a fallback kernel.
inline constexpr int64_t kFallbackThreads = 256;

/// The type on tensors of a function of the host ABI; null for any other.
mlir::FunctionType getAbiType(mlir::func::FuncOp func);

/// The numbers of the unsigned values that `kUnsignedAttrName` lists under
/// `key`, "arguments" or "results".
llvm::ArrayRef<int64_t> getUnsigned(mlir::func::FuncOp func,
                                    llvm::StringRef key);

/// Returns the name that `kNamesAttrName` gives value `index` under `key`,
/// "arguments" or "results"; empty if the value has no name.
llvm::StringRef getValueName(mlir::FunctionOpInterface func,
                             llvm::StringRef key, unsigned index);

/// Returns how messages call an argument: argument 'x', or argument 0 if it
/// has no name.
std::string describeArgument(mlir::FunctionOpInterface func, unsigned index);

/// Returns where the source has an operation: "file:line:column" of the
/// innermost known position, else the name that the location has, such as that
/// of a node of a graph; empty if there is neither. Without its folder, a file
/// has one name wherever the source lies.
std::string sourcePosition(mlir::Location location, bool hasFolder = true);

/// Returns a word for each argument, for identifiers that derive from it: its
/// name with underscores for what C does not allow, or arg0. No two are equal.
llvm::SmallVector<std::string> argumentWords(mlir::FunctionOpInterface func);

/// `name` with everything that C does not allow in identifiers replaced by
/// underscores, and `f_` in front where a letter must be.
std::string toWord(llvm::StringRef name);

/// toWord, with `f_` in front of what a function must not be called: keywords,
/// `main`, what the C library exports, what C leaves to compilers and linkers,
/// and the prefixes of the runtime, `ftrt_` and `ftuner_` in either case.
std::string toIdentifier(llvm::StringRef name);

/// `base`, or the first of `base`_1, `base`_2, … that is not in `taken`. Adds
/// the answer to `taken`.
std::string uniqueName(llvm::StringRef base, llvm::StringSet<> &taken);

/// All symbols at the top level of `module`.
llvm::StringSet<> collectSymbols(mlir::Operation *module);

/// Types of the arguments of the functions named by the attributes above: an
/// index for every dynamic dimension of tensor arguments, then the scalars.
llvm::SmallVector<mlir::Type> getSizeFunctionInputs(mlir::FunctionType abiType);

} // namespace ftuner

#endif // FTUNER_HOSTABI_HOSTABI_H
