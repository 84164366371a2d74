"""Manifests in a form that does not depend on the version of their format.

Families are {path, block_tiles, thread_tiles, reduce_splits, stages, vector_width,
combine_axis, balanced_sms}, whatever a version calls their parts; kernels,
workloads and plans have numbers instead of names. A new version of the format is
a function from its families to that form, and an entry of FAMILIES.
"""

import re


def family_of_version_2(family):
    """A family as docs/manifest.md describes it; every list has an item for each part."""
    parts = family.pop("ukernels")
    known = {"shared_memory_tile", "register_tile", "reduce_split"}
    unknown = {key for part in parts for key in part} - known
    if unknown:
        raise ValueError(f"unknown keys of a uKernel: {', '.join(sorted(unknown))}")
    return {
        "path": family.pop("path"),
        "block_tiles": [part["shared_memory_tile"] for part in parts],
        "thread_tiles": [part["register_tile"] for part in parts],
        "reduce_splits": [part["reduce_split"] for part in parts],
        "stages": family.pop("stages"),
        "vector_width": family.pop("vector_width"),
        "combine_axis": family.pop("axis"),
        "balanced_sms": family.pop("balanced_sms", 0),
    }


def family_of_version_3(family):
    """Block tiles with the fields of the path's schedule; blocks' threads give thread tiles."""
    parts = family.pop("ukernels")
    schedule = family.pop("schedule")
    split = family.pop("reduce_split")
    return {
        "path": family.pop("path"),
        "block_tiles": [part["block_tile"] for part in parts],
        "thread_tiles": [part["register_tile"] for part in parts],
        "reduce_splits": [split for _ in parts],
        "stages": schedule["stages"],
        "vector_width": schedule["vector_width"],
        "combine_axis": family.pop("axis"),
        "balanced_sms": family.pop("balanced_sms", 0),
    }


#: From a version of the format to (keys that only families have, their canonical form). The
#: function takes what it reads out of the object; what it leaves is compared as it is.
FAMILIES = {2: ({"path", "ukernels"}, family_of_version_2),
            3: ({"path", "ukernels", "schedule"}, family_of_version_3)}

#: Keys that a newer version has instead of an older one's.
RENAMED_KEYS = {}


def _rebuild(value, version, names):
    """The value with canonical families and names."""
    marks, canonical = FAMILIES[version]
    if isinstance(value, list):
        return [_rebuild(item, version, names) for item in value]
    if isinstance(value, str):
        return names.get(value, value)
    if not isinstance(value, dict):
        return value
    rest = dict(value)
    result = {"canonical_family": canonical(rest)} if marks <= value.keys() else {}
    for key, item in rest.items():
        result[RENAMED_KEYS.get(key, key)] = _rebuild(item, version, names)
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


def canonical(manifest):
    """What two manifests of the same plans and kernels have in common."""
    version = manifest["format_version"]
    if version not in FAMILIES:
        raise ValueError(f"no canonical form of families in format version {version}: "
                         "add one to FAMILIES in benchmarks/recorded_set/manifests.py")
    result = _rebuild(manifest, version, names_of(manifest))
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
    # 1 and 1.0 are one number, true is none.
    if before == after and isinstance(before, bool) == isinstance(after, bool):
        return None
    return re.sub(r"\s+", " ", f"{where}: {before!r:.200} and {after!r:.200}")
