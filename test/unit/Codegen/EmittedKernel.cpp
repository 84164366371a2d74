//===- EmittedKernel.cpp - Kernels of given families as PTX ---------------===//
#include "EmittedKernel.h"
#include "FTuner/InitAll.h"
#include "FTuner/Kernel/Measure/KernelCompiler.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "Products.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ftuner;

static ElementType sumType(ElementType multiplied) {
  return multiplied == ElementType::I8 ? ElementType::I32 : ElementType::F32;
}

Workload EmittedCase::workload() const {
  auto range = [&](int64_t extent) {
    return isDynamic ? SizeRange{1, std::nullopt, 1} : SizeRange::fixed(extent);
  };
  Workload workload = Workload::matmul({1, std::nullopt, 1}, range(n), range(k),
                                       transposeLhs, transposeRhs);
  setTypes(workload, multiplied, sumType(multiplied));
  workload.truncatesFactors = isTruncated;
  return workload;
}

std::string EmittedCase::str() const {
  std::string type;
  if (multiplied != ElementType::F32)
    type = nameOf(multiplied).str() + (isTruncated ? " truncated " : " ");
  return llvm::formatv("{0} {1}{2}{3} {4} n = {5}, k = {6}{7}", device, type,
                       transposeLhs ? "T" : "N", transposeRhs ? "T" : "N",
                       family.str(), n, k, isDynamic ? " dynamic" : "");
}

/// The product on buffers, in a function.
static std::string operatorText(const EmittedCase &emitted) {
  bool isInteger = emitted.multiplied == ElementType::I8,
       isTf32 = emitted.multiplied == ElementType::TF32;
  llvm::StringRef factor =
      nameOf(isTf32 ? ElementType::F32 : emitted.multiplied);
  llvm::StringRef sum = nameOf(sumType(emitted.multiplied));
  auto memref = [](llvm::StringRef rows, llvm::StringRef columns,
                   llvm::StringRef type) {
    return llvm::formatv("memref<{0}x{1}x{2}>", rows, columns, type).str();
  };
  std::string n = emitted.isDynamic ? "?" : std::to_string(emitted.n);
  std::string k = emitted.isDynamic ? "?" : std::to_string(emitted.k);
  std::string a =
      emitted.transposeLhs ? memref(k, "?", factor) : memref("?", k, factor);
  std::string b =
      emitted.transposeRhs ? memref(n, k, factor) : memref(k, n, factor);
  std::string casts;
  llvm::StringRef x = "x", y = "y";
  if (factor != sum) {
    casts = llvm::formatv(R"(
      %u = arith.{0} %x : {1} to {2}
      %v = arith.{0} %y : {1} to {2})",
                          isInteger ? "extsi" : "extf", factor, sum);
    x = "u", y = "v";
  }
  return llvm::formatv(
      R"(
func.func @f(%A: {0}, %B: {1}, %O: {2}) {{
  ukernel.workload ins(%A, %B : {0}, {1}) outs(%O : {2})
      maps = [affine_map<(m, n, k) -> {3}>, affine_map<(m, n, k) -> {4}>,
              affine_map<(m, n, k) -> (m, n)>]{5} contract {{
    ^bb0(%x: {6}, %y: {6}, %c: {7}):{8}
      %product = arith.mul{9} %{10}, %{11} : {7}
      %sum = arith.add{9} %c, %product : {7}
      ukernel.yield %sum : {7}
    }
  return
}
)",
      a, b, memref("?", n, sum), emitted.transposeLhs ? "(k, m)" : "(m, k)",
      emitted.transposeRhs ? "(n, k)" : "(k, n)",
      !isTf32               ? ""
      : emitted.isTruncated ? " precision = tf32 truncated"
                            : " precision = tf32",
      factor, sum, casts, isInteger ? "i" : "f", x, y);
}

llvm::Expected<EmittedPtx> ftuner::emit(MLIRContext &context,
                                        const EmittedCase &emitted) {
  auto failed = [&](llvm::Error error) {
    return llvm::createStringError(emitted.str() + ": " +
                                   llvm::toString(std::move(error)));
  };
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(emitted.device);
  if (!device)
    return failed(device.takeError());
  llvm::Expected<KernelCompiler> compiler =
      KernelCompiler::create(&context, *device, buildKernelLoweringPipeline);
  if (!compiler)
    return failed(compiler.takeError());
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(operatorText(emitted), &context);
  ukernel::OperatorOpInterface op;
  if (module)
    module->walk([&](ukernel::OperatorOpInterface found) { op = found; });
  if (!op)
    return failed(llvm::createStringError(operatorText(emitted)));
  auto kernels = compiler->compile({{op, emitted.family, "k"}});
  if (!kernels.front())
    return failed(kernels.front().takeError());
  EmittedPtx kernel;
  kernel.ptx = kernels.front()->ptx.text;
  kernel.threads = kernels.front()->entry.getThreads();
  for (const KernelParameter &parameter :
       kernels.front()->signature.getParameters())
    kernel.parameters.push_back(parameter.name);
  return kernel;
}

std::unique_ptr<MLIRContext> ftuner::makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  return context;
}
