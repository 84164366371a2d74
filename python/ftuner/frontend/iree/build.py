"""`compile`: from a model to a module of IREE's runtime."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import compiler
from ...describe import descriptions
from ...errors import CompileWarning, Error
from ...host import outputs, processes
from ...host.progress import Progress
from . import models
from .report import Report, read_report
from .toolchain import Toolchain, open_toolchain

#: Targets of IREE: a GPU, or this CPU, where FTuner's plugin for IREE runs the kernels.
TARGETS = ("cuda", "llvm-cpu")
#: IREE's phases that FTuner can follow; "start" for linalg with FTuner's attributes.
PHASES = ("start", "input", "preprocessing")
#: Lowerings of PyTorch's attention: IREE's own, or two products and a softmax.
ATTENTION = ("iree", "products")


@dataclass(frozen=True)
class Compiled:
    """A module of IREE's runtime.

    Attributes:
        report: what it holds.
        path: of its file; None if it was not asked for.
    """

    report: Report
    path: Path | None
    _content: bytes | None = None

    @property
    def content(self) -> bytes:
        """The module."""
        if self._content is not None:
            return self._content
        assert self.path is not None
        return self.path.read_bytes()


def compile(  # noqa: A001
    model: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    device: descriptions.Device | None = None,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    target: str = "cuda",
    cuda_target: str | None = None,
    phase: str | None = None,
    attention: str = "iree",
    parameters: str | os.PathLike[str] | None = None,
    cubins: Sequence[str | int] | str | None = None,
    any_address: bool = False,
    emulated_kernels: str | os.PathLike[str] | None = None,
    require: bool = False,
    iree_compile: str | os.PathLike[str] | None = None,
    iree_flags: Sequence[str] | str = (),
    keep_intermediates: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Compiled:
    """Compiles a model by IREE, with FTuner's kernels for its products.

    Args:
        model: a path that ends in .mlir, .mlirbc, .onnx or .pt2, an exported program of PyTorch, or
            a module to export.
        output: path of the module to write.
        device: as of `ftuner.compile`; FTuner's kernels are for it.
        args, kwargs, dynamic_shapes: for `torch.export.export`, if the model is a module.
        target: what IREE compiles for, one of `TARGETS`.
        cuda_target: for the kernels that IREE makes itself, such as "sm_89"; None: what suits the
            device.
        phase: after which of IREE's phases (`PHASES`) FTuner takes the products. None: "start" for
            linalg with FTuner's attributes, "preprocessing" for everything else.
        attention: of PyTorch's `scaled_dot_product_attention`: "iree" leaves it to IREE, with
            "products" FTuner takes its two products.
        parameters: a file for the weights, which are part of the module without it. It ends in
            .safetensors for models of PyTorch, and in .irpa for ONNX; `iree-run-module` takes it as
            --parameters=model=FILE.
        cubins: a processor to assemble FTuner's kernels for, such as "sm_90"; needs ptxas. Without
            it they are PTX.
        any_address: whether callers' buffers may begin anywhere; otherwise they are taken to be
            aligned as IREE's own.
        emulated_kernels: a library to write, for runs without a GPU.
        require: whether it is an error if FTuner finds no product, instead of a warning.
        iree_compile: the program; None finds it.
        iree_flags: more of its flags; a str is one flag.
        keep_intermediates: a folder for what the steps write, also when one fails.
        options: options of the pipeline, as for `ftuner.compile`.

    Raises:
        CompileError: IREE or FTuner refuses the model.
        Error: a program or a package is missing or too old, or a file cannot be read or written.
        TypeError: an argument or option does not exist, or does not take the value.
    """
    _check("target", target, TARGETS)
    _check("attention", attention, ATTENTION)
    if phase is not None:
        _check("phase", phase, PHASES)
    suffix = models.parameters_suffix(model)
    if parameters is not None and (not suffix or not os.fspath(parameters).endswith(suffix)):
        expected = f"a file that ends in {suffix}" if suffix else "none for MLIR"
        raise Error(f"parameters: expected {expected}, but got '{os.fspath(parameters)}'")
    description = descriptions.resolve(device)
    settings = _Settings(
        toolchain=open_toolchain(
            iree_compile, [*_target_flags(target, cuda_target, description), *_flags(iree_flags)]
        ),
        device=description,
        options=compiler.read_options(options, description),
        cubins=compiler.cubin_names(cubins),
        any_address=any_address,
        target=target,
        phase=phase,
        require=require,
    )
    asked = {"module": output, "parameters": parameters, "kernels": emulated_kernels}
    written = {key: os.fspath(path) for key, path in asked.items() if path is not None}
    with (
        Progress(f"compiling {models.name_of(model)} for IREE"),
        _intermediates(keep_intermediates, model) as folder,
        outputs.replacing([*written.values()]) as names,
    ):
        files = {key: Path(name) for key, name in zip(written, names)}
        module = files.get("module", folder / "model.vmfb")
        weights = files.get("parameters", folder / f"weights{suffix}")
        prepared = models.prepare(
            model,
            folder,
            weights,
            args=args,
            kwargs=kwargs,
            dynamic_shapes=dynamic_shapes,
            attention=attention,
        )
        report = _build(
            prepared, module, folder, settings, "parameters" in files, files.get("kernels")
        )
        content = module.read_bytes() if output is None else None
    return Compiled(report, None if output is None else Path(output), content)


@dataclass(frozen=True)
class _Settings:
    toolchain: Toolchain
    device: descriptions.Description
    options: compiler.Options
    cubins: list[str]
    any_address: bool
    target: str
    phase: str | None
    require: bool


def _check(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise TypeError(f"{name}: expected {' or '.join(known)}, but got {value!r}")


def _flags(flags: Sequence[str] | str) -> list[str]:
    given = [flags] if isinstance(flags, str) else flags
    if not isinstance(given, Sequence) or not all(isinstance(flag, str) for flag in given):
        raise TypeError(f"iree_flags: expected a list of flags, but got {flags!r}")
    return [*given]


def _target_flags(
    target: str, cuda_target: str | None, device: descriptions.Description
) -> list[str]:
    if target == "cuda":
        return [
            "--iree-hal-target-device=cuda",
            f"--iree-cuda-target={cuda_target or _cuda_target(device)}",
        ]
    if cuda_target is not None:
        raise TypeError(f"cuda_target: expected none with the target {target}")
    return [
        "--iree-hal-target-device=local",
        f"--iree-hal-local-target-device-backends={target}",
        "--iree-llvmcpu-target-cpu=host",
    ]


# Architectures of which IREE 3.13 has details, without which it makes no kernels.
_CUDA_TARGETS = ((8, 9), (8, 6), (8, 0), (7, 5), (7, 0))


def _cuda_target(device: descriptions.Description) -> str:
    """The newest of IREE's architectures that runs on the device."""
    try:
        capability = str(json.loads(device.text)["compute_capability"])
        numbers = tuple(int(part) for part in capability.split("."))
    except (ValueError, KeyError, TypeError):
        numbers = ()  # FTuner says what is wrong with the description.
    known = [entry for entry in _CUDA_TARGETS if entry <= numbers] or [_CUDA_TARGETS[0]]
    return "sm_" + "".join(map(str, known[0]))


