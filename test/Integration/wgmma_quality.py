#!/usr/bin/env python3
"""Every kernel of the wgmma path that is selected for layers of language models is tight.

Dense (768 to 2304) and the projections of Llama-2-7B in f16, and Dense in i8, and in tf32 that is rounded and that is
cut off, with weights along k, M = 1…4096, on Hopper with `--paths=wgmma`, with tensor maps and without. By ptxas: no spill, no local memory, and no advisory C75…, by
which it tells of products that it serializes, waits that it adds, and register counts that it ignores.
Groups that take registers find them among those that the block starts with. In loops, no barrier of a stage has the
scope of a cluster.

The same of families that are given, with and without warps that only copy and tensor maps, in several layouts, and
with packed weights. Their main loops have at most 1.1 times the instructions that hand-written ones have, and exactly
their products and copies; in clusters they have no fence of memory, which ptxas puts beside barriers of larger scopes.

So are kernels of modules of the folder quality: of one step, and of factors with prologues whose columns are few.

The suite looks at a part; `--all` at everything.
"""

import os
import re
import subprocess
import sys

import harness
import kernel_families
import ptx
import sass
import tensor_core_quality

LAYERS = {
    **{name: layer for name, layer in tensor_core_quality.LAYERS.items() if layer[3] == "f16"},
    "dense_i8": ("nt", 2304, 768, "i8"),
    "dense_tf32": ("nt", 2304, 768, "tf32"),
    "dense_tf32_truncate": ("nt", 2304, 768, "tf32-truncate"),
}
PART = [("dense", "h200", "true"), ("dense_i8", "h100", "false"), ("dense_tf32", "h200", "true")]
#: Elements of a step by type, and types whose factors are f32.
DEPTHS = {"f16": 64, "i8": 128, "tf32": 32, "tf32-truncate": 32}
ROUNDED = ("tf32", "tf32-truncate")
#: Modules of the folder quality.
MODULES = ("one_step", "narrow_prologue")
#: Instructions of main loops over those of hand-written ones.
MOST = 1.1


class Given:
    """A family of one tile, and what the loops of a hand-written kernel with the same have: by the name of an
    instruction that is in no other loop, how many instructions, and how many of which names."""

    def __init__(
        self,
        name,
        groups,
        tile,
        loops,
        *,
        layout="nt",
        kind="f16",
        stages=4,
        producers=0,
        maps=False,
        more="",
        packs=False,
    ):
        self.name, self.layout, self.kind, self.loops, self.packs = name, layout, kind, loops, packs
        options = (
            (f", producer_warpgroups = {producers}" if producers else "")
            + (", tma = true" if maps else "")
            + more
        )
        self.family = (
            f"<#ukernel.wgmma<warpgroups = {list(groups)}, stages = {stages}, access = 16{options}>, axis = 0, "
            f"tiles = [{list(tile)}]>"
        )


