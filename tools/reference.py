#!/usr/bin/env python3
"""Writes the reference pages in docs/reference from the TableGen sources and
from what ftuner-translate lists.

With --check nothing is written; it fails where a page differs from what the
sources give.
"""

import argparse
import glob
import itertools
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTICE = "<!-- Generated from {source} by tools/reference.py: do not edit -->\n\n"

# Page: (title, sources, flags of mlir-tblgen).
PAGES = {
    "ukernel.md": (
        None,
        ["include/FTuner/Dialect/UKernel/IR/UKernelOps.td"],
        ["-gen-dialect-doc", "-dialect=ukernel"],
    ),
    "transforms.md": (
        "Transformations",
        ["include/FTuner/Transforms/Passes.td"],
        ["-gen-pass-doc"],
    ),
    "conversions.md": ("Conversions", ["include/FTuner/Conversion/Passes.td"], ["-gen-pass-doc"]),
    "pipelines.md": (
        "Passes that run pipelines",
        ["include/FTuner/Pipelines/Passes.td"],
        ["-gen-pass-doc"],
    ),
}


def generate(tblgen, includes, title, sources, flags):
    command = [tblgen, "-", "-I", ROOT, "-I", os.path.join(ROOT, "include")]
    for include in includes:
        command += ["-I", include]
    files = [file for source in sources for file in sorted(glob.glob(source, root_dir=ROOT))]
    run = subprocess.run(
        command + flags,
        capture_output=True,
        text=True,
        input="".join(f'include "{file}"\n' for file in files),
    )
    if run.returncode != 0:
        sys.exit(run.stderr)
    text = re.sub(r"\A<!--.*?-->\n*", "", run.stdout)
    text = text.replace("[TOC]\n\n", "")
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
    heading = f"# {title}\n\n" if title else ""
    return NOTICE.format(source=" and ".join(sources)) + heading + text


TYPES = {
    "switch": "",
    "integer": "whole number",
    "number": "number",
    "file": "file",
    "string": "text",
}
READERS = {"search": "every search", "pipeline": "the pipeline"}


def describe(option):
    """A row of the table of options."""
    low, high = option.get("min"), option.get("max")
    takes = ", ".join(f"`{value}`" for value in option.get("values", []))
    if not takes:
        takes = TYPES[option["type"]] + (", or a built-in name" if "builtin" in option else "")
        if low is not None and high is not None:
            takes += f", {low:,} to {high:,}"
        elif low is not None or high is not None:
            takes += f", at least {low:,}" if high is None else f", at most {high:,}"
    for key, words in (("at_least", "at least"), ("at_most", "at most")):
        if key in option:
            takes += f", {words} `{option[key]}`"
    default = option["default"]
    default = str(default).lower() if isinstance(default, bool) else str(default)
    readers = ", ".join(
        f"`{r['name']}`" if "name" in r else READERS[r["kind"]] for r in option["read_by"]
    )
    return f"| `{option['name']}` | {takes} | {default and f'`{default}`'} | {option['text']} | {readers} |\n"