#: Files that the steps write.
_INTERMEDIATES = (
    *("model.mlir", "model.mlirbc", "weights.safetensors", "weights.irpa"),
    *("before.mlir", "after.mlir", "report.json", "statistics.json"),
)


@contextlib.contextmanager
def _intermediates(folder: str | os.PathLike[str] | None, model: Any) -> Iterator[Path]:
    if folder is None:
        with processes.temporary_folder() as temporary:
            yield Path(temporary)
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(f"cannot make the folder '{os.fspath(folder)}': {error.strerror}") from error
    files = [Path(folder, name) for name in _INTERMEDIATES]
    if isinstance(model, (str, os.PathLike)) and os.path.exists(model):
        for file in files:
            if file.exists() and file.samefile(model):
                raise Error(f"keep_intermediates: '{file}' is the model itself")
    yield Path(folder).absolute()


def _build(
    model: models.Model,
    module: Path,
    folder: Path,
    settings: _Settings,
    keeps_parameters: bool,
    kernels: Path | None,
) -> Report:
    """Writes the module, and the kernels for the emulator if asked."""
    phase = settings.phase or ("start" if model.has_own_attributes() else "preprocessing")
    before, after = folder / "before.mlir", folder / "after.mlir"
    names = {str(model.path): model.name, str(after): f"{model.name} (after FTuner)"}
    if phase == "start":
        before = model.path
    else:
        Progress.begin_stage(f"IREE: {phase}")
        arguments = [f"--compile-to={phase}", "--mlir-print-op-generic"]
        settings.toolchain.run(model.path, before, arguments, title=model.name, names=names)
    name = model.name if phase == "start" else f"{model.name} ({phase})"
    reported = _translate(name, before, after, folder, settings, kernels)
    statistics = folder / "statistics.json"
    arguments = [
        "--iree-scheduling-dump-statistics-format=json",
        f"--iree-scheduling-dump-statistics-file={statistics}",
    ]
    if phase != "start":
        arguments.append(f"--compile-from={phase}")
    if model.parameters is not None and not keeps_parameters:
        arguments += [
            f"--iree-parameter-import=model={model.parameters}",
            # All of them, whatever their size.
            f"--iree-parameter-import-maximum-size={2**63 - 1}",
        ]
    Progress.begin_stage("IREE: compiling the rest")
    settings.toolchain.run(
        after, module, arguments, title=f"{model.name} with FTuner's kernels", names=names
    )
    report = read_report(reported, statistics)
    if report.ftuner_dispatches == 0:
        _tell_of_none(model.name, settings.require)
    return report


def _tell_of_none(name: str, is_error: bool) -> None:
    text = f"FTuner found no product in {name}: all of it is IREE's"
    if is_error:
        raise Error(text)
    warnings.warn(f"warning: {text}", CompileWarning, stacklevel=2)


def _translate(
    name: str, before: Path, after: Path, folder: Path, settings: _Settings, kernels: Path | None
) -> Path:
    """Writes the module with FTuner's dispatches to `after`; returns the path of the report."""
    content, constants = _without_resources(before.read_bytes())
    reported = folder / "report.json"
    arguments = ["--ftuner-to-iree", "-o", str(after), f"--report={reported}"]
    arguments.append(f"--iree-target={settings.target}")
    if settings.cubins:
        arguments.append("--cubins=" + ",".join(settings.cubins))
    if settings.any_address:
        arguments.append("--iree-any-address")
    if kernels is not None:
        arguments.append(f"--emulated-kernels={kernels}")
    compiler.translate(
        compiler.SourceText(name, content), settings.device, settings.options, arguments
    )
    if constants:
        with after.open("ab") as file:
            file.write(constants)
    return reported


def _without_resources(text: bytes) -> tuple[bytes, bytes]:
    """Splits a module from its constants, which follow it and are most of the text."""
    begin = text.rfind(b"\n{-#")
    if begin < 0 or not text.rstrip().endswith(b"#-}"):
        return text, b""
    return text[: begin + 1], text[begin:]
