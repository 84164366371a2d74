#!/usr/bin/env python3
"""Records plans and PTX of a set of modules, and compares two records.

  recorded_set.py record --bin-dir build/release/bin --out before
  recorded_set.py compare before after

The set: the examples, Dense, BatchMatmul and attention's products on several
devices, every search, the modules of the integration tests, given plans, and
modules of other tests. `record` writes each module, its PTX and its manifest,
without ptxas (but where a case asks for it), so that a record does not depend on it.

`compare` takes names of symbols and versions of formats for equal: kernels,
workloads and plans are numbered, families are compared by what they are. It prints a line for each case
that differs, with the first difference, and exits with 1 if there is one. With
--ptxas it assembles the kernels that differ: registers and instructions before
and after; with --tolerate-equal-code kernels for which both are equal do not count.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

import kernels
import manifests

OUTPUTS = {"ptx": "--ftuner-to-ptx", "json": "--ftuner-to-manifest"}
HIDDEN = {
    "PATH": "/nonexistent",
    "CUDA_HOME": "/nonexistent",
    "CUDA_PATH": "/nonexistent",
    "CUDA_ROOT": "/nonexistent",
}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def translate(one, options):
    """Writes PTX and manifest of a case; returns its entry of the record."""
    began = time.monotonic()
    source, device = one.name + ".mlir", one.device
    if one.description:
        device = one.name + ".device.json"
        write(os.path.join(options.out, device), one.description)
    entry = {"device": one.device, "flags": list(one.flags), "refused": None}
    for ending, flag in OUTPUTS.items():
        # The module's name is in the manifest: where operators are.
        run = subprocess.run(
            [
                options.translate,
                source,
                flag,
                f"--device={device}",
                *one.flags,
                "-o",
                f"{one.name}.{ending}",
            ],
            cwd=options.out,
            capture_output=True,
            text=True,
            env={**os.environ, **({} if one.assembles else HIDDEN)},
        )
        if run.returncode < 0:
            raise RuntimeError(
                f"{one.name}: the program died of signal {-run.returncode}: {run.stderr}"
            )
        if run.returncode != 0:
            entry["refused"] = next(
                (line for line in run.stderr.splitlines() if "error:" in line), run.stderr.strip()
            )
            break
    entry["seconds"] = round(time.monotonic() - began, 2)
    return entry


def record(options):
    options.bin_dir, options.out = os.path.abspath(options.bin_dir), os.path.abspath(options.out)
    options.translate = os.path.join(options.bin_dir, "ftuner-translate")
    if not os.access(options.translate, os.X_OK):
        sys.exit(f"error: no program '{options.translate}'")
    if os.path.isdir(options.out) and os.listdir(options.out):
        if not os.path.exists(os.path.join(options.out, "record.json")):
            sys.exit(f"error: '{options.out}' holds something else than a record")
        if not options.overwrite:
            sys.exit(f"error: '{options.out}' holds a record; --overwrite replaces it")
        shutil.rmtree(options.out)
    os.makedirs(options.out, exist_ok=True)
    import cases  # with the integration tests; comparing needs none of it

    chosen = cases.all_cases(options.bin_dir, options.only)
    if not chosen:
        sys.exit(f"error: no case matches '{options.only}'")
    for one in chosen:
        write(os.path.join(options.out, one.name + ".mlir"), one.text)
    entries = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(translate, one, options): one for one in chosen}
        for done in concurrent.futures.as_completed(running):
            one = running[done]
            entries[one.name] = done.result()
            refused = entries[one.name]["refused"]
            print(
                f"[{len(entries)}/{len(chosen)}] {one.name} {entries[one.name]['seconds']} s"
                + (f" refused: {refused}" if refused else ""),
                flush=True,
            )
    write(
        os.path.join(options.out, "record.json"),
        json.dumps({one.name: entries[one.name] for one in chosen}, indent=1),
    )
    refused = sum(entry["refused"] is not None for entry in entries.values())
    print(f"recorded {len(entries)} cases in {options.out}, {refused} of them refused")


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def load(folder):
    try:
        return json.loads(read(folder, "record.json"))
    except OSError as error:
        sys.exit(f"error: no record in '{folder}': {error.strerror}")


def difference_of_text(before, after):
    """The first line that differs."""
    one, other = before.splitlines(), after.splitlines()
    for number, (line, new) in enumerate(zip(one, other), 1):
        if line != new:
            return f"line {number}: {line.strip()} and {new.strip()}"
    return f"{len(one)} and {len(other)} lines"


class Comparison:
    """Differences of one case, and whether they count."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.notes = []
        self.problems = []
        self.count = 0

    def run(self, before, after):
        """before, after: entries of the records."""
        if (before["refused"] is None) != (after["refused"] is None):
            self.problems.append(
                f"refused {'after' if after['refused'] else 'before'}: "
                f"{after['refused'] or before['refused']}"
            )
        elif before["refused"] is None:
            self.compare_ptx()
            self.compare_manifests()
        sources = self.read(".mlir")
        if sources[0] != sources[1]:
            self.notes.append("the modules differ")
        if before["flags"] != after["flags"]:
            self.notes.append(f"the flags differ: {before['flags']} and {after['flags']}")

    def read(self, ending):
        return [
            read(folder, self.name + ending) for folder in (self.options.before, self.options.after)
        ]

    def compare_ptx(self):
        texts = self.read(".ptx")
        self.count = len(kernels.ENTRY.findall(texts[0]))
        if texts[0] == texts[1]:
            return
        (head, before), (new_head, after) = map(kernels.of_text, texts)
        if head != new_head:
            self.problems.append(f"PTX before the kernels: {difference_of_text(head, new_head)}")
        if len(before) != len(after):
            self.problems.append(f"{len(before)} and {len(after)} kernels")
        elif [kernel.text for kernel in before] != [kernel.text for kernel in after] and (
            sorted(kernel.text for kernel in before) == sorted(kernel.text for kernel in after)
        ):
            self.problems.append("kernels in another order")
            return
        originals = [kernels.split(text) for text in texts]
        for index, (kernel, new) in enumerate(zip(before, after)):
            if kernel.text == new.text:
                continue
            problem = f"kernel {kernel.name}: {difference_of_text(kernel.text, new.text)}"
            is_equal, assembled = (
                self.assemble(originals, index) if self.options.ptxas else (False, "")
            )
            if is_equal and self.options.tolerate_equal_code:
                self.notes.append(problem + assembled)
            else:
                self.problems.append(problem + assembled)

    def assemble(self, originals, index):
        """Returns whether registers and instructions of a kernel are equal, and both as text."""
        try:
            made = [kernels.assemble(head, parts[index]) for head, parts in originals]
        except RuntimeError as error:
            return False, f"; ptxas: {error}"
        if made[0] == made[1]:
            return True, f"; equal: {made[0]}"
        return False, f"; {made[0]} before, {made[1]} after"

    def compare_manifests(self):
        texts = self.read(".json")
        if texts[0] == texts[1]:
            return
        try:
            before, after = (manifests.canonical(json.loads(text)) for text in texts)
        except ValueError as error:
            self.problems.append(f"manifest: {error}")
            return
        found = manifests.first_difference(before, after)
        if found:
            self.problems.append(f"manifest{found}")


