"""What the chapters of the book need beside the library: figures, explorers, exercises, experiments, claims.

A chapter's own things lie in its folder (``from companion import chapter_10 as here``); what two chapters share lies
beside them. The library, ``nadtools``, knows nothing of it.
"""

from __future__ import annotations

from companion.grading import check

__all__ = ["check"]
