"""tools/check_layers.py on small trees: what it refuses, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handmade import ROOT

TABLE = """
layer facts without mlir/
  Device Workload   # beside each other
layer search without mlir/
  Search
layer paths private
  Codegen/*
layer passes private for Pipelines
  Passes
  Passes/Host
layer programs
  Pipelines
  InitAll.h
  Target
  tools/*
"""

CLEAN = {
    "include/FTuner/Device/Device.h": '#include "llvm/ADT/StringRef.h"\n',
    "include/FTuner/Workload/Workload.h": "",
    "include/FTuner/Search/Search.h": '#include "FTuner/Device/Device.h"\n',
    "include/FTuner/InitAll.h": "",
    "include/FTuner/Codegen/A/Layout.h": "",
    "lib/Search/Search.cpp": '#include "FTuner/Search/Search.h"\n#include "Table.h"\n',
    "lib/Search/Table.h": "#include <vector>\n",
    "lib/Codegen/A/A.cpp": '#include "FTuner/Codegen/A/Layout.h"\n#include "mlir/IR/Value.h"\n',
    "include/FTuner/Passes/Passes.h": "",
    "lib/Passes/Host/Host.cpp": '#include "FTuner/Passes/Passes.h"\n',
    "lib/Pipelines/Pipelines.cpp": '#include "FTuner/Passes/Passes.h"\n',
    "lib/Target/Target.cpp": '#include "FTuner/InitAll.h"\n#include "FTuner/Search/Passes.h.inc"\n',
    "lib/Search/CMakeLists.txt": "ftuner_library(Search\n  Search.cpp\n  LINK Device LLVM)\n",
    "lib/Device/CMakeLists.txt": "ftuner_library(Device Device.cpp\n  LINK LLVM)\n",
    "tools/tool/tool.cpp": '#include "FTuner/Search/Search.h"\n',
}


def check(folder: Path, changes: dict[str, str], allow: str = "") -> tuple[int, str]:
    """Exit status and messages for CLEAN with other files."""
    for name, text in {**CLEAN, **changes, "tools/layers.txt": TABLE + allow}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = subprocess.run(
        [sys.executable, str(Path(ROOT, "tools", "check_layers.py")), f"--root={folder}"],
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stderr


def test_a_clean_tree_passes(tmp_path: Path) -> None:
    assert check(tmp_path, {}) == (0, "")


REFUSED = {
    "an include of a folder above": (
        {"include/FTuner/Device/Device.h": '\n#include "FTuner/Search/Search.h"\n'},
        [
            "include/FTuner/Device/Device.h:2: includes FTuner/Search/Search.h: 'Search' (layer search) is above 'Device'"
        ],
    ),
    "a generated header of a folder above": (
        {"lib/Device/Device.cpp": '#include "FTuner/Search/Ops.h.inc"\n'},
        [
            "lib/Device/Device.cpp:1: includes FTuner/Search/Ops.h.inc: 'Search' (layer search) is above"
        ],
    ),
    "TableGen, too": (
        {"include/FTuner/Device/Device.td": 'include "FTuner/Search/Search.td"\n'},
        [
            "include/FTuner/Device/Device.td:1: includes FTuner/Search/Search.td: 'Search' (layer search) is above"
        ],
    ),
    "a header by its name alone": (
        {"lib/Device/Device.cpp": '#include "Table.h"\n'},
        ["lib/Device/Device.cpp:1: includes Table.h: 'Search' (layer search) is above"],
    ),
    "an include of a folder beside": (
        {"include/FTuner/Workload/Workload.h": "#include <FTuner/Device/Device.h>\n"},
        [
            "include/FTuner/Workload/Workload.h:1: includes FTuner/Device/Device.h: 'Device' is beside 'Workload'"
        ],
    ),
    "folders of one wildcard": (
        {"lib/Codegen/B/B.cpp": '#include "FTuner/Codegen/A/Layout.h"\n'},
        [
            "lib/Codegen/B/B.cpp:1: includes FTuner/Codegen/A/Layout.h: 'Codegen/A' is beside 'Codegen/B'"
        ],
    ),
    "a private folder": (
        {"lib/Target/Target.cpp": '#include "FTuner/Codegen/A/Layout.h"\n'},
        ["lib/Target/Target.cpp:1: includes FTuner/Codegen/A/Layout.h: 'Codegen/A' is private"],
    ),
    "a folder that is private but for others": (
        {"lib/Target/Target.cpp": '#include "FTuner/Passes/Passes.h"\n'},
        ["lib/Target/Target.cpp:1: includes FTuner/Passes/Passes.h: 'Passes' is private"],
    ),
    "headers that a layer is without": (
        {"lib/Search/Table.h": '#include "mlir/IR/Value.h"\n'},
        ["lib/Search/Table.h:1: includes mlir/IR/Value.h: the layer search is without mlir/"],
    ),
    "a folder that the table lacks": (
        {"lib/Other/Other.cpp": "", "lib/Codegen/Paths.cpp": ""},
        [
            "lib/Other/Other.cpp:1: the folder 'lib/Other' is in no layer",
            "lib/Codegen/Paths.cpp:1: the folder 'lib/Codegen'",
        ],
    ),
    "a circle of headers": (
        {
            "lib/Search/Table.h": '#include "Other.h"\n',
            "lib/Search/Other.h": '#include "Table.h"\n',
        },
        ["a circle of files: lib/Search/", "lib/Search/Table.h -> lib/Search/Other.h"],
    ),
    "a circle of folders in one line's folder": (
        {
            "lib/Search/Table.h": '#include "Deep/Deep.h"\n',
            "lib/Search/Deep/Deep.h": '#include "FTuner/Search/Search.h"\n',
        },
        ["a circle of folders: Search"],
    ),
    "a header inside a namespace": (
        {
            "lib/Search/Search.cpp": 'namespace ftuner {\n#include "FTuner/Search/Passes.h.inc"\n#include "FTuner/Search/Search.h"\n'
            '} // namespace ftuner\n#include "Table.h"\n'
        },
        ["lib/Search/Search.cpp:3: includes FTuner/Search/Search.h inside a namespace"],
    ),
    "a link of a library above": (
        {
            "lib/Device/CMakeLists.txt": "ftuner_library(Device Device.cpp\n  # all\n  LINK Search LLVM)\n"
        },
        ["lib/Device/CMakeLists.txt:3: links Search: 'Search' (layer search) is above 'Device'"],
    ),
    "a link by target_link_libraries": (
        {
            "lib/Device/CMakeLists.txt": "add_library(Device Device.cpp)\ntarget_link_libraries(Device PUBLIC Search)\n"
        },
        ["lib/Device/CMakeLists.txt:2: links Search: 'Search' (layer search) is above 'Device'"],
    ),
    "a link of a private library above": (
        {
            "lib/Codegen/A/CMakeLists.txt": "ftuner_library(A A.cpp LINK LLVM)\n",
            "lib/Search/CMakeLists.txt": "ftuner_library(Search Search.cpp LINK Device A LLVM)\n",
        },
        ["lib/Search/CMakeLists.txt:1: links A: 'Codegen/A' (layer paths) is above 'Search'"],
    ),
    "a link of a baseline above": (
        {
            "lib/Codegen/A/CMakeLists.txt": "ftuner_baseline(A\n  A.cpp)\n",
            "lib/Search/CMakeLists.txt": "ftuner_library(Search Search.cpp LINK Device FTunerA LLVM)\n",
        },
        ["lib/Search/CMakeLists.txt:1: links FTunerA: 'Codegen/A' (layer paths) is above 'Search'"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(tmp_path: Path, case: str) -> None:
    changes, expected = REFUSED[case]
    status, messages = check(tmp_path, changes)
    assert status == 1
    for text in expected:
        assert text in messages
    # Nothing is told twice, and nothing else is told, but a circle that an arrow upwards closes.
    others = [line for line in messages.splitlines() if not any(text in line for text in expected)]
    assert all("a circle" in line for line in others), messages


def test_exceptions_hold_as_long_as_they_are_needed(tmp_path: Path) -> None:
    upwards = {"include/FTuner/Device/Device.h": '#include "FTuner/Search/Search.h"\n'}
    needed = "allow\n  Device -> Search\n"
    assert check(tmp_path, upwards, needed) == (0, "")
    status, messages = check(tmp_path, {}, needed)
    assert status == 1
    assert "tools/layers.txt:17: nothing needs the exception Device -> Search" in messages


@pytest.mark.parametrize(
    "addition, message",
    [
        ("layer\n", "expected the name of a layer"),
        ("layer one without\n", "expected 'without PREFIX...'"),
        ("layer one private for\n", "expected 'without PREFIX...'"),
        ("layer one for Search\n", "expected 'without PREFIX...'"),
        ("layer one\n  Search\n", "'Search' has a line already"),
        ("allow\n  Device Search\n", "expected 'FOLDER -> FOLDER'"),
    ],
)
def test_refuses_a_damaged_table(tmp_path: Path, addition: str, message: str) -> None:
    status, messages = check(tmp_path, {}, addition)
    assert status == 1
    assert messages.startswith("error: ") and message in messages


def test_refuses_an_empty_tree(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "layers.txt").write_text(TABLE)
    run = subprocess.run(
        [sys.executable, str(Path(ROOT, "tools", "check_layers.py")), f"--root={tmp_path}"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1 and "no sources" in run.stderr


def test_writes_and_checks_the_table_of_a_page(tmp_path: Path) -> None:
    table = tmp_path / "layers.txt"
    table.write_text(
        "layer facts without mlir/\n  # Both\n  # of them.\n  Device Workload\nlayer paths private\n  Codegen/*\n"
        "layer passes without x/ private for Codegen/A Codegen/B\n  Passes\n"
    )
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- layers: begin -->\nold\n<!-- layers: end -->\nbehind\n")

    def run(*more: str) -> tuple[int, str]:
        command = [
            sys.executable,
            str(Path(ROOT, "tools", "check_layers.py")),
            f"--table={table}",
            f"--page={page}",
        ]
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        return done.returncode, done.stderr

    status, message = run()
    assert status == 1 and "the table of layers is not that of" in message
    assert run("--write") == (0, "")
    assert run() == (0, "")
    text = page.read_text()
    assert text.startswith("before\n<!-- layers: begin -->\n| layer |") and text.endswith(
        "<!-- layers: end -->\nbehind\n"
    )
    assert "| facts | `Device`, `Workload` | Both of them. | without `mlir/` |\n" in text
    assert "| paths | `Codegen/*` |  | private |\n" in text
    assert (
        "| passes | `Passes` |  | without `x/`, private, and for `Codegen/A` and `Codegen/B` |\n"
        in text
    )
    page.write_text("no marks\n")
    status, message = run("--write")
    assert status == 1 and "expected '<!-- layers: begin -->'" in message


PATH_TREE = {
    "lib/Codegen/Simt/SimtModel.cpp": "// simt\n",
    "lib/Codegen/CMakeLists.txt": "add_subdirectory(Simt)\n",
    "include/FTuner/Codegen/Simt/Layout.h": "struct SimtLayout;\n",
    "include/FTuner/Codegen/CodegenPaths.def": "FTUNER_CODEGEN_PATH(simt, Open)\n",
    "python/ftuner/a.py": "sIMd\n",
}
# A path whose name is an instruction, too.
HARDWARE_TREE = {
    "lib/Codegen/Mma/MmaModel.cpp": "mmaModel() { NVVM::MmaOp MmaLayout; } // summary\n",
    "lib/Codegen/CMakeLists.txt": "add_subdirectory(Mma)\n",
    "include/FTuner/Codegen/CodegenPaths.def": "FTUNER_CODEGEN_PATH(mma, Open)\n",
    "lib/Emulator/A.cpp": "NVVM::MmaOp mma; MmaElement e; // mma.sync, summary, #nvvm.mma_layout<row>\n",
}


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, []),
        (
            {"lib/Search/Search.cpp": "\nint isSIMT;\n"},
            ["lib/Search/Search.cpp:2: 'int isSIMT;' names the path 'simt'"],
        ),
        (
            {"python/ftuner/a.py": "'simt'\n"},
            ["python/ftuner/a.py:1: ''simt'' names the path 'simt'"],
        ),
        (
            {"tools/Simtools.h": ""},
            ["tools/Simtools.h:1: the name of the path 'simt' is in a file's name"],
        ),
        (
            {
                "include/FTuner/Codegen/CodegenPaths.def": "FTUNER_CODEGEN_PATH(simt, Open)\nB(simt)\n"
            },
            ["CodegenPaths.def:2: 'B(simt)' is another line of a .def"],
        ),
        (
            {"lib/Target/CMakeLists.txt": "LINK FTunerSimt\n"},
            ["is another line of a CMakeLists.txt"],
        ),
        (
            {
                "include/FTuner/Codegen/CodegenPaths.def": "FTUNER_CODEGEN_PATH(simt, Open)\nFTUNER_CODEGEN_PATH(other, Open)\n"
            },
            ["lib/Codegen/Other:1: no folder of the path 'other'"],
        ),
        (
            {"include/FTuner/Codegen/CodegenPaths.def": ""},
            ["CodegenPaths.def:1: no path is listed"],
        ),
        (
            {"python/ftuner/cli/checking.py": ""},
            ["python/ftuner/cli/checking.py:1: nothing needs the exception for '--paths wgmma'"],
        ),
    ],
)
def test_paths_are_named_only_in_their_folders(
    tmp_path: Path, changes: dict[str, str], expected: list[str]
) -> None:
    check_path_names(tmp_path, {**PATH_TREE, **changes}, expected)


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, []),
        (
            {"lib/Search/A.cpp": "auto &m = mmaModel();\n"},
            ["lib/Search/A.cpp:1: 'auto &m = mmaModel();' names the path 'mma'"],
        ),
        (
            {"lib/Search/A.cpp": "x.MmaLayout\n"},
            ["lib/Search/A.cpp:1: 'x.MmaLayout' names the path 'mma'"],
        ),
        ({"python/ftuner/a.py": "'mma'\n"}, ["python/ftuner/a.py:1: ''mma'' names the path 'mma'"]),
        (
            {"python/ftuner/a.py": "paths=simt,mma\n"},
            ["python/ftuner/a.py:1: 'paths=simt,mma' names the path 'mma'"],
        ),
        (
            {"lib/Search/A.cpp": "#ukernel.mma<\n"},
            ["lib/Search/A.cpp:1: '#ukernel.mma<' names the path 'mma'"],
        ),
        (
            {"lib/Search/MmaRules.h": ""},
            ["lib/Search/MmaRules.h:1: the name of the path 'mma' is in a file's name"],
        ),
        ({"lib/Search/Summary.h": ""}, []),
        (
            {"lib/Target/CMakeLists.txt": "add_subdirectory(Mma)\n"},
            ["is another line of a CMakeLists.txt"],
        ),
    ],
)
def test_names_of_instructions_mean_a_path_in_few_places(
    tmp_path: Path, changes: dict[str, str], expected: list[str]
) -> None:
    check_path_names(tmp_path, {**HARDWARE_TREE, **changes}, expected)


def check_path_names(tmp_path: Path, tree: dict[str, str], expected: list[str]) -> None:
    for name, text in tree.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = subprocess.run(
        [sys.executable, str(Path(ROOT, "tools", "check_path_names.py")), f"--root={tmp_path}"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == (1 if expected else 0)
    lines = run.stderr.splitlines()
    assert len(lines) == len(expected)
    for line, text in zip(lines, expected):
        assert text in line
