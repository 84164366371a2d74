// Maximum pooling of 3 x 3 with stride 2 and padding, as torch-mlir writes it.
//   build/release/bin/ftuner-run examples/pooling.mlir --device=h200 --args=2x64x56x56xf32 --check
func.func @pooling(%x: tensor<?x64x56x56xf32> {ukernel.shape = ["N", 64, 56, 56]}) -> tensor<?x64x28x28xf32> {
  %least = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64x56x56xf32>
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %least : f32
  } : tensor<?x64x56x56xf32> to tensor<?x64x58x58xf32>
  %empty = tensor.empty(%n) : tensor<?x64x28x28xf32>
  %fill = linalg.fill ins(%least : f32) outs(%empty : tensor<?x64x28x28xf32>) -> tensor<?x64x28x28xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %result = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
    ins(%padded, %window : tensor<?x64x58x58xf32>, tensor<3x3xf32>) outs(%fill : tensor<?x64x28x28xf32>) -> tensor<?x64x28x28xf32>
  return %result : tensor<?x64x28x28xf32>
}
