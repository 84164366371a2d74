// Row sums through the operator interface: formed, planned for a path that
// computes any operator, dispatched and run. The reference is upstream's own
// lowering of the linalg operator.

// RUN: rm -rf %t && mkdir %t
// RUN: ftuner-test-opt %s --ukernel-attach-device=device=h200 --test-form-row-sums -o %t/formed.mlir
// RUN: FileCheck %s --check-prefix=FORM --input-file=%t/formed.mlir
// RUN: ftuner-test-opt %t/formed.mlir --ftuner-compile="device=h200" | FileCheck %s --check-prefix=PLAN

// RUN: ftuner-test-run %t/formed.mlir --device=h200 --args=53x65xf32 --seed=7 --check-bounds --check-races --save-dir=%t/one | FileCheck %s --check-prefix=SUM
// RUN: ftuner-run %s --device=h200 --args=53x65xf32 --seed=7 --executor=reference --save-dir=%t/expected > /dev/null
// RUN: %python %S/compare_npy.py %t/one/result0.npy %t/expected/result0.npy 1e-5
// RUN: ftuner-test-run %t/formed.mlir --device=v100 --args=1x65xf32 --seed=8 --check-bounds --save-dir=%t/two > /dev/null
// RUN: ftuner-run %s --device=v100 --args=1x65xf32 --seed=8 --executor=reference --save-dir=%t/expected2 > /dev/null
// RUN: %python %S/compare_npy.py %t/two/result0.npy %t/expected2/result0.npy 1e-5
// RUN: ftuner-test-run %t/formed.mlir --device=h200 --args=0x65xf32 | FileCheck %s --check-prefix=NONE

// Roller constructs tiles of contractions alone.
// RUN: ftuner-test-opt %t/formed.mlir --ftuner-compile="device=h200 strategy=roller" | FileCheck %s --check-prefix=ROLLER

// FORM: test.row_sum ins(%{{.*}} : tensor<?x65xf32>) init(
// PLAN: ukernel.plan @plan_0 <families = [<#ukernel.scalar<threads = {{\[}}{{[0-9]+}}, 1]>, axis = 0, tiles = {{\[\[}}{{[0-9]+}}, 1]], reduce = [1]>
// ROLLER: ukernel.plan @plan_0 <families = [<#ukernel.scalar<
// SUM: launches: 1 (sum_0_k{{[0-9]+}}: {{[0-9]+}} x {{[0-9]+}})
// NONE: launches: 0

module attributes {ukernel.symbols = {R = #ukernel.range<1 to 300>}} {
  func.func @sum(%x: tensor<?x65xf32> {ukernel.shape = ["R", 65]}) -> tensor<?xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %x, %c0 : tensor<?x65xf32>
    %o = tensor.empty(%m) : tensor<?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?xf32>) -> tensor<?xf32>
    %r = linalg.reduce { arith.addf } ins(%x : tensor<?x65xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
    return %r : tensor<?xf32>
  }
}
