"""Fits the constants of model.py: global, one device, all but one device.

    python3 fit.py --data FOLDER --out FOLDER

Reads gemm_latency_train.csv.gz and gemm_configs_rtx3090.csv.gz of --data (README, data).
Writes fit.json (constants) and pred.npz (predictions, us) to --out. About 10 s.
"""

import argparse
import json
import os
import sys
import time

import numpy as np
import pandas as pd
from scipy.optimize import least_squares
from scipy.stats import spearmanr

import model as M
import xgemm

# Launch floor, us: median of the shapes below 2 MFLOP of a device and op.
FLOOR = {
    "linear": dict(p4=55, p100=96, t4=55, v100=66, a100=55),
    "bmm": dict(p4=33, p100=54, t4=36, v100=48, a100=33),
}
DEVS = ("p4", "p100", "t4", "v100", "a100")
# Fixed: f, other, pp, blk, l2f, rows0, idle, c (physics, or rounded from first fits).
XFREE = ["pw", "wb", "line", "lat_d", "spill"]  # from RTX 3090 configurations
# from vendor latencies
VFREE = ["l2b", "lat_g", "dr", "wm", "run", "rk0", "kap", "ef", "e2", "ed", "ph", "spk"]
PERDEV = ["c", "f", "blk", "ef", "ph", "lat_g", "l2b", "wm", "run"]  # calibrated per device


def take(fields, rows):
    """The rows of every array field; scalars stay."""
    return {n: (v[rows] if np.ndim(v) else v) for n, v in fields.items()}


