"""The compile cache: keys, races between processes, killed writers, corruption, clearing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ftuner
from ftuner import compiler
from ftuner.host import cache
from models import MATMUL

NOTES = {"source": "s", "device": "d", "functions": ["f()"]}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(folder))
    return folder


def builder(content: bytes = b"library", log: list[int] | None = None) -> Any:
    def build(folder: Path) -> dict[str, Any]:
        if log is not None:
            log.append(1)
        (folder / cache.LIBRARY).write_bytes(content)
        return NOTES

    return build


def test_get_builds_once() -> None:
    log: list[int] = []
    first = cache.get("k", builder(log=log))
    second = cache.get("k", builder(log=log))
    assert len(log) == 1 and first.library == second.library
    assert first.library.read_bytes() == b"library"
    (entry,) = cache.list()
    assert (entry.key, entry.source, entry.device, entry.functions) == ("k", "s", "d", ("f()",))
    assert entry.bytes == 7


def test_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FTUNER_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.path() == tmp_path / "ftuner"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.path() == tmp_path / "home" / ".cache" / "ftuner"
    assert cache.list() == [] and cache.clear() == 0


@pytest.mark.parametrize("damage", ["change", "truncate", "remove", "metadata", "version"])
def test_corrupt_entries_are_built_again(damage: str) -> None:
    entry = cache.get("k", builder())
    metadata = entry.folder / "metadata.json"
    if damage == "change":
        entry.library.write_bytes(b"librarY")
    elif damage == "truncate":
        entry.library.write_bytes(b"lib")
    elif damage == "remove":
        entry.library.unlink()
    elif damage == "metadata":
        metadata.write_text(metadata.read_text()[:20])
    else:
        metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "format_version": 0}))
    log: list[int] = []
    again = cache.get("k", builder(log=log))
    assert log and again.library.read_bytes() == b"library"
    assert not [p for p in entry.folder.parent.iterdir() if p.name.startswith(".tmp-")]


def test_failed_build_leaves_nothing(empty_cache: Path) -> None:
    def fail(folder: Path) -> Any:
        (folder / cache.LIBRARY).write_bytes(b"half")
        raise ftuner.CompileError("no", "no")

    with pytest.raises(ftuner.CompileError):
        cache.get("k", fail)
    assert [p for p in (empty_cache / "v1").iterdir() if p.is_dir()] == []
    assert cache.get("k", builder()).library.exists()


_WRITER = """
import os, sys, time
from pathlib import Path
from ftuner.host import cache
def build(folder):
    (folder / cache.LIBRARY).write_bytes(b"half of it")
    Path({log!r}).open("a").write(f"{{os.getpid()}}\\n")
    time.sleep({seconds})
    (folder / cache.LIBRARY).write_bytes(b"all of it" * 1000)
    return {notes!r}
