// RUN: ftuner-test-opt %s -split-input-file -verify-diagnostics

// One case for each numbered constraint of OperatorOpInterface; those that
// `ukernel.workload` can break are tested with its own.

// operator_c1: an axis without a dimension of its own
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected a dimension that k indexes alone}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k) -> (m + k)>, affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m)>] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c2: a map of another number of axes
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected a map of (m, k) to 1 sums of multiples of axes for operand 1, but got affine_map<(d0) -> (d0)>}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k) -> (m + k)>, affine_map<(k) -> (k)>, affine_map<(m, k) -> (m)>] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c2: another rank
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected a map of (m, k) to 1 sums of multiples of axes for operand 0}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c2: no sum of multiples
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected a map of (m, k) to 1 sums of multiples of axes for operand 0}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k) -> (m floordiv 2 + k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c2: too few maps
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected one map for each of 3 operands, but got 2}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k) -> (m + k)>, affine_map<(m, k) -> (k)>] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c4
func.func @f(%x: tensor<8x8xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected one range for each of (m, k)}}
  %r = test.row_sum ins(%x : tensor<8x8xf32>) outs(%o : tensor<8xf32>) ranges = [#ukernel.range<1 to 4>] {
  ^bb0(%a: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// A plan of another operator.
ukernel.plan @p <families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned_general = 0>
func.func @f(%x: tensor<8x8xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected a plan of 2 axes, but got 3}}
  %r = test.row_sum plan(@p) ins(%x : tensor<8x8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// dialect_c10 of another operator
func.func @f(%x: tensor<8x?xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{'ukernel.extents' expected one entry for each of (m, k)}}
  %r = test.row_sum ins(%x : tensor<8x?xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    ukernel.yield %c : f32
  } {ukernel.extents = [unit]} -> tensor<8xf32>
  return
}

// -----

// operator_c5: an output without an axis of rows would be written by each row.
func.func @lost_axis(%x: tensor<?x?x4xf32>, %y: tensor<4x?xf32>) {
  // expected-error @+1 {{'test.rows' op computation 'map'}}
  %r = test.rows ins(%x : tensor<?x?x4xf32>) outs(%y : tensor<4x?xf32>)
    maps = [affine_map<(m, n, r) -> (m, n, r)>, affine_map<(m, n, r) -> (r, n)>]
    identities = [0.0 : f32]
    reduce {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield %s : f32
    } merge "sum" {
    ^bb0(%s: f32, %t: f32):
      ukernel.yield %s : f32
    } finish {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield %s : f32
    } -> tensor<4x?xf32>
  return
}

// -----

// Regions that do not agree on the state.
func.func @state(%x: tensor<?x4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'test.rows' op expected merge to take ('f32', 'f32', 'f32', 'f32'), but got ('f32', 'f32')}}
  %r = test.rows ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>]
    identities = [0.0 : f32, 0.0 : f32]
    reduce {
    ^bb0(%a: f32, %s: f32, %t: f32):
      ukernel.yield %s, %t : f32, f32
    } merge "sum" {
    ^bb0(%s: f32, %t: f32):
      ukernel.yield %s, %t : f32, f32
    } finish {
    ^bb0(%s: f32, %t: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xf32>
  return
}

// -----

// A statistic of another type than the value of the row.
func.func @statistic(%x: tensor<?x4xf32>, %y: tensor<?xf16>) {
  // expected-error @+1 {{'test.rows' op expected finish to yield 'f16' first, for outputs of rows, but got 'f32'}}
  %r = test.rows ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf16>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>]
    identities = [0.0 : f32]
    reduce {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield %s : f32
    } merge "sum" {
    ^bb0(%s: f32, %t: f32):
      ukernel.yield %s : f32
    } finish {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xf16>
  return
}

// -----

// operator_c6: a loop of no axis
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected loops of (m, k) in their order, but got 'p1' of axis 2}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k, p, q) -> (m)>, affine_map<(m, k, p, q) -> (k)>, affine_map<(m, k, p, q) -> (m)>]
    fused = [0, 2] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c6: loops that are not in the order of their axes
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected loops of (m, k) in their order, but got 'p1' of axis 0}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k, p, q) -> (q)>, affine_map<(m, k, p, q) -> (p)>, affine_map<(m, k, p, q) -> (q)>]
    fused = [1, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c2: a fused axis in place of its loops
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<2x4xf32>) {
  // expected-error @below {{expected loops of m in the map of operand 0, but got the axis}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<2x4xf32>)
    maps = [affine_map<(m, k, p, q) -> (m)>, affine_map<(m, k, p, q) -> (k)>, affine_map<(m, k, p, q) -> (p, q)>]
    fused = [0, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<2x4xf32>
  return
}

// -----

// operator_c1: a loop without a dimension of its own
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected a dimension that p0 indexes alone}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k, p, q) -> (p + q)>, affine_map<(m, k, p, q) -> (k)>, affine_map<(m, k, p, q) -> (q)>]
    fused = [0, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// The shapes of images and windows.
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected two strides of at least 1, but got [0, 1]}}
  %r = test.convolution ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    strides = [0, 1] dilations = [1, 1] padding = [0, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected images, filters and outputs of 4 dimensions, but got 'tensor<8xf32>'}}
  %r = test.convolution ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    strides = [1, 1] dilations = [1, 1] padding = [0, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8x8x3xf32>, %w: tensor<4x3x3x8xf32>, %o: tensor<?x6x6x4xf32>) {
  // expected-error @below {{expected as many channels, but got 3 and 8}}
  %r = test.convolution ins(%x, %w : tensor<?x8x8x3xf32>, tensor<4x3x3x8xf32>) outs(%o : tensor<?x6x6x4xf32>)
    strides = [1, 1] dilations = [1, 1] padding = [0, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<?x6x6x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8x8x8xf32>, %w: tensor<4x3x3x8xf32>, %o: tensor<?x7x6x4xf32>) {
  // expected-error @below {{expected as many positions of windows along dimension 1, but got 6 and 7}}
  %r = test.convolution ins(%x, %w : tensor<?x8x8x8xf32>, tensor<4x3x3x8xf32>) outs(%o : tensor<?x7x6x4xf32>)
    strides = [1, 1] dilations = [1, 1] padding = [0, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<?x7x6x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8x8x8xf32>, %w: tensor<4x3x3x8xf32>, %o: tensor<?x6x6x4xf16>) {
  // expected-error @below {{expected an epilogue for a bias, and from 'f32' to 'f16'}}
  %r = test.convolution ins(%x, %w : tensor<?x8x8x8xf32>, tensor<4x3x3x8xf32>) outs(%o : tensor<?x6x6x4xf16>)
    strides = [1, 1] dilations = [1, 1] padding = [0, 0] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<?x6x6x4xf16>
  return
}

// -----

// operator_c2: a position of no axis
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{expected a map of (m, k) to 1 sums of multiples of axes for operand 0}}
  %r = test.conv ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%o : tensor<8xf32>)
    maps = [affine_map<(m, k) -> (3)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    ukernel.yield %c : f32
  } -> tensor<8xf32>
  return
}

// -----

// operator_c7: sizes along one axis
func.func @f(%x: tensor<4x5xf32>, %o: tensor<7xf32>) {
  // expected-error @below {{expected equal sizes of operands along dimension 0 of their maps, but got 4 and 7}}
  %r = test.row_sum ins(%x : tensor<4x5xf32>) outs(%o : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    ukernel.yield %s : f32
  } -> tensor<7xf32>
  return
}
