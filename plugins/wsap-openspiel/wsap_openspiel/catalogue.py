"""OpenSpiel's games by name: loading one, and why some can't be played."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from wsap_core.errors import MissingServiceError, UsageError
from wsap_core.installing import install_line
from wsap_core.seams.context import derive_seed
from wsap_core.untrusted import error_line
from wsap_openspiel.plugin import MOST_SEATS

# Any, in this module: OpenSpiel ships no types.

MOST_NUMBER = 10_000
"""The largest number in parameters: what is larger may need all memory of the machine."""
MOST_ACTIONS = 1_000_000
"""Maximum number of distinct actions of a game."""
_FILES = re.compile(r"\b(?:filename|\w+_file|\w+_root)\s*=")
_NUMBERS = re.compile(r"\d+")
_COLOURS = "ansi_color_output"
_GENERATORS = ("rng_seed", "seed")
"""Parameters that seed a game's own generator."""


def spiel() -> Any:
    """Return the module `pyspiel`; MissingServiceError if it is not installed."""
    try:
        import pyspiel  # deferred: tens of megabytes
    except ImportError as error:
        raise MissingServiceError(
            f"OpenSpiel's games need the package open_spiel ({error_line(error, 200)}); install it with: "
            f"{install_line('wsap-openspiel')}"
        ) from error
    return pyspiel


def games() -> dict[str, str]:
    """Return each of OpenSpiel's games -> why it can't be played, empty if it can.

    Raises:
        MissingServiceError: OpenSpiel is not installed.
    """
    return {kind.short_name: why_not(kind) for kind in spiel().registered_games()}


def why_not(kind: Any) -> str:
    """Return why a game, given by its type, can't be played without parameters; empty if it can."""
    pyspiel = spiel()
    parameters = kind.parameter_specification
    if "filename" in parameters:
        return "it is read from a file of its own format"
    if not kind.default_loadable:
        like = _CALLS.get(kind.short_name, "")
        return f"{_NEEDS}, such as {kind.short_name}({like})" if like else _NEEDS
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        return "a mean-field game has a population, and no players that decide one by one"
    if not (kind.provides_observation_string or kind.provides_information_state_string):
        return "it has no text form"
    return _FOUND.get(kind.short_name, "")


_NEEDS = "it needs parameters"
_CALLS = {
    "add_noise": "game=kuhn_poker(),epsilon=0.1,seed=1",
    "cached_tree": "game=kuhn_poker()",
    "coop_to_1p": "game=tiny_hanabi()",
    "misere": "game=tic_tac_toe()",
    "normal_form_extensive_game": "game=matrix_rps()",
    "repeated_game": "stage_game=matrix_pd(),num_repetitions=3",
    "restricted_nash_response": "game=kuhn_poker(),p=0.5,fixed_player=0",
    "start_at": "game=tic_tac_toe(),history=4;0",
    "turn_based_simultaneous_game": "game=goofspiel()",
    "zerosum": "game=tiny_hanabi()",
}
"""Games of games, with parameters that they take."""
_FOUND = {
    "crossword": "its moves can't be listed",
}
"""What the types of games do not say."""


@lru_cache(maxsize=32)
def loaded(call: str, generator: int | None = None) -> Any:
    """Return a game of OpenSpiel.

    Args:
        call: a name, with parameters in parentheses: `hex(board_size=5)`.
        generator: the seed of the game's own generator, if it has one.

    Raises:
        UsageError: there is no such game, its parameters are invalid, or it can't be played; the message says why.
        MissingServiceError: OpenSpiel is not installed.
    """
    pyspiel = spiel()
    name, _, given = call.partition("(")
    kinds = {kind.short_name: kind for kind in pyspiel.registered_games()}
    if name not in kinds:
        raise UsageError(f"OpenSpiel has no game {name!r}; `wsap games openspiel` lists them.")
    if (why := why_not(kinds[name])) and not (given and why.startswith(_NEEDS)):
        raise UsageError(f"{name} of OpenSpiel can't be played: {why}.")
    if _FILES.search(given):
        raise UsageError(f"{call} names a file, and such parameters are not taken.")
    if any(len(number) > 9 or int(number) > MOST_NUMBER for number in _NUMBERS.findall(given)):
        raise UsageError(f"{call} has a number above {MOST_NUMBER:,}, which may need all memory.")
    if given and not given.endswith(")"):
        raise UsageError(f"{call} lacks its closing parenthesis.")
    own = [given.removesuffix(")")] if given.removesuffix(")") else []
    known = kinds[name].parameter_specification
    if _COLOURS in known and _COLOURS not in given:
        own.append(f"{_COLOURS}=false")
    seeding = next((each for each in _GENERATORS if each in known and f"{each}=" not in given), "")
    if generator is not None and seeding and has_generator(kinds[name]):
        own.append(f"{seeding}={generator % 2**31}")
    try:
        game = pyspiel.load_game(f"{name}({','.join(own)})")
        actions, seats = game.num_distinct_actions(), game.num_players()
    except (pyspiel.SpielError, ValueError, RuntimeError, MemoryError) as error:
        raise UsageError(f"OpenSpiel can't load {call}: {error_line(error, 300)}") from error
    if not 0 < actions <= MOST_ACTIONS or not 0 < seats <= MOST_SEATS:
        raise UsageError(f"{call} has {actions:,} actions and {seats} players, too many or too few to be played.")
    if game.get_type().dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        raise UsageError(f"{call} is a mean-field game, which has no players that decide one by one.")
    if has_generator(game.get_type()) and not seeding:
        raise UsageError(f"{call} draws its chance by itself, so that a seed would not repeat it.")
    return game


def has_generator(kind: Any) -> bool:
    """Return whether a game, given by its type, draws chance by a generator of its own."""
    return bool(kind.chance_mode == spiel().GameType.ChanceMode.SAMPLED_STOCHASTIC)


def seeded(call: str, seed: int, episode: int) -> Any:
    """Return a game for one episode: of its own, if it has a generator of its own."""
    game = loaded(call)
    if not has_generator(game.get_type()):
        return game
    return loaded.__wrapped__(call, derive_seed(seed, episode))
