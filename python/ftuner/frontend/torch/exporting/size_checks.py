"""Checks of sizes that an exported program is right for, as assertions of the function.

PyTorch records what it assumed of sizes while it traced a model: guards, and assertions that it
deferred to the run. Those that only tell a size from 0 or 1 are left out, since kernels serve
these sizes, too. A size that is a formula of another one, such as ``2*T``, is checked as well.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sympy
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy import functions
from torch.utils._sympy.printers import PythonPrinter

import ftuner
import torch
from torch import fx

from ..graph import layout as lay
from .programs import Program
from .sizes import Formulas, NotSupported, Number

aten = torch.ops.aten

_ASSERTIONS = (
    aten._assert_scalar.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
)

_RELATIONS: dict[Any, Any] = {
    sympy.Eq: operator.eq,
    sympy.Ne: operator.ne,
    sympy.Lt: operator.lt,
    sympy.Le: operator.le,
    sympy.Gt: operator.gt,
    sympy.Ge: operator.ge,
}

_FUNCTIONS: dict[Any, Any] = {
    functions.FloorDiv: operator.floordiv,
    functions.CleanDiv: operator.floordiv,
    functions.Mod: operator.mod,
    functions.PythonMod: operator.mod,
    functions.IntTrueDiv: operator.truediv,
    functions.FloatTrueDiv: operator.truediv,
    functions.FloatPow: operator.pow,
    functions.PowByNatural: operator.pow,
    functions.ToFloat: torch.sym_float,
    functions.TruncToInt: torch.sym_int,
    functions.FloorToInt: math.floor,
    functions.CeilToInt: math.ceil,
    functions.Max: torch.sym_max,
    functions.Min: torch.sym_min,
    sympy.Max: torch.sym_max,
    sympy.Min: torch.sym_min,
}


def add_checks(source: Program, program: ExportedProgram) -> None:
    """Replaces the assertions of a program by checks of everything that its trace assumed."""
    environment = source.environment
    if environment is None:
        return
    for node in list(program.graph.nodes):
        if node.target in _ASSERTIONS:
            program.graph.erase_node(node)
    arguments = source.names_by_placeholder()
    _Checks(program.graph, environment, source.dims, arguments).add()
    program.graph.eliminate_dead_code()


class _Checks:
    def __init__(
        self,
        graph: fx.Graph,
        environment: ShapeEnv,
        names: Mapping[Any, str],
        arguments: Mapping[str, str],
    ) -> None:
        self.graph = graph
        self.arguments = arguments
        self.environment = environment
        self.names = {key: name for key, name in names.items() if isinstance(key, sympy.Symbol)}
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self.formulas = Formulas(graph)
        self.formulas.origin = placeholders[-1] if placeholders else next(iter(graph.nodes))
        #: Dimensions of unknown size: the argument, the dimension, and the size's formula.
        self.dims = [
            (node, dim, extent)
            for node in placeholders
            if isinstance(node.meta.get("val"), torch.Tensor)
            for dim, extent in enumerate(lay.shape_of(node))
            if not isinstance(extent, int)
        ]
        self.symbols: dict[sympy.Symbol, Number] = {}
        self.done: set[Any] = set()

    def add(self) -> None:
        after = self.formulas.origin.next
        with self.graph.inserting_before(after):
            derived = list(self.define_symbols())
            for node, dim, extent in derived:
                size = self.size_of(node, dim)
                self.check(
                    sympy.Eq(sympy.Symbol("size"), extent), None, {sympy.Symbol("size"): size}
                )
            self.check_fixed_sizes()
            # The simplest one speaks first, where several say the same.
            assumptions = sorted(self.assumptions(), key=lambda each: each[0].count_ops())
            for expression, place in assumptions:
                self.check(expression, place, {})

    def check_fixed_sizes(self) -> None:
        """Checks the sizes that PyTorch traced as unknown ones, and then found to be numbers."""
        for symbol, number in self.symbols.items():
            bounds = self.environment.var_to_range.get(symbol)
            if bounds is not None and bounds.is_singleton() and isinstance(number, fx.Node):
                size = sympy.Symbol("size")
                self.check(sympy.Eq(size, bounds.lower), None, {size: number})

    def size_of(self, node: fx.Node, dim: int) -> Number:
        return self.formulas.emit(aten.sym_size.int, (node, dim), node.meta["val"].shape[dim])

    def define_symbols(self) -> Iterator[tuple[fx.Node, int, sympy.Expr]]:
        """Finds the value of each symbol; returns the dimensions whose sizes are formulas."""
        for node, dim, extent in self.dims:
            if isinstance(extent, sympy.Symbol) and extent not in self.symbols:
                self.symbols[extent] = self.size_of(node, dim)
        for node, dim, extent in self.dims:
            if isinstance(extent, sympy.Symbol):
                continue
            free = [symbol for symbol in extent.free_symbols if symbol not in self.symbols]
            if len(free) == 1 and extent.free_symbols == set(free) and extent.is_polynomial():
                factor, rest = extent.coeff(free[0]), extent.subs(free[0], 0)
                if sympy.expand(extent - factor * free[0] - rest) == 0 and factor > 0:
                    size: Any = self.size_of(node, dim)
                    if rest != 0:
                        size = self.formulas.call(operator.sub, size, int(rest))
                    self.symbols[free[0]] = self.formulas.floor_divide(size, int(factor))
            yield node, dim, extent

    def assumptions(self) -> Iterator[tuple[Any, str | None]]:
        """Everything that PyTorch assumed while it traced, with the model's line."""
        for guard in self.environment.guards:
            yield guard.expr, None
        for asserts in self.environment.deferred_runtime_asserts.values():
            for assertion in asserts:
                yield assertion.expr, _place(assertion.stack)

    def check(self, expression: Any, place: str | None, values: Mapping[Any, Number]) -> None:
        """Adds an assertion, unless it says nothing, or only that a size is neither 0 nor 1."""
        for part in expression.args if isinstance(expression, sympy.And) else (expression,):
            simple = self.environment.simplify(part)
            if simple == sympy.true or simple in self.done or _tells_from_one(simple):
                continue
            if not simple.free_symbols <= self.symbols.keys() | values.keys():
                continue
            self.done.add(simple)
            words = self.words_of(simple, values)
            try:
                condition: Any = self.number_of(simple, values)
            except NotSupported:
                reason = f"FTuner does not check the sizes that the model was traced for: {words}"
                raise ftuner.CompileError(f"cannot import the model: {reason}", reason) from None
            if isinstance(condition, bool):
                continue
            message = f"expected {words}, as the model was traced for"
            node = self.graph.call_function(
                aten._assert_scalar.default,
                (condition, message + (f" ({place})" if place else "")),
            )
            node.meta["val"] = None

    def words_of(self, expression: Any, values: Mapping[Any, Number]) -> str:
        """An expression as Python writes it, in the user's names."""
        names: dict[Any, Any] = {key: sympy.Symbol(name) for key, name in self.names.items()}
        for symbol, node in values.items():
            assert isinstance(node, fx.Node)
            tensor: Any = node.args[0]
            name = self.arguments.get(tensor.name, tensor.name)
            names[symbol] = sympy.Symbol(f"{name}.shape[{node.args[1]}]")
        for number in expression.atoms(sympy.Float):
            names[number] = sympy.Symbol(repr(float(number)))
        text = str(PythonPrinter().doprint(expression.xreplace(names)))
        return text.replace("torch.sym_float", "float").replace("math.trunc", "int")

    def number_of(self, expression: Any, values: Mapping[Any, Number]) -> Number:
        """The node that computes an expression."""
        if expression.is_Symbol:
            return values[expression] if expression in values else self.symbols[expression]
        if expression.is_Integer:
            return int(expression)
        if expression.is_Float:
            return float(expression)
        if isinstance(expression, (sympy.And, sympy.Or)):
            return self.number_of(_excess(expression) <= 0, values)
        arguments = [self.number_of(argument, values) for argument in expression.args]
        for kind, function in _RELATIONS.items():
            if isinstance(expression, kind):
                return self.formulas.formula(function, arguments)
        if expression.is_Add or expression.is_Mul:
            function = operator.add if expression.is_Add else operator.mul
            result = arguments[0]
            for argument in arguments[1:]:
                result = self.formulas.call(function, result, argument)
            return result
        if expression.is_Pow:
            return self.formulas.power(*arguments)
        if expression.func in _FUNCTIONS:
            return self.formulas.formula(_FUNCTIONS[expression.func], arguments)
        raise NotSupported


