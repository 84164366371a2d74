"""Programs of this compiler: logs of measurers (docs/measurements.md), and synthetic rows."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import Error
from ...latency.measurements.ftuner_rows import COLUMNS
from ...latency.measurements.rows import MAX_EXTENT, MAX_TIME, MIN_TIME, fold_of
from ...latency.measurements.table import Table
from ...latency.model import Launches, ProgramTree, model
from ..dataset import (
    KNOWN,
    MEASURED,
    PROXY,
    SYNTHETIC,
    Dataset,
    program_keys,
    read_programs,
    vectors,
)
from .formats import Cards, Found, Source, stem

_FORMAT_VERSION = 3
_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.xz")
# lhs, rhs: the places of m (n) and k; the type.
_FACTOR = re.compile(r"(lhs|rhs):(\w+)\(([\d,]*)\)")


def is_log(path: str) -> bool:
    return path.endswith(_ENDINGS)


def _rows(table: Table, cards: Cards) -> Found:
    return Found(read_programs(table, cards.devices, source=stem(table.path)))


def _lines(path: str) -> list[str]:
    try:
        opener: Any = (
            gzip.open if path.endswith(".gz") else lzma.open if path.endswith(".xz") else open
        )
        with opener(path, "rt", encoding="utf-8") as file:
            return str(file.read()).split("\n")
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise Error(
            f"cannot read the log '{path}': {getattr(error, 'strerror', None) or error}"
        ) from error


def _product(workload: str) -> tuple[str, bool, bool, bool] | None:
    """Returns type, transpositions of factors and whether more is computed of a product; None for others."""
    axes, _, rest = workload.partition("|")
    factors = {name: (dtype, places) for name, dtype, places in _FACTOR.findall(rest)}
    if axes not in ("s,s,r", "s,s,r,s") or set(factors) != {"lhs", "rhs"}:
        return None
    ends = {"0,2": False, "2,0": True}, {"2,1": False, "1,2": True}
    transposed = []
    for (dtype, places), known in zip((factors["lhs"], factors["rhs"]), ends):
        if axes.endswith("r,s"):
            if not places.startswith("3,"):
                return None
            places = places[2:]
        if places not in known or dtype != factors["lhs"][0]:
            return None
        transposed.append(known[places])
    is_plain = "extra" not in rest and rest.count(";multiply-add") == 1
    return factors["lhs"][0], transposed[0], transposed[1], is_plain


def _whole(value: Any, noun: str, low: int = 0, high: int = MAX_EXTENT) -> int:
    """A number of a line. Raises ValueError for others."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(
            f"expected a whole number from {low} to {high} as {noun}, but got {value!r}"
        )
    return value


def _of_type(line: Mapping[str, Any], name: str, kind: type, noun: str) -> Any:
    """A field of a line. Raises ValueError for one of another type, and KeyError without it."""
    if not isinstance(line[name], kind):
        raise ValueError(f"expected {noun} as '{name}', but got {line[name]!r}")
    return line[name]


def _record(
    line: Mapping[str, Any], dtype: str, transposed: tuple[bool, bool]
) -> tuple[str, dict[str, int]]:
    """The codegen path of a family and the fields of its program. Raises ValueError or KeyError."""
    family, shape = (
        _of_type(line, "family", dict, "an object"),
        _of_type(line, "shape", list, "a list"),
    )
    path = _of_type(family, "path", str, "a text")
    if path not in model().paths:
        raise ValueError(f"unknown codegen path {path!r}")
    if len(shape) not in (3, 4):
        raise ValueError("expected the extents of three axes or four as 'shape'")
    for extent in shape:
        _whole(extent, "an extent of 'shape'", 1)
    schedule = _of_type(family, "schedule", dict, "an object")
    for name, value in schedule.items():
        _whole(value, f"'schedule.{name}'")
    tiles = [
        _of_type(ukernel, "block_tile", list, "a list")
        for ukernel in _of_type(family, "ukernels", list, "a list")
    ]
    for extent in (extent for tile in tiles for extent in tile):
        _whole(extent, "an extent of 'block_tile'", 1)
    if not 1 <= len(tiles) <= 2 or any(len(tile) != len(shape) for tile in tiles):
        raise ValueError("expected one tile or two, of as many axes as the shape")
    if len(tiles[0]) == 4 and any(tile[3] != 1 for tile in tiles):
        raise ValueError("expected tiles of one product of a batch")
    types = {name: number for number, name in enumerate(model().program_types)}
    if dtype == "f32" and path != model().paths[0]:
        dtype = "tf32"
    if dtype not in types:
        raise ValueError(f"expected factors of one of {', '.join(types)}, but got {dtype}")
    axis = _whole(family.get("axis", 0), "'axis'", 0, len(shape) - 1)
    record = dict(
        batch=shape[3] if len(shape) == 4 else 1, m=shape[0], n=shape[1], k=shape[2],
        transpose_lhs=int(transposed[0]), transpose_rhs=int(transposed[1]),
        block_m=tiles[0][0], block_n=tiles[0][1], block_k=tiles[0][2], combine_axis=axis,
        second_block=tiles[1][axis] if len(tiles) == 2 else 0, first_count=0, second_count=0,
        reduce_split=_whole(family.get("reduce_split", 1), "'reduce_split'"), type=types[dtype],
    )  # fmt: skip
    fields = {**model().program_defaults(path), **schedule}
    return path, {
        **record,
        **{name: fields[name] for name in model().program_fields(path) if name not in record},
    }


