"""tools/check_english.py on small trees: what it refuses, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handmade import ROOT


def check(
    folder: Path, sources: dict[str, str], rooms: str = "lib/Room\npython/room\n", *options: str
) -> subprocess.CompletedProcess[str]:
    """Runs the script on a tree with these sources and these rooms."""
    for name in ("lib/Room/Empty.h", "python/room/empty.py"):
        sources = {name: "", **sources}
    for name, text in {**sources, "tools/english_rooms.txt": rooms}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, str(Path(ROOT, "tools", "check_english.py")), f"--root={folder}"]
    return subprocess.run([*command, *options], capture_output=True, text=True)


def check_cpp(folder: Path, text: str) -> list[str]:
    """Returns the findings in a file of C++, without their beginning."""
    return findings(check(folder, {"lib/Room/Room.cpp": text}), "lib/Room/Room.cpp")


def check_python(folder: Path, text: str) -> list[str]:
    return findings(check(folder, {"python/room/room.py": text}), "python/room/room.py")


def findings(run: subprocess.CompletedProcess[str], file: str) -> list[str]:
    lines = run.stderr.splitlines()
    assert run.returncode == (1 if lines else 0), run.stderr
    assert all(line.startswith(f"{file}:") for line in lines), run.stderr
    return [line.removeprefix(f"{file}:").replace(" error:", "") for line in lines]


@pytest.mark.parametrize(
    "opening",
    ["Of the kernel", "Those of axes", "The same with terms", "What is said", "Which of them",
     "Where it is", "Whether it fits", "That of a block", "Whose rows are read"],
)  # fmt: skip
def test_openings_of_doc_comments_are_refused(tmp_path: Path, opening: str) -> None:
    words = next(
        word for word in ("That of", "The same", opening.split()[0]) if opening.startswith(word)
    )
    problem = f"doc comment begins with '{words}': expected a noun phrase or a verb"
    assert check_cpp(tmp_path, f"int x;\n/// {opening}.\nint y;\n") == [f"2: {problem}"]
    assert check_cpp(tmp_path, f"int x; ///< Rows.\nint y; ///< {opening}.\n") == [f"2: {problem}"]
    assert check_cpp(tmp_path, f"//===- Room.cpp - {opening} ----===//\n") == [f"1: {problem}"]
    (tmp_path / "lib" / "Room" / "Room.cpp").unlink()
    assert check_python(tmp_path, f'def f():\n    """{opening}."""\n') == [f"2: {problem}"]
    assert check_python(tmp_path, f"#: {opening}.\nX = 1\n") == [f"1: {problem}"]


def test_other_doc_comments_are_allowed(tmp_path: Path) -> None:
    text = (
        "//===- Room.h - Official rooms ---------*- C++ -*-===//\n"
        "/// Returns whether a room fits.\n/// Which one is nobody's business: a later line.\n"
        "// Which is no doc comment.\nint x; // Of a line.\n"
        "/// Offices, a word that begins with another.\nint y;\n"
    )
    assert check_cpp(tmp_path, text) == []
    (tmp_path / "lib" / "Room" / "Room.cpp").unlink()
    assert check_python(tmp_path, '"""Rooms.\n\nOf the house.\n"""\n# Whether it fits.\n') == []


@pytest.mark.parametrize(
    "name, words",
    [
        ("leastGain", "'min' in place of 'least'"),
        ("kMostRows", "'max' in place of 'most'"),
        ("fewest_rows", "'min' in place of 'fewest'"),
        ("ROWS_ALONE", "'only' in place of 'alone'"),
        ("isBehind", "'after' in place of 'behind'"),
        ("all_but_one", "'except' in place of 'but'"),
    ],
)
def test_words_in_identifiers_are_refused(tmp_path: Path, name: str, words: str) -> None:
    problem = f"identifier '{name}': expected {words}"
    assert check_cpp(tmp_path, f"\nint {name} = 0;\n") == [f"2: {problem}"]
    (tmp_path / "lib" / "Room" / "Room.cpp").unlink()
    assert check_python(tmp_path, f"\n{name} = 0\n") == [f"2: {problem}"]
    assert check_python(tmp_path, f"def f({name}): pass\n") == [f"1: {problem}"]


@pytest.mark.parametrize(
    "name, kind", [("of", "preposition"), ("told", "pronoun"), ("those", "pronoun"), ("with_", "preposition")]
)  # fmt: skip
def test_identifiers_that_are_no_nouns_are_refused(tmp_path: Path, name: str, kind: str) -> None:
    problem = f"identifier '{name}' is a {kind}"
    assert check_cpp(tmp_path, f"int {name}(int);\n") == [f"1: {problem}"]
    (tmp_path / "lib" / "Room" / "Room.cpp").unlink()
    assert check_python(tmp_path, f"def {name}(): pass\n") == [f"1: {problem}"]
    assert check_python(tmp_path, f"import os as {name}\n") == [f"1: {problem}"]


def test_other_identifiers_are_allowed(tmp_path: Path) -> None:
    text = (
        'auto x = room.of(y)->leastGain + Room::of("those of a string");\n'
        "// of, those: words of a comment\nint atLeast, button, offset, mostly_, from, to;\n"
        "#include <of/those>\nint R = R\"(of those)\"; char c = 'o'; /* most of */\n"
        "long n = 1'000; int valueOf, least_squares;\n"
    )
    assert check_cpp(tmp_path, text) == []
    (tmp_path / "lib" / "Room" / "Room.cpp").unlink()
    text = "import room\nx = room.of(room.least)\ny = room.f(of=1)\nfor button in x: pass\n"
    assert check_python(tmp_path, text) == []


def test_prose_of_tablegen_is_allowed(tmp_path: Path) -> None:
    text = "/// Of an op.\ndef least : Op {\n  let description = [{\n    of those\n  }];\n}\n"
    run = check(tmp_path, {"lib/Room/Ops.td": text})
    assert len(findings(run, "lib/Room/Ops.td")) == 2
    assert "Ops.td:1: " in run.stderr and "Ops.td:2: " in run.stderr


def test_other_folders_are_counted(tmp_path: Path) -> None:
    bad = "/// Of a room.\nint of;\n"
    sources = {"lib/Other/A.cpp": bad, "lib/Other/Deep/B.h": bad, "include/FTuner/Other/C.h": bad}
    run = check(tmp_path, sources)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "English: 6 findings are left in folders that tools/english_rooms.txt does not list:",
        "      4 lib/Other",
        "      2 include/FTuner/Other",
    ]
    run = check(tmp_path, sources, "", "--list=lib/Other/Deep")
    assert len(run.stdout.splitlines()) == 2 and "lib/Other/Deep/B.h:2: " in run.stdout


def test_folders_below_a_room_are_rooms(tmp_path: Path) -> None:
    run = check(tmp_path, {"lib/Room/Deep/A.cpp": "int of;\n"})
    assert findings(run, "lib/Room/Deep/A.cpp") == ["1: identifier 'of' is a preposition"]
    assert check(tmp_path, {}, "lib/Roo\n").returncode == 2


def test_rooms_that_are_not_there_are_refused(tmp_path: Path) -> None:
    run = check(tmp_path, {}, "# Rooms.\nlib/Room # the first\nlib/Cellar\n")
    assert run.returncode == 2
    assert (
        run.stderr == "error: tools/english_rooms.txt:3: expected a folder, but got 'lib/Cellar'\n"
    )
    run = check(tmp_path, {}, "lib/Room\nlib/Room/\n")
    assert run.returncode == 2 and "'lib/Room' has a line already" in run.stderr
