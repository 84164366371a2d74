"""A product whose epilogue takes any number of tensors and scalars. As a program: numbers of both, and k; prints the module."""

import sys


def text(tensors, scalars, k=64):
    """MLIR of a function `many` of x, w, tensors and scalars: x * w plus all of them."""
    tensor_names, scalar_names = (
        [f"t{i}" for i in range(tensors)],
        [f"s{i}" for i in range(scalars)],
    )
    arguments = ", ".join(
        [f'%{name}: tensor<?x96xf32> {{ukernel.shape = ["T", 96]}}' for name in tensor_names]
        + [f"%{name}: f32" for name in scalar_names]
    )
    maps = ", ".join(["affine_map<(m, n) -> (m, n)>"] * (tensors + 2))
    inputs = ", ".join("%" + name for name in ["product", *tensor_names])
    elements = ", ".join(f"%{name}_: f32" for name in ["product", *tensor_names])
    body, last = [], "product_"
    for number, name in enumerate([f"{name}_" for name in tensor_names] + scalar_names):
        body.append(f"%sum{number} = arith.addf %{last}, %{name} : f32")
        last = f"sum{number}"
    lines = "\n      ".join(body)
    return f"""module attributes {{ukernel.symbols = {{T = #ukernel.range<1 to 128>}}}} {{
  func.func @many(%x: tensor<?x{k}xf32> {{ukernel.shape = ["T", {k}]}}, %w: tensor<{k}x96xf32>, {arguments}) -> tensor<?x96xf32> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x{k}xf32>
    %e = tensor.empty(%t) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %product = linalg.matmul ins(%x, %w : tensor<?x{k}xf32>, tensor<{k}x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
        ins({inputs} : {", ".join(["tensor<?x96xf32>"] * (tensors + 1))}) outs(%e : tensor<?x96xf32>) {{
    ^bb0({elements}, %old: f32):
      {lines}
      linalg.yield %{last} : f32
    }} -> tensor<?x96xf32>
    return %r : tensor<?x96xf32>
  }}
}}
"""


if __name__ == "__main__":
    print(text(*map(int, sys.argv[1:])))
