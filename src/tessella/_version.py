"""The version of the package, for every layer to know."""

__version__ = "0.1.0"
