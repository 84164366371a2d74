// RUN: split-file %s %t
// RUN: not ftuner-translate %t/no-device.mlir --ftuner-to-ptx -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=NO-DEVICE
// RUN: ftuner-opt %t/external.mlir --ukernel-attach-device=device=h200 -o %t/a.mlir
// RUN: not ftuner-translate %t/a.mlir --ftuner-to-ptx -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=EXTERNAL
// RUN: ftuner-opt %t/intrinsic.mlir --ukernel-attach-device=device=h200 -o %t/a.mlir
// RUN: not ftuner-translate %t/a.mlir --ftuner-to-ptx -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=INTRINSIC
// RUN: ftuner-opt %t/name.mlir --ukernel-attach-device=device=h200 -o %t/a.mlir
// RUN: not ftuner-translate %t/a.mlir --ftuner-to-ptx -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: ftuner-opt %t/twice.mlir --ukernel-attach-device=device=h200 -o %t/a.mlir
// RUN: not ftuner-translate %t/a.mlir --ftuner-to-ptx -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: ftuner-opt %t/none.mlir --ukernel-attach-device=device=h200 -o %t/a.mlir
// RUN: not ftuner-translate %t/a.mlir --ftuner-to-ptx -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: ftuner-opt %t/second.mlir --ukernel-attach-device=device=h200 -o %t/a.mlir
// RUN: not ftuner-translate %t/a.mlir --ftuner-to-ptx -o %t/out.ptx 2>&1 | FileCheck %s --check-prefix=SECOND
// RUN: not ls %t/out.ptx

//--- no-device.mlir
// NO-DEVICE: error: expected a device
gpu.module @a {
  llvm.func @a() attributes {nvvm.kernel} { llvm.return }
}

//--- external.mlir
// EXTERNAL: error: kernel 'a' needs the function '__nv_erff', which only a device library provides
gpu.module @a {
  llvm.func @__nv_erff(f32) -> f32
  llvm.func @a(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %y = llvm.call @__nv_erff(%x) : (f32) -> f32
    llvm.store %y, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- intrinsic.mlir
// INTRINSIC: error: kernel 'a' needs the function 'llvm.sin.f32', which only a device library provides
gpu.module @a {
  llvm.func @a(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %y = llvm.intr.sin(%x) : (f32) -> f32
    llvm.store %y, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- name.mlir
// NAME: error: expected a C identifier as name of a kernel, but got 'a.b'
gpu.module @a {
  llvm.func @"a.b"() attributes {nvvm.kernel} { llvm.return }
}

//--- twice.mlir
// TWICE: error: expected unique names of kernels, but got 'k' twice
gpu.module @a {
  llvm.func @k() attributes {nvvm.kernel} { llvm.return }
}
gpu.module @b {
  llvm.func @k() attributes {nvvm.kernel} { llvm.return }
}

//--- none.mlir
// NONE: error: expected one kernel in 'gpu.module' as a function of the LLVM dialect, but got none
gpu.module @a {
  llvm.func @k() { llvm.return }
}

//--- second.mlir
// SECOND: error: expected one kernel in 'gpu.module', but got a second one
gpu.module @a {
  llvm.func @k() attributes {nvvm.kernel} { llvm.return }
  llvm.func @l() attributes {nvvm.kernel} { llvm.return }
}