def read_log(path: str, cards: Cards) -> Found:
    """The timed products of a log. The last line of each kernel and shape counts."""
    lines = _lines(path)
    left_out = {"no time": 0, "no product of one pair of factors": 0, "timed again later": 0}
    found: dict[Any, tuple[int, str, str, str, dict[str, int], float, str, str]] = {}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            if not isinstance(line, dict) or line.get("format_version") != _FORMAT_VERSION:
                raise ValueError(f"expected a line of a log of version {_FORMAT_VERSION}")
            microseconds = line.get("microseconds")
            if microseconds is None:
                left_out["no time"] += 1
                continue
            is_number = isinstance(microseconds, (int, float)) and not isinstance(
                microseconds, bool
            )
            if not is_number or not MIN_TIME <= microseconds <= MAX_TIME:
                raise ValueError(f"expected a time as 'microseconds', but got {microseconds!r}")
            product = _product(_of_type(line, "workload", str, "a text"))
            if product is None:
                left_out["no product of one pair of factors"] += 1
                continue
            dtype, lhs, rhs, is_plain = product
            measurer = _of_type({"measurer": "", **line}, "measurer", str, "a text")
            device = _of_type(line, "device", str, "the name of a device")
            kind = SYNTHETIC if measurer.startswith("model:") else MEASURED
            by_path, record = _record(line, dtype, (lhs, rhs))
            cards.devices.index(device)
            key = (device, line["workload"], by_path, *record.items())
            left_out["timed again later"] += key in found
            found[key] = (
                number, device, by_path, kind, record, float(microseconds), KNOWN if is_plain else PROXY, dtype
            )  # fmt: skip
        except Error as error:
            raise Error(f"{path}:{number}: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            # A run that is killed leaves a last line that was cut off.
            if number == len(lines) and isinstance(error, json.JSONDecodeError):
                continue
            reason = f"the field {error} is missing" if isinstance(error, KeyError) else error
            raise Error(f"{path}:{number}: {reason}") from error
    rows = list(found.values())
    if not rows:
        raise Error(f"{path}: expected products that were timed, but there are none")
    devices = np.array([cards.devices.index(row[1]) for row in rows], np.int64)
    trees, predicted = described(
        [
            (cards.devices.sources[index], row[2], row[4])
            for index, row in zip(devices.tolist(), rows)
        ],
        [f"{path}:{row[0]}" for row in rows],
    )
    records = [row[4] for row in rows]
    return Found(
        Dataset.make(
            trees,
            np.array([row[5] for row in rows]),
            devices,
            cards.devices.names,
            vectors(cards.devices),
            key=program_keys(records),
            fold=np.array(
                [
                    fold_of(*(record[name] for name in ("batch", "m", "n", "k")))
                    for record in records
                ]
            ),
            predicted=predicted,
            operator=np.array([f"product-{row[7]}" for row in rows], str),
            source=stem(path),
            kind=np.array([row[3] for row in rows], str),
            knowledge=np.array([row[6] for row in rows], str),
            is_tuned=True,
        ),
        {why: count for why, count in left_out.items() if count},
    )


def described(
    programs: Sequence[tuple[str, str, Mapping[str, int]]], places: Sequence[str]
) -> tuple[list[list[ProgramTree]], npt.NDArray[np.float64]]:
    """Trees of programs (device, path, record) and what the latency model predicts. An error names the place of
    its program."""
    trees: list[list[ProgramTree]] = [[] for _ in programs]
    predicted = np.empty(len(programs))
    for device, path in sorted({(device, path) for device, path, _ in programs}):
        rows = [row for row, program in enumerate(programs) if program[:2] == (device, path)]
        fields = model().program_fields(path)
        records = np.array([[programs[row][2][name] for name in fields] for row in rows], np.int64)
        try:
            made = model().trees(device, path, records)
            launches = model().programs(device, path, records)
        except Error as error:
            if match := re.match(r"row (\d+): (.*)", str(error), re.DOTALL):
                raise Error(f"{places[rows[int(match[1])]]}: {match[2]}") from error
            raise
        for row, tree in zip(rows, made):
            trees[row] = tree
        predicted[rows] = _latency(device, *launches)
    return trees, predicted


def _latency(
    device: str, parts: npt.NDArray[np.float64], grids: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    figures = np.array([[*model().device(device)[1].values()]])
    launches = Launches(figures, np.zeros(len(grids), np.int64), parts, grids)
    return model().predict(launches, model().default_calibration(device))


# Values that synthetic programs are drawn from: fields of blocks, and of the schedules of all paths. A path
# that needs other values has no synthetic programs.
_DRAWN: dict[str, tuple[int, ...]] = dict(
    block_m=(16, 32, 64, 96, 128, 192, 256), block_n=(32, 64, 128, 256), block_k=(8, 16, 32, 64),
    reduce_split=(1, 1, 1, 2, 4), threads_m=(4, 8, 16), threads_n=(8, 16, 32), warps_m=(1, 2, 4), warps_n=(1, 2, 4),
    warpgroups_m=(1, 2), warpgroups_n=(1, 2), stages=(2, 3, 4), vector_width=(1, 2, 4), access_bytes=(16,),
)  # fmt: skip
# Fields of a problem, and of a second block, which synthetic programs do not have.
_PROBLEM = (
    "batch", "m", "n", "k", "transpose_lhs", "transpose_rhs", "type", "combine_axis", "second_block", "first_count",
    "second_count",
)  # fmt: skip
# A path has no programs on the device if so many draws in a row are not programs.
_TRIES = 200


def synthetic(rows: int, seed: int, devices: Sequence[str], cards: Cards) -> Dataset:
    """So many products of random shapes by random programs of the paths that a device has, labelled by the
    latency model: for the machinery, never for claims of accuracy. Devices take turns."""
    random = np.random.default_rng(seed)
    programs: list[tuple[str, str, dict[str, int]]] = []
    cards_of: list[int] = []
    types = {name: number for number, name in enumerate(model().program_types)}
    indices = [cards.devices.index(name) for name in devices]
    paths = {index: _drawn_paths() for index in indices}
    while len(programs) < rows:
        index = indices[len(programs) % len(indices)]
        source = cards.devices.sources[index]
        path = paths[index][int(random.integers(len(paths[index])))]
        # The first path multiplies on CUDA cores, the others on tensor cores.
        dtype = "f32" if path == model().paths[0] else "f16"
        fields = model().program_fields(path)
        for _ in range(_TRIES):
            extents = (2 ** random.uniform(4, 12, 3)).astype(np.int64)
            # Half of all axes are multiples of 64, as layers have them.
            extents = np.where(random.random(3) < 0.5, np.maximum(extents // 64, 1) * 64, extents)
            m, n, k = (int(extent) for extent in extents)
            record = dict.fromkeys(fields, 0) | model().program_defaults(path)
            record |= dict(
                batch=1, m=m, n=n, k=k, transpose_rhs=int(random.integers(2)), type=types[dtype]
            )
            record |= {
                name: int(random.choice(values))
                for name, values in _DRAWN.items()
                if name in fields
            }
            try:
                model().programs(
                    source, path, np.array([[record[name] for name in fields]], np.int64)
                )
            except Error:
                continue  # No program of the path: the next one is drawn.
            programs.append((source, path, record))
            cards_of.append(index)
            break
        else:
            paths[index].remove(path)
            if not paths[index]:
                raise Error(
                    f"expected programs for the device '{cards.devices.names[index]}', but found none"
                )
    trees, predicted = described(programs, [f"synthetic row {row}" for row in range(len(programs))])
    records = [record for _, _, record in programs]
    return Dataset.make(
        trees,
        predicted.copy(),
        np.array(cards_of, np.int64),
        cards.devices.names,
        vectors(cards.devices),
        key=program_keys(records),
        fold=np.array(
            [fold_of(*(record[name] for name in ("batch", "m", "n", "k"))) for record in records]
        ),
        predicted=predicted,
        operator=np.array(
            [f"product-{model().program_types[record['type']]}" for record in records], str
        ),
        source="synthetic",
        kind=SYNTHETIC,
        is_tuned=True,
    )


def _drawn_paths() -> list[str]:
    """Paths all of whose fields are drawn or have a default."""
    known = {*_DRAWN, *_PROBLEM}
    return [
        path
        for path in model().paths
        if set(model().program_fields(path)) <= known | set(model().program_defaults(path))
    ]


SOURCES = [Source("ftuner", COLUMNS, _rows)]
