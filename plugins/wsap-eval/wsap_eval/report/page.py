"""The report as one HTML page: table and conditions as text, plots drawn by a script from embedded data.

The page's content security policy allows only its own script and no requests, so that texts of games, players and
models can't run or send anything even if escaping failed.
"""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib import resources
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.loading import names_model
from wsap_core.references import load_agent_spec
from wsap_core.untrusted import single_line
from wsap_eval.export.flat import flat_row
from wsap_eval.planning.suite import Entrant
from wsap_eval.records import OUTCOMES, EpisodeRecord
from wsap_eval.run import Played
from wsap_eval.tables.digits import estimate_of, number
from wsap_eval.tables.rows import Row
from wsap_eval.tables.shown import (
    COLUMNS,
    STANDING_COLUMNS,
    cells,
    difference_of,
    notes,
    standing_tables,
    summary_notes,
)

Cells = Mapping[tuple[str, str], Sequence[EpisodeRecord]]


def report_html(played: Played, *, database: str, dashboard: str = "") -> str:
    """Return the report.

    `database` is the path or URL of the runs; a URL is left out of the page, since it may contain a password. Points
    open `dashboard`, or copy a command without one. Raises UsageError if its address is not HTTP.
    """
    if dashboard and not dashboard.startswith(("http://", "https://")):
        raise UsageError(
            f"Invalid dashboard address {single_line(dashboard)[:80]!r}; expected for example http://127.0.0.1:9998."
        )
    rows, found = played.rows(), _cells(played)
    where = "" if "://" in database else f" --database {shlex.quote(database)}"
    data = {
        "rows": [_row_data(row, found[row.game, row.entrant]) for row in rows],
        "games": {label: _game_data(played, label) for label in dict.fromkeys(row.game for row in rows)},
        "entrants": list(dict.fromkeys(row.entrant for row in rows)),
        "outcomes": [name.replace("_", " ") for name in OUTCOMES],
        "command": f"wsap replay RUN{where}",
        "dashboard": dashboard.rstrip("/"),
    }
    # "<" could close the data's element or open a comment.
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    assets = {name: resources.files(__package__).joinpath("assets", name).read_text("utf-8") for name in _ASSETS}
    allowed = base64.b64encode(sha256(assets["report.js"].encode()).digest()).decode()
    texts = {
        "title": escape(played.suite.name),
        "policy": f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; base-uri 'none'",
        "about": _about(played, rows),
        "table": _table(rows),
        "standings": _standings(played),
        "conditions": "".join(_conditions(played, rows, found)),
        "data": packed,
    }
    parts = {name: single_line(text) for name, text in texts.items()}  # removes text-direction characters
    parts |= {"style": assets["report.css"], "script": assets["report.js"]}
    pieces = assets["report.html"].split("@@")  # text, name, text, name, ..., text
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


_ASSETS = ("report.js", "report.css", "report.html")


def _cells(played: Played) -> Cells:
    found: dict[tuple[str, str], list[EpisodeRecord]] = {}
    for record in played.records:
        found.setdefault((record.game, record.entrant), []).append(record)
    return found


