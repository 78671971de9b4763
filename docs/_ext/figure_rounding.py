"""How figures are written in running text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)


def words(count: int) -> str:
    """A small number as a word."""
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


def digits(value: float, count: int = 2) -> str:
    """So many significant digits, never as a power of ten and with the zeros at the end."""
    if value == 0.0:
        return "0"
    places = count - 1 - math.floor(math.log10(abs(float(f"{value:.{count - 1}e}"))))
    return f"{round(value, places):,.{max(0, places)}f}"


def power(value: float) -> str:
    """One digit and a power of ten, as it is written in code: 1e-6."""
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def span(name: str, values: Iterable[float], form: Callable[[float], str]) -> dict[str, str]:
    """The least and the most of some values, as two figures."""
    known = list(values)
    return {f"{name}-least": form(min(known)), f"{name}-most": form(max(known))}
