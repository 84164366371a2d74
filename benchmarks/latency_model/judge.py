"""Judges the constants of fit.py: ranking, errors, baselines, calibration size, ablations, figures.

    python3 judge.py --data FOLDER --out FOLDER [--full]

Reads fit.json and pred.npz of --out; writes results.json, rtx3090.png and vendor.png there.
About a minute; --full adds gradient-boosted trees and the ablations (about 10 minutes).
"""

import copy
import json
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import model as M
import xgemm
from fit import (
    DEVS,
    PERDEV,
    VFREE,
    XFREE,
    Vendor,
    Xgemm,
    arguments,
    constants,
    errors,
    fit,
    mape,
    show,
)

SHARED_BYTES = 128  # per cycle and SM, of SIA


def both(x, t):
    return dict(all=x.judge(t), test=x.judge(t, ~x.train))


def untied(x, t, draws=100):
    """Both judgements of a score with ties: mean over random orders of the ties."""
    rng = np.random.default_rng(0)
    scale = 1e-12 * np.abs(t).mean()
    r = [both(x, t + scale * rng.random(len(t))) for _ in range(draws)]
    return {
        part: {n: float(np.mean([q[part][n] for q in r])) for n in r[0][part]}
        for part in ("all", "test")
    }


def configurations(x, k):
    """Rankings of the RTX 3090 configurations: the model, SIA's sum, roofline times waves."""
    rounded = {n: float("%.2g" % value) for n, value in k.items()}
    out = {"latency": both(x, x.predict(k)), "latency, 2 digits": both(x, x.predict(rounded))}
    g, (_, blocks), dev, f = x.grid, x.parts[0], x.dev, x.f
    shared, dram = dev["sm"] * dev["mhz"] * SHARED_BYTES, dev["dram"] * 1e3  # bytes per us
    data = g["gx"] * g["bytes_a"] + g["gy"] * g["bytes_b"] + 4 * 4096.0**2 * 2
    registers = f.threads.values * (f.thread_m.values + f.thread_n.values)
    transactions = blocks * 4096 * 4 * (g["tx"] + g["ty"] + registers)
    compute = 2 * 4096.0**3 / 35.6e6  # us at 35.6 TFLOP/s
    memory = np.maximum(data / dram, transactions / shared)
    waves = blocks / (np.ceil(blocks / dev["sm"]) * dev["sm"])
    out["SIA"] = untied(x, -(compute / memory + 1 + waves))
    out["roofline x waves"] = untied(x, np.maximum(compute, data / dram) / waves)
    return out


def affine(v, x, train):
    """max(floor, c + s * x), c and s fitted for each device and op."""
    t = np.empty_like(v.y)
    for n in DEVS:
        for linear in (True, False):
            rows = (v.name == n) & (v.lin == linear)
            q, floor = rows & train, v.grid["floor"]
            begin = [np.log(20.0), np.log(np.median(v.y[q] / x[q]))]

            def residuals(z):
                return np.log(np.maximum(floor[q], np.exp(z[0]) + np.exp(z[1]) * x[q]) / v.y[q])

            c, s = np.exp(least_squares(residuals, begin, loss="soft_l1", f_scale=0.1).x)
            t[rows] = np.maximum(floor[rows], c + s * x[rows])
    return t


def vendor_work(v):
    """FLOPs of the vendor rows and the waves' efficiency."""
    blocks = v.parts[0][1]
    d = v.d
    flop = 2.0 * d.B.values * d.M.values * d.N.values * d.K.values
    return flop, blocks / (np.ceil(blocks / v.dev["sm"]) * v.dev["sm"])


