// Products that Hopper's tensor cores are fastest at, and an operator for all architectures.
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 2048>}} {
  func.func @f(%a: tensor<?x256xbf16> {ukernel.shape = ["T", 256]}, %b: tensor<256x1024xbf16>) -> (tensor<?x1024xf32>, tensor<?xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xbf16>
    %e = tensor.empty(%m) : tensor<?x1024xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x1024xf32>) -> tensor<?x1024xf32>
    %r = linalg.matmul ins(%a, %b : tensor<?x256xbf16>, tensor<256x1024xbf16>) outs(%f : tensor<?x1024xf32>) -> tensor<?x1024xf32>
    %g = tensor.empty(%m) : tensor<?xf32>
    %h = linalg.fill ins(%zero : f32) outs(%g : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.reduce { arith.addf } ins(%r : tensor<?x1024xf32>) outs(%h : tensor<?xf32>) dimensions = [1]
    return %r, %s : tensor<?x1024xf32>, tensor<?xf32>
  }
  // Its slices are added up by kernels of no architecture.
  func.func @slices(%a: tensor<?x16384xbf16> {ukernel.shape = ["T", 16384]}, %b: tensor<16384x512xbf16>) -> tensor<?x512xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x16384xbf16>
    %e = tensor.empty(%m) : tensor<?x512xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
    %r = linalg.matmul ins(%a, %b : tensor<?x16384xbf16>, tensor<16384x512xbf16>) outs(%f : tensor<?x512xf32>) -> tensor<?x512xf32>
    return %r : tensor<?x512xf32>
  }
}
