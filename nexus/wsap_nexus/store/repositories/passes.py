"""The repository of passes."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from wsap_core.errors import UnknownNameError, UsageError
from wsap_nexus.store.entities import PassRecord, checked
from wsap_nexus.store.repositories.log import EventRepository
from wsap_nexus.store.tables import METADATA

_PASS = METADATA.tables["pass"]
_COLUMNS = [column for column in _PASS.columns if column.name != "hash"]

MOST = 200
"""Maximum number of passes."""
REMEMBERED = 30 * 86_400.0
"""Seconds for which it is remembered that a pass has expired."""


class PassRepository(EventRepository):
    """Reads and writes passes."""

    def add_pass(self, digest: str, scope: str, target: str, *, talks: bool, seconds: float) -> PassRecord:
        """Store the hash of a new pass that expires after some seconds, and return it.

        Raises:
            UsageError: there are too many passes already.
        """
        self.connection.execute(delete(_PASS).where(_PASS.c.expires < self.now - REMEMBERED))
        if len(self.passes()) >= MOST:
            raise UsageError(f"There are {MOST} passes already; take some back first.")
        name = f"pass-{self.next_number('pass'):04d}"
        made = PassRecord(name, scope, target, talks, self.stamp, self.now + seconds)
        self.connection.execute(insert(_PASS).values(**checked(_PASS, {**vars(made), "hash": digest})))
        return made

    def passes(self) -> list[PassRecord]:
        """Return the passes that are valid now, newest first."""
        valid = select(*_COLUMNS).where(_PASS.c.expires > self.now, _PASS.c.revoked.is_(False))
        return self._all(PassRecord, valid.order_by(_PASS.c.created.desc(), _PASS.c.id.desc()))

    def pass_of(self, digest: str) -> PassRecord | None:
        """Return the pass with this hash, valid or not; None if there is none."""
        return next(iter(self._all(PassRecord, select(*_COLUMNS).where(_PASS.c.hash == digest))), None)

    def revoke_pass(self, name: str) -> None:
        """Take a pass back; UnknownNameError if there is no valid one with this id."""
        known = [one.id for one in self.passes()]
        if name not in known:
            raise UnknownNameError("pass", name, known, hint="See them with: wsap nexus share --list")
        self._update(_PASS, _PASS.c.id == name, revoked=True)
