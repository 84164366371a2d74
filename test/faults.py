#!/usr/bin/env python3
"""Shows what the tests find: builds the programs with faults, and runs tests until one fails for each.

A fault is a change of one line of an emitter or of the dispatch. All are compiled in at once, and the environment
variable FTUNER_FAULT=N switches one of them on. Sources are put back in the end, the programs stay as they are: build
again. Needs a tree without changes in the files of FAULTS.

    python test/faults.py [--only N,M] [--keep | --check]
"""

import argparse
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, "build", "release", "bin")

HELPER = """
#include <cstdlib>
/// Whether a fault is switched on: 1 or 0.
static int ftunerFault(int number) {
  const char *chosen = std::getenv("FTUNER_FAULT");
  return chosen && std::atoi(chosen) == number;
}
"""

CODEGEN = "lib/Codegen/IR/"
ROWS = "lib/Codegen/Rows/IR/RowsReduction.cpp"
#: A test of lit.
CONVOLUTION = "Operators/convolution-run.mlir"
#: What, file, text, its replacement (@ stands for the switch), tests that must find it: of test/Integration, or of lit.
FAULTS = [
    (
        "asynchronous copies are waited for a step too late",
        CODEGEN + "MainLoop.cpp",
        "NVVM::CpAsyncWaitGroupOp::create(b, stepsAhead() - 1);",
        "NVVM::CpAsyncWaitGroupOp::create(b, stepsAhead() - 1 + @);",
        ("split_k", "kernel_families"),
    ),
    (
        "the same of products whose fragments are loaded ahead",
        CODEGEN + "MainLoop.cpp",
        "NVVM::CpAsyncWaitGroupOp::create(b, stages - 2);",
        "NVVM::CpAsyncWaitGroupOp::create(b, stages - 2 + @);",
        ("tensor_cores", "split_k"),
    ),
    (
        "no barrier between their steps",
        CODEGEN + "MainLoop.cpp",
        "gpu::BarrierOp::create(b);\n  };",
        "if (!@)\n      gpu::BarrierOp::create(b);\n  };",
        ("tensor_cores", "split_k"),
    ),
    (
        "their fragments come from the step before",
        CODEGEN + "MainLoop.cpp",
        "return kBlocks.load(toIndex(b, next), 0);",
        "return kBlocks.load(@ ? readStage : toIndex(b, next), 0);",
        ("tensor_cores",),
    ),
    (
        "no barrier between their steps of copies by registers",
        CODEGEN + "MainLoop.cpp",
        "storeStep(vectors, target, reduceOffset);\n    gpu::BarrierOp::create(b);",
        "storeStep(vectors, target, reduceOffset);\n    if (!@)\n      gpu::BarrierOp::create(b);",
        ("prologues", "element_types"),
    ),
    (
        "their fragments come from the step before",
        CODEGEN + "MainLoop.cpp",
        "return kBlocks.load(target, 0);",
        "return kBlocks.load(@ ? stage : target, 0);",
        ("prologues", "element_types"),
    ),
    (
        "no barrier between steps of asynchronous copies",
        CODEGEN + "MainLoop.cpp",
        "gpu::BarrierOp::create(b);\n  auto startNext",
        "if (!@)\n    gpu::BarrierOp::create(b);\n  auto startNext",
        ("split_k", "kernel_families"),
    ),
    (
        "no barrier between steps of copies by registers",
        CODEGEN + "MainLoop.cpp",
        "gpu::BarrierOp::create(b);\n  Value reduceOffset",
        "if (!@)\n    gpu::BarrierOp::create(b);\n  Value reduceOffset",
        ("element_types", "kernel_families"),
    ),
    (
        "a stage too many",
        CODEGEN + "MainLoop.cpp",
        "constant(stages));",
        "constant(stages + @));",
        ("prologues",),
    ),
    (
        "rows of accumulators are stored over each other",
        CODEGEN + "FragmentEpilogue.cpp",
        "math.add(row, firstRow + 8 * half)",
        "math.add(row, firstRow + 8 * half * (1 - @))",
        ("prologues", "tensor_cores"),
    ),
    (
        "the same of swapped operands",
        CODEGEN + "FragmentEpilogue.cpp",
        "number / 2 * 8;",
        "number / 2 * 8 * (1 - @);",
        ("tensor_cores",),
    ),
    (
        "bulk copies store rows that are laid down anew",
        CODEGEN + "FragmentEpilogue.cpp",
        "if (storesInBulk())\n    awaitBulkCopies(b);",
        "if (storesInBulk() && !@)\n    awaitBulkCopies(b);",
        ("wgmma_copies",),
    ),
    (
        "bulk copies store rows before the warp has laid them down",
        CODEGEN + "FragmentEpilogue.cpp",
        "fenceAsyncProxy(b);\n  awaitLanes();",
        "fenceAsyncProxy(b);\n  if (!@)\n    awaitLanes();",
        ("wgmma_copies",),
    ),
    (
        "bulk copies store rows that are not the block's own",
        CODEGEN + "FragmentEpilogue.cpp",
        "if (Value least = tile.firstStored[m])\n        require",
        "if (Value least = tile.firstStored[m]; least && !@)\n        require",
        ("wgmma_copies",),
    ),
    (
        "bytes without a sign are taken to have one",
        "lib/Codegen/Mma/IR/MmaMainLoop.cpp",
        "isUnsignedFactor(tile, side.factor) ?",
        "isUnsignedFactor(tile, side.factor) && !@ ?",
        ("tensor_cores", "split_k"),
    ),
    (
        "bytes across k in another order",
        "lib/Codegen/Mma/IR/MmaMainLoop.cpp",
        "{odd, odd + 2, odd + kBytes,",
        "{odd, odd + 2 * (1 - @), odd + kBytes,",
        ("tensor_cores", "split_k"),
    ),
    (
        "every slice of k begins with the first",
        "lib/Kernel/KernelEmitter.cpp",
        "element = sliceStart;",
        "element = @ ? Value() : sliceStart;",
        ("split_k",),
    ),
    (
        "copies go on behind the end of k",
        CODEGEN + "TileCopy.cpp",
        "return math.less(math.add(reduceOffset, slot.reduce), reduceExtent);",
        "return math.less(math.add(reduceOffset, slot.reduce), math.add(reduceExtent, @));",
        ("prologues", "element_types"),
    ),
    (
        "results are stored behind their end",
        CODEGEN + "ContractionEpilogue.cpp",
        "if (exact)",
        "if (exact || @)",
        ("random_modules",),
    ),
    (
        "those of tensor cores are",
        CODEGEN + "ContractionEpilogue.cpp",
        "if (tile.exact[axis])",
        "if (tile.exact[axis] || @)",
        ("tensor_cores",),
    ),
    (
        "what is computed behind the end of k is not zero",
        CODEGEN + "TileCopy.cpp",
        "return arith::SelectOp::create(b, inReduceRange(slot, reduceOffset), result,",
        "if (@)\n    return result;\n  return arith::SelectOp::create(b, inReduceRange(slot, reduceOffset), result,",
        ("prologues",),
    ),
    (
        "no barrier between warps of a row",
        ROWS,
        "gpu::BarrierOp::create(b);\n  // A slice reads only its own slots.",
        "if (!@)\n    gpu::BarrierOp::create(b);\n  // A slice reads only its own slots.",
        ("rows",),
    ),
    (
        "no barrier between warps of rows across memory",
        ROWS,
        "gpu::BarrierOp::create(b);\n  SmallVector<RowNumbers> numbers(schedule.warps);",
        "if (!@)\n    gpu::BarrierOp::create(b);\n  SmallVector<RowNumbers> numbers(schedule.warps);",
        ("row_families",),
    ),
    (
        "what lies behind the end of a row is reduced",
        ROWS,
        "number = arith::SelectOp::create(b, access.isInside, next, number);",
        "number = @ ? next : Value(arith::SelectOp::create(b, access.isInside, next, number));",
        ("rows",),
    ),
    (
        "chunks of a row in registers are in one slot",
        ROWS,
        "RowNumbers &slot = slots[round % slots.size()];",
        "RowNumbers &slot = slots[@ ? 0 : round % slots.size()];",
        ("row_families",),
    ),
    (
        "images are read beyond their ends",
        CODEGEN + "CopySource.cpp",
        "if (operand.outside &&",
        "if (!@ && operand.outside &&",
        (CONVOLUTION,),
    ),
    (
        "windows begin where images do",
        CODEGEN + "CopySource.cpp",
        "constant = forms[dim]->constant)",
        "constant = @ ? 0 : operand.windows[dim].constant)",
        (CONVOLUTION,),
    ),
    (
        "windows have a stride and a dilation of 1",
        CODEGEN + "CopySource.cpp",
        "if (term.coefficient != 1)",
        "if (term.coefficient != 1 && !@)",
        (CONVOLUTION,),
    ),
    (
        "vectors reach from one tap into the next",
        "lib/Workload/Workload.cpp",
        "extent.isFixed() ? extent.min : 1;",
        "extent.isFixed() ? extent.min * (1 + 7 * @) : 1;",
        (CONVOLUTION,),
    ),
    (
        "every slice of a convolution begins with the first",
        CODEGEN + "FactorCopies.cpp",
        "startsAtSlice(operand) ? Value()",
        "startsAtSlice(operand) || @ ? Value()",
        (CONVOLUTION,),
    ),
    (
        "the alignment of addresses is not checked",
        "lib/Transforms/Dispatch/DispatchWorkloads.cpp",
        "require(address, alignment);",
        "if (!@)\n      require(address, alignment);",
        ("random_modules", "element_types"),
    ),
]


