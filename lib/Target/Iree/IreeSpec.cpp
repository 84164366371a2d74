//===- IreeSpec.cpp - Transform specs for iree-compile --------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Target/Iree.h"
#include "IreeOps.h"
#include "IreePatterns.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ftuner;

/// Prefix of the names of the spec's functions, which makes them unique.
static constexpr llvm::StringLiteral kFunctionPrefix = "ftuner_product_";

/// Prints the pattern that IREE is to find, as the body of a region.
static void printPattern(func::FuncOp function, raw_ostream &os) {
  AsmState state(function, OpPrintingFlags().useLocalScope());
  os << "    ^bb0(";
  llvm::interleaveComma(function.getArguments(), os, [&](BlockArgument arg) {
    arg.printAsOperand(os, state);
    os << ": " << arg.getType();
  });
  os << "):\n";
  for (Operation &op : function.getBody().front().without_terminator()) {
    os << "      ";
    op.print(os, state);
    os << "\n";
  }
}

/// A matcher, and what replaces the root of what it finds by a call.
static void printSequences(func::FuncOp function, raw_ostream &os) {
  StringRef name = function.getSymName();
  os << "  transform.named_sequence @match_" << name
     << "(%root: !transform.any_op {transform.readonly}) -> "
        "(!transform.any_value, !transform.any_value) {\n"
        "    %ins, %outs = "
        "transform.iree.match.cast_compatible_dag_from_root %root {\n";
  printPattern(function, os);
  os << "    } : (!transform.any_op) -> (!transform.any_value, "
        "!transform.any_value)\n"
        "    transform.yield %ins, %outs : !transform.any_value, "
        "!transform.any_value\n"
        "  }\n"
        "  transform.named_sequence @replace_"
     << name
     << "(%ins: !transform.any_value {transform.readonly}, "
        "%out: !transform.any_value {transform.readonly}) {\n"
        "    %root = transform.get_defining_op %out : (!transform.any_value) "
        "-> !transform.any_op\n"
        "    %module = transform.util.get_nearest_symbol_table %root : "
        "(!transform.any_op) -> !transform.any_op\n"
        "    %executable = transform.util.import_symbol @"
     << kIreeExecutableName
     << " into %module if undefined : (!transform.any_op) -> "
        "!transform.any_op\n"
        "    %function = transform.util.import_symbol @"
     << name
     << " into %module if undefined : (!transform.any_op) -> "
        "!transform.any_op\n"
        "    transform.util.cast_and_call %function(%ins) -> %out after %root "
        "{\n"
        "      transform.type_conversion.tensor.cast_shape_dynamic_dims\n"
        "    } : (!transform.any_op, !transform.any_value, "
        "!transform.any_value, !transform.any_op) -> !transform.any_op\n"
        "    transform.yield\n"
        "  }\n";
}

/// Replaces products, larger ones first, and inlines the calls.
static void printMain(ArrayRef<func::FuncOp> functions, raw_ostream &os) {
  os << "  transform.named_sequence @__transform_main(%module: "
        "!transform.any_op) {\n";
  for (auto [number, pattern] : llvm::enumerate(functions)) {
    StringRef name = func::FuncOp(pattern).getSymName();
    // What was replaced must be gone before its parts are looked for.
    os << "    %functions_" << number
       << " = transform.structured.match ops{[\"util.func\"]} in %module : "
          "(!transform.any_op) -> !transform.any_op\n"
          "    transform.foreach %functions_"
       << number
       << " : !transform.any_op {\n"
          "    ^bb0(%function: !transform.any_op):\n"
          "      transform.foreach_match in %function @match_"
       << name << " -> @replace_" << name
       << " : (!transform.any_op) -> !transform.any_op\n"
          "    }\n"
          "    transform.apply_dce to %module : !transform.any_op\n";
  }
  os << "    transform.apply_registered_pass \"inline\" to %module : "
        "(!transform.any_op) -> !transform.any_op\n"
        "    transform.yield\n"
        "  }\n";
}

FailureOr<std::string> ftuner::buildIreeSpec(ModuleOp module,
                                             const FTunerOptions &options,
                                             const IreeOptions &iree,
                                             IreeKernels *kernels) {
  if (failed(expectUnregisteredDialects(module)))
    return failure();
  module.getContext()
      ->loadDialect<func::FuncDialect, ukernel::UKernelDialect>();
  adoptIreeFunctions(module);
  FailureOr<iree::ProductPatterns> patterns =
      iree::findProductPatterns(module, options, kFunctionPrefix);
  if (failed(patterns))
    return failure();

  // The called functions are the compiled functions of the patterns.
  OwningOpRef<ModuleOp> compiled = patterns->module->clone();
  for (auto function : compiled->getOps<func::FuncOp>())
    makePrivateIreeFunction(function);
  PassManager pm(module.getContext());
  FTunerOptions own;
  own.copyOptionValuesFrom(options);
  // Without split-K, the number of the executable's dispatches is the number of
  // products.
  own.set("split-k", false);
  // Weights are arguments of what a spec replaces.
  if (options.settings().packWeights)
    module.emitWarning("a transform spec packs no weights: option "
                       "--pack-weights has no effect");
  own.set("pack-weights", false);
  buildIreePipeline(pm, own, iree, kernels);
  if (failed(pm.run(*compiled)))
    return failure();
  // They hold where linalg's operators do.
  compiled->walk([](cf::AssertOp op) { op.erase(); });

  std::string text;
  llvm::raw_string_ostream os(text);
  os << "module attributes {transform.with_named_sequence} {\n";
  for (Operation &op : *compiled->getBody()) {
    op.print(os, OpPrintingFlags().useLocalScope());
    os << "\n";
  }
  for (func::FuncOp function : patterns->functions)
    printSequences(function, os);
  printMain(patterns->functions, os);
  os << "}\n";
  return text;
}
