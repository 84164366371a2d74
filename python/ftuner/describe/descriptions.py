"""Device descriptions (docs/devices.md): the built-in ones, and that of a live GPU."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from .. import locations
from ..errors import Error
from ..host import nvml, runtime

Device = Union[str, "os.PathLike[str]", Mapping[str, Any], "Description"]


@dataclass(frozen=True)
class Description:
    """A description for the compiler: its text, and what messages call it."""

    origin: str
    text: str

    @property
    def name(self) -> str:
        """Name of the device, or that of its origin where the text is not valid."""
        return str(self.content().get("name", self.origin))

    @property
    def gpu(self) -> int | None:
        """The number of the live GPU that it is of, if it is of one by its origin."""
        live = re.fullmatch(_LIVE, self.origin)
        return int(live[1] or 0) if live else None

    def content(self) -> dict[str, Any]:
        """The fields; none where the text is not valid, which the compiler says."""
        try:
            content = json.loads(self.text)
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}


#: A live GPU: "cuda", "cuda:1".
_LIVE = r"cuda(?::(\d+))?"


def devices() -> dict[str, dict[str, Any]]:
    """The built-in devices by name: every field of docs/devices.md."""
    folder = locations.find(locations.DEVICES)
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stem)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


#: The device by default, on machines without a GPU.
WITHOUT_GPU = "h200"

_LOGGER = logging.getLogger("ftuner")


def default() -> str:
    """The device by default: "cuda", the live GPU, or else "h200", which the log tells."""
    try:
        if runtime.get().has_device():
            return "cuda"
    except Error:  # Plans need no runtime.
        pass
    _tell_default()
    return WITHOUT_GPU


@functools.cache
def _tell_default() -> None:
    """Says once which device is taken; where no log is configured, on standard error."""
    _LOGGER.warning("no GPU is found and no device is named: the device is %s", WITHOUT_GPU)


def resolve(device: Device | None) -> Description:
    """The description of a built-in device, of a path, of a dict, or ("cuda") of the live GPU.

    `"cuda:1"` is the second GPU, and None the `default`. A description is what it is. The compiler checks it. Raises `Error`
    for names that do not exist.
    """
    if device is None:
        device = default()
    if isinstance(device, Description):
        return device
    if isinstance(device, Mapping):
        return Description("<device>", json.dumps(device, indent=1))
    if not isinstance(device, (str, os.PathLike)):
        raise TypeError(
            f"device: expected a name, a path or a dict, but got {type(device).__qualname__}"
        )
    name = os.fspath(device)
    gpu = re.fullmatch(_LIVE, name)
    if gpu:
        return Description(name, json.dumps(query_device(int(gpu[1] or 0)), indent=1))
    path = locations.find(locations.DEVICES) / f"{name}.json"
    if isinstance(device, str) and re.fullmatch(r"[A-Za-z0-9-]+", name) and path.is_file():
        return Description(name, path.read_text(encoding="utf-8"))
    try:
        return Description(name, Path(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        names = ", ".join(devices())
        raise Error(
            f"unknown device '{name}': expected cuda, the path of a JSON file or one of {names}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"cannot read device file '{name}': {error}") from error


# CUdevice_attribute of the driver's API, by the name of the enumerator.
_ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 1,
    "MAX_SHARED_MEMORY_PER_BLOCK": 8,
    "MAX_REGISTERS_PER_BLOCK": 12,
    "CLOCK_RATE": 13,
    "MULTIPROCESSOR_COUNT": 16,
    "MEMORY_CLOCK_RATE": 36,
    "PCI_BUS_ID": 33,
    "PCI_DEVICE_ID": 34,
    "GLOBAL_MEMORY_BUS_WIDTH": 37,
    "L2_CACHE_SIZE": 38,
    "MAX_THREADS_PER_MULTIPROCESSOR": 39,
    "PCI_DOMAIN_ID": 50,
    "COMPUTE_CAPABILITY_MAJOR": 75,
    "COMPUTE_CAPABILITY_MINOR": 76,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 82,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 106,
}

# CUDA C++ Programming Guide, arithmetic instructions: f32 operations per clock and SM.
_CORES_PER_SM = {
    "3.5": 192, "3.7": 192, "5.0": 128, "5.2": 128, "5.3": 128, "6.0": 64, "6.1": 128, "6.2": 128,
    "7.0": 64, "7.2": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128, "9.0": 128,
    "10.0": 128, "10.3": 128, "12.0": 128, "12.1": 128,
}  # fmt: skip

# Fields that follow from the compute capability and that no driver states. The compiler has rules
# of its own for capabilities that no built-in device has (docs/devices.md).
_OF_THE_CAPABILITY = (
    "warp_schedulers_per_sm", "issue_slots_per_sm", "load_store_units_per_sm", "process_nm",
)  # fmt: skip

# Architectures by major version, for compute capabilities that no built-in device has.
_ARCHITECTURES = {
    3: "Kepler", 5: "Maxwell", 6: "Pascal", 7: "Volta", 8: "Ampere", 9: "Hopper", 10: "Blackwell",
    12: "Blackwell",
}  # fmt: skip


def query_device(index: int = 0) -> dict[str, Any]:
    """Describes a live GPU: what the driver says of it, and what follows from that.

    `source` says for each field where it comes from: an attribute of the driver, a formula, or the
    built-in device of the same compute capability for what the driver does not know. Clocks and
    memory clocks are the device's maxima. The power limit is NVML's, or else that of the built-in
    device of the same name and figures; without either it is left out. Raises `Error` without a driver or where the driver says
    too little.
    """
    library = runtime.get()
    count = library.device_count()
    if not 0 <= index < count:
        raise Error(f"expected a device from 0 to {count - 1}, but got {index}")
    read = {name: library.device_attribute(index, number) for name, number in _ATTRIBUTES.items()}
    place = f"{read['PCI_DOMAIN_ID']:04x}:{read['PCI_BUS_ID']:02x}:{read['PCI_DEVICE_ID']:02x}.0"
    power = nvml.power_limit_watts(place)
    return describe(library.device_name(index), read, devices(), power)


def describe(
    name: str,
    attributes: Mapping[str, int],
    known: Mapping[str, Mapping[str, Any]],
    power_watts: float | None = None,
) -> dict[str, Any]:
    """The description that follows from a device's name, attributes and power limit.

    `known` are the built-in devices, which fill in what the driver does not know.
    """
    capability = (
        f"{attributes['COMPUTE_CAPABILITY_MAJOR']}.{attributes['COMPUTE_CAPABILITY_MINOR']}"
    )
    relatives = {
        key: value for key, value in known.items() if value["compute_capability"] == capability
    }
    description: dict[str, Any] = {
        "name": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "gpu"
    }
    source: dict[str, str] = {
        "all": f"driver of the device {name}",
        "name": "cuDeviceGetName",
    }

    def put(field: str, value: Any, origin: str) -> None:
        description[field] = value
        source[field] = origin

    def attribute(field: str, enumerator: str, scale: float = 1, unit: str = "") -> None:
        value = attributes[enumerator]
        if value <= 0:
            raise Error(f"the driver does not know {enumerator} of {name}: it says {value}")
        origin = f"CU_DEVICE_ATTRIBUTE_{enumerator} ({_ATTRIBUTES[enumerator]}){unit}"
        put(field, value if scale == 1 else _rounded(value * scale), origin)

    architectures = sorted({str(value["architecture"]) for value in relatives.values()})
    if architectures:
        put("architecture", architectures[0], f"built-in devices of {capability}")
    else:
        major = attributes["COMPUTE_CAPABILITY_MAJOR"]
        put("architecture", _ARCHITECTURES.get(major, f"sm_{major}x"), f"that of {capability}")
    put("compute_capability", capability, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* (75, 76)")
    attribute("sm_count", "MULTIPROCESSOR_COUNT")
    attribute("clock_mhz", "CLOCK_RATE", 1e-3, ", kHz / 1000")
    cores = _CORES_PER_SM.get(capability)
    if cores is None:
        raise Error(f"expected a compute capability with a known number of cores, got {capability}")
    clock = description["clock_mhz"]
    sms = description["sm_count"]
    put(
        "fp32_tflops",
        _rounded(2e-6 * sms * cores * clock),
        f"2 x {sms} SMs x {cores} cores x {clock} MHz; cores by the CUDA C++ Programming Guide",
    )
    _put_dram(name, attributes, relatives, put)
    twin = _twin(name, description, relatives)
    for field in ("tf32_tflops", "f16_tflops", "bf16_tflops", "i8_tops"):
        _scale_peak(field, relatives, twin, sms * clock, put)
    attribute("l2_mib", "L2_CACHE_SIZE", 2**-20, ", bytes / 2^20")
    attribute("shared_memory_per_sm_bytes", "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")
    optin = "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"
    if attributes[optin] <= 0:  # Devices before 7.0 lack it.
        optin = "MAX_SHARED_MEMORY_PER_BLOCK"
    attribute("shared_memory_per_block_bytes", optin)
    attribute("registers_per_sm", "MAX_REGISTERS_PER_MULTIPROCESSOR")
    attribute("registers_per_block", "MAX_REGISTERS_PER_BLOCK")
    put(
        "max_registers_per_thread",
        255,
        "CUDA C++ Programming Guide, compute capabilities from 3.5 on",
    )
    attribute("max_threads_per_sm", "MAX_THREADS_PER_MULTIPROCESSOR")
    attribute("max_threads_per_block", "MAX_THREADS_PER_BLOCK")
    attribute("max_blocks_per_sm", "MAX_BLOCKS_PER_MULTIPROCESSOR")
    for field in _OF_THE_CAPABILITY:
        figures = {value[field] for value in relatives.values() if field in value}
        if len(figures) == 1:
            put(field, figures.pop(), f"built-in devices of {capability}")
    if twin and "die" in known[twin]:
        put(
            "die",
            known[twin]["die"],
            f"built-in device {twin}: same name, SMs, clock and bandwidth",
        )
    if power_watts is not None:
        put("board_power_watts", _rounded(power_watts), "nvmlDeviceGetPowerManagementDefaultLimit")
    elif twin and "board_power_watts" in known[twin]:
        put(
            "board_power_watts",
            known[twin]["board_power_watts"],
            f"built-in device {twin}: same name, SMs, clock and bandwidth",
        )
    if twin and "load_clock_mhz" in known[twin]:
        put(
            "load_clock_mhz",
            known[twin]["load_clock_mhz"],
            f"built-in device {twin}: same name, SMs, clock and bandwidth",
        )
    description["source"] = source
    return description


def _words(name: str) -> set[str]:
    """Words of a device's name, and pairs of neighbours: rtx3090 of GeForce RTX 3090."""
    words = re.sub(r"[^a-z0-9]+", " ", name.lower()).split()
    return {*words, *(first + second for first, second in zip(words, words[1:]))}


