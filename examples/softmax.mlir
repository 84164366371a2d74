// A softmax of up to 512 rows of any length, as torch-mlir writes it.
//   build/release/bin/ftuner-run examples/softmax.mlir --device=h200 --args=53x65xf32 --check
module attributes {ukernel.symbols = {R = #ukernel.range<1 to 512>}} {
  func.func @softmax(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = tensor.dim %x, %c0 : tensor<?x?xf32>
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %o = tensor.empty(%m, %n) : tensor<?x?xf32>
    %y = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %y : tensor<?x?xf32>
  }
}
