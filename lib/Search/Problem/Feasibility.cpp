//===- Feasibility.cpp - Kernels that a search may choose -----------------===//
#include "FTuner/Search/Problem/Feasibility.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;
using llvm::Twine;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Error ftuner::checkKernel(const SearchProblem &problem,
                                const KernelFamily &family) {
  const DeviceSpec &device = problem.device;
  if (!family.schedule.isSet())
    return makeError("expected the schedule of a codegen path");
  const CodegenModel &path = family.path();
  if (!llvm::is_contained(problem.paths, &path))
    return makeError("expected a family of the paths " + problem.pathNames() +
                     ", but got " + path.name());
  for (auto [value, field] :
       llvm::zip_equal(family.schedule.fields(), path.scheduleFields()))
    if (value != field.otherwise &&
        llvm::is_contained(problem.options.closedFields, &field))
      return makeError("expected a family without gated fields, but got one "
                       "with " +
                       Gate{&path, &field}.name());
  if (llvm::Error error = path.check(problem.workload, family, device))
    return error;
  if (!problem.options.tensorMaps &&
      !path.tensorMaps(problem.workload, family, /*part=*/0).empty())
    return makeError("expected a family whose kernel takes no tensor maps, as "
                     "the option --tensor-maps asks");
  KernelResources needs = path.resources(problem.workload, family);
  if (needs.threads < 1 || needs.threads > device.maxThreadsPerBlock)
    return makeError("expected 1 to " + Twine(device.maxThreadsPerBlock) +
                     " threads, but got " + Twine(needs.threads));
  if (needs.sharedMemoryBytes > device.sharedMemoryPerBlockBytes)
    return makeError(
        "expected at most " + Twine(device.sharedMemoryPerBlockBytes) +
        " bytes of shared memory, but got " + Twine(needs.sharedMemoryBytes));
  return llvm::Error::success();
}

llvm::Error ftuner::checkSpillFree(const SearchProblem &problem,
                                   const KernelFamily &family) {
  int64_t threads = family.threads();
  int64_t limit = problem.device.registersPerThreadOf(threads);
  int64_t registers =
      family.path().spillFreeRegisters(problem.workload, family);
  if (registers <= limit)
    return llvm::Error::success();
  return makeError("expected at most " + Twine(limit) +
                   " registers per thread in blocks of " + Twine(threads) +
                   " threads, but got an estimate of " + Twine(registers) +
                   " to be free of spills");
}

llvm::Error ftuner::checkFamily(const SearchProblem &problem,
                                const KernelFamily &family) {
  if (llvm::Error error = checkKernel(problem, family))
    return error;
  return checkSpillFree(problem, family);
}

bool ftuner::isFeasible(const SearchProblem &problem,
                        const KernelFamily &family) {
  llvm::Error error = checkFamily(problem, family);
  bool isFeasible = !error;
  llvm::consumeError(std::move(error));
  return isFeasible;
}