def _row_data(row: Row, records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    flat, scored = flat_row(row), max(1, row.scored)
    return {
        "game": row.game,
        "entrant": row.entrant,
        "score": flat["score"],
        "method": flat["method"],
        "low": flat["score_low"],
        "high": flat["score_high"],
        "told": "no score" if row.score is None else estimate_of(row.score, row.interval),
        "worst": row.worst,
        "spent": [None if row.cost is None else row.cost / scored, row.tokens / scored, row.seconds / scored],
        "counts": [row.outcomes.get(name, 0) for name in OUTCOMES],
        "difference": difference_of(row),
        "own": row.of,
        "base": row.baseline,
        "bySeed": {str(seed): value for seed, value in row.by_seed.items()} or None,
        "apart": row.apart,
        "seeds": [record.seed for record in records],
        "repeats": [record.repeat for record in records] if any(record.repeat for record in records) else None,
        "ends": [OUTCOMES.index(record.outcome) for record in records],
        "values": [record.value for record in records],
        "steps": [record.steps for record in records],
        "costs": [record.cost for record in records] if any(record.cost for record in records) else None,
        "runs": [record.run for record in records],
        "hashes": [record.trajectory[:16] for record in records],
        "why": {index: single_line(record.reason) for index, record in enumerate(records) if record.reason},
    }


def _game_data(played: Played, label: str) -> dict[str, Any]:
    metric = played.games[label].metric
    baseline = played.suite.baseline or next(row.of for row in played.rows() if row.game == label)
    return {"metric": metric.name, "summary": metric.summary, "unit": metric.unit, "set": metric.of_set,
            "low": metric.low, "high": metric.high, "baseline": baseline}  # fmt: skip


def _about(played: Played, rows: Sequence[Row]) -> str:
    days = sorted({record.started[:10] for record in played.records if record.started})
    when = "" if not days else f", {days[0]}" if len(days) == 1 else f", {days[0]} to {days[-1]}"
    failed = sum(record.outcome == "failed" for record in played.records)
    told = [f"{_many(len(played.records), 'episode')} of {_many(len(rows), 'cell')}{when}."]
    if played.missing:
        told.append(f"{_many(played.missing, 'episode')} missing, {failed} of them failed." if failed else
                    f"{_many(played.missing, 'episode')} missing.")  # fmt: skip
    summary = f"<p class=summary>{escape(played.suite.summary)}</p>" if played.suite.summary else ""
    return summary + "".join(
        f"<p>{escape(line)}</p>" for line in (" ".join(told), *summary_notes(rows, played.suite.baseline))
    )


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _table(rows: Sequence[Row]) -> str:
    told = [dict(zip(COLUMNS, cells(row), strict=True)) for row in rows]
    names = [name for name in COLUMNS if name not in ("game", "metric") and any(row[name] for row in told)]
    lines, game = [], None
    for row, shown in zip(rows, told, strict=True):
        if row.game != game:
            game = row.game
            measured = f"{escape(single_line(row.game))} <small>{escape(row.measured)}</small>"
            lines.append(f"<tr class=game><th colspan={len(names)} scope=rowgroup>{measured}</th></tr>")
        body = "".join(f'<td data-name="{escape(n)}">{escape(single_line(shown[n]))}</td>' for n in names)
        lines.append(f"<tr>{body}</tr>")
        if note := " ".join(notes(row)):
            lines.append(f"<tr class=note><td colspan={len(names)}>{escape(single_line(note))}</td></tr>")
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _standings(played: Played) -> str:
    parts = []
    for kind, game, rows in standing_tables(played.standings()):
        head = "".join(f"<th scope=col>{escape(name)}</th>" for name in STANDING_COLUMNS)
        body = "".join(
            "<tr>" + "".join(
                f'<td data-name="{escape(name)}">{escape(single_line(cell))}</td>'
                for name, cell in zip(STANDING_COLUMNS, row, strict=True)
            ) + "</tr>"
            for row in rows
        )  # fmt: skip
        title = f"<h3>{kind[0].upper()}{kind[1:]}: {escape(single_line(game))}</h3>"
        parts.append(f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "".join(parts)


def _conditions(played: Played, rows: Sequence[Row], found: Cells) -> Iterator[str]:
    suite, limits = played.suite, played.suite.limit.episode
    every = _distinct(record for records in found.values() for record in records)
    common = {name: values[0] for name, values in every.items() if len(values) == 1 and _everywhere(name, found)}
    seeds = list(dict.fromkeys(record.seed for record in played.records))
    repeats = max((record.repeat for record in played.records), default=0) + 1
    yield list_of({
        "suite": f"{suite.name}, version {suite.version}, SHA-256 {suite.digest}",
        "seeds": f"{len(seeds)} {'of a private range' if suite.seeds.salt else f'from {min(seeds, default=0)}'}, "
                 f"each played {_times(repeats)}, {_hash(seeds)}",
        "forfeited if": f"more than {suite.forfeit:.0%} of decisions are forced",
        **({"an episode ends at": ", ".join(map(limits.told, limits.given()))} if limits.given() else {}),
        **common,
    })  # fmt: skip
    for label in dict.fromkeys(row.game for row in rows):
        entry, metric = played.games[label].entry, played.games[label].metric
        bounds = ", ".join(
            f"{word} {number(bound)}"
            for word, bound in (("minimum", metric.low), ("maximum", metric.high))
            if bound is not None
        )
        told = {
            "score": f"{metric.name}: {metric.summary} ({bounds or 'unbounded'}; {metric.better} is better)",
            **({} if suite.reduce == "mean" else {"repeats of a seed": suite.reduce}),
            "steps": "no limit" if entry.steps is None else f"at most {entry.steps}",
            "legal actions": entry.legal,
            **{f"option {name}": str(value) for name, value in entry.options.items()},
            **({"against": entry.against} if entry.against else {}),
        }
        yield f"<h3>{escape(single_line(label))}</h3>{list_of(told)}"
        for row in rows:
            if row.game == label:
                yield _cell_conditions(row, found[label, row.entrant], played.entrant(row.entrant), common)


def _cell_conditions(row: Row, records: Sequence[EpisodeRecord], entrant: Entrant, common: Mapping[str, str]) -> str:
    own = {name: " | ".join(values[:5]) for name, values in _distinct(records).items() if name not in common}
    hashes = sorted(record.trajectory for record in records if record.trajectory)
    shown = _options(entrant) | own
    if row.tags:
        shown["tags"] = ", ".join(row.tags)
    shown["trajectories"] = f"{row.trajectories} different, {_hash(hashes)}"
    return f"<details><summary>{escape(single_line(row.entrant))}</summary>{list_of(shown)}</details>"


def _options(entrant: Entrant) -> dict[str, str]:
    """Return the agent with its options; for a model's agent including defaults."""
    given = {name: str(value) for name, value in entrant.options.items()}
    if not (names_model(entrant.agent) or "model" in given):
        return {"agent": entrant.agent, **given}
    spec = load_agent_spec(entrant.agent, PluginHost.discovered())
    return {"agent": entrant.agent, **{o.name: o.default for o in spec.options if o.default}, **given}


def _distinct(records: Iterable[EpisodeRecord]) -> dict[str, list[str]]:
    """Return condition -> its distinct values in order."""
    values: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in record.conditions.items():
            values.setdefault(name, {})[value] = None
    return {name: list(found) for name, found in values.items()}


def _everywhere(name: str, found: Cells) -> bool:
    return all(any(name in record.conditions for record in records) for records in found.values())


def list_of(pairs: Mapping[str, str]) -> str:
    """Return a list of names with their texts as HTML."""
    items = (f"<dt>{escape(single_line(n))}</dt><dd>{escape(single_line(v)[:2000])}</dd>" for n, v in pairs.items())
    return f"<dl>{''.join(items)}</dl>"


def _hash(values: Sequence[object]) -> str:
    return f"SHA-256 {sha256(json.dumps(values).encode()).hexdigest()}"
