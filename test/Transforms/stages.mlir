// A pass that needs an earlier one fails at the first operator that it should
// have taken, and says which pass to run.

// RUN: split-file %s %t

// A product on tensors, of which no workload was formed.
// RUN: not ftuner-opt %t/product.mlir --ukernel-attach-device=device=h200 --ukernel-plan-workloads 2>&1 | FileCheck %s --check-prefix=FORM -DPASS=ukernel-plan-workloads
// RUN: not ftuner-opt %t/product.mlir --ukernel-dispatch-workloads 2>&1 | FileCheck %s --check-prefix=FORM -DPASS=ukernel-dispatch-workloads
// RUN: not ftuner-opt %t/product.mlir --ukernel-lower-fallbacks 2>&1 | FileCheck %s --check-prefix=FORM -DPASS=ukernel-lower-fallbacks
// RUN: not ftuner-opt %t/product.mlir --ukernel-plan-workspace 2>&1 | FileCheck %s --check-prefix=FORM -DPASS=ukernel-plan-workspace
// RUN: not ftuner-opt %t/product.mlir --convert-ukernel-to-gpu 2>&1 | FileCheck %s --check-prefix=FORM -DPASS=convert-ukernel-to-gpu
// RUN: not ftuner-opt %t/product.mlir --convert-ukernel-to-llvm 2>&1 | FileCheck %s --check-prefix=FORM -DPASS=convert-ukernel-to-llvm
// FORM: product.mlir:4:8: error: 'linalg.generic' op expected a ukernel.workload in its place before '[[PASS]]': run 'ukernel-form-workloads' first

// A workload without a plan.
// RUN: ftuner-opt %t/product.mlir --ukernel-attach-device=device=h200 --ukernel-form-workloads=paths=simt,mma -o %t/formed.mlir
// RUN: not ftuner-opt %t/formed.mlir --ukernel-dispatch-workloads 2>&1 | FileCheck %s --check-prefix=PLAN -DPASS=ukernel-dispatch-workloads
// RUN: not ftuner-opt %t/formed.mlir --ukernel-lower-fallbacks 2>&1 | FileCheck %s --check-prefix=PLAN -DPASS=ukernel-lower-fallbacks
// RUN: not ftuner-opt %t/formed.mlir --convert-ukernel-to-gpu 2>&1 | FileCheck %s --check-prefix=PLAN -DPASS=convert-ukernel-to-gpu
// PLAN: formed.mlir:{{.*}}: error: 'ukernel.workload' op expected a plan before '[[PASS]]': run 'ukernel-plan-workloads' first

// A function without the host ABI.
// RUN: ftuner-opt %t/formed.mlir --ukernel-plan-workloads -o %t/planned.mlir
// RUN: not ftuner-opt %t/planned.mlir --ftuner-bufferize 2>&1 | FileCheck %s --check-prefix=HOST -DPASS=ukernel-results-to-arguments
// RUN: not ftuner-opt %t/planned.mlir --ukernel-lower-fallbacks 2>&1 | FileCheck %s --check-prefix=HOST -DPASS=ukernel-lower-fallbacks
// RUN: not ftuner-opt %t/planned.mlir --ukernel-plan-workspace 2>&1 | FileCheck %s --check-prefix=HOST -DPASS=ukernel-plan-workspace
// RUN: not ftuner-opt %t/planned.mlir --convert-ukernel-to-llvm 2>&1 | FileCheck %s --check-prefix=HOST -DPASS=convert-ukernel-to-llvm
// RUN: not ftuner-opt %t/product.mlir --ukernel-results-to-arguments 2>&1 | FileCheck %s --check-prefix=HOST -DPASS=ukernel-results-to-arguments
// HOST: error: 'func.func' op expected a function of the host ABI before '[[PASS]]': run 'ukernel-prepare-host' first

// Tensors, where the others of the back end need buffers.
// RUN: ftuner-opt %t/planned.mlir --ukernel-prepare-host -o %t/prepared.mlir
// RUN: not ftuner-opt %t/prepared.mlir --ukernel-dispatch-workloads 2>&1 | FileCheck %s --check-prefix=TENSOR -DPASS=ukernel-dispatch-workloads
// RUN: not ftuner-opt %t/prepared.mlir --ukernel-lower-fallbacks 2>&1 | FileCheck %s --check-prefix=TENSOR -DPASS=ukernel-lower-fallbacks
// RUN: not ftuner-opt %t/prepared.mlir --ukernel-plan-workspace 2>&1 | FileCheck %s --check-prefix=TENSOR -DPASS=ukernel-plan-workspace
// RUN: not ftuner-opt %t/prepared.mlir --convert-ukernel-to-gpu 2>&1 | FileCheck %s --check-prefix=TENSOR -DPASS=convert-ukernel-to-gpu
// TENSOR: error: '{{.*}}' op expected buffers in place of tensors before '[[PASS]]': run 'ftuner-bufferize' first

