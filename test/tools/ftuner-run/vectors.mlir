// Products with vectors are products with a row: one kernel, with what follows.

// RUN: ftuner-run %s --device=h200 --check --check-bounds --check-races --function=mv --args=37x96xf32,96xf32,37xf32 --args=1x96xf32,96xf32,1xf32 --args=0x96xf32,96xf32,0xf32 | FileCheck %s --check-prefix=MV
// RUN: ftuner-run %s --device=a100 --check --check-bounds --function=vm --args=72xf16,72x40xf16,40xf32 | FileCheck %s --check-prefix=VM
// RUN: ftuner-run %s --device=v100 --check --check-bounds --check-races --function=dot --args=37xf32,37xf32,f32 --args=0xf32,0xf32,f32 | FileCheck %s --check-prefix=DOT
// RUN: ftuner-run %s --device=t4 --check --check-bounds --function=bytes --args=3x53x64xi8,3x64xi8,3x53xi32 | FileCheck %s --check-prefix=BYTES

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 64>}} {
  // MV: result 0: 37xf32
  // MV: launches: 1 (mv_0_
  // MV: result 0: 1xf32
  // MV: launches: 1 (mv_0_
  // MV: launches: 0
  func.func @mv(%a: tensor<?x96xf32> {ukernel.shape = ["T", 96]}, %x: tensor<96xf32>, %b: tensor<?xf32> {ukernel.shape = ["T"]}) -> tensor<?xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %a, %c0 : tensor<?x96xf32>
    %e = tensor.empty(%t) : tensor<?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %p = linalg.matvec ins(%a, %x : tensor<?x96xf32>, tensor<96xf32>) outs(%f : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.add ins(%p, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %r = linalg.max ins(%s, %f : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    return %r : tensor<?xf32>
  }

  // VM: launches: 1 (vm_0_
  func.func @vm(%x: tensor<72xf16>, %a: tensor<72x40xf16>, %o: tensor<40xf32>) -> tensor<40xf32> {
    %r = linalg.vecmat ins(%x, %a : tensor<72xf16>, tensor<72x40xf16>) outs(%o : tensor<40xf32>) -> tensor<40xf32>
    return %r : tensor<40xf32>
  }

  // DOT: result 0: f32
  // DOT: launches: 1 (dot_0_
  // DOT: result 0: f32
  func.func @dot(%x: tensor<?xf32> {ukernel.shape = ["T"]}, %y: tensor<?xf32> {ukernel.shape = ["T"]}, %o: tensor<f32>) -> tensor<f32> {
    %r = linalg.dot ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>
  }

  // A batch of them.
  // BYTES: launches: 1 (bytes_0_
  func.func @bytes(%a: tensor<3x?x64xi8> {ukernel.shape = [3, "T", 64]}, %x: tensor<3x64xi8>, %o: tensor<3x?xi32> {ukernel.shape = [3, "T"]}) -> tensor<3x?xi32> {
    %r = linalg.batch_matvec ins(%a, %x : tensor<3x?x64xi8>, tensor<3x64xi8>) outs(%o : tensor<3x?xi32>) -> tensor<3x?xi32>
    return %r : tensor<3x?xi32>
  }
}
