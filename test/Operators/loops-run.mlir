// Loops whose states have sizes that only the run knows: several states of
// different sizes, states that change places, loops in loops, a first region that
// computes, and a call in the body; any number of iterations, and none.

// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=several --args=0x5x8xf32,5x4xf32,8x4xf32 | FileCheck %s --check-prefix=THREE
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=several --args=3x7x8xf32,7x4xf32,8x4xf32 | FileCheck %s --check-prefix=THREE
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=several --args=2x0x8xf32,0x4xf32,8x4xf32 | FileCheck %s --check-prefix=THREE
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=swap --args=3x4xf32,3x4xf32,0 | FileCheck %s --check-prefix=TWO
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=swap --args=3x4xf32,3x4xf32,5 | FileCheck %s --check-prefix=TWO
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=swap_while --args=1x4xf32,1x4xf32,0 | FileCheck %s --check-prefix=TWO
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=swap_while --args=5x4xf32,5x4xf32,1 | FileCheck %s --check-prefix=TWO
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=do_while --args=5x4xf32,3 | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=nested --args=3x4xf32,4 | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %s --device=h200 --max-kernels=1 --check --function=calls --args=5x8xf32,8x8xf32,3 | FileCheck %s --check-prefix=ONE
// ONE: result 0: {{.*}} relative error {{[0-9.e-]+}} (tolerance
// TWO-COUNT-2: result {{[01]}}: {{.*}} relative error {{[0-9.e-]+}} (tolerance
// THREE-COUNT-3: result {{[0-2]}}: {{.*}} relative error {{[0-9.e-]+}} (tolerance
module attributes {ukernel.symbols = {B = #ukernel.range<0 to 64>, T = #ukernel.range<0 to 64>}} {
func.func @several(%x: tensor<?x?x8xf32> {ukernel.shape = ["T", "B", 8]}, %h0: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %w: tensor<8x4xf32>) -> (tensor<?x?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %b = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %ey = tensor.empty(%t, %b) : tensor<?x?x4xf32>
  %y0 = linalg.fill ins(%z : f32) outs(%ey : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %es = tensor.empty(%b) : tensor<?x8xf32>
  %s0 = linalg.fill ins(%z : f32) outs(%es : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r:3 = scf.for %i = %c0 to %t step %c1 iter_args(%y = %y0, %h = %h0, %s = %s0) -> (tensor<?x?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>) {
    %xt = tensor.extract_slice %x[%i, 0, 0] [1, %b, 8] [1, 1, 1] : tensor<?x?x8xf32> to tensor<?x8xf32>
    %e = tensor.empty(%b) : tensor<?x4xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    %q = linalg.matmul ins(%xt, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
    %n = linalg.generic {indexing_maps = [affine_map<(a, c) -> (a, c)>, affine_map<(a, c) -> (a, c)>, affine_map<(a, c) -> (a, c)>], iterator_types = ["parallel", "parallel"]} ins(%q, %h : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
    ^bb0(%a: f32, %c: f32, %o: f32):
      %p = arith.addf %a, %c : f32
      %v = math.tanh %p : f32
      linalg.yield %v : f32
    } -> tensor<?x4xf32>
    %y1 = tensor.insert_slice %n into %y[%i, 0, 0] [1, %b, 4] [1, 1, 1] : tensor<?x4xf32> into tensor<?x?x4xf32>
    %s1 = linalg.add ins(%xt, %s : tensor<?x8xf32>, tensor<?x8xf32>) outs(%es : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %y1, %n, %s1 : tensor<?x?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<?x?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>
}
func.func @swap(%a0: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %b0: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %n: index) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0, %b = %b0) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
    %m = tensor.dim %a, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%m) : tensor<?x4xf32>
    %q = linalg.sub ins(%a, %b : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %b, %q : tensor<?x4xf32>, tensor<?x4xf32>
  }
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}
func.func @swap_while(%a0: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %b0: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %n: index) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.while (%a = %a0, %i = %c0, %b = %b0) : (tensor<?x4xf32>, index, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
    %c = arith.cmpi slt, %i, %n : index
    scf.condition(%c) %b, %a : tensor<?x4xf32>, tensor<?x4xf32>
  } do {
  ^bb0(%b: tensor<?x4xf32>, %a: tensor<?x4xf32>):
    %m = tensor.dim %a, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%m) : tensor<?x4xf32>
    %q = linalg.sub ins(%a, %b : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %b, %n, %q : tensor<?x4xf32>, index, tensor<?x4xf32>
  }
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}
func.func @do_while(%h0: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %n: index) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.while (%i = %c0, %h = %h0) : (index, tensor<?x4xf32>) -> (tensor<?x4xf32>, index) {
    %m = tensor.dim %h, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%m) : tensor<?x4xf32>
    %q = linalg.exp ins(%h : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    %k = linalg.negf ins(%q : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    %j = arith.addi %i, %c1 : index
    %c = arith.cmpi slt, %j, %n : index
    scf.condition(%c) %k, %j : tensor<?x4xf32>, index
  } do {
  ^bb0(%h: tensor<?x4xf32>, %j: index):
    scf.yield %j, %h : index, tensor<?x4xf32>
  }
  return %r#0 : tensor<?x4xf32>
}
func.func @nested(%h0: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %n: index) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%g = %h0) -> (tensor<?x4xf32>) {
    %q = scf.for %j = %c0 to %i step %c1 iter_args(%h = %g) -> (tensor<?x4xf32>) {
      %m = tensor.dim %h, %c0 : tensor<?x4xf32>
      %e = tensor.empty(%m) : tensor<?x4xf32>
      %p = linalg.add ins(%h, %g : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
      scf.yield %p : tensor<?x4xf32>
    }
    scf.yield %q : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}
func.func private @product(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%t) : tensor<?x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%i : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %p : tensor<?x8xf32>
}
func.func @calls(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %n: index) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?x8xf32> {
    %y = func.call @product(%a, %w) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    scf.yield %y : tensor<?x8xf32>
  }
  return %r : tensor<?x8xf32>
}
}
