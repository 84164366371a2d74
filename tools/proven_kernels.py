#!/usr/bin/env python3
"""Records the kernels of proof families that ran on a card, and says which of today's differ from them.

    tools/proven_kernels.py record --tree DIR FOLDER   the PTX that a built revision in DIR makes of its families
    tools/proven_kernels.py compare FOLDER [--write]   what today's build makes, beside it

FOLDER has `families.json`, with the hash of each family's PTX, and `ptx.tar.xz`, with a file for each hash. `compare`
counts the instructions of each family by opcode and modifiers. It prints a line for each family, and fails where
families differ in other ways than `differences.json` says, which --write makes anew. Families that were not there then
are named as such: docs/check-gpu.md says what of a path may run unproven.
"""

import argparse
import collections
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FORMAT_VERSION = 1
DEVICE = "h200"
#: Instructions that copy, synchronize, multiply or exchange: what a card has to prove. The others compute.
PROVEN_BY_CARDS = re.compile(
    r"(wgmma|mma|ldmatrix|stmatrix|cp|mbarrier|fence|bar|barrier|membar|setmaxnreg|elect|shfl|vote"
    r"|redux|atom|red|prefetch|mapa|griddepcontrol)\b"
)
#: Present names of recorded families, by their names in the records.
RENAMED = {
    "wgmma_turns": "wgmma_ping_pong",
    "wgmma_turns_in_clusters": "wgmma_ping_pong_in_clusters",
    "wgmma_producers_and_tensor_maps": "wgmma_warp_specialization_and_tma",
}
#: Reads the families of a tree, by its own package.
FAMILIES = """
import json, sys
from pathlib import Path
from ftuner.proof import families
found = {}
for folder in sorted(Path(sys.argv[1]).glob("lib/Codegen/*/proof.json")):
    read = families._read(folder)
    for one in read if isinstance(read, list) else [read]:
        for family in one.families:
            found[family.symbol] = {"path": family.path, "gate": getattr(family, "gate", ""), "name": family.name,
                                    "text": family.text()}
print(json.dumps(found))
"""


def families_of(tree):
    environment = {
        **os.environ,
        "PYTHONPATH": os.path.join(tree, "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", FAMILIES, tree], env=environment, capture_output=True, text=True
    )
    if run.returncode != 0:
        sys.exit(f"error: cannot read the families of {tree}: {run.stderr}")
    return json.loads(run.stdout)


