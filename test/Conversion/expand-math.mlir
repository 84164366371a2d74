// RUN: ftuner-opt %s --pass-pipeline="builtin.module(gpu.module(ukernel-expand-math))" --split-input-file --verify-diagnostics | FileCheck %s

// Both forms of erf, and one select between them.
// CHECK-LABEL: gpu.func @erf(
// CHECK-SAME: %[[X:.*]]: f32,
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-COUNT-5: llvm.call_intrinsic "llvm.fma"(%{{.*}}, %[[SQUARE]],
// CHECK: %[[SMALL:.*]] = llvm.call_intrinsic "llvm.fma"(%{{.*}}, %[[X]], %[[X]])
// CHECK: %[[MAGNITUDE:.*]] = llvm.call_intrinsic "llvm.fabs"(%[[X]])
// CHECK-COUNT-5: llvm.call_intrinsic "llvm.fma"(%{{.*}}, %[[MAGNITUDE]],
// CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%{{.*}}) : (f32) -> f32
// CHECK: %[[LARGE:.*]] = arith.subf %{{.*}}, %[[POWER]]
// CHECK: %[[SIGNED:.*]] = llvm.call_intrinsic "llvm.copysign"(%[[LARGE]], %[[X]])
// CHECK: %[[IS_LARGE:.*]] = arith.cmpf ogt, %[[MAGNITUDE]],
// CHECK-NEXT: %[[Y:.*]] = arith.select %[[IS_LARGE]], %[[SIGNED]], %[[SMALL]] : f32
// CHECK-NEXT: memref.store %[[Y]]
gpu.module @a {
  gpu.func @erf(%x: f32, %o: memref<f32>) kernel {
    %y = math.erf %x : f32
    memref.store %y, %o[] : memref<f32>
    gpu.return
  }
}

// -----

// A series and a power, without a division.
// CHECK-LABEL: gpu.func @tanh(
// CHECK-SAME: %[[X:.*]]: f32,
// CHECK-NOT: arith.divf
// CHECK: %[[MAGNITUDE:.*]] = llvm.call_intrinsic "llvm.fabs"(%[[X]])
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[MAGNITUDE]], %[[MAGNITUDE]]
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.fma"(%{{.*}}, %[[SQUARE]],
// CHECK: %[[SMALL:.*]] = llvm.call_intrinsic "llvm.fma"(%{{.*}}, %[[MAGNITUDE]], %[[MAGNITUDE]])
// CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%{{.*}}) : (f32) -> f32
// CHECK: %[[SUM:.*]] = arith.addf %[[POWER]]
// CHECK: %[[RECIPROCAL:.*]] = nvvm.rcp.approx.ftz.f %[[SUM]]
// CHECK: %[[LARGE:.*]] = llvm.call_intrinsic "llvm.fma"(%{{.*}}, %[[RECIPROCAL]],
// CHECK: %[[CHOSEN:.*]] = arith.select %{{.*}}, %[[LARGE]], %[[SMALL]] : f32
// CHECK: %[[Y:.*]] = llvm.call_intrinsic "llvm.copysign"(%[[CHOSEN]], %[[X]])
// CHECK-NEXT: memref.store %[[Y]]
gpu.module @a {
  gpu.func @tanh(%x: f32, %o: memref<f32>) kernel {
    %y = math.tanh %x : f32
    memref.store %y, %o[] : memref<f32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @erf_of_vector(
// CHECK-COUNT-11: llvm.call_intrinsic "llvm.fma"({{.*}}) : (vector<4xf32>,
// CHECK: vector.to_elements
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"({{.*}}) : (f32) -> f32
// CHECK-NEXT: vector.from_elements
// CHECK-NOT: llvm.fma
// CHECK: arith.select
// CHECK-NEXT: memref.store
gpu.module @a {
  gpu.func @erf_of_vector(%x: vector<4xf32>, %o: memref<vector<4xf32>>) kernel {
    %y = math.erf %x : vector<4xf32>
    memref.store %y, %o[] : memref<vector<4xf32>>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @erf_of_bf16(
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: "llvm.nvvm.ex2.approx.ftz"
// CHECK: arith.truncf {{.*}} : f32 to bf16
gpu.module @a {
  gpu.func @erf_of_bf16(%x: bf16, %o: memref<bf16>) kernel {
    %y = math.erf %x : bf16
    memref.store %y, %o[] : memref<bf16>
    gpu.return
  }
}

// -----

// Three parts of pi/2; large arguments take a branch, which alone has integers
// of 64 bits and f64.
// CHECK-LABEL: gpu.func @sin(
// CHECK-SAME: %[[X:.*]]: f32,
// CHECK-NOT: i64
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.fma"
// CHECK-NOT: i64
// CHECK: scf.if %[[LARGE]] -> (f32, i32)
// CHECK: arith.muli {{.*}} : i64
// CHECK: arith.mulf {{.*}} : f64
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NOT: i64
// CHECK: gpu.return
gpu.module @a {
  gpu.func @sin(%x: f32, %o: memref<f32>) kernel {
    %y = math.sin %x : f32
    memref.store %y, %o[] : memref<f32>
    gpu.return
  }
}

// -----

// Each large element of a vector is reduced by itself, in one branch.
// CHECK-LABEL: gpu.func @cos_of_vector(
// CHECK-COUNT-1: scf.if %{{.*}} -> (vector<2xf32>, vector<2xi32>)
// CHECK-NOT: scf.if
// CHECK: gpu.return
gpu.module @a {
  gpu.func @cos_of_vector(%x: vector<2xf32>, %o: memref<vector<2xf32>>) kernel {
    %y = math.cos %x : vector<2xf32>
    memref.store %y, %o[] : memref<vector<2xf32>>
    gpu.return
  }
}

// -----

// Powers of f64 name the function of the program.
gpu.module @a {
  gpu.func @pow_of_f64(%x: f64, %y: f64, %o: memref<f64>) kernel {
    // expected-error @below {{no lowering: 'math.powf' on operands of type 'f64' needs a device library}}
    %z = math.powf %x, %y : f64
    memref.store %z, %o[] : memref<f64>
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

// -----

// CHECK-LABEL: gpu.func @classes
// CHECK-NOT: math.
// CHECK: arith.cmpf uno
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf olt
// CHECK: arith.cmpf oge
gpu.module @d {
  gpu.func @classes(%x: vector<4xf32>, %o: memref<4xvector<4xi1>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %nan = math.isnan %x : vector<4xf32>
    %inf = math.isinf %x : vector<4xf32>
    %finite = math.isfinite %x : vector<4xf32>
    %normal = math.isnormal %x : vector<4xf32>
    memref.store %nan, %o[%c0] : memref<4xvector<4xi1>>
    memref.store %inf, %o[%c1] : memref<4xvector<4xi1>>
    memref.store %finite, %o[%c2] : memref<4xvector<4xi1>>
    memref.store %normal, %o[%c3] : memref<4xvector<4xi1>>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @log10
// CHECK-NOT: math.log
gpu.module @e {
  gpu.func @log10(%x: f32, %o: memref<f32>) kernel {
    %y = math.log10 %x : f32
    memref.store %y, %o[] : memref<f32>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @remainder
// CHECK-NOT: arith.remf
// CHECK: scf.for
// CHECK: llvm.call_intrinsic "llvm.copysign"
gpu.module @f {
  gpu.func @remainder(%x: f32, %y: f32, %o: memref<f32>) kernel {
    %z = arith.remf %x, %y : f32
    memref.store %z, %o[] : memref<f32>
    gpu.return
  }
}

// -----

gpu.module @g {
  gpu.func @remainder_of_doubles(%x: f64, %o: memref<f64>) kernel {
    // expected-error @below {{no lowering: 'arith.remf' on operands of type 'f64' needs a device library}}
    %z = arith.remf %x, %x : f64
    memref.store %z, %o[] : memref<f64>
    gpu.return
  }
}
