#!/usr/bin/env python3
"""Holds the trees of programs against what their kernels do in the emulator.

`ftuner-translate --ftuner-trees` says how many bytes the blocks of a launch read
and write, by its loops and statements; the emulator's counters say how many the
emitted kernel did: of random families of every path, layout and type, with slices
of k and of rows, with two heights, and of fallback kernels of every form. At
whole tiles the numbers are equal; a tile over the end counts whole in the tree.
Bulk copies make no requests, so wgmma's loads are not compared.

Paths of workloads and fallback kernels count operations alike: those of the same
softmax and of the same sum, in f32 and in f64, which no workload takes.
"""

import json
import math

import harness

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "f64": 8}


def product(element, total, lhs, rhs):
    """A product with dynamic axes m, n and k; lhs and rhs are 'n' as stored by rows, or 't'."""
    of = {"mk": "(d0, d2)", "km": "(d2, d0)", "kn": "(d2, d1)", "nk": "(d1, d2)"}
    a, b = ("mk" if lhs == "n" else "km"), ("kn" if rhs == "n" else "nk")
    is_int = element == "i8"
    widen = (
        ""
        if element == total
        else "".join(
            f"%{v}w = arith.{'extsi' if is_int else 'extf'} %{v} : {element} to {total}\n"
            for v in "xy"
        )
    )
    x, y = ("%x", "%y") if element == total else ("%xw", "%yw")
    kind = "i" if is_int else "f"
    zero = "0 : i32" if is_int else f"0.0 : {total}"
    m, n = int(lhs != "n"), int(rhs == "n")
    return f"""
func.func @f(%a: tensor<?x?x{element}> {{ukernel.shape = ["{a[0].upper()}", "{a[1].upper()}"]}},
             %b: tensor<?x?x{element}> {{ukernel.shape = ["{b[0].upper()}", "{b[1].upper()}"]}}) -> tensor<?x?x{total}> {{
  %im = arith.constant {m} : index
  %in = arith.constant {n} : index
  %m = tensor.dim %a, %im : tensor<?x?x{element}>
  %n = tensor.dim %b, %in : tensor<?x?x{element}>
  %zero = arith.constant {zero}
  %e = tensor.empty(%m, %n) : tensor<?x?x{total}>
  %o = linalg.fill ins(%zero : {total}) outs(%e : tensor<?x?x{total}>) -> tensor<?x?x{total}>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1, d2) -> {of[a]}>, affine_map<(d0, d1, d2) -> {of[b]}>,
                       affine_map<(d0, d1, d2) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : tensor<?x?x{element}>, tensor<?x?x{element}>) outs(%o : tensor<?x?x{total}>) {{
  ^bb0(%x: {element}, %y: {element}, %s: {total}):
    {widen}
    %p = arith.mul{kind} {x}, {y} : {total}
    %q = arith.add{kind} %s, %p : {total}
    linalg.yield %q : {total}
  }} -> tensor<?x?x{total}>
  return %r : tensor<?x?x{total}>
}}
"""


SOFTMAX = """
func.func @f(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = tensor.dim %x, %c0 : tensor<?x?xf32>
  %c = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%r, %c) : tensor<?x?xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
"""

# A sum of elements that have an operation of each kind behind them.
OPERATIONS = """
func.func @f(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %r = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%r) : tensor<?xf32>
  %o = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = math.exp %a : f32
    %1 = math.tanh %a : f32
    %2 = math.rsqrt %0 : f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.divf %3, %0 : f32
    %5 = arith.cmpf ogt, %a, %zero : f32
    %6 = arith.select %5, %4, %1 : f32
    %7 = arith.negf %6 : f32
    %8 = arith.maximumf %7, %0 : f32
    %9 = arith.fptosi %8 : f32 to i32
    %10 = arith.addi %9, %9 : i32
    %11 = arith.sitofp %10 : i32 to f32
    %t = arith.addf %s, %11 : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
"""

