"""What a user names, found: registered names, files, modules, classes, factories and objects."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wsap_core import (
    Action,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    Context,
    GameAdapter,
    Observation,
    PluginHost,
    World,
)
from wsap_core.builtin.echo import EchoWorld
from wsap_core.errors import ConfigError, PluginError, UnknownNameError, UsageError
from wsap_core.host import BUILTIN, Registration
from wsap_core.loading import load_object, names_file, portable_reference, source_files
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.seams.options import Options, check_used

GAME = '''
"""A game in a file."""
from __future__ import annotations
from dataclasses import dataclass
from wsap_core import ActionDef, ActionResult, ActionSpace, Context, Observation
import beside

@dataclass(frozen=True)
class LampObservation(Observation):
    lit: bool = False

class LampRoom:
    """A room with a lamp.

    More about it.
    """
    game_description = "A room."
    action_space = ActionSpace([ActionDef("light")])
    def __init__(self, context: Context) -> None:
        self.seed, self.size = context.seed, context.config.get("size", 1)
    def observe(self): return LampObservation()
    def act(self, action): return ActionResult(True)
    def reset(self, seed=None): return self.observe()
    def snapshot(self): return b"{}"
    def restore(self, data): ...

class Duel(LampRoom):
    wsap_spec = {"seats": [2, 2], "timing": "simultaneous", "name": "duel-of-lamps"}
    def seat(self, agent_id): return self

class Typo(LampRoom):
    wsap_spec = {"seat": (2, 2)}

def make(context: Context) -> LampRoom:
    return LampRoom(context)

def make_untyped():
    return LampRoom(Context(seed=5))

class Me:
    """Lights the lamp."""
    def initialize(self, game_desc, action_space): ...
    def decide(self, observation): ...
    def reflect(self, result): ...
    def plan(self, goals): return []
    def snapshot(self): return b""
    def restore(self, data): ...

NUMBER = 3
'''


@pytest.fixture
def host() -> PluginHost:
    host = PluginHost(environ={})
    host.load(BUILTIN)
    return host


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside.py").write_text("WORD = 'found'\n", encoding="utf-8")
    path = tmp_path / "game.py"
    path.write_text(GAME, encoding="utf-8")
    return path


def test_a_registered_name_gives_its_spec(host: PluginHost) -> None:
    assert load_adapter_spec("echo", host).title == "Echo"
    assert load_agent_spec("random", host).name == "random"


def test_a_misspelt_name_is_told_with_what_was_meant(host: PluginHost) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'echo'"):
        load_adapter_spec("ecko", host)


def test_a_spec_is_taken_as_it_is() -> None:
    spec = AdapterSpec("x", "X.", EchoWorld)
    assert load_adapter_spec(spec) is spec


def test_a_class_in_a_file_becomes_a_game_with_the_abilities_that_it_shows(file: Path) -> None:
    spec = load_adapter_spec(f"{file}:LampRoom")
    assert (spec.name, spec.title, spec.summary) == ("lamp-room", "LampRoom", "A room with a lamp.")
    assert spec.abilities == ("seed", "snapshot")
    assert spec.seats == (1, 1)
    assert [getattr(cls, "__name__", "") for cls in spec.wire_types] == ["LampObservation"]


def test_options_and_seed_reach_a_game_in_a_file_through_its_context(file: Path) -> None:
    world = World.create(load_adapter_spec(f"{file}:LampRoom"), Context.create(9, config={"size": 4}))
    assert (world.adapter.seed, world.adapter.size) == (9, 4)  # type: ignore[attr-defined]


def test_a_class_says_in_wsap_spec_what_cannot_be_seen(file: Path) -> None:
    spec = load_adapter_spec(f"{file}:Duel")
    assert (spec.name, spec.seats, spec.timing) == ("duel-of-lamps", (2, 2), "simultaneous")
    assert "multi-seat" in spec.abilities


def test_a_misspelt_field_of_wsap_spec_is_told(file: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'seats'"):
        load_adapter_spec(f"{file}:Typo")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seats": 3}, r"seats is 3; it must be tuple\[int, int\]"),
        ({"seats": ["two", 2]}, r"it must be tuple\[int, int\]"),
        ({"seats": (1, 2, 3)}, r"it must be tuple\[int, int\]"),
        ({"timing": "turns"}, "timing is 'turns'; it must be one of free, alternating, simultaneous, phased"),
        ({"deadline": -3.0}, "deadline is -3; it must be a number of seconds above 0"),
        ({"default_agent": "randon"}, "default_agent is 'randon'. .*Did you mean 'random'"),
        ({"seats": (5, 2)}, r"seats is \(5, 2\); it must be \(minimum, maximum\)"),
        ({"abilities": "seed"}, r"abilities is 'seed'; it must be tuple\[str, ...\]"),
    ],
)
def test_a_field_of_wsap_spec_of_another_kind_is_told(given: dict[str, object], words: str) -> None:
    game = type("Odd", (EchoWorld,), {"wsap_spec": given})
    with pytest.raises(ConfigError, match=words):
        load_adapter_spec(game)


@pytest.mark.parametrize("factory", ["make", "make_untyped"])
def test_a_factory_shows_the_abilities_of_what_it_makes(file: Path, factory: str) -> None:
    assert load_adapter_spec(f"{file}:{factory}").abilities == ("seed", "snapshot")


def test_an_adapter_that_is_there_already_is_handed_out_as_it_is() -> None:
    game = EchoWorld(Context())
    spec = load_adapter_spec(game)
    assert World.create(spec, Context()).adapter is game
    assert spec.abilities == ("seed", "snapshot", "render")


def test_an_agent_in_a_file_is_found_and_its_snapshots_are_seen(file: Path) -> None:
    spec = load_agent_spec(f"{file}:Me")
    assert (spec.name, spec.summary, spec.abilities) == ("me", "Lights the lamp.", ("snapshot",))


def test_a_module_is_named_like_a_file() -> None:
    spec = load_adapter_spec("wsap_core.builtin.echo:EchoWorld")
    assert spec.factory is EchoWorld


def test_a_missing_file_is_told_with_its_neighbour(file: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'game.py'"):
        load_adapter_spec(f"{file.parent}/gam.py:LampRoom")


def test_a_missing_class_is_told_with_the_one_that_was_meant(file: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'LampRoom'"):
        load_adapter_spec(f"{file}:LampRom")


def test_a_file_without_a_name_is_told_how_to_say_it(file: Path) -> None:
    with pytest.raises(UsageError, match=r"game\.py:Me"):
        load_adapter_spec(str(file))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def broken(:\n", "line 1: "),
        ("x = 1\nraise ValueError('no lamp')\n", r"ValueError: no lamp \(line 2\)"),
        ("import nothing_of_that_name\n", "nothing_of_that_name"),
        ("import sys\nsys.exit(4)\n", r"SystemExit: 4 \(line 2\)"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why_and_where(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PluginError, match=reason):
        load_adapter_spec(f"{path}:Game")


@pytest.mark.parametrize(("name", "missing"), [("Me", "observe"), ("NUMBER", "observe")])
def test_what_is_no_game_is_told_what_it_lacks(file: Path, name: str, missing: str) -> None:
    with pytest.raises(UsageError, match=f"no {missing}"):
        load_adapter_spec(f"{file}:{name}")


def test_a_path_without_a_name_in_it_is_told_how_files_are_written(host: PluginHost) -> None:
    with pytest.raises(UsageError, match=r"\./file\.py:Name"):
        load_adapter_spec("./games/lamp", host)


def test_a_file_is_imported_once_and_again_when_it_has_changed(file: Path) -> None:
    first = load_object(f"{file}:LampRoom")
    assert load_object(f"{file}:LampRoom") is first
    file.write_text(GAME.replace("A room with a lamp", "A room with two lamps"), encoding="utf-8")
    assert "two lamps" in load_object(f"{file}:LampRoom").__doc__


@pytest.mark.slow
def test_a_portable_reference_finds_the_same_thing_in_another_process(file: Path) -> None:
    for factory in (load_object(f"{file}:LampRoom"), EchoWorld):
        text = portable_reference(factory)
        assert text is not None
        code = "import sys\nfrom wsap_core.references import load_object\nprint(load_object(sys.argv[1]).__qualname__)"
        done = subprocess.run(
            [sys.executable, "-c", code, text], cwd=file.parent, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == factory.__qualname__


def test_what_no_other_process_could_find_has_no_portable_reference() -> None:
    class Local(EchoWorld):
        pass

    assert portable_reference(Local) is None
    assert portable_reference(load_adapter_spec(EchoWorld(Context())).factory) is None


def test_a_class_that_inherits_from_a_protocol_and_has_no_init_of_its_own_can_be_made() -> None:
    class Plain(GameAdapter):
        """A game without anything to set up."""

        game_description = "Nothing happens."
        action_space = ActionSpace()

        def observe(self) -> Observation:
            return Observation()

        def act(self, action: Action) -> ActionResult:
            return ActionResult(False, "There is nothing to do.")

        def reset(self) -> Observation:
            return Observation()

    world = World.create(load_adapter_spec(Plain), Context())
    assert isinstance(world.adapter, Plain)


FAMILY = AdapterSpec(
    "tale", "A tale.", "tests.nowhere:Tale", family="template", members=lambda: ["village", "old-mill"],
    variant=lambda spec, options: replace(spec, title=str(options.get("template", "any")).title()),
)  # fmt: skip


@pytest.fixture
def tales(host: PluginHost) -> PluginHost:
    host.games.add(Registration(FAMILY, "tale", "wsap-tale"))
    return host


def test_a_family_answers_to_the_names_of_its_members(tales: PluginHost) -> None:
    spec = load_adapter_spec("tale:village", tales)
    assert (spec.name, spec.family) == ("tale:village", "")
    assert spec.with_options({}).title == "Village"
    assert load_adapter_spec("tale", tales) is FAMILY


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tale:vilage", r"There is no game of the family 'tale' called 'vilage'. Did you mean 'village'\?"),
        ("tale:nine lives", "There are: village, old-mill."),
        ("tale:", "no game of the family 'tale' called ''. There are: village, old-mill."),
        ("tael:village", r"no game called 'tael'. Did you mean 'tale'\?"),
        ("echo:village", r"no game called 'echo:village'. Did you mean 'echo'\?"),
    ],
)
def test_an_unknown_member_is_told_with_those_there_are(tales: PluginHost, name: str, why: str) -> None:
    with pytest.raises(UnknownNameError, match=why):
        load_adapter_spec(name, tales)


def test_a_family_without_a_list_of_names_leaves_it_to_the_game(host: PluginHost) -> None:
    host.games.add(Registration(replace(FAMILY, members=None), "tale", "wsap-tale"))
    assert load_adapter_spec("tale:CartPole-v1", host).preset == {"template": "CartPole-v1"}


def test_a_family_can_say_why_a_member_can_t_be_played_and_members_can_have_parameters(host: PluginHost) -> None:
    known = {"village": "", "ruin": "nobody lives there"}
    host.games.add(Registration(replace(FAMILY, members=lambda: known), "tale", "wsap-tale"))
    assert host.games.get("tale").known_members() == known
    assert host.games.get("tale").known_members() == known
    assert load_adapter_spec("tale:village(houses=3)", host).preset == {"template": "village(houses=3)"}
    assert load_adapter_spec("tale:ruin", host).preset == {"template": "ruin"}, "the game itself says why not"
    with pytest.raises(UnknownNameError, match=r"called 'castle\(houses=3\)'"):
        load_adapter_spec("tale:castle(houses=3)", host)


def test_the_member_reaches_the_game_as_an_option_that_nobody_can_change() -> None:
    options = Options({"size": 4, "template": "mill"})
    spec = replace(AdapterSpec("lamp", "A lamp.", Recorded, family="template").member("village"), max_avatars=2)
    world = World.create(spec, Context.create(9, config=options))
    assert world.adapter.config == {"size": 4, "template": "village"}  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="has no option 'template'"):
        check_used("The game 'lamp:village'", options)


class Recorded(EchoWorld):
    """Keeps its options."""

    def __init__(self, context: Context) -> None:
        super().__init__(Context())
        self.config = {name: context.config.get(name) for name in ("size", "template")}


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("./game.py:Game", True),
        ("../game.py:Game", True),
        ("/a/game.py:Game", True),
        ("~/game.py:Game", True),
        ("C:\\games\\game.py:Game", True),
        ("game.py:Game", True),
        ("game.py", True),
        ("sandbox:village", False),
        ("gymnasium:CartPole-v1", False),
        ("gymnasium:ALE/Pong-v5", False),
        ("my_games.lamps:Lamp", False),
        ("crafter", False),
    ],
)
def test_a_file_is_what_begins_like_a_path_or_ends_in_a_class_of_one(text: str, file: bool) -> None:
    assert names_file(text) is file


def test_a_class_with_a_timing_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="timing is 'turns'"):
        load_adapter_spec(type("Odd", (EchoWorld,), {"timing": "turns"}))


def test_a_file_is_imported_again_when_a_neighbour_of_its_neighbour_has_changed(tmp_path: Path) -> None:
    (tmp_path / "deep_words.py").write_text("WORD = 'one'\n")
    (tmp_path / "near_words.py").write_text("def said():\n    import deep_words\n    return deep_words.WORD\n")
    main = tmp_path / "main.py"
    main.write_text("import json\nfrom near_words import said\n\nclass Said:\n    word = said()\n")
    assert [file.name for file in source_files(main)] == ["main.py", "deep_words.py", "near_words.py"]
    first = load_object(f"{main}:Said")
    assert load_object(f"{main}:Said") is first
    (tmp_path / "deep_words.py").write_text("WORD = 'another'\n")
    assert load_object(f"{main}:Said").word == "another"
