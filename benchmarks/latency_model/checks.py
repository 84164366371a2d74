"""Checks of the model beside its goals: each prints its figures.

    python3 checks.py CHECK --data FOLDER --out FOLDER

  properties  random devices and uKernels: a better device is never slower, more work never faster
  dense       best predicted uKernel for Dense beside the FTuner paper's V100 and K80 curves
              (reads ftuner_paper/*.csv of --data)
  devices     best predicted uKernel and its share of the f32 peak, on every device
  folds       five folds and few rows of the RTX 3090 configurations; constants off by 10 %
  shift       fitted on one kind of vendor rows, judged on another
  confidence  how often a predicted lead is right, by its size

Reads fit.json of --out. None takes more than a few minutes.
"""

import itertools
import os
import sys

import numpy as np
import pandas as pd

import model as M
from fit import (
    DEVS,
    PERDEV,
    VFREE,
    XFREE,
    Vendor,
    Xgemm,
    arguments,
    constants,
    fit,
    mape,
    show,
)


def ukernel(dev, tile, k_len, stages=2, lhs_k=True, rhs_k=False):
    bm, bn, bk, rm, rn = tile
    return M.ftuner_block(dev, bm, bn, bk, rm, rn, k_len, stages, 4, lhs_k, rhs_k)


def random_case(rng):
    """A device, uKernel and shape as keywords of latency; None if the block has no legal size."""
    gm, gn = int(rng.choice([4, 8, 16, 32])), int(rng.choice([8, 16]))
    rm, rn = int(rng.integers(1, 15)), int(rng.choice([1, 2, 4, 8]))
    dev, bk = M.device(rng.choice(list(M.DEVICES))), int(rng.choice([8, 16, 32]))
    stages, lhs_k, rhs_k = int(rng.integers(2, 4)), bool(rng.integers(2)), bool(rng.integers(2))
    if not 32 <= gm * gn <= 1024:
        return None
    m, n, k_len = (int(x) for x in np.exp(rng.uniform(0, 9, 3)) + 1)
    return dict(
        dev=dev,
        tile=(gm * rm, gn * rn, bk, rm, rn),
        m=m,
        n=-(-n // 8) * 8,
        k_len=k_len,
        batch=int(rng.choice([1, 1, 12, 192])),
        stages=stages,
        lhs_k=lhs_k,
        rhs_k=rhs_k,
        pair=rng.random() < 0.3 and rm < 14,
    )


def latency(k, dev, tile, m, n, k_len, batch, stages, lhs_k, rhs_k, pair):
    """us; a pair has two heights, g * rm and g * (rm + 1), and half of the rows each."""
    bm, bn, bk, rm, rn = tile
    tall, rows = (bm + bm // rm, bn, bk, rm + 1, rn), [(bm, -(-m // bm))]
    blocks = [ukernel(dev, tile, k_len, stages, lhs_k, rhs_k)]
    if pair:
        rows = [(bm, -(-m // 2 // bm)), (tall[0], -(-(m - m // 2) // tall[0]))]
        blocks.append(ukernel(dev, tall, k_len, stages, lhs_k, rhs_k))
    grid = M.ftuner_grid(m, n, k_len, bn, rows, batch, bk, lhs_k, rhs_k, 5.0)
    parts = [(block, grid["gx"] * count * batch) for block, (_, count) in zip(blocks, rows)]
    return float(M.predict(dev, parts, grid, k))


def properties(options, k):
    rng, broken, cases = np.random.default_rng(0), 0, 0
    for _ in range(2000):
        case = random_case(rng)
        if case is None:
            continue
        cases += 1
        dev, t = case["dev"], latency(k, **case)
        wrong = [] if np.isfinite(t) and t > 0 else [f"{t} us"]
        for field in ("dram", "mhz", "l2", "tdp", "sm"):
            factor, more = 1 + rng.uniform(0.05, 1), int(rng.integers(1, 40))
            value = dev[field] + more if field == "sm" else dev[field] * factor
            if latency(k, **{**case, "dev": {**dev, field: value}}) > t * (1 + 1e-9):
                wrong.append(f"more {field} is slower")
        steps = dict(
            m=rng.integers(1, 200), n=8 * rng.integers(1, 30), k_len=rng.integers(1, 300), batch=1
        )
        for field, step in steps.items():
            if latency(k, **{**case, field: case[field] + int(step)}) < t * (1 - 1e-9):
                wrong.append(f"more {field} is faster")
        for words in wrong:
            print(words, case)
        broken += bool(wrong)
    print(f"{broken} of {cases} random cases break a property")
    sys.exit(1 if broken else 0)


def tiles(groups, heights, bks=(16,)):
    for (gm, gn), rm, rn, bk in itertools.product(groups, heights, (4, 8), bks):
        if 64 <= gm * gn <= 512 and rm * rn <= 112:
            yield gm * rm, gn * rn, bk, rm, rn


def best(dev, k, shape, blocks):
    """(us, name) of the best of the blocks (a dict by (tile, stages)) for a shape."""
    m, n, k_len = shape
    times = []
    for (tile, stages), block in blocks.items():
        count = -(-m // tile[0])
        grid = M.ftuner_grid(m, n, k_len, tile[1], [(tile[0], count)], 1, tile[2])
        block = {**block, "steps": float(-(-k_len // tile[2]))}
        t = float(M.predict(dev, [(block, grid["gx"] * count)], grid, k))
        times.append((t, f"[{tile[0]}, {tile[1]}, {tile[2]}] / [{tile[3]}, {tile[4]}] x {stages}"))
    return min(times)


def dense(options, k):
    folder = os.path.join(options.data, "ftuner_paper")
    groups = list(itertools.product((4, 8, 16, 32), (8, 16, 32)))
    for name in ("v100", "k80"):
        path = os.path.join(folder, f"dense_{name}.csv")
        if not os.path.exists(path):
            sys.exit(f"error: --data: expected {path}, but it is not there")
        paper, dev = pd.read_csv(path).set_index("T"), M.device(name)
        heights = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
        blocks = {(t, 2): ukernel(dev, t, 768) for t in tiles(groups, heights)}
        for size in (5, 16, 24, 43, 62, 81, 100, 119, 128):
            t, tile = best(dev, k, (16 * size, 2304, 768), blocks)
            tflops = 2 * 16 * size * 2304 * 768 / t / 1e6
            measured = paper.loc[size].ftuner_ms
            print(
                f"{name} T {size}: {t / 1e3:.3f} ms, {tflops:.1f} TFLOP/s {tile};"
                f" paper {measured:.3f} ms, ratio {t / 1e3 / measured:.2f}"
            )


def devices(options, k):
    shapes = [(m, 2304, 768) for m in (1, 16, 128, 848, 2048)] + [(4096, 4096, 4096)]
    groups = list(itertools.product((4, 8, 16), (8, 16, 32)))
    for name in M.DEVICES:
        dev, blocks = M.device(name), {}
        for tile in tiles(groups, (1, 2, 4, 6, 8, 10, 14), (16, 32)):
            for stages in (2, 3) if tile[2] == 16 and dev["nm"] <= 8 else (2,):
                block = ukernel(dev, tile, 768, stages)
                if block["smem"] <= dev["smem"] * 1024 and block["regs"] <= 255:
                    blocks[tile, stages] = block
        peak = 2 * dev["sm"] * dev["lanes"] * dev["mhz"]  # FLOP per us
        for m, n, k_len in shapes:
            t, tile = best(dev, k, (m, n, k_len), blocks)
            share = 100 * 2 * m * n * k_len / t / peak
            print(f"{name} {m} x {n} x {k_len}: {t:.1f} us, {share:.0f} % of peak, {tile}")


def folds(options, k):
    x = Xgemm(options.data)
    h = x.f.h.values
    k0 = {**k, **{n: M.CONSTANTS[n][0] for n in XFREE}}
    for fold in range(5):
        t = x.predict(fit([x.part(h != fold)], k0, XFREE))
        show(f"fold {fold}, unseen", x.judge(t, h == fold))
    bad = {**k0, "wb": 1.0, "line": 1.0, "pw": 0.15, "lat_d": 20.0, "spill": 2.0}
    show("bad start values", x.judge(x.predict(bad)))
    for n in (30, 100, 300, 1000):
        r = []
        for seed in range(7):
            mask = np.zeros(len(h), bool)
            mask[np.random.default_rng(seed).choice(len(h), n, replace=False)] = True
            r.append(x.judge(x.predict(fit([x.part(mask)], bad, XFREE, prior=0.1))))
        show(f"{n} configurations, median", {a: np.median([q[a] for q in r]) for a in r[0]})
    rng, r = np.random.default_rng(0), []
    for _ in range(40):
        off = {n: v if n == "pp" else v * np.exp(rng.normal(0, 0.1)) for n, v in k.items()}
        off["f"] = max(off["f"], 1)
        r.append(x.judge(x.predict(off)))
    show(
        "constants off by 10 %, worst",
        {a: min(q[a] for q in r) for a in ("spearman", "staged", "top1", "top10")},
    )


def shift(options, k):
    v = Vendor(options.data)
    above, small = v.above, v.y < 2000
    cases = {
        "all -> fold 0": (v.fold != 0, v.fold == 0),
        "bmm -> linear": (~v.lin, v.lin),
        "linear -> bmm": (v.lin, ~v.lin),
        "below 2 ms -> above": (small, ~small),
        "above 2 ms -> below": (~small, small),
    }
    for name, (train, test) in cases.items():
        train, test = train & above, test & above
        fitted = fit([v.part(v.pick(train, 6000))], M.start(), VFREE)
        t = v.predict(fitted)
        figures = dict(glob=mape(t[test], v.y[test]))
        for n in DEVS:
            m = v.name == n
            own = fit([v.part(v.pick(m & train, 3000))], fitted, PERDEV, prior=0.3)
            t[m] = v.predict(own, m)
        show(name, dict(figures, own=mape(t[test], v.y[test])))


def confidence(options, k):
    x = Xgemm(options.data)
    t, rng = x.predict(k), np.random.default_rng(0)
    for name, mask in (("staged", x.staged), ("within 2 x the best", x.y < 2 * x.y.min())):
        rows = np.where(mask & x.staged)[0]
        print(f"{name}: deviation of the log error {np.log(t / x.y)[rows].std():.3f}")
        a, b = rng.choice(rows, 200000), rng.choice(rows, 200000)
        lead = np.log(t[a] / t[b])
        right = (lead < 0) == (x.y[a] < x.y[b])
        for low, high in ((0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.4)):
            q = (abs(lead) >= low) & (abs(lead) < high)
            print(f"  lead {low:.2f} to {high:.2f}: right in {100 * right[q].mean():.1f} %")


CHECKS = dict(
    properties=properties,
    dense=dense,
    devices=devices,
    folds=folds,
    shift=shift,
    confidence=confidence,
)


def main():
    options = arguments(__doc__, ("check", dict(choices=CHECKS)))
    CHECKS[options.check](options, constants(options.out)["glob"])


if __name__ == "__main__":
    main()
