"""Makes the bundle that run.sh takes to a GPU: `prepare.sh --help`.

Runs where FTuner is built; needs no GPU. Everything that takes a compiler is done
here, for there is no LLVM where the bundle runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

from . import bundle, plans
from .parts import CALL_SECONDS, of_call, part_named
from .workloads import FULL, SMALL, Workload, matching

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
MOST_BYTES = 40 << 20

# Codegen paths whose kernels are measured, gated ones included: each device measures the paths that it runs.
PATHS = "simt,mma,rows,chains,wgmma"

# Sizes whose programs are timed, of the workloads that have some. Those of batches are
# multiples of 4: rows of other sizes are not aligned, and one kernel serves them.
SELECTION_SIZES = {
    # Products of few blocks have slices of k: dense 64, dense16 15, linear 128.
    "dense": (1, 16, 64, 128),
    "dense16": (15, 128),
    "batch_nt": (52, 128),
    "batch_nn": (128,),
    "linear": (16, 128, 2048),
    # One wave of blocks, with ping-pong and without.
    "dense_f16": (100, 128),
    # Many waves: clusters, persistent blocks, ping-pong, swapped operands and consumers.
    "llama_out": (100, 128, 2048, 4096),
    "llama_down": (128, 2048, 4096),
    "llama_qkv": (4096,),
    "bert_up_gelu": (2048, 4096),
}
REHEARSAL_SELECTION_SIZES = {
    "dense": (8,),
    "batch_nn": (8,),
    "llama_out": (64,),
    "bert_up_gelu": (64,),
}
# Parts that time programs of pools.
POOLS = ("pools", "selection")
# Options for a function in a rehearsal.
REHEARSAL_KERNELS = ["--max-kernels=1"]


class Preparation:
    """State that all steps share."""

    def __init__(self, options: argparse.Namespace):
        self.out: pathlib.Path = options.out
        self.build: pathlib.Path = options.build
        self.tools = self.build / "bin"
        self.rehearsal: bool = options.rehearsal
        skipped = set(options.skip.split(","))
        self.parts = [part for part in of_call(options.call) if part.name not in skipped]
        self.paths = [f"--paths={options.paths}"]
        self.fewer = REHEARSAL_KERNELS if self.rehearsal else []
        self.taken: dict[tuple[str, str, str], bool] = {}
        self.start = time.monotonic()
        self.workloads = tuple(
            dataclasses.replace(workload, paths=options.paths)
            for workload in matching(SMALL if self.rehearsal else FULL, options.workloads)
            if any(part.takes(workload) for part in self.parts if part.groups or part.workloads)
            and (not workload.packs or self.takes_packed(options, workload))
        )

    def has(self, name: str) -> bool:
        """Returns true if the bundle is made with a part."""
        return any(part.name == name for part in self.parts)

    def takes_packed(self, options: argparse.Namespace, workload: Workload) -> bool:
        """Whether there are kernels for packed weights on all devices."""
        from ftuner.describe.descriptions import devices

        capabilities = {
            devices().get(name, {}).get("compute_capability") for name in options.devices
        }
        takes = "wgmma" in options.paths.split(",") and capabilities == {"9.0"}
        if not takes:
            self.say(
                f"left out: {workload.title}: needs wgmma among --paths, and built-in devices of "
                "compute capability 9.0"
            )
        return takes

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.start:6.1f} s] {text}", flush=True)

    def library(
        self, source: pathlib.Path, device: str, target: pathlib.Path, *options: str
    ) -> None:
        """Compiles a module ahead of time: PTX, and a cubin for the device where there is a
        ptxas; in a rehearsal PTX and code for the emulator."""
        images = ["--emulator"] if self.rehearsal else ["--cubins=auto"]
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "libworkload.so"
            plans.run(
                [
                    str(self.tools / "ftuner-translate"),
                    str(source),
                    "--ftuner-to-library",
                    f"--device={device}",
                    *images,
                    *options,
                    "-o",
                    str(library),
                ]
            )
            if target.suffix == ".xz":
                bundle.pack(library, target)
            else:
                shutil.copy(library, target)

    def device(self, name: str) -> dict[str, Any]:
        """Compiles everything for a described device; its entry in bundle.json."""
        folder = self.out / name
        folder.mkdir(parents=True)
        files: dict[str, str] = {}
        if self.has("proof"):
            from .proof import prepare

            count, refused = prepare(folder / "proof", name)
            files["proof"] = f"{name}/proof"
            self.say(f"{name}: {count} families that prove codegen paths")
            for words in refused:
                self.say(f"{name}: refused: {words}")
        for workload in self.workloads:
            source = folder / f"{workload.name}.mlir"
            source.write_text(workload.mlir(), encoding="utf-8")
            target = folder / f"{workload.name}.so.xz"
            self.library(source, name, target, *workload.options(), *self.fewer)
            files["library_" + workload.name] = str(target.relative_to(self.out))
            self.say(f"{name}: {workload.title}")
            if any(self.has(part) and part_named(part).takes(workload) for part in POOLS):
                files.update(self.selection(source, name, workload))
        if self.has("models"):
            files["models"] = f"{name}/models"
            self.models(name, folder / "models")
        for part in ("epilogues", "forward"):
            if self.has(part):
                files[part] = f"{name}/{part}"
                self.forward(part, name, folder / part)
        if self.has("rows"):
            files["rows"] = f"{name}/rows"
            self.rows(name, folder / "rows")
        if self.has("iree"):
            files["iree"] = f"{name}/iree"
            self.iree(name, folder / "iree")
        return {"files": files}

    def iree(self, device: str, folder: pathlib.Path) -> None:
        """Modules of IREE; none where IREE's packages are missing."""
        from .iree_modules import prepare

        options: dict[str, Any] = {"paths": self.paths[0].removeprefix("--paths=")}
        if self.rehearsal:
            options["max_kernels"] = 1
        prepare(
            self.rehearsal, folder, device, options, lambda title: self.say(f"{device}: {title}")
        )

    def models(self, device: str, folder: pathlib.Path) -> None:
        """The functions of the models."""
        from .models import record

        taken = record(self.rehearsal, folder, self.compiler_of_texts(device), device)
        self.say(
            f"{device}: models, traced by PyTorch {importlib.metadata.version('torch')}: {len(list(folder.glob('*.so.xz')))} functions; products taken: "
            + ", ".join(f"{count} of {name}" for name, count in taken.items())
        )

    def forward(self, part: str, device: str, folder: pathlib.Path) -> None:
        """Models and operators that FTuner compiles alone."""
        from .forward import prepare

        prepare(
            part,
            self.rehearsal,
            folder,
            self.compiler_of_texts(device),
            lambda title: self.say(f"{device}: {title}, by FTuner alone"),
        )

    def rows(self, device: str, folder: pathlib.Path) -> None:
        """Operators on rows of any number and length."""
        from .rows import prepare

        prepare(
            self.rehearsal,
            folder,
            self.compiler_of_texts(device),
            lambda title: self.say(f"{device}: {title}, of any rows and columns"),
        )

    def compiler_of_texts(self, device: str) -> Callable[[str, pathlib.Path], None]:
        """What compiles a text to a library of the bundle."""

        def compile_text(text: str, library: pathlib.Path) -> None:
            with tempfile.TemporaryDirectory() as temporary:
                source = pathlib.Path(temporary) / "function.mlir"
                source.write_text(text, encoding="utf-8")
                self.library(source, device, library, *self.paths, *self.fewer)

        return compile_text

    def takes(
        self, source: pathlib.Path, device: str, workload: Workload, program: dict[str, Any]
    ) -> bool:
        """Returns true if the compiler takes a program that the search does not know."""
        key = (workload.name, device, program["attribute"])
        if key not in self.taken:
            self.taken[key] = plans.is_valid(self.tools, source, device, program)
        return self.taken[key]

    def selection(self, source: pathlib.Path, device: str, workload: Workload) -> dict[str, str]:
        """Programs of some sizes, a library with the kernels of their families, and one with a function
        for each program that has slices."""
        every_size = REHEARSAL_SELECTION_SIZES if self.rehearsal else SELECTION_SIZES
        sizes = every_size.get(workload.name, ())
        from ftuner.describe import descriptions

        sms = int(descriptions.resolve(device).content()["sm_count"])
        families: dict[str, int] = {}
        sliced: list[tuple[int, dict[str, Any]]] = []
        programs: dict[str, list[dict[str, Any]]] = {}
        counts: dict[str, int] = {}
        for size in sizes:
            every = plans.explain(self.tools, source, device, workload, size)
            counts[str(size)] = len(every)
            programs[str(size)] = []
            sampled: list[tuple[int | None, dict[str, Any]]] = [*plans.sample(every, size)]
            batch, *extents = workload.extents(size)
            others = plans.variants(every, batch, extents, sms, *((1,) if self.rehearsal else ()))
            if self.rehearsal:
                unknown = [one for one in others if one[0] is None]
                sampled, others = sampled[::3], unknown[:2] + unknown[2:][-1:]
            kept = {rank for rank, _ in sampled}
            for rank, program in others:
                if rank is None and self.takes(source, device, workload, program):
                    sampled.append((None, program))
                elif rank is not None and rank not in kept:
                    sampled.append((rank, program))
            for rank, program in sorted(sampled, key=lambda one: one[0] or len(every) + 1):
                if program["reduce_split"] > 1:
                    where: dict[str, Any] = {
                        "function": plans.function_name(workload.name, len(sliced))
                    }
                    sliced.append((workload.symbol_size(size), program))
                else:
                    family = plans.family_text(program)
                    where = {"family": families.setdefault(family, len(families))}
                programs[str(size)].append({"rank": rank, **where, **program})
        programs = {size: listed for size, listed in programs.items() if listed}
        if not families:
            return {}
        self.say(
            f"{device}: {workload.title}: {sum(map(len, programs.values()))} programs of "
            f"{len(programs)} sizes, {len(families)} families, {len(sliced)} with slices"
        )
        files = {}

        def compile_plan(key: str, name: str, text: str) -> None:
            with tempfile.TemporaryDirectory() as temporary:
                plan = pathlib.Path(temporary) / "plan.mlir"
                plan.write_text(text, encoding="utf-8")
                library = source.with_name(f"{workload.name}_{name}.so.xz")
                self.library(plan, device, library, *workload.options())
            files[key + workload.name] = str(library.relative_to(self.out))

        text = plans.module_of_families(self.tools, source, device, list(families))
        compile_plan("selection_", "programs", text)
        if sliced:
            text = plans.module_of_functions(self.tools, source, device, workload.name, sliced)
            compile_plan("slices_", "slices", text)
        with tempfile.TemporaryDirectory() as temporary:
            listing = pathlib.Path(temporary) / "programs.json"
            listing.write_text(
                json.dumps({"sizes": programs, "pool_programs": counts}), encoding="utf-8"
            )
            packed = source.with_name(f"{workload.name}_programs.json.xz")
            bundle.pack(listing, packed)
        files["programs_" + workload.name] = str(packed.relative_to(self.out))
        return files

    def copy(self) -> None:
        """Runtime, package and scripts."""
        (self.out / "lib").mkdir(parents=True)
        libraries = ["libftrt.so.1"] + (["libftrt_emulator.so.1"] if self.rehearsal else [])
        for name in libraries:
            shutil.copy(self.build / "lib" / name, self.out / "lib" / name)
        if self.rehearsal and self.has("iree"):
            shutil.copytree(
                self.build / "lib" / "cuda-emulator", self.out / "lib" / "cuda-emulator"
            )
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(FOLDER, self.out / FOLDER.name, ignore=ignored)
        for name in ("run.sh", "bandwidths.cu", "probes.cu", "timer.cuh"):
            shutil.copy(FOLDER.parent / name, self.out / name)
        share = self.build / "share" / "ftuner"
        for name in ("devices", "proofs"):
            shutil.copytree(share / name, self.out / "share" / "ftuner" / name)
        shutil.copytree(ROOT / "python" / "ftuner", self.out / "python" / "ftuner", ignore=ignored)
        import ftuner

        # As in a wheel; the file of the sources reads the version from CMakeLists.txt.
        (self.out / "python" / "ftuner" / "_version.py").write_text(
            f'"""The version of the package."""\n\nversion = "{ftuner.__version__}"\n',
            encoding="utf-8",
        )


