"""The saddle-point problem and its certificate."""

from tessella.problems._leaves import LeafEvidence, SumOfLeaves
from tessella.problems._saddle_point import Certificate, DualPoint, SaddlePoint

__all__ = ["Certificate", "DualPoint", "LeafEvidence", "SaddlePoint", "SumOfLeaves"]
