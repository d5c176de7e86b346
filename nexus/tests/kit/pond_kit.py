"""A world of the tests that shows its recorded runs: a pond with two frogs, and what happened tick by tick."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from wsap_core import AdapterSpec, PlaceGraphBlock, Selection, TimelineBlock, TimelineEntry, View
from wsap_core.builtin.echo import EchoWorld
from wsap_core.protocol import Tick
from wsap_core.protocol.wire import dumps
from wsap_core.seams.services import RunReader
from wsap_nexus.runs.store import Store
from wsap_nexus.store.records import NewRun

FROGS = ("Quax", "Brek")
WINDOW = 3
"""Ticks that are shown at once."""


def views(runs: RunReader, run: str, selection: Mapping[str, str]) -> View:
    """Show the last ticks up to the one selected, with the frogs where they sat then."""
    newest = runs.ticks(run)
    asked, find = selection.get("tick", ""), selection.get("find", "")
    last = min(int(asked), newest) if asked.isdecimal() and int(asked) else newest
    where: dict[str, list[str]] = {}
    entries = []
    for event in runs.history(run, "tick", "story", first=max(1, last - WINDOW + 1), last=last):
        body = event["body"]
        if event["kind"] == "tick":
            where = body["body"]["where"]
        elif selection.get("character", "") in ("", body["who"]) and find in body["text"]:
            details = (f"event {event['seq']}",)
            number = event["step"] or body["tick"]
            entries.append(TimelineEntry(body["text"], number, "", body["place"], (body["who"],), details))
    pond = PlaceGraphBlock(("reeds", "water"), (("reeds", "water"),), None, where)
    who = selection.get("character", "") if selection.get("character", "") in FROGS else ""
    chosen = str(last) if asked else ""
    return View(
        (pond, TimelineBlock(entries, "What happened")),
        f"The pond at tick {last}",
        (
            Selection("tick", chosen, highest=newest),
            Selection("character", who, FROGS),
            Selection("find", find),
        ),
    )


def broken(runs: RunReader, run: str, selection: Mapping[str, str]) -> View:
    """Fail, as a plugin may."""
    raise LookupError("no such frog")


POND = AdapterSpec("pond", "Two frogs.", EchoWorld, title="The pond", run_views=views)
BROKEN = AdapterSpec("dry-pond", "No frogs.", EchoWorld, run_views=broken)


def record(
    store: Store,
    ticks: Iterable[int | str],
    *,
    game: str = "pond_kit:POND",
    text: str = "",
    branched_from: Mapping[str, object] | None = None,
) -> str:
    """Record a run and return its id: a number is a tick with that number, `<2` a way back to tick 2."""
    run = store.repository.create_run(
        NewRun(game=game, agent="frogs", config={"game": game, "branched_from": branched_from})
    ).id
    for era, tick in enumerate(ticks):
        if isinstance(tick, str):
            store.writer.append(run, "rewound", json.dumps({"to": int(tick[1:])}))
            continue
        frog = FROGS[tick % 2]
        place = "water" if tick % 3 else "reeds"
        store.writer.append(run, "tick", dumps(Tick(tick, {"where": {place: [frog]}})), step=tick)
        told = {"text": text or f"{frog} jumps for the {era + 1}th time.", "place": place, "who": frog}
        # Narration of which only the body says the tick, and narration with a step.
        if tick % 2:
            store.writer.append(run, "story", json.dumps({**told, "tick": tick}))
        else:
            store.writer.append(run, "story", json.dumps(told), step=tick)
    store.writer.flush()
    return run
