// RUN: ftuner-opt %s --ukernel-lower-fallbacks -split-input-file -verify-diagnostics

func.func @load(%x: memref<f32>)
    attributes {ukernel.abi_type = (tensor<f32>) -> ()} {
  // expected-error @below {{no lowering: memref.load would read device memory on the host}}
  %v = memref.load %x[] : memref<f32>
  return
}

// -----

func.func @while(%flag: memref<i1>)
    attributes {ukernel.abi_type = (tensor<i1>) -> ()} {
  scf.while : () -> () {
    // expected-error @below {{no lowering: memref.load would read device memory on the host}}
    %v = memref.load %flag[] : memref<i1>
    scf.condition(%v)
  } do {
    scf.yield
  }
  return
}

// -----

func.func @print(%n: index) attributes {ukernel.abi_type = (index) -> ()} {
  // expected-error @below {{no lowering: vector.print}}
  vector.print %n : index
  return
}

// -----

func.func @complex(%x: memref<4xf32>, %z: complex<f32>)
    attributes {ukernel.abi_type = (tensor<4xf32>) -> ()} {
  // expected-remark @below {{fallback}}
  // expected-error @below {{no lowering: linalg.map on an operand of type 'complex<f32>'}}
  linalg.map outs(%x : memref<4xf32>) (%out: f32) {
    %re = complex.re %z : complex<f32>
    linalg.yield %re : f32
  }
  return
}
