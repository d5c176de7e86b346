"""What becomes of agents when something fails: who is paused, and who comes home from what is no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsap_core.errors import SnapshotError, WorldError, WsapError
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.catalog import codec_of
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.inner_life import Life
from wsap_nexus.hub.mishaps import bring_home, last_state, logged_deeds
from wsap_nexus.hub.recovery import last_good_state
from wsap_nexus.hub.stay import Deeds, Stay
from wsap_nexus.runs.run import Run
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.events import AgentFailed
from wsap_nexus.store.events.endings import FAILED, WORLD_FAILED


class Homecoming:
    """Brings agents of a nexus home without their world's help, and holds failures against games.

    Args:
        context: of the nexus.
        life: keeps what agents remember.
    """

    def __init__(self, context: HubContext, life: Life) -> None:
        self._context = context
        self._life = life

    async def table_failed(
        self, run: Run, stays: Mapping[str, Stay], error: Exception, state: bytes | None, leaving: bool
    ) -> None:
        """See to it that nobody is stuck: pause the agent that failed, or bring all home from a world that did."""
        deeds = {stay.session.id: stay.deeds for stay in stays.values()}
        sessions = [stay.session for stay in stays.values()]
        alone = next(iter(stays.values())) if len(run.plan.seats) == 1 else None
        culprit = None if leaving else stays.get(run.failed_seat or "") or alone
        if isinstance(error, WsapError) and not isinstance(error, WorldError) and culprit:
            self.agent_failed(culprit.session.agent_id, error, culprit.session)
            if len(stays) > 1 and culprit.controls.paused:
                # It was to stand still while the others go on, and can't do even that.
                self.bring_home(sessions, str(error), reason=FAILED, deeds=deeds, seconds=run.summary().seconds)
            return
        if alone is not None:
            state = await self.last_good(alone.session) or state
        self.world_failed(
            sessions, sessions[0].world_id, error, state=state, deeds=deeds, seconds=run.summary().seconds
        )

    def agent_failed(self, agent_id: str, error: WsapError, session: SessionRecord | None = None) -> None:
        """Pause an agent that failed, or whose model did; where it is, it goes on once it is resumed."""
        with self._context.ledger.change() as book:
            book.update_agent(agent_id, state="paused")
            game, stay = (session.game, session.id) if session else (None, None)
            book.note(AgentFailed(agent_id=agent_id, game=game, session_id=stay, error=str(error), code=error.code))

    def world_failed(
        self,
        sessions: Sequence[SessionRecord],
        world_id: str,
        error: Exception,
        *,
        state: bytes | None = None,
        deeds: Mapping[str, Deeds] | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Bring all home from a world that failed, and hold it against the game."""
        self.bring_home(sessions, str(error), state=state, deeds=deeds, seconds=seconds)
        known = isinstance(error, SnapshotError) or (isinstance(error, WorldFailedError) and error.counted)
        if not known:
            self._context.standings.count(sessions[0].game, world_id, error)

    def bring_home(
        self,
        sessions: Sequence[SessionRecord],
        error: str,
        *,
        reason: str = WORLD_FAILED,
        state: bytes | None = None,
        deeds: Mapping[str, Deeds] | None = None,
        seconds: float = 0.0,
    ) -> list[SessionRecord]:
        """Close sessions of one run without asking their world, and return them closed."""
        run_id, game = sessions[0].run_id, sessions[0].game
        self._context.store.writer.flush()
        repository = self._context.store.repository
        try:
            spec = self._context.catalog.spec(game)
        except WsapError:
            spec = AdapterSpec(game, "", "")  # it is not installed any more
        if state is None:
            state = last_state(repository, run_id)
        closed = []
        with self._context.ledger.change() as book:
            for session in sessions:
                if book.session(session.id).closed is not None:
                    continue
                done = (deeds or {}).get(session.id) or logged_deeds(repository, run_id, session.agent_id)
                closed.append(
                    bring_home(
                        book, session, spec, deeds=done, reason=reason, error=error, state=state, seconds=seconds
                    )
                )
                self._life.keep_mind(book, session)
        for session in closed:
            self._life.came_back(session)
            self._context.live.leaving.tell(session.agent_id, session)
        return closed

    async def last_good(self, session: SessionRecord) -> bytes | None:
        """Return the state of an agent's own world after its last recorded step, None where it can't be had."""
        self._context.store.writer.flush()
        with self._context.ledger.look() as book:
            record = book.world(session.world_id)
        try:
            spec = self._context.catalog.spec(session.game)
            codec = codec_of(spec)
        except WsapError:
            return None
        return await last_good_state(
            lambda: self._context.make_world(spec, record),
            self._context.store.repository,
            session.run_id,
            seat=session.agent_id,
            seed=record.seed,
            codec=codec,
        )

    def stuck(self, agent_id: str) -> SessionRecord | None:
        """Return the open session of an agent that nobody plays now, because the agent is paused."""
        if agent_id in self._context.live.stays:
            return None
        with self._context.ledger.look() as book:
            session_id = book.agent(agent_id).session_id
            session = None if session_id is None else book.session(session_id)
        if session is None or session.run_id in self._context.live.run_tasks or self._context.live.is_active(agent_id):
            return None
        return session

    def fetch_home(self, agent_id: str, reason: str, state: bytes | None = None) -> SessionRecord | None:
        """Bring an agent home whose world nobody plays in now; None if that is not so."""
        stuck = self.stuck(agent_id)
        return None if stuck is None else next(iter(self.bring_home([stuck], "", reason=reason, state=state)), None)
