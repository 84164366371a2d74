"""Baselines that the latency model is compared with, on the same rows.

SIA's sum (the paper's equations), roofline × waves, and gradient-boosted trees on the same
facts. SIA has no unit, so for times it gets an offset and a scale; so does the roofline.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from ftuner.latency.measurements.rows import MeasurementTable
from ftuner.latency.model import model

SHARED_BYTES = 128  # per cycle and SM


class Facts:
    """Columns of the rows' launches by name, and of their devices."""

    def __init__(self, rows: MeasurementTable) -> None:
        launches, loaded = rows.launches, model()
        self.part = dict(zip(loaded.part_fields, launches.parts[:, -1].T))
        self.grid = dict(zip(loaded.grid_fields, launches.grids.T))
        self.device = dict(zip(loaded.device_fields, launches.devices[launches.device].T))
        d, g = self.device, self.grid
        self.peak = 2 * d["sm_count"] * d["fp32_lanes"] * d["clock_mhz"]  # FLOP per us
        self.dram = d["dram_gbps"] * 1e3  # bytes per us
        self.shared = d["sm_count"] * d["clock_mhz"] * SHARED_BYTES
        blocks, sms = self.part["count"], d["sm_count"]
        self.waves = blocks / (np.ceil(blocks / sms) * sms)
        operands = g["blocks_x"] * g["lhs_bytes"] + g["blocks_y"] * g["rhs_bytes"]
        self.moved = g["problems"] * operands + g["output_bytes"]
        self.once = g["problems"] * (g["lhs_bytes"] + g["rhs_bytes"]) + g["output_bytes"]
        # Elements of the output over those that blocks cover.
        covered = blocks * g["tile_x"] * g["tile_y"] * 2 * g["reduce_length"]
        self.useful = np.minimum(1, rows.flop / covered)


def sia(rows: MeasurementTable) -> np.ndarray:
    """SIA's sum of compute over memory, useful share and waves; more is better."""
    f = Facts(rows)
    if "MDIMC" in rows.extra:
        x = rows.extra
        fragments = x["MWG"] / x["MDIMC"] + x["NWG"] / x["NDIMC"]
    else:
        accumulators = f.part["fma"] / f.part["warps"] / f.part["k_tile"]
        thread_m = 2 ** np.ceil(np.log2(accumulators) / 2)
        fragments = thread_m + accumulators / thread_m
    registers = f.part["warps"] * 32 * fragments
    tile = f.grid["tile_x"] + f.grid["tile_y"]
    transactions = f.part["count"] * f.grid["reduce_length"] * 4 * (tile + registers)
    memory = np.maximum(f.moved / f.dram, transactions / f.shared)
    return rows.flop / f.peak / memory + f.useful + f.waves


def sia_time(rows: MeasurementTable) -> np.ndarray:
    """Ideal microseconds over SIA: what it ranks by, as a time."""
    return rows.flop / Facts(rows).peak / sia(rows)


def roofline(rows: MeasurementTable, by_tile: bool = False) -> np.ndarray:
    """max(arithmetic, memory) / share of the waves that blocks fill, in microseconds.

    Memory moves each operand once, or by tile: once for each block that reads it.
    """
    f = Facts(rows)
    moved = f.moved if by_tile else f.once
    return np.maximum(rows.flop / f.peak / f.useful, moved / f.dram) / f.waves


def affine(rows: MeasurementTable, x: np.ndarray, train: np.ndarray, each: bool) -> np.ndarray:
    """max(floor, c + s · x), with c and s from the rows of train: for each device and kind of
    rows, or for all devices together."""
    out = np.empty(len(rows))
    device = rows.device if each else np.zeros(len(rows), int)
    for one in np.unique(device):
        for group in sorted(set(rows.group)):
            own = (device == one) & (rows.group == group)
            q = own & train
            if not q.any():
                out[own] = np.nan
                continue
            measured, floor, xs = rows.microseconds[q], rows.floor[q], x[q]

            def residuals(z: np.ndarray) -> np.ndarray:
                time = np.exp(z[0]) + np.exp(z[1]) * xs
                return np.log(np.maximum(np.maximum(floor, 1e-3), time) / measured)

            begin = [np.log(20.0), np.log(np.median(measured / xs))]
            c, s = np.exp(least_squares(residuals, begin, loss="soft_l1", f_scale=0.1).x)
            out[own] = np.maximum(rows.floor[own], c + s * x[own])
    return out


def tree_features(rows: MeasurementTable) -> np.ndarray:
    """Shape, tile, launch and device, as columns."""
    f, kinds = Facts(rows), sorted(set(rows.group))
    figures = ("sm_count", "clock_mhz", "fp32_lanes", "dram_gbps", "l2_bytes", "node_efficiency")
    columns = [f.device[name] for name in (*figures, "board_power_watts")]
    columns += [f.part["count"] / f.device["sm_count"], f.grid["reduce_length"], rows.flop]
    columns += [np.array([kinds.index(group) for group in rows.group])]
    columns += [values.astype(float) for values in rows.extra.values()]
    return np.column_stack(columns)


def trees(features: np.ndarray, measured: np.ndarray, train: np.ndarray, rows: np.ndarray):
    """Microseconds of `rows` by trees trained on `train` (masks)."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    fitted = HistGradientBoostingRegressor(
        max_iter=300, learning_rate=0.1, max_leaf_nodes=63, l2_regularization=1.0, random_state=0
    ).fit(features[train], np.log(measured[train]))
    return np.exp(fitted.predict(features[rows]))