PRODUCTS = {"HGMMA": 4}
# No kernel with clusters was written by hand: the loops of others, with what the block's part of a tile and arrivals at
# the other block's barriers take.
IN_CLUSTERS = {
    "UTMALDG": (39, {"UTMALDG": 2, "MEMBAR": 0}),
    "HGMMA": (40, {**PRODUCTS, "MEMBAR": 0}),
}
GIVEN = [
    Given("copies", (2, 1), (128, 128, 64), {"HGMMA": (81, {**PRODUCTS, "LDGSTS": 8, "BAR": 1})}),
    Given(
        "copies wide",
        (2, 1),
        (128, 256, 64),
        {"HGMMA": (115, {**PRODUCTS, "LDGSTS": 12, "BAR": 1})},
    ),
    Given(
        "maps",
        (2, 1),
        (128, 128, 64),
        {"HGMMA": (59, {**PRODUCTS, "UTMALDG": 2, "BAR": 1})},
        maps=True,
    ),
    Given(
        "maps wide",
        (2, 1),
        (128, 256, 64),
        {"HGMMA": (63, {**PRODUCTS, "UTMALDG": 2, "BAR": 1})},
        maps=True,
    ),
    Given(
        "maps tall",
        (1, 1),
        (128, 128, 64),
        {"HGMMA": (73, {"HGMMA": 8, "UTMALDG": 2, "BAR": 1})},
        maps=True,
    ),
    Given(
        "producers",
        (2, 1),
        (128, 128, 64),
        {"LDGSTS": (168, {"LDGSTS": 16}), "HGMMA": (37, {**PRODUCTS, "BAR": 0})},
        producers=1,
    ),
    Given(
        "producers wide",
        (2, 1),
        (128, 256, 64),
        {"LDGSTS": (211, {"LDGSTS": 24}), "HGMMA": (38, PRODUCTS)},
        producers=1,
    ),
    Given(
        "producers, maps",
        (2, 1),
        (128, 128, 64),
        {"UTMALDG": (32, {"UTMALDG": 2}), "HGMMA": (37, {**PRODUCTS, "BAR": 0})},
        producers=1,
        maps=True,
    ),
    Given(
        "producers, maps wide",
        (2, 1),
        (128, 256, 64),
        {"UTMALDG": (33, {"UTMALDG": 2}), "HGMMA": (38, PRODUCTS)},
        producers=1,
        maps=True,
    ),
    Given(
        "producers, maps across k",
        (2, 1),
        (128, 256, 64),
        {"UTMALDG": (46, {"UTMALDG": 5}), "HGMMA": (38, PRODUCTS)},
        layout="nn",
        stages=3,
        producers=1,
        maps=True,
    ),
    Given(
        "producers, maps tall",
        (2, 1),
        (256, 128, 64),
        {"UTMALDG": (33, {"UTMALDG": 2}), "HGMMA": (50, {"HGMMA": 8})},
        producers=1,
        maps=True,
    ),
    Given(
        "producers, maps, i8",
        (2, 1),
        (128, 256, 128),
        {"UTMALDG": (33, {"UTMALDG": 2}), "IGMMA": (38, {"IGMMA": 4})},
        kind="i8",
        producers=1,
        maps=True,
    ),
    Given(
        "clusters",
        (2, 1),
        (256, 256, 64),
        IN_CLUSTERS,
        producers=1,
        maps=True,
        more=", cluster = [2, 1]",
    ),
    Given(
        "persistent",
        (2, 1),
        (128, 256, 64),
        {"UTMALDG": (33, {"UTMALDG": 2}), "HGMMA": (38, PRODUCTS)},
        producers=1,
        maps=True,
        more=", persistent = 132",
    ),
    Given(
        "persistent clusters",
        (2, 1),
        (256, 256, 64),
        IN_CLUSTERS,
        producers=1,
        maps=True,
        more=", cluster = [2, 1], persistent = 132",
    ),
    Given(
        "persistent, swapped",
        (1, 2),
        (64, 256, 64),
        {},
        producers=1,
        maps=True,
        more=", swap_operands = true, persistent = 132",
    ),
    Given(
        "ping-pong",
        (1, 1),
        (64, 256, 64),
        {"UTMALDG": (33, {"UTMALDG": 2}), "HGMMA": (38, PRODUCTS)},
        producers=1,
        maps=True,
        more=", persistent = 132, ping_pong = true",
    ),
    Given(
        "ping-pong tall",
        (1, 1),
        (128, 128, 64),
        {"UTMALDG": (33, {"UTMALDG": 2}), "HGMMA": (50, {"HGMMA": 8})},
        producers=1,
        maps=True,
        more=", persistent = 132, ping_pong = true",
    ),
    Given(
        "ping-pong in clusters",
        (1, 1),
        (256, 128, 64),
        {**IN_CLUSTERS, "HGMMA": (52, {"HGMMA": 8, "MEMBAR": 0})},
        producers=1,
        maps=True,
        more=", cluster = [2, 1], persistent = 132, ping_pong = true",
    ),
    Given(
        "ping-pong, swapped",
        (1, 1),
        (64, 128, 64),
        {},
        producers=1,
        maps=True,
        more=", swap_operands = true, persistent = 132, ping_pong = true",
    ),
    Given(
        "copies, cut off",
        (2, 1),
        (128, 128, 32),
        {"HGMMA": (81, {**PRODUCTS, "LDGSTS": 8, "BAR": 1})},
        kind="tf32-truncate",
    ),
    Given(
        "producers, maps, cut off",
        (2, 1),
        (128, 256, 32),
        {"UTMALDG": (33, {"UTMALDG": 2}), "HGMMA": (38, PRODUCTS)},
        kind="tf32-truncate",
        producers=1,
        maps=True,
    ),
    Given("copies, rounded", (2, 1), (128, 128, 32), {}, kind="tf32", stages=2),
    Given(
        "producers, maps, rounded",
        (2, 1),
        (128, 256, 32),
        {"UTMALDG": (33, {"UTMALDG": 2}), "HGMMA": (38, PRODUCTS)},
        kind="tf32",
        producers=1,
        maps=True,
    ),
    # Bulk copies in place of boxes.
    Given(
        "packed, copies",
        (2, 1),
        (128, 128, 64),
        {"HGMMA": (81, {**PRODUCTS, "LDGSTS": 8, "BAR": 1})},
        packs=True,
    ),
    Given(
        "packed, maps",
        (2, 1),
        (128, 256, 64),
        {"HGMMA": (63, {**PRODUCTS, "UTMALDG": 1, "UBLKCP": 1, "BAR": 1})},
        layout="nn",
        maps=True,
        packs=True,
    ),
    Given(
        "packed, producers",
        (2, 1),
        (128, 256, 64),
        {"LDGSTS": (168, {"LDGSTS": 8, "UBLKCP": 1}), "HGMMA": (38, PRODUCTS)},
        producers=1,
        packs=True,
    ),
    Given(
        "packed, clusters",
        (2, 1),
        (256, 256, 64),
        {"LDGSTS": (168, {"LDGSTS": 8, "UBLKCP": 1}), "HGMMA": IN_CLUSTERS["HGMMA"]},
        layout="nn",
        producers=1,
        more=", cluster = [2, 1]",
        packs=True,
    ),
    Given(
        "packed, producers, maps",
        (2, 1),
        (128, 256, 64),
        {"UTMALDG": (33, {"UTMALDG": 1, "UBLKCP": 1}), "HGMMA": (38, PRODUCTS)},
        producers=1,
        maps=True,
        packs=True,
    ),
    Given(
        "packed, persistent clusters",
        (2, 1),
        (256, 256, 64),
        {"UTMALDG": (39, {"UTMALDG": 1, "UBLKCP": 1, "MEMBAR": 0}), "HGMMA": IN_CLUSTERS["HGMMA"]},
        producers=1,
        maps=True,
        more=", cluster = [2, 1], persistent = 132",
        packs=True,
    ),
    Given(
        "packed, i8",
        (2, 1),
        (128, 256, 128),
        {"UTMALDG": (33, {"UTMALDG": 1, "UBLKCP": 1}), "IGMMA": (38, {"IGMMA": 4})},
        layout="nn",
        kind="i8",
        producers=1,
        maps=True,
        packs=True,
    ),
    Given("three groups", (3, 1), (192, 192, 64), {}, producers=1, maps=True),
    Given("one group", (1, 1), (64, 128, 64), {}, producers=1, maps=True),
    Given("one group that copies", (1, 1), (64, 128, 64), {}, producers=1),
    Given("lhs across k", (1, 2), (64, 256, 64), {}, layout="tn", producers=1, maps=True),
]


