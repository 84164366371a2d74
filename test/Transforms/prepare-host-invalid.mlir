// RUN: ftuner-opt %s --ukernel-prepare-host --allow-unregistered-dialect -split-input-file -verify-diagnostics

// expected-error @below {{no lowering: expected argument 0 of 'unranked' to be a ranked tensor, but got 'tensor<*xf32>'}}
func.func @unranked(%x: tensor<*xf32>) {
  return
}

// -----

// expected-error @below {{no lowering: expected argument 0 of 'buffers' to be a ranked tensor, an index, an integer or a float, but got 'memref<?xf32>'}}
func.func @buffers(%x: memref<?xf32>) {
  return
}

// -----

// expected-error @below {{to have elements of type f16, bf16, f32, f64, i1, i8, i16, i32 or i64, but got 'tensor<4xcomplex<f32>>'}}
func.func @complex(%x: tensor<4xcomplex<f32>>) {
  return
}

// -----

// expected-error @below {{but got 'tensor<4xindex>'}}
func.func @indices(%x: tensor<4xindex>) {
  return
}

// -----

// expected-error @below {{no lowering: expected argument 0 of 'sparse' to be a dense tensor, but got 'tensor<4xf32, "encoding">'}}
func.func @sparse(%x: tensor<4xf32, "encoding">) {
  return
}

// -----

// expected-error @below {{no lowering: expected result 0 of 'scalar' to be a ranked tensor, but got 'index'}}
func.func @scalar(%i: index) -> index {
  return %i : index
}

// -----

func.func private @external(tensor<4xf32>) -> tensor<4xf32>
func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{no lowering: 'external' is called, but has no body}}
  %r = call @external(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @mutual(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{no lowering: 'other' is recursive}}
  %r = call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @mutual(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// expected-error @below {{no lowering: expected func.func, but got llvm.func}}
llvm.func @other_function() {
  llvm.return
}

// -----

// expected-error @below {{no lowering: dimension 0 of result 0 of 'by_element' is not known before the computation runs}}
func.func @by_element(%x: tensor<1xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it depends on tensor.extract here}}
  %v = tensor.extract %x[%c0] : tensor<1xi64>
  %n = arith.index_cast %v : i64 to index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func @gather(%x: tensor<4x3xf32>, %i: tensor<2x1xi32>) -> tensor<2x3xf32> {
  // expected-error @below {{no lowering: tensor.gather}}
  %r = tensor.gather %x[%i] gather_dims([0]) : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

func.func @dimension(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c3 = arith.constant 3 : index
  // expected-error @below {{no lowering: expected a dimension of 'tensor<?xf32>', but got 3}}
  %t = tensor.dim %x, %c3 : tensor<?xf32>
  %e = tensor.empty(%t) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// expected-error @below {{'ukernel.unsigned' expected a dictionary, but got unit}}
func.func @no_list(%x: tensor<4xi8>) attributes {ukernel.unsigned} {
  return
}

// -----

// expected-error @below {{'ukernel.unsigned' expected arrays of 'arguments' and 'results', but got 'inputs' = array<i64: 0>}}
func.func @misspelt(%x: tensor<4xi8>) attributes {ukernel.unsigned = {inputs = array<i64: 0>}} {
  return
}

// -----

// expected-error @below {{'ukernel.unsigned' expected numbers of integers among arguments, but got 1}}
func.func @no_integer(%x: tensor<4xi8>, %y: tensor<4xf32>)
    attributes {ukernel.unsigned = {arguments = array<i64: 0, 1>}} {
  return
}

// -----

// expected-error @below {{'ukernel.unsigned' expected numbers of integers among results, but got 1}}
func.func @no_such_result(%x: tensor<4xi8>) -> tensor<4xi8>
    attributes {ukernel.unsigned = {results = array<i64: 1>}} {
  return %x : tensor<4xi8>
}

// -----

func.func @grows(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{no lowering: expected scf.for to keep the sizes of the tensors that it carries, but dimension 0 of tensor 0 may change from iteration to iteration}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %b = tensor.concat dim(0) %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// Every refusal of a module, not the first one alone.
module {
  // expected-error @below {{no lowering: expected argument 0 of 'several' to be a ranked tensor}}
  // expected-error @below {{no lowering: expected argument 1 of 'several' to have elements of type}}
  func.func @several(%x: tensor<*xf32>, %y: tensor<4xcomplex<f32>>) {
    return
  }
  // expected-error @below {{no lowering: expected argument 0 of 'another' to be a ranked tensor}}
  func.func @another(%x: tensor<*xf32>) {
    // expected-error @below {{no lowering: 'outside' is called, but has no body}}
    func.call @outside() : () -> ()
    return
  }
  func.func private @outside()
}

// -----

func.func @takes_turns(%x: tensor<3x?xf32>, %y: tensor<3x?xf32>, %n: index) -> tensor<3x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{no lowering: expected scf.while to keep the sizes of the tensors that it carries, but dimension 1 of tensor 0 may change from iteration to iteration}}
  %r:3 = scf.while (%i = %c0, %a = %x, %b = %y) : (index, tensor<3x?xf32>, tensor<3x?xf32>) -> (index, tensor<3x?xf32>, tensor<3x?xf32>) {
    %c = arith.cmpi slt, %i, %n : index
    scf.condition(%c) %i, %a, %b : index, tensor<3x?xf32>, tensor<3x?xf32>
  } do {
  ^bb0(%i: index, %a: tensor<3x?xf32>, %b: tensor<3x?xf32>):
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %b, %a : index, tensor<3x?xf32>, tensor<3x?xf32>
  }
  return %r#1 : tensor<3x?xf32>
}

// -----

func.func @passes_another(%x: tensor<4xf32>, %n: index) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{no lowering: expected scf.while to pass on tensors that it carries, but got another 'tensor<2xf32>'}}
  %r:2 = scf.while (%i = %c0, %a = %x) : (index, tensor<4xf32>) -> (index, tensor<2xf32>) {
    %c = arith.cmpi slt, %i, %n : index
    %s = tensor.extract_slice %a[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
    scf.condition(%c) %i, %s : index, tensor<2xf32>
  } do {
  ^bb0(%i: index, %s: tensor<2xf32>):
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %x : index, tensor<4xf32>
  }
  return %r#1 : tensor<2xf32>
}

// -----

module {
  func.func @first(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @below {{no lowering: unknown.one}}
    %0 = "unknown.one"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{no lowering: unknown.two}}
    %1 = "unknown.two"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func @second(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @below {{no lowering: unknown.one}}
    %0 = "unknown.one"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
