#!/usr/bin/env python3
"""Counts the instructions of epilogues of 128 x 256 tiles in FTuner's kernels and in Triton's, for an H100.

The product, the epilogues and FTuner's families are those of test/Integration/epilogue_quality.py; beside them a plain
rounding to f16. Triton's kernel is that of its tutorial with descriptors, of 8 warps and 3 stages, with masked rows;
once more with a SiLU whose quotient is rounded to the nearest, as FTuner's is (Triton's `/` is off by up to 2 ulp).
Triton fuses multiplications and additions, which --no-fusion forbids, as FTuner does. One ptxas assembles all kernels.

Prints a table: bytes of machine code of the kernel, accesses to registers that spill, and the instructions that a warp
executes for a tile behind its products, also for each of the 128 elements of a lane. Loops run as often as their
counters say: what machine code computes of constants is computed. Branches on anything else go the shortest way that
stores the whole tile: it lies inside, and no quotient is an exception. --by-name prints what was executed.

--write FILE writes the table with the date, the compiler's commit and the versions of ptxas and Triton. Needs ptxas and
nvdisasm (tools/setup.sh), Triton and NumPy (pip install triton numpy), and no GPU.
"""

import argparse
import collections
import json
import operator
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "Integration"))
import epilogue_quality
import harness
import ptx
import sass
from main_loops import write_table

