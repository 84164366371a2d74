"""Modules of IREE with FTuner's kernels, on IREE's own CUDA runtime (docs/iree.md).

They are compiled when the bundle is made, with IREE's compiler, and so are modules of IREE alone. Where
the bundle runs, IREE's programs, which the bundle holds, run and time them. Results are compared with
NumPy in float64. A rehearsal runs them over the stand-in for the driver.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import bundle
from .session import Session

PROGRAMS = ("iree-run-module", "iree-benchmark-module")
# Seconds for which a module is benchmarked.
BENCHMARK_SECONDS = 0.3
# Relative errors, by the type of the operands.
TOLERANCES = {"f32": 1e-5, "f16": 1e-3}

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A product A [T, K] · B [K, N] in a type, and a softmax of its rows if `has_softmax`.

    sizes: the T that are checked, of which the last is timed.
    """

    name: str
    type: str
    n: int
    k: int
    has_softmax: bool
    sizes: tuple[int, ...] = (53, 256)

    def small(self) -> Case:
        return dataclasses.replace(self, n=96, k=64, sizes=(5, 16))

    def text(self) -> str:
        sums = "f32"
        result = f"tensor<?x{self.n}x{sums}>"
        lines = [
            "%c0 = arith.constant 0 : index",
            f"%zero = arith.constant 0.0 : {sums}",
            f"%t = tensor.dim %a, %c0 : tensor<?x{self.k}x{self.type}>",
            f"%e = tensor.empty(%t) : {result}",
            f"%f = linalg.fill ins(%zero : {sums}) outs(%e : {result}) -> {result}",
            "%p = linalg.matmul"
            f" ins(%a, %b : tensor<?x{self.k}x{self.type}>, tensor<{self.k}x{self.n}x{self.type}>)"
            f" outs(%f : {result}) -> {result}",
        ]
        if self.has_softmax:
            lines.append(
                f"%s = linalg.softmax dimension(1) ins(%p : {result}) outs(%e : {result}) -> {result}"
            )
        lines.append(f"return %{'s' if self.has_softmax else 'p'} : {result}")
        body = "\n".join(f"    {line}" for line in lines)
        shape = f'{{ukernel.shape = ["T", {self.k}]}}'
        return (
            f"module attributes {{ukernel.symbols = {{T = #ukernel.range<1 to {max(self.sizes)}>}}}} {{\n"
            f"  func.func @{self.name}(%a: tensor<?x{self.k}x{self.type}> {shape},"
            f" %b: tensor<{self.k}x{self.n}x{self.type}>) -> {result} {{\n{body}\n  }}\n}}\n"
        )

    def operands(self, size: int, seed: int) -> tuple[Array, Array]:
        source = np.random.default_rng(seed + size)
        kind = np.float32 if self.type == "f32" else np.float16
        a, b = source.standard_normal((size, self.k)), source.standard_normal((self.k, self.n))
        # Rows of the softmax that are not of one element alone.
        return a.astype(kind), (b / np.sqrt(self.k)).astype(kind)

    def expected(self, a: Array, b: Array) -> Array:
        product = a.astype(np.float64) @ b.astype(np.float64)
        if not self.has_softmax:
            return product
        powers = np.exp(product - product.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


CASES = (
    Case("projection", "f16", 4096, 4096, False),
    Case("scores", "f32", 768, 768, True),
)


def cases(small: bool) -> tuple[Case, ...]:
    return (CASES[0].small(),) if small else CASES


def without_attributes(text: str) -> str:
    """A module for IREE alone, which does not know FTuner's attributes."""
    text = re.sub(r" attributes \{ukernel\.symbols = \{.*\}\}", "", text)
    return re.sub(r" \{ukernel\.shape = \[[^]]*\]\}", "", text)


def prepare(
    small: bool,
    folder: pathlib.Path,
    device: str,
    options: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Compiles the modules, and copies IREE's programs, into `folder`."""
    import iree._runtime_libs  # type: ignore[import-not-found]

    import ftuner.iree

    folder.mkdir(parents=True)
    (libraries,) = iree._runtime_libs.__path__
    for program in PROGRAMS:
        bundle.pack(pathlib.Path(libraries) / program, folder / f"{program}.xz")
    for case in cases(small):
        source = folder / f"{case.name}.mlir"
        source.write_text(case.text(), encoding="utf-8")
        module = folder / f"{case.name}_ftuner.vmfb"
        emulated = folder / f"lib{case.name}.so" if small else None
        ftuner.iree.compile(source, module, device=device, emulated_kernels=emulated, **options)
        if not small:
            source.write_text(without_attributes(case.text()), encoding="utf-8")
            _compile_alone(source, folder / f"{case.name}_iree.vmfb")
        source.unlink()
        say(f"a module of IREE: {case.name}, {case.type}")


def _compile_alone(source: pathlib.Path, module: pathlib.Path) -> None:
    from ftuner.frontend.iree.toolchain import find

    command = [
        str(find(None)),
        str(source),
        "--iree-hal-target-device=cuda",
        "--iree-cuda-target=sm_89",
        "-o",
        str(module),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)


def measure(session: Session) -> bool:
    folder = session.folder("iree")
    if folder is None:
        return True
    programs = {}
    for name in PROGRAMS:
        programs[name] = bundle.unpack_to_file(folder / f"{name}.xz")
        programs[name].chmod(0o755)
    passed = True
    small = session.bundle.rehearsal
    for case in cases(small):
        done: list[int] = []
        for size in case.sizes:
            if session.seconds_left() <= 0:
                break
            passed &= _size(session, case, size, folder, programs)
            done.append(size)
        session.coverage(case.name, list(case.sizes), done, "iree")
    return passed


def _size(
    session: Session,
    case: Case,
    size: int,
    folder: pathlib.Path,
    programs: dict[str, pathlib.Path],
) -> bool:
    """Checks FTuner's module at a size; times it and IREE's at the last one."""
    inputs = []
    operands = case.operands(size, session.seed)
    for name, operand in zip("ab", operands):
        path = session.scratch / f"{case.name}_{name}.npy"
        np.save(path, operand)
        inputs.append(f"--input=@{path}")
    passed = True
    for way in ("ftuner", "iree"):
        module = folder / f"{case.name}_{way}.vmfb"
        if not module.exists():
            continue
        arguments = [f"--module={module}", f"--function={case.name}", "--device=cuda", *inputs]
        error = problem = microseconds = None
        try:
            if way == "ftuner":
                result = session.scratch / "result.npy"
                output = f"--output=@{result}"
                _run(session, case, folder, [str(programs[PROGRAMS[0]]), *arguments, output])
                wanted = case.expected(*operands)
                error = float(
                    np.linalg.norm(np.load(result).astype(np.float64) - wanted)
                    / np.linalg.norm(wanted)
                )
                if not error <= TOLERANCES[case.type]:
                    raise ValueError(f"relative error {error:.3g} above {TOLERANCES[case.type]:g}")
            if size == case.sizes[-1] and not session.bundle.rehearsal:
                least = f"--benchmark_min_time={BENCHMARK_SECONDS}s"
                printed = _run(
                    session,
                    case,
                    folder,
                    [str(programs[PROGRAMS[1]]), *arguments, least, "--benchmark_format=json"],
                )
                microseconds = _microseconds(printed)
        except (OSError, ValueError, subprocess.SubprocessError) as failure:
            problem = f"{type(failure).__name__}: {failure}"[:1000]
            passed &= way != "ftuner"
            print(f"FAILED {case.name}, T={size}, {way}: {problem}", flush=True)
        session.write(
            "iree",
            case=case.name,
            size=size,
            how=way,
            microseconds=microseconds,
            error=error,
            problem=problem,
        )
    return passed


def _run(session: Session, case: Case, folder: pathlib.Path, command: Sequence[str]) -> str:
    """Returns what a program prints. Raises ValueError with its words if it fails."""
    environment = dict(os.environ)
    if session.bundle.rehearsal:
        environment["LD_LIBRARY_PATH"] = str(session.bundle.folder / "lib" / "cuda-emulator")
        environment["FTRT_EMULATED_LIBRARIES"] = str(folder / f"lib{case.name}.so")
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=max(1.0, session.seconds_left()),
    )
    if done.returncode != 0:
        raise ValueError(f"status {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def _microseconds(printed: str) -> float:
    """The time of an invocation in what iree-benchmark-module prints."""
    (found,) = json.loads(printed)["benchmarks"]
    factors = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
    return float(found["real_time"]) * factors[found["time_unit"]]
