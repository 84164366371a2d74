//===- EmittedKernel.cpp - Kernels of given uKernels as PTX ---------------===//
#include "EmittedKernel.h"
#include "FTuner/Conversion/Passes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/InitAll.h"
#include "FTuner/PTX/PTX.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ftuner;

Workload EmittedCase::workload() const {
  auto range = [&](int64_t extent) {
    return isDynamic ? SizeRange{1, std::nullopt, 1} : SizeRange::fixed(extent);
  };
  return Workload::matmul({1, std::nullopt, 1}, range(n), range(k),
                          transposeLhs, transposeRhs);
}

std::string EmittedCase::str() const {
  return llvm::formatv("{0} {1}{2} {3} n = {4}, k = {5}{6}", device,
                       transposeLhs ? "T" : "N", transposeRhs ? "T" : "N",
                       family.str(), n, k, isDynamic ? " dynamic" : "");
}

/// The module with the family's kernel and a host function that launches it.
static std::string moduleText(const EmittedCase &emitted) {
  auto memref = [](StringRef rows, StringRef columns) {
    return "memref<" + rows.str() + "x" + columns.str() + "xf32>";
  };
  std::string n = emitted.isDynamic ? "?" : std::to_string(emitted.n);
  std::string k = emitted.isDynamic ? "?" : std::to_string(emitted.k);
  std::string a = emitted.transposeLhs ? memref(k, "?") : memref("?", k);
  std::string b = emitted.transposeRhs ? memref(n, k) : memref(k, n);
  std::string o = memref("?", n);
  std::string tiles, heights;
  for (const BlockTile &tile : emitted.family.tiles) {
    auto pad = [&](unsigned outer, unsigned inner) {
      return llvm::formatv("[{0}, {1}]", tile[outer], tile[inner]).str();
    };
    std::string lhs = emitted.transposeLhs ? pad(2, 0) : pad(0, 2);
    std::string rhs = emitted.transposeRhs ? pad(1, 2) : pad(2, 1);
    heights += (heights.empty() ? "" : ", ") + std::to_string(tile[0]);
    tiles += llvm::formatv(
        R"(
    ukernel.tile [{0:$[, ]}] {{
      %a = ukernel.pad %A to {1} : {4}
      %b = ukernel.pad %B to {2} : {5}
      %o = ukernel.pad %O to {3} : {6}
      ukernel.workload ins(%a, %b : {4}, {5}) outs(%o : {6})
          maps = [affine_map<(m, n, k) -> {7}>, affine_map<(m, n, k) -> {8}>,
                  affine_map<(m, n, k) -> (m, n)>] contract {{
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    })",
        llvm::make_range(tile.begin(), tile.end()), lhs, rhs, pad(0, 1), a, b,
        o, emitted.transposeLhs ? "(k, m)" : "(m, k)",
        emitted.transposeRhs ? "(n, k)" : "(k, n)");
  }
  SimtSchedule schedule = SimtSchedule::of(emitted.family.schedule);
  bool isPair = emitted.family.tiles.size() == 2;
  return llvm::formatv(
      R"(
ukernel.kernel @k(%A: {0}, %B: {1}, %O: {2}, %m: index, %n: index, %k: index,
                  %n1: index)
    attributes {{schedule = #ukernel.simt<threads = [{3}, {4}], stages = {5}, vector = {6}>,
                workload = "w"} {{
  ukernel.combine axis 0 [{7}{8}] {{{9}
  }
}
func.func @host(%A: {0}, %B: {1}, %O: {2}, %m: index, %n: index, %k: index,
                %n1: index) {{
  %blocks = arith.constant 4 : index
  ukernel.launch @k blocks(%blocks) args(%A, %B, %O : {0}, {1}, {2})
    sizes(%m, %n, %k) parts(%n1)
  return
}
)",
      a, b, o, schedule.threadsM, schedule.threadsN, schedule.stages,
      schedule.vectorWidth, isPair ? "%n1 x " : "", heights, tiles);
}

llvm::Expected<EmittedKernel> ftuner::emit(MLIRContext &context,
                                           const EmittedCase &emitted) {
  std::string text = moduleText(emitted), diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  auto failed = [&]() {
    return llvm::createStringError("%s:\n%s%s", emitted.str().c_str(),
                                   diagnostics.c_str(), text.c_str());
  };
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return failed();
  PassManager pm(&context);
  UKernelAttachDevicePassOptions device;
  device.device = emitted.device;
  pm.addPass(createUKernelAttachDevicePass(device));
  pm.addPass(createConvertUKernelToGPUPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  buildKernelLoweringPipeline(pm);
  if (mlir::failed(pm.run(*module)))
    return failed();
  FailureOr<PtxModule> ptx = translateToPtx(*module);
  if (mlir::failed(ptx) || ptx->kernels.size() != 1)
    return failed();
  EmittedKernel kernel;
  kernel.ptx = ptx->kernels.front().text;
  for (auto gpuModule : module->getOps<gpu::GPUModuleOp>()) {
    auto entry = gpuModule->getAttrOfType<ukernel::EntryAttr>(
        ukernel::UKernelDialect::kEntryAttrName);
    kernel.threads = entry.getThreads();
    for (auto parameter : entry.getParameters().getAsRange<DictionaryAttr>())
      kernel.parameters.push_back(parameter.getAs<StringAttr>("name").str());
  }
  return kernel;
}

std::unique_ptr<MLIRContext> ftuner::makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  return context;
}
