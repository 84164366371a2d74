"""The compiler's answer to whether it makes one kernel of a region's function.

Regions grow greedily. One request then has the functions of all regions of a graph: `ftuner-opt` forms
their workloads, which needs no device and no search, and prints what each has become. A region that is
not one kernel becomes the largest one, among those that it grew from, that is. Answers are kept by the
functions' texts, so equal layers are asked about once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Sequence

from ftuner import compiler, errors, locations
from ftuner.describe import descriptions
from ftuner.host import processes
from torch import fx

from ..graph.nodes import Unsupported
from ..library import without_name
from ..settings import Settings
from .growth import RegionFinder
from .importing import ImportedRegion
from .region import Refuse, Region, RegionKind

#: Operators that launch: formed workloads, and linalg that becomes a fallback kernel.
_LAUNCHING = re.compile(r"= (ukernel|linalg)\.(?!index\b)\w+")
_SEPARATOR = "\n// -----\n"

#: Operators that launch in each function, "ukernel" or "linalg" for each.
_answers: dict[Hashable, tuple[str, ...]] = {}
_lock = threading.Lock()


class KernelOracle:
    """Knows which functions are one kernel for the compiler and some options."""

    def __init__(self, settings: Settings) -> None:
        self._options = _formation_options(settings)
        self._unknown: dict[str, None] = {}

    def is_wanted(self, text: str, max_kernels: int) -> bool | None:
        """Returns whether the compiler makes so few kernels of a function; None if it was not asked yet.

        One kernel is a uKernel, and several have at most one fallback kernel among them.
        """
        if self._options is None:
            return True
        found = _answers.get((text, self._options))
        if found is None:
            return None
        return "ukernel" in found and len(found) <= max_kernels and found.count("linalg") <= 1

    def note(self, texts: Sequence[str]) -> None:
        """Adds functions to the next request, but for those that are known."""
        known = {text for text in texts if (text, self._options) in _answers}
        if self._options is not None:
            self._unknown.update((text, None) for text in texts if text not in known)

    def ask(self) -> None:
        """Asks the compiler about all functions that were noted, in one request."""
        texts, self._unknown = [*self._unknown], {}
        if not texts or self._options is None:
            return
        answers = _form(texts, self._options)
        with _lock:
            _answers.update(((text, self._options), answer) for text, answer in zip(texts, answers))


def find_regions(
    kind: RegionKind,
    graph: fx.Graph,
    refuse: Refuse,
    describe: Callable[[Region], ImportedRegion],
    oracle: KernelOracle,
) -> tuple[RegionFinder, list[ImportedRegion]]:
    """The regions of a kind, each of which is one kernel if any part of it is, and their finder.

    Takes answers that are not known yet to be "yes", and begins again if the compiler says "no".
    """
    while True:
        imported: dict[int, ImportedRegion] = {}
        assumed: list[Region] = []

        def text_of(region: Region) -> str:
            if id(region) not in imported:
                imported[id(region)] = describe(region)
            return without_name(imported[id(region)].function)

        def is_wanted(region: Region) -> bool | None:
            text = text_of(region)
            return oracle.is_wanted(text, imported[id(region)].function.max_kernels)

        def choose(grown: list[Region]) -> Region:
            for number in reversed(range(len(grown))):
                answer = is_wanted(grown[number])
                if answer is None:
                    # If the largest one is not a kernel, all smaller ones are tried at once.
                    is_largest = number == len(grown) - 1
                    asked = grown[number:] if is_largest else grown[: number + 1]
                    oracle.note([*map(text_of, asked)])
                    assumed.append(grown[number])
                if answer is not False:
                    return grown[number]
            if (limit := imported[id(grown[0])].function.max_kernels) > 1:
                raise Unsupported(f"more than {limit} kernels, which is what PyTorch launches")
            return grown[0]

        finder = kind.find(graph, refuse)
        regions = list(finder.regions(choose))
        oracle.ask()
        if all(map(is_wanted, assumed)):
            return finder, [imported[id(region)] for region in regions]


def _formation_options(settings: Settings) -> str | None:
    """The options of a compilation, as `ftuner-form` reads them; None without a compiler."""
    given = {k: v for k, v in settings.options.items() if k not in ("cache", "cubins")}
    try:
        locations.tool("ftuner-opt")
        device = descriptions.resolve(settings.device)
        arguments = compiler.read_options(given, device, may_check=not settings.emulate).arguments
    except errors.Error:
        return None  # The compilation says why.
    return " ".join(argument.removeprefix("--") for argument in arguments)


def _form(texts: Sequence[str], options: str) -> list[tuple[str, ...]]:
    """The operators of each function that launch; a uKernel for those that the compiler refuses, whose
    compilation says why."""
    named = (
        text.replace("func.func @function(", f"func.func @region_{number}(", 1)
        for number, text in enumerate(texts)
    )
    tool = locations.tool("ftuner-opt")
    with processes.temporary_folder() as folder:
        path = f"{folder}/regions.mlir"
        with open(path, "w", encoding="utf-8") as file:
            file.write(_SEPARATOR.join(named))
        done = processes.run([str(tool), path, "--split-input-file", f"--ftuner-form={options}"])
    if done.returncode != 0 and len(texts) > 1:
        return [answer for text in texts for answer in _form([text], options)]
    answers: list[tuple[str, ...]] = [("ukernel",)] * len(texts)
    for part in done.stdout.decode().split("func.func @region_")[1:]:
        number, launching = int(part[: part.index("(")]), _LAUNCHING.findall(part)
        answers[number] = tuple(launching)
    return answers
