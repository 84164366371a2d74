// Kernels of a path that needs the device's own architecture (`exact` of test
// programs): whatever is made of them is for sm_90a, which runs nowhere else.

// RUN: ftuner-test-opt %s --ftuner-front-end=device=h200 -o %t.portable.mlir
// RUN: sed 's/#ukernel.scalar/#ukernel.exact/g' %t.portable.mlir > %t.mlir
// RUN: FileCheck %s --check-prefix=PLAN --input-file=%t.mlir
// RUN: ftuner-test-translate %t.mlir --ftuner-to-ptx | FileCheck %s
// RUN: ftuner-test-translate %t.mlir --ftuner-to-manifest | FileCheck %s --check-prefix=MANIFEST
// RUN: ftuner-test-translate %t.mlir --ftuner-to-library --emulator -o %t.so --header=%t.h
// RUN: %python %S/Inputs/images.py %{bin}/../lib/libftrt.so.1 %t.so | FileCheck %s --check-prefix=IMAGES
// RUN: FileCheck %s --check-prefix=HEADER --input-file=%t.h

// They run in the emulator, as those of the same text for any newer device.
// RUN: rm -rf %t.exact %t.any
// RUN: ftuner-test-run %t.mlir --seed=7 --check-bounds --check-races --save-dir=%t.exact --args=4000x2xf32,2x64xf32,64xf32 | FileCheck %s --check-prefix=RUNS
// RUN: ftuner-test-run %t.portable.mlir --seed=7 --save-dir=%t.any --args=4000x2xf32,2x64xf32,64xf32 | FileCheck %s --check-prefix=RUNS
// RUN: diff -r %t.exact %t.any

// Without such kernels nothing changes.
// RUN: ftuner-test-translate %t.portable.mlir --ftuner-to-ptx | FileCheck %s --check-prefix=PORTABLE

// No other device has them.
// RUN: sed 's/compute_capability = "9.0"/compute_capability = "10.0"/' %t.mlir > %t.other.mlir
// RUN: not ftuner-test-translate %t.other.mlir --ftuner-to-ptx 2>&1 | FileCheck %s --check-prefix=OTHER

// PLAN: #ukernel.exact<

// CHECK: .version 8.6
// CHECK-NEXT: .target sm_90a
// CHECK-NOT: .target

// MANIFEST: "compute_capability": "9.0",
// MANIFEST-NEXT: "chip": "sm_90a"

// IMAGES: {{^}}PTX for 90 exactly
// IMAGES-NEXT: host for 0

// HEADER: compiled by FTuner for h200 (sm_90a).

// RUNS: result 0: 4000x64xf32
// RUNS: launches: 1 (f_0_k0: {{1000 x 256|2000 x 128}})

// PORTABLE: .version 8.0
// PORTABLE-NEXT: .target sm_90{{$}}

// OTHER: exact: expected compute capability 9.0, but got 10.0

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 20000>}} {
  func.func @f(%a: tensor<?x2xf32> {ukernel.shape = ["T", 2]}, %b: tensor<2x64xf32>, %c: tensor<64xf32>) -> tensor<?x64xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x2xf32>
    %e = tensor.empty(%m) : tensor<?x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x2xf32>, tensor<2x64xf32>) outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %c : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    } -> tensor<?x64xf32>
    return %r : tensor<?x64xf32>
  }
}
