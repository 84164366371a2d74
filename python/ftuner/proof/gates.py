"""Codegen paths and gates that a compilation may take on the card at hand, by the verdicts on it."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from dataclasses import dataclass

from .. import locations
from ..describe import descriptions, listing
from ..errors import Error
from ..host import cache, runtime
from . import check, verdicts
from .families import parse_capability, sets
from .verdicts import Card, PathVerdict, warn_once


@dataclass(frozen=True)
class Gates:
    """Verdicts on a card, as a search takes them."""

    #: Names of gates whose families passed, and of paths and gates with one that did not.
    proven: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


#: Variable that, where it is 0, keeps families without a verdict from being checked before the first
#: use on a card.
CHECK_VARIABLE = "FTUNER_CHECK_GPU"


def gates_for(
    device: descriptions.Description, compile_family: check.CompileFamily | None = None
) -> Gates:
    """Tells a search what verdicts say of the card at hand, if that is the device.

    With `compile_family` sets of families without a verdict are checked first, which takes seconds, once
    for a card, a driver and a compiler. Warns, once for each card, of what is left out.
    """
    card = _card_at_hand(device)
    if card is None:
        return Gates()
    capability = parse_capability(card.card.capability)
    known = [one.group for one in sets().values() if one.applies_to(capability)]
    found = {**verdicts.read(card.card), **_seen.get(card, {})}
    if compile_family is not None and os.environ.get(CHECK_VARIABLE) != "0":
        found |= _checked(card, known, compile_family)
    gated = listing.gates(locations.tool("ftuner-translate"))
    for group in known:
        verdict = found.get(group)
        if verdict is None and group in gated:
            warn_once(
                f"{_called(group)} is left out, since nothing has proven it on "
                f"{card.card.name} yet: run ftuner check-gpu"
            )
        elif verdict is not None and not verdict.passed:
            warn_once(f"{_called(group)} is left out: on {card.card.name} {verdict}")
    passed = [group for group in known if group in found and found[group].passed]
    return Gates(
        tuple(group for group in passed if group in gated),
        tuple(group for group in known if group in found and group not in passed),
    )


def _called(group: str) -> str:
    return f"the {'gate' if '.' in group else 'codegen path'} {group}"


def _checked(
    card: _CardAtHand, groups: list[str], compile_family: check.CompileFamily
) -> dict[str, PathVerdict]:
    """The verdicts on a card once sets without one are checked, by one process and thread at a time.

    What may be a chance of the moment (a busy card, memory, the compiler that was killed) is no
    verdict: it is not tried again in this process. Verdicts that cannot be kept hold for it.
    """

    def missing() -> list[str]:
        found = {**verdicts.read(card.card), **_seen.get(card, {})}
        tried = _tried.get(card, set())
        return [group for group in groups if group not in found and group not in tried]

    if not missing():
        return _seen.get(card, {})
    file = verdicts.file_of(card.card)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_check_lock)
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(cache.lock(file.with_suffix(".lock")))
        if todo := missing():
            _tried.setdefault(card, set()).update(todo)
            try:
                outcomes = check.check_sets(card.index, todo, compile_family)
                found = {
                    group: PathVerdict.from_outcomes(own)
                    for group, own in outcomes.items()
                    if all(one.status == "passed" for one in own)
                    or any(one.is_wrong for one in own)
                }
                _seen.setdefault(card, {}).update(found)
                verdicts.write(
                    card.card, found, [one for group in found for one in outcomes[group]]
                )
            except (Error, OSError) as error:
                warn_once(f"cannot check {card.card.name}: {error}; run ftuner check-gpu")
    return _seen.get(card, {})


#: The system's lock is for processes; threads wait here, as its waits are not in order.
_check_lock = threading.Lock()


@dataclass(frozen=True)
class _CardAtHand:
    """A GPU of this machine and its number."""

    card: Card
    index: int


#: Verdicts that this process found, and sets that it tried.
_seen: dict[_CardAtHand, dict[str, PathVerdict]] = {}
_tried: dict[_CardAtHand, set[str]] = {}


def _card_at_hand(device: descriptions.Description) -> _CardAtHand | None:
    """The GPU of this machine that a description is of; the first one where there are several."""
    library = runtime.get()
    if not library.has_device():
        return None
    with contextlib.suppress(Error):
        if device.gpu is not None:
            return _CardAtHand(_card(device.gpu), device.gpu)
        for index in range(library.device_count()):
            card = _card(index)
            if card.is_described_by(device.content()):
                return _CardAtHand(card, index)
    return None


@functools.cache
def _card(index: int) -> Card:
    return Card.from_gpu(index)
