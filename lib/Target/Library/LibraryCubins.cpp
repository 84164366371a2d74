//===- LibraryCubins.cpp - Kernels of a library, assembled ----------------===//
#include "FTuner/PTX/Ptxas.h"
#include "FTuner/Target/Library.h"

#include "mlir/IR/Threading.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ftuner {

llvm::Expected<std::vector<GpuArchitecture>>
parseArchitectures(ArrayRef<std::string> names) {
  std::vector<GpuArchitecture> architectures;
  for (StringRef name : names) {
    StringRef digits = name.trim();
    GpuArchitecture architecture;
    bool isChip = digits.consume_front("sm_");
    architecture.isExact = digits.consume_back("a");
    if (!isChip || digits.getAsInteger(10, architecture.number) ||
        architecture.number < 10)
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          "expected architectures such as 'sm_90' or 'sm_90a', but got '" +
              name + "'");
    architectures.push_back(architecture);
  }
  llvm::sort(architectures);
  architectures.erase(llvm::unique(architectures), architectures.end());
  return architectures;
}

llvm::Expected<LibraryCubin> assembleOwnCubin(const PtxModule &ptx,
                                              StringRef ptxas) {
  llvm::Expected<std::string> bytes = assembleCubin(ptxas, ptx);
  if (!bytes)
    return bytes.takeError();
  return LibraryCubin{ptx.target.architecture, std::move(*bytes)};
}

FailureOr<std::vector<LibraryCubin>>
assembleCubins(ModuleOp module, const PtxImages &ptx, StringRef ptxas,
               ArrayRef<GpuArchitecture> architectures) {
  // Targets first: a bad one is known at once.
  std::vector<PtxTarget> targets;
  for (const GpuArchitecture &architecture : architectures) {
    FailureOr<PtxTarget> target = getPtxTarget(module, architecture);
    if (failed(target))
      return failure();
    targets.push_back(std::move(*target));
  }
  std::vector<PtxModule> sources;
  for (const PtxTarget &target : targets) {
    auto isFor = [&](const PtxModule &image) {
      return image.target.architecture == target.architecture;
    };
    if (isFor(ptx.own)) {
      sources.push_back(ptx.own);
      continue;
    }
    if (ptx.portable && isFor(*ptx.portable)) {
      sources.push_back(*ptx.portable);
      continue;
    }
    FailureOr<PtxModule> source = translateToPtx(module, target);
    if (failed(source))
      return failure();
    sources.push_back(std::move(*source));
  }
  std::vector<LibraryCubin> cubins(sources.size());
  auto assemble = [&](size_t index) -> LogicalResult {
    llvm::Expected<LibraryCubin> cubin =
        assembleOwnCubin(sources[index], ptxas);
    if (!cubin)
      return emitError(UnknownLoc::get(module.getContext()),
                       llvm::toString(cubin.takeError()));
    cubins[index] = std::move(*cubin);
    return success();
  };
  if (failed(failableParallelForEachN(module.getContext(), 0, sources.size(),
                                      assemble)))
    return failure();
  return cubins;
}

} // namespace ftuner