def sources():
    """The files with faults: what they have, and what they have with faults."""
    before, after = {}, {}
    for number, (what, path, text, replacement, _) in enumerate(FAULTS, 1):
        path = os.path.join(ROOT, path)
        content = after.get(path)
        if content is None:
            with open(path, encoding="utf-8") as file:
                before[path] = content = file.read()
            end = content.index("\n\n", content.index("#include"))
            content = content[: end + 1] + HELPER + content[end + 1 :]
        if content.count(text) != 1:
            raise RuntimeError(
                f"{path}: expected {text!r} once: the list must follow the sources ({what})"
            )
        after[path] = content.replace(text, replacement.replace("@", f"ftunerFault({number})"))
    return before, after


def write(contents):
    for path, content in contents.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)


def find_by_lit(test, environment):
    """What a test of lit that fails says first; or None."""
    folder = os.path.join(ROOT, "build", "release", "test")
    with open(os.path.join(ROOT, "build", "release", "CMakeCache.txt"), encoding="utf-8") as cache:
        lit = (
            next(line for line in cache if line.startswith("FTUNER_LIT:")).split("=", 1)[1].strip()
        )
    output = subprocess.run(
        [sys.executable, lit, "-v", test],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not output.returncode:
        return None
    lines = [line.strip("# |") for line in output.stdout.splitlines()]
    return next((line for line in lines if "error" in line), "it fails")


def find(number, tests):
    """The test and the case that find a fault, and what they say; or None."""
    for test in tests:
        command = [
            sys.executable,
            os.path.join(ROOT, "test", "Integration", f"{test}.py"),
            "--bin-dir",
            BIN,
        ]
        environment = {"FTUNER_TEST_SEED": "1", **os.environ, "FTUNER_FAULT": str(number)}
        if test.endswith(".mlir"):
            problem = find_by_lit(test, environment)
            if problem:
                return f"{test}: {problem}"
            continue
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            for line in process.stdout:
                if line.startswith("FAILED"):
                    problem = next(process.stdout, "").strip()
                    process.terminate()
                    return f"{test}, {line.split(':')[0].removeprefix('FAILED').strip()}: {problem}"
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="numbers of faults")
    parser.add_argument(
        "--keep", action="store_true", help="take the programs as they were built with faults"
    )
    parser.add_argument(
        "--check", action="store_true", help="say only whether the list follows the sources"
    )
    options = parser.parse_args()
    if options.check:
        sources()
        return 0
    if not options.keep:
        before, after = sources()
        try:
            write(after)
            subprocess.run(
                [
                    "ninja",
                    "-C",
                    os.path.join(ROOT, "build", "release"),
                    "ftuner-opt",
                    "ftuner-translate",
                    "ftuner-run",
                    "ftuner-test-opt",
                    "ftuner-test-run",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        finally:
            write(before)
    chosen = (
        [int(number) for number in options.only.split(",")]
        if options.only
        else range(1, len(FAULTS) + 1)
    )
    missed = 0
    for number in chosen:
        what, *_, tests = FAULTS[number - 1]
        found = find(number, tests)
        missed += found is None
        print(
            f"{'found ' if found else 'MISSED'} {number} {what}; {found or ', '.join(tests)}",
            flush=True,
        )
    print(f"{len(chosen) - missed} found, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
