"""Operators of models, their predicted times, and their replay, for replay_models.py."""

from __future__ import annotations

import csv
import gzip
import io
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Operator:
    """An operator: its kind, its extents, and how often it occurs.

    kind: `product`, `attention`, an operator of memory_rows, `strided` for elements of operands that do not lie alike, or
        `nothing`.

    extents: of a product batch, M, N and K; of fused attention heads of all sequences, tokens of a sequence, and elements of a
        head; else rows and columns; none where nothing is launched.
    key: of the row that it is of, as data sets have it.
    """

    name: str
    kind: str
    extents: tuple[int, ...]
    times: int = 1
    measured_us: float = math.nan
    key: str = ""


class Latency:
    """Predicted microseconds of operators of one type on a device."""

    name = "latency"

    def __init__(self, device, dtype="f32", attention=None):
        """attention: of fused attention, where there is any."""
        from ftuner.describe import descriptions
        from ftuner.latency import vendor

        self.device, self.dtype, self.attention = device, dtype, attention
        self.found = vendor.device_of(descriptions.resolve(device).text)

    @property
    def element_bytes(self):
        return 4 if self.dtype in ("f32", "tf32") else 2

    def times(self, operators):
        from ftuner.latency import vendor

        times = np.zeros(len(operators))
        products = [i for i, operator in enumerate(operators) if operator.kind == "product"]
        times[products] = vendor.predict(
            self.device, self.dtype, [operators[i].extents for i in products], "2023"
        )
        for i, operator in enumerate(operators):
            if operator.kind == "attention":
                (times[i],) = self.attention.times(
                    self.found, *(np.array([extent], float) for extent in operator.extents)
                )
            elif operator.kind not in ("product", "nothing"):
                times[i] = self.memory(operator)
        return times

    def seconds(self, operators):
        """The part of these times in second kernels, which sum the slices of products."""
        from ftuner.latency import vendor

        seconds = np.zeros(len(operators))
        products = [i for i, operator in enumerate(operators) if operator.kind == "product"]
        seconds[products] = vendor.second_kernels(
            self.device, self.dtype, [operators[i].extents for i in products], "2023"
        )
        return seconds

    def memory(self, operator):
        from ftuner.latency.measurements import memory_rows
        from ftuner.latency.model import model

        sizes = tuple(np.array([extent], float) for extent in operator.extents)
        device = (
            np.array([float(self.element_bytes)]),
            [self.found.figures],
            np.zeros(1, np.int64),
        )
        if operator.kind == "strided":
            launches = memory_rows.strided_launches_of(*sizes, *device)
        else:
            launches = memory_rows.launches_of(operator.kind, "2023", sizes, *device)
        return model().predict(launches, self.found.constants)[0]


def kernels_of(operators, times, seconds=None):
    """Microseconds of the kernels that operators are, in their order; `seconds` as in `Latency.seconds`."""
    parts = zip(operators, times, np.zeros(len(operators)) if seconds is None else seconds)
    return [
        kernel
        for operator, time, second in parts
        for _ in range(operator.times)
        if time > 0
        for kernel in ((time - second, second) if second else (time,))
    ]


def replayed(durations, gap=0.0, interval=0.0):
    """Microseconds of kernels one behind the other on one stream, issued by a host every `interval`."""
    from ftuner.describe import replay

    after = [(i - 1,) if i else () for i in range(len(durations))]
    launches = replay.assign(durations, after, 1, gap, interval)
    return replay.makespan(replay.replay(launches, gap, interval))


def launch_interval(durations, measured, gap=0.0):
    """The host's launch interval at which the replay takes as long as measured; 0 if the kernels take longer."""
    low, high = 0.0, measured
    if replayed(durations, gap) >= measured:
        return 0.0
    while high - low > 1e-6 * measured:
        middle = (low + high) / 2
        low, high = (middle, high) if replayed(durations, gap, middle) < measured else (low, middle)
    return high


def read_rows(path):
    if not path.is_file():
        raise SystemExit(f"error: cannot read '{path}': expected the folder of published tables")
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return list(csv.DictReader(io.StringIO(text.decode())))


def error(predicted, measured):
    return f"{predicted / measured - 1:+.1%}"


def mean(errors):
    return f"{sum(map(abs, errors)) / len(errors):.1%}" if errors else "–"
