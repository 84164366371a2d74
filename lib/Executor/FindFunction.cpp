//===- FindFunction.cpp - The function of a run ---------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Executor/Executor.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace ftuner {

bool isCompiled(ModuleOp module) {
  return module->hasAttr(ukernel::UKernelDialect::kDeviceAttrName) &&
         !module.getOps<gpu::GPUModuleOp>().empty();
}

llvm::StringRef getSourceName(FunctionOpInterface function) {
  auto source = function->getAttrOfType<StringAttr>(kSourceNameAttrName);
  return source ? source.getValue() : function.getName();
}

llvm::Expected<FunctionOpInterface> findFunction(ModuleOp module,
                                                 llvm::StringRef name) {
  std::vector<FunctionOpInterface> functions;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    if (getSourceName(function) == name)
      return function;
    functions.push_back(function);
  }
  if (name.empty() && functions.size() == 1)
    return functions.front();
  std::string known;
  for (FunctionOpInterface function : functions)
    known += (known.empty() ? "" : ", ") + getSourceName(function).str();
  if (known.empty())
    known = "none";
  std::string expected =
      name.empty() ? "expected the name of a function"
                   : "no public function '" + name.str() + "' in the module";
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 expected + "; public functions: " + known);
}

} // namespace ftuner
