"""Predicted times of FTuner's reductions of rows beside measured times of libraries.

    python3 benchmarks/latency_model/rows_against_library.py --data FOLDER [--docs FILE.md]
        [--sizes N]

FOLDER has some of the FILES of judge_rows.py. Of each card and operator N sizes (5) beyond four times
the L2, which take four launch floors at least: FTuner's predicted time by the path `rows`; the
bandwidth that the card's measured `add` reached at as many bytes; the measured time of the library's kernel,
where that operator has rows. What a host adds is taken from measured times, as fitted to that card's
rows.

Prints the table, and with --docs puts it between the marks of that file. Exits with 1 where a prediction is above
the best bandwidth that any row of the card reached.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import reports
from ftuner.errors import Error
from ftuner.latency.measurements.memory_rows import OPERATORS
from judge_rows import Judge, read_rows
from reports import ROOT, put_into_docs, read_docs, table

# By operator of FTuner: the library's that moves as many bytes.
LIBRARY = {
    "softmax": "softmax",
    "layer norm": "layernorm",
    "RMS norm": "rmsnorm",
    "add with RMS norm": "add_rmsnorm",
}
GOALS = {"bandwidth": 0.95, "library": 1.25, "t4 softmax": 1.1}
# Rows of `add` with as many bytes, relatively, and rows at the top that are left out as outliers.
SAME_SIZE, OUTLIERS = 0.2, 0.01
# The longest rows of `add` on an H100 have 3.8 times its L2.
ADD_OVER_L2 = 3
COLUMNS = {"softmax": (768, 1024, 2048, 4096), "": (1024, 2048, 4096)}

_MAPS = """
#all = affine_map<(a, r) -> (a, r)>
#row = affine_map<(a, r) -> (a)>
#column = affine_map<(a, r) -> (r)>
#own = affine_map<(a) -> (a)>
"""


def _generic(
    result: str, ins: list[tuple[str, str, str]], out: tuple[str, str, str], body: str
) -> str:
    """One linalg.generic: operands are (value, type, map)."""
    iterators = '["parallel", "reduction"]' if out[2] == "#row" else '["parallel", "parallel"]'
    element = [type_.rstrip(">").split("x")[-1] for _, type_, _ in (*ins, out)]
    arguments = ", ".join(f"%{i}: {type_}" for i, type_ in zip("abcdefg", element))
    return f"""
    {result} = linalg.generic {{indexing_maps = [{", ".join(m for _, _, m in (*ins, out))}],
        iterator_types = {iterators}}}
        ins({", ".join(v for v, _, _ in ins)} : {", ".join(t for _, t, _ in ins)}) outs({out[0]} : {out[1]}) {{
    ^bb0({arguments}):
      {body}
    }} -> {out[1]}"""


def module(op: str, rows: int, cols: int, dtype: str) -> str:
    """The operator on rows × columns, statistics in f32."""
    tensor, row, column = (
        f"tensor<{rows}x{cols}x{dtype}>",
        f"tensor<{rows}xf32>",
        f"tensor<{cols}x{dtype}>",
    )
    if op == "softmax":
        return f"""