def vendor_baselines(v):
    """SIA's sum and roofline times waves for the vendor rows, fold 0."""
    g, (b, blocks), dev = v.grid, v.parts[0], v.dev
    flop, waves = vendor_work(v)
    peak, dram = 2 * dev["sm"] * dev["lanes"] * dev["mhz"], dev["dram"] * 1e3  # per us
    covered = g["gx"] * g["tx"] * g["gy"] * g["ty"]
    padding = v.d.M.values * v.d.N.values / covered
    data = g["batch"] * (g["gx"] * g["bytes_a"] + g["gy"] * g["bytes_b"]) + g["bytes_c"]
    once = g["batch"] * (g["bytes_a"] + g["bytes_b"]) + g["bytes_c"]
    acc = b["fma"] / b["warps"] / 8
    rm = 2 ** np.ceil(np.log2(acc) / 2)
    slices = np.where(b["l2_bytes"] > 32 * (g["tx"] + g["ty"]), 4, 1)
    registers = b["warps"] * 32 * (rm + acc / rm) / slices
    transactions = blocks * g["k_len"] * 4 * (g["tx"] + g["ty"] + registers)
    shared = dev["sm"] * dev["mhz"] * SHARED_BYTES
    sia = (flop / peak) / np.maximum(data / dram, transactions / shared) + padding + waves
    roof = np.maximum(flop / peak / padding, once / dram) / waves
    train, test = v.above & (v.fold != 0), v.above & (v.fold == 0)
    return {
        "SIA, calibrated": errors(v, affine(v, flop / peak / sia, train), test),
        "roofline x waves, raw": errors(v, np.maximum(g["floor"], roof), test),
        "roofline x waves, calibrated": errors(v, affine(v, roof, train), test),
    }


def trees(v, x):
    """Gradient-boosted trees on the same facts: what a free model reaches."""
    from sklearn.ensemble import HistGradientBoostingRegressor as Trees

    f = x.f
    names = [
        "MWG",
        "NWG",
        "MDIMC",
        "NDIMC",
        "MDIMA",
        "NDIMB",
        "VWM",
        "VWN",
        "SA",
        "SB",
        "threads",
        "thread_m",
        "thread_n",
        "smem_bytes",
    ]
    xx = f[names].values.astype(float)
    xx[:, 4] *= f.SA  # no effect on what is not staged
    xx[:, 5] *= f.SB
    h = Trees(max_iter=600, learning_rate=0.08, max_leaf_nodes=31)
    h.fit(xx[x.train], np.log(x.y[x.train]))
    out = {"trees, RTX 3090": both(x, np.exp(h.predict(xx)))}
    names = ["B", "M", "N", "K", "tile_m", "tile_n", "grid_x", "grid_y", "grid_z", "block_x"]
    facts = [v.dev[n] for n in ("sm", "mhz", "lanes", "dram", "l2", "tdp", "nm")]
    work = [v.lin, vendor_work(v)[0], v.parts[0][1] / v.dev["sm"], v.grid["k_len"]]
    xv = np.column_stack([v.d[names].values.astype(float)] + facts + work)

    def predict(train, rows):
        h = Trees(max_iter=600, learning_rate=0.08, max_leaf_nodes=63, l2_regularization=1.0)
        return np.exp(h.fit(xv[train], np.log(v.y[train])).predict(xv[rows]))

    t, every = np.empty_like(v.y), np.ones(len(v.y), bool)
    t[:] = predict(v.above & (v.fold != 0), every)
    out["trees, all devices"] = errors(v, t, v.above & (v.fold == 0))
    for n in DEVS:
        t[v.name == n] = predict(v.above & (v.name != n), v.name == n)
    out["trees, left out"] = errors(v, t, v.above)
    return out


def calibration(v, left):
    """Error on fold 0 after calibrating a device on n rows; prior: constants fitted without it."""
    out, test = {}, v.above & (v.fold == 0)
    for n_rows, prior in ((0, 0), (30, 0.5), (100, 0.3), (300, 0.2), (1000, 0.1)):
        figures = {}
        for n in DEVS:
            own, q, e = v.name == n, test & (v.name == n), []
            for seed in range(5 if n_rows else 1):
                k = left[n]
                if n_rows:
                    rows = np.where(own & v.above & (v.fold != 0))[0]
                    rows = np.random.default_rng(seed).choice(rows, n_rows, replace=False)
                    k = fit([v.part(rows)], k, PERDEV, prior=prior, nfev=25)
                e.append(mape(v.predict(k, q), v.y[q]))
            figures[n], figures[n + " worst"] = float(np.median(e)), max(e)
        figures["mean"] = float(np.mean([figures[n] for n in DEVS]))
        out[f"calibration, {n_rows} rows"] = figures
        show(f"calibration, {n_rows} rows", {n: figures[n] for n in ("mean", *DEVS)})
    return out


