//===- Images.cpp - Images that hold a kernel -----------------------------===//
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace ftuner;

ukernel::ImageSet ukernel::imagesAt(Operation *op) {
  ImageSet images{/*exact=*/true, /*portable=*/true};
  for (Region *region = op->getParentRegion(); region;
       region = region->getParentRegion()) {
    auto branch = dyn_cast<scf::IfOp>(region->getParentOp());
    if (!branch || !branch.getCondition().getDefiningOp<ExactImageOp>())
      continue;
    if (region == &branch.getThenRegion())
      images.portable = false;
    else
      images.exact = false;
  }
  return images;
}

llvm::DenseMap<StringAttr, ukernel::ImageSet>
ukernel::collectLaunchedImages(ModuleOp module) {
  llvm::DenseMap<StringAttr, ImageSet> images;
  // Kernels are large, and launch nothing.
  for (auto function : module.getOps<FunctionOpInterface>())
    function.walk([&](LaunchOp launch) {
      images[launch.getKernel().getRootReference()] |= imagesAt(launch);
    });
  return images;
}