TILE, WARPS, STAGES = (128, 256, 64), 8, 3
#: Elements of a lane.
ELEMENTS = TILE[0] * TILE[1] // (WARPS * 32)
#: More than any epilogue executes.
MOST_STEPS = 100_000
COMPARISONS = {
    name.upper(): getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


class Registers(dict):
    """Numbers in registers and predicates, by name; None, or none, where they depend on data."""

    def read(self, text):
        text = text.removesuffix(".reuse")
        if text[0] in "!-~":
            value = self.read(text[1:])
            return (
                value
                if value is None
                else {"!": 1 - value, "-": -value, "~": ~value}[text[0]] & 0xFFFFFFFF
            )
        if re.fullmatch(r"0x[0-9a-f]+|\d+", text):
            return int(text, 0)
        return {"RZ": 0, "URZ": 0, "SRZ": 0, "PT": 1, "UPT": 1}.get(text, self.get(text))

    def set(self, name, value, count=1):
        """`count` registers from one on."""
        prefix, number = re.match(r"(\D*)(\d*)", name).groups()
        for other in range(count):
            self[f"{prefix}{int(number) + other}" if number else name] = value

    def execute(self, instruction):
        modifiers, rest = re.match(r"((?:\.\w+)*)\s*(.*)", instruction.operands).groups()
        modifiers, name = modifiers.split(".")[1:], instruction.name
        target, *operands = [part.strip() for part in rest.split(",")]
        if name in ("MOV", "UMOV"):
            self.set(target, self.read(operands[0]))
        elif (
            name in ("VIADD", "IADD3", "UIADD3")
            or name == "IMAD"
            and not {"WIDE", "HI"} & set(modifiers)
        ):
            carries = [text for text in operands[:2] if text[0] in "PU" and "P" in text]
            values = [self.read(text) for text in operands[len(carries) :]]
            total = None
            if None not in values:
                total = values[0] * values[1] + sum(values[2:]) if name == "IMAD" else sum(values)
            self.set(target, None if total is None else total & 0xFFFFFFFF)
            for carry in carries:
                self.set(carry, None if total is None else int(total >> 32 > 0))
        elif name == "CS2R" and operands == ["SRZ"]:
            self.set(target, 0, 2)
        elif name in ("PLOP3", "UPLOP3"):
            values = [self.read(text) for text in operands[1:4]]
            index = None if None in values else 4 * values[0] + 2 * values[1] + values[2]
            self.set(target, None if index is None else int(operands[4], 0) >> index & 1)
        elif name in ("ISETP", "UISETP"):
            self.set(target, self.compare(modifiers, *map(self.read, operands[1:])))
        else:
            wide = {"128": 4, "4": 4, "64": 2, "WIDE": 2}
            self.set(
                target,
                None,
                max([wide.get(text, 1) for text in modifiers] + [2 if name == "CS2R" else 1]),
            )
            if "P" in target:
                self.set(operands[0], None)

    @staticmethod
    def compare(modifiers, a, b, beside, lower=None):
        """`lower`: of the lower halves, with EX."""
        result = None
        if None not in (a, b):
            if "U32" not in modifiers:
                a, b = ((value ^ 1 << 31) - (1 << 31) for value in (a, b))
            result = lower if "EX" in modifiers and a == b else int(COMPARISONS[modifiers[0]](a, b))
        decides = 0 if "AND" in modifiers else 1
        if decides in (result, beside):
            return decides
        return None if None in (result, beside) else 1 - decides


def guards_of(cubin, name):
    """The predicates of the instructions of a function, as sass.functions has these."""
    text = subprocess.run(
        [ptx.find_tool("nvdisasm"), "-c", "-hex", cubin], capture_output=True, text=True, check=True
    ).stdout
    part = re.search(rf"(?ms)^//-+ \.text\.{name}\s.*?(?=^//-|\Z)", text)[0]
    guards = [
        (match[1] or "@PT").strip()[1:]
        for match in map(sass.LOWER.match, part.splitlines())
        if match
    ]
    return [guard for guard in guards if guard != "!PT"]


def walk(function, guards, start, taken):
    """Counts by name what a warp executes from an instruction on to the end or the next tile, counted by name; bytes that a lane
    stores; and branches forward that depend on data, of which those in `taken` are."""
    registers, counts, stored, callers, branches, at = (
        Registers(),
        collections.Counter(),
        0,
        [],
        set(),
        start,
    )
    while counts.total() < MOST_STEPS:
        instruction, target, here = function.instructions[at], function.targets.get(at), at
        condition = registers.read(guards[here])
        counts[instruction.name] += 1
        at += 1
        if instruction.name == "EXIT" and condition:
            return counts, stored, branches
        if instruction.name == "STG":
            width = re.match(r"\.E(?:\.[US]?(\d+))?", instruction.operands)[1]
            stored += int(width or 32) // 8
        elif instruction.name == "RET":
            at = callers.pop()
        elif instruction.name == "CALL":
            callers.append(at)
            at = target
        elif instruction.name == "BRA":
            *more, _ = re.sub(r"^\.\w+ ", "", instruction.operands).split(",")
            conditions = [condition, *map(registers.read, more)]
            if 0 in conditions:
                continue
            if None in conditions:
                if target < here:
                    raise ValueError(f"{function.name}: the trips of a loop depend on data")
                around = {other.name for other in function.instructions[at:target]}
                # Calls are for rare operands.
                if "CALL" not in around or "STG" in around:
                    branches.add(here)
                    if here not in taken:
                        continue
            if target < start:
                return counts, stored, branches
            at = target
        elif condition is None:
            registers.set(re.search(r"U?[RP][\dZT]+|$", instruction.operands)[0], None)
        elif condition:
            # A jump by a table goes to its first case, which stands behind it; all cases are alike.
            registers.execute(instruction)
    raise ValueError(f"{function.name}: no end")


def epilogue(function, cubin):
    """Counts by name what a warp executes for a tile behind its products."""
    guards, start, whole = (
        guards_of(cubin, function.name),
        function.span_of("HGMMA")[1],
        2 * ELEMENTS,
    )
    counts, stored, branches = walk(function, guards, start, set())
    taken, tried = set(), set()
    while left := branches - tried:
        branch = min(left)
        tried.add(branch)
        try:
            other, bytes_, more = walk(function, guards, start, taken | {branch})
        except (ValueError, IndexError):
            continue
        if bytes_ == whole and (stored != whole or other.total() < counts.total()):
            counts, stored, branches, taken = other, bytes_, branches | more, taken | {branch}
    if stored != whole:
        raise ValueError(f"{function.name}: a lane stores {stored} bytes, not {whole}")
    return counts


def triton_kernel():
    import triton
    import triton.language as tl
    from triton.language.extra.cuda import libdevice

    @triton.jit
    def product(
        x,
        w,
        bias,
        other,
        y,
        rows,
        N: tl.constexpr,
        K: tl.constexpr,
        BLOCK_M: tl.constexpr,
        BLOCK_N: tl.constexpr,
        BLOCK_K: tl.constexpr,
        GROUP: tl.constexpr,
        EPILOGUE: tl.constexpr,
    ):
        pid = tl.program_id(0)
        grid_n: tl.constexpr = N // BLOCK_N
        first = pid // (GROUP * grid_n) * GROUP
        height = tl.minimum(tl.cdiv(rows, BLOCK_M) - first, GROUP)
        at_m = (first + pid % (GROUP * grid_n) % height) * BLOCK_M
        at_n = pid % (GROUP * grid_n) // height * BLOCK_N
        s = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(K // BLOCK_K):
            s = tl.dot(x.load([at_m, step * BLOCK_K]), w.load([at_n, step * BLOCK_K]).T, s)
        m, n = at_m + tl.arange(0, BLOCK_M), at_n + tl.arange(0, BLOCK_N)
        place, mask = m[:, None] * N + n[None, :], m[:, None] < rows
        if EPILOGUE == "bias_residual" or EPILOGUE == "gelu_erf" or EPILOGUE == "gelu_tanh":
            s = s + tl.load(bias + n)[None, :].to(tl.float32)
        if EPILOGUE == "bias_residual":
            s = s + tl.load(other + place, mask=mask).to(tl.float32)
        elif EPILOGUE == "gelu_erf":
            s = s * 0.5 * (1 + tl.erf(s * 0.70710678))
        elif EPILOGUE == "gelu_tanh":
            s = s * 0.5 * (1 + libdevice.tanh((s * s * s * 0.044715 + s) * 0.79788456))
        elif EPILOGUE == "silu_gate":
            s = s / (1 + tl.exp(-s)) * tl.load(other + place, mask=mask).to(tl.float32)
        elif EPILOGUE == "silu_gate_nearest":
            s = tl.math.div_rn(s, 1 + tl.exp(-s)) * tl.load(other + place, mask=mask).to(tl.float32)
        tl.store(y + place, s.to(tl.float16), mask=mask)

    return product


def measured(function, cubin):
    """Bytes of machine code, spills, and what the epilogue executes."""
    spills = sum(instruction.name in ("LDL", "STL") for instruction in function.instructions)
    return 16 * len(function.instructions), spills, epilogue(function, cubin)


def measure_triton(tests, kernel, name, fuses):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    constants = {
        "N": epilogue_quality.N,
        "K": epilogue_quality.K,
        "BLOCK_M": TILE[0],
        "BLOCK_N": TILE[1],
        "BLOCK_K": TILE[2],
        "GROUP": 16,
        "EPILOGUE": name,
    }
    types = {
        "x": f"tensordesc<fp16[{TILE[0]},{TILE[2]}]>",
        "w": f"tensordesc<fp16[{TILE[1]},{TILE[2]}]>",
        "bias": "*fp16",
        "other": "*fp16",
        "y": "*fp16",
        "rows": "i32",
        **dict.fromkeys(constants, "constexpr"),
    }
    aligned = {(argument,): [["tt.divisibility", 16]] for argument in (2, 3, 4)}
    # CUDA 13.0 reads PTX of version 9.0.
    compiled = compile(
        ASTSource(kernel, types, constants, aligned),
        target=GPUTarget("cuda", 90, 32),
        options={
            "num_warps": WARPS,
            "num_stages": STAGES,
            "ptx_version": 90,
            "enable_fp_fusion": fuses,
        },
    )
    (function,) = sass.assembled(compiled.asm["ptx"], tests.path(name))
    return measured(function, tests.path(name) + ".cubin")


def measure(tests, name, tile):
    epilogue_quality.measure_fused(tests, name, tile)
    path = tests.path(f"{name}_{tile}")
    with open(path + "_planned.out.json", encoding="utf-8") as manifest:
        entry = json.load(manifest)["workloads"][0]["families"][0]["kernel"]
    functions = sass.functions(ptx.find_tool("nvdisasm"), path + ".cubin")
    (function,) = [function for function in functions if function.name == entry]
    return measured(function, path + ".cubin")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--no-fusion", action="store_true")
    parser.add_argument("--by-name", action="store_true")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    for tool in ("ptxas", "nvdisasm"):
        if not ptx.find_tool(tool):
            sys.exit(f"error: no {tool} found: run tools/setup.sh")
    try:
        import triton

        kernel = triton_kernel()
    except ImportError as error:
        sys.exit(f"error: {error}: pip install triton numpy")
    tests = harness.Harness(options.bin_dir)
    names = ["plain", *epilogue_quality.FUSED]
    epilogue_quality.FUSED["plain"] = ([], "\n      %h = arith.truncf %a : f32 to f16")
    lines = [
        "| epilogue | kernel | bytes | spills | instructions | of an element | Triton's times |",
        "|" + " --- |" * 7,
    ]
    for name in names:
        found = {"Triton": measure_triton(tests, kernel, name, not options.no_fusion)}
        if name == "silu_gate":
            found["Triton, nearest"] = measure_triton(
                tests, kernel, name + "_nearest", not options.no_fusion
            )
        for tile in epilogue_quality.FUSED_TILES:
            found[tile] = measure(tests, name, tile)
        for label, (size, spills, counts) in found.items():
            total = counts.total()
            lines.append(
                f"| {name} | {label} | {size:,} | {spills} | {total:,} | {total / ELEMENTS:.1f} | "
                f"{total / found['Triton'][2].total():.2f} |"
            )
            if options.by_name:
                print(
                    f"{name} {label}:",
                    ", ".join(f"{count} {key}" for key, count in counts.most_common()),
                    file=sys.stderr,
                )
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.write:
        write_table(
            options.write,
            f"Triton {triton.__version__}.\n\n{text}",
            "benchmarks/tensor_cores/triton_epilogues.py" + " --no-fusion" * options.no_fusion,
        )


if __name__ == "__main__":
    main()