def configuration_ablations(x, k0, data):
    """The five constants refitted without one part of the model at a time."""
    f, n_rows = x.f, len(x.y)
    plain = xgemm.distinct(data, merge=False)

    def counts(f, kind):
        """Cost of all shared memory and direct accesses; kind: wc (cycles) or wf (wavefronts)."""
        direct = "gc" if kind == "wc" else "wf"
        total = f[f"stA_{kind}"] + f[f"stB_{kind}"]
        for o, s in (("A", f.SA), ("B", f.SB)):
            total = total + s * f[f"fr{o}_{kind}"] + (1 - s) * f[f"fr{o}_{direct}"]
        return total.values.astype(float)

    def instructions(f, direct):
        fragments = (f.SA + direct * (1 - f.SA)) * f.frA_instr
        return (fragments + (f.SB + direct * (1 - f.SB)) * f.frB_instr).values.astype(float)

    copies_plain = plain.stA_ldg + plain.stB_ldg + plain.stA_sts + plain.stB_sts
    stores = (f.stA_sts + f.stB_sts).values.astype(float)
    always, zero = np.ones(n_rows, bool), np.zeros(n_rows)
    block = x.parts[0][0]
    cases = {
        "full": ({}, {}),
        "no bank conflicts": (dict(mio=2 * (instructions(f, 1) + stores)), {}),
        "no floor of 2 cycles": (dict(mio=counts(f, "wf")), {}),
        "no merging of B accesses": (
            dict(mio=counts(plain, "wc"), other=instructions(plain, 2) + 2 * copies_plain.values),
            {},
        ),
        "loads write no registers": ({}, dict(wb=1e-6)),
        "no cost of lines": ({}, dict(line=1e-6)),
        "no spills": ({}, dict(spill=1e-9)),
        "no latency": (dict(loads=zero, direct=zero), {}),
        "direct latency not by registers": (dict(direct=256.0 * (2 - f.SA - f.SB).values), {}),
        "no L2 bound": ({}, dict(l2b=1e9)),
        "p = 3": (dict(pipelined=always), dict(pp=3.0)),
        "p = infinity (max)": (dict(pipelined=always), dict(pp=60.0)),
        "p = 1 (sum)": ({}, dict(pw=1e-6)),
        "registers not squeezed": (
            dict(regs=np.minimum(block["regs"] / (1 - M.XREG["sq"]), 255)),
            {},
        ),
        "no occupancy limit by registers": (dict(regs=32 + zero), {}),
    }
    out = {}
    for name, (change, k) in cases.items():
        y = copy.copy(x)
        y.parts = [({**b, **change}, n) for b, n in x.parts]
        fitted = fit([y.part()], {**k0, **k}, [n for n in XFREE if n not in k], nfev=40)
        out["configurations: " + name] = both(y, y.predict(fitted))
        show(name, out["configurations: " + name]["all"])
    return out


def vendor_ablations(v, k0):
    """The vendor constants refitted without one part of the model at a time."""
    train, test = v.above & (v.fold != 0), v.above & (v.fold == 0)
    rows = v.pick(train, 6000)
    without = {n: v.pick(v.above & (v.name != n), 5000) for n in ("v100", "a100")}
    zero = np.zeros(len(v.y))
    cases = {
        "full": ({}, {}, {}),
        "no launch offset": (dict(c=1e-6), {}, {}),
        "no floor": ({}, {}, dict(floor=zero)),
        "no latency": (dict(lat_g=1e-6), {}, {}),
        "no block start": (dict(blk=1e-6), {}, {}),
        "no L2 bound": (dict(l2b=1e9), {}, {}),
        "no re-reads from DRAM": (dict(l2f=1e9), {}, {}),
        "no narrow runs": (dict(run=1e-9), {}, {}),
        "no drift": (dict(kap=1e12), {}, {}),
        "no misaligned writes": (dict(wm=1e-9), {}, {}),
        "no swizzle known": ({}, {}, dict(swizzled=zero > 0)),
        "no power": (dict(ef=1e-6, e2=1e-6, ed=1e-6), {}, {}),
        "power by FLOP only": (dict(e2=1e-6, ed=1e-6), {}, {}),
        "power without phase-in": (dict(ph=1e-6), {}, {}),
        "max instead of p-norm": (dict(pp=40.0), {}, {}),
        "p = 2": (dict(pp=2.0), {}, {}),
        "one block at a time": ({}, dict(regs=255 + zero), {}),
    }
    out = {}
    for name, (k, block, grid) in cases.items():
        w = copy.copy(v)
        w.parts = [({**b, **block}, n) for b, n in v.parts]
        w.grid = {**v.grid, **grid}
        free = [n for n in VFREE if n not in k]
        fitted = fit([w.part(rows)], {**k0, **k}, free, nfev=30)
        t = w.predict(fitted)
        figures = dict(glob=mape(t[test], v.y[test]))
        for n in DEVS:
            m = v.name == n
            part = w.part(w.pick(m & train, 1500))
            own = fit([part], fitted, [a for a in PERDEV if a not in k], prior=0.1, nfev=20)
            t[m] = w.predict(own, m)
        figures["own"] = mape(t[test], v.y[test])
        for n, others in without.items():
            q = v.above & (v.name == n)
            left = fit([w.part(others)], fitted, free, nfev=20)
            figures[n] = mape(w.predict(left, q), v.y[q])
        out["vendor: " + name] = figures
        show(name, figures)
    return out


