"""Routes of passes, with which others watch one world or one agent, or play as one agent."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field

from wsap_core.errors import UsageError
from wsap_core.protocol.wire import encode
from wsap_core.untrusted import single_line
from wsap_nexus.agents.portable import check_not_removed
from wsap_nexus.dashboard.key import OneTimeKey
from wsap_nexus.http import replies as bodies
from wsap_nexus.http.access.auth import Holder, Tokens
from wsap_nexus.http.access.callers import BEARER, Admin, TokenStore
from wsap_nexus.http.access.guard import HOLDER
from wsap_nexus.http.refusals import ForbiddenError, TooSlowError, UnauthorizedError
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import responses, turns, watched
from wsap_nexus.server.bodies.requests import ActRequest
from wsap_nexus.server.deps import Once, replies
from wsap_nexus.server.routes.worlds import view_of
from wsap_nexus.server.seats import check_external, idempotent_act, the_agent
from wsap_nexus.server.serializers import json_response
from wsap_nexus.server.turns import After, turn_of
from wsap_nexus.store.entities import PassRecord
from wsap_nexus.store.events import Names

router = APIRouter(tags=["nexus"])

ANSWER_WITHIN = 60.0
"""Seconds within which an agent answers it."""
PassId = Annotated[str, Path(pattern=r"^pass-[0-9]{1,12}$")]


class NewPass(bodies.Request):
    """What a pass opens, and for how long."""

    scope: Literal["world", "agent", "seat"]
    """A world or an agent to watch; with `seat` its holder plays as the agent."""
    target: str = Field(min_length=1, max_length=200)
    """The id of the world, or of the agent, which is watched, or played, in whatever world it is."""
    hours: float = Field(default=24.0, gt=0, le=24 * 90)
    """Hours until it expires."""
    talks: bool = False
    """Whether its holder may talk to the agent; each message may cost a call of its model."""
    page: str = Field(default="", max_length=300, pattern=r"^(https?://[^\s#]+)?$")
    """The address of the page as others reach it, to get the address of the pass and its QR code."""


class NewWords(bodies.Request):
    """A message of the holder of a pass to the agent."""

    text: str = Field(min_length=1, max_length=500)


# --- for the owner --------------------------------------------------------------------------


@router.post("/passes", responses=replies(watched.NewPassAnswer, 201))
async def new_pass(nexus: Hub, request: Request, wanted: NewPass, by: Admin, tokens: TokenStore) -> Response:
    """Make a pass: a token that opens only what is under `/nexus/pass`, until it expires or is taken back."""
    if wanted.talks and wanted.scope != "agent":
        raise UsageError(f"With a pass for a {wanted.scope} nobody is talked to; make one for the agent.")
    with nexus.nexus_store.look() as tx:
        if wanted.scope == "world":
            tx.world(wanted.target)
        else:
            check_not_removed(tx, wanted.target)
            if wanted.scope == "seat" and not any(p.external for p in tx.agent(wanted.target).policies.values()):
                raise UsageError(f"{wanted.target!r} decides by itself; only an agent that is external can be played.")
    made, token = tokens.share(wanted.scope, wanted.target, talks=wanted.talks, seconds=wanted.hours * 3600)
    address = f"{wanted.page}#pass={token}" if wanted.page else ""
    told = {"made": encode(made), "token": token, "host": request.app.state.host, "address": address}
    return bodies.answer({**told, "qr": _qr(address) if address else ""}, 201)


@router.get("/passes", responses=replies(watched.PassList))
async def passes(nexus: Hub, by: Admin) -> Response:
    """The passes that are valid now, newest first, without their tokens."""
    with nexus.nexus_store.look() as tx:
        return json_response({"passes": [encode(one) for one in tx.passes()]})


@router.delete("/passes/{pass_id}", responses=replies(watched.PassList))
async def take_back(nexus: Hub, pass_id: PassId, by: Admin) -> Response:
    """Take a pass back at once; the passes that are left."""
    with nexus.nexus_store.change() as tx:
        tx.revoke_pass(pass_id)
        return json_response({"passes": [encode(one) for one in tx.passes()]})


@router.post("/key", responses=replies(watched.KeyAnswer))
async def new_key(request: Request, by: Admin) -> Response:
    """Make a new one-time key, which unlocks the page with the owner's token; the one before becomes invalid."""
    state = request.app.state
    state.one_time_key = state.one_time_key or OneTimeKey()
    return bodies.answer({"fragment": state.one_time_key.renew(), "host": state.host})


def _qr(address: str) -> str:
    # Deferred for weight.
    import segno

    return str(segno.make(address, micro=False).png_data_uri(scale=5, border=4))


