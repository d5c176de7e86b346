"""A game that was renamed is found by the names that it had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wsap_check import IsolatedHost, plugin_host
from wsap_core import AdapterSpec, hookimpl
from wsap_core.errors import DuplicateNameError, UnknownNameError
from wsap_core.references import load_adapter_spec
from wsap_core.specs import problems_of

NEW = AdapterSpec("cavern", "A cave.", "wsap_core.builtin.echo:EchoWorld", former_names=("cave", "grotto"))
FAMILY = replace(NEW, family="level", members=lambda: ["deep", "wide"])


class Plugin:
    def __init__(self, *specs: AdapterSpec) -> None:
        self.specs = specs

    @hookimpl
    def wsap_adapters(self) -> list[AdapterSpec]:
        return list(self.specs)


def host_of(*plugins: tuple[AdapterSpec, ...]) -> IsolatedHost:
    host = plugin_host()
    for number, specs in enumerate(plugins):
        host.register(Plugin(*specs), f"part-{number}")
    host.note_duplicates()
    return host


@pytest.mark.parametrize("asked", ["cavern", "cave", "grotto"])
def test_a_game_is_found_by_each_of_its_names(asked: str) -> None:
    host = host_of((NEW,))
    found = load_adapter_spec(asked, host)
    assert found.name == "cavern"
    assert found.renamed(asked) == ("" if asked == "cavern" else f"The game {asked!r} is called 'cavern' now.")
    assert host.games.names() == ("cavern", "echo")
    assert not host.games.duplicates()


def test_a_member_of_a_family_is_found_by_the_familys_old_name() -> None:
    found = load_adapter_spec("cave:deep", host_of((FAMILY,)))
    assert (found.name, found.preset) == ("cavern:deep", {"level": "deep"})
    assert found.renamed("cave:deep") == "The game 'cave:deep' is called 'cavern:deep' now."
    with pytest.raises(UnknownNameError, match="Did you mean 'deep'"):
        load_adapter_spec("cave:dep", host_of((FAMILY,)))


def test_an_old_name_that_two_games_claim_is_refused_and_told() -> None:
    host = host_of((NEW,), (replace(NEW, name="hole", former_names=("cave",)),))
    with pytest.raises(DuplicateNameError, match=r"'cave' is claimed by 'part-0' .* and 'part-1'"):
        host.games.get("cave")
    assert host.games.get("grotto").name == "cavern"
    told = [row.reasons for row in host.rows if row.name.startswith("part-")]
    assert all("'cave' is claimed by" in reasons[0] and "can't be used" in reasons[0] for reasons in told)


def test_an_old_name_that_is_another_games_name_now_means_that_game_and_is_told() -> None:
    host = host_of((NEW,), (replace(NEW, name="cave", former_names=()),))
    assert host.games.get("cave").name == "cave"
    told = next(row.reasons for row in host.rows if row.name == "part-0")
    assert "it means the one of that name now" in told[0]


def test_former_names_are_texts() -> None:
    assert "former_names is 'cave'; it must be tuple[str, ...]." in problems_of(
        replace(NEW, former_names="cave")  # type: ignore[arg-type]  # wrong
    )
