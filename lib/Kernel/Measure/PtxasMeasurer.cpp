//===- PtxasMeasurer.cpp - Registers and spills by the assembler ----------===//
#include "FTuner/Kernel/Measure/PtxasMeasurer.h"
#include "FTuner/PTX/Ptxas.h"

#include "mlir/IR/Threading.h"
#include <algorithm>

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
    int64_t registers = 0, spillBytes = 0;
    std::vector<const PtxKernel *> launches = {&kernels[index]->ptx};
    for (const PtxKernel &later : kernels[index]->later)
      launches.push_back(&later);
    for (const PtxKernel *kernel : launches) {
      llvm::Expected<PtxResources> found =
          measureResources(ptxas, *kernel, kernels[index]->target);
      if (!found) {
        answer.failure = llvm::toString(found.takeError());
        return;
      }
      registers = std::max(registers, found->registersPerThread);
      spillBytes += found->spillBytes();
    }
    answer.measurement.registersPerThread = registers;
    answer.measurement.spillBytes = spillBytes;
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