def _excess(expression: Any) -> Any:
    """An integer that is positive if a condition on sizes does not hold, since sizes lack an "or"."""
    if isinstance(expression, sympy.Or):
        return sympy.Min(*map(_excess, expression.args))
    if isinstance(expression, sympy.And):
        return sympy.Max(*map(_excess, expression.args))
    if not isinstance(expression, sympy.core.relational.Relational):
        raise NotSupported
    difference = expression.lhs - expression.rhs
    if not difference.is_integer:
        raise NotSupported
    distance = sympy.Max(difference, -difference)
    if isinstance(expression, sympy.Eq):
        return distance
    if isinstance(expression, sympy.Ne):
        return 1 - distance
    difference = -difference if isinstance(expression, (sympy.Ge, sympy.Gt)) else difference
    return difference + 1 if isinstance(expression, (sympy.Lt, sympy.Gt)) else difference


def _tells_from_one(expression: Any) -> bool:
    """Returns whether an assumption says only that a size is not 0, or not 1; a remainder is not a size."""
    if expression.has(functions.Mod, functions.PythonMod):
        return False
    if isinstance(expression, sympy.Ne):
        return any(side in (0, 1) for side in expression.args)
    if isinstance(expression, (sympy.Ge, sympy.Gt)):
        return bool(expression.rhs in ((0, 1, 2) if isinstance(expression, sympy.Ge) else (0, 1)))
    if isinstance(expression, (sympy.Le, sympy.Lt)):
        return bool(expression.lhs in ((0, 1, 2) if isinstance(expression, sympy.Le) else (0, 1)))
    return False


def _place(stack: Any) -> str | None:
    """`FILE:LINE` of the innermost frame that belongs to neither PyTorch nor FTuner."""
    own = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
    frames = getattr(stack, "_raw_tb", None) if not hasattr(stack, "summary") else stack.summary()
    for frame in reversed(frames or []):
        if not frame.filename.startswith(own) and not frame.filename.startswith("<"):
            return f"{frame.filename}:{frame.lineno}"
    return None
