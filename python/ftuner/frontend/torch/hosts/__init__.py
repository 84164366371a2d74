"""Hosts, which run the operators that FTuner does not take: PyTorch one by one, Inductor, packages."""
