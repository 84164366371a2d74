//===- PtxasMeasurer.cpp - Registers and spills by the assembler ----------===//
#include "FTuner/Kernel/Measure/PtxasMeasurer.h"
#include "FTuner/PTX/Ptxas.h"

#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace ftuner;

/// Assembles the kernels of the requests that are new.
void PtxasMeasurer::measureKernels(
    llvm::ArrayRef<MeasurementRequest> requests) {
  auto added = answers.add(requests);
  const std::vector<KernelCompiler::Job> &jobs = added.jobs;
  if (jobs.empty())
    return;
  std::vector<llvm::Expected<CompiledKernel>> kernels = compiler.compile(jobs);
  auto assemble = [&](size_t index) {
    Answer &answer = *added.values[index];
    if (!kernels[index]) {
      answer.failure = llvm::toString(kernels[index].takeError());
      return;
    }
    llvm::Expected<PtxResources> found =
        measureResources(ptxas, kernels[index]->ptx, kernels[index]->target);
    if (!found) {
      answer.failure = llvm::toString(found.takeError());
      return;
    }
    answer.measurement.registersPerThread = found->registersPerThread;
    answer.measurement.spillBytes = found->spillBytes();
  };
  parallelFor(jobs.front().op->getContext(), 0, jobs.size(), assemble);
}

std::vector<llvm::Expected<Measurement>>
PtxasMeasurer::measure(llvm::ArrayRef<MeasurementRequest> requests) {
  measureKernels(requests);
  std::vector<llvm::Expected<Measurement>> result;
  for (const MeasurementRequest &request : requests) {
    auto known = answers.find(request);
    if (!known) {
      result.push_back(known.takeError());
      continue;
    }
    const Answer &answer = *known->second;
    if (answer.failure.empty())
      result.push_back(answer.measurement);
    else
      result.push_back(llvm::createStringError(answer.failure));
  }
  return result;
}
