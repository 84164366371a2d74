// RUN: ftuner-opt %s --ukernel-plan-workspace --canonicalize --cse -split-input-file -verify-diagnostics | FileCheck %s

// Two buffers behind each other at multiples of 256 bytes, the second in a
// branch; the size from the same arithmetic.
// CHECK-LABEL: func.func @two(
// CHECK-SAME:    %[[X:[^:]*]]: memref<?x3xf16>, %[[FLAG:.*]]: i1, %[[WS:[^:]*]]: memref<?xi8>)
// CHECK-SAME:    ukernel.workspace_size = @two_workspace_size
// CHECK-DAG:     %[[M:.*]] = memref.dim %[[X]], %c0
// CHECK-DAG:     %[[A:.*]] = memref.view %[[WS]][%c0][%[[M]]] : memref<?xi8> to memref<?x3xf16>
// CHECK-DAG:     %[[BYTES:.*]] = arith.muli %[[M]], %c6
// CHECK-DAG:     %[[LINES:.*]] = arith.ceildivui %[[BYTES]], %c256
// CHECK-DAG:     %[[END:.*]] = arith.muli %[[LINES]], %c256
// CHECK-DAG:     %[[B:.*]] = memref.view %[[WS]][%[[END]]][] : memref<?xi8> to memref<5xi1>
// CHECK:         linalg.negf {{.*}} outs(%[[A]] : memref<?x3xf16>)
// CHECK:         scf.if
// CHECK:           linalg.fill {{.*}} outs(%[[B]] : memref<5xi1>)
// CHECK-LABEL: func.func private @two_workspace_size(
// CHECK-SAME:    %[[N:.*]]: index, %{{.*}}: i1) -> index
// CHECK-DAG:     %[[NEGATIVE:.*]] = arith.cmpi slt, %[[N]], %c0
// CHECK-DAG:     %[[BYTES:.*]] = arith.muli %[[N]], %c6
// CHECK-DAG:     %[[LINES:.*]] = arith.ceildivui %[[BYTES]], %c256
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[LINES]], %c256
// CHECK-DAG:     %[[ALL:.*]] = arith.addi %[[FIRST]], %c256
// CHECK:         %[[SIZE:.*]] = arith.select %[[NEGATIVE]], %c-1, %[[ALL]]
// CHECK:         return %[[SIZE]]
func.func @two(%x: memref<?x3xf16>, %flag: i1)
    attributes {ukernel.abi_type = (tensor<?x3xf16>, i1) -> ()} {
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : memref<?x3xf16>
  %a = memref.alloc(%m) : memref<?x3xf16>
  linalg.negf ins(%x : memref<?x3xf16>) outs(%a : memref<?x3xf16>)
  scf.if %flag {
    %b = memref.alloc() : memref<5xi1>
    linalg.fill ins(%flag : i1) outs(%b : memref<5xi1>)
  }
  return
}

// -----

// A size that is a quotient is computed also where the program would not get
// to the division: never by zero.
// CHECK-LABEL: func.func private @quotient_workspace_size(
// CHECK-SAME:    %[[M:.*]]: index, %[[N:.*]]: index) -> index
// CHECK:         %[[ZERO:.*]] = arith.cmpi eq, %[[N]], %c0
// CHECK:         %[[D:.*]] = arith.select %[[ZERO]], %c1, %[[N]]
// CHECK:         arith.divui %[[M]], %[[D]]
func.func @quotient(%m: index, %n: index)
    attributes {ukernel.abi_type = (index, index) -> ()} {
  %zero = arith.constant 0.0 : f32
  %q = arith.divui %m, %n : index
  %a = memref.alloc(%q) : memref<?xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<?xf32>)
  return
}

// -----

// A joined dimension has the product of the sizes that it joins.
// CHECK-LABEL: func.func private @joined_workspace_size(
// CHECK-SAME:    %[[B:.*]]: index, %[[M:.*]]: index) -> index
// CHECK:         %[[ROWS:.*]] = arith.muli %[[B]], %[[M]]
// CHECK:         arith.muli %[[ROWS]], %c12
func.func @joined(%x: memref<?x?x3xf32>)
    attributes {ukernel.abi_type = (tensor<?x?x3xf32>) -> ()} {
  %c0 = arith.constant 0 : index
  %rows = memref.collapse_shape %x [[0, 1], [2]] : memref<?x?x3xf32> into memref<?x3xf32>
  %m = memref.dim %rows, %c0 : memref<?x3xf32>
  %a = memref.alloc(%m) : memref<?x3xf32>
  linalg.negf ins(%rows : memref<?x3xf32>) outs(%a : memref<?x3xf32>)
  return
}

// -----

func.func @by_iteration(%n: index) attributes {ukernel.abi_type = (index) -> ()} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{no lowering: the size of memref.alloc is not known before the computation runs}}
    %a = memref.alloc(%i) : memref<?xf32>
    linalg.fill ins(%zero : f32) outs(%a : memref<?xf32>)
  }
  return
}

// -----

func.func @cycle(%flag: i1) attributes {ukernel.abi_type = (i1) -> ()} {
  %zero = arith.constant 0.0 : f32
  cf.br ^loop
^loop:
  // expected-error @below {{no lowering: memref.alloc in a cycle of unstructured control flow}}
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<4xf32>)
  cf.cond_br %flag, ^loop, ^exit
^exit:
  return
}

// -----

func.func @complex() attributes {ukernel.abi_type = () -> ()} {
  %z = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  // expected-error @below {{no lowering: memref.alloc of elements of type 'complex<f32>'}}
  %a = memref.alloc() : memref<4xcomplex<f32>>
  linalg.fill ins(%z : complex<f32>) outs(%a : memref<4xcomplex<f32>>)
  return
}

// -----

// A second run changes nothing.
// CHECK-LABEL: func.func @planned(
// CHECK-SAME:    %{{.*}}: memref<?xi8>)
// CHECK-NOT:     _workspace_size_workspace_size
func.func private @planned_workspace_size() -> index {
  %c0 = arith.constant 0 : index
  return %c0 : index
}
func.func @planned(%workspace: memref<?xi8>) attributes {
    ukernel.abi_type = () -> (), ukernel.workspace_size = @planned_workspace_size} {
  return
}

// -----

func.func private @late_workspace_size() -> index {
  %c0 = arith.constant 0 : index
  return %c0 : index
}
func.func @late(%workspace: memref<?xi8>) attributes {
    ukernel.abi_type = () -> (), ukernel.workspace_size = @late_workspace_size} {
  // expected-error @below {{expected no allocation in 'late', whose workspace is planned already}}
  %a = memref.alloc() : memref<4xf32>
  %c0 = arith.constant 0 : index
  %v = memref.load %a[%c0] : memref<4xf32>
  memref.store %v, %a[%c0] : memref<4xf32>
  return
}
