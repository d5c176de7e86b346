"""Conditions of an episode that can be known before it is played: versions and files of what plays."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from wsap_core.host import PluginHost
from wsap_core.loading import MODEL_AGENT, load_object, names_file, names_model, names_object, source_files
from wsap_eval.planning.plan import Game, Job, asks_models
from wsap_eval.planning.suite import Entrant
from wsap_llm.kit import Prompts


class Conditions:
    """Adds the conditions to episodes, on which their run ids depend.

    They are (each only where there is such a thing): `game`, `agent` and `opponent`, the distributions with their
    versions, or the files with their hashes; `wsap`, `nexus` and, for models, `llm`, the versions of WSAP's own
    distributions; and `prompts`, the version of the templates.
    """

    def __init__(self, games: Mapping[str, Game], host: PluginHost) -> None:
        self._games, self._host = games, host
        self._known: dict[tuple[str, str, frozenset[str]], tuple[Mapping[str, str], str]] = {}

    def added(self, job: Job) -> Job:
        """Return an episode with its conditions."""
        conditions, digest = self._of(job)
        return replace(job, conditions=conditions, run=f"{job.run}-{digest}")

    def here(self, job: Job) -> Mapping[str, str]:
        """Return the conditions under which this process would play an episode."""
        return self._of(job)[0]

    def _of(self, job: Job) -> tuple[Mapping[str, str], str]:
        who = (job.key.game, job.key.entrant, frozenset(job.seats[seat].agent for seat in job.seats))
        if who not in self._known:
            told = _conditions(job, self._games[job.key.game], self._host)
            self._known[who] = told, hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]
        return self._known[who]


def _conditions(job: Job, game: Game, host: PluginHost) -> dict[str, str]:
    others = {who.agent: None for seat, who in job.seats.items() if seat not in job.own}
    if game.entrants:  # all play against all
        others = {who.agent: None for who in game.entrants}
    own = list(dict.fromkeys((job.entrant.agent, *(job.seats[seat].agent for seat in job.own))))
    seats = list({who.name: who for who in (*job.seats.values(), *game.entrants)}.values())
    told = {
        "game": ", ".join(_of_game(job.entry.game, host)),
        "agent": ", ".join(dict.fromkeys(part for agent in own for part in _of_agent(agent, host))),
        "opponent": ", ".join(dict.fromkeys(part for agent in others for part in _of_agent(agent, host))),
        "wsap": _version("wsap-core"),
        "nexus": _version("wsap-nexus"),
        "llm": _version("wsap-llm") if asks_models(job, game, host) else "",
        "prompts": ", ".join(dict.fromkeys(filter(None, (_prompts(who, game) for who in seats)))),
    }
    return {name: value for name, value in told.items() if value}


def _of_game(game: str, host: PluginHost) -> list[str]:
    name = game.partition(":")[0]
    if not names_file(game) and name in host.games.names():
        return _of_distribution(host.games.entry(name).distribution)
    return [*_of_reference(game), *_of_data(game)]


def _of_data(game: str) -> Iterator[str]:
    """Yield the data files that a game's class names in `wsap_data`, such as a list of questions."""
    for path in map(Path, getattr(load_object(game), "wsap_data", ())):
        with suppress(OSError):
            yield f"{path.name.replace(',', '_')} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def _of_agent(agent: str, host: PluginHost) -> list[str]:
    if names_model(agent) or agent == MODEL_AGENT:
        return []  # `llm` and `prompts` say it
    if not names_object(agent) and agent in host.agents.names():
        distribution = host.agents.entry(agent).distribution
        return [] if distribution == "wsap-core" else _of_distribution(distribution)
    return list(_of_reference(agent))


def _of_distribution(name: str) -> list[str]:
    version = _version(name)
    return [f"{name} {version}{_sources(name)}" if version else name]


def _sources(name: str) -> str:
    """Return "+" and a hash of the plugin's Python files if they are installed in editable form, else empty."""
    installed = metadata.distribution(name)
    try:
        editable = json.loads(installed.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable")
    except (ValueError, AttributeError):
        editable = False
    if not editable:
        return ""
    digest = hashlib.sha256()
    for top in sorted({entry.module.partition(".")[0] for entry in installed.entry_points}):
        spec = importlib.util.find_spec(top)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for file in sorted(Path(folder).rglob("*.py")):
                with suppress(OSError):
                    digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return f"+{digest.hexdigest()[:8]}"


def _version(distribution: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(distribution)
    return ""


def _of_reference(reference: str) -> Iterator[str]:
    """Yield the distribution of an object in a module, or its files with their hashes."""
    place = reference.rpartition(":")[0] or reference
    if names_file(reference):
        yield from _of_files(Path(place).expanduser())
        return
    top = place.partition(".")[0]
    if owners := metadata.packages_distributions().get(top):
        for owner in dict.fromkeys(owners):
            yield from _of_distribution(owner)
        return
    with suppress(ImportError, AttributeError, ValueError):
        spec = importlib.util.find_spec(place)
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            yield from _of_files(Path(spec.origin))


def _of_files(path: Path) -> Iterator[str]:
    files = source_files(path)
    for file in files:
        name = file.relative_to(files[0].parent).as_posix() if file.is_relative_to(files[0].parent) else file.name
        with suppress(OSError):
            yield f"{name.replace(',', '_')} {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"


def _prompts(entrant: Entrant, game: Game) -> str:
    """Return the version of a model's templates; empty for agents without them."""
    if not (names_model(entrant.agent) or entrant.agent == MODEL_AGENT):
        return ""
    folder, language = str(entrant.options.get("prompts") or ""), game.spec.language
    return (Prompts.from_folder(folder, language) if folder else Prompts(language=language)).version
