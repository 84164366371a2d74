// RUN: ftuner-opt %s --pass-pipeline="builtin.module(gpu.module(ukernel-expand-math))" --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @erf
// CHECK-NOT: math.erf
// CHECK: llvm.call_intrinsic "llvm.fma"
gpu.module @a {
  gpu.func @erf(%x: vector<4xf32>, %o: memref<vector<4xf32>>) kernel {
    %y = math.erf %x : vector<4xf32>
    memref.store %y, %o[] : memref<vector<4xf32>>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @instructions
// CHECK: llvm.call_intrinsic "llvm.sqrt"
// CHECK: llvm.call_intrinsic "llvm.floor"
gpu.module @b {
  gpu.func @instructions(%x: f32, %o: memref<f32>) kernel {
    %y = math.sqrt %x : f32
    %z = math.floor %y : f32
    memref.store %z, %o[] : memref<f32>
    gpu.return
  }
}

// -----

gpu.module @c {
  gpu.func @no_double(%x: f64, %o: memref<f64>) kernel {
    // expected-error @below {{no lowering: 'math.erf' on operands of type 'f64' needs a device library}}
    %y = math.erf %x : f64
    memref.store %y, %o[] : memref<f64>
    gpu.return
  }
}
