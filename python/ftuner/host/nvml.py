"""Facts of a GPU that NVIDIA's management library (NVML) tells and the driver's API does not."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

LIBRARY = "libnvidia-ml.so.1"


@contextlib.contextmanager
def _opened() -> Iterator[ctypes.CDLL | None]:
    """The library, or None if it is not installed."""
    try:
        found = ctypes.CDLL(LIBRARY)
        library = found if found.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        library = None
    try:
        yield library
    finally:
        if library is not None:
            library.nvmlShutdown()


def driver_version() -> str | None:
    """Version of the driver, such as 570.86.15, or None without NVML."""
    with _opened() as library:
        if library is None:
            return None
        version = ctypes.create_string_buffer(80)
        try:
            if library.nvmlSystemGetDriverVersion(version, len(version)) != 0:
                return None
        except AttributeError:
            return None
        return version.value.decode(errors="replace") or None


def power_limit_watts(bus_id: str) -> float | None:
    """Default power limit, in watts, of the GPU at a PCI address such as 0000:65:00.0.

    None without NVML, or if NVML does not say (integrated GPUs).
    """
    with _opened() as library:
        if library is None:
            return None
        return _power_limit_watts(library, bus_id)


def _power_limit_watts(library: ctypes.CDLL, bus_id: str) -> float | None:
    try:
        handle, milliwatts = ctypes.c_void_p(), ctypes.c_uint()
        found = library.nvmlDeviceGetHandleByPciBusId_v2(bus_id.encode(), ctypes.byref(handle))
        if found != 0:
            return None
        said = library.nvmlDeviceGetPowerManagementDefaultLimit(handle, ctypes.byref(milliwatts))
        return milliwatts.value / 1000 if said == 0 and milliwatts.value > 0 else None
    except AttributeError:
        return None
