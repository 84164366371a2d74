"""A batched matrix product in Triton, of all types of workloads.

Imports Triton, so only a machine that has it can import this file.
"""

from __future__ import annotations

import itertools

import triton
import triton.language as tl

# Least number of bytes of shared memory that a block may have on the devices at hand.
SHARED_BYTES = 160 * 1024


def _configs(tiles, depths, element_bytes):
    return [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8},
            num_warps=warps,
            num_stages=stages,
        )
        for (m, n, warps), (k, stages) in itertools.product(tiles, depths)
        if (m + n) * k * stages * element_bytes <= SHARED_BYTES
    ]


# Tiles around those that are usual, from flat ones for few rows to square ones: on CUDA cores
# (f32), and on tensor cores.
_CUDA_TILES = [
    (16, 32, 2),
    (16, 64, 4),
    (16, 128, 4),
    (32, 32, 4),
    (32, 64, 4),
    (32, 128, 4),
    (64, 64, 4),
    (64, 128, 8),
    (128, 64, 8),
    (128, 128, 8),
]
_TENSOR_TILES = [
    (16, 32, 2),
    (16, 64, 4),
    (16, 128, 4),
    (32, 64, 4),
    (32, 128, 4),
    (64, 64, 4),
    (64, 128, 4),
    (64, 256, 8),
    (128, 64, 4),
    (128, 128, 8),
    (128, 256, 8),
    (256, 128, 8),
]
_HALF = _configs(_TENSOR_TILES, [(32, 4), (64, 3), (64, 4), (128, 3)], 2)
CONFIGS = {
    "f32": _configs(_CUDA_TILES, [(16, 3), (32, 3), (32, 4)], 4),
    "tf32": _configs(_TENSOR_TILES, [(32, 3), (32, 4), (64, 3)], 4),
    "f16": _HALF,
    "bf16": _HALF,
}


def _bench(call, quantiles):
    return triton.testing.do_bench(call, warmup=1, rep=8, quantiles=quantiles)


def _prune(configs, named_args, **_):
    """Leaves out blocks beyond the bucket's size."""
    kept = [
        config
        for config in configs
        if config.kwargs["BLOCK_M"] <= named_args["bucket_m"]
        and config.kwargs["BLOCK_N"] <= max(32, named_args["bucket_n"])
    ]
    return kept or configs


@triton.jit(do_not_specialize=["M", "bucket_m", "bucket_n", "bucket_k", "batch"])
def kernel(
    a,
    b,
    c,
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_cb,
    stride_cm,
    stride_cn,
    bucket_m,
    bucket_n,
    bucket_k,
    batch,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """C[z] = A[z] · B[z], one block of C for each program, z along the second grid axis."""
    pid = tl.program_id(0)
    z = tl.program_id(1).to(tl.int64)
    grid_m = tl.cdiv(M, BLOCK_M)
    grid_n = tl.cdiv(N, BLOCK_N)
    # Blocks in groups of GROUP_M rows, so that neighbours share columns of B in L2.
    group = pid // (GROUP_M * grid_n)
    first_m = group * GROUP_M
    rows = tl.minimum(grid_m - first_m, GROUP_M)
    pid_m = first_m + (pid % (GROUP_M * grid_n)) % rows
    pid_n = (pid % (GROUP_M * grid_n)) // rows
    offsets_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    # Rows and columns beyond the end read others, which the store masks.
    rows_a = offsets_m % M
    columns_b = offsets_n % N
    offsets_k = tl.arange(0, BLOCK_K)
    pointers_a = a + z * stride_ab + rows_a[:, None] * stride_am + offsets_k[None, :] * stride_ak
    pointers_b = b + z * stride_bb + offsets_k[:, None] * stride_bk + columns_b[None, :] * stride_bn
    sum_ = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        tile_a = tl.load(pointers_a, mask=offsets_k[None, :] < left, other=0.0)
        tile_b = tl.load(pointers_b, mask=offsets_k[:, None] < left, other=0.0)
        sum_ = tl.dot(tile_a, tile_b, sum_, input_precision=PRECISION)
        pointers_a += BLOCK_K * stride_ak
        pointers_b += BLOCK_K * stride_bk
    pointers_c = c + z * stride_cb + offsets_m[:, None] * stride_cm + offsets_n[None, :] * stride_cn
    sum_ = sum_.to(c.dtype.element_ty)
    tl.store(pointers_c, sum_, mask=(offsets_m[:, None] < M) & (offsets_n[None, :] < N))


def precision(type):
    """PRECISION for a type of workloads."""
    return "tf32" if type == "tf32" else "ieee"


# By type of workloads: the kernel, tuned for each bucket of sizes.
TUNED = {
    type: triton.autotune(
        configs=configs,
        key=["bucket_m", "bucket_n", "bucket_k", "batch"],
        prune_configs_by={"early_config_prune": _prune},
        do_bench=_bench,
    )(kernel)
    for type, configs in CONFIGS.items()
}