# A transpose, a gather, sums of rows and columns, a padded window: in f64, so that no workload takes them. And a sum of
# integers, by lanes.
FALLBACKS = """
func.func @f(%x: tensor<?x32xf64> {ukernel.shape = ["T", 32]}, %t: tensor<50x32xf64>,
             %i: tensor<?xi64> {ukernel.shape = ["T"]}, %k: tensor<3x32xf64>,
             %z: tensor<?x64xi32> {ukernel.shape = ["T", 64]})
    -> (tensor<32x?xf64>, tensor<?x32xf64>, tensor<?xf64>, tensor<32xf64>, tensor<?x32xf64>, tensor<?xi32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f64
  %n = tensor.dim %x, %c0 : tensor<?x32xf64>
  %e = tensor.empty(%n) : tensor<?x32xf64>
  %et = tensor.empty(%n) : tensor<32x?xf64>
  %tr = linalg.transpose ins(%x : tensor<?x32xf64>) outs(%et : tensor<32x?xf64>) permutation = [1, 0]
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<?xi64>) outs(%e : tensor<?x32xf64>) {
  ^bb0(%id: i64, %o: f64):
    %row = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%row, %j] : tensor<50x32xf64>
    linalg.yield %v : f64
  } -> tensor<?x32xf64>
  %er = tensor.empty(%n) : tensor<?xf64>
  %zr = linalg.fill ins(%zero : f64) outs(%er : tensor<?xf64>) -> tensor<?xf64>
  %rows = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x32xf64>) outs(%zr : tensor<?xf64>) {
  ^bb0(%a: f64, %o: f64):
    %s = arith.addf %o, %a : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  %ec = tensor.empty() : tensor<32xf64>
  %zc = linalg.fill ins(%zero : f64) outs(%ec : tensor<32xf64>) -> tensor<32xf64>
  %columns = linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>],
                             iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x32xf64>) outs(%zc : tensor<32xf64>) {
  ^bb0(%a: f64, %o: f64):
    %p = arith.divf %a, %a : f64
    %s = arith.addf %o, %p : f64
    linalg.yield %s : f64
  } -> tensor<32xf64>
  %padded = tensor.pad %x low[2, 0] high[0, 0] {
  ^bb0(%p: index, %q: index):
    tensor.yield %zero : f64
  } : tensor<?x32xf64> to tensor<?x32xf64>
  %zw = linalg.fill ins(%zero : f64) outs(%e : tensor<?x32xf64>) -> tensor<?x32xf64>
  %window = linalg.generic {indexing_maps = [affine_map<(i, j, w) -> (i + w, j)>, affine_map<(i, j, w) -> (w, j)>,
                                             affine_map<(i, j, w) -> (i, j)>],
                            iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%padded, %k : tensor<?x32xf64>, tensor<3x32xf64>) outs(%zw : tensor<?x32xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %o, %p : f64
    linalg.yield %s : f64
  } -> tensor<?x32xf64>
  %none = arith.constant 0 : i32
  %el = tensor.empty(%n) : tensor<?xi32>
  %zl = linalg.fill ins(%none : i32) outs(%el : tensor<?xi32>) -> tensor<?xi32>
  %lanes = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                           iterator_types = ["parallel", "reduction"]}
      ins(%z : tensor<?x64xi32>) outs(%zl : tensor<?xi32>) {
  ^bb0(%a: i32, %o: i32):
    %s = arith.addi %o, %a : i32
    linalg.yield %s : i32
  } -> tensor<?xi32>
  return %tr, %g, %rows, %columns, %window, %lanes
      : tensor<32x?xf64>, tensor<?x32xf64>, tensor<?xf64>, tensor<32xf64>, tensor<?x32xf64>, tensor<?xi32>
}
"""


class Tree:
    """Bytes that all blocks load from and store to global memory, and store to shared memory; and points."""

    def __init__(self, launch):
        self.loads = self.stores = self.shared = self.multiplied = self.blocks = 0
        self.statements = []
        for tree in launch["trees"]:
            self.blocks += tree["blocks"]
            lengths = [loop["length"] for loop in tree["loops"]]
            for statement in tree["statements"]:
                times = math.prod(lengths[loop] for loop in statement["loops"])
                self.statements.append(statement["name"])
                if statement["name"] == "multiply":
                    self.multiplied += times
                for access in statement["accesses"]:
                    buffer = tree["buffers"][access["buffer"]]
                    size = times * buffer["element_bytes"]
                    if buffer["memory"] == "global":
                        self.loads += size * access["reads"]
                        self.stores += size * access["writes"]
                    elif buffer["memory"] == "shared":
                        self.shared += size * access["writes"]


