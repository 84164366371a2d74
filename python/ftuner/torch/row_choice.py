"""Which rows FTuner computes under Inductor, which makes kernels of them itself.

Inductor keeps a row in registers where it knows that the row has few elements. Rows of a dynamic
length without such a bound it reads in a loop, once for the statistics and once more for what follows
from them. There FTuner's kernel, which reads a row once, may be faster.
"""

from __future__ import annotations

from .linalg import Range

#: Inductor's kernels hold rows of at most so many elements, where the length is known to be so
#: (`InductorChoices.should_use_persistent_reduction`, torch/_inductor/choices.py, for rows along memory).
PERSISTENT = 1024
ROWS_SLOWER = (
    "Inductor is predicted to be as fast or faster; the option rows='always' takes it anyway"
)


def why_inductors(length: Range) -> str | None:
    """Why rows of such lengths are Inductor's without a look at their times; None: they are not."""
    return None


def is_faster(imported, function):  # type: ignore[no-untyped-def]
    return True
