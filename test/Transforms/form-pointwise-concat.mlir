// Parts of concatenations that no operator can write in place are copied by
// elementwise operators, one for the parts of equal sizes at one position.
// RUN: ftuner-opt %s --ukernel-form-pointwise | FileCheck %s
// RUN: ftuner-run %s --function=caches --device=h100 --args=2x9x8x16xf16,2x9x8x16xf16,2x1x8x16xf16,2x1x8x16xf16 --check --check-bounds --check-races | FileCheck %s --check-prefix=SHARED
// RUN: ftuner-run %s --function=caches --device=h100 --args=2x0x8x16xf16,2x0x8x16xf16,2x3x8x16xf16,2x3x8x16xf16 --check --check-bounds | FileCheck %s --check-prefix=EMPTY
// RUN: ftuner-run %s --function=computed --device=h100 --args=5x24xf32,3x24xf32 --check --check-bounds | FileCheck %s --check-prefix=COMPUTED

// SHARED: launches: 2 (caches_{{[01]}}_k{{.*}}, caches_{{[01]}}_k
// EMPTY: launches: 1 (caches_{{[01]}}_k
// COMPUTED: launches: 2 (computed_{{[01]}}_k{{.*}}, computed_{{[01]}}_k

// The second concatenation moves to the first one. The size of what both read
// may be zero.
// CHECK-LABEL: func.func @caches
// CHECK: %[[K:.*]] = tensor.extract_slice %[[KE:.*]][0, 0, 0, 0]
// CHECK: %[[V:.*]] = tensor.extract_slice %[[VE:.*]][0, 0, 0, 0]
// CHECK: %[[OLD:.*]]:2 = ukernel.pointwise ins(%arg0, %arg1 : {{.*}}) outs(%[[K]], %[[V]] : {{.*}})
// CHECK: %[[K1:.*]] = tensor.insert_slice %[[OLD]]#0 into %[[KE]]
// CHECK: %[[V1:.*]] = tensor.insert_slice %[[OLD]]#1 into %[[VE]]
// CHECK: %[[NEW:.*]]:2 = ukernel.pointwise ins(%arg2, %arg3 : {{.*}})
// CHECK: tensor.insert_slice %[[NEW]]#0 into %[[K1]]
// CHECK: tensor.insert_slice %[[NEW]]#1 into %[[V1]]
// CHECK-NOT: tensor.concat
func.func @caches(%k: tensor<?x?x8x16xf16> {ukernel.shape = ["B", "P", 8, 16]}, %v: tensor<?x?x8x16xf16> {ukernel.shape = ["B", "P", 8, 16]},
                  %k1: tensor<?x?x8x16xf16> {ukernel.shape = ["B", "T", 8, 16]}, %v1: tensor<?x?x8x16xf16> {ukernel.shape = ["B", "T", 8, 16]}) -> (tensor<?x?x8x16xf16>, tensor<?x?x8x16xf16>) {
  %a = tensor.concat dim(1) %k, %k1 : (tensor<?x?x8x16xf16>, tensor<?x?x8x16xf16>) -> tensor<?x?x8x16xf16>
  %b = tensor.concat dim(1) %v, %v1 : (tensor<?x?x8x16xf16>, tensor<?x?x8x16xf16>) -> tensor<?x?x8x16xf16>
  return %a, %b : tensor<?x?x8x16xf16>, tensor<?x?x8x16xf16>
}

// What computes a part writes it, right before its insertion.
// CHECK-LABEL: func.func @computed
// CHECK: ukernel.pointwise ins(%arg0
// CHECK: tensor.insert_slice
// CHECK: %[[E:.*]] = ukernel.pointwise ins(%arg1
// CHECK: tensor.insert_slice %[[E]]
func.func @computed(%x: tensor<?x24xf32>, %y: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x24xf32>
  %e = tensor.empty(%n) : tensor<?x24xf32>
  %z = linalg.exp ins(%y : tensor<?x24xf32>) outs(%e : tensor<?x24xf32>) -> tensor<?x24xf32>
  %r = tensor.concat dim(0) %x, %z : (tensor<?x24xf32>, tensor<?x24xf32>) -> tensor<?x24xf32>
  return %r : tensor<?x24xf32>
}
