"""The report as text: what is in it, and what can't get out of it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsap_core.errors import UsageError
from wsap_eval.commands.writing import write
from wsap_eval.reading import played_of
from wsap_eval.report.page import report_html

MakeResults = Callable[..., Path]
EVIL = '</script><!--<script>window.hit=1</script><img src=x onerror="window.hit=1">@@data@@'


def data_of(page: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_report_holds_table_episodes_and_conditions(make_results: MakeResults, tmp_path: Path) -> None:
    folder = make_results()
    (path,) = write(folder, "html", out=tmp_path / "r.html", database=None)
    page = path.read_text()
    rows, data = played_of(folder).rows(), data_of(page)
    assert [row["score"] for row in data["rows"]] == [row.figure.mean for row in rows]
    ends = [data["outcomes"][end] for end in data["rows"][1]["ends"]]
    assert ends.count("forfeited") == ends.count("failed") == 1
    assert data["command"] == f"wsap replay RUN --database {folder}/runs.db"
    assert "Forfeited episodes count as 0" in page
    for condition in (
        "legal actions",
        "SHA-256",
        "3-8b2f",
        "openai/x",
        "at most 40",
        "<dt>window</dt><dd>2</dd>",
        "<dt>memory</dt><dd>none</dd>",
    ):
        assert condition in page


def test_nothing_that_was_written_elsewhere_is_markup(make_results: MakeResults) -> None:
    page = report_html(played_of(make_results(("random", EVIL))), database="a b/runs.db")
    assert data_of(page)["entrants"] == ["random", EVIL]
    assert data_of(page)["command"] == "wsap replay RUN --database 'a b/runs.db'"
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert page.count(html.escape(EVIL)) >= 2  # the table and the conditions


def test_nothing_in_the_report_changes_the_direction_of_text(make_results: MakeResults) -> None:
    page = report_html(played_of(make_results(("random", "a\u202eb\u2067c"))), database="runs.db")
    assert data_of(page)["entrants"] == ["random", "a b c"]
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page)


def test_a_password_in_a_databases_address_is_not_in_the_report(make_results: MakeResults) -> None:
    page = report_html(played_of(make_results()), database="postgresql://me:secret@host/db")
    assert "secret" not in page
    assert data_of(page)["command"] == "wsap replay RUN"


def test_a_dashboard_is_an_address_of_http(make_results: MakeResults) -> None:
    played = played_of(make_results())
    assert data_of(report_html(played, database="x", dashboard="http://h:1/"))["dashboard"] == "http://h:1"
    with pytest.raises(UsageError, match="Invalid dashboard address"):
        report_html(played, database="x", dashboard="javascript:alert(1)")