# --- what a pass opens ------------------------------------------------------------------------------


async def _holder(request: Request, _: Annotated[object, Depends(BEARER)]) -> PassRecord:
    holder: Holder | None = request.scope.get(HOLDER)
    if holder is None:
        raise UnauthorizedError("This needs a pass: send the header Authorization: Bearer PASS.")
    return holder.shown


Shown = Annotated[PassRecord, Depends(_holder)]


async def _player(shown: Shown) -> PassRecord:
    if shown.scope != "seat":
        raise ForbiddenError("With this pass you can watch, but not play.")
    return shown


Seat = Annotated[PassRecord, Depends(_player)]
"""A pass for a seat."""


def _check_again(request: Request, tokens: Tokens) -> None:
    """Refuse a pass that was taken back, or has expired, while its holder waited for the reply."""
    tokens.check(request.headers.get("authorization"))


@router.get("/pass", responses=replies(watched.PassAnswer))
async def pass_of_caller(nexus: Hub, shown: Shown) -> Response:
    """What the caller's pass opens, until when, and who is in that world now."""
    with nexus.nexus_store.look() as tx:
        world = _world_of(nexus, shown)
        here = sorted(s.session.agent_id for s in nexus.live.sessions.values() if s.session.world_id == world)
        names = Names(tx.names_of([*here, shown.target]))
        game = None if world is None else tx.world(world).game
    title = next((info.name for info in nexus.entrance.games() if info.id == game), game or "")
    title = single_line(title)[:80]
    return json_response(
        {
            "scope": shown.scope,
            "target": shown.target,
            "name": title if shown.scope == "world" else names.who(shown.target),
            "title": title,
            "talks": shown.talks,
            "expires": shown.expires,
            "agents": [names.who(agent) for agent in here],
        }
    )


@router.get("/pass/view", responses={**replies(watched.WorldView), 304: {"description": "It has not changed."}})
async def pass_view(nexus: Hub, request: Request, shown: Shown) -> Response:
    """The current view of the world that the pass shows; of an agent's pass, where the agent is."""
    if shown.scope == "seat":
        raise ForbiddenError("With this pass you play; you see what your seat sees: GET /nexus/pass/turn.")
    world = _world_of(nexus, shown)
    if world is None:
        return json_response({"view": None, "remark": "At home, between games."})
    return await view_of(nexus, request, world, private=False)


@router.post("/pass/talk", responses=replies(watched.PassTalk))
async def pass_talk(nexus: Hub, request: Request, said: NewWords, shown: Shown, tokens: TokenStore) -> Response:
    """Say something to the agent of the pass, and return its answer; once in five seconds."""
    if not shown.talks:
        raise ForbiddenError("With this pass you can watch, but not talk.")
    with nexus.nexus_store.look() as tx:
        check_not_removed(tx, shown.target)
    request.app.state.messages.take(shown.id)
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            answered = await nexus.agent_context.words.talk(shown.target, said.text)
    except TimeoutError:
        raise TooSlowError("It did not answer within a minute; try again.") from None
    _check_again(request, tokens)
    return bodies.answer({"text": answered.text, "how": answered.how})


@router.get("/pass/turn", responses=replies(turns.Turn, 200, 202))
async def pass_turn(
    nexus: Hub, request: Request, seat: Seat, tokens: TokenStore, wait: bodies.Wait = 10.0, after: After = ""
) -> Response:
    """The next turn of the agent that the holder of the pass plays as; 202 if it has nothing to decide in time."""
    reply = await turn_of(nexus, seat.target, wait, after)
    _check_again(request, tokens)
    return reply


@router.post("/pass/act", responses=replies(responses.Acted, 200, 202))
async def pass_act(
    nexus: Hub,
    request: Request,
    seat: Seat,
    tokens: TokenStore,
    action: ActRequest,
    key: bodies.Key = None,
    wait: bodies.Wait = 10.0,
) -> Response:
    """Take an action as that agent; 202 if it is not resolved in time: repeat the request with the same key."""
    check_external(nexus, the_agent(nexus, seat.target))
    once = Once(request.app.state.idempotency, seat.id, key, wait)
    wanted = idempotent_act(nexus, seat.target, action, seat.target)
    reply = await once.reply(wanted, "The action is being resolved; repeat the request with the same key.")
    _check_again(request, tokens)
    return reply


def _world_of(nexus: Nexus, shown: PassRecord) -> str | None:
    """Return the world that a pass shows now; None while its agent is at home."""
    if shown.scope == "world":
        return shown.target
    stay = nexus.live.sessions.get(shown.target)
    return None if stay is None else stay.session.world_id
