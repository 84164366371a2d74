"""The library of handmade.c: a manifest and a build for it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ftuner import locations

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]

SCALAR_TYPES = ["f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64"]


def tensor(type: str, *shape: Any) -> dict[str, Any]:
    return {"kind": "tensor", "type": type, "shape": list(shape)}


def scalar(type: str) -> dict[str, Any]:
    return {"kind": "scalar", "type": type}


def function(name: str, arguments: list[Any], results: list[Any]) -> dict[str, Any]:
    return {
        "name": name,
        "symbol": name,
        "result_sizes_symbol": f"{name}_result_sizes",
        "workspace_size_symbol": f"{name}_workspace_size",
        "arguments": arguments,
        "results": results,
    }


def handmade_manifest() -> dict[str, Any]:
    return {
        "format_version": 5,
        "device": {"name": "handmade"},
        "functions": [
            function("scale", [tensor("f32", "T", 4), scalar("f32")], [tensor("f32", "T", 4)]),
            function(
                "join",
                [tensor("f32", "T", "K"), tensor("f64", "K", None), scalar("index")],
                [tensor("f32", None, None), tensor("f64", None, None, None)],
            ),
            function("place", [tensor("f32", None)], [tensor("i64", 2)]),
            *(
                function(f"fill_{t}", [tensor(t, None), scalar(t)], [tensor(t, None)])
                for t in SCALAR_TYPES
            ),
            function("many", [scalar("f16")] * 12, [tensor("f16", 12)]),
        ],
    }


def build_handmade(
    folder: Path, abi_version: int = 1, host_images: int = 1, manifest: str | None = None
) -> Path:
    """Compiles handmade.c; it needs the runtime only by its name, as compiled libraries do."""
    folder.mkdir(parents=True, exist_ok=True)
    text = manifest if manifest is not None else json.dumps(handmade_manifest())
    (folder / "manifest.inc").write_text(", ".join(str(byte) for byte in text.encode()))
    library = folder / "libhandmade.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "the tests need a C compiler"
    runtime = locations.find(locations.RUNTIME_LIBRARY)
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wno-psabi", "-o", library]
    command += [f"-I{folder}", f"-I{ROOT / 'include'}", f"-DABI_VERSION={abi_version}"]
    command += [f"-DHOST_IMAGES={host_images}", FOLDER / "handmade.c", runtime]
    subprocess.run(command, check=True)
    return library
