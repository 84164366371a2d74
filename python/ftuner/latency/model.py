"""The latency model of the compiler: libftuner_latency (FTuner/CAPI/Latency.h) through ctypes.

A record is a dict by field name (`DEVICE_FIELDS`, `PART_FIELDS` … of `model()`); its
values are numbers, or arrays with one value for each launch. The formulas and the
meaning of each field are in include/FTuner/CostModel/LatencyRecords.def.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import locations
from ..errors import Error

ABI_VERSION = 10
_ERROR_BYTES = 4096

Array = npt.NDArray[np.float64]
Record = Mapping[str, Any]
Constants = dict[str, float]

# The only figure that may be infinite: no limit is known.
_BOARD_POWER = "board_power_watts"


@dataclasses.dataclass(frozen=True)
class Constant:
    """A calibration constant: where fits start if nothing else is known, and their bounds."""

    name: str
    unit: str
    text: str
    start: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class _FieldFacts:
    """The value of a field of a record by default, and whether records may leave the field out."""

    default: float
    is_optional: bool


def _left_out(facts: Mapping[str, _FieldFacts], ignored: Collection[str] = ()) -> dict[str, float]:
    """Values of the fields that a record may leave out: optional ones, and `ignored` ones."""
    return {
        name: field.default for name, field in facts.items() if field.is_optional or name in ignored
    }


@dataclasses.dataclass
class Launches:
    """Launches as arrays: `parts` is launches × parts × fields, `grids` launches × fields.

    `device` is the index of each launch's device in `devices` (devices × fields).
    """

    devices: Array
    device: npt.NDArray[np.int64]
    parts: Array
    grids: Array

    def __len__(self) -> int:
        return len(self.grids)

    def __getitem__(self, rows: Any) -> Launches:
        """Selects launches by a mask, indices or a slice."""
        return Launches(self.devices, self.device[rows], self.parts[rows], self.grids[rows])


#: Programs whose trees are built in one call, and room for their statements, for each of them.
_TREES_AT_ONCE, _STATEMENTS_OF_ROW = 512, 24


@dataclasses.dataclass(frozen=True)
class ProgramTree:
    """Features of the blocks of one part of a program, which learned predictors read.

    `blocks` run it; its statements have places in the tree's sequence (`ordering`) and features,
    statements × `Model.program_features`: magnitudes and flags, float32.
    """

    blocks: float
    ordering: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]


def _array(values: Any, dtype: Any, shape: Sequence[int | None], name: str) -> npt.NDArray[Any]:
    """`values` as C has them: of that type and shape (None: any extent), row-major.

    Raises `Error` for other shapes, and for types that would lose more than digits.
    """
    array = np.asarray(values)
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise Error(f"{name}: expected numbers of type {np.dtype(dtype)}, but got {array.dtype}")
    fits = len(shape) == array.ndim and all(
        expected in (None, size) for expected, size in zip(shape, array.shape)
    )
    if not fits:
        text = " × ".join("n" if size is None else str(size) for size in shape)
        got = " × ".join(map(str, array.shape)) or "a number"
        raise Error(f"{name}: expected an array of {text}, but got {got}")
    return np.ascontiguousarray(array, dtype)


def _column(values: Any, dtype: Any, size: int, name: str) -> npt.NDArray[Any]:
    """One number for each of `size` things; a single one stands for all."""
    values = np.asarray(values)
    return _array(values if values.ndim else np.full(size, values), dtype, (size,), name)


def _check_figures(
    values: Array, fields: Sequence[str], record: str, positive: Collection[str] = ()
) -> None:
    """Raises `Error` for figures that formulas cannot take, since some figures index tables.

    Figures must be finite and at least 0; figures of the fields in `positive` must be positive.

    Args:
        values: one record, or one record a row.
        record: the name of a record in messages.
    """
    low = [np.finfo(float).tiny if name in positive else 0.0 for name in fields]
    high = [np.inf if name == _BOARD_POWER else np.finfo(float).max for name in fields]
    if values.size and values.min() >= max(low) and values.max() <= min(high):
        return  # Many rows are checked fast.
    is_right = (values >= low) & (values <= high)
    if not is_right.all():
        index = np.argwhere(~is_right)[0]
        name, place = fields[index[-1]], record if len(index) == 1 else f"{record} {index[0]}"
        kind = "positive number" if name in positive else "number of at least 0"
        raise Error(f"{place}: field '{name}': expected a {kind}, but got {values[tuple(index)]:g}")


def _pointer(array: npt.NDArray[Any]) -> Any:
    kind: Any = ctypes.c_double if array.dtype == np.float64 else ctypes.c_int64
    if array.dtype == np.int32:
        kind = ctypes.c_int32
    if array.dtype == np.float32:
        kind = ctypes.c_float
    return array.ctypes.data_as(ctypes.POINTER(kind))


class Model:
    """The functions of libftuner_latency, with errors as exceptions."""

    def __init__(self) -> None:
        path = locations.find(locations.LATENCY_LIBRARY)
        try:
            self._library = ctypes.CDLL(str(path))
            abi = self._library.ftuner_latency_abi()
        except (OSError, AttributeError) as error:
            raise Error(f"cannot load the latency model '{path}': {error}") from error
        if abi != ABI_VERSION:
            raise Error(
                f"cannot use the latency model '{path}': "
                f"expected version {ABI_VERSION}, but got {abi}"
            )
        for function in ("field", "path", "program_field", "program_type", "program_feature"):
            getattr(self._library, f"ftuner_latency_{function}").restype = ctypes.c_char_p
        # The codegen paths, in the compiler's order.
        self.paths = self._names("path")
        # The types that programs multiply in, by their numbers.
        self.program_types = self._names("program_type")
        self.device_fields = self._fields("device")
        #: The fields of a device that learned predictors read, in their order.
        self.learned_device_fields = self._fields("learned_device")
        self.part_fields = self._fields("part")
        self.grid_fields = self._fields("grid")
        self.term_fields = self._fields("terms")
        # A figure of a device that may be 0 is 0 where nothing else is known.
        self._positive_figures = {
            name for name, facts in self._field_facts("device").items() if facts.default > 0
        }
        self._part_facts = self._field_facts("part")
        self._grid_facts = self._field_facts("grid")
        # Fields of a part that kernels of the other kind ignore.
        self._loop_fields = self._fields("loop")
        self._stream_fields = self._fields("stream")
        self.constants = {
            name: self._constant(index, name)
            for index, name in enumerate(self._fields("constants"))
        }

    def _names(self, function: str, *arguments: Any) -> tuple[str, ...]:
        """Returns the names that a function of the library gives for each index."""
        names: list[str] = []
        while True:
            name = getattr(self._library, f"ftuner_latency_{function}")(
                *arguments, ctypes.c_size_t(len(names))
            )
            if name is None:
                return tuple(names)
            names.append(name.decode())

    def _fields(self, record: str) -> tuple[str, ...]:
        return self._names("field", record.encode())

    def _field_facts(self, record: str) -> dict[str, _FieldFacts]:
        facts = {}
        for index, name in enumerate(self._fields(record)):
            default = ctypes.c_double()
            is_optional = self._library.ftuner_latency_field_default(
                record.encode(), ctypes.c_size_t(index), ctypes.byref(default)
            )
            facts[name] = _FieldFacts(default.value, bool(is_optional))
        return facts

    def _complete_part(self, part: Record) -> Record:
        """A part with the fields that it leaves out: optional fields, and fields of the other kind of kernel."""
        is_streaming = np.asarray(part.get("is_streaming", 0)) != 0
        ignored: tuple[str, ...] = ()
        if is_streaming.all():
            ignored = self._loop_fields
        elif not is_streaming.any():
            ignored = self._stream_fields
        return {**_left_out(self._part_facts, ignored), **part}

    def program_fields(self, path: str) -> tuple[str, ...]:
        """Fields of a codegen path's programs: those of its schedules are the last.

        Raises `Error` for an unknown path.
        """
        fields = self._names("program_field", path.encode())
        if not fields:
            paths = ", ".join(self.paths)
            raise Error(f"unknown codegen path '{path}': expected one of {paths}")
        return fields

    def program_defaults(self, path: str) -> dict[str, int]:
        """Returns the default values of fields that programs may leave out."""
        defaults = {}
        for index, name in enumerate(self.program_fields(path)):
            value = self._library.ftuner_latency_program_default(
                path.encode(), ctypes.c_size_t(index)
            )
            if value >= 0:
                defaults[name] = value
        return defaults

    def _constant(self, index: int, name: str) -> Constant:
        unit, text = ctypes.c_char_p(), ctypes.c_char_p()
        start, low, high = ctypes.c_double(), ctypes.c_double(), ctypes.c_double()
        self._library.ftuner_latency_constant(
            ctypes.c_size_t(index),
            *(ctypes.byref(value) for value in (unit, text, start, low, high)),
        )
        return Constant(
            name,
            (unit.value or b"").decode(),
            (text.value or b"").decode(),
            start.value,
            low.value,
            high.value,
        )

    def _call(self, name: str, *arguments: Any) -> None:
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        function = getattr(self._library, f"ftuner_latency_{name}")
        if function(*arguments, error, ctypes.c_size_t(_ERROR_BYTES)) != 0:
            raise Error(error.value.decode(errors="replace"))

    # --- by name ---------------------------------------------------------------------

    def device(self, name_or_path: str | os.PathLike[str]) -> tuple[str, dict[str, float]]:
        """Name and figures of a built-in device, or of the description at that path."""
        figures = np.empty(len(self.device_fields))
        name = ctypes.create_string_buffer(1024)
        self._call(
            "device",
            os.fsencode(name_or_path),
            _pointer(figures),
            name,
            ctypes.c_size_t(len(name)),
        )
        return name.value.decode(), dict(zip(self.device_fields, figures.tolist()))

    def start(self) -> Constants:
        """Constants where fits start if nothing else is known."""
        return {name: constant.start for name, constant in self.constants.items()}

    def calibration(self, name_or_path: str | os.PathLike[str]) -> Constants:
        """Constants of a built-in calibration, or of the file at that path."""
        return self._calibration("calibration", name_or_path)[0]

    def calibration_and_deviation(
        self, name_or_path: str | os.PathLike[str]
    ) -> tuple[Constants, float]:
        """Returns a calibration with the deviation of the logarithms of its predictions."""
        return self._calibration("calibration", name_or_path)

    def default_calibration(self, device: str | os.PathLike[str]) -> Constants:
        """Constants that the compiler takes for a device (a name or path)."""
        return self._calibration("default_calibration", device)[0]

    def _calibration(
        self, function: str, name_or_path: str | os.PathLike[str]
    ) -> tuple[Constants, float]:
        values, deviation = np.empty(len(self.constants)), ctypes.c_double()
        self._call(function, os.fsencode(name_or_path), _pointer(values), ctypes.byref(deviation))
        return dict(zip(self.constants, values.tolist())), deviation.value

    # --- predictions -----------------------------------------------------------------

    def launches(
        self,
        devices: Sequence[Record],
        device: Any,
        parts: Sequence[Record],
        grid: Record,
    ) -> Launches:
        """Launches from records: `device` has the index in `devices` of each launch.

        `parts` has one record or two, with their "count" and "steps"; the taller is last.
        Fields that a record leaves out, or that are not known, are errors. A record may leave out
        those that the library has optional (`ftuner_latency_field_default`), and those of the
        other kind of kernel.
        """
        device = _array(device, np.int64, (None,), "device")
        size = len(device)
        return Launches(
            np.array([_row(record, self.device_fields, 1)[0] for record in devices]),
            device,
            np.ascontiguousarray(
                np.stack(
                    [_row(self._complete_part(part), self.part_fields, size) for part in parts],
                    axis=1,
                )
            ),
            _row({**_left_out(self._grid_facts), **grid}, self.grid_fields, size),
        )

    def predict(self, launches: Launches, constants: Record) -> Array:
        """Microseconds of each launch.

        Constants may be beyond the bounds of fits, but must be numbers that the formulas can take.
        """
        return self._predict(launches, constants, None)

    def explain(self, launches: Launches, constants: Record) -> dict[str, Array]:
        """Each term of the launches' predictions, in microseconds, and other figures."""
        terms = np.empty((len(launches), len(self.term_fields)))
        self._predict(launches, constants, terms)
        return dict(zip(self.term_fields, terms.T))

    def _predict(self, launches: Launches, constants: Record, terms: Array | None) -> Array:
        values = _row(constants, tuple(self.constants), 1)[0]
        positive = {name for name, constant in self.constants.items() if constant.low > 0}
        _check_figures(values, tuple(self.constants), "constants", positive)
        size, of_part = len(launches), len(self.part_fields)
        devices = _array(launches.devices, np.float64, (None, len(self.device_fields)), "devices")
        device = _array(launches.device, np.int64, (size,), "device")
        parts = _array(launches.parts, np.float64, (size, None, of_part), "parts")
        grids = _array(launches.grids, np.float64, (size, len(self.grid_fields)), "grids")
        _check_figures(devices, self.device_fields, "device", self._positive_figures)
        _check_figures(parts, self.part_fields, "row")
        _check_figures(grids, self.grid_fields, "row")
        microseconds = np.empty(size)
        self._call(
            "predict",
            _pointer(devices),
            ctypes.c_size_t(len(devices)),
            _pointer(device),
            _pointer(parts),
            ctypes.c_size_t(parts.shape[1]),
            _pointer(grids),
            ctypes.c_size_t(size),
            _pointer(values),
            _pointer(microseconds),
            None if terms is None else _pointer(terms),
        )
        return microseconds

    def programs(
        self, device: str | os.PathLike[str], path: str, programs: npt.NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Parts and grids (`Launches`) of FTuner's programs by a codegen path on a device.

        `programs` is rows × `program_fields(path)`: see FTuner/CAPI/Latency.h. Where rows of a
        shape are not aligned for their accesses, they are those of narrower ones: so they run.
        """
        fields = self.program_fields(path)
        programs = _array(programs, np.int64, (None, len(fields)), "programs")
        parts = np.empty((len(programs), 2, len(self.part_fields)))
        grids = np.empty((len(programs), len(self.grid_fields)))
        self._call(
            "programs",
            os.fsencode(device),
            path.encode(),
            _pointer(programs),
            ctypes.c_size_t(len(programs)),
            _pointer(parts),
            _pointer(grids),
        )
        return parts, grids

    def program_features(self) -> tuple[str, ...]:
        """Names of the features of a statement (FTuner/Schedule/ProgramFeatures.h)."""
        return self._names("program_feature")

    def trees(
        self, device: str | os.PathLike[str], path: str, programs: npt.NDArray[np.int64]
    ) -> list[list[ProgramTree]]:
        """The trees of `programs` (see there), one for each part of a program that has blocks."""
        fields = self.program_fields(path)
        programs = _array(programs, np.int64, (None, len(fields)), "programs")
        trees: list[list[ProgramTree]] = []
        for first in range(0, len(programs), _TREES_AT_ONCE):
            trees += self._some_trees(device, path, programs[first : first + _TREES_AT_ONCE])
        return trees

    def _some_trees(
        self, device: str | os.PathLike[str], path: str, programs: npt.NDArray[np.int64]
    ) -> list[list[ProgramTree]]:
        size, width = len(programs), len(self.program_features())
        blocks = np.empty((size, 2))
        statements = np.empty((size, 2), np.int64)

        def call(ordering: Any, features: Any, capacity: int) -> None:
            self._call(
                "program_trees",
                os.fsencode(device),
                path.encode(),
                _pointer(programs),
                ctypes.c_size_t(size),
                _pointer(blocks),
                _pointer(statements),
                ordering,
                features,
                ctypes.c_size_t(capacity),
            )

        def build(capacity: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
            ordering = np.empty(capacity, np.int64)
            features = np.empty((capacity, width), np.float32)
            call(_pointer(ordering), _pointer(features), capacity)
            return ordering, features

        try:
            ordering, features = build(size * _STATEMENTS_OF_ROW)
        except Error:
            # A program of more statements, or another error, which is raised again.
            call(None, None, 0)
            ordering, features = build(int(statements.sum()))
        trees: list[list[ProgramTree]] = []
        first = 0
        for of_row, counts in zip(blocks, statements):
            trees.append([])
            for number, count in zip(of_row, counts):
                if number:
                    part = slice(first, first + count)
                    # Copies: the room is far larger.
                    trees[-1].append(
                        ProgramTree(float(number), ordering[part].copy(), features[part].copy())
                    )
                    first += count
        return trees

    def json_trees(
        self, json: str, values: Array
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The statements of trees written as JSON, which share a structure: numbers in the text may
        be columns of `values`, rows × columns (FTuner/Schedule/AstTemplate.h).

        Their places in the tree's sequence, and rows × statements × `program_features`. Raises
        `Error` with the field, and with the row where it is of one.
        """
        values = _array(values, np.float64, (None, None), "values")
        statements = ctypes.c_int64()

        def call(ordering: Any, features: Any, capacity: int) -> None:
            self._call(
                "json_trees",
                json.encode(),
                _pointer(values),
                ctypes.c_size_t(values.shape[1]),
                ctypes.c_size_t(len(values)),
                ctypes.byref(statements),
                ordering,
                features,
                ctypes.c_size_t(capacity),
            )

        call(None, None, 0)
        count = statements.value
        ordering = np.empty(count, np.int64)
        features = np.empty((len(values), count, len(self.program_features())), np.float32)
        call(_pointer(ordering), _pointer(features), count)
        return ordering, features

    def learned(
        self,
        predictor: str | os.PathLike[str],
        device: str | os.PathLike[str],
        path: str,
        programs: npt.NDArray[np.int64],
    ) -> tuple[Array, bool]:
        """Evaluates a predictor for `programs` as the compiler does; returns also whether it corrects.

        Microseconds, or ratios to what the latency model predicts; NaN for programs that it knows
        nothing of. `predictor` is a built-in name or the path of a file of `ftuner learn`.
        """
        programs = _array(programs, np.int64, (None, len(self.program_fields(path))), "programs")
        values = np.empty(len(programs))
        corrects = ctypes.c_int()
        self._call(
            "learned",
            os.fsencode(predictor),
            os.fsencode(device),
            path.encode(),
            _pointer(programs),
            ctypes.c_size_t(len(programs)),
            _pointer(values),
            ctypes.byref(corrects),
        )
        return np.where(values < 0, np.nan, values), bool(corrects.value)

    def wavefronts(self, addresses: Any, widths: Any) -> npt.NDArray[np.int32]:
        """Data cycles of shared memory accesses: n × 32 word addresses, n widths in words."""
        return self._accesses(addresses, widths)[0]

    def lines(self, addresses: Any, widths: Any) -> npt.NDArray[np.int32]:
        """128-byte lines of global accesses: n × 32 word addresses, n widths in words."""
        return self._accesses(addresses, widths)[1]

    def _accesses(
        self, addresses: Any, widths: Any
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        addresses = _array(addresses, np.int64, (None, 32), "addresses")
        widths = _column(widths, np.int64, len(addresses), "widths")
        wavefronts = np.empty(len(addresses), np.int32)
        lines = np.empty(len(addresses), np.int32)
        self._call(
            "accesses",
            _pointer(addresses),
            _pointer(widths),
            ctypes.c_size_t(len(addresses)),
            _pointer(wavefronts),
            _pointer(lines),
        )
        return wavefronts, lines


def _row(record: Record, fields: Sequence[str], size: int) -> Array:
    """A record as size × fields."""
    if set(record) != set(fields):
        missing = sorted(set(fields) - set(record))
        unknown = sorted(set(record) - set(fields))
        raise Error(f"wrong fields of a record: missing {missing}, unknown {unknown}")
    out = np.empty((size, len(fields)))
    for index, name in enumerate(fields):
        out[:, index] = _column(record[name], np.float64, size, f"field '{name}'")
    return out


_model: Model | None = None


def model() -> Model:
    """The model, loaded once. Raises `Error` if it cannot be."""
    global _model
    if _model is None:
        _model = Model()
    return _model
