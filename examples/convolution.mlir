// A convolution of 3 x 3 taps with padding, a bias and an activation, for images
// of any number, height and width.
//   build/release/bin/ftuner-run examples/convolution.mlir --device=h200 --args=2x30x41x64xf32,3x3x64x96xf32,96xf32 --check
#image = affine_map<(n, p, q, f) -> (n, p, q, f)>
#channels = affine_map<(n, p, q, f) -> (f)>
module attributes {ukernel.symbols = {N = #ukernel.range<1 to 32>, H = #ukernel.range<8 to 512>, W = #ukernel.range<8 to 512>}} {
  func.func @convolution(%x: tensor<?x?x?x64xf32> {ukernel.shape = ["N", "H", "W", 64]}, %w: tensor<3x3x64x96xf32>, %b: tensor<96xf32>) -> tensor<?x?x?x96xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %n = tensor.dim %x, %c0 : tensor<?x?x?x64xf32>
    %h = tensor.dim %x, %c1 : tensor<?x?x?x64xf32>
    %v = tensor.dim %x, %c2 : tensor<?x?x?x64xf32>
    %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<?x?x?x64xf32> to tensor<?x?x?x64xf32>
    %empty = tensor.empty(%n, %h, %v) : tensor<?x?x?x96xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?x?x96xf32>) -> tensor<?x?x?x96xf32>
    %sums = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%padded, %w : tensor<?x?x?x64xf32>, tensor<3x3x64x96xf32>) outs(%fill : tensor<?x?x?x96xf32>) -> tensor<?x?x?x96xf32>
    %y = linalg.generic {indexing_maps = [#image, #channels, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums, %b : tensor<?x?x?x96xf32>, tensor<96xf32>) outs(%empty : tensor<?x?x?x96xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32):
      %t = arith.addf %s, %c : f32
      %r = arith.maximumf %t, %zero : f32
      linalg.yield %r : f32
    } -> tensor<?x?x?x96xf32>
    return %y : tensor<?x?x?x96xf32>
  }
}
