"""Hosts, who run what FTuner does not take: PyTorch's operators one by one, Inductor, and packages."""
