// Passes take another operator as they take ukernel.workload.

// RUN: split-file %s %t

// No path computes a convolution in f64, though it sums up products: planning
// says so, and why (row-sums-run.mlir and conv-run.mlir have operators that one
// does compute).
// RUN: not ftuner-test-opt %t/conv.mlir --ukernel-attach-device=device=h200 --ukernel-plan-workloads 2>&1 | FileCheck %s --check-prefix=CONV
// CONV: error: 'test.conv' op expected an operator that a codegen path computes: scalar: expected elements of up to 32 bits, but got f64; exact: {{.*}}; simt:

// It is not forgotten either.
// RUN: not ftuner-test-opt %t/sum.mlir --test-form-row-sums --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: error: 'test.row_sum' op expected a plan before '{{.*}}': run 'ukernel-plan-workloads' first

// Bufferized, it reads its output only where it has no init.
// RUN: ftuner-test-opt %t/buffers.mlir --one-shot-bufferize=bufferize-function-boundaries | FileCheck %s --check-prefix=BUFFER
// BUFFER-LABEL: func.func @init
// BUFFER-NOT: memref.copy
// BUFFER: test.row_sum ins(%{{.*}} : memref<{{.*}}>) init(%{{.*}} : f32) outs(%[[O:.*]] : memref<{{.*}}>) {
// BUFFER-LABEL: func.func @accumulate
// BUFFER: memref.copy
// BUFFER: test.row_sum ins(%{{.*}} : memref<{{.*}}>) outs(%{{.*}} : memref<{{.*}}>) {

// In a kernel: its own arguments, its input behind a pad.
// RUN: ftuner-test-opt %t/kernel.mlir | ftuner-test-opt | FileCheck %s --check-prefix=KERNEL
// KERNEL: ukernel.tile
// KERNEL: test.row_sum

//--- sum.mlir
func.func @sum(%x: tensor<?x64xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x64xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}

//--- conv.mlir
func.func @conv(%x: tensor<?xf64>, %w: tensor<3xf64>, %o: tensor<?xf64>) -> tensor<?xf64> {
  %r = test.conv ins(%x, %w : tensor<?xf64>, tensor<3xf64>) outs(%o : tensor<?xf64>)
    maps = [affine_map<(m, k) -> (2 * m + k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    ukernel.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

//--- buffers.mlir
func.func @init(%x: tensor<8x16xf32>, %zero: f32, %o: tensor<8xf32> {bufferization.writable = false}) -> tensor<8xf32> {
  %r = test.row_sum ins(%x : tensor<8x16xf32>) init(%zero : f32) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    ukernel.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @accumulate(%x: tensor<8x16xf32>, %o: tensor<8xf32> {bufferization.writable = false}) -> tensor<8xf32> {
  %r = test.row_sum ins(%x : tensor<8x16xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    ukernel.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

//--- kernel.mlir
ukernel.kernel @k(%x: memref<?x64xf32>, %o: memref<?xf32>, %m: index, %k: index, %n1: index) attributes {schedule = #ukernel.scalar<threads = [32, 1]>} {
  ukernel.combine axis 0 [32] {
    ukernel.tile [32, 8] {
      %p = ukernel.pad %x to [32, 1] : memref<?x64xf32>
      test.row_sum ins(%p : memref<?x64xf32>) outs(%o : memref<?xf32>) {
      ^bb0(%a: f32, %c: f32):
        %s = arith.addf %c, %a : f32
        ukernel.yield %s : f32
      }
    }
  }
}
