"""Analytic latency of GPU matrix product kernels: reference implementation.

    predict(dev, parts, grid, k) -> microseconds (and a breakdown)

Vectorised: every field is a scalar or an array over kernels.

dev    facts of a device (data sheet), see DEVICES
parts  list of (block, count): what one block of a part does and how many blocks the
       part has, in launch order; one part, or two for a two-uKernel program
grid   how the blocks tile the problem
k      calibration constants, see CONSTANTS

block (all per block; "step" = one trip of the main loop over a reduce tile)
  warps      warps of the block
  regs       registers per thread
  smem       bytes of shared memory (static + reserved by the driver)
  steps      trips of the main loop
  depth      reduce elements of a step
  fma        FMA warp instructions per step
  other      all other warp instructions per step
  words      warp registers written by loads per step (a 128-bit load writes 4)
  mio        shared memory and load/store unit cycles per step:
             sum over accesses of max(wavefronts, 32 / load-store lanes)
  lines      sum over global loads of max(128-byte lines, 32 / load-store lanes)
  l2_bytes   bytes fetched from L2 per step (tile operands)
  pipelined  loads of later steps are in flight during a step
  loads      exposed global latencies per step: 1 / (steps ahead) when pipelined,
             2 when a block loads, waits, multiplies
  direct     registers per thread and step read straight from global memory
  spilled    registers per thread that do not fit
grid
  gx, gy     blocks along x (consecutive in launch order) and y of one problem
  tx, ty     elements of a block along x and y (mean over parts)
  swizzled   blocks are launched in near-square groups instead of rows
  batch      problems in the launch (batch axes times reduce slices)
  bytes_a    bytes of the operand along y (A), bytes_b: along x (B), of one problem
  bytes_c    bytes written (and read) for the output by the whole launch
  aligned    output rows start at multiples of 32 bytes
  run_a      contiguous bytes of A (run_b: of B) that one step of a block reads
  k_len      reduce elements of a block
  second     a second kernel sums reduce slices
  launch     us in front of every kernel, floor: least us of a launch

Units: cycles of one SM unless said otherwise; us; bytes; GB/s; W; pJ.
"""

import numpy as np

# sm, clock MHz (boost), fp32 lanes per SM, warp schedulers per SM, issue slots per cycle
# and SM (Pascal issues two per scheduler), load/store lanes per SM, DRAM GB/s, L2 MiB,
# shared KiB per SM, threads and blocks per SM, board power W, process nm,
# registers per SM
_F = [
    "sm",
    "mhz",
    "lanes",
    "sched",
    "issue",
    "ldst",
    "dram",
    "l2",
    "smem",
    "maxthr",
    "maxblk",
    "tdp",
    "nm",
    "regs",
]
DEVICES = {
    n: dict(zip(_F, v))
    for n, v in {
        "p4": (20, 1113, 128, 4, 8, 32, 192, 2, 96, 2048, 32, 75, 16, 65536),
        "p100": (56, 1328, 64, 2, 4, 16, 732, 4, 64, 2048, 32, 250, 16, 65536),
        "t4": (40, 1590, 64, 4, 4, 16, 320, 4, 64, 1024, 16, 70, 12, 65536),
        "v100": (80, 1380, 64, 4, 4, 32, 900, 6, 96, 2048, 32, 250, 12, 65536),  # PCIe
        "a100": (108, 1410, 64, 4, 4, 32, 1555, 40, 164, 2048, 32, 250, 7, 65536),  # PCIe
        "rtx3090": (82, 1695, 128, 4, 4, 16, 936, 6, 100, 1536, 16, 350, 8, 65536),
        "k80": (13, 875, 192, 4, 8, 32, 240.6, 1.5, 112, 2048, 16, 150, 28, 131072),
        "l4": (58, 2040, 128, 4, 4, 16, 300, 48, 100, 1536, 24, 72, 5, 65536),
        "rtx4090": (128, 2520, 128, 4, 4, 16, 1008, 72, 100, 1536, 24, 450, 5, 65536),
        "h100": (132, 1980, 128, 4, 4, 32, 3350, 50, 228, 2048, 32, 700, 4, 65536),
        "h200": (132, 1980, 128, 4, 4, 32, 4800, 60, 228, 2048, 32, 700, 4, 65536),
        "b200": (148, 1850, 128, 4, 4, 32, 8000, 126, 228, 2048, 32, 1000, 4, 65536),
    }.items()
}
# logic energy efficiency of a process node relative to 16 nm
NODE = {28: 0.6, 16: 1.0, 12: 1.0, 8: 1.75, 7: 2.15, 5: 3.06, 4: 3.06}