def trees_of(h, path, sizes, *flags):
    """The launches of a module's only function."""
    result = h.tool(
        "ftuner-translate",
        path,
        "--ftuner-trees",
        "--json",
        *flags,
        *(f"--size={name}={size}" for name, size in sizes.items()),
    )
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return json.loads(result.stdout)["functions"][0]["calls"][0]["launches"]


def counters_of(h, path, args, *flags):
    result = h.tool(
        "ftuner-run",
        path,
        "--function=f",
        "--executor=emulator",
        "--counters",
        "--json",
        f"--args={args}",
        *flags,
    )
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return json.loads(result.stdout)["counters"]


def counted(counters, *kinds):
    return sum(
        kernel["requests"].get(kind, {"bytes": 0})["bytes"] for kernel in counters for kind in kinds
    )


def compare(what, tree, seen, is_whole, slack):
    """A tree has what was seen at whole tiles, else no less; and where threads share out what they cannot divide, or
    lanes of the last round have nothing, no more than `slack` times as much."""
    if is_whole and slack == 1 and tree != seen:
        return [f"{what}: the tree has {tree} bytes, the kernel {seen}"]
    if tree < seen or (is_whole and tree > slack * seen):
        return [
            f"{what}: the tree has {tree} bytes, the kernel {seen}, expected at most {slack} times that"
        ]
    return []


def run_product(h, name, case):
    element, total, lhs, rhs, device, flags = case
    path = h.write(f"{name}.mlir", product(element, total, lhs, rhs))
    flags = [f"--device={device}", "--max-kernels=1", *flags]
    (launch,) = trees_of(h, path, {"M": 64, "N": 64, "K": 64}, *flags)
    m, n, k = launch["family"]["ukernels"][0]["block_tile"]
    split = launch["family"]["reduce_split"]
    is_even = all(size & (size - 1) == 0 for size in (m, n, k))
    problems = []
    for is_whole in (True, False):
        sizes = {"M": 2 * m, "N": n, "K": 2 * k * split}
        if not is_whole:
            # Rows that 16 bytes still divide, as the family may ask.
            sizes = {
                "M": 2 * m - 1 if lhs == "n" else max(2 * m - 16, 16),
                "N": max(n - 16, 16),
                "K": max(sizes["K"] - 16, 16),
            }
        (launch,) = trees_of(h, path, sizes, *flags)
        if launch["family"]["ukernels"][0]["block_tile"] != [m, n, k]:
            continue  # Another family for these rows.
        shape = lambda axes: "x".join(str(sizes[axis]) for axis in axes)
        args = f"{shape('MK' if lhs == 'n' else 'KM')}x{element},{shape('KN' if rhs == 'n' else 'NK')}x{element}"
        counters = counters_of(h, path, args, *flags)
        tree = Tree(launch)
        label = f"{launch['family']['path']} {m}x{n}x{k} split {split} {sizes}"
        main = counters[0]
        if main["blocks"] != tree.blocks:
            problems.append(
                f"{label}: the tree has {tree.blocks} blocks, the kernel {main['blocks']}"
            )
        points = math.prod(sizes.values())
        if tree.multiplied < points or (is_whole and tree.multiplied != points):
            problems.append(f"{label}: {tree.multiplied} points are multiplied, expected {points}")
        slack = 1 if is_even and split == 1 else 2
        problems += compare(
            f"{label}: stores", tree.stores, counted(counters, "global_store"), is_whole, slack
        )
        if launch["family"]["path"] != "wgmma":
            loads = counted(counters, "global_load", "copy_source")
            problems += compare(f"{label}: loads", tree.loads, loads, is_whole, slack)
            shared = counted(counters, "shared_store", "copy_target", "matrix_store")
            # Copies ahead of the last step fill their tiles with zeros: of two steps, those of all stages but one.
            most = 1 + launch["family"]["schedule"].get("stages", 1) / 2
            if not tree.shared / slack <= shared <= most * tree.shared:
                problems.append(
                    f"{label}: the tree stores {tree.shared} bytes to shared memory, the kernel {shared}"
                )
    return problems


