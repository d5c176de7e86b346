"""Whole prompts of Crafter and MiniGrid, as files that were read, and the size of brief ones in played episodes.

Whoever changes what is told reads the files in `prompts/` again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsap_core.protocol import AvatarSpec
from wsap_core.seams.context import Context
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Abilities, Request
from wsap_core.specs import AdapterSpec
from wsap_llm.agent import LLMAgent
from wsap_llm.decision.styles import JsonStyle
from wsap_llm.options.llm import LLMOptions, Profile
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.text.skin import Lexicon, Skinned

pytest.importorskip("wsap_crafter")
pytest.importorskip("wsap_minigrid")

from wsap_crafter import survivor
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.plugin import wsap_adapters as crafter_specs
from wsap_minigrid.adapter import MiniGridAdapter
from wsap_minigrid.finder import Finder
from wsap_minigrid.plugin import wsap_adapters as minigrid_specs

FOLDER = Path(__file__).parent / "prompts"
SEED = 7
GAMES: dict[str, tuple[Any, Callable[[], Any], AdapterSpec]] = {
    "crafter": (CrafterAdapter, lambda: survivor.create(Context.create(SEED)), next(iter(crafter_specs()))),
    "minigrid": (MiniGridAdapter, Finder, next(iter(minigrid_specs()))),
}
WHY = "There is a tree two steps to the west, and I need wood for a table."
FULL_CEILINGS = {"crafter": (1050, 1550), "minigrid": (550, 1150)}
"""Tokens of a full prompt at the first decision, and at any of the first hundred with the default history."""
CEILINGS = {"crafter": (900, 250), "minigrid": (500, 250)}
"""Tokens of a brief prompt in all, and of them new in a step."""


def asked(
    game: str, profile: Profile, steps: int, lexicon: Lexicon | None = None, window: int | None = 0
) -> list[Request]:
    """Return what a model is asked in an episode in which it does what an agent by rules does, maybe under a skin."""
    adapter_class, create, spec = GAMES[game]
    adapter, rules = adapter_class(Context.create(SEED)), create()
    adapter.reset(SEED)
    avatar = adapter.create_avatar("agent", AvatarSpec(name="agent"))
    adapter.jack_in("agent", avatar.avatar_id)
    there = str if lexicon is None else lexicon.there
    backend = ScriptedBackend(
        lambda request: there(json.dumps({"action": wanted.name, "params": {}, "reasoning": WHY})),
        abilities=Abilities(json_schema=True),
    )
    options = LLMOptions(spec.title, spec.objective, profile=profile, brief=spec.brief, window=window, plan=False)
    agent = LLMAgent(backend if lexicon is None else Skinned(backend, lexicon), options, style=JsonStyle())
    rules.initialize(adapter.game_description, adapter.action_space)
    asyncio.run(agent.initialize(adapter.game_description, adapter.action_space))
    for _ in range(steps):
        seen = adapter.observe()
        wanted = rules.decide(seen)
        result = adapter.act(chosen := asyncio.run(agent.decide(seen)))
        assert chosen.name == wanted.name
        asyncio.run(agent.reflect(result))
        rules.reflect(result)
        if result.done:
            break
    return backend.requests


@pytest.mark.parametrize("profile", ["full", "brief"])
@pytest.mark.parametrize(("game", "step"), [("crafter", 30), ("minigrid", 8)])
def test_a_whole_prompt_is_as_it_was_read(game: str, step: int, profile: Profile) -> None:
    golden = FOLDER / f"{game}-{profile}.txt"
    prompt = "\n\n".join(f"[{m.role}]\n{m.text()}" for m in asked(game, profile, step)[-1].messages) + "\n"
    assert prompt == golden.read_text(encoding="utf-8"), f"{golden.name}: read it before changing"


@pytest.mark.parametrize("game", list(GAMES))
def test_brief_prompts_stay_below_their_ceilings_in_an_episode(game: str) -> None:
    whole, new = CEILINGS[game]
    for request in asked(game, "brief", 200):
        assert sum(estimate_tokens(message.text()) for message in request.messages) <= whole
        assert estimate_tokens(request.messages[-1].text()) <= new


@pytest.mark.parametrize("game", list(GAMES))
def test_full_prompts_stay_below_their_ceilings_with_their_history(game: str) -> None:
    first, later = FULL_CEILINGS[game]
    sizes = [sum(estimate_tokens(m.text()) for m in r.messages) for r in asked(game, "full", 100, window=None)]
    assert sizes[0] <= first
    assert max(sizes) <= later


@pytest.mark.parametrize("profile", ["full", "brief"])
@pytest.mark.parametrize("game", list(GAMES))
def test_under_another_skin_no_word_of_the_game_is_in_any_prompt(game: str, profile: Profile) -> None:
    vocabulary = GAMES[game][2].vocabulary
    requests = asked(game, profile, 120, Lexicon.drawn(vocabulary, "1"))
    told = "\n".join(message.text() for request in requests for message in request.messages).lower()
    said = set(re.findall("[a-z]+", told + repr([request.constraint for request in requests]).lower()))
    assert not said & {form for word in vocabulary for form in (word, f"{word}s", f"{word}es")}
