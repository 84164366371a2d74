"""Manifests in a form that does not depend on the version of their format.

Families are {path, block_tiles, thread_tiles, reduce_splits, schedule (stages and
vector_width of f32 on CUDA cores), combine_axis, balanced_sms}, whatever a version
calls them; every list has an item for each part. Kernels, workloads and plans have
numbers instead of names. A new version of the format is a function from its
families to that form, in FAMILIES.
"""

import re


def _take(family, names):
    """The values of these keys, which are removed; a ValueError if one is missing."""
    missing = [name for name in names if name not in family]
    if missing:
        raise ValueError(f"expected '{missing[0]}' of a family")
    return [family.pop(name) for name in names]


def _parts(family, known):
    """The uKernels, which have these keys and no other."""
    (parts,) = _take(family, ["ukernels"])
    for part in parts:
        if part.keys() != known:
            raise ValueError(
                f"expected the keys {', '.join(sorted(known))} of a uKernel, but got {', '.join(part)}"
            )
    return parts


def family_with_tiles(family):
    """The path's own fields beside those of every path, as up to version 2."""
    parts = _parts(family, {"shared_memory_tile", "register_tile", "reduce_split"})
    path, stages, vector_width, axis = _take(family, ["path", "stages", "vector_width", "axis"])
    return {
        "path": path,
        "block_tiles": [part["shared_memory_tile"] for part in parts],
        "thread_tiles": [part["register_tile"] for part in parts],
        "reduce_splits": [part["reduce_split"] for part in parts],
        "schedule": {"stages": stages, "vector_width": vector_width},
        "combine_axis": axis,
        "balanced_sms": family.pop("balanced_sms", 0),
    }


def family_with_schedule(family):
    """Block tiles and a schedule that the path owns.

    Threads along an axis are those that thread tiles of this size have.
    """
    parts = _parts(family, {"block_tile", "register_tile", "workers"})
    path, schedule, axis, split = _take(family, ["path", "schedule", "axis", "reduce_split"])
    renamed = ((*RENAMED_FIELDS.get(name, (name, 0)), value) for name, value in schedule.items())
    schedule = {name: value - offset for name, offset, value in renamed}
    for index, name in enumerate(("threads_m", "threads_n")):
        threads = schedule.pop(name, None)
        for part in parts if threads is not None else []:
            if part["block_tile"][index] != threads * part["register_tile"][index]:
                raise ValueError(
                    f"{name} {threads} does not fit the tiles {part['block_tile']} and {part['register_tile']}"
                )
    return {
        "path": path,
        "block_tiles": [part["block_tile"] for part in parts],
        "thread_tiles": [part["register_tile"] for part in parts],
        "reduce_splits": [split] * len(parts),
        "schedule": schedule,
        "combine_axis": axis,
        "balanced_sms": family.pop("balanced_sms", 0),
    }


#: (keys that families of a format have, and nothing else has; their canonical form). A function
#: takes what it reads out of the object; what it leaves is compared as it is.
FAMILIES = [
    ({"path", "ukernels", "stages"}, family_with_tiles),
    ({"path", "ukernels", "schedule"}, family_with_schedule),
]

#: Versions of the format that these are.
VERSIONS = (2, 3, 4, 5)

#: Fields of schedules up to version 4, their names since, and by how much a value was greater.
RENAMED_FIELDS = {
    "groups_m": ("warpgroups_m", 0),
    "groups_n": ("warpgroups_n", 0),
    "producers": ("producer_warpgroups", 0),
    "tensor_maps": ("tma", 0),
    "turns": ("ping_pong", 1),
}

#: Keys that a newer version has instead of an older one's.
RENAMED_KEYS = {"fallback_family": "unaligned_general_family"}


def _rebuild(value, names):
    """The value with canonical families and names."""
    if isinstance(value, list):
        return [_rebuild(item, names) for item in value]
    if isinstance(value, str):
        return names.get(value, value)
    if not isinstance(value, dict):
        return value
    rest, result = dict(value), {}
    for marks, canonical_family in FAMILIES:
        if marks <= value.keys():
            result = {"canonical_family": canonical_family(rest)}
    for key, item in rest.items():
        result[RENAMED_KEYS.get(key, key)] = _rebuild(item, names)
    return result


def names_of(manifest):
    """From the names of kernels, workloads and plans to their numbers."""
    names = {}
    for number, kernel in enumerate(manifest["kernels"]):
        names[kernel["entry"]] = f"<kernel {number}>"
    plans = {}
    for number, workload in enumerate(manifest["workloads"]):
        names[workload["name"]] = f"<workload {number}>"
        plans.setdefault(workload["plan"], f"<plan {len(plans)}>")
    return {**plans, **names}


def _parameters(parameters):
    """Whole scalars, and the part last, as from version 4 on."""
    whole = [
        {**one, "kind": "scalar"} if one["kind"] == "scalar_low" else one
        for one in parameters
        if one["kind"] != "scalar_high"
    ]
    return sorted(whole, key=lambda one: one["kind"] == "part")


def canonical(manifest):
    """Returns the canonical form, which manifests of equal plans and kernels have in common."""
    version = manifest["format_version"]
    if version not in VERSIONS:
        raise ValueError(
            f"no canonical form of format version {version}: "
            "add it to FAMILIES and VERSIONS in benchmarks/recorded_set/manifests.py"
        )
    result = _rebuild(manifest, names_of(manifest))
    for kernel in result["kernels"]:
        if "parameters" in kernel:
            kernel["parameters"] = _parameters(kernel["parameters"])
    del result["format_version"]
    return result


def first_difference(before, after, where=""):
    """Path and values of the first place where two JSON values differ, or None."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if key not in after or key not in before:
                return f"{where}.{key}: only {'before' if key in before else 'after'}"
            found = first_difference(before[key], after[key], f"{where}.{key}")
            if found:
                return found
        return None
    if isinstance(before, list) and isinstance(after, list):
        for index, (one, other) in enumerate(zip(before, after)):
            found = first_difference(one, other, f"{where}[{index}]")
            if found:
                return found
        if len(before) != len(after):
            return f"{where}: {len(before)} and {len(after)} items"
        return None
    # 1 and 1.0 are one number; true is not a number.
    if before == after and isinstance(before, bool) == isinstance(after, bool):
        return None
    return re.sub(r"\s+", " ", f"{where}: {before!r:.200} and {after!r:.200}")
