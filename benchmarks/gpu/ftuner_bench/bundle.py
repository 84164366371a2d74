"""A bundle: what `prepare` made for a GPU, described by its bundle.json.

bundle.json          what is in it (fields of Bundle)
run.sh, ftuner_bench/, sources of programs in CUDA C++
lib/                 libftrt.so.1, in rehearsals libftrt_emulator.so.1
python/ftuner/       the package
DEVICE/              libraries and kernels for one described device
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import pathlib
import tempfile
from collections.abc import Iterable
from typing import Any

from .workloads import Workload

FORMAT_VERSION = 2


@dataclasses.dataclass(frozen=True)
class Bundle:
    """folder: where it is. call: the call of run.sh that it was made for; empty: both. torch: the
    version of PyTorch that traced the functions of models. devices: from name to the paths and
    facts of its artefacts."""

    folder: pathlib.Path
    revision: str
    call: str
    torch: str
    rehearsal: bool
    workloads: tuple[Workload, ...]
    devices: dict[str, dict[str, Any]]

    @property
    def runtime_path(self) -> pathlib.Path:
        return self.folder / "lib" / "libftrt.so.1"

    def workload(self, name: str) -> Workload:
        for workload in self.workloads:
            if workload.name == name:
                return workload
        known = ", ".join(workload.name for workload in self.workloads)
        raise KeyError(f"expected a workload of the bundle ({known}), but got {name!r}")

    def bytes_of(self, paths: Iterable[str]) -> int:
        """The bytes of files and folders of the bundle."""
        return sum(size_of(self.folder / path) for path in paths)

    def choose_device(self, gpu: str) -> tuple[str, bool]:
        """The described device for a GPU, and whether its name says that it is the GPU's."""
        words = gpu.lower().replace("-", " ").split()
        for name in self.devices:
            if name.lower() in words:
                return name, True
        return next(iter(self.devices)), False


def write(
    folder: pathlib.Path,
    revision: str,
    torch: str,
    rehearsal: bool,
    workloads: tuple[Workload, ...],
    devices: dict[str, dict[str, Any]],
    call: str = "",
) -> None:
    content = {
        "format_version": FORMAT_VERSION,
        "revision": revision,
        "call": call,
        "torch": torch,
        "rehearsal": rehearsal,
        "workloads": [dataclasses.asdict(workload) for workload in workloads],
        "devices": devices,
    }
    (folder / "bundle.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read(folder: pathlib.Path) -> Bundle:
    """Raises ValueError that says what is wrong with the bundle."""
    path = folder / "bundle.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: expected the description of a bundle: {error}") from error
    if content.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path}: expected format_version {FORMAT_VERSION}, "
            f"but got {content.get('format_version')}"
        )
    if not content["devices"]:
        raise ValueError(f"{path}: expected a device, but there is none: prepare.sh did not finish")
    workloads = tuple(
        Workload(**{**fields, **{name: tuple(fields[name]) for name in ("sizes", "first")}})
        for fields in content["workloads"]
    )
    return Bundle(
        folder,
        content["revision"],
        content["call"],
        content["torch"],
        content["rehearsal"],
        workloads,
        content["devices"],
    )


def size_of(path: pathlib.Path) -> int:
    """The bytes of a file, or of all files of a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def is_same_release(one: str, other: str) -> bool:
    """Returns true for versions of PyTorch that differ only in a patch or a build."""
    return one.split(".")[:2] == other.split(".")[:2]


def pack(source: pathlib.Path, target: pathlib.Path) -> None:
    """Compresses a file to `target`, whose name ends in .xz."""
    target.write_bytes(lzma.compress(source.read_bytes(), preset=6))


def unpack(path: pathlib.Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def unpack_to_file(path: pathlib.Path) -> pathlib.Path:
    """A file with the content of `path`, which may be compressed."""
    if path.suffix != ".xz":
        return path
    target = pathlib.Path(tempfile.mkdtemp(prefix="ftuner-bench-")) / path.stem
    target.write_bytes(unpack(path))
    return target