def revision() -> str:
    """The commit, with a mark where the tree differs from it; empty without git."""
    try:
        text = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return text.strip()


def missing(build: pathlib.Path, rehearsal: bool) -> Iterable[str]:
    """What FTuner's build lacks."""
    names = ["bin/ftuner-opt", "bin/ftuner-translate", "lib/libftrt.so.1"]
    for name in names + (["lib/libftrt_emulator.so.1"] if rehearsal else []):
        if not (build / name).exists():
            yield str(build / name)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="prepare.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--devices",
        nargs="+",
        default=["h200", "h100"],
        metavar="NAME",
        help="described devices to compile for (default: h200 h100)",
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=ROOT / "build" / "gpu-bundle",
        help="folder of the bundle, replaced if it is one",
    )
    parser.add_argument(
        "--build",
        type=pathlib.Path,
        default=ROOT / "build" / "release",
        help="FTuner's build tree or its installed prefix",
    )
    parser.add_argument(
        "--workloads",
        default="",
        metavar="NAME,…",
        help="instead of all; patterns as of file names: '*_f16,llama_*'",
    )
    parser.add_argument(
        "--paths",
        default=PATHS,
        metavar="NAME,…",
        help="codegen paths whose kernels compete (default: %(default)s)",
    )
    parser.add_argument(
        "--call",
        default="",
        choices=["", *CALL_SECONDS],
        help="only what the parts of this call of run.sh need (default: both calls)",
    )
    parser.add_argument(
        "--skip",
        default="",
        metavar="PART,…",
        help="leave out what these parts need, such as pools, selection or models",
    )
    parser.add_argument(
        "--torch",
        default="",
        metavar="VERSION",
        help="of PyTorch on the GPU's machine: refuse to trace models by another",
    )
    parser.add_argument(
        "--rehearsal",
        action="store_true",
        help="small workloads for the emulator: to try the scripts without a GPU",
    )
    options = parser.parse_args()
    lacking = list(missing(options.build, options.rehearsal))
    if lacking:
        print(f"error: FTuner is not built: no {', '.join(lacking)}", file=sys.stderr)
        return 1
    # Where FTuner's package finds its tools and runtime.
    os.environ["FTUNER_HOME"] = str(options.build.resolve())
    sys.path.insert(0, str(ROOT / "python"))
    torch = importlib.metadata.version("torch")
    traces = options.call != "first" and "models" not in options.skip.split(",")
    if traces and options.torch and not bundle.is_same_release(torch, options.torch):
        print(
            f"error: --torch: expected PyTorch {options.torch} to trace the models, but got {torch}: "
            "take a Python that has it (PYTHON=… prepare.sh …), or --skip models",
            file=sys.stderr,
        )
        return 1
    try:
        preparation = Preparation(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.out.exists():
        if any(options.out.iterdir()) and not (options.out / "bundle.json").exists():
            print(f"error: {options.out} holds something else than a bundle", file=sys.stderr)
            return 1
        shutil.rmtree(options.out)
    devices: dict[str, dict[str, Any]] = {}

    def describe() -> None:
        bundle.write(
            options.out,
            revision(),
            torch,
            options.rehearsal,
            preparation.workloads,
            devices,
            options.call,
        )

    try:
        preparation.copy()
        describe()
        for name in options.devices:
            devices[name] = preparation.device(name)
            # After each device, so that what is there can be used if a later one fails.
            describe()
    except (plans.ToolFailure, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    size = bundle.size_of(options.out)
    preparation.say(f"{options.out}: {size / 2**20:.1f} MiB")
    if size >= MOST_BYTES:
        print(
            f"error: expected a bundle of less than {MOST_BYTES >> 20} MiB, but got "
            f"{size / 2**20:.1f} MiB; leave out a device, or make it for one --call",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