// A workload that nothing launches.
// RUN: ftuner-opt %t/prepared.mlir --ftuner-bufferize -o %t/buffers.mlir
// RUN: not ftuner-opt %t/buffers.mlir --ukernel-lower-fallbacks 2>&1 | FileCheck %s --check-prefix=DISPATCH -DPASS=ukernel-lower-fallbacks
// RUN: not ftuner-opt %t/buffers.mlir --ukernel-plan-workspace 2>&1 | FileCheck %s --check-prefix=DISPATCH -DPASS=ukernel-plan-workspace
// RUN: not ftuner-opt %t/buffers.mlir --convert-ukernel-to-gpu 2>&1 | FileCheck %s --check-prefix=DISPATCH -DPASS=convert-ukernel-to-gpu
// DISPATCH: error: 'ukernel.workload' op expected launches in its place before '[[PASS]]': run 'ukernel-dispatch-workloads' first

// An operator beside the workload that nothing launches.
// RUN: ftuner-opt %t/buffers.mlir --ukernel-dispatch-workloads -o %t/dispatched.mlir
// RUN: not ftuner-opt %t/dispatched.mlir --convert-ukernel-to-gpu 2>&1 | FileCheck %s --check-prefix=LEFT -DPASS=convert-ukernel-to-gpu
// LEFT: error: 'linalg.{{.*}}' op expected a launch in its place before '[[PASS]]': run 'ukernel-lower-fallbacks' first

// A kernel that was not emitted.
// RUN: ftuner-opt %t/dispatched.mlir --ukernel-lower-fallbacks -o %t/outlined.mlir
// RUN: not ftuner-opt %t/outlined.mlir --convert-ukernel-to-llvm 2>&1 | FileCheck %s --check-prefix=EMIT
// EMIT: error: 'ukernel.kernel' op expected a gpu.module in its place before 'convert-ukernel-to-llvm': run 'convert-ukernel-to-gpu' first

// A workload on buffers comes too late for a plan.
// RUN: sed 's/ plan(@plan_0)//' %t/buffers.mlir > %t/late.mlir
// RUN: not ftuner-opt %t/late.mlir --ukernel-plan-workloads 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'ukernel.workload' op expected tensors: plan before bufferization

// In order they all run.
// RUN: ftuner-opt %t/outlined.mlir --ukernel-plan-workspace --convert-ukernel-to-gpu -o %t/emitted.mlir
// RUN: FileCheck %s --check-prefix=DONE --input-file=%t/emitted.mlir
// DONE-DAG: gpu.module @f_0_k0
// DONE-DAG: gpu.module @f_fallback_0

// What is done already stays as it is.
// RUN: ftuner-opt %t/planned.mlir --ukernel-plan-workloads | diff - %t/planned.mlir
// RUN: ftuner-opt %t/dispatched.mlir --ukernel-dispatch-workloads | diff - %t/dispatched.mlir
// RUN: ftuner-opt %t/emitted.mlir --ukernel-plan-workloads --ukernel-dispatch-workloads --ukernel-lower-fallbacks --convert-ukernel-to-gpu | diff - %t/emitted.mlir

// Modules that have nothing for a pass are no error: none, and a double precision
// product, which becomes a simple kernel.
// RUN: ftuner-opt %t/nothing.mlir --ukernel-plan-workloads --ukernel-prepare-host --ukernel-results-to-arguments --ukernel-dispatch-workloads --ukernel-lower-fallbacks --ukernel-plan-workspace --convert-ukernel-to-gpu --convert-ukernel-to-llvm
// RUN: ftuner-opt %t/wide.mlir --ukernel-plan-workloads --ukernel-prepare-host -o %t/wide-prepared.mlir
// RUN: not ftuner-opt %t/wide-prepared.mlir --convert-ukernel-to-gpu 2>&1 | FileCheck %s --check-prefix=TENSOR -DPASS=convert-ukernel-to-gpu
// RUN: ftuner-opt %t/wide-prepared.mlir --ftuner-bufferize --ukernel-dispatch-workloads --ukernel-lower-fallbacks --ukernel-plan-workspace --convert-ukernel-to-gpu | FileCheck %s --check-prefix=WIDE
// WIDE: gpu.module @wide_fallback_0

//--- product.mlir
func.func @f(%lhs: tensor<?x32xf32>, %rhs: tensor<48x32xf32>, %init: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %lhs, %c0 : tensor<?x32xf32>
  %p = linalg.generic {
      indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (j, l)>, affine_map<(i, j, l) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%lhs, %rhs : tensor<?x32xf32>, tensor<48x32xf32>) outs(%init : tensor<?x48xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %s = arith.addf %c, %x : f32
    linalg.yield %s : f32
  } -> tensor<?x48xf32>
  %e = tensor.empty(%m) : tensor<?x48xf32>
  %r = linalg.softmax dimension(1) ins(%p : tensor<?x48xf32>) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}

//--- nothing.mlir
func.func @g(%n: index) attributes {llvm.emit_c_interface} {
  return
}

//--- wide.mlir
func.func @wide(%lhs: tensor<?x32xf64>, %rhs: tensor<32x48xf64>, %init: tensor<?x48xf64>) -> tensor<?x48xf64> {
  %p = linalg.matmul ins(%lhs, %rhs : tensor<?x32xf64>, tensor<32x48xf64>) outs(%init : tensor<?x48xf64>) -> tensor<?x48xf64>
  return %p : tensor<?x48xf64>
}
