#!/usr/bin/env python3
"""Runs kernels whose blocks share out each step along k (`threads_k` of the SIMT path), in the emulator.

Given families: groups of less than a warp, of one and of several; runs of 4 to 32 elements along k; all layouts of
both factors; an init, scalar or not, which one group alone adds; epilogues; extents that tiles pad, k among them, and
k = 0; pairs of two heights and of two widths; slices of k by several blocks as well. Results are compared with the
reference's, with bounds and race checks and shuffled threads. The suite runs cases that have all pairs of properties, each on one of the devices; with
FTUNER_TEST_SCALE above 1 all cases on all devices.
"""

import harness
from batches import grid
from kernel_families import family, run
from models import Matmul

SIZES = [{"T": t} for t in (0, 1, 7, 33)]

# Block tile and register tile along m, n, k, slices, and whether vectors of 4 divide the tile.
TILES = {
    "4 slices in a warp": ((4, 8, 32), (2, 2), 4, True),
    "8 slices of a warp": ((8, 24, 64), (1, 6), 8, True),
    "2 slices of a warp": ((8, 64, 16), (2, 8), 2, True),
    "3 slices of two warps": ((16, 32, 24), (2, 4), 3, True),
    "16 slices of 8 threads": ((4, 32, 256), (4, 4), 16, True),
    "5 slices of odd tiles": ((28, 24, 40), (7, 3), 5, False),
    "32 slices of a point": ((1, 1, 128), (1, 1), 32, False),
}


def threads_of(tile, register):
    return [size // of_thread for size, of_thread in zip(tile, register)]


def main():
    h, options = harness.start(__doc__, {"--devices": {"default": "h200,v100"}})
    devices = options.devices.split(",")
    cases = []

    def add(kind, model, name, sizes=SIZES, **fields):
        tile, register, slices, is_wide = TILES[name]
        fields = {"axis": 0, "split": 1, **fields}
        parts = fields.pop("parts", [(tile, (*register, 1))])
        for device in harness.share(devices, len(cases)):
            stages = 2 if device == "v100" else 3
            given = [family(parts, stages, 4 if is_wide else 1, threads_k=slices, **fields)]
            if is_wide:
                given.append(family(parts[-1:], 2, 1, threads_k=slices, axis=fields["axis"]))
            layout = {"a": model.transpose_a, "b": model.transpose_b}
            label = f"{kind} {name} {int(model.transpose_a)}{int(model.transpose_b)} {device}"
            cases.append(
                (
                    {"kind": kind, "tile": name, **layout},
                    label,
                    run,
                    h,
                    label,
                    model,
                    given,
                    device,
                    sizes,
                    (),
                )
            )

    for name, (tile, register, slices, is_wide) in TILES.items():
        for layout in range(4):
            both = {"transpose_a": layout % 2 == 1, "transpose_b": layout > 1}
            k = 3 * tile[2] + (20 if is_wide else 13)
            add("product", Matmul(n=72, k=k, epilogue="chain", **both), name)
            add(
                "scalar init",
                Matmul(n=40, k=k, fill_value="2.5", epilogue="bias_gelu", **both),
                name,
            )
            add("init", Matmul(n=36, k=2 * tile[2], init="tensor", **both), name)
            add("split", Matmul(n=40, k=9 * tile[2], epilogue="residual", **both), name, split=3)
            add(
                "any k",
                Matmul(n="N", k="K", epilogue="bias_m", **both),
                name,
                grid(T=(1, 13), N=(1, 40), K=(0, 1, 31, 260)),
            )
            threads = threads_of(tile, register)
            taller = [
                ((tile[0] + threads[0] * more, *tile[1:]), (register[0] + more, register[1], 1))
                for more in (0, 1)
            ]
            add("heights", Matmul(n=40, k=k, **both), name, parts=taller)
            step = 4 if is_wide else 1
            wider = [
                (
                    (tile[0], tile[1] + threads[1] * more, tile[2]),
                    (register[0], register[1] + more, 1),
                )
                for more in (0, step)
            ]
            add("widths", Matmul(n=168, k=k, **both), name, parts=wider, axis=1)
    harness.add_covering(h, cases)
    h.finish()


if __name__ == "__main__":
    main()
