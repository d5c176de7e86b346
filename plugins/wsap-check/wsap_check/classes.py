"""The conformance suite as pytest classes, driven by fixtures. The only part of it that needs pytest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from wsap_check.agents import AGENT_CHECKS, AgentSubject
from wsap_check.subject import Check, Subject
from wsap_check.suite import CHECKS
from wsap_core.errors import UsageError
from wsap_core.references import Given, load_adapter_spec, load_agent_spec
from wsap_core.specs import AdapterSpec

_GAME = {check.name: check for check in CHECKS}
_AGENT = {check.name: check for check in AGENT_CHECKS}


def _hold(check: Check[Any], subject: object) -> None:
    """Fail, warn or skip as one check does. Any: a check of games or of agents."""
    outcome = check.run(subject)
    if outcome.status == "skipped":
        pytest.skip(outcome.reason)
    errors = [finding.to_text() for finding in outcome.findings if finding.severity == "error"]
    if errors:
        pytest.fail(f"{check.name}: {check.summary}\n" + "\n".join(errors), pytrace=False)


class GameAdapterTests:
    """Holds a game to the protocol, one test for each check.

    Subclass it as `class TestMyGame(GameAdapterTests)` and give the fixture `game`: a class, a
    factory, a spec, `./file.py:Class` or a registered name. `config`, `seed`, `steps` and
    `text_limit` may be given too. Warnings do not fail; `wsap check` shows them.
    """

    @pytest.fixture
    def game(self) -> object:
        """Return the game: to be given by the subclass."""
        raise UsageError("Give a fixture `game` that returns the class, factory or spec to check.")

    @pytest.fixture
    def config(self) -> Mapping[str, Any]:
        """Return the options for every world (Any: as the game takes them)."""
        return {}

    @pytest.fixture
    def seed(self) -> int:
        """Return the seed of the first world."""
        return 0

    @pytest.fixture
    def steps(self) -> int:
        """Return about how many steps each check plays."""
        return 200

    @pytest.fixture
    def text_limit(self) -> int:
        """Return the most characters that the text of an observation may have."""
        return 8_000

    @pytest.fixture
    def subject(self, game: object, config: Mapping[str, Any], seed: int, steps: int, text_limit: int) -> Subject:
        """Return what the checks take."""
        spec = load_adapter_spec(game)
        if isinstance(spec.factory, Given):
            raise UsageError("The checks make many worlds; `game` must return the class or a factory, not one object.")
        return Subject(spec, seed, steps, config, text_limit)

    def test_the_members_are_there(self, subject: Subject) -> None:
        """The five members are there and give what they should."""
        _hold(_GAME["members"], subject)

    def test_declared_abilities_are_there(self, subject: Subject) -> None:
        """Every declared ability is there, and every ability that is there is declared."""
        _hold(_GAME["abilities"], subject)

    def test_the_spec_fits_together(self, subject: Subject) -> None:
        """The spec's own statements fit together."""
        _hold(_GAME["spec"], subject)

    def test_random_play_goes_through(self, subject: Subject) -> None:
        """Random play goes through: nothing raises, and nobody waits for ever."""
        _hold(_GAME["play"], subject)

    def test_the_action_space_is_well_formed(self, subject: Subject) -> None:
        """The action space is well-formed and stays the same."""
        _hold(_GAME["action-space"], subject)

    def test_everything_travels_without_loss(self, subject: Subject) -> None:
        """Observations and results are of the right types, finite, and lose nothing on the wire."""
        _hold(_GAME["values"], subject)

    def test_the_text_is_readable(self, subject: Subject) -> None:
        """Every observation has a text, within the limit, without control characters."""
        _hold(_GAME["text"], subject)

    def test_observing_changes_nothing(self, subject: Subject) -> None:
        """Observing changes nothing, and what was observed stays as it was."""
        _hold(_GAME["observing"], subject)

    def test_a_result_holds_the_state_after_the_action(self, subject: Subject) -> None:
        """The observation in a result is what observe() gives next."""
        _hold(_GAME["state-after"], subject)

    def test_the_list_of_available_actions_is_well_formed(self, subject: Subject) -> None:
        """The list of available actions names declared actions, each once."""
        _hold(_GAME["availability-list"], subject)

    def test_unavailable_actions_do_not_succeed(self, subject: Subject) -> None:
        """What is listed as unavailable does not succeed, and says why."""
        _hold(_GAME["unavailable"], subject)

    def test_available_actions_are_carried_out(self, subject: Subject) -> None:
        """What is listed as available is carried out."""
        _hold(_GAME["available"], subject)

    def test_tools_take_no_step(self, subject: Subject) -> None:
        """A tool is carried out at once: it takes no step of the game and ends nothing."""
        _hold(_GAME["tools"], subject)

    def test_undeclared_actions_are_refused(self, subject: Subject) -> None:
        """An action that was never declared is refused as a result, and changes nothing."""
        _hold(_GAME["undeclared-actions"], subject)

    def test_bad_parameters_are_refused(self, subject: Subject) -> None:
        """Missing, unknown and wrong parameters are refused as results, and change nothing."""
        _hold(_GAME["bad-parameters"], subject)

    def test_done_is_final(self, subject: Subject) -> None:
        """Done is final: nothing succeeds and nothing changes until the reset."""
        _hold(_GAME["done"], subject)

    def test_a_reset_begins_anew(self, subject: Subject) -> None:
        """A reset begins a new episode, which owes nothing to the last one."""
        _hold(_GAME["reset"], subject)

    def test_a_fresh_world_is_that_of_its_seed(self, subject: Subject) -> None:
        """A fresh world of a seed is the one that reset(seed) gives."""
        _hold(_GAME["first-episode"], subject)

    def test_a_seed_gives_one_trajectory(self, subject: Subject) -> None:
        """The same seed and actions give the same trajectory."""
        _hold(_GAME["same-seed"], subject)

    def test_worlds_are_independent(self, subject: Subject) -> None:
        """A world does not notice what goes on beside it."""
        _hold(_GAME["independent"], subject)

    def test_another_process_plays_the_same(self, subject: Subject) -> None:
        """The same seed gives the same trajectory in another process, whatever PYTHONHASHSEED."""
        _hold(_GAME["other-process"], subject)

    def test_seeds_matter(self, subject: Subject) -> None:
        """Different seeds give different trajectories."""
        _hold(_GAME["seeds-matter"], subject)

    def test_a_restored_world_goes_on_identically(self, subject: Subject) -> None:
        """A world restored in the middle of an episode goes on identically."""
        _hold(_GAME["snapshot-continues"], subject)

    def test_a_world_restored_in_another_process_goes_on_identically(self, subject: Subject) -> None:
        """A world restored in another process goes on identically."""
        _hold(_GAME["snapshot-elsewhere"], subject)

    def test_snapshots_change_nothing(self, subject: Subject) -> None:
        """Taking a snapshot changes nothing."""
        _hold(_GAME["snapshot-silent"], subject)

    def test_garbage_is_refused_as_a_snapshot(self, subject: Subject) -> None:
        """What is no snapshot is refused with SnapshotError, and nothing changes."""
        _hold(_GAME["snapshot-refuses"], subject)

    def test_snapshots_are_data(self, subject: Subject) -> None:
        """A snapshot is data: there is no pickle in it."""
        _hold(_GAME["snapshot-is-data"], subject)

    def test_directions_are_words_of_the_protocol(self, subject: Subject) -> None:
        """Directions are compass words or seen from the body, and distances are numbers of at least 0."""
        _hold(_GAME["directions"], subject)

    def test_nothing_is_seen_beyond_the_range(self, subject: Subject) -> None:
        """Nothing is reported from beyond the declared range of the senses."""
        _hold(_GAME["vision-range"], subject)

    def test_nothing_is_seen_outside_the_cone(self, subject: Subject) -> None:
        """Nothing is seen outside the declared cone of vision."""
        _hold(_GAME["vision-cone"], subject)

    def test_a_shared_world_is_played_through_its_seats(self, subject: Subject) -> None:
        """Several seats are played one by one; none of them resets the world."""
        _hold(_GAME["shared-world"], subject)

    def test_choices_stay_hidden(self, subject: Subject) -> None:
        """What a seat chose stays hidden until the round is resolved."""
        _hold(_GAME["hidden-choices"], subject)

    def test_the_order_of_arrival_does_not_matter(self, subject: Subject) -> None:
        """The order in which seats act within a round does not matter."""
        _hold(_GAME["arrival-order"], subject)

    def test_seats_wait_for_their_turn(self, subject: Subject) -> None:
        """A seat whose turn it is not waits or is refused."""
        _hold(_GAME["turns"], subject)

    def test_messages_reach_whom_they_are_for(self, subject: Subject) -> None:
        """Direct and team messages reach whom they are for, and nobody else."""
        _hold(_GAME["messages"], subject)

    def test_a_body_is_entered_by_one_agent(self, subject: Subject) -> None:
        """A body is made unbound, entered by one agent, and by nobody else meanwhile."""
        _hold(_GAME["jack-in"], subject)

    def test_a_body_is_left_as_asked(self, subject: Subject) -> None:
        """A body is left dormant, suspended or destroyed as asked, and entered again if it lives."""
        _hold(_GAME["jack-out"], subject)

    def test_bodies_change_state_as_allowed(self, subject: Subject) -> None:
        """Bodies go from one state to another only as the protocol allows."""
        _hold(_GAME["avatar-states"], subject)

    def test_the_dead_stay_dead_until_they_respawn(self, subject: Subject) -> None:
        """A dead body does nothing, tells its death, and lives again by one of its options."""
        _hold(_GAME["death"], subject)

    def test_shared_actions_are_done_or_refused(self, subject: Subject) -> None:
        """The actions that all bodies share are done or refused, and cost no step to look at oneself."""
        _hold(_GAME["avatar-actions"], subject)

    def test_bonuses_are_what_is_listed(self, subject: Subject) -> None:
        """A bonus changes the avatar once, and what is listed is what was changed."""
        _hold(_GAME["transit-bonuses"], subject)

    def test_items_are_taken_in_or_refused_and_come_out_or_are_lost(self, subject: Subject) -> None:
        """Each item brought along is taken in or refused, and comes out again or is lost."""
        _hold(_GAME["transit-items"], subject)

    def test_what_was_let_out_is_gone(self, subject: Subject) -> None:
        """What was let out is no longer in the world."""
        _hold(_GAME["transit-release"], subject)

    def test_a_transfer_is_carried_out_once(self, subject: Subject) -> None:
        """Asked again with one transfer id, the world does nothing and answers the same."""
        _hold(_GAME["transit-once"], subject)

    def test_time_away_passes_for_dormant_bodies_only(self, subject: Subject) -> None:
        """Time away passes for a dormant body alike in every world, and not for a suspended one."""
        _hold(_GAME["transit-sleep"], subject)

    def test_achievements_are_in_the_catalogue(self, subject: Subject) -> None:
        """What is reported as achieved is in the catalogue, and only once an episode."""
        _hold(_GAME["achievements"], subject)

    def test_drawing_changes_nothing(self, subject: Subject) -> None:
        """What is drawn is well-formed, and drawing changes nothing."""
        _hold(_GAME["rendering"], subject)

    def test_scores_are_numbers(self, subject: Subject) -> None:
        """Each score is a finite number, also for no episode at all."""
        _hold(_GAME["score-metrics"], subject)


