"""What the papers prove: Theorem 1 and what pooling hides, Lemma 1 and what it slows down."""

from __future__ import annotations

from nadtools.theory import deep_linear, pooling

__all__ = ["deep_linear", "pooling"]
