"""What is measured: products of matrices of which one size, T, is dynamic.

Shapes are in elements, row-major.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Sequence
from typing import Any

# How operands are multiplied, and the type that holds them and the result. Sums are f32, of i8 i32,
# which is also the type of its results.
ELEMENTS = {"f32": "f32", "tf32": "f32", "f16": "f16", "bf16": "bf16", "i8": "i8"}
BYTES = {"f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i8": 1}

# Largest relative error of a right product (Frobenius norms, against float64 on the same
# operands). Sums of some thousand products in f32 stay near 5e-7; tf32 rounds factors to 2^-11,
# f16 and bf16 the result to 2^-11 and 2^-8. Integers are exact.
TOLERANCES = {"f32": 1e-5, "tf32": 1e-3, "f16": 1e-3, "bf16": 8e-3, "i8": 0.0}
# Of factors that are cut off rather than rounded (include/FTuner/Executor/Tolerance.h).
TRUNCATED_TOLERANCE = 2.3e-3


@dataclasses.dataclass(frozen=True)
class Workload:
    """C[b] = A[b] · B[b] for each batch b.

    form: "dense", A [M, K] and B [K, N] with M = factor · T;
          "linear", the same with B [N, K], transposed: a layer of weights as PyTorch stores it;
          "nt", A [batch, T, K] and B [batch, T, K], transposed: scores of attention;
          "nn", A [batch, T, T] and B [batch, T, N]: the product with the values.
    type: how operands are multiplied, a key of ELEMENTS.
    sizes: the T that are measured, of the range up to `largest`; empty: all.
    first: the sizes that are measured before the others, in their order.
    paths: codegen paths whose kernels compete, with commas between; empty: the compiler's.
    truncates: of tf32, whether FTuner may cut factors off in place of rounding them.
    packs: whether FTuner is passed B in the order in which blocks of `wgmma` read it
          (docs/tensor-cores.md), of "linear"; no other path computes such a product.
    gelu: whether C is GELU of the product, of "dense" and "linear".
    """

    name: str
    title: str
    form: str
    factor: int
    batch: int
    n: int
    k: int
    largest: int
    type: str = "f32"
    sizes: tuple[int, ...] = ()
    paths: str = ""
    truncates: bool = False
    packs: bool = False
    gelu: bool = False
    first: tuple[int, ...] = ()

    @property
    def group(self) -> str:
        """A name by which parts take the workload (parts.py)."""
        return "epilogue" if self.gelu else "packed" if self.packs else self.type

    @property
    def element(self) -> str:
        """Type of the elements of A and B."""
        return ELEMENTS[self.type]

    @property
    def result_element(self) -> str:
        """Type of the elements of C."""
        return "i32" if self.type == "i8" else self.element

    @property
    def element_bytes(self) -> int:
        return BYTES[self.element]

    @property
    def tolerance(self) -> float:
        return TRUNCATED_TOLERANCE if self.truncates else TOLERANCES[self.type]

    @property
    def transposed(self) -> bool:
        """Whether B is stored as [N, K]."""
        return self.form in ("linear", "nt")

    @property
    def batched(self) -> bool:
        return self.form in ("nt", "nn")

    def extents(self, size: int) -> tuple[int, int, int, int]:
        """batch, m, n, k for T = size."""
        if not self.batched:
            return 1, self.factor * size, self.n, self.k
        if self.form == "nt":
            return self.batch, size, size, self.k
        return self.batch, size, self.n, size

    def argument_shapes(self, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        batch, m, n, k = self.extents(size)
        b = (n, k) if self.transposed else (k, n)
        return ((batch, m, k), (batch, *b)) if self.batched else ((m, k), b)

    def result_shape(self, size: int) -> tuple[int, ...]:
        batch, m, n, _ = self.extents(size)
        return (batch, m, n) if self.batched else (m, n)

    def dynamic_sizes(self, size: int) -> list[int]:
        """The sizes that the compiled function takes (docs/abi.md)."""
        if not self.batched:
            return [self.factor * size]
        return [size, size] if self.form == "nt" else [size, size, size]

    def flops(self, size: int) -> int:
        batch, m, n, k = self.extents(size)
        return 2 * batch * m * n * k

    def bytes(self, size: int) -> int:
        """Least traffic: each operand read once, the result written once."""
        batch, m, n, k = self.extents(size)
        operands = self.element_bytes * (m * k + k * n)
        return batch * (operands + BYTES[self.result_element] * m * n)

    def mlir(self) -> str:
        """The module that FTuner compiles; its function has the workload's name."""
        return _TEXT["packed" if self.packs else self.form].format(
            name=self.name,
            type=self.element,
            result=self.result_element,
            zero="0" if self.type == "i8" else "0.0",
            after=_GELU.format(n=self.n, type=self.element) if self.gelu else "",
            returned="g" if self.gelu else "c",
            b=f"{self.n}x{self.k}" if self.transposed else f"{self.k}x{self.n}",
            b_axes="n, k" if self.transposed else "k, n",
            batch=self.batch,
            n=self.n,
            k=self.k,
            range=f"{self.factor} to {self.factor * self.largest}"
            + (f" step {self.factor}" if self.factor > 1 else ""),
        )

    def multiplied(self, b: Any) -> Any:
        """What FTuner multiplies where it is passed `b`, a tensor of PyTorch."""
        if not self.packs:
            return b
        # Steps of 128 bytes along k, groups of eight columns, runs of 16 bytes.
        run = 16 // self.element_bytes
        parts = b.reshape(self.k // (8 * run), self.n // 8, 8, 8, run)
        return parts.permute(1, 3, 0, 2, 4).reshape(b.shape)

    def options(self) -> list[str]:
        """What the compiler has to know beside the module."""
        options = [f"--paths={self.paths}"] if self.paths else []
        if self.type == "tf32":
            options.append("--precision=" + ("tf32-truncate" if self.truncates else "tf32"))
        return options

    def grid(self, wanted: Sequence[int] | None = None) -> list[int]:
        """Returns the sizes to measure, those of `wanted` alone if it is given: first the sizes of
        `first`, then the others in the order of `spread`."""
        known = sorted(self.sizes) or range(1, self.largest + 1)
        chosen = set(wanted or known)
        order = [known[place - 1] for place in spread(len(known))]
        return [size for size in dict.fromkeys((*self.first, *order)) if size in chosen]

    def beyond(self) -> tuple[int, ...]:
        """Sizes outside of the range, which must be right as well."""
        return 0, self.largest + 1, self.largest * 25 // 16, 2 * self.largest + 1

    def symbol_size(self, size: int) -> int:
        """The value of the module's symbol M or T."""
        return self.factor * size


_DENSE = """\
#mk = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> ({b_axes})>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
module attributes {{ukernel.symbols = {{T = #ukernel.range<{range}>}}}} {{
  func.func @{name}(%a: tensor<?x{k}x{type}> {{ukernel.shape = ["T", {k}]}},
                    %b: tensor<{b}x{type}>) -> tensor<?x{n}x{result}> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant {zero} : {result}
    %m = tensor.dim %a, %c0 : tensor<?x{k}x{type}>
    %empty = tensor.empty(%m) : tensor<?x{n}x{result}>
    %start = linalg.fill ins(%zero : {result}) outs(%empty : tensor<?x{n}x{result}>) -> tensor<?x{n}x{result}>
    %c = linalg.matmul indexing_maps = [#mk, #b, #mn]
                       ins(%a, %b : tensor<?x{k}x{type}>, tensor<{b}x{type}>)
                       outs(%start : tensor<?x{n}x{result}>) -> tensor<?x{n}x{result}>{after}
    return %{returned} : tensor<?x{n}x{result}>
  }}
}}
"""

_GELU = """
    %g = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}}
           ins(%c : tensor<?x{n}x{type}>) outs(%empty : tensor<?x{n}x{type}>) {{
    ^bb0(%x: {type}, %old: {type}):
      %wide = arith.extf %x : {type} to f32
      %root = arith.constant 0.70710678118654752 : f32
      %one = arith.constant 1.0 : f32
      %half = arith.constant 0.5 : f32
      %scaled = arith.mulf %wide, %root : f32
      %erf = math.erf %scaled : f32
      %sum = arith.addf %erf, %one : f32
      %part = arith.mulf %wide, %half : f32
      %result = arith.mulf %part, %sum : f32
      %narrow = arith.truncf %result : f32 to {type}
      linalg.yield %narrow : {type}
    }} -> tensor<?x{n}x{type}>"""

_NT = """\
#mk = affine_map<(b, m, n, k) -> (b, m, k)>
#nk = affine_map<(b, m, n, k) -> (b, n, k)>
#mn = affine_map<(b, m, n, k) -> (b, m, n)>
module attributes {{ukernel.symbols = {{T = #ukernel.range<{range}>}}}} {{
  func.func @{name}(%a: tensor<{batch}x?x{k}x{type}> {{ukernel.shape = [{batch}, "T", {k}]}},
                    %b: tensor<{batch}x?x{k}x{type}> {{ukernel.shape = [{batch}, "T", {k}]}})
      -> tensor<{batch}x?x?x{type}> {{
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : {type}
    %m = tensor.dim %a, %c1 : tensor<{batch}x?x{k}x{type}>
    %n = tensor.dim %b, %c1 : tensor<{batch}x?x{k}x{type}>
    %empty = tensor.empty(%m, %n) : tensor<{batch}x?x?x{type}>
    %start = linalg.fill ins(%zero : {type})
                         outs(%empty : tensor<{batch}x?x?x{type}>) -> tensor<{batch}x?x?x{type}>
    %c = linalg.batch_matmul indexing_maps = [#mk, #nk, #mn]
           ins(%a, %b : tensor<{batch}x?x{k}x{type}>, tensor<{batch}x?x{k}x{type}>)
           outs(%start : tensor<{batch}x?x?x{type}>) -> tensor<{batch}x?x?x{type}>
    return %c : tensor<{batch}x?x?x{type}>
  }}
}}
"""

_NN = """\
module attributes {{ukernel.symbols = {{T = #ukernel.range<{range}>}}}} {{
  func.func @{name}(%a: tensor<{batch}x?x?x{type}> {{ukernel.shape = [{batch}, "T", "T"]}},
                    %b: tensor<{batch}x?x{n}x{type}> {{ukernel.shape = [{batch}, "T", {n}]}})
      -> tensor<{batch}x?x{n}x{type}> {{
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : {type}
    %m = tensor.dim %a, %c1 : tensor<{batch}x?x?x{type}>
    %empty = tensor.empty(%m) : tensor<{batch}x?x{n}x{type}>
    %start = linalg.fill ins(%zero : {type})
                         outs(%empty : tensor<{batch}x?x{n}x{type}>) -> tensor<{batch}x?x{n}x{type}>
    %c = linalg.batch_matmul ins(%a, %b : tensor<{batch}x?x?x{type}>, tensor<{batch}x?x{n}x{type}>)
           outs(%start : tensor<{batch}x?x{n}x{type}>) -> tensor<{batch}x?x{n}x{type}>
    return %c : tensor<{batch}x?x{n}x{type}>
  }}
}}
"""

# What the compiler makes of a product whose weights are constants that it packs.
_PACKED = """\
#mk = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> ({b_axes})>
#mn = affine_map<(m, n, k) -> (m, n)>
module attributes {{ukernel.symbols = {{T = #ukernel.range<{range}>}}}} {{
  func.func @{name}(%a: tensor<?x{k}x{type}> {{ukernel.shape = ["T", {k}]}},
                    %b: tensor<{b}x{type}>) -> tensor<?x{n}x{type}> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x{k}x{type}>
    %empty = tensor.empty(%m) : tensor<?x{n}x{type}>
    %c = ukernel.workload ins(%a, %b : tensor<?x{k}x{type}>, tensor<{b}x{type}>)
      init(%zero : f32) outs(%empty : tensor<?x{n}x{type}>) maps = [#mk, #b, #mn]
      ranges = [#ukernel.range<{range}>, #ukernel.range<{n} to {n}>, #ukernel.range<{k} to {k}>]
      packed contract {{
      ^bb0(%x: {type}, %y: {type}, %s: f32):
        %xe = arith.extf %x : {type} to f32
        %ye = arith.extf %y : {type} to f32
        %p = arith.mulf %xe, %ye : f32
        %t = arith.addf %s, %p : f32
        ukernel.yield %t : f32
      }} epilogue {{
      ^bb0(%s: f32):
        %r = arith.truncf %s : f32 to {type}
        ukernel.yield %r : {type}
      }} {{ukernel.extents = [[1, "T"], unit, unit]}} -> tensor<?x{n}x{type}>
    return %c : tensor<?x{n}x{type}>
  }}
}}
"""

_TEXT = {"dense": _DENSE, "linear": _DENSE, "nt": _NT, "nn": _NN, "packed": _PACKED}

# Tokens of a step of a language model: those of a decoding batch, of short prompts, of long ones,
# and some that are no multiples of anything.
TOKENS = (
    *(1, 2, 4, 7, 8, 16, 24, 32, 48, 53, 64, 96, 100, 128, 192, 256, 333, 384, 512),
    *(768, 1000, 1024, 1536, 2048, 3072, 4096),
)

# Rows of the products that decide most: every number up to a little more than a tile, numbers next to
# multiples of tiles, and powers of two.
DENSE_TOKENS = tuple(sorted({*range(1, 137), 257, 1008, 1040, *TOKENS}))

# Rows that come first: the ends, sizes at and beside the heights of tiles, and large ones.
FIRST_TOKENS = (
    *(1, 4096, 100, 128, 2048, 16, 48, 53, 64, 8, 97, 129, 257, 1024, 1008, 1040, 32, 33, 104, 4),
    *(256, 512, 65, 96, 120),
)


def _dense(type: str, factor: int = 1) -> Workload:
    rows, name = ("T", "dense") if factor == 1 else (f"{factor}·T", f"dense{factor}")
    words = "" if type == "f32" else f", {type}"
    name += "" if type == "f32" else f"_{type}"
    title = f"Dense ({rows}, 2304, 768){words}"
    return Workload(name, title, "dense", factor, 1, 2304, 768, 128, type)


def _llama(
    layer: str, n: int, k: int, type: str = "f16", truncates: bool = False, packs: bool = False
) -> Workload:
    """A projection of Llama-2-7B."""
    sizes = TOKENS if type in ("tf32", "i8") or packs else DENSE_TOKENS
    name = f"llama_{layer}" + ("" if type == "f16" else f"_{type}")
    title = f"Llama-2-7B {layer} (T, {n}, {k}), {type}"
    if truncates:
        name, title = f"{name}_truncate", f"{title}, cut off"
    if packs:
        name, title = f"{name}_packed", f"{title}, packed"
    return Workload(
        name,
        title,
        "linear",
        1,
        1,
        n,
        k,
        4096,
        type,
        sizes,
        truncates=truncates,
        packs=packs,
        first=tuple(size for size in FIRST_TOKENS if size in sizes),
    )


def _bert_up(gelu: bool) -> Workload:
    """The up-projection of BERT-base, as a model has it."""
    name, words = ("bert_up_gelu", " and GELU") if gelu else ("bert_up", "")
    title = f"BERT-base up (T, 3072, 768){words}, f16"
    return Workload(
        name,
        title,
        "linear",
        1,
        1,
        3072,
        768,
        4096,
        "f16",
        TOKENS if gelu else DENSE_TOKENS,
        gelu=gelu,
        first=tuple(size for size in FIRST_TOKENS if size in TOKENS or not gelu),
    )


def _small_linear(
    name: str,
    type: str,
    truncates: bool = False,
    packs: bool = False,
    gelu: bool = False,
    k: int = 64,
) -> Workload:
    title = f"Linear (T, 96, {k}), {type}" + (", cut off" if truncates else "")
    title += (", packed" if packs else "") + (", GELU" if gelu else "")
    return Workload(
        name,
        title,
        "linear",
        1,
        1,
        96,
        k,
        64,
        type,
        (1, 5, 64),
        truncates=truncates,
        packs=packs,
        gelu=gelu,
    )


# Projections of Llama-2-7B: name, columns and length of the sums.
LLAMA = (("out", 4096, 4096), ("down", 4096, 11008), ("qkv", 12288, 4096), ("up", 22016, 4096))

# The operators of the paper, and the products of attention of BERT-base with a batch of 16; then
# those for tensor cores.
FULL = (
    _dense("f32"),
    _dense("f32", 16),
    Workload("batch_nt", "BatchMatmul NT [192, T, 64] · [192, T, 64]", "nt", 1, 192, 0, 64, 128),
    Workload("batch_nn", "BatchMatmul NN [192, T, T] · [192, T, 64]", "nn", 1, 192, 64, 0, 128),
    # As a model has it: weights [N, K], the up-projection of BERT-base.
    Workload(
        "linear", "Linear (T, 3072, 768)", "linear", 1, 1, 3072, 768, TOKENS[-3], sizes=TOKENS[:-2]
    ),
    *(_llama(*layer, type) for type in ("f16", "bf16") for layer in LLAMA),
    _dense("f16", 16),
    _bert_up(False),
    _bert_up(True),
    _dense("f16"),
    _dense("bf16"),
    _dense("tf32"),
    _llama("out", 4096, 4096, "tf32"),
    _llama("out", 4096, 4096, "tf32", truncates=True),
    _llama("out", 4096, 4096, packs=True),
    _llama("out", 4096, 4096, "i8"),
)

# The same forms, small enough for the emulator: for rehearsals without a GPU.
SMALL = (
    Workload("dense", "Dense (T, 96, 32)", "dense", 1, 1, 96, 32, 16),
    Workload("dense16", "Dense (4·T, 96, 32)", "dense", 4, 1, 96, 32, 16),
    Workload("batch_nt", "BatchMatmul NT [3, T, 16] · [3, T, 16]", "nt", 1, 3, 0, 16, 16),
    Workload("batch_nn", "BatchMatmul NN [3, T, T] · [3, T, 16]", "nn", 1, 3, 16, 0, 16),
    Workload("linear", "Linear (T, 96, 32)", "linear", 1, 1, 96, 32, 16),
    Workload("dense_f16", "Dense (T, 96, 32), f16", "dense", 1, 1, 96, 32, 16, "f16"),
    Workload("dense_bf16", "Dense (T, 96, 32), bf16", "dense", 1, 1, 96, 32, 16, "bf16"),
    Workload("dense_tf32", "Dense (T, 96, 32), tf32", "dense", 1, 1, 96, 32, 16, "tf32"),
    _small_linear("llama_out", "f16"),
    _small_linear("llama_out_tf32_truncate", "tf32", truncates=True),
    _small_linear("llama_out_packed", "f16", packs=True),
    _small_linear("llama_out_i8", "i8"),
    # Its programs have slices of k.
    _small_linear("bert_up_gelu", "f16", gelu=True, k=256),
)


def matching(workloads: Sequence[Workload], patterns: str) -> tuple[Workload, ...]:
    """Those whose names match one of the patterns, as of file names, with commas between; all
    without a pattern. Raises ValueError for one that matches none."""
    wanted = [pattern for pattern in patterns.split(",") if pattern]
    for pattern in wanted:
        if not any(fnmatch.fnmatchcase(workload.name, pattern) for workload in workloads):
            names = ", ".join(workload.name for workload in workloads)
            raise ValueError(f"--workloads: expected one of {names}, but got '{pattern}'")
    return tuple(
        workload
        for workload in workloads
        if not wanted or any(fnmatch.fnmatchcase(workload.name, pattern) for pattern in wanted)
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
