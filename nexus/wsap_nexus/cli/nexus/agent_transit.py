"""`wsap nexus agents send`, `recall` and `settle`."""

from __future__ import annotations

from typing import Any

import click

from wsap_core.cli.params import STEPS, complete_games
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import command, said
from wsap_nexus.cli.nexus.connection import NexusHttp, NoAnswerError, RefusedError, require_nexus, running_on, writing


@command(
    "wsap nexus agents send ada crafter",
    "wsap nexus agents send ada crafter --goal 'collect a diamond' --exit-when 'health < 20%'",
)
@click.argument("name")
@click.argument("game", shell_complete=complete_games)
@click.option("--goal", "goals", multiple=True, metavar="TEXT", help="A goal for the session; may be repeated.")
@click.option("--exit-when", default="", metavar="CONDITION", help="When to return, such as 'health < 10%'.")
@click.option("--steps", type=STEPS, help="Maximum number of decisions.")
@click.option("--spawn", type=click.Choice(["safe", "challenging", "random"]), default="safe", show_default=True,
              help="Where a new avatar starts, if GAME takes it (wsap games GAME).")  # fmt: skip
@click.option("--loadout", metavar="NAME", default="default", show_default=True,
              help="What a new avatar carries, if GAME takes it.")  # fmt: skip
@click.option("--difficulty", type=click.Choice(["easy", "normal", "hard", "adaptive"]), default="normal",
              show_default=True, help="How hard the game is, if GAME takes it.")  # fmt: skip
@click.option("--avatar", metavar="ID", help="The avatar to enter with; new for a new one.")
def send(*, name: str, game: str, as_json: bool, database: str | None, goals: tuple[str, ...], **terms: Any) -> None:
    """Send the agent NAME into GAME, from the nexus or another world."""
    nexus = require_nexus(database, "send an agent into a game")
    body = {"agent_id": name, "game": game, "goals": list(goals), **{k: v for k, v in terms.items() if v is not None}}
    session = _send(nexus, name, body)
    said(as_json, f"{name} is in {game} now ({session['id']}).", agent=name, game=game, session=session["id"])


def _send(nexus: NexusHttp, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send an agent into a game, and out of its current world first; it may enter and leave worlds itself meanwhile."""
    refused: RefusedError | None = None
    for _ in range(5):
        try:
            return _session_in(nexus.post("nexus", "transit", "enter", body=body), name)
        except RefusedError as error:
            if error.reason != "ALREADY_IN_WORLD":
                raise
            refused = error
        try:
            left = nexus.post("nexus", "transit", "exit", body={"agent_id": name, "force": True, "destination": body})
        except RefusedError as error:
            if error.reason != "NOT_IN_WORLD":
                raise
            continue  # it has just returned
        if left.get("entered"):
            return _session_in(left["entered"], name)
        onward = left.get("onward_error")
        if not onward:
            return _session_in({}, name)  # it is still leaving
        if onward["code"] != "ALREADY_IN_WORLD":
            raise RefusedError(single_line(onward["message"]), onward["code"])
    assert refused is not None, "it was refused each time"
    raise refused


def _session_in(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the session of a response; NoAnswerError if it has none yet."""
    session = answer.get("session")
    if not isinstance(session, dict):
        raise NoAnswerError(f"{name!r} is still in transit; check with: wsap nexus agents show {name}")
    return session


@command("wsap nexus agents recall ada")
@click.argument("name")
def recall(*, name: str, as_json: bool, database: str | None) -> None:
    """Bring the agent NAME back into the nexus, even if it is in danger.

    Its avatar is suspended: nothing happens to it until NAME returns. In a world that lives it stays
    (dormant), and in a game that others play on it is given up.
    """
    nexus = require_nexus(database, "bring an agent back")
    session = _session_in(nexus.post("nexus", "transit", "exit", body={"agent_id": name, "force": True}), name)
    text = (
        f"{name} is back in the nexus after {plural(session['steps'], 'decision')} in {single_line(session['game'])}."
    )
    said(as_json, text, agent=name, session=session["id"], steps=session["steps"])


@command(
    "wsap nexus agents settle ada --as returned",
    "wsap nexus agents settle ada --as arrived --transfer transfer-00000012",
)
@click.argument("name")
@click.option("--as", "outcome", type=click.Choice(["arrived", "returned"]), required=True,
              help="Where the items are: in the world (arrived), or back with NAME (returned).")  # fmt: skip
@click.option("--transfer", metavar="ID", help="The transfer to settle; all unresolved ones if not given.")
def settle(*, name: str, outcome: str, transfer: str | None, as_json: bool, database: str | None) -> None:
    """Set the outcome of unresolved transfers of the agent NAME.

    Only do so if the game will not come back: until then, the nexus keeps asking it. If the world no
    longer exists, items that arrived there are lost.
    """
    nexus = running_on(database)
    if nexus is not None:
        body = {"outcome": outcome, **({"transfer": transfer} if transfer is not None else {})}
        settled = nexus.post("nexus", "agents", name, "settle", body=body)["settled"]
    else:
        from dataclasses import asdict

        from wsap_nexus.hub.transit import reconciliation

        with writing(database) as nexus_store, nexus_store.change() as tx:
            settled = [asdict(move) for move in reconciliation.settle(tx, name, outcome, transfer)]
    text = "\n".join(single_line(_decided(name, move)) for move in settled)
    said(as_json, text, agent=name, settled=settled)


def _decided(name: str, move: dict[str, Any]) -> str:
    where = {"escrow": f"back with {name}", "world": "in the world", "lost": "lost, as the world no longer exists"}
    items = {0: "It carried no items", 1: "One item is"}.get(len(move["items"]), f"{len(move['items'])} items are")
    what = f"{items} {where[move['place']]}." if move["items"] else f"{items}."
    return f"{move['transfer']} to {move['game']} is settled. {what}"
