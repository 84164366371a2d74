"""Proofs of codegen paths on the card at hand, `ftuner check-gpu` (docs/check-gpu.md).

`families` are what is run, `numbers` the data and what is right, `child` the process that runs
them, `check` the one that watches it, and `verdicts` what is kept of the outcome.
"""
