// RUN: ftuner-opt %s --ukernel-prepare-host | FileCheck %s

// The ABI, the sizes of the results, and arguments that are never written.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %{{.*}}: tensor<?x4xf32> {bufferization.writable = false}, %{{.*}}: index)
// CHECK-SAME:    ukernel.abi_type = (tensor<?x4xf32>, index) -> (tensor<?x?xf32>, tensor<4xf32>)
// CHECK-SAME:    ukernel.name = "rows", ukernel.result_sizes = @rows_result_sizes
// CHECK:       func.func private @rows_result_sizes(%[[M:.*]]: index, %[[N:.*]]: index) -> (index, index, index)
// CHECK-NOT:     linalg
// CHECK-NOT:     tensor
// CHECK:         %[[TWICE:.*]] = arith.addi %[[M]], %[[M]]
// CHECK:         return %[[TWICE]], %[[N]], %c4
func.func @rows(%x: tensor<?x4xf32>, %n: index)
    -> (tensor<?x?xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4xf32>
  %twice = arith.addi %m, %m : index
  %one = arith.constant 1.0 : f32
  %e = tensor.empty(%twice, %n) : tensor<?x?xf32>
  %r = linalg.fill ins(%one : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %s = linalg.fill ins(%one : f32) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  return %r, %s : tensor<?x?xf32>, tensor<4xf32>
}

// Assertions on sizes stay in the function of the sizes; those on elements,
// which it cannot check, do not.
// CHECK-LABEL: func.func private @asserts_result_sizes(
// CHECK-SAME:    %[[M:.*]]: index, %[[N:.*]]: index) -> index
// CHECK:         %[[EQ:.*]] = arith.cmpi eq, %[[M]], %[[N]]
// CHECK:         ukernel.assert %[[EQ]], "{{.*}}: sizes, but got {0} (dimension 0 of argument 0) and {1} (dimension 0 of argument 1)"(%[[M]], %[[N]])
// CHECK-NOT:     {{(cf|ukernel).assert}}
// CHECK:         return %[[M]]
func.func @asserts(%x: tensor<?xf32>, %y: tensor<?xi1>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.dim %y, %c0 : tensor<?xi1>
  %eq = arith.cmpi eq, %m, %n : index
  cf.assert %eq, "sizes"
  %first = tensor.extract %y[%c0] : tensor<?xi1>
  cf.assert %first, "elements"
  return %x : tensor<?xf32>
}

// A branch chooses the size.
// CHECK-LABEL: func.func private @branch_result_sizes(
// CHECK-SAME:    %[[M:.*]]: index, %[[N:.*]]: index, %[[FLAG:.*]]: i1) -> index
// CHECK:         %[[SIZE:.*]] = scf.if %[[FLAG]] -> (index)
// CHECK-NEXT:      scf.yield %[[M]]
// CHECK:           scf.yield %[[N]]
// CHECK:         return %[[SIZE]]
func.func @branch(%x: tensor<?xf32>, %y: tensor<?xf32>, %flag: i1)
    -> tensor<?xf32> {
  %r = scf.if %flag -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// Names that C does not allow or that mean something else; the last would take a
// name that derives from the first.
// CHECK-LABEL: func.func @my_net_1_1(
// CHECK-SAME:    ukernel.name = "my-net.1", ukernel.result_sizes = @my_net_1_1_result_sizes
// CHECK-LABEL: func.func @f_while(
// CHECK-SAME:    ukernel.name = "while"
// CHECK-LABEL: func.func @f_main(
// CHECK-SAME:    ukernel.name = "main"
// CHECK-LABEL: func.func @f_exp(
// CHECK-SAME:    ukernel.name = "exp"
// CHECK-LABEL: func.func @f_int64_t(
// CHECK-SAME:    ukernel.name = "int64_t"
// CHECK-LABEL: func.func @f_ftuner_module(
// CHECK-SAME:    ukernel.name = "ftuner_module"
// CHECK-LABEL: func.func @f_FTRT_SUCCESS(
// CHECK-LABEL: func.func @f_INT32_MAX(
// CHECK-LABEL: func.func @f__init(
// CHECK-LABEL: func.func @f_select(
// CHECK-LABEL: func.func @f_gamma(
// CHECK-LABEL: func.func @my_net_1_result_sizes(
// CHECK-SAME:    ukernel.name = "my_net_1_result_sizes"
func.func @"my-net.1"(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @while(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @int64_t(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @ftuner_module(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @FTRT_SUCCESS(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @INT32_MAX(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @_init(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @select(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @gamma(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @my_net_1_result_sizes(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// Splat constants become fills, one for each that writes on them.
// CHECK-LABEL: func.func @splat(
// CHECK-NOT:     dense
// CHECK-COUNT-2: linalg.fill
// CHECK-NOT:     linalg.fill
// CHECK:         return
func.func @splat(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = arith.constant dense<2.0> : tensor<8xf32>
  %r = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>)
                  outs(%c : tensor<8xf32>) -> tensor<8xf32>
  return %r, %c : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @softmax(
// CHECK-NOT:     linalg.softmax
// CHECK:         math.exp
// CHECK-NOT:     linalg.softmax
// CHECK:         return
func.func @softmax(%x: tensor<?x8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x8xf32>)
                                   outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// A reshape to sizes that the host knows is a view.
// CHECK-LABEL: func.func @reshape(
// CHECK-NOT:     tensor.reshape
// CHECK:         tensor.collapse_shape %{{.*}} {{\[}}[0, 1]]
// CHECK:         tensor.expand_shape %{{.*}} {{\[}}[0, 1]]
func.func @reshape(%x: tensor<?x6xf32>, %a: index, %b: index) -> tensor<?x?xf32> {
  %shape = tensor.from_elements %a, %b : tensor<2xindex>
  %r = tensor.reshape %x(%shape) : (tensor<?x6xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Helpers that nobody calls any more go.
// CHECK-NOT: @unused
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
