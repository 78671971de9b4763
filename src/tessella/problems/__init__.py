"""The saddle-point problem and its certificate."""

from tessella.problems._saddle_point import Certificate, DualPoint, SaddlePoint

__all__ = ["Certificate", "DualPoint", "SaddlePoint"]