func.func @f(%x: {tensor}) -> {tensor} {{
  %o = tensor.empty() : {tensor}
  %y = linalg.softmax dimension(1) ins(%x : {tensor}) outs(%o : {tensor}) -> {tensor}
  return %y : {tensor}
}}"""

    def wide(name: str) -> tuple[str, str]:
        """Lines that make f32 of an element, and its name then."""
        if dtype == "f32":
            return "", name
        return f"{name}w = arith.extf {name} : {dtype} to f32\n      ", f"{name}w"

    def narrow(name: str) -> str:
        if dtype == "f32":
            return f"linalg.yield {name} : f32"
        return f"%n = arith.truncf {name} : f32 to {dtype}\n      linalg.yield %n : {dtype}"

    def fill(name: str) -> str:
        return f"\n    {name} = linalg.fill ins(%zero : f32) outs(%rows : {row}) -> {row}"

    def mean(name: str, total: str) -> str:
        iterators = 'indexing_maps = [#own, #own], iterator_types = ["parallel"]'
        return (
            f"\n    {name} = linalg.generic {{{iterators}}} ins({total} : {row}) outs(%rows : {row}) {{\n"
            "    ^bb0(%a: f32, %b: f32):\n      %t = arith.divf %a, %count : f32\n"
            f"      linalg.yield %t : f32\n    }} -> {row}"
        )

    text, x = "", "%x"
    if op.startswith("add"):
        text += _generic(
            "%s", [("%x", tensor, "#all"), ("%r", tensor, "#all")], ("%empty", tensor, "#all"),
            f"%t = arith.addf %a, %b : {dtype}\n      linalg.yield %t : {dtype}",
        )  # fmt: skip
        x = "%s"
    lines, value = wide("%a")
    of_rows: list[tuple[str, str, str]] = []
    shift = ""
    if op == "layer norm":
        text += fill("%m0") + _generic(
            "%sum", [(x, tensor, "#all")], ("%m0", row, "#row"),
            f"{lines}%u = arith.addf %b, {value} : f32\n      linalg.yield %u : f32",
        ) + mean("%m", "%sum")  # fmt: skip
        of_rows, shift = [("%m", row, "#row")], f"%d0 = arith.subf {value}, %b : f32\n      "
        value = "%d0"
    sums = "%c" if of_rows else "%b"
    text += fill("%v0") + _generic(
        "%squares", [(x, tensor, "#all"), *of_rows], ("%v0", row, "#row"),
        f"{lines}{shift}%q = arith.mulf {value}, {value} : f32\n"
        f"      %u = arith.addf {sums}, %q : f32\n      linalg.yield %u : f32",
    ) + mean("%v", "%squares")  # fmt: skip
    names = iter("bcdef"[len(of_rows) :])
    variance, weight = f"%{next(names)}", f"%{next(names)}"
    weights = [("%w", column, "#column")]
    more, scaled = wide(weight)
    body = (
        f"{lines}{shift}%p = arith.addf {variance}, %small : f32\n      %k = math.rsqrt %p : f32\n"
        f"      %z = arith.mulf {value}, %k : f32\n      {more}%y0 = arith.mulf %z, {scaled} : f32\n      "
    )
    result = "%y0"
    if op == "layer norm":
        weights.append(("%h", column, "#column"))
        lines_of, shifted = wide(f"%{next(names)}")
        body += f"{lines_of}%y1 = arith.addf %y0, {shifted} : f32\n      "
        result = "%y1"
    text += _generic(
        "%y", [(x, tensor, "#all"), *of_rows, ("%v", row, "#row"), *weights], ("%empty", tensor, "#all"),
        body + narrow(result),
    )  # fmt: skip
    arguments = [f"%x: {tensor}", f"%w: {column}"]
    results, values = [tensor], ["%y"]
    if op.startswith("add"):
        arguments.append(f"%r: {tensor}")
        results, values = [tensor, tensor], ["%s", "%y"]
    if op == "layer norm":
        arguments.append(f"%h: {column}")
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"""{_MAPS}
func.func @f({", ".join(arguments)}) -> {returned} {{
    %zero = arith.constant 0.0 : f32
    %small = arith.constant 1.0e-5 : f32
    %count = arith.constant {float(cols):.1f} : f32
    %empty = tensor.empty() : {tensor}
    %rows = tensor.empty() : {row}{text}
    return {", ".join(values)} : {", ".join(results)}
}}"""


def predicted(device: str, text: str) -> float:
    """Microseconds of all launches of the module. Raises `Error` if a path other than rows takes a part."""
    command = [
        os.environ.get("FTUNER_TRANSLATE", str(ROOT / "build/release/bin/ftuner-translate")),
        "--ftuner-explain", "--json", f"--device={device}", "--paths=rows", "-",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.mlir"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([*command[:-1], str(path)], capture_output=True, text=True)
    if done.returncode:
        raise Error(f"{device}: {done.stderr.strip()}")
    work = json.loads(done.stdout)["functions"][0]["work"]
    if work["fallback_kernels"]:
        raise Error(
            f"{device}: expected no fallback kernels, but got {len(work['fallback_kernels'])}"
        )
    return float(work["shares"][-1]["ukernel_us"])


class Card:
    """The measured rows of a card, without what its host added."""

    def __init__(self, judge: Judge, index: int, offset: float) -> None:
        rows = judge.rows[judge.rows.device == index]
        self.name = judge.names[index]
        self.is_host = bool(rows.is_host.any())
        self.floor = float(rows.floor.max()) if self.is_host else 2.0
        added = offset * rows.host_share if self.is_host else 0.0
        self.microseconds = rows.microseconds - added
        self.op, self.bytes = rows.extra["op"], rows.extra["bytes"]
        self.rows, self.cols = rows.extra["rows"], rows.extra["cols"]
        self.dtype = "f32" if (rows.extra["size"] == 4).any() else "f16"
        self.l2 = judge.rows.devices.figures[index]["l2_bytes"]
        # An "add" of 2560 columns in 16 bits is two kernels.
        is_add = (self.op == "add") & ~((self.cols == 2560) & (self.dtype == "f16"))
        self.add = is_add & (self.bytes >= ADD_OVER_L2 * self.l2)
        self.bandwidth = self.bytes / self.microseconds / 1e3

    def add_bandwidth(self, moved: float) -> float:
        """GB/s that `add` reached at as many bytes: the median of the rows near it."""
        is_close = self.add & (np.abs(np.log(self.bytes / moved)) < SAME_SIZE)
        if not is_close.any():
            # Beyond the largest ones bandwidth no longer grows.
            largest = self.bytes[self.add].max()
            is_close = self.add & (self.bytes > largest * (1 - SAME_SIZE))
        return float(np.median(self.bandwidth[is_close]))

    def type_of(self, op: str) -> str:
        """`linalg.softmax` of f16 has sums in f16, which are not taken."""
        return "f32" if op == "softmax" else self.dtype

    @property
    def best(self) -> float:
        """GB/s that the best rows of `add` reached beyond the L2."""
        return float(np.quantile(self.bandwidth[self.add], 1 - OUTLIERS))

    def sizes(self, op: str, number: int) -> list[tuple[int, int, float | None]]:
        """Rows, columns and the library's microseconds, if it was measured."""
        tensors = OPERATORS[LIBRARY[op]]
        known = (self.op == LIBRARY[op]) & (self.bytes >= 4 * self.l2)
        known &= self.microseconds >= 4 * self.floor
        if known.any():
            order = np.flatnonzero(known)[np.argsort(self.bytes[known], kind="stable")]
            picked = order[np.linspace(0, len(order) - 1, min(number, len(order))).astype(int)]
            return [
                (int(self.rows[i]), int(self.cols[i]), float(self.microseconds[i])) for i in picked
            ]
        columns = COLUMNS.get(op, COLUMNS[""])
        size = 4 if self.type_of(op) == "f32" else 2
        largest = min(32 * self.l2, 2e9)
        out = []
        for i, moved in enumerate(np.geomspace(4.2 * self.l2, largest, number)):
            cols = columns[i % len(columns)]
            out.append((int(np.ceil(moved / (tensors * cols * size))), cols, None))
        return out