def run_plan(h, name, flags, cases):
    """A product by the plan of the search: two heights, and slices with the kernel that adds them up."""
    source, path = (
        h.write(f"{name}.mlir", product("f32", "f32", "n", "n")),
        h.path(f"{name}.planned.mlir"),
    )
    result = h.tool("ftuner-opt", source, f"--ftuner-front-end={flags}", "-o", path)
    if result.returncode != 0:
        return [result.stderr]
    problems = []
    for what, sizes, holds in cases:
        (launch,) = trees_of(h, path, sizes)
        if not holds(launch):
            problems.append(f"{launch['family']} has no {what}")
            continue
        tree = Tree(launch)
        counters = counters_of(h, path, "{M}x{K}xf32,{K}x{N}xf32".format(**sizes))
        if counters[0]["blocks"] != tree.blocks:
            problems.append(
                f"{what}: the tree has {tree.blocks} blocks, the kernel {counters[0]['blocks']}"
            )
        # Tiles over the end.
        problems += compare(
            f"{what}: stores", tree.stores, counted(counters, "global_store"), True, 1.25
        )
        loads = counted(counters, "global_load", "copy_source")
        problems += compare(f"{what}: loads", tree.loads, loads, True, 1.25)
    return problems


def run_rows(h, name, sizes, flags):
    path = h.write(f"{name}.mlir", SOFTMAX)
    (launch,) = trees_of(h, path, sizes, *flags)
    counters = counters_of(h, path, f"{sizes['R']}x{sizes['C']}xf32", *flags)
    tree = Tree(launch)
    blocks = [kernel["blocks"] for kernel in counters]
    problems = (
        []
        if set(blocks) == {tree.blocks}
        else [f"the tree has {tree.blocks} blocks, the kernels {blocks}"]
    )
    is_sliced = launch["family"]["reduce_split"] > 1
    if is_sliced and len(blocks) != 3:
        problems.append(f"expected three launches, but got {blocks}")
    problems += compare("stores", tree.stores, counted(counters, "global_store"), not is_sliced, 1)
    loads = counted(counters, "global_load")
    warps = launch["family"]["schedule"]["warps"]
    if is_sliced and launch["family"]["reduce_split"] * warps > 32:
        # Each warp reads the numbers of 32 slots in 32 segments, which trees have once: of the maximum, and of both.
        loads -= 3 * 4 * 32 * 32 * tree.blocks * (warps - 1)
    problems += compare("loads", tree.loads, loads, True, 1.05 if is_sliced else 1)
    return problems


def run_fallbacks(h, length):
    """256 threads divide all points of 32 numbers at 64, and lanes all rows."""
    path = h.write(f"fallbacks_{length}.mlir", FALLBACKS)
    flags = ["--device=v100", "--paths=simt"]
    launches = trees_of(h, path, {"T": length}, *flags)
    args = f"{length}x32xf64,50x32xf64,{length}xi64,3x32xf64,{length}x64xi32"
    counters = {kernel["kernel"]: kernel for kernel in counters_of(h, path, args, *flags)}
    problems, seen = [], set()
    for launch in launches:
        if "kernel" not in launch:
            problems.append(f"{launch['workload']} is a workload")
            continue
        if launch["reason"]:
            problems.append(launch["reason"])
            continue
        tree, kernel = Tree(launch), counters[launch["kernel"]]
        seen.update(tree.statements)
        label = f"{launch['kernel']} {launch['operator']}"
        if kernel["blocks"] != tree.blocks * kernel["launches"]:
            problems.append(
                f"{label}: the tree has {tree.blocks} blocks, the kernel {kernel['blocks']}"
            )
        is_gather = any(
            access.get("data_dependent")
            for part in launch["trees"]
            for statement in part["statements"]
            for access in statement["accesses"]
        )
        # Random indices are mostly none of the table's, and are not followed; nor is a window over the rim.
        slack = math.inf if is_gather else 1.01 if "mulf" in launch["operator"] else 1
        problems += compare(
            f"{label}: loads", tree.loads, counted([kernel], "global_load"), length == 64, slack
        )
        problems += compare(
            f"{label}: stores", tree.stores, counted([kernel], "global_store"), length == 64, 1
        )
    missing = {"store", "accumulate", "initialize", "join"} - seen
    return problems + [f"no statement {name}" for name in sorted(missing)]


def operations_of(h, name, text, *flags):
    """The operations of each statement that has some, by the kernel's number and its name."""
    launches = trees_of(
        h, h.write(f"{name}.mlir", text), {"R": 64, "C": 512}, "--device=h200", *flags
    )
    return {
        (number, statement["name"]): statement["operations"]
        for number, launch in enumerate(launches)
        for tree in launch["trees"]
        for statement in tree["statements"]
        if statement["operations"]
    }


