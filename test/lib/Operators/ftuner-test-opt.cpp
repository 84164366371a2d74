//===- ftuner-test-opt.cpp - ftuner-opt with operators for tests ----------===//
#include "FTuner/InitAll.h"
#include "TestOps.h"

#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  ftuner::registerAllPasses();
  ftuner::test::registerTestPasses();
  mlir::registerAllPasses();
  mlir::DialectRegistry registry;
  ftuner::registerAllDialects(registry);
  ftuner::test::registerTestDialect(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "FTuner's test driver\n", registry));
}
