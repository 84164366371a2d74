// Kernels that take tensor maps (`mapped` of test programs, which reads its inputs
// through the maps that the emulator encodes): from the plan to the launch.

// RUN: ftuner-test-opt %s --ftuner-compile="device=h200 paths=mapped max-kernels=2" -o %t.mlir
// RUN: FileCheck %s --check-prefix=ENTRY --input-file=%t.mlir
// RUN: ftuner-test-translate %s --device=h200 --paths=mapped --max-kernels=2 --ftuner-to-ptx | FileCheck %s --check-prefix=PTX
// RUN: ftuner-test-translate %s --device=h200 --paths=mapped --max-kernels=2 --ftuner-to-manifest > %t.json
// RUN: FileCheck %s --check-prefix=MANIFEST --input-file=%t.json

// Maps follow sizes and strides, static or not; kernels without take what is not
// aligned: addresses, or rows.
// RUN: ftuner-test-run %s --device=h200 --paths=mapped --max-kernels=2 --function=batch --check --args=2x37x24xf16,2x24x40xf16 --args=1x5x8xf16,1x8x8xf16 --args=3x64x0xf16,3x0x8xf16 --args=0x3x8xf16,0x8x8xf16 | FileCheck %s --check-prefix=MAPS
// RUN: ftuner-test-run %s --device=h200 --paths=mapped --max-kernels=2 --function=batch --check --misalign=2 --args=2x37x24xf16,2x24x40xf16 | FileCheck %s --check-prefix=DIRECT
// RUN: ftuner-test-run %s --device=h200 --paths=mapped --max-kernels=2 --function=batch --check --args=2x37x22xf16,2x22x40xf16 --args=2x37x24xf16,2x24x41xf16 | FileCheck %s --check-prefix=DIRECT
// RUN: ftuner-test-run %s --device=h200 --paths=mapped --max-kernels=2 --function=transposed --check --args=37x72xbf16,48x72xbf16 | FileCheck %s --check-prefix=TRANSPOSED

// A library does the same, from C; so does a host that launches its kernels by the
// manifest. And with kernels that copy boxes.
// RUN: ftuner-test-translate %s --device=h200 --paths=mapped --max-kernels=2 --ftuner-to-library --emulator -o %t.so --header=%t.h
// RUN: %python %S/Inputs/tensor_maps.py %{bin}/../lib/libftrt.so.1 %t.so | FileCheck %s --check-prefix=ERROR
// RUN: ftuner-translate %s --device=h200 --paths=wgmma --max-kernels=2 --ftuner-to-library --emulator -o %t.boxes.so --header=%t.h
// RUN: %python %S/Inputs/tensor_maps.py %{bin}/../lib/libftrt.so.1 %t.boxes.so | FileCheck %s --check-prefix=ERROR

// IREE passes no maps: no search offers them, and plans with them are refused.
// RUN: ftuner-test-translate %s --device=h200 --paths=mapped --max-kernels=2 --ftuner-to-iree | FileCheck %s --check-prefix=IREE --implicit-check-not=tensor_map
// RUN: ftuner-test-opt %s --ftuner-front-end="device=h200 paths=mapped max-kernels=2" -o %t.planned.mlir
// RUN: not ftuner-test-translate %t.planned.mlir --ftuner-to-iree 2>&1 | FileCheck %s --check-prefix=REFUSED

// The host alone knows what is dynamic.
// ENTRY-LABEL: gpu.module @batch_0_k0
// ENTRY-SAME:  alignment = 16, parameters = [{access = "read", kind = "pointer", name = "lhs", type = f16}
// ENTRY-SAME:  {kind = "tensor_map", map = #ukernel.tensor_map<pointer = "lhs", sizes = ["k", "m", "b0"], strides = ["lhs_stride1", "lhs_stride0"], box = [32, 2, 2], swizzle_bytes = 64, l2_promotion_bytes = 0>, name = "lhs_map", type = f16},
// ENTRY-SAME:  {kind = "tensor_map", map = #ukernel.tensor_map<pointer = "rhs", sizes = ["n", "k", "b0"], strides = ["rhs_stride1", "rhs_stride0"], box = [32, 2, 2], swizzle_bytes = 128, l2_promotion_bytes = 256>, name = "rhs_map", type = f16}]
// ENTRY-LABEL: gpu.module @batch_0_k1
// ENTRY-SAME:  alignment = 4, parameters = [{access = "read", kind = "pointer", name = "lhs", type = f16}
// ENTRY-NOT:   tensor_map
// ENTRY-LABEL: gpu.module @transposed_0_k
// ENTRY-SAME:  sizes = [72, "m"], strides = [72], box = [32, 2], swizzle_bytes = 64, l2_promotion_bytes = 0>, name = "lhs_map", type = bf16},
// ENTRY-SAME:  sizes = [72, 48], strides = [72], box = [32, 2]

