"""From raw records to results: JSON, CSV, tables and figures. Needs no GPU.

`pack` makes two files: summary.txt, and results.tar.xz with all that `write` makes.

Files: results.json (facts and summaries), products.csv, programs.csv (the data set of
part `selection`), models.csv, rows.csv, kernels.json (what `forward` launches), products.png,
selection.png, models.png, summary.txt.
"""

from __future__ import annotations

import bisect
import csv
import datetime
import io
import json
import pathlib
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from . import stats
from .parts import PARTS
from .records import Record, replace
from .timing import MODES

FORMAT_VERSION = 1
OURS = "ftuner"
OUR_BACKEND = "torch_ftuner"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns padded to their widths; what is no text stands right."""
    cells = [list(header)] + [[_cell(value) for value in row] for row in rows]
    right = [index > 0 for index in range(len(header))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if side else cell.ljust(width)
            for cell, width, side in zip(row, widths, right)
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def clocks(path: pathlib.Path) -> dict[str, dict[str, float]] | None:
    """Median and range of what nvidia-smi read; None where it read nothing."""
    if not path.exists():
        return None
    names = ("sm_mhz", "memory_mhz", "temperature_c", "power_w", "utilization_percent")
    columns: dict[str, list[float]] = {name: [] for name in names}
    for row in csv.reader(path.read_text(encoding="utf-8", errors="replace").splitlines()):
        for name, text in zip(names, row[1:]):
            try:
                columns[name].append(float(text))
            except ValueError:  # "[N/A]"
                continue
    return {
        name: {
            "median": stats.quantile(values, 0.5),
            "min": min(values),
            "max": max(values),
            "count": len(values),
        }
        for name, values in columns.items()
        if values
    } or None


Reading = tuple[float, float | None, float | None]


def readings(path: pathlib.Path) -> list[Reading]:
    """Returns the readings of nvidia-smi: time, MHz of the SMs and watts."""
    if not path.exists():
        return []

    def number(text: str) -> float | None:
        try:
            return float(text)
        except ValueError:  # "[N/A]"
            return None

    result = []
    for row in csv.reader(path.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            time = datetime.datetime.strptime(row[0].strip(), "%Y/%m/%d %H:%M:%S.%f").timestamp()
            result.append((time, number(row[1]), number(row[4])))
        except (IndexError, ValueError):  # a line that was cut off
            continue
    return sorted(result, key=lambda reading: reading[0])


# A reading that is farther from a record, in seconds, says nothing about it.
NEAR = 1.0


def near(times: Sequence[Reading], at: float | None) -> tuple[float | None, float | None]:
    """Returns the MHz and watts that were read nearest to a time."""
    if at is None or not times:
        return None, None
    place = bisect.bisect(times, at, key=lambda reading: reading[0])
    best = min(times[max(0, place - 1) : place + 1], key=lambda reading: abs(reading[0] - at))
    return best[1:] if abs(best[0] - at) <= NEAR else (None, None)


def ratios(records: Iterable[Record]) -> list[dict[str, Any]]:
    """How many times as long as FTuner each peer takes: above 1, FTuner is faster.

    For each workload and mode: the geometric mean over the sizes that both have,
    least, largest, and the share of sizes where FTuner is faster. The peer "best" is
    the fastest of all of them at each size.
    """
    times: dict[tuple[str, str], dict[int, dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for record in records:
        if record["kind"] == "time" and record["microseconds"]:
            times[record["workload"], record["mode"]][record["size"]][record["peer"]] = record[
                "microseconds"
            ]["median"]
    result = []
    for (workload, mode), sizes in times.items():
        found: dict[str, list[float]] = defaultdict(list)
        for measured in sizes.values():
            ours = measured.get(OURS)
            others = {peer: value for peer, value in measured.items() if peer != OURS}
            if not ours or not others:
                continue
            for peer, value in others.items():
                found[peer].append(value / ours)
            found["best"].append(min(others.values()) / ours)
        for peer, values in found.items():
            result.append(
                {
                    "workload": workload,
                    "mode": mode,
                    "peer": peer,
                    "sizes": len(values),
                    "geometric_mean": stats.geometric_mean(values),
                    "min": min(values),
                    "max": max(values),
                    "faster_share": sum(value > 1 for value in values) / len(values),
                }
            )
    return result


def selection(records: Iterable[Record]) -> list[dict[str, Any]]:
    """How well the score ranks the programs of each size.

    Correlations are of the score with the speed, 1 / time. `top1` and `top10` are the
    share of the best speed measured that the programs of the highest ratings reach;
    the search's order decides between equal ones.
    """
    groups: dict[tuple[str, int, str], list[Record]] = defaultdict(list)
    for record in records:
        # Programs that the search left out have no score.
        is_ranked = record["kind"] == "program" and record["program"]["rank"] is not None
        if is_ranked and record["microseconds"]:
            groups[record["workload"], record["size"], record["mode"]].append(record)
    result = []
    for (workload, size, mode), group in sorted(groups.items()):
        group.sort(key=lambda record: record["program"]["rank"])
        seconds = [record["microseconds"]["median"] for record in group]
        scores = [record["program"]["score"] for record in group]
        order = [-record["program"]["rank"] for record in group]
        speeds = [1 / value for value in seconds]
        result.append(
            {
                "workload": workload,
                "size": size,
                "mode": mode,
                "programs": len(group),
                "spearman": stats.spearman(scores, speeds),
                "kendall": stats.kendall(scores, speeds),
                "top1": stats.best_share(order, seconds, 1),
                "top10": stats.best_share(order, seconds, 10),
                "best_microseconds": min(seconds),
                "best_rank": group[seconds.index(min(seconds))]["program"]["rank"],
            }
        )
    return result


def means_of_selection(sizes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures of `selection`, averaged over the sizes of a workload."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for entry in sizes:
        groups[entry["workload"], entry["mode"]].append(entry)
    result = []
    for (workload, mode), group in groups.items():
        row: dict[str, Any] = {
            "workload": workload,
            "mode": mode,
            "sizes": len(group),
            "programs": sum(entry["programs"] for entry in group),
        }
        for figure in ("spearman", "kendall"):
            known = [entry[figure] for entry in group if entry[figure] is not None]
            row[figure] = sum(known) / len(known) if known else None
        for figure in ("top1", "top10"):
            row[figure] = stats.geometric_mean([entry[figure] for entry in group])
        result.append(row)
    return result


def models(records: Iterable[Record]) -> list[dict[str, Any]]:
    """How many times as long as with FTuner's backend each way takes, over the lengths."""
    times: dict[tuple[str, int, str], dict[str, dict[int, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    errors: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    for record in records:
        if record["kind"] == "model" and record["microseconds"]:
            key = (record["model"], record["batch"], record["mode"])
            times[key][record["how"]][record["length"]] = record["microseconds"]["median"]
            errors[(*key, record["how"])].append(record["error"])
    result = []
    for key, ways in times.items():
        ours = ways.get(OUR_BACKEND, {})
        for way, lengths in ways.items():
            common = [lengths[length] / ours[length] for length in lengths if length in ours]
            result.append(
                {
                    "model": key[0],
                    "batch": key[1],
                    "mode": key[2],
                    "how": way,
                    "lengths": len(lengths),
                    "geometric_mean": stats.geometric_mean(common) if common else None,
                    "largest_error": max(errors[(*key, way)]),
                }
            )
    return result


def forward(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Of each case, size and mode the microseconds of all ways."""
    rows: dict[tuple[str, int, str], dict[str, Any]] = defaultdict(dict)
    for record in records:
        if record["kind"] == "forward":
            time = record["microseconds"] or {}
            rows[record["case"], record["size"], record["mode"]][record["how"]] = time.get("median")
    return [
        {"case": case, "size": size, "mode": mode, "microseconds": ways}
        for (case, size, mode), ways in rows.items()
    ]


def checks(records: Iterable[Record]) -> dict[str, Any]:
    """Counts, the largest error, and every failure in words."""
    found = [record for record in records if record["kind"] == "check"]
    errors = [record["error"] for record in found if record.get("error") is not None]
    failures = [
        f"{record['workload']} {record.get('what') or 'T=' + str(record['size'])}: {problem}"
        for record in found
        for problem in record["problems"]
    ]
    return {"checks": len(found), "largest_error": max(errors, default=None), "failures": failures}


def by_kind(records: Iterable[Record], kind: str) -> list[Record]:
    return [
        {key: value for key, value in record.items() if key != "kind"}
        for record in records
        if record["kind"] == kind
    ]


def summarise(facts: dict[str, Any], records: list[Record]) -> dict[str, Any]:
    """The content of results.json."""
    sizes = selection(records)
    return {
        "format_version": FORMAT_VERSION,
        **facts,
        "machine": next(iter(by_kind(records, "machine")), None),
        "checks": checks(records),
        "ceilings": by_kind(records, "ceilings"),
        "peers": by_kind(records, "peer"),
        "ratios": ratios(records),
        "selection": means_of_selection(sizes),
        "selection_by_size": sizes,
        "wrong_programs": by_kind(records, "wrong_program"),
        "models": models(records),
        "families": by_kind(records, "family"),
        "bandwidths": by_kind(records, "bandwidths"),
        "probes": by_kind(records, "probe"),
        "box_rows": by_kind(records, "box_rows"),
        "forward": forward(records),
        "rows": by_kind(records, "row"),
        "iree": by_kind(records, "iree"),
        "notes": by_kind(records, "note"),
        "host_time": by_kind(records, "host_time"),
        "coverage": by_kind(records, "coverage"),
        "errors": by_kind(records, "error"),
        "parts": by_kind(records, "finished"),
    }


def text(content: dict[str, Any], titles: dict[str, str]) -> str:
    """What is printed at the end."""
    lines = []
    if content["rehearsal"]:
        lines += ["REHEARSAL: no GPU took part, and no figure below means anything.", ""]
    found = content["checks"]
    lines += [
        f"{content['gpu']}, {content['date']}, {content['seconds']} s",
        f"Checks: {found['checks']}, {len(found['failures'])} failed, largest relative error "
        f"{_cell(found['largest_error'])}",
    ]
    lines += [f"  FAILED {failure}" for failure in found["failures"][:20]]
    if content["families"]:
        lines += ["", *_proof(content["families"])]
    lines += _box_rows(content["box_rows"])
    modes = [mode for mode in MODES if any(row["mode"] == mode for row in content["ratios"])]
    by_key = {(row["workload"], row["peer"], row["mode"]): row for row in content["ratios"]}
    pairs = list(dict.fromkeys((row["workload"], row["peer"]) for row in content["ratios"]))
    if pairs:
        lines += [
            "",
            "Time of a peer over FTuner's, geometric mean over sizes (above 1: FTuner is faster)",
            table(
                ["workload", "peer", "sizes", *modes],
                [
                    [
                        workload,
                        peer,
                        max(
                            by_key[workload, peer, mode]["sizes"]
                            for mode in modes
                            if (workload, peer, mode) in by_key
                        ),
                        *[
                            by_key.get((workload, peer, mode), {}).get("geometric_mean")
                            for mode in modes
                        ],
                    ]
                    for workload, peer in pairs
                ],
            ),
        ]
    if content["selection"]:
        columns = ["workload", "mode", "sizes", "programs", "spearman", "kendall", "top1", "top10"]
        lines += [
            "",
            "Score against speed, and the share of the best speed that the first programs reach",
            table(columns, [[row[column] for column in columns] for row in content["selection"]]),
        ]
    if content["models"]:
        columns = ["model", "batch", "mode", "how", "lengths", "geometric_mean", "largest_error"]
        lines += [
            "",
            "Models: time over that of FTuner's backend, geometric mean over lengths",
            table(columns, [[row[column] for column in columns] for row in content["models"]]),
        ]
    if content["forward"]:
        ways = list(dict.fromkeys(way for row in content["forward"] for way in row["microseconds"]))
        lines += [
            "",
            "Models and operators by FTuner alone and by PyTorch, microseconds of a call",
            table(
                ["case", "size", "mode", *ways],
                [
                    [
                        row["case"],
                        row["size"],
                        row["mode"],
                        *[row["microseconds"].get(way) for way in ways],
                    ]
                    for row in content["forward"]
                ],
            ),
        ]
    if content["rows"]:
        columns = ["op", "dtype", "rows", "cols", "how", "latency_us"]
        lines += [
            "",
            "Operators on rows with cold caches, microseconds of a call",
            table(columns, [[row[column] for column in columns] for row in content["rows"]]),
        ]
    if content["iree"]:
        columns = ["case", "size", "how", "microseconds", "error"]
        lines += [
            "",
            "Modules of IREE on its CUDA runtime, microseconds of a call",
            table(columns, [[row[column] for column in columns] for row in content["iree"]]),
        ]
    if content["host_time"]:
        lines += [
            "",
            "Time of the host, nanoseconds of a call",
            table(
                ["workload", "what", "median", "q1", "q3"],
                [
                    [
                        row["workload"],
                        row["what"],
                        *[row["nanoseconds"][key] for key in ("median", "q1", "q3")],
                    ]
                    for row in content["host_time"]
                ],
            ),
        ]
    lines += _parts(content["parts"])
    lines += _left_out(content)
    lines += ["", *[f"{name}: {title}" for name, title in titles.items()]]
    return "\n".join(lines)


def _proof(families: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each path, and one for each family that did not pass."""
    lines = []
    for path in dict.fromkeys(family["path"] for family in families):
        own = [family for family in families if family["path"] == path]
        passed = [family for family in own if family["status"] == "passed"]
        lines.append(f"Proof of {path}: {len(passed)} of {len(own)} families passed")
        lines += [
            f"  {family['status'].upper()} {family['name']}: {family['words']}"
            for family in own
            if family["status"] != "passed"
        ]
    return lines


def _box_rows(found: Sequence[dict[str, Any]]) -> list[str]:
    """The price of a row of a box in the tensor and outside."""
    columns = [
        "blocks", "in_flight", "clocks_fixed", "clocks_per_valid_row", "clocks_per_row_outside",
        "mean_error",
    ]  # fmt: skip
    rows = [[price[column] for column in columns] for record in found for price in record["prices"]]
    return ["", "Clocks of a box of a tensor map", table(columns, rows)] if rows else []


def _parts(parts: Sequence[dict[str, Any]]) -> list[str]:
    """Seconds that the finished parts took, beside those planned."""
    planned = {part.name: part.seconds for part in PARTS}
    rows = [[part["part"], planned.get(part["part"]), part["seconds"]] for part in parts]
    return ["", "Seconds of parts", table(["part", "planned", "taken"], rows)] if rows else []


def _left_out(content: dict[str, Any]) -> list[str]:
    lines = []
    for entry in content["coverage"]:
        if entry["missing"]:
            lines.append(
                f"Not reached in time: {entry['workload']}, {entry['what']}: "
                f"{len(entry['missing'])} of {len(entry['missing']) + len(entry['done'])} "
                "sizes"
            )
    for peer in content["peers"]:
        if peer["problem"]:
            lines.append(
                f"Left out: {peer['peer']} for {peer['workload']}: "
                f"{peer['problem'].splitlines()[0][:120]}"
            )
    lines += [f"{note['part']}: {note['text']}" for note in content["notes"]]
    lines += [f"ERROR in {error['part']}: {error['message'][:300]}" for error in content["errors"]]
    return ["", *lines] if lines else []


def products_rows(records: Iterable[Record], times: Sequence[Reading] = ()) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        if record["kind"] != "time":
            continue
        batch, m, n, k = record["extents"]
        time = record["microseconds"] or {}
        clock, power = near(times, record.get("at"))
        rows.append(
            {
                "workload": record["workload"],
                "t": record["size"],
                "batch": batch,
                "m": m,
                "n": n,
                "k": k,
                "peer": record["peer"],
                "mode": record["mode"],
                **{f"{key}_us": time.get(key) for key in ("median", "q1", "q3", "min")},
                "samples": time.get("count"),
                "gflops": 2e-3 * batch * m * n * k / time["median"] if time else None,
                "sm_mhz": clock,
                "power_w": power,
                "problem": record["problem"],
                "facts": json.dumps(record["facts"]),
            }
        )
    return rows


def program_rows(records: Iterable[Record], times: Sequence[Reading] = ()) -> list[dict[str, Any]]:
    """The data set of the pools, one row for each program, size and mode."""
    rows = []
    for record in records:
        if record["kind"] != "program":
            continue
        clock, power = near(times, record.get("at"))
        program, resources = record["program"], record["resources"] or {}
        metrics = program.get("metrics", {})
        time = record["microseconds"] or {}
        rows.append(
            {
                "workload": record["workload"],
                "t": record["size"],
                "mode": record["mode"],
                "rank": program["rank"],
                "family": program.get("family", program.get("function")),
                "path": program["path"],
                "reduce_split": program.get("reduce_split", 1),
                "schedule": " ".join(f"{name}={v}" for name, v in program["schedule"].items()),
                "block_tiles": _tiles(program, "block_tile"),
                "register_tiles": _tiles(program, "register_tile"),
                "blocks": "+".join(map(str, program["blocks"])),
                "padded": program.get("padded"),
                "threads": record["threads"],
                "shared_memory_bytes": record["shared_bytes"],
                "registers": resources.get("registers_per_thread"),
                "spill_store_bytes": resources.get("spill_store_bytes"),
                **{name: metrics.get(name) for name in ("pad", "occ", "cmr")},
                "grid": metrics.get("blocks"),
                "box_rows": program.get("box_rows", {}).get("copied"),
                "box_rows_outside": program.get("box_rows", {}).get("outside"),
                "score": program.get("score"),
                "rating": program.get("rating"),
                **{f"{key}_us": time.get(key) for key in ("median", "q1", "q3")},
                "sm_mhz": clock,
                "power_w": power,
                "problem": record["problem"],
            }
        )
    return rows


def _tiles(program: dict[str, Any], field: str) -> str:
    return "+".join("x".join(map(str, ukernel[field])) for ukernel in program["ukernels"])


def model_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        if record["kind"] == "model":
            time = record["microseconds"] or {}
            rows.append(
                {
                    "model": record["model"],
                    "batch": record["batch"],
                    "length": record["length"],
                    "how": record["how"],
                    "mode": record["mode"],
                    **{f"{key}_us": time.get(key) for key in ("median", "q1", "q3")},
                    "error": record["error"],
                    "problem": record["problem"],
                }
            )
    return rows


def rows_on_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Operators on rows, in the columns of measured memory-bound operators and three more."""
    columns = (
        "op",
        "device",
        "rows",
        "cols",
        "bytes",
        "latency_us",
        "dtype",
        "how",
        "error",
        "problem",
    )
    return [{column: record[column] for column in columns} for record in by_kind(records, "row")]


def write_csv(path: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write(
    folder: pathlib.Path,
    facts: dict[str, Any],
    titles: dict[str, str],
    records: list[Record],
    times: Sequence[Reading] = (),
) -> str:
    """Writes all files and returns the text for the end of the run."""
    content = summarise(facts, records)
    (folder / "results.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    write_csv(folder / "products.csv", products_rows(records, times))
    write_csv(folder / "programs.csv", program_rows(records, times))
    write_csv(folder / "models.csv", model_rows(records))
    write_csv(folder / "rows.csv", rows_on_rows(records))
    kernels = by_kind(records, "kernels")
    if kernels:
        text_of_kernels = "[\n" + ",\n".join(map(json.dumps, kernels)) + "\n]\n"
        (folder / "kernels.json").write_text(text_of_kernels, encoding="utf-8")
    words = text(content, titles)
    (folder / "summary.txt").write_text(words + "\n", encoding="utf-8")
    try:
        from . import plots
    except ImportError as error:
        return f"{words}\n\nNo figures: {error}"
    plots.write(folder, content, titles, records)
    return words


def pack(
    out: pathlib.Path,
    facts: dict[str, Any],
    titles: dict[str, str],
    records: list[Record],
    times: Sequence[Reading] = (),
) -> str:
    """Writes summary.txt and results.tar.xz, each in one step; returns the text for the end of the run."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results"
        results.mkdir()
        words = write(results, facts, titles, records, times)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz") as archive:
            archive.add(results, "results")
        replace(out / "results.tar.xz", packed.getvalue())
        replace(out / "summary.txt", (results / "summary.txt").read_bytes())
    return words