def listed(translate):
    run = subprocess.run([translate, "--list-options"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def list_options(options):
    return (
        NOTICE.format(source="ftuner-translate --list-options") + "# Options\n\n"
        "Of the pipelines `--ftuner-compile` and `--ftuner-front-end`, of `ftuner-translate`, `ftuner-run` and the\n"
        "command line `ftuner` (`--NAME=VALUE`), and of `ftuner.compile` (with underscores). The pass\n"
        "[`--ukernel-plan-workloads`](transforms.md) has all but the pipeline's own. An option that neither the strategy\n"
        "nor the cost model reads is accepted and has no effect. [How options are declared](../extending/options.md).\n\n"
        "Most users need the basic ones, which `--help` shows; `--help-all` shows the others, in these groups. Those of\n"
        'the group "Testing" are for tests and studies, and only `--help-hidden` shows them.\n'
        + "".join(list_group(title, group) for title, group in groups_of(options))
    )


def groups_of(options):
    """Titles and options: the basic ones first, tests' last."""
    groups = {}
    for option in options:
        groups.setdefault("Basic" if option["level"] == "basic" else option["group"], []).append(
            option
        )
    return sorted(
        groups.items(), key=lambda item: ({"Basic": 0, "Testing": 2}.get(item[0], 1), item[0])
    )


def list_group(title, options):
    return (
        f"\n## {title}\n\n| option | takes | default | what | read by |\n|---|---|---|---|---|\n"
        + "".join(map(describe, options))
    )


def parameters(fields):
    """Lists of fields that are one parameter of the attribute."""
    return [list(group) for _, group in itertools.groupby(fields, key=lambda field: field["key"])]


def syntax(path):
    """The attribute with fields in place of values, and what may be left out in brackets."""
    text = ""
    for fields in parameters(path["schedule"]["fields"]):
        value = ", ".join(field["name"] for field in fields)
        parameter = f"{fields[0]['key']} = {f'[{value}]' if len(fields) > 1 else value}"
        text += f" (, {parameter})" if fields[0]["optional"] else (", " if text else "") + parameter
    return f"#ukernel.{path['name']}<{text}>"


def describe_field(field):
    flag = field["type"] == "switch"
    takes = "`false`, `true`" if flag else field["takes"]
    default = str(bool(field["default"])).lower() if flag else field["default"]
    return f"| `{field['name']}` | `{field['key']}` | {takes} | `{default}` | {field['text']} |\n"


def describe_path(path):
    table = path["schedule"]
    text = (
        f"## {path['name']}\n\n{table['summary'][0].upper() + table['summary'][1:]}.\n\n```text\n{syntax(path)}\n```\n\n"
        "| field | parameter | takes | default | what |\n|---|---|---|---|---|\n"
        + "".join(map(describe_field, table["fields"]))
    )
    if table["rules"]:
        text += "\nBeside the numbers of single fields (`schedule_c2`):\n\n"
        text += "".join(f"* {rule}\n" for rule in table["rules"])
    return text + f"\nBlock tiles are multiples of {table['tiles']} (`schedule_c3`).\n"


def list_schedules(paths):
    return (
        NOTICE.format(source="ftuner-translate --list-options") + "# Schedules\n\n"
        "What the codegen paths decide beside the block tile. In IR a schedule is an attribute: parameters in the order\n"
        "shown, of which those in parentheses may be left out and come in any order. In the [manifest](../manifest.md),\n"
        "explanations, logs of measurements and [calibrations](../calibration.md#rows) it is the fields by their names,\n"
        "`true` and `false` as 1 and 0. Each field takes the values of its row, and lists have a number for each of\n"
        "their fields (`schedule_c1`). Operators and devices ask for more, which each path's model checks.\n"
        "[How a path declares them](../extending/codegen-path.md).\n\n"
        + "\n".join(map(describe_path, paths))
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tblgen", default="mlir-tblgen", help="path of mlir-tblgen")
    parser.add_argument("--include", action="append", default=[], help="folder of MLIR's headers")
    parser.add_argument("--translate", default="ftuner-translate", help="path of ftuner-translate")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = []
    texts = {page: generate(options.tblgen, options.include, *how) for page, how in PAGES.items()}
    compiler = listed(options.translate)
    texts["options.md"] = list_options(compiler["options"])
    texts["schedules.md"] = list_schedules(compiler["paths"])
    for page, text in texts.items():
        path = os.path.join(ROOT, "docs", "reference", page)
        known = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                known = file.read()
        if text == known:
            continue
        if options.check:
            stale.append(os.path.relpath(path, ROOT))
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    if stale:
        sys.exit(
            f"error: {', '.join(stale)}: not what the sources give; "
            "build the target ftuner-docs and commit the result"
        )


if __name__ == "__main__":
    main()
