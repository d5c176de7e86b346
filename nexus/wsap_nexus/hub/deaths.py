"""Bodies that died: told to their agent, brought back on request, and buried when they are too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wsap_core.errors import WorldError
from wsap_core.models import Avatar, AvatarState, DeathEvent, RespawnOption
from wsap_core.wire import encode
from wsap_nexus.hub.book import Book
from wsap_nexus.hub.records import AvatarRecord

KEPT = 3
"""Dead bodies of an agent in a game that it can still go back to; the oldest are buried, with their worlds."""


class DiedAsleepError(WorldError):
    """A body died in its sleep: its agent finds that out on the way to it, and stays in the nexus."""

    code = "DIED_ASLEEP"
    http_status = 409

    def __init__(
        self, avatar: Avatar, death: DeathEvent | None, notes: Sequence[str], world_state: bytes | None, title: str
    ) -> None:
        told = " ".join(notes) or "It died while you were away."
        ways = respawn_words(death.respawn_options if death else ())
        super().__init__(f"Your body {avatar.avatar_id} in {title} is dead. {told} {ways}")
        self.avatar = avatar
        self.death = death
        self.notes = tuple(notes)
        self.world_state = world_state


def choose_option(death: DeathEvent | None, wanted: str | None, avatar_id: str) -> RespawnOption:
    """Return the way in which a dead body lives again: the one that was asked for, or the world's first.

    Raises:
        WorldError: there is none, or not that one.
    """
    options = death.respawn_options if death is not None else ()
    if not options:
        raise WorldError(f"The avatar {avatar_id!r} can't live again.")
    for option in options:
        if wanted in (None, "", option.id):
            return option
    raise WorldError(f"The avatar {avatar_id!r} can't live again by {wanted!r}. {respawn_words(options)}")


def respawn_words(options: Sequence[RespawnOption]) -> str:
    """Return a sentence about the ways in which a body can live again."""
    if not options:
        return "It can't live again."
    told = []
    for option in options:
        costs = ", ".join(f"{amount} {name}" for name, amount in sorted((option.cost or {}).items()))
        terms = [f"costs {costs}"] if costs else []
        terms += [", ".join(option.penalties)] if option.penalties else []
        told.append(f"{option.id} ({'; '.join(terms)})" if terms else option.id)
    return f"It can live again: {', '.join(told)}."


def note_death(
    book: Book, agent_id: str, game: str, death: DeathEvent, *, session: str | None = None, attended: bool = True
) -> None:
    """Write down that a body died, with what the world says of it."""
    told: dict[str, Any] = {f"death_{name}": value for name, value in encode(death).items()}
    book.note("died", agent=agent_id, game=game, session=session, attended=attended, **told)


def record_unattended(book: Book, agent_id: str, world_id: str, error: DiedAsleepError) -> None:
    """Write down a death that nobody was there for: the body, its world as it is now, and the event."""
    avatar = error.avatar
    book.put_avatar(world_id, agent_id, avatar, left_at=book.agent(agent_id).lifetime_steps)
    if error.world_state is not None:
        book.keep_world(world_id, snapshot=error.world_state)
    death = error.death or DeathEvent(avatar.avatar_id, "unknown")
    note_death(book, agent_id, avatar.game_id, death, attended=False)
    for record in book.items(agent_id, place="world", place_id=world_id):
        where = {"from_place": "world", "from_id": world_id, "to_place": "lost"}
        book.move_item(agent_id, record.item.item_id, **where, note="lost when the body died")
    bury(book, agent_id, avatar.game_id)


def dead_bodies(book: Book, agent_id: str, game: str) -> list[AvatarRecord]:
    """Return an agent's dead bodies in a game, oldest first."""
    return [b for b in book.avatars(agent_id, game) if b.avatar.state is AvatarState.DESTROYED]


def bury(book: Book, agent_id: str, game: str, *, keep: int = KEPT) -> list[str]:
    """Drop the oldest worlds in which only a dead body of an agent is left, and return their ids."""
    dead = dead_bodies(book, agent_id, game)
    buried = []
    for body in dead[: max(0, len(dead) - keep)]:
        if book.world(body.world_id).owner != agent_id or book.sessions(world_id=body.world_id, only_open=True):
            continue
        for record in book.items(agent_id, place="world", place_id=body.world_id):
            where = {"from_place": "world", "from_id": body.world_id, "to_place": "lost"}
            book.move_item(agent_id, record.item.item_id, **where, note="the world that it was in is no more")
        book.drop_world(body.world_id)
        book.note("buried", agent=agent_id, game=game, world=body.world_id, avatar=body.avatar.avatar_id)
        buried.append(body.world_id)
    return buried