# name: (value, low, high); bounds and start of fits
CONSTANTS = dict(
    # issue, registers, load/store
    f=(1.05, 1, 1.6),  # FMA cycles over ideal
    other=(1.0, 0.2, 4),  # issue slots per instruction that is no FMA
    wb=(1.65, 0.05, 3),  # issue slots per warp register that a load writes
    line=(0.92, 0.1, 4),  # cycles per 128-byte line of a global load
    spill=(5.0, 0.1, 20),  # cycles per spilled register, warp and reduce element
    # overlap and latency
    pw=(0.29, 0.02, 0.6),  # p = 1 + pw * resident warps, of kernels that do not prefetch
    pp=(4.0, 2, 10),  # p of kernels that prefetch the next step
    lat_g=(1450.0, 50, 6000),  # cycles of an exposed global load in a loaded system
    lat_d=(36.0, 0.5, 200),  # cycles per register read straight from global memory
    blk=(3000.0, 20, 20000),  # cycles: start of a block, first loads, last stores
    # L2 and DRAM
    l2b=(9.8, 4, 64),  # bytes per cycle and SM from L2
    l2f=(0.15, 0.02, 2),  # share of L2 that holds operands for reuse
    dr=(0.89, 0.5, 0.95),  # achievable share of the DRAM bandwidth
    wm=(0.63, 0.01, 2),  # extra cost of output rows that break 32-byte sectors
    run=(3.4, 0.05, 10),  # extra DRAM cost of 32-byte runs along the reduce axis
    rk0=(330.0, 8, 2000),  # reduce elements where that is half reached
    kap=(110.0, 1, 1000),  # drift: L2 windows of reduce elements until half of the reuse is lost
    rows0=(4000.0, 200, 1e5),  # most rows that concurrent blocks keep open
    # power
    ef=(11.5, 2, 60),  # pJ per FLOP at 16 nm
    e2=(73.0, 1, 300),  # pJ per byte from L2 at 16 nm
    ed=(33.0, 1, 400),  # pJ per byte of DRAM
    idle=(20.0, 1, 60),  # W
    ph=(480.0, 1, 5000),  # us until the power limit acts
    # launch
    c=(25.0, 1, 100),  # us in front of a kernel, host-side timing
    spk=(34.0, 0.1, 60),  # us of a second kernel
)


def start():
    """Start values of the constants."""
    return {n: v[0] for n, v in CONSTANTS.items()}


def pnorm(p, *xs):
    """Norm (sum x^p)^(1/p): p = 1 adds, large p takes the greatest."""
    m = np.maximum(np.maximum.reduce(np.broadcast_arrays(*xs)), 1e-30)
    return m * sum((x / m) ** p for x in xs) ** (1 / p)


def knee(x):
    """0 far below 1, 1 far above."""
    return x * x / (1 + x * x)


def occupancy(dev, warps, regs, smem):
    """Blocks resident on an SM; registers are handed out in units of 256 per warp."""
    alloc = np.ceil(regs * 32 / 256) * 256
    return np.maximum(
        1,
        np.minimum.reduce(
            np.broadcast_arrays(
                dev["regs"] // (alloc * warps),
                dev["smem"] * 1024 // np.maximum(smem, 1),
                dev["maxthr"] // (32 * warps),
                dev["maxblk"],
            )
        ),
    )


def step_terms(dev, b, k):
    """Cycles of one step of one block on each resource, and its latency alone."""
    comp = np.maximum(
        b["fma"] * 32 / dev["lanes"] * k["f"],
        (b["fma"] + k["other"] * b["other"] + k["wb"] * b["words"]) / dev["issue"],
    )
    mem = b["mio"] + k["line"] * b["lines"] + k["spill"] * b["spilled"] * b["warps"] * b["depth"]
    return comp, mem, b["l2_bytes"] / k["l2b"], k["lat_g"] * b["loads"] + k["lat_d"] * b["direct"]


