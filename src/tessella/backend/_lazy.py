"""Attributes that are computed when they are first read."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - it replaces the other one
        """A cached property without the lock that Python 3.11 has for all objects of a class.

        A child process that is forked while another thread computes the property would wait for
        that lock for ever. Two threads may compute a value twice, which is the same for both.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = vars(instance)
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


__all__ = ["cached_property"]
