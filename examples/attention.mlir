// Attention with 12 heads of 64, for B sequences of T tokens:
// O = softmax(Q · K^T / 8 + mask) · V. Queries, keys and values are B × T × 12 × 64
// as a linear layer computes them; the heads are batches of both products.
module attributes {ukernel.symbols = {B = #ukernel.range<1 to 16>, T = #ukernel.range<1 to 128>}} {
  func.func @attention(%q: tensor<?x?x12x64xf32> {ukernel.shape = ["B", "T", 12, 64]},
                       %k: tensor<?x?x12x64xf32> {ukernel.shape = ["B", "T", 12, 64]},
                       %v: tensor<?x?x12x64xf32> {ukernel.shape = ["B", "T", 12, 64]},
                       %mask: tensor<?x?xf32> {ukernel.shape = ["B", "T"]}) -> tensor<?x?x12x64xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant 0.125 : f32
    %b = tensor.dim %q, %c0 : tensor<?x?x12x64xf32>
    %t = tensor.dim %q, %c1 : tensor<?x?x12x64xf32>

    // scores[b, h, s, t] = sum over d of q[b, s, h, d] · k[b, t, h, d]
    %square = tensor.empty(%b, %t, %t) : tensor<?x12x?x?xf32>
    %start = linalg.fill ins(%zero : f32) outs(%square : tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32>
    %product = linalg.generic {
        indexing_maps = [affine_map<(b, h, s, t, d) -> (b, s, h, d)>,
                         affine_map<(b, h, s, t, d) -> (b, t, h, d)>,
                         affine_map<(b, h, s, t, d) -> (b, h, s, t)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%q, %k : tensor<?x?x12x64xf32>, tensor<?x?x12x64xf32>)
        outs(%start : tensor<?x12x?x?xf32>) {
      ^bb0(%x: f32, %y: f32, %acc: f32):
        %xy = arith.mulf %x, %y : f32
        %sum = arith.addf %acc, %xy : f32
        linalg.yield %sum : f32
    } -> tensor<?x12x?x?xf32>
    %scores = linalg.generic {
        indexing_maps = [affine_map<(b, h, s, t) -> (b, h, s, t)>,
                         affine_map<(b, h, s, t) -> (b, t)>,
                         affine_map<(b, h, s, t) -> (b, h, s, t)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%product, %mask : tensor<?x12x?x?xf32>, tensor<?x?xf32>)
        outs(%square : tensor<?x12x?x?xf32>) {
      ^bb0(%p: f32, %m: f32, %out: f32):
        %scaled = arith.mulf %p, %scale : f32
        %masked = arith.addf %scaled, %m : f32
        linalg.yield %masked : f32
    } -> tensor<?x12x?x?xf32>
    %weights = linalg.softmax dimension(3) ins(%scores : tensor<?x12x?x?xf32>)
                                           outs(%square : tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32>

    // result[b, s, h, d] = sum over t of weights[b, h, s, t] · v[b, t, h, d]
    %empty = tensor.empty(%b, %t) : tensor<?x?x12x64xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?x12x64xf32>) -> tensor<?x?x12x64xf32>
    %result = linalg.generic {
        indexing_maps = [affine_map<(b, s, h, d, t) -> (b, h, s, t)>,
                         affine_map<(b, s, h, d, t) -> (b, t, h, d)>,
                         affine_map<(b, s, h, d, t) -> (b, s, h, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%weights, %v : tensor<?x12x?x?xf32>, tensor<?x?x12x64xf32>)
        outs(%zeros : tensor<?x?x12x64xf32>) {
      ^bb0(%x: f32, %y: f32, %acc: f32):
        %xy = arith.mulf %x, %y : f32
        %sum = arith.addf %acc, %xy : f32
        linalg.yield %sum : f32
    } -> tensor<?x?x12x64xf32>
    return %result : tensor<?x?x12x64xf32>
  }
}