def block_cycles(dev, b, k, r):
    """Cycles of an SM per block when r blocks are resident."""
    comp, mem, l2, lat = step_terms(dev, b, k)
    warps = r * b["warps"]
    busy = np.minimum(1, warps / dev["sched"])  # schedulers that have a warp
    p = np.where(b["pipelined"], k["pp"], 1 + k["pw"] * warps)
    return b["steps"] * pnorm(p, comp / busy, mem, l2, lat / r) + k["blk"] / r


def predict(dev, parts, grid, k, full=False):
    """Latency in us; with full also a dict of the terms (see the top of the file)."""
    warps = parts[0][0]["warps"]
    R = occupancy(
        dev,
        warps,
        np.maximum.reduce([b["regs"] for b, _ in parts]),
        np.maximum.reduce([b["smem"] for b, _ in parts]),
    )
    blocks = sum(n for _, n in parts)
    # busiest SM: full rounds of R blocks, then the rest. It gets as many blocks of the
    # last (taller) part as any SM; the rest are counted as such.
    per_sm = np.ceil(blocks / dev["sm"])
    rounds = np.floor(per_sm / R)
    rest = per_sm - rounds * R
    tall, n_tall = parts[-1]
    if len(parts) == 1:
        t_full = rounds * R * block_cycles(dev, tall, k, R)
    else:
        n = np.minimum(np.ceil(n_tall / dev["sm"]), rounds * R)
        t_full = n * block_cycles(dev, tall, k, R) + (rounds * R - n) * block_cycles(
            dev, parts[0][0], k, R
        )
    t_sm = (t_full + rest * block_cycles(dev, tall, k, np.maximum(rest, 1))) / dev["mhz"]
    # DRAM traffic
    g = grid
    problem = g["gx"] * g["gy"]
    together = np.minimum(np.minimum(blocks, R * dev["sm"]), problem)
    row = np.minimum(g["gx"], together)
    square = np.clip(
        np.sqrt(together * g["ty"] / g["tx"]), np.minimum(together / g["gy"], g["gx"]), g["gx"]
    )
    wx = np.where(g["swizzled"], square, row)
    wy = np.clip(together / wx, 1, g["gy"])
    L2 = dev["l2"] * 2**20
    hold = k["l2f"] * L2
    miss = knee((g["bytes_a"] + g["bytes_b"]) / hold)  # of operands read again
    cold = knee(
        (g["batch"] * (g["bytes_a"] + g["bytes_b"]) + g["bytes_c"]) / hold
    )  # of first reads
    window = L2 / (4 * np.minimum(g["gx"] * g["tx"] + g["gy"] * g["ty"], k["rows0"]))
    lost = g["k_len"] / (g["k_len"] + k["kap"] * window)  # reuse lost to drift
    narrow = 32 * k["run"] * g["k_len"] / (g["k_len"] + k["rk0"])
    reads_a = cold + miss * ((g["gx"] / wx - 1) * (1 - lost) + (g["gx"] - 1) * lost)
    reads_b = cold + miss * ((g["gy"] / wy - 1) * (1 - lost) + (g["gy"] - 1) * lost)
    dram = g["batch"] * (
        g["bytes_a"] * reads_a * (1 + narrow / g["run_a"])
        + g["bytes_b"] * reads_b * (1 + narrow / g["run_b"])
    ) + g["bytes_c"] * np.where(g["aligned"], 1, 1 + k["wm"])
    t_dram = dram / (dev["dram"] * 1e3 * k["dr"])
    rr = np.minimum(R, per_sm)
    p = np.where(parts[0][0]["pipelined"], k["pp"], 1 + k["pw"] * rr * warps)
    t = pnorm(p, t_sm, t_dram)
    # board power
    fma = sum(n * b["steps"] * b["fma"] for b, n in parts)
    l2 = sum(n * b["steps"] * b["l2_bytes"] for b, n in parts)
    t_pow = (
        ((64 * fma * k["ef"] + l2 * k["e2"]) / dev["node"] + dram * k["ed"])
        * 1e-6
        / np.maximum(dev["tdp"] - k["idle"], 1)
    )
    t = np.where(t_pow > t, t * (t_pow + k["ph"]) / (t + k["ph"]), t)
    # launch
    total = np.maximum(g["floor"], g["launch"] * k["c"] + t + g["second"] * k["spk"])
    if not full:
        return total
    comp, mem, l2c, lat = step_terms(dev, parts[0][0], k)
    return total, dict(
        R=R,
        per_sm=per_sm,
        sm=t_sm,
        dram=t_dram,
        power=t_pow,
        kernel=t,
        comp=comp,
        mem=mem,
        l2=l2c,
        lat=lat,
        lost=lost,
        miss=miss,
        bytes=dram,
    )


