"""How much of themselves tests run (docs/testing.md)."""

from __future__ import annotations

import os

#: 1: a part that finds most; above: everything, and random cases so many times.
SCALE = int(os.environ.get("FTUNER_TEST_SCALE") or 1)