entry = cache.get("k", build)
assert entry.library.read_bytes() == b"all of it" * 1000
"""


def start(log: Path, seconds: float) -> subprocess.Popen[bytes]:
    code = _WRITER.format(log=str(log), seconds=seconds, notes=NOTES)
    return subprocess.Popen([sys.executable, "-c", code])


def wait_for(log: Path, lines: int = 1) -> None:
    deadline = time.monotonic() + 60
    while not log.exists() or len(log.read_text().splitlines()) < lines:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_many_writers(tmp_path: Path) -> None:
    """Writers of the same entry wait for the first; all see the whole of it."""
    log = tmp_path / "log"
    writers = [start(log, 0.5) for _ in range(5)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 5
    assert len(log.read_text().splitlines()) == 1


def test_killed_writer(tmp_path: Path, empty_cache: Path) -> None:
    """The leftovers of a killed process are never seen, and another writer goes on at once."""
    log = tmp_path / "log"
    victim = start(log, 600)
    wait_for(log)
    assert cache.list() == []
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    successor = start(log, 0)
    assert successor.wait(timeout=60) == 0
    assert len(cache.list()) == 1
    # The writer removed what was left.
    assert {p.name for p in (empty_cache / "v1").iterdir()} == {"k"}
    # Processes of other machines may be alive until their folder is old.
    left = empty_cache / "v1" / f".tmp-k-00000000-{victim.pid}-1-0"
    left.mkdir()
    cache.get("other", builder())
    assert left.exists()
    os.utime(left, (0, 0))
    cache.get("another", builder())
    assert not left.exists()


def test_clear() -> None:
    old = cache.get("old", builder())
    cache.get("new", builder())
    os.utime(old.folder / "metadata.json", (0, time.time() - 1000))
    assert [entry.key for entry in cache.list()] == ["new", "old"]
    assert cache.clear(older_than=5000) == 0
    assert cache.clear(older_than=500) == 1
    assert [entry.key for entry in cache.list()] == ["new"]
    assert cache.clear() == 1 and cache.list() == []


def test_unusable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(file))
    message = re.escape(f"cannot use the compile cache '{file}'")
    with pytest.raises(ftuner.CacheError, match=message):
        ftuner.compile(MATMUL, emulate=True, cache=True)
    if os.geteuid() == 0:
        monkeypatch.setenv("FTUNER_CACHE_DIR", "/proc/ftuner")
    else:
        (tmp_path / "locked").mkdir(mode=0o500)
        monkeypatch.setenv("FTUNER_CACHE_DIR", str(tmp_path / "locked"))
    with pytest.raises(ftuner.CacheError, match="or compile with cache=False"):
        ftuner.compile(MATMUL, emulate=True, cache=True)
    # Nobody asked for the cache.
    with pytest.warns(
        ftuner.CompileWarning, match="^cannot use the compile cache.*; compiling without it"
    ):
        assert list(ftuner.compile(MATMUL, emulate=True)) == ["matmul"]
    module = ftuner.compile(MATMUL, emulate=True, cache=False)
    folder = module.library_path.parent
    assert folder.is_dir() and list(module) == ["matmul"]
    del module
    import gc

    gc.collect()
    assert not folder.exists()


def test_keys(empty_cache: Path) -> None:
    """All that decides the result is part of the key."""

    def compiled(source: str = MATMUL, **options: Any) -> str:
        return ftuner.compile(source, emulate=True, **options).library_path.parent.name

    first = compiled()
    assert compiled() == first == compiled(device="h200") == compiled(max_kernels=None)
    different = {
        compiled(MATMUL + "// more\n"),
        compiled(device="a100"),
        compiled(max_kernels=2),
        compiled(max_kernels=3),
        ftuner.compile(MATMUL, emulate=False).library_path.parent.name,
        first,
    }
    assert len(different) == 6 == len(cache.list())
    parts = {"source": "x"}
    assert cache.key_of(parts) != cache.key_of({"source": "y"})
    folder = empty_cache / "v1" / first
    assert {p.name for p in folder.iterdir()} == {
        "libmodel.so", "model.h", "manifest.json", "model.ptx", "metadata.json",
    }  # fmt: skip
    module = ftuner.load(folder / "libmodel.so")
    assert json.loads((folder / "manifest.json").read_text()) == module.manifest
    assert (folder / "model.ptx").read_text() == module.ptx


def test_calibration_file_is_part_of_the_key(tmp_path: Path) -> None:
    """The contents of a file count, not its path."""

    def compiled(path: Path, latency: int) -> Path:
        path.write_text(json.dumps({"name": "mine", "constants": {"global_latency": latency}}))
        return ftuner.compile(MATMUL, emulate=True, calibration=path).library_path

    first = compiled(tmp_path / "a.json", 500)
    assert compiled(tmp_path / "a.json", 2000) != first
    assert compiled(tmp_path / "b.json", 500) == first
    named = ftuner.compile(MATMUL, emulate=True, calibration="global")
    assert len(cache.list()) == 3 and named.library_path != first


def test_read_files_are_part_of_the_key(tmp_path: Path) -> None:
    """A log that a search reads, as it is when the search runs; a log that it writes to is not cached."""
    log = tmp_path / "log.jsonl"
    given = {"emulate": True, "max_kernels": 1, "device": "v100", "measure_top": 2}
    ftuner.compile(MATMUL, measurer="model:latency", measure_log=str(log), **given)
    assert not cache.list() and log.stat().st_size > 0
    tool = tmp_path / "measure.py"
    tool.write_text("1")
    command = {"measurer": f"command:{sys.executable} {tool}"}
    recorded = {"measurer": f"recorded:{log}"}
    for options, file in ((recorded, log), ({"measure_log": str(log)}, log), (command, tool)):
        before = compiler.hash_files(options)
        assert before and "" not in before
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert compiler.hash_files(options) != before
        file.write_bytes(content)
        assert compiler.hash_files(options) == before
    first = ftuner.compile(MATMUL, **recorded, **given).library_path
    assert ftuner.compile(MATMUL, **recorded, **given).library_path == first
    log.write_text(
        re.sub(r'"microseconds": *[0-9.]+', '"microseconds":5.0', log.read_text(), count=1)
    )
    assert ftuner.compile(MATMUL, **recorded, **given).library_path != first
    # Where it lies does not count.
    log.rename(tmp_path / "moved.jsonl")
    moved = {"measurer": f"recorded:{tmp_path / 'moved.jsonl'}"}
    assert ftuner.compile(MATMUL, **moved, **given).library_path != first
    assert len(cache.list()) == 2


def test_written_files_are_known_by_the_table() -> None:
    """Options that write, and those that name no file."""
    for options in ({"save_model": "m"}, {"measure_log": "l"}):
        assert compiler.writes_files(options)
    for options in (
        {"measurer": "recorded:l"}, {"measurer": "gpu"}, {"learned_model": "m"}, {"calibration": "t4"},
        {"transfer_from": "m"}, {"save_model": None}, {"measure_log": ""}, {"max_kernels": 3},
    ):  # fmt: skip
        assert not compiler.writes_files(options)
    assert compiler.read_files(
        {"measurer": "recorded:l", "save_model": "m", "calibration": "t4"}
    ) == [Path("l")]
    assert compiler.read_files({"calibration": Path("t4")}) == [Path("t4")]


def test_shared_cache(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second folder is read if the first lacks an entry, and never written."""
    filled = ftuner.compile(MATMUL, emulate=True).library_path
    shared = tmp_path / "shared"
    empty_cache.rename(shared)
    before = {path: path.stat().st_mtime_ns for path in shared.rglob("*")}
    monkeypatch.setenv("FTUNER_SHARED_CACHE_DIR", str(shared))
    found = ftuner.compile(MATMUL, emulate=True, cache=True).library_path
    assert found == shared / filled.relative_to(empty_cache) and cache.list() == []
    assert {path: path.stat().st_mtime_ns for path in shared.rglob("*")} == before
    # Hits do not need the first folder, and a damaged entry does not count.
    monkeypatch.setenv("FTUNER_CACHE_DIR", "/proc/ftuner")
    assert ftuner.compile(MATMUL, emulate=True, cache=True).library_path == found
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(empty_cache))
    found.unlink()  # It is loaded.
    found.write_bytes(b"half")
    assert ftuner.compile(MATMUL, emulate=True).library_path == filled


