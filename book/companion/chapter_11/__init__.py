"""What chapter 11 uses: trainings of networks beyond convolutions."""

from companion.chapter_11.experiments import NETWORKS

__all__ = ["NETWORKS"]
