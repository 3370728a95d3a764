"""A journal: the parameters of a computation and its finished rows, in one SQLite file.

Every row is committed to the disk before it is counted, and carries a checksum. Rows of a computation with other
parameters are never mixed in.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nadtools.networks import differences

__all__ = ["Journal", "Row"]

Row = dict[str, Any]

_APPLICATION_ID = 0x4E414453  # "NADS", in the header of the file
_FORMAT_VERSION = 1
_BUSY_SECONDS = 30.0
_OF_THE_SYSTEM = (
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM,
)  # fmt: skip


class Journal:
    """Parameters and finished rows in an SQLite file; with ``parameters`` None it is only read."""

    def __init__(self, path: Path, parameters: dict[str, Any] | None) -> None:
        self.path = path
        if not path.parent.is_dir() or path.is_dir():
            raise ValueError(f"got journal={str(path)!r}; expected a file name in a folder that exists")
        try:
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        try:
            self.parameters, self._stored = self._begin(parameters)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise self._explained(error) from error
            # What SQLite takes for a text or number, and Python does not.
            if isinstance(error, UnicodeError | TypeError | AttributeError | OverflowError | json.JSONDecodeError):
                raise ValueError(self._damaged(str(error))) from error
            raise

    @property
    def rows(self) -> dict[str, Row]:
        """All rows, by the names of their units, in the order in which they were finished."""
        return {name: row for name, (_, row) in self._stored.items()}

    def matching(self, names: Sequence[str], fingerprints: Sequence[str]) -> dict[str, Row]:
        """The rows of the named units, if what they were made from is the same."""
        for name, fingerprint in zip(names, fingerprints, strict=True):
            if name in self._stored and self._stored[name][0] != fingerprint:
                changed = f"{self.path} holds {name} of another computation: what it stands for has changed"
                raise ValueError(f"{changed}; delete the file, name another one, or give it another name")
        return {name: self._stored[name][1] for name in names if name in self._stored}

    def add(self, entries: Sequence[tuple[str, str, str]]) -> None:
        """Commit (name, fingerprint, row): on disk when this returns, all of them or none."""
        try:
            with self._writing() as execute:
                for entry in entries:
                    execute(
                        "INSERT OR REPLACE INTO rows (name, fingerprint, row, sha256) VALUES (?, ?, ?, ?)",
                        (*entry, _digest(*entry)),
                    )
        except sqlite3.Error as error:
            size = sum(len(text) for entry in entries for text in entry)
            failure = OSError(
                f"{', '.join(entry[0] for entry in entries)} could not be written to {self.path} ({error}; it takes "
                f"{size:,} bytes): make room on the disk, then give the same call again"
            )
            for name, _, row in entries:
                failure.add_note(f"What was not written: {name}: {row}")
            raise failure from error

    def check_writable(self) -> None:
        """Raise OSError if rows could not be written now."""
        try:
            with self._writing() as execute:
                execute(f"PRAGMA user_version = {_FORMAT_VERSION}")
        except sqlite3.Error as error:
            raise self._explained(error) from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """A transaction: on disk when the block is done, or given up."""
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            yield execute
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _begin(self, parameters: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, tuple[str, Row]]]:
        """Create the tables of a new file, or check those of an old one; parameters and rows."""
        execute = self._connection.execute
        execute("PRAGMA synchronous = EXTRA")
        if parameters is not None and self._is_new():
            with self._writing():
                if self._is_new():  # no other process was faster
                    self._create(parameters)
        patience = time.monotonic() + 1.0
        while parameters is None and self._is_new() and time.monotonic() < patience:
            time.sleep(0.02)  # perhaps another process is just creating it
        execute("BEGIN")  # to read one state of the file, whatever others write
        read = self._read(parameters)
        execute("ROLLBACK")
        return read

    def _is_new(self) -> bool:
        execute = self._connection.execute
        (application,), (tables,) = (
            execute(statement).fetchone()
            for statement in ("PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
        )
        return tables == 0 and application in (0, _APPLICATION_ID)

    def _read(self, parameters: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, tuple[str, Row]]]:
        execute = self._connection.execute
        (application,), (version,) = execute("PRAGMA application_id"), execute("PRAGMA user_version")
        if application[0] != _APPLICATION_ID:
            raise ValueError(f"{self.path} is no journal of nadtools; name another file")
        if version[0] != _FORMAT_VERSION:
            known = f"this nadtools reads version {_FORMAT_VERSION}"
            raise ValueError(f"{self.path} has format version {version[0]}, {known}; use the one that wrote it")
        verdict = execute("PRAGMA integrity_check").fetchone()[0]
        if verdict != "ok":
            raise ValueError(self._damaged(verdict))
        text, digest = execute("SELECT parameters, sha256 FROM computation").fetchone() or ("", "")
        entries = execute("SELECT name, fingerprint, row, sha256 FROM rows ORDER BY rowid").fetchall()
        if digest != _digest(text):
            raise ValueError(self._damaged("the checksum of the parameters does not match"))
        for name, fingerprint, row, checksum in entries:
            if checksum != _digest(name, fingerprint, row):
                raise ValueError(self._damaged(f"the checksum of {name} does not match"))
        stored = json.loads(text)
        different = differences(stored, parameters) if parameters is not None else []
        if different:
            reason = f"belongs to another computation ({'; '.join(different)})"
            raise ValueError(f"{self.path} {reason}; delete it, or name another file")
        return stored, {name: (fingerprint, json.loads(row)) for name, fingerprint, row, _ in entries}

    def _create(self, parameters: dict[str, Any]) -> None:
        text = json.dumps(parameters, sort_keys=True)
        execute = self._connection.execute
        execute("CREATE TABLE computation (parameters TEXT NOT NULL, sha256 TEXT NOT NULL)")
        execute(
            "CREATE TABLE rows (rowid INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL, "
            "row TEXT NOT NULL, sha256 TEXT NOT NULL)"
        )
        execute("INSERT INTO computation VALUES (?, ?)", (text, _digest(text)))
        execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        execute(f"PRAGMA user_version = {_FORMAT_VERSION}")

    def _explained(self, error: sqlite3.Error) -> Exception:
        """What SQLite's error means for whoever has called."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without the details
        journal = f"the journal {self.path}"
        if code == sqlite3.SQLITE_READONLY:
            problem = f"{journal} is read-only; make it and its folder writable"
        elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            problem = f"another process holds {journal} ({error}); wait for it"
        elif code in _OF_THE_SYSTEM:
            problem = f"{journal} cannot be read or written ({error}); make room and check its permissions"
        else:
            return ValueError(self._damaged(str(error)))
        return OSError(f"{problem}, or name another file")

    def _damaged(self, reason: str) -> str:
        return f"{self.path} is damaged or no journal of nadtools ({reason}); delete it, or name another file"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
