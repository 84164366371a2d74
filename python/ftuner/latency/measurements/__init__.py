"""Readers of measurements: rows of published data sets as launches of the latency model."""