class Vendor:
    """Vendor latencies as blocks, grid, device facts and measured us (y)."""

    def __init__(self, data):
        d = pd.read_csv(os.path.join(data, "gemm_latency_train.csv.gz"), low_memory=False)
        d["floor_us"] = [FLOOR[op][name] for op, name in zip(d.op, d.device)]
        self.d = d
        self.parts, self.grid = M.vendor(d)
        self.dev = M.device(d.device)
        self.y = d.latency_ms.values * 1e3
        self.above = self.y > 2 * d.floor_us.values
        self.fold = d.fold.values
        self.name = d.device.values
        self.lin = (d.op == "linear").values
        self.group = np.char.add(self.name.astype(str), self.lin.astype(str))

    def facts(self, rows):
        parts = [(take(block, rows), count[rows]) for block, count in self.parts]
        return take(self.dev, rows), parts, take(self.grid, rows)

    def predict(self, k, rows=slice(None), full=False):
        return M.predict(*self.facts(rows), k, full)

    def pick(self, mask, n, seed=0):
        """Up to n rows of the mask, as many of each device and op."""
        rng = np.random.default_rng(seed)
        rows = np.where(mask)[0]
        group = self.group[rows]
        groups = np.unique(group)
        share = max(1, n // len(groups))
        picked = [
            rng.choice(rows[group == g], min((group == g).sum(), share), replace=False)
            for g in groups
        ]
        return np.concatenate(picked)

    def part(self, rows):
        """A function of constants that returns the log residuals of the rows."""
        facts, measured = self.facts(rows), np.log(self.y[rows])
        return lambda k: np.log(M.predict(*facts, k)) - measured


class Xgemm:
    """RTX 3090 configurations that differ in effect."""

    def __init__(self, data):
        self.f = xgemm.distinct(data)
        self.y = self.f.time_ms.values * 1e3
        self.train = self.f.h.values != 0
        self.staged = ((self.f.SA == 1) & (self.f.SB == 1)).values
        self.dev = M.device("rtx3090")
        self.parts, self.grid = M.xgemm(self.f)

    def predict(self, k, full=False):
        return M.predict(self.dev, self.parts, self.grid, k, full)

    def part(self, mask=None):
        """As Vendor.part; fast kernels weigh more."""
        rows = np.where(self.train if mask is None else mask)[0]
        parts = [(take(block, rows), count[rows]) for block, count in self.parts]
        grid, measured = take(self.grid, rows), np.log(self.y[rows])
        weight = (self.y.min() / self.y[rows]) ** 0.5
        return lambda k: weight * (np.log(M.predict(self.dev, parts, grid, k)) - measured)

    def judge(self, t, mask=None):
        """Ranking by t (anything that ranks, smaller is better)."""
        mask = np.ones(len(self.y), bool) if mask is None else mask
        rows = np.where(mask)[0]
        y, order, staged = self.y, rows[np.argsort(t[rows], kind="stable")], mask & self.staged
        best = y[rows].min()
        return dict(
            n=len(rows),
            spearman=spearmanr(t[rows], y[rows])[0],
            staged=spearmanr(t[staged], y[staged])[0],
            top1=best / y[order[0]],
            top10=best / y[order[:10]].min(),
            mape=np.abs(t[rows] / y[rows] - 1).mean(),
        )


def fit(parts, k0, free, prior=0.0, nfev=60):
    """Constants that fit the log residuals of parts (functions of constants).

    Bounded, in logarithms, robust (soft L1 at 0.08); prior pulls towards k0.
    """
    low = np.log([M.CONSTANTS[n][1] for n in free])
    high = np.log([M.CONSTANTS[n][2] for n in free])
    z0 = np.clip(np.log([k0[n] for n in free]), low + 1e-6, high - 1e-6)

    def residuals(z):
        k = {**k0, **dict(zip(free, np.exp(z)))}
        r = [p(k) for p in parts]
        return np.concatenate(r + [prior * (z - z0)] if prior else r)

    r = least_squares(
        residuals, z0, bounds=(low - 1e-9, high + 1e-9), loss="soft_l1", f_scale=0.08, max_nfev=nfev
    )
    return {**k0, **dict(zip(free, map(float, np.exp(r.x))))}


def mape(t, y):
    """Mean of |predicted / measured - 1|."""
    return float(np.abs(t / y - 1).mean())


def errors(vendor, t, mask):
    """MAPE of a mask, pooled and by device."""
    out = {n: mape(t[mask & (vendor.name == n)], vendor.y[mask & (vendor.name == n)]) for n in DEVS}
    return dict(pooled=mape(t[mask], vendor.y[mask]), **out)


def show(title, figures):
    print(f"{title:<34}", " ".join(f"{n} {x:.4g}" for n, x in figures.items()), flush=True)


def arguments(doc, *more):
    """Parses --data and --out (and more: (name, keywords)); ends with an error for bad folders."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder of the CSV files (README, data)")
    parser.add_argument("--out", required=True, help="folder of the results")
    for name, keywords in more:
        parser.add_argument(name, **keywords)
    options = parser.parse_args()
    for name in ("gemm_latency_train.csv.gz", "gemm_configs_rtx3090.csv.gz"):
        if not os.path.exists(os.path.join(options.data, name)):
            parser.error(f"--data: expected {name} in {options.data}, but it is not there")
    os.makedirs(options.out, exist_ok=True)
    return options


def constants(out):
    """The constants that fit.py wrote to out; ends with an error without them."""
    path = os.path.join(out, "fit.json")
    if not os.path.exists(path):
        sys.exit(f"error: expected {path}, but it is not there: run fit.py with the same --out")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    options = arguments(__doc__)
    begin = time.time()
    v, x = Vendor(options.data), Xgemm(options.data)
    test = v.above & (v.fold == 0)
    k = fit([v.part(v.pick(v.above & (v.fold != 0), 6000))], M.start(), VFREE)
    tg = v.predict(k)
    show("vendor, fold 0, global", errors(v, tg, test))
    k = fit([x.part()], k, XFREE)
    tx = x.predict(k)
    show("RTX 3090, all", x.judge(tx))
    show("RTX 3090, unseen 20 %", x.judge(tx, ~x.train))
    own, left, td, tl = {}, {}, tg.copy(), tg.copy()
    for n in DEVS:
        m = v.name == n
        rows = v.pick(m & v.above & (v.fold != 0), 3000)
        own[n] = fit([v.part(rows)], k, PERDEV, prior=0.1)
        td[m] = v.predict(own[n], m)
        left[n] = fit([v.part(v.pick(~m & v.above, 5000))], k, VFREE, nfev=30)
        tl[m] = v.predict(left[n], m)
    show("vendor, fold 0, own constants", errors(v, td, test))
    show("vendor, device left out", errors(v, tl, v.above))
    with open(os.path.join(options.out, "fit.json"), "w", encoding="utf-8") as file:
        json.dump(dict(glob=k, own=own, left=left), file, indent=1)
    np.savez(os.path.join(options.out, "pred.npz"), tg=tg, td=td, tl=tl, tx=tx)
    show("constants", {n: k[n] for n in XFREE + VFREE})
    print(f"{time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
