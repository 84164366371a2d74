"""The interface between replacement and hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ftuner.host.function import Function
from torch import fx

from ..regions.choice import Choice
from ..regions.importing import Call, ImportedRegion
from ..report import Report
from ..settings import Settings


@dataclass(frozen=True)
class Part:
    """A part of a graph that became a function, and what that was compiled for."""

    imported: ImportedRegion
    function: Function
    settings: Settings
    #: The sizes that FTuner and PyTorch compute; None: FTuner computes all.
    choice: Choice | None = None

    @property
    def gives_list(self) -> bool:
        """Returns whether calls give a list of tensors."""
        return self.imported.region.kind.gives_list


class Host(ABC):
    """The runner of a graph, which calls functions and computes the rest."""

    #: True if it makes one kernel of pointwise operators that follow each other.
    joins: bool
    #: True if it calls functions of rows.
    takes_rows: bool = True
    #: True if PyTorch may compute some sizes of a product, and FTuner the others.
    alternates: bool = True

    @abstractmethod
    def call(self, graph: fx.Graph, part: Part, arguments: Call) -> fx.Node:
        """A new node that calls the function, where the graph is being written."""

    @abstractmethod
    def operators(self, counts: Report) -> dict[str, int]:
        """The part of the report that counts the operators that the host runs."""