#: Those that the suite leaves out: each differs from others in its tile alone, or has what two others have.
NOT_IN_PART = {
    "copies wide",
    "maps wide",
    "maps tall",
    "producers wide",
    "producers, maps",
    "producers, maps tall",
    "ping-pong tall",
    "persistent",
    "packed, producers, maps",
    "copies, cut off",
    "one group",
}


def element(kind):
    return "f32" if kind in ROUNDED else kind


def precision(kind):
    return kind if kind in ROUNDED else "f32"


def assemble(tests, name, text):
    """The cubin and what ptxas says; or an error."""
    source, cubin = tests.write(f"{name}.ptx", text), tests.path(f"{name}.cubin")
    result = subprocess.run(
        [ptx.find_ptxas(), "-arch=sm_90a", "-v", source, "-o", cubin],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return cubin, result.stderr + result.stdout


def check_registers(entry, threads, used):
    """Registers that groups take must be those that the block starts with, or they wait for ever."""
    more, less = (
        max(
            int(number)
            for line in entry.lines
            for number in re.findall(rf"setmaxnreg\.{way}\.sync\.aligned\.u32\s+(\d+)", line)
        )
        for way in ("inc", "dec")
    )
    groups = threads // 128
    if more * (groups - 1) + less > used * groups:
        return [
            f"{entry.name}: {groups - 1} groups of {more} registers and one of {less} of {used} at the start"
        ]
    return []


def check_scopes(entry):
    """Waits and arrivals in the scope of the cluster, for which ptxas fences all memory."""
    found = {
        instruction.split()[0]
        for loop in entry.loops()
        for instruction in loop.instructions
        if re.match(r"mbarrier\.\S*\.(acquire|release)\.cluster\b", instruction)
    }
    return [f"{entry.name}: {name} in a loop" for name in sorted(found)]


def compile_checked(tests, name, path, flags):
    """The cubin of a module, how many kernels with products it has, and problems."""
    listing = tests.tool("ftuner-translate", path, "--ftuner-to-ptx", *flags)
    if listing.returncode != 0:
        raise RuntimeError(listing.stderr)
    cubin, log = assemble(tests, name, listing.stdout)
    problems = [
        line
        for line in log.splitlines()
        if "C75" in line or re.search(r"[1-9]\d* bytes (stack|spill)", line)
    ]
    entries = [entry for entry in ptx.entries(listing.stdout) if entry.count(r"wgmma\.mma_async")]
    problems += [f"{entry.name}: local memory" for entry in entries if entry.count(r"\.local")]
    used = dict(re.findall(r"Compiling entry function '(\w+)'[\s\S]*?Used (\d+) registers", log))
    threads = dict(re.findall(r"\.entry (\w+)\([\s\S]*?\.maxntid (\d+)", listing.stdout))
    for entry in entries:
        problems += check_scopes(entry)
        if entry.count("setmaxnreg"):
            problems += check_registers(entry, int(threads[entry.name]), int(used[entry.name]))
    return cubin, entries, problems


def check_loops(given, cubin, kernel):
    (function,) = [
        function
        for function in sass.functions(ptx.find_tool("nvdisasm"), cubin)
        if function.name == kernel
    ]
    problems = []
    for name, (most, counts) in given.loops.items():
        loop = function.loop_of(name)
        if loop is None:
            problems.append(f"no loop with {name}")
            continue
        if len(loop) > MOST * most:
            problems.append(
                f"the loop with {name} has {len(loop)} instructions, and {most} written by hand"
            )
        names = [instruction.name for instruction in loop]
        found = {other: names.count(other) for other in counts}
        if found != counts:
            problems.append(f"expected {counts} in the loop with {name}, but got {found}")
    return problems


def with_constant_weights(text, kind):
    """The module with weights of its own."""
    weights = re.search(r", %w: (tensor<[^>]+>)\)", text)[1]
    constant = f"    %w = arith.constant dense<{'1' if kind == 'i8' else '1.0'}> : {weights}\n"
    return text.replace(f", %w: {weights})", ")").replace(
        "    %rows =", constant + "    %rows =", 1
    )


def check_given(tests, given):
    unaligned = (
        "<#ukernel.wgmma<warpgroups = [2, 1], stages = 2, access = 1>, axis = 0, "
        f"tiles = [[128, 16, {DEPTHS[given.kind]}]]>"
    )
    plan = f"<families = [{given.family}, {unaligned}], choices = [], general = 0, unaligned_general = 1>"
    name = re.sub(r"\W+", "_", given.name)
    text = tensor_core_quality.module(given.layout, 4096, 4096, element(given.kind))
    if given.packs:
        text = with_constant_weights(text, given.kind)
    path, problems = kernel_families.form(
        tests, name, text, plan, precision(given.kind), packs_for="h100" if given.packs else None
    )
    if problems:
        return problems
    cubin, entries, problems = compile_checked(tests, name, path, ["--device=h100"])
    if len(entries) != 2:
        return problems + [f"expected two kernels of the path, but got {len(entries)}"]
    return problems + check_loops(given, cubin, entries[0].name)


def check_selected(tests, layer, device, maps):
    *shape, kind = LAYERS[layer]
    path = tests.write(
        f"{layer}_{device}_{maps}.mlir", tensor_core_quality.module(*shape, element(kind))
    )
    flags = [
        f"--device={device}",
        "--paths=wgmma",
        f"--tensor-maps={maps}",
        f"--precision={precision(kind)}",
    ]
    _, entries, problems = compile_checked(tests, f"{layer}_{device}_{maps}", path, flags)
    counts = {
        what: sum(bool(entry.count(pattern)) for entry in entries)
        for what, pattern in (
            ("maps", r"cp\.async\.bulk\.tensor"),
            ("registers that move", r"setmaxnreg"),
        )
    }
    tests.describe(
        f"{layer} on {device}, maps {maps}",
        f"{len(entries)} kernels, "
        + ", ".join(f"{count} with {what}" for what, count in counts.items()),
    )
    if not entries:
        problems.append("no kernel of the path")
    if maps == "false" and counts["maps"]:
        problems.append("expected no tensor maps")
    return problems


def check_module(tests, name):
    """Kernels of a module of the folder quality, which have no loops, or few columns that no vector holds."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", name + ".mlir")
    _, entries, problems = compile_checked(
        tests, name, path, ["--device=h200", "--paths=wgmma", "--max-kernels=3"]
    )
    return problems if entries else [*problems, "no kernel of the path"]


def main():
    tests, options = harness.start(
        __doc__,
        {
            "--all": {
                "action": "store_true",
                "help": "every layer on every device, with tensor maps and without",
            },
        },
    )
    for tool in ("ptxas", "nvdisasm"):
        if not ptx.find_tool(tool):
            sys.exit(f"error: no {tool} found: run tools/setup.sh")
    cases = [
        (layer, device, maps)
        for layer in LAYERS
        for device in ("h100", "h200")
        for maps in ("true", "false")
    ]
    for layer, device, maps in cases if options.all else PART:
        tests.add(f"{layer} on {device}, maps {maps}", check_selected, tests, layer, device, maps)
    for name in MODULES:
        tests.add(name, check_module, tests, name)
    for given in GIVEN:
        if given.name in NOT_IN_PART and not options.all:
            continue
        tests.add(f"given: {given.name}", check_given, tests, given)
    tests.finish()


if __name__ == "__main__":
    main()
