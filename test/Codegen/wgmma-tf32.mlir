// Products of f32 in tf32 by Hopper's instructions, which ignore the low bits of
// what they read: factors are rounded on the way to shared memory, by threads or
// by tensor maps, or, where that is allowed, cut off by the instructions. Those of
// single warps are given registers, which are rounded there.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=wgmma --precision=tf32 --tensor-maps=false -o %t.rounded.ptx
// RUN: FileCheck %s --check-prefix=ROUNDED --input-file=%t.rounded.ptx
// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=wgmma --precision=tf32 | FileCheck %s --check-prefix=MAPS
// RUN: ftuner-opt %s --ftuner-compile="device=h100 paths=wgmma precision=tf32" | FileCheck %s --check-prefix=ENTRY --implicit-check-not="_map\", type = f32"
// RUN: ftuner-opt %s --ftuner-compile="device=h100 paths=wgmma precision=tf32-truncate" | FileCheck %s --check-prefix=ENTRY-TRUNCATED --implicit-check-not="type = tf32"
// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=wgmma --precision=tf32-truncate -o %t.maps.ptx
// RUN: FileCheck %s --check-prefix=MAPS --input-file=%t.maps.ptx
// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=wgmma --precision=tf32-truncate --tensor-maps=false -o %t.copies.ptx
// RUN: FileCheck %s --check-prefix=COPIES --input-file=%t.copies.ptx
// RUN: ftuner-translate %s --ftuner-to-ptx --device=a100 --paths=mma --precision=tf32 | FileCheck %s --check-prefix=WARP
// RUN: ftuner-translate %s --ftuner-to-ptx --device=a100 --paths=mma --precision=tf32-truncate | FileCheck %s --check-prefix=WARP-TRUNCATED
// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=wgmma 2>&1 | FileCheck %s --check-prefix=EXACT
// RUN: ftuner-run %s --function=f --device=h100 --paths=wgmma --precision=tf32 --args=70x128xf32,192x128xf32 --check --check-bounds
// RUN: ftuner-run %s --function=f --device=h100 --paths=wgmma --precision=tf32-truncate --args=70x128xf32,192x128xf32 --check --check-bounds
// RUN: %if ptxas %{ %ptxas -arch=sm_90a -v %t.rounded.ptx -o %t.cubin > %t.log 2>&1 %}
// RUN: %if ptxas %{ FileCheck %s --check-prefix=PTXAS --input-file=%t.log --implicit-check-not=C75 --implicit-check-not="{{[1-9][0-9]* bytes spill}}" %}

// PTXAS: Used {{[0-9]+}} registers

// ROUNDED-NOT: cp.async
// ROUNDED: cvt.rn.tf32.f32
// ROUNDED: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k8.f32.tf32.tf32

// MAPS: cp.async.bulk.tensor.2d
// MAPS: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k8.f32.tf32.tf32

// ENTRY: name = "lhs_map", type = tf32}
// ENTRY: name = "rhs_map", type = tf32}

// ENTRY-TRUNCATED: name = "lhs_map", type = f32}
// ENTRY-TRUNCATED: name = "rhs_map", type = f32}

// COPIES-NOT: .tf32.f32
// COPIES: cp.async.cg.shared.global
// COPIES: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k8.f32.tf32.tf32
// COPIES-NOT: .tf32.f32

// WARP: cvt.rna.tf32.f32
// WARP: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32

// WARP-TRUNCATED-NOT: cvt.rna
// WARP-TRUNCATED: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// WARP-TRUNCATED-NOT: cvt.rna

// EXACT: wgmma: expected a product of f16, bf16, tf32 or i8 on a device of compute capability 9.0, but got one of f32 on h100

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 2048>}} {
  func.func @f(%a: tensor<?x128xf32> {ukernel.shape = ["T", 128]}, %b: tensor<192x128xf32>) -> tensor<?x192xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x128xf32>
    %e = tensor.empty(%m) : tensor<?x192xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x192xf32>) -> tensor<?x192xf32>
    %p = linalg.matmul
        indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%a, %b : tensor<?x128xf32>, tensor<192x128xf32>) outs(%f : tensor<?x192xf32>) -> tensor<?x192xf32>
    return %p : tensor<?x192xf32>
  }
}
