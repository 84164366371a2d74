"""PTX by kernels, without the names of symbols, and what ptxas makes of a kernel."""

import os
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Integration")
)
import ptx

ENTRY = re.compile(r"^(?:\.visible )?\.entry ([\w$]+)\(", re.MULTILINE)
# Older processors are not known to current versions of ptxas.
MIN_ARCHITECTURE = 75


@dataclass(frozen=True)
class Kernel:
    """name: its entry. text: its PTX, canonical where `of_text` made it."""

    name: str
    text: str


def of_text(text):
    """Returns the text before the kernels, and the kernels, with canonical names of all symbols.

    A symbol's name becomes its kind and number in the order of the declarations;
    labels lose the number of their function in the module.
    """
    head, kernels = split(text)
    symbols = {}
    for declared in re.findall(
        r"^\s*\.(?:visible |extern )*\.?(?:shared|global|const|func)\b[^;({=\n]*?"
        r"([A-Za-z_$][\w$]*)(?:\[\d*\])*(?: =.*)?[;(]",
        text,
        re.MULTILINE,
    ):
        symbols.setdefault(declared, f"<symbol {len(symbols)}>")
    known = (
        re.compile(r"(?<![\w$])(" + "|".join(map(re.escape, symbols)) + r")(?![\w$])")
        if symbols
        else None
    )

    def rename(body, name=None):
        if name:
            body = re.sub(
                rf"(?<![\w$]){re.escape(name)}(_param_\d+)?(?![\w$])", r"<kernel>\1", body
            )
        if known:
            body = known.sub(lambda found: symbols[found.group(1)], body)
        return re.sub(r"\$L__BB\d+_", "$L__BB_", body)

    return rename(head), [
        Kernel(kernel.name, rename(kernel.text, kernel.name)) for kernel in kernels
    ]


def split(text):
    """(what precedes the kernels, kernels) as they are."""
    lines = text.splitlines(keepends=True)
    # The assembler's comment that names a kernel stands before it.
    lines = [line for line in lines if not re.match(r"\s*// (\.globl|-- Begin|-- End)", line)]
    text = "".join(lines)
    starts = [found.start() for found in ENTRY.finditer(text)]
    kernels = [
        Kernel(ENTRY.match(text[start:end]).group(1), text[start:end].strip() + "\n")
        for start, end in zip(starts, [*starts[1:], len(text)])
    ]
    return text[: starts[0]] if starts else text, kernels


@dataclass(frozen=True)
class Assembled:
    """Results of ptxas for a kernel: registers of a thread, bytes of spills, instructions."""

    registers: int
    spilled: int
    instructions: int

    def __str__(self):
        spilled = f", {self.spilled} bytes spilled" if self.spilled else ""
        return f"{self.registers} registers, {self.instructions} instructions{spilled}"


def _instructions(cubin):
    """Instructions in the sections .text of an ELF file; they have 16 bytes each."""
    (offset,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [
        struct.unpack_from("<IIQQQQ", cubin, offset + index * size) for index in range(count)
    ]
    start = sections[names][4]

    def name(section):
        return cubin[start + section[0] : cubin.index(b"\0", start + section[0])]

    return sum(section[5] // 16 for section in sections if name(section).startswith(b".text"))


def assemble(head, kernel):
    """Assembles one kernel of a module alone; raises RuntimeError with what ptxas says."""
    ptxas = ptx.find_ptxas()
    if not ptxas:
        raise RuntimeError("no ptxas found: run tools/setup.sh")
    target = re.search(r"^\.target sm_(\d+)(\w?)", head, re.MULTILINE)
    number = max(int(target.group(1)), MIN_ARCHITECTURE)
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "w", encoding="utf-8") as file:
            file.write(head + kernel.text)
        run = subprocess.run(
            [ptxas, "-v", f"-arch=sm_{number}{target.group(2)}", source, "-o", cubin],
            capture_output=True,
            text=True,
        )
        if run.returncode != 0:
            raise RuntimeError(run.stderr.strip())
        with open(cubin, "rb") as file:
            instructions = _instructions(file.read())
    return Assembled(
        int(re.search(r"Used (\d+) registers", run.stderr).group(1)),
        int(re.search(r"(\d+) bytes spill stores", run.stderr).group(1)),
        instructions,
    )
