"""Templates: what comes with the plugin, how places lie to each other, and what is said of faults."""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from wsap_core.errors import ConfigError, UnknownNameError
from wsap_sandbox.model import World, dump, faults, load
from wsap_sandbox.templates.loader import (
    _as_toml,
    exits_of,
    parse_template,
    read_template,
    template_names,
    world_of,
)
from wsap_sandbox.templates.shape import (
    Aim,
    CharacterShape,
    ObjectShape,
    PlaceShape,
    StakeShape,
    TemplateShape,
    TopologyShape,
    WorldShape,
)

WORLD = '[world]\nname = "A yard"\nabout = "The well is dry."\n'
PLACE = '[[places]]\nid = "{id}"\nname = "{name}"\ndescription = "Mud."\n'
YARD = WORLD + PLACE.format(id="yard", name="Yard")
ANNA = '[[characters]]\nid = "anna"\nname = "Anna"\nplace = "yard"\nappearance = "Tall."\n'


def places(*ids: str) -> str:
    return "".join(PLACE.format(id=one, name=f"The {one}") for one in ids)


def runs(text: str) -> set[str]:
    """The runs of four words of a text, or the whole of a shorter one."""
    words = re.findall(r"\w+", text.casefold())
    return {" ".join(words[at : at + 4]) for at in range(max(1, len(words) - 3))}


def bundled() -> list[TemplateShape]:
    return [read_template(name, code) for name in template_names() for code in ("en", "ru")]


def test_two_worlds_come_in_two_languages() -> None:
    assert template_names() == ("lighthouse", "village")
    for shape in bundled():
        world = world_of(shape, 5)
        assert list(faults(world)) == []
        assert len(shape.characters) >= 5
        assert len(shape.places) >= 4
        assert len(shape.stakes) >= 4
        assert all(one.secret and len(one.triggers) >= 2 for one in shape.characters)
        assert any(one.every for one in shape.objects)
        assert all(one.alone for one in shape.places)
        assert load(dump(world), World) == world


@pytest.mark.parametrize("name", template_names())
def test_a_world_is_the_same_in_both_languages(name: str) -> None:
    def skeleton(shape: TemplateShape) -> object:
        return (
            exits_of(shape),
            [(one.id, one.place, one.gender, len(one.triggers)) for one in shape.characters],
            [[(aim.at, aim.object, aim.person) for aim in one.aims] for one in shape.characters],
            [(one.id, one.place, one.holder, len(one.stages), one.every, one.fixed) for one in shape.objects],
            [(one.object, len(one.work)) for one in shape.stakes],
        )

    assert skeleton(read_template(name, "en")) == skeleton(read_template(name, "ru"))


def test_what_a_character_wants_is_not_told_by_what_it_does() -> None:
    for shape in bundled():
        done = [aim.do for one in shape.characters for aim in one.aims]
        done += [work for stake in shape.stakes for work in stake.work]
        for aim in (aim for one in shape.characters for aim in one.aims):
            assert all(runs(aim.want).isdisjoint(runs(text)) for text in done), aim.want


def test_russian_worlds_have_every_name_in_six_cases() -> None:
    for name in template_names():
        shape = read_template(name, "ru")
        assert all(len(one.cases) == 6 for one in (*shape.characters, *shape.objects))
        assert all(one.cases[0] == one.name for one in (*shape.characters, *shape.objects))


def test_a_template_can_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "yard.toml"
    file.write_text(YARD + ANNA, "utf-8")
    world = world_of(read_template(str(file)))
    assert (world.title, world.characters[0].place) == ("A yard", "yard")


def test_a_chain_joins_each_place_to_the_one_before_it() -> None:
    text = WORLD + 'topology = {kind = "chain", places = ["b", "a", "c"]}\n' + places("a", "b", "c")
    assert exits_of(parse_template(text, "f.toml")) == {"b": ("a",), "a": ("b", "c"), "c": ("a",)}


def test_a_field_joins_neighbours() -> None:
    text = WORLD + 'topology = {kind = "field", width = 2, height = 2}\n' + places("a", "b", "c", "d")
    ways = {one: set(to) for one, to in exits_of(parse_template(text, "f.toml")).items()}
    assert ways == {"a": {"b", "c"}, "b": {"a", "d"}, "c": {"a", "d"}, "d": {"b", "c"}}


def test_an_exit_can_be_declared_one_way() -> None:
    text = YARD + 'one_way = ["pit"]\n' + places("pit")
    assert exits_of(parse_template(text, "f.toml")) == {"yard": ("pit",), "pit": ()}


