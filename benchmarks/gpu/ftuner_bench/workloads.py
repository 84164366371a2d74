"""What is measured: products of matrices of which one size, T, is dynamic.

Shapes are in elements, row-major; everything is f32.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Workload:
    """C[b] = A[b] · B[b] for each batch b.

    form: "dense", A [M, K] and B [K, N] with M = factor · T;
          "nt", A [batch, T, K] and B [batch, T, K], transposed: scores of attention;
          "nn", A [batch, T, T] and B [batch, T, N]: the product with the values.
    """

    name: str
    title: str
    form: str
    factor: int
    batch: int
    n: int
    k: int
    largest: int

    def extents(self, size: int) -> tuple[int, int, int, int]:
        """batch, m, n, k for T = size."""
        if self.form == "dense":
            return 1, self.factor * size, self.n, self.k
        if self.form == "nt":
            return self.batch, size, size, self.k
        return self.batch, size, self.n, size

    def argument_shapes(self, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        batch, m, n, k = self.extents(size)
        if self.form == "dense":
            return (m, k), (k, n)
        return (batch, m, k), ((batch, n, k) if self.form == "nt" else (batch, k, n))

    def result_shape(self, size: int) -> tuple[int, ...]:
        batch, m, n, _ = self.extents(size)
        return (m, n) if self.form == "dense" else (batch, m, n)

    def dynamic_sizes(self, size: int) -> list[int]:
        """The sizes that the compiled function takes (docs/abi.md)."""
        if self.form == "dense":
            return [self.factor * size]
        return [size, size] if self.form == "nt" else [size, size, size]

    def flops(self, size: int) -> int:
        batch, m, n, k = self.extents(size)
        return 2 * batch * m * n * k

    def bytes(self, size: int) -> int:
        """Least traffic: each operand read once, the result written once."""
        batch, m, n, k = self.extents(size)
        return 4 * batch * (m * k + k * n + m * n)

    def mlir(self) -> str:
        """The module that FTuner compiles; its function has the workload's name."""
        return _TEXT[self.form].format(
            name=self.name,
            batch=self.batch,
            n=self.n,
            k=self.k,
            range=f"{self.factor} to {self.factor * self.largest}"
            + (f" step {self.factor}" if self.factor > 1 else ""),
        )

    def symbol_size(self, size: int) -> int:
        """The value of the module's symbol M or T."""
        return self.factor * size


_DENSE = """\
module attributes {{ukernel.symbols = {{T = #ukernel.range<{range}>}}}} {{
  func.func @{name}(%a: tensor<?x{k}xf32> {{ukernel.shape = ["T", {k}]}},
                    %b: tensor<{k}x{n}xf32>) -> tensor<?x{n}xf32> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x{k}xf32>
    %empty = tensor.empty(%m) : tensor<?x{n}xf32>
    %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
    %c = linalg.matmul ins(%a, %b : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>)
                       outs(%start : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
    return %c : tensor<?x{n}xf32>
  }}
}}
"""

_NT = """\
#mk = affine_map<(b, m, n, k) -> (b, m, k)>
#nk = affine_map<(b, m, n, k) -> (b, n, k)>
#mn = affine_map<(b, m, n, k) -> (b, m, n)>
module attributes {{ukernel.symbols = {{T = #ukernel.range<{range}>}}}} {{
  func.func @{name}(%a: tensor<{batch}x?x{k}xf32> {{ukernel.shape = [{batch}, "T", {k}]}},
                    %b: tensor<{batch}x?x{k}xf32> {{ukernel.shape = [{batch}, "T", {k}]}})
      -> tensor<{batch}x?x?xf32> {{
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c1 : tensor<{batch}x?x{k}xf32>
    %n = tensor.dim %b, %c1 : tensor<{batch}x?x{k}xf32>
    %empty = tensor.empty(%m, %n) : tensor<{batch}x?x?xf32>
    %start = linalg.fill ins(%zero : f32)
                         outs(%empty : tensor<{batch}x?x?xf32>) -> tensor<{batch}x?x?xf32>
    %c = linalg.batch_matmul indexing_maps = [#mk, #nk, #mn]
           ins(%a, %b : tensor<{batch}x?x{k}xf32>, tensor<{batch}x?x{k}xf32>)
           outs(%start : tensor<{batch}x?x?xf32>) -> tensor<{batch}x?x?xf32>
    return %c : tensor<{batch}x?x?xf32>
  }}
}}
"""

