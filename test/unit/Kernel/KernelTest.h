//===- KernelTest.h - Operators and families for tests ----------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_KERNEL_KERNELTEST_H
#define FTUNER_TEST_UNIT_KERNEL_KERNELTEST_H

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/InitAll.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace ftuner {

/// Two operators on buffers, products of rows with 40 x 48 numbers: the second
/// starts from a scalar of the function and adds a vector.
inline const char *const kOperators = R"(
  #lhs = affine_map<(m, n, k) -> (m, k)>
  #rhs = affine_map<(m, n, k) -> (k, n)>
  #bias = affine_map<(m, n, k) -> (n)>
  #out = affine_map<(m, n, k) -> (m, n)>
  ukernel.plan @p <families = [
      #ukernel.family<#ukernel.simt<threads = [4, 8], stages = 2, vector = 4>, axis = 0, tiles = [[12, 32, 8], [16, 32, 8]]>,
      #ukernel.family<#ukernel.simt<threads = [8, 8], stages = 2, vector = 1>, axis = 0, tiles = [[16, 16, 8]]>],
    choices = [], general = 0, unaligned_general = 1>
  func.func @f(%a: memref<?x40xf32>, %b: memref<40x48xf32>, %x: memref<48xf32>, %o: memref<?x48xf32>, %s: f32) {
    %zero = arith.constant 0.0 : f32
    ukernel.workload plan(@p) ins(%a, %b : memref<?x40xf32>, memref<40x48xf32>) init(%zero : f32)
        outs(%o : memref<?x48xf32>) maps = [#lhs, #rhs, #out] contract {
    ^bb0(%p: f32, %q: f32, %c: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %c, %product : f32
      ukernel.yield %sum : f32
    }
    ukernel.workload plan(@p) ins(%a, %b : memref<?x40xf32>, memref<40x48xf32>) init(%s : f32)
        extras(%x : memref<48xf32>) outs(%o : memref<?x48xf32>) maps = [#lhs, #rhs, #bias, #out] contract {
    ^bb0(%p: f32, %q: f32, %c: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %c, %product : f32
      ukernel.yield %sum : f32
    } epilogue {
    ^bb0(%acc: f32, %e: f32):
      %r = arith.addf %acc, %e : f32
      ukernel.yield %r : f32
    }
    return
  })";

class KernelTest : public testing::Test {
protected:
  KernelTest() : device(llvm::cantFail(loadDeviceSpec("h200"))) {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(kOperators, &context);
    (*module)->setAttr(ukernel::UKernelDialect::kDeviceAttrName,
                       toAttribute(&context, device));
    module->walk([&](ukernel::OperatorOpInterface op) { ops.push_back(op); });
    auto plan = *module->getOps<ukernel::PlanOp>().begin();
    for (ukernel::FamilyAttr family : plan.getPlan().getFamilies())
      families.push_back(family);
  }

  mlir::MLIRContext context;
  DeviceSpec device;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::SmallVector<ukernel::OperatorOpInterface> ops;
  llvm::SmallVector<ukernel::FamilyAttr> families;
};

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_KERNEL_KERNELTEST_H
