"""What this package uses of tessella beyond its public names; a test keeps it all here."""

from tessella.estimators._training_set import TrainingSet

__all__ = ["TrainingSet"]
