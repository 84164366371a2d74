"""Parts of ATen graphs that become FTuner functions; `region.RegionKind` says what a kind has."""
