"""Benchmarks of FTuner on a GPU (docs/benchmarks.md).

`prepare` makes a bundle where FTuner is built; `run` checks and measures it where
a GPU is. Parts are modules with a function `measure(session)`; each runs in a
process of its own and writes records, from which `report` makes the results.
"""
