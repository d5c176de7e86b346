"""The repository of meta-goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from wsap_nexus.store.entities import GoalRecord
from wsap_nexus.store.repositories.log import EventRepository
from wsap_nexus.store.tables import METADATA

_GOAL = METADATA.tables["metagoal"]


class GoalRepository(EventRepository):
    """Reads and writes meta-goals."""

    def goals(self, agent_id: str, *states: str) -> list[GoalRecord]:
        """Return an agent's goals, ordered by id: all, or those in the given states."""
        query = select(_GOAL).where(_GOAL.c.agent_id == agent_id).order_by(_GOAL.c.id)
        if states:
            query = query.where(_GOAL.c.state.in_(states))
        return self._all(GoalRecord, query)

    def all_goals(self) -> list[GoalRecord]:
        """Return the goals of all agents."""
        return self._all(GoalRecord, select(_GOAL).order_by(_GOAL.c.agent_id, _GOAL.c.id))

    def put_goal(self, agent_id: str, goal_id: str, *, state: str, since: int, data: Mapping[str, Any]) -> None:
        """Store a goal, in place of an earlier one of that id. Any: JSON."""
        values = {"state": state, "since": since, "data": dict(data)}
        self._put(_GOAL, {"agent_id": agent_id, "id": goal_id}, changed=values, new=values)

    def change_active_goal(self, agent_id: str, goal_id: str, **values: Any) -> bool:
        """Change columns of a goal if it is active, and return whether it was."""
        where = (_GOAL.c.agent_id == agent_id) & (_GOAL.c.id == goal_id) & (_GOAL.c.state == "active")
        return self._update(_GOAL, where, **values) == 1
