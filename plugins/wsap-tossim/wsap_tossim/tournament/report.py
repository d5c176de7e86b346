"""The report: one HTML file without network access or scripts, with all untrusted text escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_eval.stats import FEWEST, ORDERS
from wsap_tossim.engine.data.model import Faction
from wsap_tossim.tournament.plots import Dot, dot_plot
from wsap_tossim.tournament.table import MEASURES

__all__ = ["report_html"]

_STYLE = """
:root{color-scheme:light dark;--bg:#fbfaf7;--ink:#1d2430;--soft:#5a6372;--line:#d9d6cd;--card:#fff;
--c0:#1f6fb2;--c1:#b4500f;--c2:#217a46;--c3:#8a3ea8;--c4:#a32c48;--c5:#5c6a10}
@media (prefers-color-scheme:dark){:root{--bg:#14181f;--ink:#e7e9ee;--soft:#a3acba;--line:#343c49;--card:#1b212a;
--c0:#6cb2f0;--c1:#f0a15c;--c2:#6fd097;--c3:#d19bea;--c4:#f28ba2;--c5:#c3d165}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 .25rem}h2{margin:2.5rem 0 .5rem;font-size:1.25rem}
h3{margin:1.25rem 0 .25rem;font-size:1rem}
p{max-width:46rem;overflow-wrap:anywhere}.soft,caption,figcaption{color:var(--soft)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
caption{text-align:left;padding:.25rem 0}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child,th.w,td.w{text-align:left}
td,th{white-space:nowrap}td.w,th.w{white-space:normal;overflow-wrap:anywhere;min-width:8rem;max-width:18rem}
caption span{display:block;max-width:calc(100vw - 2.5rem)}
td small{display:block;color:var(--soft);font-size:.82rem}
figure{margin:.5rem 0;background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.5rem}
.pair{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(24rem,100%),1fr));gap:0 .75rem}
svg{display:block;width:100%;max-width:36rem;height:auto}
svg text{fill:var(--ink);font:15px system-ui,sans-serif}svg .tick{fill:var(--soft)}
svg .label{paint-order:stroke;stroke:var(--card);stroke-width:5px;stroke-linejoin:round}
.grid{stroke:var(--line)}.mark{stroke:var(--soft);stroke-dasharray:4 3}
.span{stroke-width:2.5;stroke-linecap:round}
"""
SHARES = ("false_claims", "acquitted", "unanswered", "true_claims")
"""Measures that are shares, drawn from 0 to 1."""
_COLOURS = "".join(f".c{n} circle{{fill:var(--c{n})}}.c{n} .span{{stroke:var(--c{n})}}" for n in range(6))
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def report_html(summary: Mapping[str, Any]) -> str:
    """Return the report of a tournament as HTML; `summary` is from `summary_of`."""
    entrants = [e["label"] for e in summary["settings"]["entrants"]]
    title = f"Tournament: {plural(summary['games'], 'game')} of hidden roles"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{escape(title)}</title><style>{_STYLE}{_COLOURS}</style></head><body><main>",
        f"<h1>{escape(title)}</h1>",
        _about(summary),
    ]
    if summary["games"]:
        if summary["blocks"] < FEWEST:
            parts.append(f"<p><strong>Ratings have intervals with {FEWEST} blocks of games or more.</strong></p>")
        parts += [
            _factions(summary, entrants),
            _measures(summary, entrants),
            _spending(summary),
            _sides(summary),
            _roles(summary),
        ]
    else:
        parts.append("<p>No game has been played yet.</p>")
    parts.append(_method(summary))
    return "\n".join([*parts, "</main></body></html>", ""])


def _text(value: object) -> str:
    return escape(single_line(value))


def _about(summary: Mapping[str, Any]) -> str:
    settings = summary["settings"]
    options = ", ".join(f"{name}={value}" for name, value in settings["options"].items()) or "mode=classic"
    seating = {
        "mixed": "seats dealt to the entrants one by one",
        "sides": "each side of a game played by one entrant",
    }[settings["seating"]]
    field = ", ".join(
        e["label"] if e["address"] in ("", e["label"]) else f"{e['label']} ({e['address']})"
        for e in settings["entrants"]
    )
    return f'<p class="soft">{_text(field)}. {_text(options)}; {seating}; seed {int(settings["seed"])}.</p>'


def _factions(summary: Mapping[str, Any], entrants: Sequence[str]) -> str:
    rows = summary["factions"]
    parts = ["<h2>Ratings and wins by faction</h2>"]
    for faction in (f.value for f in Faction):
        of = [r for r in rows if r["as"] == faction]
        if not of:
            continue
        ratings = [
            Dot(single_line(r["entrant"]), r["mu"], r["mu_low"], r["mu_high"], entrants.index(r["entrant"])) for r in of
        ]
        shares = [
            Dot(
                single_line(r["entrant"]),
                r["win_rate"],
                r["win_low"],
                r["win_high"],
                entrants.index(r["entrant"]),
            )
            for r in of
        ]
        parts += [
            f"<h3>{escape(faction)}</h3>",
            '<div class="pair">',
            _figure(dot_plot(ratings, f"Ratings as {faction}", mark=25.0), "OpenSkill mean; initially 25."),
            _figure(dot_plot(shares, f"Win rates as {faction}", bounds=(0.0, 1.0)), "Share of seats that won."),
            "</div>",
        ]
    return "\n".join(
        [*parts, _rating_table(rows, "Faction", "All factions; below each number its 95 % interval over blocks")]
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _rating_table(rows: Sequence[Mapping[str, Any]], what: str, caption: str) -> str:
    body = []
    for r in rows:
        rated = r["mu"] is not None
        share = f"{r['win_rate']:.1%}{_interval(r['win_low'], r['win_high'], '.1%')}"
        rating = ordinal = "too few"
        if rated:
            rating = f"{r['mu']:.2f} ± {r['sigma']:.2f}{_interval(r['mu_low'], r['mu_high'])}"
            ordinal = f"{r['ordinal']:.2f}{_interval(r['ordinal_low'], r['ordinal_high'])}"
        body.append(
            f'<tr><td>{escape(r["as"])}</td><td class="w">{_text(r["entrant"])}</td>'
            f"<td>{r['won']} of {r['seats']}</td><td>{share}</td><td>{rating}</td><td>{ordinal}</td></tr>"
        )
    head = (
        f'<tr><th>{what}</th><th class="w">Entrant</th><th>Won</th><th>Win rate</th>'
        "<th>Rating</th><th>Ordinal</th></tr>"
    )
    return _table(caption, head, body)


def _interval(low: float | None, high: float | None, form: str = ".2f") -> str:
    return "" if low is None or high is None else f"<small>{low:{form}} to {high:{form}}</small>"


def _table(caption: str, head: str, body: Sequence[str]) -> str:
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption><span>{escape(caption)}</span></caption><thead>{head}</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _measures(summary: Mapping[str, Any], entrants: Sequence[str]) -> str:
    parts = ["<h2>Deception and detection</h2>", "<p>Computed from the true roles and events, never from opinions.</p>"]
    figures: dict[str, list[str]] = {}
    for name, (about, words, _) in MEASURES.items():
        rows = [r for r in summary["measures"] if r["measure"] == name and r["value"] is not None]
        if not rows or (name == "unanswered" and not any(r["value"] for r in rows)):
            continue
        dots = [
            Dot(single_line(r["entrant"]), r["value"], r["low"], r["high"], entrants.index(r["entrant"])) for r in rows
        ]
        mark = 0.0 if name.endswith(("_above", "_fall")) else None
        bounds = (0.0, 1.0) if name in SHARES else None
        figures.setdefault(about, []).append(
            _figure(dot_plot(dots, words, mark=mark, bounds=bounds), f"{name}: {words}.")
        )
    for about, plots in figures.items():
        parts += [f"<h3>{escape(about.capitalize())}</h3>", '<div class="pair">', *plots, "</div>"]
    body = []
    names = list(MEASURES)
    for r in sorted(summary["measures"], key=lambda r: names.index(r["measure"])):
        if r["value"] is None:
            continue  # it never occurred
        value = f"{r['value']:.3f}"
        interval = "none" if r["low"] is None else f"{r['low']:.3f} to {r['high']:.3f}"
        body.append(
            f'<tr><td>{escape(r["measure"])}</td><td class="w">{_text(r["entrant"])}</td>'
            f"<td>{value}</td><td>{interval}</td></tr>"
        )
    head = '<tr><th>Measure</th><th class="w">Entrant</th><th>Value</th><th>95 % (jackknife)</th></tr>'
    return "\n".join([*parts, _table("All measures", head, body)])


def _spending(summary: Mapping[str, Any]) -> str:
    rows = summary["spending"]
    if not rows:
        return ""
    body = []
    for r in rows:
        beliefs = f"{r['belief_calls']} of them, {_dollars(r['belief_cost'])}" if r["belief_calls"] else "none"
        each = None if r["cost"] is None or not r["seats"] else r["cost"] / r["seats"]
        body.append(
            f'<tr><td class="w">{_text(r["entrant"])}</td><td>{r["seats"]}</td><td>{r["calls"]:,}</td>'
            f"<td>{r['prompt_tokens']:,}</td><td>{r['completion_tokens']:,}</td><td>{_dollars(r['cost'])}</td>"
            f"<td>{_dollars(each)}</td><td>{beliefs}</td></tr>"
        )
    head = (
        '<tr><th class="w">Entrant</th><th>Seats</th><th>Calls</th><th>Tokens in</th><th>Tokens out</th><th>Cost</th>'
        "<th>Cost per seat</th><th>For beliefs</th></tr>"
    )
    return "<h2>Model usage</h2>\n" + _table("All games, unfinished ones included; seats of finished games", head, body)


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}"


def _sides(summary: Mapping[str, Any]) -> str:
    games = summary["games"]
    body = [
        f"<tr><td>{escape(side)}</td><td>{count}</td><td>{count / games:.1%}</td></tr>"
        for side, count in summary["sides"].items()
    ]
    head = "<tr><th>Side</th><th>Games</th><th>Share</th></tr>"
    return "<h2>Winning sides</h2>\n" + _table("Games won by each side", head, body)


def _roles(summary: Mapping[str, Any]) -> str:
    caption = f"A role is rated once an entrant has had it in {summary['enough']} seats"
    return "<h2>By role</h2>\n" + _rating_table(summary["roles"], "Role", caption)


def _method(summary: Mapping[str, Any]) -> str:
    decisions = summary["decisions"]
    refused = ", ".join(f"{_text(label)} {count} of {decisions[label]}" for label, count in summary["refused"].items())
    forfeited = ", ".join(f"{_text(label)} {count}" for label, count in summary["forfeited"].items())
    return (
        "<h2>Method</h2>"
        "<p>Ratings: OpenSkill's Plackett-Luce model, updated game by game, and averaged over "
        f"{ORDERS} random orders of the games; the ordinal is the mean minus three deviations. The sides of a "
        "game are teams, each as strong as its average seat; a player who wins beside others is a team of one. "
        f"Games of a block share their deal, so the block is the sampling unit; there are {int(summary['blocks'])}. "
        "Intervals are computed as in <code>wsap eval</code>: win rates have exact betting intervals; measures "
        "have jackknife intervals, from 40 blocks in which they are defined; ratings have bootstrap percentiles "
        f"over {int(summary['resamples'])} resamples of blocks, from {FEWEST} blocks. The last two have no guaranteed "
        "coverage.</p>"
        f"<p>Decisions made for an entrant, because its own were late, illegal or unreadable: {refused}. "
        f"Games forfeited by models (over a fifth of a seat's decisions made for it) and not rated: {forfeited}.</p>"
    )
