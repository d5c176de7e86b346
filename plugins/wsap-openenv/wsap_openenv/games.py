"""OpenEnv environments as games: `openenv:http://127.0.0.1:8000`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wsap_core.errors import PluginError, WorldError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.options import read_option
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line, strip_control
from wsap_core.worlds.legality import index_actions
from wsap_nexus.doors.foreign import checked
from wsap_openenv.connection import Connection, RefusedError
from wsap_openenv.plugin import DEFAULT, SEEDED, TIMEOUT
from wsap_openenv.telling import data_of, form_of, is_told, observed, space_of, told_of

# Any, in this module: JSON, and options.

_ABOUT = 3000
"""Maximum characters of a description."""


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of one environment."""
    address = str(options.get("url", DEFAULT))
    seeded = read_option(SEEDED, options.get(SEEDED.name, SEEDED.default))
    title = single_line(address.partition("://")[2] or address)[:80]
    return replace(spec, title=title, abilities=("seed",) if seeded else ())


def create(context: Context) -> OpenEnvGame:
    """Return the game of an environment.

    Raises:
        ConfigError: its address or another option is invalid.
        PluginError: no environment answers there, or it takes no action that can be described.
    """
    config = context.config
    seeded = bool(read_option(SEEDED, config.get(SEEDED.name, SEEDED.default)))
    timeout = float(read_option(TIMEOUT, config.get(TIMEOUT.name, TIMEOUT.default)))
    connection = Connection(str(config.get("url", DEFAULT)), timeout)
    try:
        return OpenEnvGame(connection, context.seed if seeded else None)
    except BaseException:
        connection.close()
        raise


class OpenEnvGame:
    """An environment as a game; with a seed, it is told the seeds of episodes."""

    def __init__(self, connection: Connection, seed: int | None) -> None:
        self._connection = connection
        self._seed, self._episode, self._steps, self.done = seed, 0, 0, False
        about = connection.metadata
        self._name = single_line(str(about.get("name") or "An OpenEnv environment"))[:100]
        schema = connection.schema.get("action")
        action: Mapping[str, Any] = schema if isinstance(schema, dict) else {}
        self._form = form_of(action)
        first = self._begun(seed)
        tools = connection.ask("step", {"type": "list_tools"}) if self._form == "tools" else {}
        listed = tools.get("observation")
        self.action_space: ActionSpace = space_of(
            self._form, action, listed.get("tools") if isinstance(listed, dict) else None, self._name
        )
        self._actions = index_actions(self.action_space)
        told = told_of(_observation(first), self._form)
        if told and not any(map(is_told, told.values())):
            raise PluginError(f"{self._name} shows pictures or other large arrays only; write an adapter.")
        self._seen = self._shown(first)

    @property
    def game_description(self) -> str:
        """What the environment says of itself."""
        about = self._connection.metadata
        told = str(about.get("description") or "") or str(about.get("readme_content") or "")
        return f"{self._name}. {strip_control(told)[:_ABOUT]}".strip()

    def reset(self, seed: int | None = None) -> Observation:
        """Start an episode of the seed, or the next one."""
        if seed is not None and self._seed is not None:
            self._seed, self._episode = seed, 0
            chosen: int | None = seed
        else:
            self._episode += 1
            chosen = None if self._seed is None else derive_seed(self._seed, "openenv", self._episode)
        self._steps, self.done = 0, False
        self._seen = self._shown(self._begun(chosen))
        return self._seen

    def observe(self) -> Observation:
        """Return the state."""
        return self._seen

    def act(self, action: Action) -> ActionResult:
        """Take a step."""
        action, refused = checked(action, self._actions, self._seen, done=self.done)
        if refused is not None:
            return refused
        try:
            told = self._connection.ask("step", data_of(self._form, action))
        except RefusedError as error:
            return ActionResult(False, str(error), observation=self._seen)
        self._steps += 1
        self.done = told.get("done") is True
        reward, metadata = told.get("reward"), told.get("metadata")
        self._seen = self._shown(told)
        inner = _observation(told)
        said = inner.get("message")
        words = single_line(said)[:500] if isinstance(said, str) else ""
        return ActionResult(
            inner.get("success") is not False,
            words or (f"Reward: {reward:g}." if isinstance(reward, int | float) and reward else "Done."),
            float(reward) if isinstance(reward, int | float) else 0.0,
            done=self.done,
            observation=self._seen,
            truncated=self.done and isinstance(metadata, dict) and metadata.get("truncated") is True,
        )

    def close(self) -> None:
        """Leave the environment."""
        self._connection.close()

    def _begun(self, seed: int | None) -> Mapping[str, Any]:
        try:
            return self._connection.ask("reset", {} if seed is None else {"seed": seed})
        except RefusedError as error:
            raise WorldError(f"{self._name} starts no episode: {error}") from error

    def _shown(self, told: Mapping[str, Any]) -> Observation:
        return observed(_observation(told), self._form, self.action_space, self._steps, done=self.done)


def _observation(told: Mapping[str, Any]) -> Mapping[str, Any]:
    seen = told.get("observation")
    return seen if isinstance(seen, dict) else {}
