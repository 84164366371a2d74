// A second codegen path (test/lib/Codegen/Scalar, linked into test programs alone)
// competes with the others in one plan, serves some sizes, and runs.

// RUN: ftuner-test-opt %s --ftuner-compile="device=h200" -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: ftuner-test-opt %t.mlir | FileCheck %s
// RUN: ftuner-test-opt %s --ftuner-compile="device=v100 strategy=roller cost-model=sia-program" | FileCheck %s --check-prefix=ROLLER
// RUN: ftuner-test-opt %s --ftuner-compile="device=v100 cost-model=sia pool=exact" | FileCheck %s --check-prefix=ROLLER
// RUN: ftuner-test-run %s --device=h200 --check --check-bounds --check-races --args=4000x3xf32,3x64xf32,64xf32 --args=0x3xf32,3x64xf32,64xf32 | FileCheck %s --check-prefix=SCALAR
// RUN: ftuner-test-run %s --device=h200 --check --check-bounds --check-races --args=15007x3xf32,3x64xf32,64xf32 | FileCheck %s --check-prefix=OTHER

// Shipped programs know nothing of it.
// RUN: not ftuner-opt %t.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Both are among the plan's families, and the scalar one is that of a range.
// CHECK: ukernel.plan @plan_0 <families = [
// CHECK-SAME: <#ukernel.scalar<threads = [[[ROWS:[48]]], 32]>, axis = 0, tiles = {{\[\[}}[[ROWS]], 32, 1]]>, <#ukernel.
// CHECK-SAME: choices = [{{.*}}<[<{{[0-9]+}} to {{[0-9]+}}>, <64 to 64>, <3 to 3>] to 0>

// ROLLER: ukernel.plan @plan_0

// SCALAR: result 0: 4000x64xf32, relative error {{[1-9].*}} (tolerance
// SCALAR: launches: 1 (f_0_k0: {{1000 x 256|2000 x 128}})
// SCALAR: result 0: 0x64xf32
// OTHER: result 0: 15007x64xf32, relative error {{[1-9].*}} (tolerance
// OTHER: launches: 1 (f_0_k{{[1-9]}}: {{132|264}} x {{128|256}})

// UNKNOWN: error: unknown attribute `scalar` in dialect `ukernel`

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 20000>}} {
  func.func @f(%a: tensor<?x3xf32> {ukernel.shape = ["T", 3]}, %b: tensor<3x64xf32>, %c: tensor<64xf32>) -> tensor<?x64xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x3xf32>
    %e = tensor.empty(%m) : tensor<?x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x3xf32>, tensor<3x64xf32>) outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %c : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    } -> tensor<?x64xf32>
    return %r : tensor<?x64xf32>
  }
}
