// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --convert-ukernel-to-gpu --split-input-file --verify-diagnostics

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

ukernel.kernel @path(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>, %m: index, %n: index, %k: index, %n1: index)
    // expected-error @below {{expected the schedule of a codegen path, but got "simd"}}
    attributes {schedule = "simd"} {
  ukernel.combine axis 0 [8] {
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (n, m)>

// expected-error @below {{an output that is contiguous along n}}
ukernel.kernel @output(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<2304x?xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 3, vector = 4>} {
  ukernel.combine axis 0 [8] {
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) outs(%o : memref<2304x?xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// expected-error @below {{simt: expected tiles of contiguous axes to be multiples of the vector width, but got [8,128,6]/[8,4,1]}}
ukernel.kernel @depth(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 3, vector = 4>} {
  ukernel.combine axis 0 [8] {
    ukernel.tile [8, 128, 6] {
      %p = ukernel.pad %a to [8, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// expected-error @below {{expected operand 'rhs' to be contiguous along its last dimension, but got 'memref<768x2304xf32, strided<[4608, 2]>>'}}
ukernel.kernel @strided(%a: memref<?x768xf32>, %b: memref<768x2304xf32, strided<[4608, 2]>>, %o: memref<?x2304xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 3, vector = 4>} {
  ukernel.combine axis 0 [8] {
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32, strided<[4608, 2]>>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
#transposed = affine_map<(i, j) -> (i * 768 + j floordiv 2)>

// expected-error @below {{expected operand 'lhs' in a buffer with strides, but got}}
ukernel.kernel @layout(%a: memref<?x768xf32, #transposed>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 3, vector = 4>} {
  ukernel.combine axis 0 [8] {
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 1] : memref<?x768xf32, #transposed>
      ukernel.workload ins(%p, %b : memref<?x768xf32, #transposed>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}