def plot_configurations(x, t, path):
    fig, ax = plt.subplots(1, 2, figsize=(11, 5))
    for q, c, name in ((~x.staged, ".7", "direct"), (x.staged, "C0", "staged")):
        ax[0].loglog(x.y[q] / 1e3, t[q] / 1e3, ".", ms=2, c=c, label=name)
    ax[0].plot([5, 100], [5, 100], "k", lw=0.5)
    ax[0].set(xlabel="measured, ms", ylabel="predicted, ms", title="RTX 3090, Xgemm 4096$^3$")
    ax[0].legend()
    share, n = x.y.min() / x.y[np.argsort(t)[:200]], np.arange(1, 201)
    ax[1].plot(n, np.maximum.accumulate(share), label="best of the first n")
    ax[1].plot(n, share, ".", ms=3, label="n-th")
    ax[1].set(xlabel="n-th by prediction", ylabel="share of the best")
    ax[1].legend()
    plt.tight_layout()
    plt.savefig(path, dpi=80)


def plot_vendor(v, p, path):
    fig, ax = plt.subplots(2, 5, figsize=(17, 7), layout="constrained")
    rows = (
        ("own constants, fold 0", p["td"], v.above & (v.fold == 0)),
        ("left out", p["tl"], v.above),
    )
    for j, n in enumerate(DEVS):
        for i, (title, t, mask) in enumerate(rows):
            q = mask & (v.name == n)
            for linear, c in ((False, "C0"), (True, "C1")):
                z, name = q & (v.lin == linear), "linear" if linear else "bmm"
                ax[i, j].loglog(v.y[z], t[z], ".", ms=1, c=c, label=name)
            ax[i, j].plot([50, 1e6], [50, 1e6], "k", lw=0.5)
            ax[i, j].set_title(f"{n}, {title}: {100 * mape(t[q], v.y[q]):.1f} %", fontsize=9)
    fig.supxlabel("measured, us")
    fig.supylabel("predicted, us")
    ax[0, 0].legend()
    plt.savefig(path, dpi=62)


def main():
    more = ("--full", dict(action="store_true", help="also trees and ablations"))
    options = arguments(__doc__, more)
    fitted = constants(options.out)
    k, v, x = fitted["glob"], Vendor(options.data), Xgemm(options.data)
    p = dict(np.load(os.path.join(options.out, "pred.npz")))
    test = v.above & (v.fold == 0)
    out = configurations(x, k)
    out["latency, global constants"] = errors(v, p["tg"], test)
    out["latency, per device"] = errors(v, p["td"], test)
    out["latency, left out"] = errors(v, p["tl"], v.above)
    out.update(vendor_baselines(v))
    if options.full:
        out.update(trees(v, x))
    for name, figures in out.items():
        show(name, figures.get("all", figures))
        if "test" in figures:
            show(name + ", unseen 20 %", figures["test"])
    out.update(calibration(v, fitted["left"]))
    if options.full:
        out.update(configuration_ablations(x, k, options.data))
        out.update(vendor_ablations(v, k))
    with open(os.path.join(options.out, "results.json"), "w", encoding="utf-8") as file:
        json.dump(out, file, indent=1, default=float)
    plot_configurations(x, x.predict(k), os.path.join(options.out, "rtx3090.png"))
    plot_vendor(v, p, os.path.join(options.out, "vendor.png"))


if __name__ == "__main__":
    main()
