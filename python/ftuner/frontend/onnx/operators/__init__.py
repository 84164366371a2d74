"""Operators of ONNX, a file for each family of them (see `emitter.py`)."""