def run(options: argparse.Namespace) -> int:
    docs = Path(options.docs) if options.docs else None
    if docs:
        read_docs(docs, "rows")
    judge = Judge(read_rows(Path(options.data)))
    lines, failed = [], 0
    for index, name in judge.present:
        some = judge.rows[judge.rows.device == index]
        offset = float(fit_offset(some, judge.sources[index])[index])
        card = Card(judge, index, offset)
        if not card.add.any():
            continue
        for op in LIBRARY:
            shares, ratios, above = [], [], []
            for rows, cols, library in card.sizes(op, options.sizes):
                size = 4 if card.type_of(op) == "f32" else 2
                moved = OPERATORS[LIBRARY[op]] * rows * cols * size
                time = predicted(judge.sources[index], module(op, rows, cols, card.type_of(op)))
                reached = moved / time / 1e3
                shares.append(reached / card.add_bandwidth(moved))
                above.append(reached / card.best)
                if library:
                    ratios.append(library / time)
            goal = GOALS.get(f"{name} {op}", GOALS["library"])
            failed += max(above) > 1
            lines.append(
                [
                    name,
                    op,
                    card.type_of(op),
                    str(len(shares)),
                    f"{np.median(shares):.2f} ({min(shares):.2f})",
                    f"{np.median(ratios):.2f} ({min(ratios):.2f})" if ratios else "–",
                    f"{max(above):.2f}",
                    "yes"
                    if min(shares) >= GOALS["bandwidth"]
                    and (not ratios or min(ratios) >= goal)
                    and max(above) <= 1
                    else "no",
                ]
            )
    header = [
        "device", "operator", "type", "sizes", "bandwidth over that of `add`, median (least)",
        "library's time over FTuner's, median (least)", "over the best bandwidth, most", "goals met",
    ]  # fmt: skip
    date = reports.today()
    text = (
        f"{date}. FTuner's times are predictions, those of `add` and of the library measured.\n\n"
        + table(header, lines)
    )
    print(text)
    if docs:
        put_into_docs(docs, text, [], "rows")
    return 1 if failed else 0


def fit_offset(rows: Any, source: str) -> np.ndarray:
    """Microseconds that each host adds to a launch, given the built-in constants."""
    from ftuner.latency.fit import fit_timing
    from ftuner.latency.model import model

    if not rows.is_host.any():
        return np.zeros(len(rows.devices.names))
    return fit_timing(rows, model().default_calibration(source))


def main() -> int:
    parser = reports.parser(__doc__, "data", "docs")
    parser.add_argument("--sizes", type=int, default=5, help="sizes of each card and operator")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
