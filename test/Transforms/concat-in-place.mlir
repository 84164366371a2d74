// RUN: ftuner-opt %s --ukernel-prepare-host --ftuner-bufferize | FileCheck %s

// The transposed part of a concatenation is written where it belongs; the other
// part is copied there.
// CHECK-LABEL: func.func @f
// CHECK: %[[ALL:.*]] = memref.alloc
// CHECK: %[[PART:.*]] = memref.subview %[[ALL]]
// CHECK-NOT: memref.alloc
// CHECK: linalg.generic {{.*}} outs(%[[PART]] :
// CHECK: memref.copy %{{.*}}, %{{.*}} : memref<?x2x?x24xf32> to
func.func @f(%p: tensor<?x2x?x24xf32>, %k: tensor<?x?x2x24xf32>) -> tensor<?x2x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x?x2x24xf32>
  %l = tensor.dim %k, %c1 : tensor<?x?x2x24xf32>
  %q = tensor.dim %p, %c2 : tensor<?x2x?x24xf32>
  %n = arith.addi %l, %q : index
  %e = tensor.empty(%b, %l) : tensor<?x2x?x24xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, c, b, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<?x?x2x24xf32>) outs(%e : tensor<?x2x?x24xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<?x2x?x24xf32>
  %y = tensor.concat dim(2) %t, %p : (tensor<?x2x?x24xf32>, tensor<?x2x?x24xf32>) -> tensor<?x2x?x24xf32>
  %s = tensor.empty(%b, %n) : tensor<?x2x?xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%s : tensor<?x2x?xf32>) -> tensor<?x2x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%y : tensor<?x2x?x24xf32>) outs(%f : tensor<?x2x?xf32>) {
  ^bb0(%v: f32, %o: f32):
    %w = arith.addf %v, %o : f32
    linalg.yield %w : f32
  } -> tensor<?x2x?xf32>
  return %r : tensor<?x2x?xf32>
}
