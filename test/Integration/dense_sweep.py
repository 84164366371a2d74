#!/usr/bin/env python3
"""Runs matrix products of many sizes and forms in the emulator, against the reference.

Every size of the declared range and sizes beyond it, operands contiguous along
either axis, aligned, odd and prime N and K, every epilogue, any dimension
dynamic, aligned and unaligned pointers; with bounds and race checks and shuffled
threads. Every size must run in one launch, of the family that the plan chooses for
it. Tolerance: ftuner-run's default for f32. The suite runs each module on one of the devices, every size of the
range in two layouts, and epilogues in one of two; with FTUNER_TEST_SCALE above 1 all modules run on both, at every size.
"""

import json

import harness
import models
import plans

ALL_SIZES = [0, *range(1, 129), 129, 200, 257]
SOME_SIZES = [0, *range(1, 129, 3), 129, 200, 257]
FEW_SIZES = [0, 1, 2, 3, 7, 16, 31, 53, 64, 97, 113, 127, 128, 150]


def run(h, name, model, devices, sizes, flags=()):
    """Compiles once and runs each of `sizes` (dicts from symbol to extent)."""
    path = h.write(name + ".mlir", model.text())
    misalign = sum(int(flag.partition("=")[2]) for flag in flags if flag.startswith("--misalign="))
    problems = []
    for device in devices:
        planned = h.tool("ftuner-opt", path, f"--ftuner-front-end=device={device}")
        if planned.returncode != 0:
            problems.append(f"{device}: {planned.stderr}")
            continue
        plan = plans.Plan(planned.stdout)
        result = h.tool(
            "ftuner-run",
            path,
            f"--function={model.name}",
            f"--device={device}",
            "--executor=emulator",
            "--check",
            "--check-bounds",
            "--check-races",
            "--json",
            "--thread-order=shuffled",
            *flags,
            *[f"--args={model.args(**size)}" for size in sizes],
        )
        found = [line for line in result.stderr.splitlines() if "error:" in line]
        runs = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        if result.returncode != 0 or len(runs) != len(sizes):
            found.append(f"exit {result.returncode}, {len(runs)} of {len(sizes)} runs")
        for one, size in zip(runs, sizes):
            found += plans.problems_of_launches(
                plan, one, model.shape(**size), model.contiguous(**size), misalign
            )
            found += [
                f"{one['args']}: relative error {checked['relative_error']}"
                for checked in one["results"]
                if not checked["ok"]
            ]
        problems += [f"{device}: {problem}" for problem in found[:8]]
    return problems


def cases(devices):
    """(label, model, sizes, devices, flags) of every module."""

    def sweep(label, model, sizes, which=devices, flags=()):
        return (
            label,
            model,
            [size if isinstance(size, dict) else {"T": size} for size in sizes],
            which,
            flags,
        )

    epilogues = iter(models.EPILOGUES * 4)
    for n, k in ((64, 48), (67, 37)):
        for ta in (False, True):
            for tb in (False, True):
                every = ALL_SIZES if harness.SCALE > 1 or (k == 48 and ta == tb) else SOME_SIZES
                layout = f"{'T' if ta else 'N'}{'T' if tb else 'N'}"
                epilogue = next(epilogues)
                yield sweep(
                    f"{layout} N={n} K={k} {epilogue}",
                    models.Matmul(n=n, k=k, transpose_a=ta, transpose_b=tb, epilogue=epilogue),
                    every,
                )
    for number, epilogue in enumerate(models.EPILOGUES):
        if harness.SCALE > 1 or number % 2 == 0:
            yield sweep(
                f"NN N=132 K=20 {epilogue}",
                models.Matmul(n=132, k=20, epilogue=epilogue),
                FEW_SIZES,
            )
        if harness.SCALE > 1 or number % 2 == 1:
            yield sweep(
                f"NT N=53 K=101 {epilogue}",
                models.Matmul(n=53, k=101, transpose_b=True, epilogue=epilogue),
                FEW_SIZES,
                devices[:1],
            )
    for n, k in ((1, 1), (1, 64), (64, 1), (2, 3), (4, 4), (256, 8)):
        yield sweep(
            f"NN N={n} K={k}", models.Matmul(n=n, k=k, epilogue="bias_n"), FEW_SIZES, devices[:1]
        )
    yield sweep("init tensor", models.Matmul(init="tensor", epilogue="relu"), FEW_SIZES)
    yield sweep("init tensor alone", models.Matmul(init="tensor", n=61), FEW_SIZES)
    yield sweep("fill with 0.5", models.Matmul(fill_value="0.5", k=16), FEW_SIZES)
    yield sweep(
        "unaligned pointers",
        models.Matmul(epilogue="residual"),
        FEW_SIZES,
        devices,
        ("--misalign=4",),
    )
    yield sweep(
        "unaligned by eight",
        models.Matmul(epilogue="bias_n", transpose_b=True),
        FEW_SIZES,
        devices,
        ("--misalign=8",),
    )

    grid = [0, 1, 4, 7, 33, 64, 130]
    for ta, tb in ((False, False), (False, True), (True, False)):
        layout = f"{'T' if ta else 'N'}{'T' if tb else 'N'}"
        yield sweep(
            f"{layout} dynamic M N K",
            models.Matmul(m="M", n="N", k="K", transpose_a=ta, transpose_b=tb, epilogue="bias_n"),
            [{"M": m, "N": n, "K": k} for m in grid for n in grid[:5] for k in (0, 5, 32, 67)],
            devices[:1],
        )
    yield sweep(
        "dynamic N",
        models.Matmul(m=96, n="N", k=40, epilogue="bias_n"),
        [{"N": n} for n in (0, 1, 5, 64, 100, 128, 300)],
    )
    yield sweep(
        "dynamic K",
        models.Matmul(m=96, n=72, k="K", epilogue="bias_m"),
        [{"K": k} for k in (0, 1, 5, 16, 17, 64, 100, 300)],
    )
    yield sweep(
        "open range",
        models.Matmul(ranges={"T": "#ukernel.range<16 to ?>"}),
        [0, 1, 15, 16, 17, 100, 1000],
    )
    yield sweep(
        "step range",
        models.Matmul(ranges={"T": "#ukernel.range<16 to 512 step 16>"}),
        [1, 16, 48, 53, 64, 512, 513],
    )
    yield sweep("static", models.Matmul(m=53, n=96, k=40, epilogue="bias_gelu"), [{}])


def main():
    h, options = harness.start(__doc__, {"--devices": {"default": "h200,t4"}})
    for number, (label, model, sizes, devices, flags) in enumerate(
        cases(options.devices.split(","))
    ):
        devices = harness.share(devices, number)
        h.add(label, run, h, label.replace(" ", "_"), model, devices, sizes, flags)
    h.finish()


if __name__ == "__main__":
    main()
