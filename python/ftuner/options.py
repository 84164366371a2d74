"""Options of the compiler by their names in Python, and the files that they name."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
from pathlib import Path
from typing import Any, Mapping

from . import compiler, locations
from .compiler import Options, SourceText
from .describe import descriptions
from .errors import Error
from .proof import gates


def read_options(
    options: Mapping[str, Any], device: descriptions.Description, *, may_check: bool = False
) -> Options:
    """Options of the pipeline by name: `max_kernels=8` is `--max-kernels=8`.

    None leaves an option out. Without `paths`, or with "auto", families behind a gate join that
    were proven on the card at hand, if that is the device, and codegen paths and gates with a
    family that failed on it are left out (`proof.gates`); `may_check`: what has no verdict is
    checked first, before kernels run on the card. Raises `TypeError` for
    options that do not exist, and `Error` for a calibration that is no built-in one and no file
    that can be read.
    """
    arguments = []
    calibration = None
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("paths", "auto") == "auto" and "proven_paths" not in given:
        found = gates.gates_for(device, may_check)
        given["proven_paths"] = ",".join(found.proven) or None
        given.setdefault("failed_paths", ",".join(found.failed) or None)
    for name, value in sorted(given.items()):
        if value is None:
            continue
        flag = name.replace("_", "-")
        known = compiler.pipeline_options(locations.tool("ftuner-translate")) - {"device"}
        if flag not in known:
            names = ", ".join(sorted(option.replace("-", "_") for option in known))
            raise TypeError(f"expected an option of the compiler ({names}), but got {name!r}")
        if flag == "calibration" and isinstance(value, (str, os.PathLike)):
            calibration = _read_calibration(value)
            if calibration is not None:
                continue
        if isinstance(value, bool):
            value = str(value).lower()
        elif flag in _FILES and not _is_builtin_predictor(flag, value):
            value = _absolute(str(value), _FILES[flag])
        arguments.append(f"--{flag}={value}")
    return Options(arguments, calibration)


#: Options that name a file, behind this prefix: the compiler runs in a folder of its own.
_FILES = {
    "learned-model": "", "measure-log": "", "measurer": "recorded:", "save-model": "", "transfer-from": "",
}  # fmt: skip


def _values(options: Mapping[str, Any]) -> dict[str, str]:
    """Options that are given, as the compiler calls them."""
    return {
        name.replace("_", "-"): str(value) for name, value in options.items() if value is not None
    }


def read_files(options: Mapping[str, Any]) -> list[Path]:
    """Files whose contents decide what is compiled, beside a calibration, in order of the options.

    Words of a measurer's command are files, too, where there are some of their names.
    """
    values = _values(options)
    files = [
        Path(values[name].removeprefix(prefix))
        for name, prefix in _FILES.items()
        if name != "save-model"
        and values.get(name, "").startswith(prefix)
        and values.get(name)
        and not _is_builtin_predictor(name, values[name])
    ]
    measurer, _, command = values.get("measurer", "").partition(":")
    if measurer == "command":
        with contextlib.suppress(ValueError):  # The compiler has words for such a command.
            words = shlex.split(command)
            found = [shutil.which(word) if not number else word for number, word in enumerate(words)]
            files += [Path(word) for word in found if word and os.path.isfile(word)]
    return files


def hash_files(options: Mapping[str, Any]) -> list[str]:
    """Hashes of the contents of `read_files`; empty texts for files that cannot be read."""
    hashes = []
    for path in read_files(options):
        try:
            hashes.append(hashlib.sha256(path.read_bytes()).hexdigest())
        except OSError:
            hashes.append("")
    return hashes


def writes_files(options: Mapping[str, Any]) -> bool:
    """Returns whether a compilation with these options writes a file beside its result."""
    values = _values(options)
    return bool(values.get("save-model") or values.get("measure-log") and values.get("measurer"))


def _is_builtin_predictor(flag: str, value: Any) -> bool:
    """Returns whether the value names a predictor of the compiler, rather than a file."""
    names = {path.stem for path in locations.find(locations.PREDICTORS).glob("*.predictor")}
    return flag == "learned-model" and isinstance(value, str) and value in names


def _absolute(value: str, prefix: str) -> str:
    """The value with the path behind its prefix made absolute; as it is if it has another one."""
    name = value.removeprefix(prefix)
    is_file = bool(name) and value.startswith(prefix)
    return prefix + os.path.abspath(name) if is_file else value


def _read_calibration(calibration: str | os.PathLike[str]) -> SourceText | None:
    """The calibration at a path; None for the name of a built-in one, and for the device's own."""
    name = os.fspath(calibration)
    builtin = {path.stem for path in locations.find(locations.CALIBRATIONS).glob("*.json")}
    if isinstance(calibration, str) and name in {"", *builtin}:
        return None
    try:
        return SourceText(name, Path(name).read_bytes())
    except FileNotFoundError:
        raise Error(
            f"unknown calibration '{name}': expected the path of a JSON file or one of "
            + ", ".join(sorted(builtin))
        ) from None
    except OSError as error:
        raise Error(f"cannot read calibration file '{name}': {error.strerror}") from error
