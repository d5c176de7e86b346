"""The town as something to look at: who is who, as far as it is known, and what was said and happened."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from wsap_core.protocol import ChatBlock, ChatLine, SeatsBlock, TextBlock, View
from wsap_core.protocol.wire import dumps
from wsap_core.seams.context import Context
from wsap_tossim.engine.data.model import Phase
from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import random_choice
from wsap_tossim.engine.setups import setup
from wsap_tossim.knowledge import Knowledge, Seen, seen_by
from wsap_tossim.perception.observation import TownObservation, news_of
from wsap_tossim.perception.pictures import lines_of, town_view
from wsap_tossim.verbs import to_action
from wsap_tossim.world import create

NAMES = ("Ann", "Bob", "Cid", "Dora", "Eve")


def at(day: int, phase: str, kind: str, **data: Any) -> Seen:
    return Seen(day, phase, kind, data)


def told(*events: Seen, me: int | None = None) -> list[str]:
    return [
        f"{line.speaker}{f' [{line.channel}]' if line.channel else ''}: {line.text}"
        for line in lines_of(events, NAMES, me)
    ]


def known(*events: Seen, me: int | None = None) -> Knowledge:
    rules: Mapping[str, Any] = {"trials_a_day": 3}
    start = at(1, "discussion", "begins", players=5, rules=rules, mode="five", slots=())
    return Knowledge(me).take_all((start, *events))


def table_of(view: View) -> SeatsBlock:
    return next(block for block in view.blocks if isinstance(block, SeatsBlock))


def seated(view: View) -> list[tuple[str, str, str, str]]:
    return [(seat.name, seat.state, seat.note, seat.badge) for seat in table_of(view).seats]


def death(player: int, role: str | None, *, day: int = 1) -> Seen:
    return at(day, "night", "death", player=player, causes=["the Mafia"], role=role, when="night")


def test_the_table_tells_who_died_as_what_who_votes_for_whom_and_nothing_of_the_others() -> None:
    vote = at(2, "nomination", "vote", player=0, target=3, weight=1, needed=3)
    view = town_view(known(death(1, "Doctor"), death(2, None), vote), NAMES)
    assert seated(view) == [
        ("Ann", "in", "", ""),
        ("Bob", "out", "Doctor, day 1", ""),
        ("Cid", "out", "nobody knows what, day 1", ""),
        ("Dora", "in", "", ""),
        ("Eve", "in", "", ""),
    ]
    table = table_of(view)
    assert list(table.links) == [("Ann", "Dora", "vote")]
    assert (table.centre, table.dark) == ("", False)


def test_the_accused_is_marked_until_the_trial_is_over() -> None:
    trial = (at(2, "nomination", "trial", player=3, number=1), at(2, "defense", "phase", name="defense"))
    accused = town_view(known(*trial), NAMES)
    assert seated(accused)[3] == ("Dora", "in", "", "on trial")
    assert (table_of(accused).centre, table_of(accused).phase) == ("Dora", "defense")
    assert table_of(accused).alt == "Day 2, defense, 5 of 5 alive. Dora is on trial."
    over = town_view(known(*trial, at(2, "nomination", "phase", name="nomination")), NAMES)
    assert seated(over)[3] == ("Dora", "in", "", "")
    assert table_of(over).centre == ""


def test_the_table_says_which_part_of_the_day_it_is_and_is_dark_at_night() -> None:
    day = table_of(town_view(known(at(2, "discussion", "phase", name="discussion")), NAMES))
    assert list(day.phases) == ["discussion", "nomination", "defense", "judgement", "last words", "night"]
    assert (day.phase, day.dark) == ("discussion", False)
    for part in ("dusk", "talk at night", "night"):  # which of them it is, is secret
        night = table_of(town_view(known(at(1, "night", "phase", name=part)), NAMES))
        assert (night.phase, night.dark, night.alt) == ("night", True, "Night 1, 5 of 5 alive.")
    over = at(3, "over", "over", winners=[0], side="the Town", factions={}, reason="All evil is dead.")
    end = table_of(town_view(known(at(2, "night", "phase", name="night"), over), NAMES))
    assert (end.phase, end.dark) == ("", False)


def test_votes_are_counted_in_words() -> None:
    votes = [at(2, "nomination", "vote", player=p, target=t, weight=1, needed=3) for p, t in ((0, 3), (1, 3), (2, 4))]
    table = table_of(town_view(known(at(2, "nomination", "phase", name="nomination"), *votes), NAMES))
    assert table.alt == "Day 2, nomination, 5 of 5 alive. 2 votes against Dora. 1 vote against Eve."
    assert [link[:2] for link in table.links] == [("Ann", "Dora"), ("Bob", "Dora"), ("Cid", "Eve")]


def test_the_title_tells_the_day_and_how_many_live() -> None:
    morning = at(2, "discussion", "phase", name="discussion")
    assert town_view(known(death(1, "Doctor"), morning), NAMES).title == "Day 2, discussion, 4 of 5 alive"
    assert town_view(known(at(1, "night", "phase", name="dusk")), NAMES).title == "Night 1, 5 of 5 alive"


def test_at_the_end_all_see_who_was_what_and_who_won() -> None:
    over = at(3, "over", "over", winners=[0, 4], side="the Town", factions={}, reason="All evil is dead.")
    truth = at(3, "over", "truth", roles=[], final=["Sheriff", "Doctor", "Mafioso", "Jester", "Citizen"])
    view = town_view(known(death(2, None), over, truth), NAMES)
    assert view.blocks[0] == TextBlock("All evil is dead. Winners: Ann and Eve.", "The game is over")
    assert seated(view) == [
        ("Ann", "in", "Sheriff", "won"),
        ("Bob", "in", "Doctor", ""),
        ("Cid", "out", "Mafioso, day 1", ""),
        ("Dora", "in", "Jester", ""),
        ("Eve", "in", "Citizen", "won"),
    ]


def test_a_player_sees_itself_what_it_alone_knows_and_where_the_day_stands() -> None:
    role = at(1, "discussion", "role", player=1, role="Sheriff", mates={}, target=None)
    found = at(1, "night", "result", player=1, verb="interrogate", target=2, suspicious=True)
    view = town_view(known(role, found, at(2, "discussion", "phase", name="discussion"), me=1), NAMES)
    assert view.blocks[0] == TextBlock("You are Bob, the Sheriff. The town discusses; nobody can vote yet.")
    assert seated(view)[1] == ("Bob", "in", "you, Sheriff", "")
    alone, chat = (block for block in view.blocks if isinstance(block, ChatBlock))
    assert (alone.title, list(alone.lines)) == (
        "What you alone know",
        [ChatLine("Night 1", "Cid is suspicious.")],
    )
    assert [(line.channel, line.text) for line in chat.lines] == [
        ("to you alone", "Cid is suspicious."),
        ("", "Day 2 begins. Nobody died last night."),
    ]


def test_mates_stand_in_the_table_and_a_target_among_what_one_alone_knows() -> None:
    mafioso = at(1, "discussion", "role", player=1, role="Mafioso", mates={"3": "Godfather"}, target=None)
    view = town_view(known(mafioso, me=1), NAMES)
    assert [note for _, _, note, _ in seated(view)] == ["", "you, Mafioso", "", "Godfather", ""]
    assert [block.title for block in view.blocks if isinstance(block, ChatBlock)] == ["Lately"]
    hunter = at(1, "discussion", "role", player=1, role="Executioner", mates={}, target=4)
    alone = next(b for b in town_view(known(hunter, me=1), NAMES).blocks if isinstance(b, ChatBlock))
    assert list(alone.lines) == [ChatLine("You", "Your target is Eve.")]


def test_a_player_is_told_what_its_role_does_when_it_can_do_it() -> None:
    role = at(1, "discussion", "role", player=1, role="Sheriff", mates={}, target=None)
    summary = "You question one player each night and learn whether it is suspicious."
    day, night = at(2, "discussion", "phase", name="discussion"), at(2, "night", "phase", name="dusk")
    for events, told_so in (((role,), True), ((role, day), False), ((role, day, night), True)):
        first = town_view(known(*events, me=1), NAMES).blocks[0]
        assert isinstance(first, TextBlock)
        assert (summary in first.text) is told_so


def test_days_and_nights_are_told_and_whether_somebody_died() -> None:
    dusk, morning = at(1, "night", "phase", name="dusk"), at(2, "discussion", "phase", name="discussion")
    fell = "Town: Night 1 falls."
    assert told(dusk, morning) == [fell, "Town: Day 2 begins. Nobody died last night."]
    died = "Town: Last night, Bob was attacked and killed by the Mafia. Role: Doctor."
    assert told(dusk, death(1, "Doctor"), morning) == [fell, died, "Town: Day 2 begins."]
    assert told(at(1, "discussion", "phase", name="discussion")) == []


def test_a_whisper_is_told_with_its_words_to_those_who_heard_it_and_else_without() -> None:
    outside = at(1, "discussion", "whispered", player=0, to=1)
    inside = at(1, "discussion", "whisper", player=0, to=1, text="Trust me.")
    assert told(outside) == ["Town: Ann whispers to Bob."]
    assert told(inside, me=1) == ["Ann [to you]: Trust me."]
    assert told(outside, inside) == ["Ann [to Bob]: Trust me."]


def test_all_verdicts_of_a_trial_are_one_line() -> None:
    judged = [(0, "guilty"), (1, "guilty"), (2, "innocent"), (4, "abstain")]
    events = [at(2, "judgement", "verdict", player=p, verdict=v, weight=1) for p, v in judged]
    assert told(*events) == ["Town: Guilty: Ann and Bob; innocent: Cid; abstaining: Eve."]


def test_onlookers_who_may_see_everything_are_told_whom_a_secret_was_told() -> None:
    found = at(1, "night", "result", player=1, verb="interrogate", target=2, suspicious=False)
    felt = at(1, "night", "told", player=4, code="healed")
    jailed = at(1, "night", "jailed", player=3)
    said = at(1, "night", "said", channel="mafia", player=2, text="Ann tonight.")
    assert told(found, felt, jailed, said) == [
        "Town [to Bob alone]: Cid is not suspicious.",
        "Town [to Eve alone]: You were attacked, and healed.",
        "Town [in secret]: Dora is taken into jail.",
        "Cid [the Mafia]: Ann tonight.",
    ]


def test_a_seat_shows_what_is_new_to_it() -> None:
    news = (at(1, "night", "told", player=1, code="healed"), death(4, "Jester"))
    view = TownObservation(names=NAMES, player=1, news=news_of(news)).to_view()
    (chat,) = view.blocks
    assert isinstance(chat, ChatBlock)
    assert [line.text for line in chat.lines] == [
        "You were attacked, and healed.",
        "Last night, Eve was attacked and killed by the Mafia. Role: Jester.",
    ]


def played(seed: int) -> Game:
    game, rng = Game(setup("five"), rule_set("quick"), seed), random.Random(seed)
    while not game.over and not (game.votes and any(not p.alive for p in game.state.players)):
        game.carry_out({p: random_choice(game, p, rng, talk=True) for p in game.waiting})
    return game


def test_all_roles_are_shown_to_onlookers_who_may_see_them_and_to_no_others() -> None:
    game = next(g for g in map(played, range(50)) if g.votes and not g.over)
    public = Knowledge(None).take_all(seen_by(None, game.log))
    hidden = [note for _, _, note, _ in seated(town_view(public, NAMES))]
    shown = [note for _, _, note, _ in seated(town_view(public, NAMES, game))]
    for player, without, with_secrets in zip(game.state.players, hidden, shown, strict=True):
        assert player.role.name in with_secrets
        assert player.alive is (without == "")


def test_who_has_the_floor_is_told_by_day_and_who_is_asked_at_night_is_not() -> None:
    town, rng = create(Context(3, config={"mode": "five", "rules": "quick"})), random.Random(3)
    seen = set()
    while not town.game.over:
        game, table = town.game, table_of(town.render())
        turns = [seat.who for seat in table.seats if seat.turn]
        if game.state.phase in (Phase.DISCUSSION, Phase.NOMINATION, Phase.DEFENSE, Phase.LAST_WORDS):
            assert turns == [town.seats[game.waiting[0]]]
        else:
            assert turns == []
        seen.add(str(game.state.phase))
        moves = {p: random_choice(game, p, rng, talk=True) for p in game.waiting}
        town.apply({town.seats[p]: to_action(choice, town.names) for p, choice in moves.items()})
    assert {"discussion", "nomination", "night"} <= seen


def test_all_that_spectators_of_a_game_see_before_its_end_names_no_role_of_the_living() -> None:
    for seed in range(5):
        town, rng = create(Context(seed, config={"mode": "seven", "rules": "quick"})), random.Random(seed)
        while not town.game.over:
            told = dumps(table_of(town.render()))
            known_by_all = {p.role.name for p in town.game.state.players if not p.alive or p.revealed}
            for role in {p.role.name for p in town.game.state.players if p.alive} - known_by_all:
                assert role not in told, (role, told)
            moves = {p: random_choice(town.game, p, rng) for p in town.game.waiting}
            town.apply({town.seats[p]: to_action(choice, town.names) for p, choice in moves.items()})
