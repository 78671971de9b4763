"""What a case has found, and which errors are clear ones."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

# Verdicts that are as they should be.
FINE, REFUSED, UNFINISHED = "fine", "refused", "not converged"
# Verdicts that are defects.
FALSE, HANG, CRASH, CHANGED, UNCLEAR = (
    "false certificate",
    "hang",
    "crash",
    "silent change",
    "unclear error",
)
DEFECTS = (FALSE, HANG, CRASH, CHANGED, UNCLEAR)

# In the detail of a fit whose certificate was confirmed up to more than its tolerance only.
LOOSE = "rounding above tol"
# In the detail of one that missed its claims by more than its tolerance, within rounding.
MISSED = "claims missed within rounding"

_CLEAR_TYPES = (ValueError, TypeError, MemoryError, OSError, KeyboardInterrupt, TimeoutError)
# Messages of numpy and Python about their own affairs, which do not tell a user what to change.
_OF_THE_MACHINERY = (
    "operands could not be broadcast",
    "not aligned",
    "cannot reshape",
    "zero-size array",
    "unsupported operand",
    "object is not subscriptable",
    "object is not iterable",
    "not enough values to unpack",
    "index out of",
    "out of bounds",
    "must be real number",
    "cannot unpack",
    "has no len()",
    "The truth value of an array",
    "array must not contain infs or NaNs",
    "Eigenvalues did not converge",
)
_OWN_FOLDERS = ("tessella", "sklearn")


@dataclass(frozen=True)
class Outcome:
    """The result of a case.

    Attributes
    ----------
    verdict : str
        One of the verdicts of this module.
    kind : str
        What was tried, in a few words, for counts.
    detail : str
        What was found.
    """

    verdict: str
    kind: str
    detail: str = ""


def judged(kind: str, error: BaseException) -> Outcome:
    """Return the outcome of a case that has ended with an error that somebody may have to read."""
    where = _innermost(error.__traceback__)
    detail = f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({where})"
    return Outcome(REFUSED if is_clear(error) else UNCLEAR, kind, detail)


def is_clear(error: BaseException) -> bool:
    """Return whether an error is one that the library or scikit-learn raises for its users."""
    text = str(error)
    if isinstance(error, MemoryError | KeyboardInterrupt):
        return True  # they have no message where the system raises them
    if not isinstance(error, _CLEAR_TYPES) or not text:
        return False
    folders = Path(_innermost(error.__traceback__)).parts
    ours = any(folder in folders for folder in _OWN_FOLDERS)
    return ours and not any(phrase in text for phrase in _OF_THE_MACHINERY)


def _innermost(trace: TracebackType | None) -> str:
    """Return the place where an error was raised, from the name of its package on."""
    frames = traceback.extract_tb(trace)
    if not frames:
        return "nowhere"
    parts = Path(frames[-1].filename).parts
    own = [k for k, part in enumerate(parts) if part in ("site-packages", "src")]
    return f"{Path(*parts[own[-1] + 1 :]) if own else parts[-1]}:{frames[-1].lineno}"
