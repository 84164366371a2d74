// Parts of concatenations that no operator can write in place are copied by
// elementwise operators, one for the parts of equal sizes at one position.
// RUN: ftuner-opt %s --ukernel-form-pointwise | FileCheck %s
// RUN: ftuner-run %s --function=caches --device=h100 --args=2x9x8x16xf16,2x9x8x16xf16,2x1x8x16xf16,2x1x8x16xf16 --check --check-bounds --check-races | FileCheck %s --check-prefix=SHARED
// RUN: ftuner-run %s --function=caches --device=h100 --args=2x0x8x16xf16,2x0x8x16xf16,2x3x8x16xf16,2x3x8x16xf16 --check --check-bounds | FileCheck %s --check-prefix=EMPTY
// RUN: ftuner-run %s --function=computed --device=h100 --args=5x24xf32,3x24xf32 --check --check-bounds | FileCheck %s --check-prefix=COMPUTED

// RUN: ftuner-run %s --function=read_back --device=h100 --args=4x8xf32,4x8xf32,4x8xf32,4x8xf32,4x8xf32 --check --check-bounds --check-races
// RUN: ftuner-run %s --function=two_groups --device=h100 --args=4x8xf32,4x8xf32,4x8xf32,4x8xf32,4x8xf32 --check --check-bounds --check-races
// RUN: not ftuner-run %s --function=unequal --device=h100 --args=3x4xf32,2x4xf32 2>&1 | FileCheck %s --check-prefix=UNEQUAL

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

// A concatenation that reads another one of the group stays behind it.
// CHECK-LABEL: func.func @read_back
func.func @read_back(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>, %d: tensor<4x8xf32>, %e: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %x = tensor.concat dim(0) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %y = tensor.concat dim(0) %c, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %s = tensor.extract_slice %y[2, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
  %z = tensor.concat dim(0) %s, %e : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %x, %y, %z : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// So does one that reads a concatenation of another group.
// CHECK-LABEL: func.func @two_groups
func.func @two_groups(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>, %d: tensor<4x8xf32>, %e: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  %x = tensor.concat dim(0) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %y = tensor.concat dim(1) %c, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %o = tensor.empty() : tensor<4x8xf32>
  %t = linalg.exp ins(%c : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = tensor.concat dim(1) %t, %e : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %s = tensor.extract_slice %z[0, 4] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  %w = tensor.concat dim(0) %s, %e : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %x, %y, %z, %w, %t : tensor<8x8xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<8x8xf32>, tensor<4x8xf32>
}

// UNEQUAL: error: {{.*}}expected the parts of a concatenation to have equal sizes along dimension 0
func.func @unequal(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %x = tensor.concat dim(1) %a, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %x : tensor<?x?xf32>
}