class AgentTests:
    """Holds an agent to the protocol, one test for each check.

    Subclass it as `class TestMyAgent(AgentTests)` and give the fixture `agent`: a class, a factory,
    a spec, `./file.py:Class` or a registered name; and, unless it plays everything, `game`.
    """

    @pytest.fixture
    def agent(self) -> object:
        """Return the agent: to be given by the subclass."""
        raise UsageError("Give a fixture `agent` that returns the class, factory or spec to check.")

    @pytest.fixture
    def game(self) -> object:
        """Return the world to play in; the kernel's `echo` unless the subclass says otherwise."""
        return AdapterSpec(
            "echo", "Echo.", "wsap_core.builtin.echo:EchoWorld", abilities=("seed", "snapshot", "render")
        )

    @pytest.fixture
    def config(self) -> Mapping[str, Any]:
        """Return the agent's options (Any: as it takes them)."""
        return {}

    @pytest.fixture
    def subject(self, agent: object, game: object, config: Mapping[str, Any]) -> AgentSubject:
        """Return what the checks take."""
        return AgentSubject(load_agent_spec(agent), load_adapter_spec(game), config=config)

    def test_the_members_are_there(self, subject: AgentSubject) -> None:
        """The four members are there, and what is declared."""
        _hold(_AGENT["agent-members"], subject)

    def test_decisions_are_declared_actions(self, subject: AgentSubject) -> None:
        """Every decision is a declared action; what it was shown stays as it was."""
        _hold(_AGENT["agent-decisions"], subject)

    def test_reflecting_changes_nothing(self, subject: AgentSubject) -> None:
        """Reflecting takes any result, and leaves it as it was."""
        _hold(_AGENT["agent-reflection"], subject)

    def test_a_seed_gives_one_life(self, subject: AgentSubject) -> None:
        """The same seed gives the same decisions."""
        _hold(_AGENT["agent-seed"], subject)

    def test_a_restored_agent_goes_on_identically(self, subject: AgentSubject) -> None:
        """An agent restored from a snapshot goes on identically."""
        _hold(_AGENT["agent-snapshot"], subject)
