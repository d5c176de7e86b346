"""The tools with which a client watches a nexus, talks to its agents, and lives there as one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.protocol import Action
from wsap_core.protocol.wire import encode
from wsap_mcp.tools import NO_ARGUMENTS, Arguments, Offered, Readable, Told, schema_of
from wsap_nexus.client import AsyncNexusClient, here

# Any, in this module: JSON.

TEXT = {"type": "string"}
MOST_EVENTS = 50


@asynccontextmanager
async def connected(url: str | None, token: str | None, agent: str | None) -> AsyncIterator[NexusDoor]:
    """Yield the door to a nexus.

    Args:
        url: the address of the nexus; None for the one on this machine.
        token: the owner's or the agent's token; None for that of the nexus on this machine.
        agent: the id of the agent that the client lives as; registered if it is new. None only to watch and talk.

    Raises:
        WsapError: there is no nexus, or it refuses.
    """
    if url is None:
        url, own = here()
        token = token or own
    async with AsyncNexusClient(url, token) as owner:
        if agent is None:
            yield NexusDoor(owner, owner, None)
            return
        registered = await owner.register(agent)
        policy = registered.agent.policy("*")
        if policy is not None and not policy.external:
            raise UsageError(
                f"{agent!r} lives in this nexus by itself ({policy.agent}); choose another --agent to live there as."
            )
        if registered.token is None:
            yield NexusDoor(owner, owner, agent)
            return
        async with AsyncNexusClient(url, registered.token) as own_client:
            yield NexusDoor(owner, own_client, agent)


class NexusDoor:
    """The tools over one nexus.

    Args:
        owner: the client with the token that was given.
        own: the client that acts for the agent.
        agent: the agent's id; None only to watch and talk.
    """

    def __init__(self, owner: AsyncNexusClient, own: AsyncNexusClient, agent: str | None) -> None:
        self._owner, self._own, self._agent = owner, own, agent

    def tools(self) -> list[Offered]:
        """Return the tools."""
        limit = {"type": "integer", "minimum": 1, "maximum": MOST_EVENTS}
        found = [
            Offered("overview", "Who is where in the nexus now, and what needs attention.", NO_ARGUMENTS,
                    self.overview, reads=True),
            Offered("events", "What has happened in the nexus last, newest first.",
                    schema_of((), agent=TEXT, limit=limit), self.events, reads=True),
            Offered("games", "The games that agents can enter.", NO_ARGUMENTS, self.games, reads=True),
            Offered("talk", "Say something to an agent that lives in the nexus, and get its answer.",
                    schema_of(("agent", "text"), agent=TEXT, text=TEXT), self.talk),
        ]  # fmt: skip
        if self._agent is None:
            return found
        action = {"action": TEXT, "parameters": {"type": "object"}}
        return [
            *found,
            Offered("observe", f"What {self._agent} sees now, in the nexus or in a world, and what is possible.",
                    NO_ARGUMENTS, self.observe, reads=True),
            Offered("act", f"Act as {self._agent}.", schema_of(("action",), **action), self.act),
            Offered("enter", f"Send {self._agent} into a game.",
                    schema_of(("game",), game=TEXT, goals={"type": "array", "items": TEXT}), self.enter),
            Offered("leave", f"Bring {self._agent} back into the nexus.", NO_ARGUMENTS, self.leave),
            Offered("say", f"Send a message as {self._agent} to another agent, or to all in the nexus.",
                    schema_of(("text",), text=TEXT, to=TEXT), self.say),
        ]  # fmt: skip

    def resources(self) -> list[Readable]:
        """Return the resources."""
        return []

    @property
    def instructions(self) -> str:
        """What a client's model is told of the server."""
        who = (
            ""
            if self._agent is None
            else (f" You live there as {self._agent!r}: observe, then act; enter a game, act in it, and leave it.")
        )
        return f"A nexus, where agents live between games.{who} Watch it with overview and events; talk to its agents."

    # --- watching ---------------------------------------------------------------------------------------

    async def overview(self, given: Arguments) -> Told:
        """Tell who is where."""
        found = await self._owner.overview()
        names = found["names"]
        lines = [f"{found['counts']['agents']} agents, {found['counts']['in_worlds']} of them in worlds."]
        for world in found["worlds"]:
            who = ", ".join(_stay(stay, names) for stay in world["stays"])
            lines.append(f"- {world['title']} ({world['id']}): {who or 'nobody'}")
        home = ", ".join(f"{agent['name']} ({agent['id']})" for agent in found["nexus"])
        lines.append(f"In the nexus: {home or 'nobody'}")
        lines += [f"Needs attention: {item['name']}: {item['what']}" for item in found["attention"]]
        return Told("\n".join(lines), {"counts": found["counts"], "seq": found["seq"]})

    async def events(self, given: Arguments) -> Told:
        """Tell what has happened."""
        found = await self._owner.log(agent=given.get("agent"), limit=given.get("limit", 20))
        told = [{"seq": event.seq, "kind": event.kind, "sentence": event.sentence} for event in found]
        return Told("\n".join(event.sentence for event in found) or "Nothing yet.", {"events": told})

    async def games(self, given: Arguments) -> Told:
        """Tell which games there are."""
        found = await self._owner.games()
        lines = [f"- {game.id}: {game.description} ({game.status})" for game in found]
        return Told(
            "\n".join(lines) or "No games are installed where the nexus runs.", {"games": [g.id for g in found]}
        )

    async def talk(self, given: Arguments) -> Told:
        """Talk to an agent."""
        answered = await self._owner.talk(str(given["agent"]), str(given["text"]))
        return Told(answered.text, {"how": answered.how})

    # --- living there -----------------------------------------------------------------------------------

    async def observe(self, given: Arguments) -> Told:
        """Show what the agent sees."""
        seen = await self._own.observation(self._me)
        space = await self._own.action_space(self._me)
        about = "" if seen.place == "nexus" else (await self._own.description(self._me)).strip() + "\n\n"
        text = f"{about}ACTIONS:\n{space.listed().to_text()}\n\n{seen.observation.to_text().strip()}"
        return Told(text, {"place": seen.place, "step": seen.observation.step})

    async def act(self, given: Arguments) -> Told:
        """Act as the agent."""
        parameters: Mapping[str, Any] = given.get("parameters") or {}
        result = await self._own.act(self._me, Action(str(given["action"]), dict(parameters)))
        gained = f" Reward: {result.reward:+g}." if result.reward else ""
        text = f"{result.message or 'Done.'}{gained}\n\n{result.observation.to_text().strip()}"
        content = {"success": result.success, "reward": result.reward, "done": result.done}
        return Told(text, content, failed=not result.success)

    async def enter(self, given: Arguments) -> Told:
        """Send the agent into a game."""
        goals: Sequence[str] = given.get("goals") or ()
        entered = await self._own.enter(self._me, str(given["game"]), goals=goals)
        seen = "" if entered.observation is None else entered.observation.to_text().strip()
        about = (await self._own.description(self._me)).strip()
        return Told(f"{about}\n\n{seen}", {"session": entered.session.id, "world": entered.session.world_id})

    async def leave(self, given: Arguments) -> Told:
        """Bring the agent back."""
        left = await self._own.leave(self._me)
        seen = "" if left.observation is None else left.observation.to_text().strip()
        items = [encode(item) for item in left.package.items]
        text = f"Left {left.session.game} after {left.session.steps} decisions with {len(items)} items.\n\n{seen}"
        return Told(text, {"steps": left.session.steps, "items": items})

    async def say(self, given: Arguments) -> Told:
        """Send a message as the agent."""
        recipients = await self._own.send(self._me, str(given["text"]), to=given.get("to"))
        return Told(f"Sent to {', '.join(recipients) or 'nobody: no other agent is in the nexus'}.", {"to": recipients})

    @property
    def _me(self) -> str:
        assert self._agent is not None, "the tools that need it are not offered without"
        return self._agent


def _stay(stay: Mapping[str, Any], names: Mapping[str, str]) -> str:
    doing = f", {stay['action']}" if stay.get("action") else ""
    return f"{names.get(stay['agent'], stay['agent'])} ({stay['agent']}{doing})"