# ruff: noqa: E501
FAULTS = [
    (YARD + "[words]\ntale = []\n", "words: tale is empty; write at least one phrase, or remove it."),
    (YARD + '[words]\ntale = ["<hero> fell"]\n', "words: tale mentions <hero>, and there is no list hero; add it."),
    (YARD + '[words]\nx = ["<y>"]\ny = ["a <x>"]\n', "words: x contains itself by way of its <...>; remove the circle."),
    (YARD + '[words]\npasts = ["mend"]\n', "words: pasts has 'mend'; write it like 'carve|carved'."),
    (YARD + '[[guests]]\nname = "he"\nplace = "inn"\ncomes = "x"\ngoes = "x"\n', "guests 'he': place = 'inn' does not exist; there are yard."),
    ("", "f.toml: has no 'world'; write [world]."),
    ("not toml", "f.toml is not valid TOML"),
    ("x = " + 5000 * "[" + 5000 * "]", "f.toml is nested too deeply"),
    (WORLD, "f.toml: has no 'places'; write [[places]]."),
    (YARD + '[[objects]]\nid = "key"\nplace = "yard"\n', "objects 'key': has no 'name'; write name = \"...\"."),
    (YARD + '[[stakes]]\nobject = "key"\ntitle = "x"\ngood = "x"\nbad = "x"\nwork = ["x"]\n', "has no 'worse'; write worse = [\"...\"]."),
    (WORLD + "places = []\n", "has no key 'places'"),
    ("places = []\n" + WORLD, "there are no places; add one under [[places]]"),
    (YARD.replace("about", "abuot"), "has no key 'abuot'; did you mean 'about'?"),
    (WORLD + '[[places]]\nid = "yard"\nname = "Yard"\n', "places 'yard': has no 'description'; write description = \"...\"."),
    (YARD.replace('"Mud."', "3"), "places 'yard': 'description' must be text in quotes."),
    (YARD.replace("[[places]]", "cells = 0\n[[places]]"), "cells = 0 is out of range; a memory has 1 to 10 cells"),
    (YARD.replace("[[places]]", "cells = 11\n[[places]]"), "cells = 11 is out of range"),
    (YARD.replace("[[places]]", 'cells = "many"\n[[places]]'), "world: 'cells' must be a whole number."),
    (YARD.replace("[[places]]", 'language = "fr"\n[[places]]'), "'fr' is unknown; choose en or ru"),
    (YARD + 'exits = ["pit"]\n', "an exit leads to 'pit', which is not a place; there are yard"),
    (YARD + 'exits = ["yard"]\n', "an exit leads back to itself"),
    (YARD + 'exits = ["pit"]\n' + places("pit"), "there is an exit to 'pit' but none back; add 'yard' to the exits of 'pit'"),
    (YARD + places("yard"), "the id 'yard' is already used in places"),
    (YARD + ANNA + ANNA, "the id 'anna' is already used in characters"),
    (YARD + ANNA.replace('"anna"', '"yard"'), "the id 'yard' is already used in places"),
    (YARD + ANNA + ANNA.replace('"anna"', '"ann4"').replace('"Anna"', '"Аnnа"'), "the name 'Аnnа' of the character 'ann4' looks like that of 'anna'"),
    (YARD + ANNA.replace('"Anna"', '"Зоя"') + ANNA.replace('"anna"', '"zoya"').replace('"Anna"', '"3оя"'), "'3оя' of the character 'zoya' looks like that of 'anna'"),
    (YARD + places("l0ck", "lock"), "the id 'lock' looks like 'l0ck' in places"),
    (YARD + places("barn", "bam"), "the id 'bam' looks like 'barn' in places"),
    (YARD + ANNA.replace('"anna"', '"аnna"'), "the id 'аnna' is invalid; use a lower-case Latin letter"),
    (YARD + places("stay"), "the id 'stay' is reserved"),
    (YARD + ANNA.replace('"yard"', '"moon"'), "place = 'moon' is not a place; there are yard"),
    (YARD + '[[objects]]\nid = "key"\nname = "Key"\n', "objects 'key': give either place or holder"),
    (YARD + '[[objects]]\nid = "key"\nname = "Key"\nholder = "bob"\n', "holder = 'bob' is not a character"),
    (YARD + '[[objects]]\nid = "key"\nname = " "\nplace = "yard"\n', "the name of the object 'key' is empty"),
    (YARD + ANNA + '[[characters.aims]]\nwant = "rest"\ndo = "sit"\nat = "bed"\n', "at = 'bed' in aim 1 does not exist"),
    (YARD + ANNA + 'cases = ["Anna"]\n', "cases has 1 forms; give six"),
    (YARD + ANNA + 'gender = "x"\n', "characters 'anna': 'gender' must be 'm', 'f', 'n' or 'p'."),
    (WORLD + 'topology = {kind = "field", width = 2, height = 2}\n' + places("a", "b"), "a field of 2 by 2 has 4 places, but there are 2"),
    (WORLD + 'topology = {kind = "chain", places = ["a"]}\n' + places("a", "b"), "places must name each place once"),
    (WORLD + 'topology = {kind = "ring"}\n' + places("a"), "'kind' must be 'graph', 'chain' or 'field'."),
]  # fmt: skip


def test_what_is_advised_is_toml() -> None:
    for shape in (TemplateShape, WorldShape, PlaceShape, CharacterShape, ObjectShape, StakeShape, Aim, TopologyShape):
        for key in (one.name for one in fields(shape) if one.default is MISSING and one.default_factory is MISSING):
            assert key in str(tomllib.loads(_as_toml(shape, key))), key


@pytest.mark.parametrize(("text", "sentence"), FAULTS)
def test_a_fault_is_told_in_one_sentence_that_names_file_and_key(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_template(text, "f.toml")
    assert sentence in str(told.value)
    assert str(told.value).startswith("f.toml")
    assert "\n" not in str(told.value)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "двор.toml"
    file.write_bytes(YARD.replace("Yard", "Двор").encode("cp1251"))
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        read_template(str(file))


def test_a_template_that_does_not_exist_is_told() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'village'"):
        read_template("vilage")
    with pytest.raises(ConfigError, match="The template can't be read"):
        read_template("nowhere/at_all.toml")
    with pytest.raises(ConfigError, match="choose en or ru"):
        read_template("village", "fr")