_NN = """\
module attributes {{ukernel.symbols = {{T = #ukernel.range<{range}>}}}} {{
  func.func @{name}(%a: tensor<{batch}x?x?xf32> {{ukernel.shape = [{batch}, "T", "T"]}},
                    %b: tensor<{batch}x?x{n}xf32> {{ukernel.shape = [{batch}, "T", {n}]}})
      -> tensor<{batch}x?x{n}xf32> {{
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c1 : tensor<{batch}x?x?xf32>
    %empty = tensor.empty(%m) : tensor<{batch}x?x{n}xf32>
    %start = linalg.fill ins(%zero : f32)
                         outs(%empty : tensor<{batch}x?x{n}xf32>) -> tensor<{batch}x?x{n}xf32>
    %c = linalg.batch_matmul ins(%a, %b : tensor<{batch}x?x?xf32>, tensor<{batch}x?x{n}xf32>)
           outs(%start : tensor<{batch}x?x{n}xf32>) -> tensor<{batch}x?x{n}xf32>
    return %c : tensor<{batch}x?x{n}xf32>
  }}
}}
"""

_TEXT = {"dense": _DENSE, "nt": _NT, "nn": _NN}

# The operators of the paper, and the products of attention of BERT-base with a
# batch of 16.
FULL = (
    Workload("dense", "Dense (T, 2304, 768)", "dense", 1, 1, 2304, 768, 128),
    Workload("dense16", "Dense (16·T, 2304, 768)", "dense", 16, 1, 2304, 768, 128),
    Workload("batch_nt", "BatchMatmul NT [192, T, 64] · [192, T, 64]", "nt", 1, 192, 0, 64, 128),
    Workload("batch_nn", "BatchMatmul NN [192, T, T] · [192, T, 64]", "nn", 1, 192, 64, 0, 128),
)

# The same forms, small enough for the emulator: for rehearsals without a GPU.
SMALL = (
    Workload("dense", "Dense (T, 96, 32)", "dense", 1, 1, 96, 32, 16),
    Workload("dense16", "Dense (4·T, 96, 32)", "dense", 4, 1, 96, 32, 16),
    Workload("batch_nt", "BatchMatmul NT [3, T, 16] · [3, T, 16]", "nt", 1, 3, 0, 16, 16),
    Workload("batch_nn", "BatchMatmul NN [3, T, T] · [3, T, 16]", "nn", 1, 3, 16, 0, 16),
)


def spread(largest: int) -> list[int]:
    """1…largest, each once: the ends, then ever finer between them.

    Any first part of the list covers the range evenly, so that a measurement may
    stop anywhere. Odd and even sizes alternate.
    """
    order, seen = [], set()
    bits = max(1, (largest - 1).bit_length())
    reversed_bits = (int(format(i, f"0{bits}b")[::-1], 2) for i in range(1 << bits))
    for step, position in enumerate([0, largest - 1, *reversed_bits]):
        size = position + 1
        # Halving alone would visit odd sizes first.
        if step % 2 and size < largest and size > 1 and size + 1 not in seen:
            size += 1
        if size <= largest and size not in seen:
            seen.add(size)
            order.append(size)
    return order + [size for size in range(1, largest + 1) if size not in seen]


def grid(largest: int, sizes: Sequence[int] | None = None) -> list[int]:
    """The sizes asked for, in the order of `spread`; all where none were."""
    wanted = set(sizes or range(1, largest + 1))
    return [size for size in spread(largest) if size in wanted]