def is_named(name: str, device: str) -> bool:
    """Returns whether a GPU of that name is the described device, by the words of both."""
    return set(device.split("-")) <= _words(name)


def _twin(
    name: str, description: Mapping[str, Any], relatives: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """The built-in device that this one is, by its name and the figures the driver states.

    The most specific name wins: v100-pcie before v100.
    """
    words = _words(name)

    def is_same(key: str, value: Mapping[str, Any]) -> bool:
        return (
            set(key.split("-")) <= words
            and value["sm_count"] == description["sm_count"]
            and abs(value["clock_mhz"] / description["clock_mhz"] - 1) < 0.03
            and abs(value["dram_gbps"] / description["dram_gbps"] - 1) < 0.05
        )

    twins = [key for key, value in relatives.items() if is_same(key, value)]
    return max(twins, key=len, default=None)


def _rounded(value: float) -> float | int:
    """Five digits are more than any of these figures has."""
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded == int(rounded) else rounded


def _scale_peak(
    field: str,
    relatives: Mapping[str, Mapping[str, Any]],
    twin: str | None,
    rate: float,
    put: Any,
) -> None:
    """A peak of the tensor cores by that of built-in devices, scaled by SMs and clock.

    That of the device which this one is; else the least per SM and clock, since boards of one
    capability differ (GeForce ones accumulate in f32 at half the rate). Left out where no built-in
    device has it.
    """
    figures = {
        key: value[field] / (value["sm_count"] * value["clock_mhz"])
        for key, value in relatives.items()
        if value.get(field)
    }
    if not figures:
        return
    name = twin if twin in figures else min(figures, key=lambda key: figures[key])
    put(field, _rounded(figures[name] * rate), f"built-in device {name}, scaled by SMs and clock")


def _put_dram(
    name: str,
    attributes: Mapping[str, int],
    relatives: Mapping[str, Mapping[str, Any]],
    put: Any,
) -> None:
    clock, width = attributes["MEMORY_CLOCK_RATE"], attributes["GLOBAL_MEMORY_BUS_WIDTH"]
    if clock > 0 and width > 0:
        put(
            "dram_gbps",
            _rounded(2 * clock * 1e3 * width / 8 / 1e9),
            "2 x CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE (36) "
            "x CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH (37) / 8",
        )
        return
    # The name of a built-in device is in that of the GPU: h200 in NVIDIA H200.
    words = _words(name)
    named = [key for key in relatives if set(key.split("-")) <= words]
    if named:
        key = max(named, key=len)
        put("dram_gbps", relatives[key]["dram_gbps"], f"built-in device {key}")
        return
    raise Error(
        f"the driver does not know the memory clock of {name}, and no built-in device has its "
        "name: write a description with dram_gbps"
    )
