// RUN: ftuner-opt %s --ukernel-expand-accesses -split-input-file | FileCheck %s

// A view of a view is one of the buffer, and what has nothing to do with views
// stays, even if it could be folded.

// CHECK-LABEL: gpu.func @views
// CHECK-SAME: %[[A:.*]]: memref<?x64xf32>, %[[ROW:.*]]: index
// CHECK-NOT: memref.subview
// CHECK: %[[BASE:.*]], %{{.*}}, %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata %[[A]]
// CHECK: affine.apply {{.*}}[%[[ROW]]]
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [%{{.*}}], sizes: [2, 4], strides: [64, 1]
// CHECK: arith.addi
gpu.module @k {
  gpu.func @views(%a: memref<?x64xf32>, %row: index) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : index
    %tile = memref.subview %a[%row, 0] [8, 4] [1, 1] : memref<?x64xf32> to memref<8x4xf32, strided<[64, 1], offset: ?>>
    %part = memref.subview %tile[2, 0] [2, 4] [1, 1] : memref<8x4xf32, strided<[64, 1], offset: ?>> to memref<2x4xf32, strided<[64, 1], offset: ?>>
    %sum = arith.addi %c0, %zero : index
    %x = memref.load %part[%sum, %c0] : memref<2x4xf32, strided<[64, 1], offset: ?>>
    memref.store %x, %a[%row, %c0] : memref<?x64xf32>
    gpu.return
  }
}

// -----

// Transfers of several rows become loops.

// CHECK-LABEL: gpu.func @transfers
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} vector<4xf32>
// CHECK-NOT: vector<2x4xf32>, memref
gpu.module @k {
  gpu.func @transfers(%a: memref<?x64xf32>, %b: memref<?x64xf32>, %row: index) kernel {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %x = vector.transfer_read %a[%row, %c0], %pad : memref<?x64xf32>, vector<2x4xf32>
    vector.transfer_write %x, %b[%row, %c0] : vector<2x4xf32>, memref<?x64xf32>
    gpu.return
  }
}
