// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=paths=simt,mma,wgmma max-kernels=3" | FileCheck %s
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=paths=simt,mma max-kernels=3" > %t.portable
// RUN: FileCheck %s --check-prefix=WITHOUT --input-file=%t.portable

// A plan with kernels of one architecture alone has another beside it, which the
// same search gives without them.
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=paths=simt,mma,wgmma max-kernels=3" | grep -o 'plan_0_portable <.*>' | sed 's/plan_0_portable //' > %t.beside
// RUN: grep -o 'plan_0 <.*>' %t.portable | sed 's/plan_0 //' | diff - %t.beside

// Where all paths need that architecture, there is none; a remark says so.
// RUN: ftuner-opt %S/../Target/Inputs/images.mlir "--ftuner-front-end=device=h100 paths=wgmma max-kernels=3" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2> %t.remarks | FileCheck %s --check-prefix=ALONE
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// CHECK: ukernel.plan @plan_0 <
// CHECK-SAME: #ukernel.wgmma
// CHECK-SAME: portable(@plan_0_portable)
// CHECK: ukernel.plan @plan_0_portable <
// CHECK-NOT: #ukernel.wgmma
// A product of f32 is none of theirs: all is as if the path were not there.
// CHECK: ukernel.plan @plan_1 <
// CHECK-NOT: portable
// CHECK: ukernel.workload plan(@plan_0)
// CHECK: ukernel.workload plan(@plan_1)

// WITHOUT-NOT: portable
// WITHOUT-NOT: #ukernel.wgmma

// ALONE-NOT: portable
// REMARK: @plan_0: no plan for other architectures: options 'paths' and 'failed-paths' leave no codegen path that runs there

func.func @f(%a: tensor<?x1024xbf16>, %b: tensor<1024x4096xbf16>, %x: tensor<?x64xf32>, %y: tensor<64x32xf32>, %e: tensor<?x4096xf32>, %g: tensor<?x32xf32>) -> (tensor<?x4096xf32>, tensor<?x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x1024xbf16>, tensor<1024x4096xbf16>) outs(%f : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.matmul ins(%x, %y : tensor<?x64xf32>, tensor<64x32xf32>) outs(%h : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %r, %s : tensor<?x4096xf32>, tensor<?x32xf32>
}
