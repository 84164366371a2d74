// RUN: ftuner-opt %s --pass-pipeline='builtin.module(func.func(ukernel-resolve-sizes),canonicalize)' | FileCheck %s

// Sizes of equal symbols are one value, however they are computed.
module attributes {ukernel.symbols = {B = #ukernel.range<1 to 16>, T = #ukernel.range<1 to ?>}} {
  // CHECK-LABEL: @equal
  // CHECK-SAME: %[[X:.*]]: tensor<?x8x?xf32>
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %c0
  // CHECK-DAG: %[[T:.*]] = tensor.dim %[[X]], %c2
  // CHECK: %[[BT:.*]] = arith.muli %[[B]], %[[T]]
  // CHECK: return %[[B]], %[[BT]], %[[B]], %[[T]]
  func.func @equal(%x: tensor<?x8x?xf32> {ukernel.shape = ["B", 8, "T"]},
                   %y: tensor<?x?xf32> {ukernel.shape = ["T", "B"]}) -> (index, index, index, index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %b0 = tensor.dim %x, %c0 : tensor<?x8x?xf32>
    %b1 = tensor.dim %y, %c1 : tensor<?x?xf32>
    %b = arith.maxui %b0, %b1 : index
    %t = tensor.dim %y, %c0 : tensor<?x?xf32>
    %bt = arith.muli %b1, %t : index
    %b8 = arith.muli %b, %c8 : index
    %again = arith.divsi %b8, %c8 : index
    %e = tensor.empty(%b8, %t) : tensor<?x?xf32>
    %s = tensor.dim %e, %c1 : tensor<?x?xf32>
    return %b, %bt, %again, %s : index, index, index, index
  }

  // Nothing says that these are equal.
  // CHECK-LABEL: @unknown
  // CHECK: %[[MAX:.*]] = arith.maxui
  // CHECK: return %[[MAX]]
  func.func @unknown(%x: tensor<?xf32>, %y: tensor<?xf32>) -> index {
    %c0 = arith.constant 0 : index
    %a = tensor.dim %x, %c0 : tensor<?xf32>
    %b = tensor.dim %y, %c0 : tensor<?xf32>
    %m = arith.maxui %a, %b : index
    return %m : index
  }

  // An assertion holds for what follows it, not for what precedes it.
  // CHECK-LABEL: @asserted
  // CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[Y:.*]]: tensor<?xf32>
  // CHECK: %[[FIRST:.*]] = arith.maxui
  // CHECK: cf.assert
  // CHECK: return %[[FIRST]], %[[SECOND:.*]] :
  func.func @asserted(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (index, index) {
    %c0 = arith.constant 0 : index
    %a = tensor.dim %x, %c0 : tensor<?xf32>
    %b = tensor.dim %y, %c0 : tensor<?xf32>
    %first = arith.maxui %a, %b : index
    %same = arith.cmpi eq, %a, %b : index
    cf.assert %same, "equal"
    %second = arith.minui %a, %b : index
    // CHECK-NOT: arith.minui
    return %first, %second : index, index
  }
}
