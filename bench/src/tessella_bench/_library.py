"""What this package uses of tessella beyond its public names; a test keeps it all here."""

from tessella.estimators._training_set import TrainingSet
from tessella.multiple_kernels._bound import require_dictionary_memory

__all__ = ["TrainingSet", "require_dictionary_memory"]
