"""The saddle-point problem and its certificate."""

from tessella.problems._saddle_point import Certificate, DualPoint, SaddlePoint
from tessella.problems._spectrahedron import Spectrahedron

__all__ = ["Certificate", "DualPoint", "SaddlePoint", "Spectrahedron"]