def compare(options):
    before, after = load(options.before), load(options.after)
    names = [name for name in before if re.search(options.only, name)]
    differing = kernel_count = refused = 0
    for name in names:
        one = Comparison(name, options)
        if name in after:
            one.run(before[name], after[name])
            refused += before[name]["refused"] is not None and after[name]["refused"] is not None
        else:
            one.problems.append("only before")
        kernel_count += one.count
        differing += bool(one.problems)
        if one.problems or one.notes or options.verbose:
            print(f"{'DIFFERENT' if one.problems else 'identical'} {name}")
        for problem in one.problems[: options.most]:
            print(f"    {problem}")
        if len(one.problems) > options.most:
            print(f"    and {len(one.problems) - options.most} more differences")
        for note in one.notes:
            print(f"    note: {note}")
    new = [name for name in after if name not in before and re.search(options.only, name)]
    for name in new:
        print(f"DIFFERENT {name}\n    only after")
    differing += len(new)
    total = len(names) + len(new)
    print(
        f"{total - differing} of {total} cases identical ({kernel_count} kernels; {refused} refused by both), "
        f"{differing} different"
    )
    sys.exit(1 if differing or not total else 0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record", help="translate every module of the set")
    one.add_argument("--bin-dir", required=True, help="folder of the programs")
    one.add_argument("--out", required=True, help="folder of the record")
    one.add_argument("--jobs", type=int, default=2, help="programs at a time")
    one.add_argument(
        "--overwrite", action="store_true", help="replace the record that the folder holds"
    )
    one.set_defaults(run=record)
    other = commands.add_parser("compare", help="tell what differs between two records")
    other.add_argument("before")
    other.add_argument("after")
    other.add_argument("--ptxas", action="store_true", help="assemble kernels that differ")
    other.add_argument(
        "--tolerate-equal-code",
        action="store_true",
        help="with --ptxas: kernels of equal registers and instructions are listed, but do not count",
    )
    other.add_argument("--most", type=int, default=3, help="differences to print of a case")
    other.add_argument("--verbose", action="store_true", help="print identical cases too")
    other.set_defaults(run=compare)
    for command in (one, other):
        command.add_argument("--only", default="", metavar="REGEX", help="cases whose name matches")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