def test_learned_models_are_not_cached(tmp_path: Path) -> None:
    """A file that a compilation writes beside its result is written again."""
    model = tmp_path / "model.json"
    for _ in range(2):
        ftuner.compile(
            MATMUL,
            emulate=True,
            strategy="dietcode",
            measurer="model:latency",
            trials=16,
            save_model=str(model),
        )
        model.unlink()
    assert not cache.list()


def test_compiler_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.key_of({})
    prefix = tmp_path / "prefix"
    (prefix / "bin").mkdir(parents=True)
    tool = prefix / "bin" / "ftuner-translate"
    tool.write_text("#!/bin/sh\necho version 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("FTUNER_HOME", str(prefix))
    first = cache.key_of({})
    tool.write_text("#!/bin/sh\necho version 2\n")
    assert len({before, first, cache.key_of({})}) == 3


def test_corrupt_library_is_compiled_again() -> None:
    module = ftuner.compile(MATMUL, emulate=True)
    path = module.library_path
    content = path.read_bytes()
    path.unlink()  # The loaded one stays as it is.
    path.write_bytes(content[: len(content) // 2])
    again = ftuner.compile(MATMUL, emulate=True)
    assert again.library_path.read_bytes() == content


def test_concurrent_compilations(tmp_path: Path) -> None:
    source = tmp_path / "m.mlir"
    source.write_text(MATMUL)
    code = (
        "import sys, numpy as np, ftuner\n"
        "m = ftuner.compile(sys.argv[1], emulate=True)\n"
        "a, b = np.random.rand(7, 32).astype('f'), np.random.rand(32, 64).astype('f')\n"
        "assert np.allclose(m(a, b), a @ b, rtol=1e-5)\n"
        "print(m.library_path)"
    )
    command = [sys.executable, "-c", code, str(source)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    printed = {process.communicate(timeout=300)[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 3
    assert len(printed) == 1 and len(cache.list()) == 1


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


# Parts of the metadata, and what none of them may be.
DAMAGED_FIELDS = [
    ("files", [list, [cache.LIBRARY], "libmodel.so", 3, None, {}, {"a/b": "x"}, {"..": "x"}]),
    ("files", [{cache.LIBRARY: 3}, {cache.LIBRARY: None}, {cache.LIBRARY: "0" * 64}]),
    ("files", [{cache.LIBRARY: "x", "\ud800": "x"}, {cache.LIBRARY: "x", "\0": "x"}]),
    ("files", [{cache.LIBRARY: "x", "missing": "x"}, {cache.LIBRARY: "x", "": "x"}]),
    ("functions", [None, 3, "f()", [3], [None], [["f()"]], {"f()": 1}, ["\udcff"]]),
    ("source", [None, 3, ["s"], "\ud800", "a\udfffb"]),
    ("device", [None, 3.5, {}, "\udc80"]),
    ("created", [None, "now", [], True, float("nan"), float("inf"), 10**400]),
    ("format_version", [None, "1", 0, 2, []]),
]


def damaged_texts(text: str) -> list[bytes]:
    """Metadata that somebody, or a disk, has damaged."""
    metadata = json.loads(text)
    texts = []
    for field, values in DAMAGED_FIELDS:
        texts.append(json.dumps({key: metadata[key] for key in metadata if key != field}))
        for value in values:
            value = [*metadata[field]] if value is list else value
            texts.append(json.dumps({**metadata, field: value}))
    for field in ("files", "functions", "source", "unknown"):
        rest = json.dumps({key: metadata[key] for key in metadata if key != field})[1:]
        texts += [f'{{"{field}": {nested(depth)}, {rest}' for depth in (2, 100_000)]
    texts += ["", "{", "null", "[]", "3", '"x"', "9" * 5000, nested(100_000), '{"a":' * 100_000]
    texts += [text[:length] for length in range(0, len(text) - 1, 7)]
    damaged = [damaged.encode() for damaged in texts]
    return [*damaged, b"\xff\xfe", text.encode("utf-16"), b"\0" * len(text), text.encode()[::-1]]


def test_damaged_metadata_is_built_again(empty_cache: Path) -> None:
    """An entry with damaged metadata is not listed, and is built again."""
    entry = cache.get("k", builder())
    good = cache.get("good", builder())
    metadata = entry.folder / "metadata.json"
    text = metadata.read_text()
    damaged = damaged_texts(text)
    assert len(damaged) > 100
    for content in damaged:
        metadata.write_bytes(content)
        try:
            assert [item.key for item in cache.list() if item.key == "k"] in ([], ["k"])
            log: list[int] = []
            assert cache.get("k", builder(log=log)).library.read_bytes() == b"library"
        except Exception as error:
            raise AssertionError(f"metadata {content[:200]!r}") from error
        is_same = content.startswith(b'{"unknown": [[]],')
        assert log == ([] if is_same else [1]), content[:200]
        assert {item.key for item in cache.list()} == {"k", "good"}
        assert good.library.exists()
    left = {path.name for path in (empty_cache / "v1").iterdir()}
    assert left == {"k", "good"}


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_to_metadata(seed: int) -> None:
    """Bytes of a valid text are changed, removed and doubled."""
    import random

    entry = cache.get("k", builder())
    metadata = entry.folder / "metadata.json"
    text = metadata.read_bytes()
    random_source = random.Random(seed)
    for _ in range(100):
        damaged = bytearray(text)
        for _ in range(random_source.randint(1, 4)):
            place = random_source.randrange(len(damaged))
            count = random_source.randint(0, 3)
            damaged[place : place + count] = random_source.randbytes(random_source.randint(0, 3))
        metadata.write_bytes(damaged)
        cache.list()
        assert cache.get("k", builder()).library.read_bytes() == b"library"


@pytest.mark.parametrize("name", [cache.LIBRARY, "metadata.json", "."])
@pytest.mark.parametrize("kind", ["folder", "loop", "dangling", "pipe", "file"])
def test_entries_of_other_kinds(name: str, kind: str) -> None:
    """An entry, or a file of it, that is something else."""
    entry = cache.get("k", builder())
    path = entry.folder / name if name != "." else entry.folder
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "dangling":
        path.symlink_to("missing")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"other")
    # A list looks only at metadata and sizes.
    assert [item.key for item in cache.list()] in ([], ["k"])
    log: list[int] = []
    assert cache.get("k", builder(log=log)).library.read_bytes() == b"library" and log


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """Files may have such names; they are found again, and listed."""
    notes = {**NOTES, "source": os.fsdecode(b"\xff.mlir")}
    log: list[int] = []

    def build(folder: Path) -> dict[str, Any]:
        builder(log=log)(folder)
        return notes

    for _ in range(2):
        cache.get("k", build)
    assert len(log) == 1
    (entry,) = cache.list()
    assert entry.source == "\ufffd.mlir"
