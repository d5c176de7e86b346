"""Agents of a nexus visit the town of hidden roles, and take social and planning skills home."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from life_kit import host_with, nexus_at

from wsap_nexus.agents.metagoals import TEMPLATES, pursuits, set_goal
from wsap_nexus.store.repository import Repository

pytest.importorskip("wsap_tossim")


@pytest.mark.slow
def test_two_agents_play_a_game_of_fifteen_and_come_home_with_skills(tmp_path: Path) -> None:
    async def test() -> None:
        agents = {"ada": {}, "bob": {}}
        async with nexus_at(tmp_path, agents, host=host_with(), games=("tossim",), start=False) as place:
            with place.nexus.nexus_store.change() as tx:
                for agent in agents:
                    set_goal(tx, agent, TEMPLATES["achiever"], ("tossim",))
            await place.nexus.start()
            try:
                # Whoever comes alone plays, too: the lobby waits for a moment, then all other seats are filled.
                for agent in agents:
                    await place.until_events("left", agent=agent)
            finally:
                await place.nexus.stop()
            for agent in agents:
                left = place.events("left", agent=agent)[0]
                earned = {key.partition(":")[2] for key in left.body["done"] if key.startswith("achievement:")}
                assert "speak_up" in earned
                with place.nexus.nexus_store.look() as tx:
                    skills = tx.skills(agent)
                    progress = pursuits(tx, agent)[0].progress
                    run = tx.session(str(left.session_id)).run_id
                assert skills["social"] > 0, "speak_up is evidence for it"
                if earned & {"night_finding", "just_verdict", "win_as_town", "win_alone"}:
                    assert skills["planning"] > 0
                assert int(progress.partition("/")[0]) >= len(earned)
                seats = Repository(place.nexus.store.database).get_run(run).config["seats"]
                assert len(seats) == 15
                assert {s["agent"] for s in seats} == {"tossim-player"}

    asyncio.run(test())