def ptx_of(bin_dir, family, folder):
    """Returns the PTX without the lines that name files."""
    path = os.path.join(folder, "family.mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(family["text"])
    run = subprocess.run(
        [os.path.join(bin_dir, "ftuner-translate"), path, "--ftuner-to-ptx", f"--device={DEVICE}"],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        sys.exit(f"error: {family['path']}, {family['name']}: {run.stderr}")
    return "".join(
        line for line in run.stdout.splitlines(keepends=True) if not line.startswith("//")
    )


def kernels_of(tree, bin_dir, keep=lambda symbol: True):
    """Returns symbols to pairs of a family and its PTX."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            symbol: (family, ptx_of(bin_dir, family, folder))
            for symbol, family in families_of(tree).items()
            if keep(symbol)
        }


def instructions(ptx):
    """Counts the instructions in the text of a module, by opcode and modifiers."""
    counts = collections.Counter()
    for line in ptx.splitlines():
        line = line.strip()
        if not line or line[0] in "{}().$/%" or line.startswith("."):
            continue
        line = re.sub(r"^@!?%\w+\s+", "", line)
        if opcode := re.match(r"[a-z][a-z0-9_.:]*", line):
            counts[opcode[0]] += 1
    return counts


def record(options):
    made = kernels_of(options.tree, os.path.join(options.tree, "build", "release", "bin"))
    revision = subprocess.run(
        ["git", "-C", options.tree, "rev-parse", "--short=9", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    os.makedirs(options.folder, exist_ok=True)
    entries, files = {}, {}
    for symbol, (family, ptx) in made.items():
        content = hashlib.sha256(ptx.encode()).hexdigest()
        files[content] = ptx.encode()
        entries[symbol] = {"path": family["path"], "name": family["name"], "ptx": content}
    with tarfile.open(os.path.join(options.folder, "ptx.tar.xz"), "w:xz") as archive:
        for content, text in sorted(files.items()):
            member = tarfile.TarInfo(f"{content}.ptx")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    write_json(
        os.path.join(options.folder, "families.json"),
        {
            "format_version": FORMAT_VERSION,
            "revision": revision,
            "device": DEVICE,
            "families": entries,
        },
    )
    print(f"recorded {len(entries)} families of {revision}")


def write_json(path, data):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1, sort_keys=True)
        file.write("\n")


def recorded(folder):
    """Returns the families of a record, each with its PTX; exits where the record is damaged."""
    with open(os.path.join(folder, "families.json"), encoding="utf-8") as file:
        families = {
            RENAMED.get(symbol, symbol): family
            for symbol, family in json.load(file)["families"].items()
        }
    with tarfile.open(os.path.join(folder, "ptx.tar.xz"), "r:xz") as archive:
        texts = {member.name: archive.extractfile(member).read() for member in archive.getmembers()}
    for symbol, family in families.items():
        text = texts.get(f"{family['ptx']}.ptx", b"")
        if hashlib.sha256(text).hexdigest() != family["ptx"]:
            sys.exit(f"error: {folder}: the PTX of {symbol} is not what families.json says")
        family["text"] = text.decode()
    return families


def difference(before, after):
    """Returns the counts that differ of instructions that a card has to prove, and whether any others' differ."""
    kinds = {kind for kind in before | after if before[kind] != after[kind]}
    proven = {
        kind: [before[kind], after[kind]] for kind in sorted(kinds) if PROVEN_BY_CARDS.match(kind)
    }
    return {
        "instructions": proven,
        "arithmetic": any(not PROVEN_BY_CARDS.match(kind) for kind in kinds),
    }


def differences(folder, bin_dir, only=None):
    """Compares today's families with the recorded ones: those that differ, are equal, are new, or are gone."""
    families = {
        symbol: family for symbol, family in recorded(folder).items() if not only or symbol in only
    }
    found, new, equal = {}, [], []
    for symbol, (family, ptx) in kernels_of(
        ROOT, bin_dir, lambda symbol: not only or symbol in only
    ).items():
        if symbol not in families:
            new.append(
                f"{family['path']}{'.' + family['gate'] if family['gate'] else ''}: {family['name']}"
            )
            continue
        one = difference(instructions(families[symbol]["text"]), instructions(ptx))
        if one["instructions"] or one["arithmetic"]:
            found[symbol] = one
        else:
            equal.append(symbol)
    return {
        "differ": found,
        "new": sorted(new),
        "equal": sorted(equal),
        "gone": sorted(set(families) - set(found) - set(equal)),
    }


def compare(options):
    today = differences(options.folder, options.bin_dir, options.only)
    for symbol in today["equal"]:
        print(f"same instructions   {symbol}")
    for symbol, one in today["differ"].items():
        changed = ", ".join(
            f"{kind} {before} → {after}" for kind, (before, after) in one["instructions"].items()
        )
        print(
            f"{'other' if changed else 'other arithmetic':19} {symbol}{': ' if changed else ''}{changed}"
        )
    for name in today["new"]:
        print(f"not recorded        {name}")
    for symbol in today["gone"]:
        print(f"no longer there     {symbol}")
    path = os.path.join(options.folder, "differences.json")
    if options.write:
        write_json(path, today)
        return 0
    with open(path, encoding="utf-8") as file:
        known = json.load(file)
    changed = [
        symbol
        for symbol in {*today["differ"], *known["differ"]}
        if not options.only or symbol in options.only
        if today["differ"].get(symbol) != known["differ"].get(symbol)
    ]
    if not options.only:
        changed += sorted({*today["new"], *today["gone"]} ^ {*known["new"], *known["gone"]})
    if changed:
        print(
            f"error: {path} does not say what is different of {', '.join(sorted(changed))}: review it, and write it anew "
            "by --write",
            file=sys.stderr,
        )
    return 1 if changed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record")
    one.add_argument("folder")
    one.add_argument("--tree", required=True, metavar="DIR", help="a checkout with build/release")
    one.set_defaults(run=record)
    one = commands.add_parser("compare")
    one.add_argument("folder")
    one.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "release", "bin"))
    one.add_argument("--only", nargs="+", metavar="SYMBOL", help="some of today's families")
    one.add_argument("--write", action="store_true")
    one.set_defaults(run=compare)
    options = parser.parse_args()
    sys.exit(options.run(options))


if __name__ == "__main__":
    main()
