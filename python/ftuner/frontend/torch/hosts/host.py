"""What replacement needs of a host, and what it gives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import fx

from ftuner.host.function import Function

from ..library import Settings
from ..regions.choice import Choice
from ..regions.importing import Call, ImportedRegion
from ..report import Report


@dataclass(frozen=True)
class Part:
    """A part of a graph that became a function, and what that was compiled for."""

    imported: ImportedRegion
    function: Function
    settings: Settings
    #: Who computes which sizes; None: FTuner all of them.
    choice: Choice | None = None

    @property
    def gives_list(self) -> bool:
        """Returns whether calls give a list of tensors."""
        return self.imported.region.kind.gives_list


class Host(ABC):
    """Who runs a graph: how it calls functions, and what it does with the rest."""

    #: Whether it makes one kernel of pointwise operators that follow each other.
    joins: bool
    #: Whether it calls functions of rows.
    takes_rows: bool = True
    #: Whether PyTorch may compute some sizes of a product, and FTuner the others.
    alternates: bool = True

    @abstractmethod
    def call(self, graph: fx.Graph, part: Part, arguments: Call) -> fx.Node:
        """A new node that calls the function, where the graph is being written."""

    @abstractmethod
    def operators(self, counts: Report) -> dict[str, int]:
        """Where the operators are counted that the host runs."""
