"""Commands: `CommandInput` (seed 001, section 4), the parameters of each command, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator

from wsap_core.errors import WireError
from wsap_core.untrusted import single_line
from wsap_tes3mp.protocol import errors
from wsap_tes3mp.protocol.perception import Moment, Name, Number, Payload


class MoveTo(Payload):
    """Move to coordinates or (1.0.1) to an entity."""

    target_cell: Name | None = None
    target_x: Number | None = None
    target_y: Number | None = None
    target_z: Number | None = None
    target_entity_id: Name | None = None

    @model_validator(mode="after")
    def _one_target(self) -> MoveTo:
        by_place = self.target_cell is not None or self.target_x is not None or self.target_y is not None
        if by_place == (self.target_entity_id is not None):
            raise ValueError("give either a place (target_cell, target_x, target_y) or target_entity_id")
        if (self.target_x is None) != (self.target_y is None):
            raise ValueError("target_x and target_y go together")
        return self


class Interact(Payload):
    """Talk to, activate, take, open, loot, read."""

    entity_id: Name
    interaction_type: Name = "activate"


class UseItem(Payload):
    """Use an item from the inventory, on `target_entity_id` if given."""

    item_id: Name
    target_entity_id: Name | None = None


class Wait(Payload):
    """Do nothing for a while."""

    duration_seconds: Annotated[float, Field(ge=0, le=86400)]


class CombatAction(Payload):
    """Fight."""

    action_type: Name
    target_entity_id: Name


class Dialogue(Payload):
    """Bring up a topic, or pick one of the offered choices by index from 0."""

    entity_id: Name
    topic: Name | None = None
    choice_idx: Annotated[int, Field(ge=0, le=1000)] | None = None

    @model_validator(mode="after")
    def _something(self) -> Dialogue:
        if self.topic is None and self.choice_idx is None:
            raise ValueError("give topic or choice_idx")
        return self


class JournalNote(Payload):
    """Record an observation in the journal."""

    content: Annotated[str, Field(min_length=1, max_length=10_000)]
    tags: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=100)], ...], Field(max_length=50)] = ()


class Noop(Payload):
    """Let one heartbeat pass without acting."""


PARAMS: Mapping[str, type[Payload]] = {
    "move_to": MoveTo,
    "interact": Interact,
    "use_item": UseItem,
    "wait": Wait,
    "combat_action": CombatAction,
    "dialogue": Dialogue,
    "journal_note": JournalNote,
    "noop": Noop,
}
"""Command -> its parameters, in the seed's order."""
UNHINDERED = frozenset({"noop", "journal_note"})
"""Commands accepted while another command of the same agent is running."""


class CommandContext(Payload):
    """The perception a decision was based on, and whatever else the client wants to be logged."""

    model_config = ConfigDict(extra="allow")

    perception_timestamp: Moment | None = None
    heartbeat_cycle: Annotated[int, Field(ge=0)] | None = None
    perception_sequence: Annotated[int, Field(ge=0)] | None = None
    """1.1.0"""


class CommandInput(Payload):
    """One action that an agent wants to take."""

    protocol_version: str = errors.PROTOCOL_VERSION
    timestamp: Moment
    agent_id: Name
    command: str
    params: Mapping[str, Any]
    """Any: JSON; see `PARAMS`."""
    reasoning: Annotated[str, Field(max_length=20_000)]
    episode_id: Name | None = None
    context: CommandContext | None = None

    @classmethod
    def read(cls, raw: JsonValue) -> CommandInput:
        """Return a command received as JSON; its parameters are not checked yet.

        Raises:
            SchemaMismatchError, InvalidCommandError: see `parameters`.
            PayloadError: anything else is invalid.
        """
        if not isinstance(raw, dict):
            raise errors.PayloadError("A command is a JSON object; see the reference of the protocol.")
        _must_be_known(raw.get("protocol_version"), raw.get("command"))
        if raw.get("protocol_version") is None:
            raise errors.PayloadError("The command can't be read: protocol_version: Field required.")
        try:
            return cls.exactly(raw).model_copy(update={"params": raw["params"]})  # 2.0 is logged as 2.0
        except (ValidationError, WireError) as error:
            raise errors.PayloadError(f"The command can't be read: {errors.first_problem(error)}.") from error

    def parameters(self) -> Payload:
        """Return the parameters, validated.

        Raises:
            SchemaMismatchError: a newer major version.
            InvalidCommandError: an unknown command.
            PayloadError: invalid parameters.
        """
        _must_be_known(self.protocol_version, self.command)
        try:
            return PARAMS[self.command].exactly(dict(self.params))
        except (ValidationError, WireError) as error:
            raise errors.PayloadError(
                f"The parameters of {self.command} don't fit: {errors.first_problem(error)}."
            ) from error


def _must_be_known(version: object, command: object) -> None:
    if isinstance(version, str):
        errors.check_version(version, where="command")
    if isinstance(command, str) and command not in PARAMS:
        told = f"There is no command {single_line(command)[:80]!r}; there are: {', '.join(PARAMS)}."
        raise errors.InvalidCommandError(told, {"commands": list(PARAMS)})


class CommandAccepted(Payload):
    """The body of the seed's 202 response."""

    status: Literal["accepted"] = "accepted"
    command_id: Name
    logged: bool = True


CommandState = Literal["rejected", "accepted", "dispatched", "confirmed", "failed", "unknown"]
"""The state of a command. The last three are final, and so is `rejected`: it was never accepted."""
FINAL = frozenset({"rejected", "confirmed", "failed", "unknown"})


class Outcome(Payload):
    """1.1.0: the state of a command and its result."""

    command_id: Name
    agent_id: Name
    state: CommandState
    message: str = ""
    """One sentence for the agent: what was done, or why not."""
    code: str | None = None
    """The failure code, such as `OUT_OF_REACH`."""
    sequence: int | None = None
    """Perceptions from this sequence number on show the result."""
    data: Mapping[str, Any] = Field(default_factory=dict)
    """Engine-specific. Any: JSON."""
