"""What NVIDIA's management library (NVML) knows of a GPU and its driver's API does not."""

from __future__ import annotations

import ctypes

LIBRARY = "libnvidia-ml.so.1"


def power_limit_watts(bus_id: str) -> float | None:
    """Default power limit, in watts, of the GPU at a PCI address such as 0000:65:00.0.

    None where there is no NVML, or where it does not say (integrated GPUs).
    """
    try:
        library = ctypes.CDLL(LIBRARY)
        if library.nvmlInit_v2() != 0:
            return None
    except (OSError, AttributeError):
        return None
    try:
        handle, milliwatts = ctypes.c_void_p(), ctypes.c_uint()
        found = library.nvmlDeviceGetHandleByPciBusId_v2(bus_id.encode(), ctypes.byref(handle))
        if found != 0:
            return None
        said = library.nvmlDeviceGetPowerManagementDefaultLimit(handle, ctypes.byref(milliwatts))
        return milliwatts.value / 1000 if said == 0 and milliwatts.value > 0 else None
    except AttributeError:
        return None
    finally:
        library.nvmlShutdown()
