"""The time of attention as one kernel in 16 bits, fitted to published rows, for replay_models.py."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import predicted_operators as predicted

#: Queries and keys of a block's tile, as in FlashAttention 2.
TILE = 128
#: The rows that constants are fitted to: elements of a head, and the most tokens (the fused kernels here take up to 384).
HEAD_DIM, MAX_TOKENS = 64, 512
#: Rows of fewer microseconds tell little but the 10 of several launches.
FLOOR = 20.0
BYTES = 2


@dataclass(frozen=True)
class FusedAttention:
    """A block has a tile of the queries of a head and visits the keys tile by tile:

        cycles = start + tiles · TILE² · (4 d / rate + score)
        t      = launch + max(bytes / (bandwidth · δ), max(1, blocks / SMs) · cycles / clock)

    for heads of d elements, `rate` operations of an SM and cycle, δ = `stream_dram_share`, and queries, keys, values and
    results as bytes. The products run at the peak rate: what they lose is in the other two constants, cycles of an SM that
    are taken to be those of any card. score: what the softmax takes for each score. start: of a block.
    """

    start: float
    score: float

    def times(self, device, heads, tokens, head_dim, is_causal=False):
        """Microseconds on a `vendor.Device`, for arrays of heads of all sequences, their tokens, and elements of a head."""
        figures, constants = device.figures, device.constants
        tiles = np.ceil(tokens / TILE)
        visited = (tiles + 1) / 2 if is_causal else tiles
        cycles = self.start + visited * TILE**2 * (4 * head_dim / figures["f16_rate"] + self.score)
        compute = np.maximum(1, heads * tiles / figures["sm_count"]) * cycles / figures["clock_mhz"]
        memory = (
            4
            * heads
            * tokens
            * head_dim
            * BYTES
            / (1e3 * figures["dram_gbps"] * constants["stream_dram_share"])
        )
        return constants["launch"] + np.maximum(compute, memory)


def _columns(rows, *names):
    return np.array([[float(row[name]) for name in names] for row in rows]).T


def _fitted_rows(data):
    return [
        row
        for row in predicted.read_rows(data / "attention_encoder.csv.gz")
        if int(row["head_dim"]) == HEAD_DIM
        and int(row["seq"]) <= MAX_TOKENS
        and float(row["latency_us"]) >= FLOOR
    ]


def spread(data):
    """Times of the slowest over the fastest framework, for each shape of the fitted rows that several of them have."""
    times = {}
    for row in _fitted_rows(data):
        times.setdefault((row["heads"], row["batch"], row["seq"]), []).append(
            (row["framework"], float(row["latency_us"]))
        )
    fastest = []
    for measured in times.values():
        fastest_of = {
            name: min(time for other, time in measured if other == name) for name, _ in measured
        }
        if len(fastest_of) > 1:
            fastest.append(max(fastest_of.values()) / min(fastest_of.values()))
    return np.array(fastest)


def fit(data, device):
    """Constants from attention_encoder (H100, no mask), and how far that is off these rows.

    device: the `vendor.Device` that they were measured on.
    """
    from scipy.optimize import least_squares

    rows = _fitted_rows(data)
    heads, batch, tokens, measured = _columns(rows, "heads", "batch", "seq", "latency_us")

    def ratio(constants):
        return (
            FusedAttention(*constants).times(
                device, heads * batch, tokens, np.full(len(rows), HEAD_DIM)
            )
            / measured
        )

    found = least_squares(lambda x: np.log(ratio(x)), [8000.0, 0.05], bounds=([0, 0], [math.inf, math.inf]),
                          x_scale=[1000.0, 0.01], loss="soft_l1", f_scale=0.1)  # fmt: skip
    return FusedAttention(*found.x), len(rows), abs(ratio(found.x) - 1).mean()


def check(attention, data, device, card, kernel):
    """Number of rows, mean error and geometric mean of predicted over measured of a kernel's prefill of up to MOST_TOKENS."""
    rows = [
        row
        for row in predicted.read_rows(data / "attention_serving.csv.gz")
        if (row["device"], row["phase"], row["kernel"]) == (card, "prefill", kernel)
        and TILE <= int(row["q_len"]) <= MAX_TOKENS
        and float(row["latency_us"]) >= FLOOR
    ]
    heads, batch, tokens, head_dim, measured = _columns(
        rows, "heads", "batch", "q_len", "head_dim", "latency_us"
    )
    ratio = attention.times(device, heads * batch, tokens, head_dim, is_causal=True) / measured
    return len(rows), abs(ratio - 1).mean(), math.exp(np.log(ratio).mean())
