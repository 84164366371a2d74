// RUN: ftuner-opt %s -ukernel-form-workloads -split-input-file | FileCheck %s
// RUN: ftuner-opt %s -ukernel-form-workloads -split-input-file | ftuner-opt -split-input-file | FileCheck %s

// A workload remembers which symbols its extents are made of: a multiple of one,
// a product of two (sorted), one symbol on two axes. What is static or has no
// name is `unit`.
// CHECK-LABEL: func.func @multiple
// CHECK: ukernel.workload
// CHECK: {ukernel.extents = [{{\[}}4, "T"], {{\[}}1, "N"], unit]}
func.func @multiple(%a: tensor<?x4x32xf32> {ukernel.shape = ["T", 4, 32]}, %b: tensor<32x?xf32> {ukernel.shape = [32, "N"]}, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %rows = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x4x32xf32> into tensor<?x32xf32>
  %r = linalg.matmul ins(%rows, %b : tensor<?x32xf32>, tensor<32x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
// CHECK-LABEL: func.func @product
// CHECK: {ukernel.extents = [{{\[}}1, "B", "T"], unit, unit]}
func.func @product(%a: tensor<?x?x32xf32> {ukernel.shape = ["T", "B", 32]}, %b: tensor<32x48xf32>, %o: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %rows = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x?x32xf32> into tensor<?x32xf32>
  %r = linalg.matmul ins(%rows, %b : tensor<?x32xf32>, tensor<32x48xf32>) outs(%o : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @tied
// CHECK: {ukernel.extents = [{{\[}}1, "T"], {{\[}}1, "T"], unit]}
func.func @tied(%a: tensor<?x32xf32> {ukernel.shape = ["T", 32]}, %b: tensor<32x?xf32> {ukernel.shape = [32, "T"]}, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x32xf32>, tensor<32x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
// The symbol of another operand names the axis too.
// CHECK-LABEL: func.func @other_operand
// CHECK: {ukernel.extents = [unit, unit, {{\[}}1, "K"]]}
func.func @other_operand(%a: tensor<?x?xf32>, %b: tensor<?x48xf32> {ukernel.shape = ["K", 48]}, %o: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x48xf32>) outs(%o : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}
// CHECK-LABEL: func.func @unnamed
// CHECK: ukernel.workload
// CHECK-NOT: ukernel.extents
// CHECK: return
func.func @unnamed(%a: tensor<?x32xf32>, %b: tensor<32x48xf32>, %o: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x32xf32>, tensor<32x48xf32>) outs(%o : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}

// Reshapes by values, and tensors side by side.
// CHECK-LABEL: func.func @reshaped
// CHECK: {ukernel.extents = [{{\[}}1, "T"], unit, unit]}
func.func @reshaped(%x: tensor<?x4x16xf32> {ukernel.shape = ["T", 4, 16]}, %b: tensor<128x48xf32>, %o: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %columns = arith.constant 64 : i64
  %t = tensor.dim %x, %c0 : tensor<?x4x16xf32>
  %rows = arith.index_cast %t : index to i64
  %shape = tensor.from_elements %rows, %columns : tensor<2xi64>
  %half = tensor.reshape %x(%shape) : (tensor<?x4x16xf32>, tensor<2xi64>) -> tensor<?x64xf32>
  %a = tensor.concat dim(1) %half, %half : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x128xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x128xf32>, tensor<128x48xf32>) outs(%o : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}
