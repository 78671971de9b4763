"""Exclusive times of functions, by wrapping them where they are looked up.

The time of a call counts for its own row and not for the row of its caller, so that the rows add
up to the whole. A row is named when a call begins, from its arguments and the rows around it.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Namer = Callable[["Timers", tuple[Any, ...], dict[str, Any]], "str | None"]
Counter = Callable[[tuple[Any, ...], dict[str, Any], Any], tuple[float, float]]


@dataclass
class Row:
    """What the calls of one row took together."""

    calls: int = 0
    seconds: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0


@dataclass(frozen=True)
class Probe:
    """A function to be timed.

    Attributes
    ----------
    target : str
        ``module:attribute``, the place where callers look the function up.
    name : callable
        The row of a call; None leaves the call to the row around it.
    work : callable, optional
        Flops and bytes that a call with these arguments and this result needs.
    """

    target: str
    name: Namer
    work: Counter | None = None


@dataclass
class Timers:
    """Rows by name, and the stack of those that are running."""

    rows: dict[str, Row] = field(default_factory=lambda: defaultdict(Row))
    running: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def row(self, name: str) -> Iterator[None]:
        """Time what happens inside as that row, less the rows inside it."""
        self._switch()
        self.running.append(name)
        self.rows[name].calls += 1
        try:
            yield
        finally:
            self._switch()
            self.running.pop()

    def _switch(self) -> None:
        now = time.perf_counter()
        if self.running:
            self.rows[self.running[-1]].seconds += now - self._since
        self._since = now

    @contextmanager
    def installed(self, probes: Sequence[Probe]) -> Iterator[None]:
        """Wrap the functions; put them back at the end. Those not found are `missing`."""
        replaced: list[tuple[Any, str, Any]] = []
        try:
            for probe in probes:
                found = _look_up(probe.target)
                if found is None:
                    self.missing.append(probe.target)
                    continue
                owner, attribute = found
                original = getattr(owner, attribute)
                replaced.append((owner, attribute, original))
                setattr(owner, attribute, self._wrapped(original, probe))
            yield
        finally:
            for owner, attribute, original in reversed(replaced):
                setattr(owner, attribute, original)

    def _wrapped(self, original: Callable[..., Any], probe: Probe) -> Callable[..., Any]:
        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            name = probe.name(self, args, kwargs)
            if name is None:
                return self._count(probe, self.running[-1], original, args, kwargs)
            with self.row(name):
                return self._count(probe, name, original, args, kwargs)

        return timed

    def _count(
        self,
        probe: Probe,
        name: str,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        result = original(*args, **kwargs)
        if probe.work is not None:
            flops, moved = probe.work(args, kwargs, result)
            self.rows[name].flops += flops
            self.rows[name].bytes += moved
        return result


def _look_up(target: str) -> tuple[Any, str] | None:
    module, _, path = target.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner: Any = importlib.import_module(module)
        for name in owners:
            owner = getattr(owner, name)
        getattr(owner, attribute)
    except (ImportError, AttributeError):
        return None
    return owner, attribute
