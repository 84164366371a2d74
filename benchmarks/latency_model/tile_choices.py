"""Tiles that the search takes for the layers of Llama-2-7B over M, by two versions of the compiler.

    ninja -C build/release token_predictions
    python3 benchmarks/latency_model/tile_choices.py --out OUT --before PROGRAM [--docs FILE.md]

PROGRAM is the token_predictions of another commit (`git worktree add`). Both plan 1 to 4096 rows of the four
projections in f16 for each device, with all paths that it has. Writes OUT/tile_choices.csv, with the family of each
size, OUT/tile_choices.md, with what changed, and tile_choices.png: the elements of the block's tile over M. Of families
of two heights it is the greater tile.
--docs puts the table between the marks "tile choices" of that file and the figure into figures/ beside it.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt

import reports
from path_choices import MAX_ROWS, sizes
from predict_tokens import PROGRAM, times_of
from reports import put_into_docs, read_docs, table

#: N and K.
LAYERS = {"qkv": (12288, 4096), "out": (4096, 4096), "up": (22016, 4096), "down": (4096, 11008)}
#: Paths by device.
DEVICES = {"a100-80gb": "simt,mma", "h100": "simt,mma,wgmma"}
STYLES = {"simt": "C2", "mma": "C0", "wgmma": "C3"}


@dataclass(frozen=True)
class Choice:
    """A family of kernels, read from its text."""

    family: str

    @property
    def path(self) -> str:
        return self.family.split()[0]

    @property
    def tile(self) -> tuple[int, ...]:
        """Rows, columns and depth of the block's greater tile."""
        return tuple(map(int, re.findall(r"\[(\d+),(\d+),(\d+)\]/", self.family)[-1]))

    @property
    def is_split(self) -> bool:
        return "/split" in self.family

    @property
    def stages(self) -> int:
        return int(re.findall(r" stages (\d+)", self.family)[0])


def choices_of(device: str, paths: str, program: Path) -> dict[str, list[Choice]]:
    """The choices for each of `sizes`, by layer."""
    times = times_of({shape: set(sizes()) for shape in LAYERS.values()}, device, program, (paths,))
    return {
        name: [Choice(times[(*shape, m)][1]) for m in sizes()] for name, shape in LAYERS.items()
    }


def summary(choices: Sequence[Choice]) -> list[str]:
    """Families, the share of sizes with slices of k, and means of tiles' elements and stages."""
    count = len(choices)
    elements = sum(one.tile[0] * one.tile[1] for one in choices) / count
    return [
        str(len({one.family for one in choices})),
        f"{100 * sum(one.is_split for one in choices) / count:.0f} %",
        f"{elements:.0f}",
        f"{sum(one.stages for one in choices) / count:.1f}",
    ]


def draw(axis: plt.Axes, before: Sequence[Choice], after: Sequence[Choice]) -> None:
    def elements(choices: Sequence[Choice]) -> list[int]:
        return [one.tile[0] * one.tile[1] for one in choices]

    axis.step(sizes(), elements(before), where="post", c="0.6", lw=1.2, label="before")
    axis.step(sizes(), elements(after), where="post", c="k", lw=0.8, label="after")
    for path, color in STYLES.items():
        at = [i for i, one in enumerate(after) if one.path == path]
        if at:
            points = [sizes()[i] for i in at], [elements(after)[i] for i in at]
            axis.plot(*points, ".", c=color, ms=4, label=path)
    axis.set(xscale="log", yscale="log")


def run(options: argparse.Namespace) -> None:
    docs = Path(options.docs) if options.docs else None
    if docs:
        read_docs(docs, "tile choices")
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    fig, axes = plt.subplots(
        len(DEVICES),
        len(LAYERS),
        figsize=(3.6 * len(LAYERS), 3 * len(DEVICES)),
        sharex=True,
        sharey=True,
    )
    lines, records = [], []
    for (device, paths), row in zip(DEVICES.items(), axes):
        before, after = (
            choices_of(device, paths, Path(p)) for p in (options.before, options.program)
        )
        for name, axis in zip(LAYERS, row):
            draw(axis, before[name], after[name])
            axis.set(title=f"{device}, {name}: N {LAYERS[name][0]}, K {LAYERS[name][1]}")
            pairs = zip(summary(before[name]), summary(after[name]))
            lines.append([device, name, *(" → ".join(pair) for pair in pairs)])
            records += [
                [device, name, m, one.family, other.family]
                for m, one, other in zip(sizes(), before[name], after[name])
            ]
        row[0].set_ylabel("elements of the block's tile")
    for axis in axes[-1]:
        axis.set_xlabel("M")
    axes[0][0].legend(fontsize=7)
    fig.tight_layout()
    figure = folder / "tile_choices.png"
    fig.savefig(figure, dpi=70)
    with open(folder / "tile_choices.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["device", "layer", "M", "before", "after"], *records])
    text = (
        f"f16, {len(sizes())} sizes from 1 to {MAX_ROWS}, as many for each doubling, before → after. Tiles and stages are means "
        "over the sizes.\n\n"
        + table(
            ["device", "layer", "families", "with slices of k", "elements of a tile", "stages"],
            lines,
        )
        + "\n"
    )
    (folder / "tile_choices.md").write_text(text, encoding="utf-8")
    print(text)
    if docs:
        put_into_docs(docs, text, [figure], "tile choices")


def main() -> int:
    parser = reports.parser(__doc__, "out", "docs")
    parser.add_argument(
        "--before", required=True, metavar="PROGRAM", help="token_predictions of another commit"
    )
    parser.add_argument("--program", default=os.fspath(PROGRAM), help="token_predictions")
    return reports.exit_code(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
