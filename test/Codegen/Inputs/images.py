#!/usr/bin/env python3
"""Prints the images of a compiled library: images.py LIBFTRT LIBRARY."""

import ctypes
import sys

KINDS = {1: "PTX", 2: "cubin", 3: "host"}
EXACT = 1 << 16


class Image(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("architecture", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
    ]


class Module(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("image_count", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("images", ctypes.POINTER(Image)),
    ]


def main():
    runtime, library = sys.argv[1:]
    ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
    module = Module.in_dll(ctypes.CDLL(library), "ftuner_module")
    for image in module.images[: module.image_count]:
        exact = " exactly" if image.architecture & EXACT else ""
        print(f"{KINDS[image.kind]} for {image.architecture & ~EXACT}{exact}")


if __name__ == "__main__":
    main()
