// How the path for Hopper's tensor cores copies: groups that do nothing else, and
// tensor maps, which an option keeps from hosts that cannot encode them.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: ftuner-translate %S/wgmma.mlir --ftuner-to-ptx --device=h100 --paths=wgmma --tensor-maps=false | FileCheck %s --check-prefix=OFF
// RUN: not ftuner-translate %S/wgmma.mlir --ftuner-to-ptx --device=h100 --paths=wgmma --tensor-maps=some 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h100 --tensor-maps=false 2>&1 | FileCheck %s --check-prefix=PLANNED
// RUN: %if ptxas %{ %ptxas -arch=sm_90a -v %t.ptx -o %t.cubin > %t.log 2>&1 %}
// RUN: %if ptxas %{ FileCheck %s --check-prefix=PTXAS --input-file=%t.log --implicit-check-not=C75 --implicit-check-not="{{[1-9][0-9]* bytes spill}}" %}

// PTXAS: Used {{[0-9]+}} registers

// Threads of the producers copy, fence and publish.
// CHECK: .entry f_0_k0(
// CHECK-NOT: .align 64 .b8
// CHECK: .maxntid 384
// CHECK-NOT: cp.async.bulk
// CHECK: mbarrier.init.shared
// CHECK: fence.mbarrier_init
// CHECK: fence.proxy.async
// CHECK-DAG: wgmma.mma_async
// CHECK-DAG: mbarrier.try_wait.parity
// CHECK-DAG: cp.async.cg.shared.global
// CHECK-DAG: fence.proxy.async
// CHECK-DAG: bar.sync {{.*}}1, 256;

// One thread has boxes copied; groups hand registers over.
// CHECK: .entry g_0_k0(
// CHECK: .param .align 64 .b8 g_0_k0_param_4[128]
// CHECK: .param .align 64 .b8 g_0_k0_param_5[128]
// CHECK: .maxntid 512
// CHECK: elect.sync
// CHECK: setmaxnreg.inc.sync.aligned.u32 {{.*}}152;
// CHECK: setmaxnreg.dec.sync.aligned.u32 {{.*}}48;
// CHECK: mbarrier.arrive.expect_tx
// CHECK-COUNT-2: cp.async.bulk.tensor.2d.shared::cta.global

// OFF: wgmma.mma_async
// OFF-NOT: cp.async.bulk

// VALUE: error: option --tensor-maps: expected true or false, but got 'some'

// PLANNED: expected a family whose kernel takes no tensor maps, as the option --tensor-maps asks

#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 512>}} {
  ukernel.plan @plan_f <families = [<#ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1>, axis = 0, tiles = [[128, 128, 64]]>, <#ukernel.wgmma<warpgroups = [2, 1], stages = 2, access = 1>, axis = 0, tiles = [[128, 16, 64]]>], choices = [], general = 0, unaligned_general = 1>
  ukernel.plan @plan_g <families = [<#ukernel.wgmma<warpgroups = [3, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true>, axis = 0, tiles = [[192, 192, 64]]>, <#ukernel.wgmma<warpgroups = [2, 1], stages = 2, access = 1>, axis = 0, tiles = [[128, 16, 64]]>], choices = [], general = 0, unaligned_general = 1>
  func.func @f(%a: tensor<?x320xf16> {ukernel.shape = ["T", 320]}, %b: tensor<256x320xf16>) -> tensor<?x256xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x320xf16>
    %e = tensor.empty(%m) : tensor<?x256xf32>
    %p = ukernel.workload plan(@plan_f) ins(%a, %b : tensor<?x320xf16>, tensor<256x320xf16>) init(%zero : f32) outs(%e : tensor<?x256xf32>) maps = [#lhs, #rhs, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<256 to 256>, #ukernel.range<320 to 320>] contract {
    ^bb0(%x: f16, %y: f16, %s: f32):
      %xe = arith.extf %x : f16 to f32
      %ye = arith.extf %y : f16 to f32
      %q = arith.mulf %xe, %ye : f32
      %t = arith.addf %s, %q : f32
      ukernel.yield %t : f32
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x256xf32>
    return %p : tensor<?x256xf32>
  }
  func.func @g(%a: tensor<?x320xf16> {ukernel.shape = ["T", 320]}, %b: tensor<256x320xf16>) -> tensor<?x256xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x320xf16>
    %e = tensor.empty(%m) : tensor<?x256xf32>
    %p = ukernel.workload plan(@plan_g) ins(%a, %b : tensor<?x320xf16>, tensor<256x320xf16>) init(%zero : f32) outs(%e : tensor<?x256xf32>) maps = [#lhs, #rhs, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<256 to 256>, #ukernel.range<320 to 320>] contract {
    ^bb0(%x: f16, %y: f16, %s: f32):
      %xe = arith.extf %x : f16 to f32
      %ye = arith.extf %y : f16 to f32
      %q = arith.mulf %xe, %ye : f32
      %t = arith.addf %s, %q : f32
      ukernel.yield %t : f32
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x256xf32>
    return %p : tensor<?x256xf32>
  }
}
