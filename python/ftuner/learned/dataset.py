"""Programs as trees, with the times that a predictor learns.

A data set is one file (docs/learned-data.md): a ZIP archive of NumPy arrays, as `numpy.savez` writes,
and `header.json` with what they have in common.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..errors import Error
from ..host import outputs
from ..latency.measurements import ftuner_rows
from ..latency.measurements.rows import Devices, read_folds, read_times
from ..latency.measurements.table import Table
from ..latency.model import Array, Launches, Model, ProgramTree, model

# Kinds of times: measured, or predictions of the latency model. Kinds of trees: that of the kernel that
# ran, as far as its source says, or that of another one in its place.
MEASURED, SYNTHETIC = "measured", "synthetic"
KNOWN, PROXY = "known", "proxy"

FORMAT, VERSION = "ftuner-dataset", 2
# Rows whose features are copied at once.
_CHUNK = 20000


def device_figures() -> tuple[str, ...]:
    """Names of the figures of a device that a predictor reads, as log₂(1 + figure)."""
    return model().learned_device_fields


def device_vector(figures: dict[str, float]) -> npt.NDArray[np.float32]:
    """The figures of a device (`Model.device`) that a predictor reads."""
    return np.log2([1 + figures[name] for name in device_figures()]).astype(np.float32)


@dataclasses.dataclass
class Dataset:
    """Programs, their devices and their times.

    A program has a tree for each part that has blocks. Programs of one task compute the same
    shape on the same device; programs of a shape are in one fold, but for tuned kernels of one task.
    """

    trees: list[list[ProgramTree]]
    microseconds: npt.NDArray[np.float64]
    device: npt.NDArray[np.int64]
    device_names: list[str]
    # devices × device_figures().
    device_vectors: npt.NDArray[np.float32]
    task: npt.NDArray[np.int64]
    task_names: list[str]
    fold: npt.NDArray[np.int64]
    # Predictions of `latency` with the compiler's constants; NaN for programs without a formula.
    predicted: npt.NDArray[np.float64]
    # Texts of each row: linear, softmax, …; the model whose sizes it has ("": none); the file's name;
    # MEASURED or SYNTHETIC; KNOWN or PROXY.
    operator: npt.NDArray[np.str_]
    model: npt.NDArray[np.str_]
    source: npt.NDArray[np.str_]
    kind: npt.NDArray[np.str_]
    knowledge: npt.NDArray[np.str_]
    # Programs of one number are all of the ways in which a tuner ran one task; -1: of no such set.
    group: npt.NDArray[np.int64]

    # Fields with an element for each row, in the order of files.
    NUMBERS = ("microseconds", "device", "task", "fold", "predicted", "group")
    TEXTS = ("operator", "model", "source", "kind", "knowledge")

    def __len__(self) -> int:
        return len(self.trees)

    def select(self, rows: npt.NDArray[Any]) -> Dataset:
        """Selects rows by a mask or indices."""
        indices = np.arange(len(self))[rows]
        return dataclasses.replace(
            self,
            trees=[self.trees[row] for row in indices.tolist()],
            **{name: getattr(self, name)[indices] for name in (*self.NUMBERS, *self.TEXTS)},
        )

    def statements(self) -> list[int]:
        """Numbers of statements that trees have, each once."""
        return sorted({len(tree.ordering) for trees in self.trees for tree in trees})

    @classmethod
    def make(
        cls,
        trees: list[list[ProgramTree]],
        microseconds: npt.NDArray[np.float64],
        device: npt.NDArray[np.int64],
        device_names: Sequence[str],
        device_vectors: npt.NDArray[np.float32],
        *,
        key: Iterable[str],
        fold: npt.NDArray[np.int64],
        operator: Any,
        source: str,
        predicted: npt.NDArray[np.float64] | None = None,
        model: Any = "",
        kind: Any = MEASURED,
        knowledge: Any = KNOWN,
        is_tuned: bool = False,
    ) -> Dataset:
        """A data set of rows: `key` says which of them are of one task on their device, texts are those of
        each row or of all, and rows that `is_tuned` have their tasks as groups."""
        size = len(trees)
        names = [f"{text} on {device_names[index]}" for text, index in zip(key, device.tolist())]
        task_names, task = np.unique(np.array(names, str), return_inverse=True)
        task = task.reshape(-1).astype(np.int64)

        def text(value: Any) -> npt.NDArray[np.str_]:
            return np.array(np.broadcast_to(np.asarray(value, str), (size,)))

        return cls(
            trees=trees,
            microseconds=microseconds,
            device=device,
            device_names=list(device_names),
            device_vectors=device_vectors,
            task=task,
            task_names=task_names.tolist(),
            fold=fold.astype(np.int64),
            predicted=np.full(size, np.nan) if predicted is None else predicted,
            operator=text(operator),
            model=text(model),
            source=text(source),
            kind=text(kind),
            knowledge=text(knowledge),
            group=task.copy() if is_tuned else np.full(size, -1, np.int64),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Dataset]) -> Dataset:
        """All rows; tasks and devices of one name are one. Groups of different parts are different.

        Raises `Error` for devices of one name that differ.
        """
        if not parts:
            raise ValueError("expected one data set at least")
        names: dict[str, npt.NDArray[np.float32]] = {}
        tasks: dict[str, int] = {}
        numbers: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in cls.NUMBERS}
        groups = 0
        for part in parts:
            for name, vector in zip(part.device_names, part.device_vectors):
                if not np.allclose(names.setdefault(name, vector), vector):
                    raise Error(
                        f"expected one description of the device '{name}', but got two that differ"
                    )
            order = {name: index for index, name in enumerate(names)}
            device = np.array([order[name] for name in part.device_names], np.int64)
            task = np.array(
                [tasks.setdefault(name, len(tasks)) for name in part.task_names], np.int64
            )
            for name in cls.NUMBERS:
                values = getattr(part, name)
                if name == "device":
                    values = device[values] if len(values) else values
                elif name == "task":
                    values = task[values] if len(values) else values
                elif name == "group":
                    values = np.where(values >= 0, values + groups, values)
                numbers[name].append(values)
            groups += int(part.group.max(initial=-1)) + 1
        return cls(
            trees=[trees for part in parts for trees in part.trees],
            device_names=list(names),
            device_vectors=np.stack(list(names.values())),
            task_names=list(tasks),
            **{name: np.concatenate(values) for name, values in numbers.items()},
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.TEXTS},
        )

    # --- files -----------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the file, all or nothing; returns the hash of its contents, which `load` checks."""
        trees = [tree for trees in self.trees for tree in trees]
        arrays: dict[str, npt.NDArray[Any]] = {name: getattr(self, name) for name in self.NUMBERS}
        texts = {}
        for name in self.TEXTS:
            known, codes = np.unique(getattr(self, name), return_inverse=True)
            texts[name] = known.tolist()
            arrays[name] = codes.reshape(-1).astype(np.int32)
        arrays["device_vectors"] = self.device_vectors
        arrays["parts"] = np.array([len(trees) for trees in self.trees], np.int32)
        arrays["blocks"] = np.array([tree.blocks for tree in trees], np.float64)
        arrays["statements"] = np.array([len(tree.ordering) for tree in trees], np.int32)
        arrays["ordering"] = np.concatenate(
            [tree.ordering for tree in trees] or [np.empty(0, np.int64)]
        ).astype(np.int32)
        width = len(model().program_features())
        digest = hashlib.sha256()
        with outputs.replacing([os.fspath(path)]) as (temporary,):
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for name, values in arrays.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                        _write(file, digest, name, values.dtype, values.shape, [values])
                with archive.open("features.npy", "w", force_zip64=True) as file:
                    shape = (len(arrays["ordering"]), width)
                    chunks = (
                        np.concatenate([tree.features for tree in trees[first : first + _CHUNK]])
                        for first in range(0, len(trees), _CHUNK)
                    )
                    _write(file, digest, "features", np.dtype(np.float32), shape, chunks)
                header = {
                    "format": FORMAT,
                    "version": VERSION,
                    "rows": len(self),
                    "device_figures": list(device_figures()),
                    "features": list(model().program_features()),
                    "device_names": self.device_names,
                    "task_names": self.task_names,
                    "texts": texts,
                }
                digest.update(json.dumps(header, sort_keys=True).encode())
                header["hash"] = digest.hexdigest()
                archive.writestr("header.json", json.dumps(header))
        return digest.hexdigest()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """Raises `Error` for other files and for damaged ones."""
        try:
            with zipfile.ZipFile(path) as archive:
                header = json.loads(archive.read("header.json"))
                if header["format"] != FORMAT or header["version"] != VERSION:
                    raise ValueError(f"expected {FORMAT} of version {VERSION}")
                if tuple(header["device_figures"]) != device_figures():
                    raise ValueError("expected the figures of a device that this version reads")
                if tuple(header["features"]) != model().program_features():
                    raise ValueError("expected the features of a statement that this version has")
                digest = hashlib.sha256()
                arrays = {}
                for name in (*cls.NUMBERS, *cls.TEXTS, "device_vectors", *_OF_TREES, "features"):
                    with archive.open(f"{name}.npy") as file:
                        values = np.lib.format.read_array(file, allow_pickle=False)
                    arrays[name] = values
                    _digest(digest, name, values.dtype, values.shape)
                    digest.update(np.ascontiguousarray(values).data)
                hash = header.pop("hash")
                digest.update(json.dumps(header, sort_keys=True).encode())
                if digest.hexdigest() != hash:
                    raise ValueError("its contents are not those of its hash")
            return cls._from_arrays(header, arrays)
        except OSError as error:
            raise Error(f"cannot read '{path}': {error.strerror or error}") from error
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            EOFError,
            RuntimeError,
            zipfile.BadZipFile,
        ) as error:
            raise Error(f"'{path}' is not a data set: {error}") from error
        except Exception as error:  # zlib.error has no common base with the others.
            raise Error(f"'{path}' is not a data set: {error}") from error

    @classmethod
    def _from_arrays(cls, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Dataset:
        bounds = np.concatenate([[0], np.cumsum(arrays["statements"])]).tolist()
        ordering, features = arrays["ordering"].astype(np.int64), arrays["features"]
        parts = [
            ProgramTree(blocks, ordering[first:last], features[first:last])
            for blocks, first, last in zip(arrays["blocks"].tolist(), bounds, bounds[1:])
        ]
        ends = np.cumsum(arrays["parts"]).tolist()
        return cls(
            trees=[parts[end - count : end] for end, count in zip(ends, arrays["parts"].tolist())],
            device_names=header["device_names"],
            task_names=header["task_names"],
            device_vectors=arrays["device_vectors"],
            **{name: arrays[name] for name in cls.NUMBERS},
            **{name: np.array(header["texts"][name], str)[arrays[name]] for name in cls.TEXTS},
        )


_OF_TREES = ("parts", "blocks", "statements", "ordering")


def _digest(digest: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    digest.update(f"{name} {dtype.str} {shape}".encode())


def _write(
    file: Any, digest: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...],
    chunks: Iterable[npt.NDArray[Any]],
) -> None:  # fmt: skip
    """An array as NumPy's file, from pieces of it."""
    stream: BinaryIO = file
    np.lib.format.write_array_header_1_0(
        stream,
        {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape},
    )
    _digest(digest, name, dtype, shape)
    for chunk in chunks:
        data = np.ascontiguousarray(chunk, dtype).data
        stream.write(data)
        digest.update(data)


def is_dataset(path: str) -> bool:
    """Returns whether a file begins as archives do, which tables of rows never do."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def read(paths: Sequence[str], devices: Devices, is_timed: bool = True) -> Dataset:
    """Data sets, and measured programs of this compiler: FTuner rows (docs/calibration.md).

    If not `is_timed`, no time of FTuner rows is read: all are NaN. Raises `Error` for other rows, and with the line of what cannot be.
    """
    parts = [
        Dataset.load(path)
        if is_dataset(path)
        else read_programs(Table(path), devices, is_timed=is_timed)
        for path in paths
    ]
    data = Dataset.concatenate(parts)
    if not len(data):
        raise Error("expected one measured program at least")
    return data


def require_predictions(data: Dataset) -> None:
    """Raises `Error` for programs that `latency` does not predict: a correction needs a prediction."""
    lacks = ~np.isfinite(data.predicted)
    if lacks.any():
        raise Error(
            f"expected a prediction of the latency model for each program that is corrected, but it has none for {int(lacks.sum())} of "
            f"{len(data)} (rows of {', '.join(np.unique(data.source[lacks]).tolist())}): leave these out, or learn times"
        )


def targets(data: Dataset, corrects: bool) -> npt.NDArray[np.float64]:
    """Returns the target of each program: microseconds, or, if `corrects`, ratios to `latency`'s predictions.

    Raises `Error` for ratios to predictions that there are not.
    """
    if not corrects:
        return data.microseconds
    require_predictions(data)
    return np.asarray(data.microseconds / data.predicted)


def read_programs(
    table: Table, devices: Devices, source: str = "ftuner", is_timed: bool = True
) -> Dataset:
    """Measured programs of this compiler; if not `is_timed`, a column of times is not read, and need not be there."""
    loaded = model()
    missing = [
        name for name in ftuner_rows.COLUMNS if name not in table and (name != "us" or is_timed)
    ]
    if missing:
        raise Error(
            f"{table.path}:1: expected programs of this compiler, but {', '.join(missing)} are missing"
        )
    if not len(table):
        raise Error(f"{table.path}: expected rows, but there is only a header")
    device, columns, programs = ftuner_rows.read_programs(table, devices)
    trees: list[list[ProgramTree]] = [[] for _ in range(len(table))]
    predicted = np.empty(len(table))
    for program_rows in programs:
        with ftuner_rows.errors_by_line(table, program_rows):
            found = loaded.trees(
                devices.sources[program_rows.device], program_rows.path, program_rows.records
            )
            launches = loaded.programs(
                devices.sources[program_rows.device], program_rows.path, program_rows.records
            )
        for row, parts in zip(program_rows.rows, found):
            trees[row] = parts
        predicted[program_rows.rows] = _latency(
            loaded, devices.sources[program_rows.device], *launches
        )
    names = ("batch", "m", "n", "k", "transpose_lhs", "transpose_rhs", "type")
    shapes = [columns[name].tolist() for name in names]
    types = np.array(loaded.program_types)[columns["type"]]
    return Dataset.make(
        trees,
        read_times(table, "us") if is_timed else np.full(len(table), np.nan),
        device,
        devices.names,
        vectors(devices),
        key=program_keys(dict(zip(names, shape)) for shape in zip(*shapes)),
        fold=read_folds(table, zip(*shapes[:4])),
        predicted=predicted,
        operator=np.char.add("product-", types) if len(types) else "product",
        source=source,
        is_tuned=True,
    )


def program_keys(records: Iterable[Mapping[str, int]]) -> Iterator[str]:
    """Names of the tasks of products, by the fields of their programs."""
    for record in records:
        layout = "tn"[not record["transpose_lhs"]] + "tn"[not record["transpose_rhs"]]
        sizes = "x".join(str(record[name]) for name in ("batch", "m", "n", "k"))
        yield f"product {sizes} {layout} {model().program_types[record['type']]}"


def _latency(loaded: Model, device: str, parts: Array, grids: Array) -> Array:
    """Microseconds by the latency model, with the constants of the device's default calibration."""
    figures = np.array([[*loaded.device(device)[1].values()]])
    launches = Launches(figures, np.zeros(len(grids), np.int64), parts, grids)
    return loaded.predict(launches, loaded.default_calibration(device))


def vectors(devices: Devices) -> npt.NDArray[np.float32]:
    """The devices' figures: devices × device_figures()."""
    figures = [device_vector(model().device(source)[1]) for source in devices.sources]
    return np.stack(figures) if figures else np.empty((0, len(device_figures())), np.float32)