# --- emitters: facts -> block and grid -------------------------------------------------------
def device(name_or_names):
    """Facts of one device, or arrays of them for a sequence of names."""
    if isinstance(name_or_names, str):
        d = dict(DEVICES[name_or_names])
        d["node"] = NODE[d["nm"]]
        return d
    idx = np.array([list(DEVICES).index(n) for n in name_or_names])
    out = {f: np.array([DEVICES[n][f] for n in DEVICES], float)[idx] for f in _F}
    out["node"] = np.array([NODE[DEVICES[n]["nm"]] for n in DEVICES])[idx]
    return out


def wavefronts(addr, width):
    """Data cycles of one shared memory access of a warp. addr: word address of each lane,
    width: words per lane (1, 2, 4). 64-bit accesses go in half warps, 128-bit ones in
    quarter warps; two neighbouring parts are one when every lane has the address of its
    neighbour (lane xor 1). A part takes as many cycles as its busiest bank has words."""
    addr = np.asarray(addr)
    n = width
    if n > 1 and np.all(addr[0::2] == addr[1::2]):
        n //= 2
    return sum(
        int(np.bincount(np.unique((p[:, None] + np.arange(width)).ravel()) % 32).max())
        for p in np.split(addr, n)
    )


def vendor(d):
    """Blocks and grid of rows of gemm_latency_train.csv.gz (with floor_us): cuBLAS sgemm.

    Thread tiles follow from tile and threads; steps of 8; conflict-free 128-bit fragments;
    hand-scheduled, so loads cost no extra issue slots (words = 0).
    """
    f = lambda n: d[n].values.astype(float)
    ker = d.kernel.str
    sl = np.where(ker.contains("sliced1x4"), 4.0, 1.0)
    warps = f("block_x") / 32
    acc = f("tile_m") * f("tile_n") * sl / f("block_x")
    rm = 2 ** np.ceil(np.log2(acc) / 2)
    rn = acc / rm
    split = np.maximum(1, f("grid_z") // f("B"))
    k_len = f("K") / split
    ldst = device(d.device)["ldst"]
    nlds = (rm + rn) / 4
    tm, tn = f("tile_m"), f("tile_n")
    spk = d.aux_kernel.astype(str).str.contains("splitk").values
    old = (ker.startswith("maxwell") | ker.startswith("sgemm")).values
    amp = ker.startswith("ampere").values
    tnl = ker.contains("_tn").values
    M, N, K, B = f("M"), f("N"), f("K"), f("B")
    z = 0 * M
    block = dict(
        warps=warps,
        regs=24 + acc + 2 * (rm + rn),
        smem=64 * (tm + tn) * sl,
        steps=np.ceil(k_len / (8 * sl)),
        depth=8 + z,
        fma=warps * 8 * acc,
        other=warps * 8 * (nlds + 0.5),
        words=z,
        mio=warps * 8 * nlds * np.maximum(2, 32 / ldst),
        lines=z,
        l2_bytes=32 * (tm + tn) * sl,
        pipelined=np.ones(len(d), bool),
        loads=np.where(amp, 1 / 3, 1.0),
        direct=z,
        spilled=z,
    )
    grid = dict(
        gx=f("grid_x"),
        gy=f("grid_y"),
        tx=tm,
        ty=tn,
        swizzled=~old,
        batch=B,
        bytes_a=4 * M * K,
        bytes_b=4 * N * K,
        bytes_c=4 * B * M * N * np.where(spk, 2 * split, 1),
        aligned=N % 8 == 0,
        run_a=32 * sl,
        run_b=np.where(tnl, 32 * sl, 4 * tm),
        k_len=k_len,
        second=spk * 1.0,
        launch=1 + z,
        floor=f("floor_us"),
    )
    return [(block, f("grid_x") * f("grid_y") * f("grid_z"))], grid


# registers: 28 + accumulators + max(1.2 * fragments, staged), less 13 %. The form is from
# 1200 compilations by ptxas, the numbers from the configurations.
XREG = dict(r0=28.0, rf=1.2, rs=1.0, sq=0.13)


def xgemm(f):
    """CLBlast Xgemm configurations (features of xgemm.py), 4096^3 in steps of 32, one buffer."""
    g = lambda n: f[n].values.astype(float)
    T = g("threads")
    W = T / 32
    rm, rn, SA, SB = g("thread_m"), g("thread_n"), g("SA"), g("SB")
    z = 0 * T
    cap = np.minimum(255, 65536 // T // 8 * 8)
    staged = np.maximum(
        g("stA_per") * np.minimum(g("VWM"), 4), g("stB_per") * np.minimum(g("VWN"), 4)
    )
    want = XREG["r0"] + rm * rn + np.maximum(XREG["rf"] * (rm + rn), XREG["rs"] * staged)
    lds = SA * g("frA_instr") + SB * g("frB_instr")
    ldg = (1 - SA) * g("frA_instr") + (1 - SB) * g("frB_instr")
    block = dict(
        warps=W,
        regs=np.minimum(want * (1 - XREG["sq"]), cap),
        smem=g("smem_bytes") + 1024,
        steps=128 + z,
        depth=32 + z,
        fma=W * 32 * rm * rn,
        other=lds + 2 * ldg + 2 * (g("stA_ldg") + g("stB_ldg") + g("stA_sts") + g("stB_sts")),
        words=W * 32 * (rm + rn)
        + g("stA_ldg") * np.minimum(g("VWM"), 4)
        + g("stB_ldg") * np.minimum(g("VWN"), 4),
        mio=SA * g("frA_wc")
        + SB * g("frB_wc")
        + g("stA_wc")
        + g("stB_wc")
        + (1 - SA) * g("frA_gc")
        + (1 - SB) * g("frB_gc"),
        lines=g("stA_lc") + g("stB_lc"),
        l2_bytes=128 * (g("MWG") + g("NWG")),
        pipelined=np.zeros(len(f), bool),
        loads=2 * np.maximum(SA, SB),
        direct=32 * ((1 - SA) * rm + (1 - SB) * rn),
        spilled=np.maximum(want - cap, 0),
    )
    gx, gy, mat = 4096 / g("MWG"), 4096 / g("NWG"), 4 * 4096.0**2 + z
    grid = dict(
        gx=gx,
        gy=gy,
        tx=g("MWG"),
        ty=g("NWG"),
        swizzled=np.zeros(len(f), bool),
        batch=1 + z,
        bytes_a=mat,
        bytes_b=mat,
        bytes_c=2 * mat,
        aligned=np.ones(len(f), bool),
        run_a=4 * g("NWG"),
        run_b=4 * g("MWG"),
        k_len=4096 + z,
        second=z,
        launch=z,
        floor=z,
    )
    return [(block, gx * gy)], grid


# --- FTuner's SIMT path (SimtLayout.cpp, SimtTileCopy.cpp, SimtMainLoop.cpp) ------------------
def _chunks(per_thread, threads):
    """(first element, width) of the vector accesses of a thread."""
    out, base = [], 0
    for w in (4, 2, 1):
        while per_thread >= w:
            out.append((base, w))
            per_thread -= w
            base += w * threads
    return out


def ftuner_block(dev, bm, bn, bk, rm, rn, K, stages=2, vw=4, lhs_k=True, rhs_k=False):
    """One uKernel of the SIMT path; lhs_k, rhs_k: operand contiguous along the reduce axis."""
    gm, gn = bm // rm, bn // rn
    T = gm * gn
    W = T // 32
    asyn = dev["nm"] <= 8
    wn = next((w for w in (8, 16, 4, 32, 2, 1) if gm % (32 // w) == 0 and gn % w == 0), 0)

    def lanes(warp):
        l = np.arange(32)
        if not wn:
            t = 32 * warp + l
            return t // gn, t % gn
        across = gn // wn
        wm = 32 // wn
        return (warp // across) * wm + l // wn, (warp % across) * wn + l % wn

    rows = [(i * gm, 1) for i in range(rm)] if lhs_k else _chunks(rm, gm)
    cols = _chunks(rn, gn)
    pitch = lambda kc, space: (-(-(bk if kc else space) // 4) * 4) + (4 if kc else 0)
    pa, pb = pitch(lhs_k, bm), pitch(rhs_k, bn)
    depth = 4 if (rm if lhs_k else 0) + (rn if rhs_k else 0) <= 16 else 2
    sw = lambda kc, w: min(4, (bk // 4) & -(bk // 4)) if kc and w == 4 else 1
    sb = sw(rhs_k, min(rn, 4))
    lo = 32 / dev["ldst"]
    instr = mio = words = 0.0
    for warp in range(W):
        tm, tn = lanes(warp)
        for chunks, t, kc, pit, s in ((rows, tm, lhs_k, pa, 1), (cols, tn, rhs_k, pb, sb)):
            for base, w in chunks:
                if not kc:
                    c = max(lo, wavefronts(base + t * w, w))
                    instr += bk
                    mio += bk * c
                    words += bk * w
                else:
                    for e in range(w):
                        first = base + t * w
                        quad = ((first // 8) % s) * 4 if s > 1 else 0
                        c = max(lo, wavefronts((first + e) * pit + quad, depth))
                        n = bk // depth
                        instr += n
                        mio += n * c
                        words += n * depth
    lines = copies = 0.0
    for outer, inner, kc in (
        (bm if lhs_k else bk, bk if lhs_k else bm, lhs_k),
        (bn if rhs_k else bk, bk if rhs_k else bn, rhs_k),
    ):
        per_row = -(-inner // vw)
        vec = outer * per_row
        for first in range(0, vec, 32):
            lane = np.arange(first, min(first + 32, vec))
            r, v = lane // per_row, lane % per_row
            L = len(np.unique(r * 1000 + (v * vw * 4) // 128))
            lines += max(lo, L)
            copies += 1
            pad = np.concatenate([lane, np.repeat(lane[-1:], 32 - len(lane))])
            mio += max(
                lo,
                wavefronts(
                    (pad // per_row) * ((-(-inner // 4) * 4) + (4 if kc else 0))
                    + (pad % per_row) * vw,
                    vw,
                ),
            )
    if not asyn:
        words += copies * vw  # the staged path goes through registers
    acc = rm * rn
    frag = rm * (depth if lhs_k else 1) + rn * (depth if rhs_k else 1)
    stage = (bm if lhs_k else bk) * pa + (bn if rhs_k else bk) * pb
    return dict(
        warps=float(W),
        regs=28.0 + acc + frag + (0 if stages > 2 or asyn else stage / T),
        smem=4.0 * stages * stage + (1024 if asyn else 0),
        steps=float(-(-K // bk)),
        depth=float(bk),
        fma=W * bk * acc * 1.0,
        other=instr + 3 * copies * (1 if asyn else 2) + 12 * W,
        words=words,
        mio=mio,
        lines=lines,
        l2_bytes=4.0 * bk * (bm + bn),
        pipelined=True,
        loads=1.0 / max(1, stages - 1),
        direct=0.0,
        spilled=0.0,
    )


def ftuner_grid(
    M, N, K, bn, rows, batch=1, bk=16, lhs_k=True, rhs_k=False, launch_us=0.0, floor_us=0.0
):
    """Grid of a matrix product; rows: list of (block height, number of block rows)."""
    gy = float(sum(n for _, n in rows))
    h = sum(h * n for h, n in rows) / gy
    gx = float(-(-N // bn))
    return dict(
        gx=gx,
        gy=gy,
        tx=float(bn),
        ty=h,
        swizzled=False,
        batch=float(batch),
        bytes_a=4.0 * M * K,
        bytes_b=4.0 * N * K,
        bytes_c=4.0 * batch * M * N,
        aligned=N % 8 == 0,
        run_a=4.0 * (bk if lhs_k else h),
        run_b=4.0 * (bk if rhs_k else bn),
        k_len=float(K),
        second=0.0,
        launch=launch_us / 25.0,
        floor=floor_us,
    )