def run_operations(h):
    def added(*counts):
        return {
            kind: sum(some.get(kind, 0) for some in counts) for kind in sorted(set().union(*counts))
        }

    rows = operations_of(h, "softmax_f32", SOFTMAX)
    apart = operations_of(h, "softmax_apart", SOFTMAX, "--paths=simt")
    # The fallback has a kernel for the maximum, the exponentials, the sum and the quotients; rows have the exponentials
    # twice.
    # Lanes of a warp join what they accumulated.
    maximum, exponentials, total, quotients = (
        counts for (_, name), counts in apart.items() if name != "join"
    )
    expected = {
        "reduce reduction0": maximum,
        "reduce reduction1": added(exponentials, total),
        "store map": added(exponentials, quotients),
    }
    found = {name: counts for (_, name), counts in rows.items()}
    problems = [
        f"softmax, {name}: rows have {found[name]}, fallback kernels {counts}"
        for name, counts in expected.items()
        if found[name] != counts
    ]
    for name, kind in (("join reduction0", "float-compare"), ("join reduction1", "float-add")):
        if found[name].keys() != {kind}:
            problems.append(f"softmax, {name}: {found[name]}, expected {kind} alone")
    (reduce,) = [
        counts
        for (_, name), counts in operations_of(h, "sum_f32", OPERATIONS).items()
        if "reduce" in name
    ]
    (accumulate,) = [
        counts
        for (_, name), counts in operations_of(h, "sum_apart", OPERATIONS, "--paths=simt").items()
        if name != "join"
    ]
    kinds = {
        "float-math": 3,
        "float-multiply": 1,
        "float-divide": 1,
        "float-compare": 2,
        "float-add": 2,
        "select": 1,
        "float-other": 2,
        "int-add": 1,
    }
    for what, counts in (("rows", reduce), ("a fallback kernel", accumulate)):
        if counts != kinds:
            problems.append(f"sum: {what} has {counts}, expected {kinds}")
    return problems


def main():
    h, _ = harness.start(__doc__)
    layouts = [("n", "n"), ("n", "t"), ("t", "n"), ("t", "t")]
    paths = (
        ("simt", "f32", "f32", "v100"),
        ("mma", "f16", "f32", "a100"),
        ("mma", "bf16", "f32", "a100"),
        ("mma", "i8", "i32", "a100"),
        ("mma", "f32", "f32", "a100"),
        ("wgmma", "f16", "f32", "h200"),
    )
    count = harness.SCALE
    for number, (path, element, total, device) in enumerate(paths):
        if harness.SCALE == 1 and element == ("f16", "bf16")[harness.SEED % 2] and path == "mma":
            continue  # One of the two.
        for turn in range(count):
            lhs, rhs = layouts[(number + turn * 3 + harness.SEED) % 4]
            seed = (harness.SEED + 17 * turn) % 1000000
            flags = [
                f"--paths={path}",
                "--strategy=random",
                f"--draw-seed={seed}",
                "--split-k=false",
            ]
            if path == "mma" and element == "f32":
                flags.append("--precision=tf32")
            h.add(
                f"{path} {element} {lhs}{rhs} {seed}",
                run_product,
                h,
                f"{path}_{element}_{turn}",
                (element, total, lhs, rhs, device, flags),
            )
    h.add(
        "two heights, slices",
        run_plan,
        h,
        "planned",
        "device=t4 paths=simt max-kernels=8 sliced-k=false",
        [
            ("heights", {"M": 440, "N": 320, "K": 32}, lambda launch: len(launch["trees"]) == 2),
            (
                "slices",
                {"M": 64, "N": 64, "K": 1024},
                lambda launch: launch["family"]["reduce_split"] > 1,
            ),
        ],
    )
    h.add("operations", run_operations, h)
    h.add("rows", run_rows, h, "rows", {"R": 64, "C": 512}, ["--device=h200"])
    h.add("slices of rows", run_rows, h, "slices", {"R": 1, "C": 65536 * 4}, ["--device=h200"])
    for length in (64, 53, 1):
        h.add(f"fallbacks of {length}", run_fallbacks, h, length)
    h.finish()


if __name__ == "__main__":
    main()
