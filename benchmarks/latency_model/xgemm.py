"""Lane replay of CLBlast's Xgemm: instruction, line and wavefront counts of one block.

From the lane addresses of the kernel (A at k * M + m, B at k * N + n, C at n * M + m); README,
adapters.
"""

import os
import zlib
from functools import lru_cache

import numpy as np
import pandas as pd

COLUMNS = [
    "MWG",
    "NWG",
    "MDIMC",
    "NDIMC",
    "VWM",
    "VWN",
    "SA",
    "SB",
    "threads",
    "thread_m",
    "thread_n",
    "smem_bytes",
    "MDIMA",
    "NDIMB",
    "time_ms",
    "key",
    "h",
    "gflops",
]


def wavefronts(addr, width, merge=True):
    """Cycles of one shared memory access of a warp on the data banks. addr: first
    4-byte word of each lane; width: words per lane (1, 2, 4). 64-bit accesses go in
    half warps, 128-bit ones in quarter warps; neighbouring parts merge when every
    lane has the address of its neighbour (l xor 1)."""
    addr = np.asarray(addr)
    n = width
    pair = merge and len(addr) > 1 and bool(np.all(addr[0::2] == addr[1::2]))
    if pair and n > 1:
        n //= 2
    tot = 0
    for p in np.split(addr, n):
        w = np.unique((p[:, None] + np.arange(width)).ravel())
        tot += int(np.bincount(w % 32).max())
    return tot


def gran(addr, width, bytes_):
    """Distinct pieces of bytes_ bytes that an access touches."""
    w = (np.asarray(addr)[:, None] + np.arange(width)).ravel() * 4 // bytes_
    return len(np.unique(w))


@lru_cache(None)
def staged(MWG, T, MD, V, VS):
    """Copy of a 32 x MWG tile. Loads of width V, stores of width VS (merged).

    Load instructions, lines, sectors; store instructions, wavefronts, cycles (at least 2 each);
    cycles of the lines and of the loads in L1 (at least 2 each); loads per thread.
    """
    v = min(V, 4)
    vs = min(VS, 4)
    MWA = MWG // MD
    KD = T // MD
    KA = 32 // KD
    nl = MWA // v * KA
    ns = MWA // min(vs, MWA) * KA
    vs = min(vs, MWA)
    lines = sects = wf = wc = lc = gc = 0
    for w in range(T // 32):
        t = np.arange(32) + 32 * w
        l0, l1 = t % MD, t // MD
        a = l0 * MWA
        k = l1 * KA
        L = gran(k * 4096 + a, v, 128)
        lines += L
        sects += gran(k * 4096 + a, v, 32)
        lc += max(2, L)
        gc += max(2, wavefronts(k * 4096 + a, v, False))
        x = wavefronts(k * MWG + a, vs)
        wf += x
        wc += max(x, 2)
    warps = T / 32
    return (nl * warps, lines * nl, sects * nl, ns * warps, wf * ns, wc * ns, lc * nl, gc * nl, nl)


@lru_cache(None)
def fragment(axis, MDIMC, T, MI, V):
    """Fragment loads of one reduce element, all warps.

    Instructions, wavefronts, cycles (at least 2 each), lines, sectors, cycles of the lines and of
    the loads in L1 (at least 2 each).
    """
    v = min(V, 4, MI)
    n = MI // v
    r = np.zeros(6)
    for w in range(T // 32):
        t = np.arange(32) + 32 * w
        x = t % MDIMC if axis == 0 else t // MDIMC
        a = x * MI
        c = wavefronts(a, v)
        L = gran(a, v, 128)
        r += [c, max(2, c), L, gran(a, v, 32), max(2, L), max(2, wavefronts(a, v, False))]
    return (n * T / 32, *(r * n))


@lru_cache(None)
def epilogue(MDIMC, T, MI, NI, V):
    """Output accesses of all warps: instr, lines, sectors."""
    v = min(V, 4)
    n = MI // v * NI
    l = s = 0
    for w in range(T // 32):
        t = np.arange(32) + 32 * w
        a = (t // MDIMC) * NI * 4096 + (t % MDIMC) * MI
        l += gran(a, v, 128)
        s += gran(a, v, 32)
    return (n * T / 32, l * n, s * n)


def load(data):
    """Configurations of a folder, with key (parameters that have effect) and h (fold)."""
    d = pd.read_csv(os.path.join(data, "gemm_configs_rtx3090.csv.gz"))
    d["a_"] = np.where(d.SA == 1, d.MDIMA, 0)
    d["b_"] = np.where(d.SB == 1, d.NDIMB, 0)
    keys = ["MWG", "NWG", "MDIMC", "NDIMC", "a_", "b_", "VWM", "VWN", "SA", "SB"]
    d["key"] = [",".join(map(str, r)) for r in d[keys].values]
    d["h"] = [zlib.crc32(k.encode()) % 5 for k in d.key]
    return d


def features(d, merge=True):
    """Counts per block and step of 32, all warps: st* of the copies, fr* of the fragments, ep_* of
    the output. merge: the compiler merges neighbouring accesses of staged B (README, adapters)."""
    out = {}
    VBS = np.where(
        (d.SA == 1) & merge, np.maximum(d.VWN, d.VWM), d.VWN
    )  # staged B accesses merge up to A's width
    for o, M, D, V, VS, S in (
        ("A", "MWG", "MDIMA", d.VWM, d.VWM, "SA"),
        ("B", "NWG", "NDIMB", d.VWN, VBS, "SB"),
    ):
        r = np.array(
            [
                staged(int(m), int(t), int(a), int(v), int(vs)) if s else (0,) * 9
                for m, t, a, v, vs, s in zip(d[M], d.threads, d[D], V, VS, d[S])
            ],
            float,
        ).T
        for i, n in enumerate(["ldg", "lines", "sects", "sts", "wf", "wc", "lc", "gc", "per"]):
            out["st%s_%s" % (o, n)] = r[i]
    for o, ax, I, V in (
        ("A", 0, "thread_m", d.VWM),
        ("B", 1, "thread_n", np.where(d.SB == 1, VBS, d.VWN)),
    ):
        r = (
            np.array(
                [
                    fragment(ax, int(a), int(b), int(i), int(v))
                    for a, b, i, v in zip(d.MDIMC, d.threads, d[I], V)
                ],
                float,
            ).T
            * 32
        )
        for i, n in enumerate(["instr", "wf", "wc", "lines", "sects", "lc", "gc"]):
            out["fr%s_%s" % (o, n)] = r[i]
    r = np.array(
        [
            epilogue(*map(int, x))
            for x in d[["MDIMC", "threads", "thread_m", "thread_n", "VWM"]].values
        ],
        float,
    ).T
    for i, n in enumerate(["instr", "lines", "sects"]):
        out["ep_%s" % n] = r[i]
    f = pd.DataFrame(out, index=d.index)
    for c in COLUMNS:
        f[c] = d[c]
    return f


def distinct(data, merge=True):
    """Features of the configurations that differ in effect, one row each."""
    return features(load(data), merge).drop_duplicates("key").reset_index(drop=True)