// 128 bytes by value, which the kernel does not copy.
// PTX: .entry batch_0_k{{[0-9]+}}(
// PTX: .param .align 64 .b8 [[MAP:batch_0_k[0-9]+_param_[0-9]+]][128],
// PTX-NOT: .local
// PTX: mov.b64 [[AT:%rd[0-9]+]], [[MAP]];
// PTX: ld.param.b32 %{{.*}}, {{\[}}[[AT]]+8];
// PTX-NOT: .local

// MANIFEST:      "name": "rhs_map",
// MANIFEST-NEXT: "kind": "tensor_map",
// MANIFEST-NEXT: "type": "f16",
// MANIFEST-NEXT: "pointer": "rhs",
// MANIFEST-NEXT: "sizes": [
// MANIFEST-NEXT:   "n",
// MANIFEST-NEXT:   "k",
// MANIFEST-NEXT:   "b0"
// MANIFEST-NEXT: ],
// MANIFEST-NEXT: "strides": [
// MANIFEST-NEXT:   "rhs_stride1",
// MANIFEST-NEXT:   "rhs_stride0"
// MANIFEST-NEXT: ],
// MANIFEST-NEXT: "box": [
// MANIFEST-NEXT:   32,
// MANIFEST-NEXT:   2,
// MANIFEST-NEXT:   2
// MANIFEST-NEXT: ],
// MANIFEST-NEXT: "swizzle_bytes": 128,
// MANIFEST-NEXT: "l2_promotion_bytes": 256

// MAPS: result 0: 2x37x40xf32, relative error {{[1-9].*}} (tolerance
// MAPS: launches: 1 (batch_0_k0:
// MAPS: result 0: 1x5x8xf32
// MAPS: launches: 1 (batch_0_k0:
// MAPS: result 0: 3x64x8xf32
// MAPS: result 0: 0x3x8xf32
// DIRECT: result 0: 2x37x4{{[01]}}xf32, relative error {{[1-9].*}} (tolerance
// DIRECT: launches: 1 (batch_0_k1:
// TRANSPOSED: result 0: 37x48xf32, relative error {{[1-9].*}} (tolerance
// TRANSPOSED: launches: 1 (transposed_0_k0:

// ERROR: ftrt_tensor_map_encode failed with code 1: kernel 'batch_0_k{{[0-9]+}}': tensor map 'lhs_map' of 8 x 3 x 2 elements at 0x{{[0-9a-f]+8}}, strides of 16, 48 bytes in the emulator: expected a tensor of a tensor map at a multiple of 16 bytes, but got

// IREE: "hal.executable.export"{{.*}}sym_name = "batch_0_{{[0-9a-f]+}}_k
// REFUSED: error: 'ukernel.workload' op expected a legal plan: family 0 (mapped {{.*}} maps): expected a family whose kernel takes no tensor maps, as the option --tensor-maps asks

module attributes {ukernel.symbols = {B = #ukernel.range<1 to 8>, M = #ukernel.range<1 to 64>, N = #ukernel.range<8 to 200 step 8>, K = #ukernel.range<8 to 200 step 8>}} {
  func.func @batch(%a: tensor<?x?x?xf16> {ukernel.shape = ["B", "M", "K"]}, %b: tensor<?x?x?xf16> {ukernel.shape = ["B", "K", "N"]}) -> tensor<?x?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %batches = tensor.dim %a, %c0 : tensor<?x?x?xf16>
    %m = tensor.dim %a, %c1 : tensor<?x?x?xf16>
    %n = tensor.dim %b, %c2 : tensor<?x?x?xf16>
    %e = tensor.empty(%batches, %m, %n) : tensor<?x?x?xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %r = linalg.batch_matmul ins(%a, %b : tensor<?x?x?xf16>, tensor<?x?x?xf16>) outs(%i : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    return %r : tensor<?x?x?xf32>
  }

  func.func @transposed(%a: tensor<?x72xbf16> {ukernel.shape = ["M", 72]}, %b: tensor<48x72xbf16>) -> tensor<?x48xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x72xbf16>
    %e = tensor.empty(%m) : tensor<?x48xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
    %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<?x72xbf16>, tensor<48x72xbf16>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %r : tensor<?x48xf32>
  }
}
