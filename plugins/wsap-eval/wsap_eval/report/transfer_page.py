"""The page of a measurement of transfer: the same tables and sentences as in a terminal, with intervals as pictures."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib import resources

from wsap_core.untrusted import single_line
from wsap_eval.report.page import list_of
from wsap_eval.stats import Interval
from wsap_eval.transfer.run import Measured
from wsap_eval.transfer.told import COLUMNS, lines_of, origin_of, rows_of, title_of
from wsap_eval.transfer.verdict import Verdict

WIDTH, ROW, NAME = 700, 34, 170


def transfer_html(measured: Measured) -> str:
    """Return the page: one file that needs no network and runs no script."""
    style = resources.files(__package__).joinpath("assets", "report.css").read_text("utf-8")
    plan = measured.plan
    title = f"Transfer from {plan.source}"
    about = "".join(f"<p>{escape(line)}</p>" for line in (origin_of(measured), *measured.failures))
    if measured.missing:
        about += f"<p>{measured.missing} test episodes missing or failed.</p>"
    body = "".join(_target(verdict, measured) for verdict in measured.verdicts)
    options = {name: str(value) for name, value in plan.entrant.options.items()}
    conditions = list_of({
        "entrant": plan.entrant.name, **options, "source": plan.source, "arms": ", ".join(plan.arms),
        "lives": str(plan.lives), "target seeds of each life": str(plan.seeds),
        "learning episodes of each life": str(plan.learning),
        "steps": "no limit" if plan.steps is None else f"at most {plan.steps}", "plan": f"SHA-256 {plan.digest}",
    })  # fmt: skip
    text = single_line(
        f"<header><h1>{escape(title)}</h1>{about}</header><main>{body}"
        f"<section><h2>Conditions</h2><div class=panel>{conditions}</div></section></main>"
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(single_line(title))}</title>\n<style>{style}</style>\n</head>\n<body>\n{text}\n</body>\n</html>\n"
    )


def _target(verdict: Verdict, measured: Measured) -> str:
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f'<td data-name="{escape(n)}">{escape(c)}</td>' for n, c in zip(COLUMNS, row, strict=True))
        + "</tr>"
        for row in rows_of(verdict)
    )  # fmt: skip
    lines = "".join(f"<p>{escape(single_line(line))}</p>" for line in lines_of(verdict, measured))
    return (
        f"<section><h2>{escape(single_line(title_of(verdict, measured)))}</h2><div class=wide>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"<figure><figcaption>95 % intervals over lives</figcaption>{''.join(_picture(verdict))}</figure>"
        f"{lines}</section>"
    )


def _picture(verdict: Verdict) -> Iterator[str]:
    shown: list[tuple[str, float, Interval | None]] = [
        (f"{c.arm} - {c.other}", c.lives.effect.difference, c.lives.effect.interval) for c in verdict.comparisons
    ]
    ends = [0.0] + [v for _, mean, i in shown for v in ((mean, i.low, i.high) if i else (mean,))]
    low, width = min(ends), (max(ends) - min(ends)) or 1.0

    def x(value: float) -> float:
        return round(NAME + (value - low) / width * (WIDTH - NAME - 10), 1)

    height = len(shown) * ROW
    yield f'<svg viewBox="0 0 {WIDTH} {height}" role=img aria-label="Differences with intervals">'
    yield f'<line class=same x1="{x(0)}" x2="{x(0)}" y1="0" y2="{height}"/>'
    for number, (name, mean, interval) in enumerate(shown):
        y = number * ROW + ROW // 2
        yield f'<g class=k{number % 8}><text class=name x="0" y="{y + 4}">{escape(name)}</text>'
        if interval is not None:
            yield f'<line class=span x1="{x(interval.low)}" x2="{x(interval.high)}" y1="{y}" y2="{y}"/>'
        yield f'<circle class=mean cx="{x(mean)}" cy="{y}" r="6"/></g>'
    yield "</svg>"
