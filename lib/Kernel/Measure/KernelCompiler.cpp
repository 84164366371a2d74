//===- KernelCompiler.cpp - Kernels of families as PTX --------------------===//
#include "FTuner/Kernel/Measure/KernelCompiler.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Kernel/KernelBuilder.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// Keeps diagnostics to itself: the first error is somebody's answer.
class FirstError {
public:
  explicit FirstError(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (text.empty() &&
              diagnostic.getSeverity() == DiagnosticSeverity::Error)
            text = diagnostic.str();
          return success();
        }) {}

  llvm::Error take() {
    std::string words = std::move(text);
    text.clear();
    return llvm::createStringError(
        words.empty() ? "the kernel cannot be compiled" : words);
  }

private:
  std::string text;
  ScopedDiagnosticHandler handler;
};
} // namespace

llvm::Expected<KernelCompiler> KernelCompiler::create(MLIRContext *context,
                                                      const DeviceSpec &device,
                                                      Lowering lowering) {
  loadKernelDialects(context);
  KernelCompiler compiler(context, device, std::move(lowering));
  FirstError error(context);
  if (failed(getPtxTarget(*compiler.createModule())))
    return error.take();
  return compiler;
}

OwningOpRef<ModuleOp> KernelCompiler::createModule() const {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  (*module)->setAttr(ukernel::UKernelDialect::kDeviceAttrName,
                     toAttribute(context, device));
  return module;
}

/// What `buildBackEndPipeline` does to kernels once they are emitted.
llvm::Expected<PtxModule> KernelCompiler::translate(ModuleOp kernels) const {
  FirstError error(context);
  PassManager pm(context);
  lowering(pm);
  if (failed(pm.run(kernels)))
    return error.take();
  FailureOr<PtxModule> ptx = translateToPtx(kernels);
  if (failed(ptx))
    return error.take();
  return std::move(*ptx);
}

std::vector<llvm::Expected<CompiledKernel>>
KernelCompiler::compile(ArrayRef<Job> jobs) {
  std::vector<llvm::Expected<CompiledKernel>> answers;
  // Kernels are apart from each other, so that one that fails is alone in it.
  SmallVector<OwningOpRef<ModuleOp>> modules;
  SmallVector<size_t> emittedJobs;
  for (const Job &job : jobs) {
    llvm::Expected<ukernel::FamilyAttr> family =
        toAttribute(context, job.family);
    if (!family) {
      answers.push_back(family.takeError());
      continue;
    }
    FirstError error(context);
    OwningOpRef<ModuleOp> module = createModule();
    auto b = OpBuilder::atBlockEnd(module->getBody());
    FailureOr<EmittedKernel> emitted =
        buildGpuModule(b, job.op, *family, job.name, device);
    if (failed(emitted)) {
      answers.push_back(error.take());
      continue;
    }
    auto later = buildLaterGpuModules(b, job.op, *family, job.name, device);
    if (failed(later)) {
      answers.push_back(error.take());
      continue;
    }
    CompiledKernel kernel;
    kernel.later.resize(later->size());
    kernel.entry = emitted->module->getAttrOfType<ukernel::EntryAttr>(
        ukernel::UKernelDialect::kEntryAttrName);
    kernel.signature = std::move(emitted->signature);
    emittedJobs.push_back(answers.size());
    answers.push_back(std::move(kernel));
    modules.push_back(std::move(module));
  }
  if (modules.empty())
    return answers;

  // All in one module keeps every core busy.
  OwningOpRef<ModuleOp> all = createModule();
  for (OwningOpRef<ModuleOp> &module : modules)
    for (auto kernel : module->getOps<gpu::GPUModuleOp>())
      all->push_back(kernel->clone());
  llvm::Expected<PtxModule> ptx = translate(*all);
  if (ptx) {
    auto next = ptx->kernels.begin();
    for (size_t number : emittedJobs)
      next = answers[number]->take(next, ptx->target);
    return answers;
  }
  llvm::consumeError(ptx.takeError());
  // Something failed: find out what.
  for (auto [number, module] : llvm::zip_equal(emittedJobs, modules)) {
    llvm::Expected<PtxModule> alone = translate(*module);
    if (!alone) {
      answers[number] = alone.takeError();
      continue;
    }
    answers[number]->take(alone->kernels.begin(), alone->target);
  }
  return answers;
}
