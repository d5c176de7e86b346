"""Every role with every role: face to face, and at one and the same target.

What is expected of each pair is written out below, role by role, from `docs/reference/tossim-rules.md`. It is night 2:
the Werewolf hunts, the Vigilante shoots, the Jailor executes. Everybody does what it can to the other, or to the same
Citizen: the Jailor jails and executes, the Veteran is on alert, the Survivor wears a vest, the Arsonist douses, the
Witch forces the other onto a bystander, and the Transporter swaps the other with that bystander.
"""

from __future__ import annotations

import pytest

ACTS = {
    "Bodyguard": "guard {it}",
    "Doctor": "heal {it}",
    "Escort": "block {it}",
    "Investigator": "investigate {it}",
    "Jailor": "execute {it}",
    "Lookout": "watch {it}",
    "Mayor": "",
    "Medium": "",
    "Retributionist": "raise grave",
    "Sheriff": "interrogate {it}",
    "Spy": "",
    "Transporter": "transport {it} by",
    "Vampire Hunter": "hunt {it}",
    "Veteran": "alert",
    "Vigilante": "shoot {it}",
    "Citizen": "",
    "Godfather": "kill {it}",
    "Mafioso": "kill {it}",
    "Blackmailer": "blackmail {it}",
    "Consigliere": "consult {it}",
    "Consort": "block {it}",
    "Disguiser": "disguise {me} {it}",
    "Forger": "forge {it}: Forged.",
    "Framer": "frame {it}",
    "Janitor": "clean {it}",
    "Amnesiac": "remember grave",
    "Survivor": "vest",
    "Executioner": "",
    "Jester": "",
    "Witch": "control {it} by",
    "Arsonist": "douse {it}",
    "Serial Killer": "stab {it}",
    "Werewolf": "maul {it}",
    "Vampire": "bite {it}",
}
"""What each does; by is the bystander, grave a dead Citizen."""
ROLES = list(ACTS)
UNIQUE = {"Jailor", "Mayor", "Retributionist", "Veteran", "Godfather", "Mafioso", "Werewolf"}


def words(text: str) -> set[str]:
    """Return names that are written with commas; each must be a role."""
    found = {word.strip() for word in text.split(",") if word.strip()}
    assert found <= set(ROLES), found - set(ROLES)
    return found


MAFIA = words("Godfather, Mafioso, Blackmailer, Consigliere, Consort, Disguiser, Forger, Framer, Janitor")
PAIRS = [(a, b) for a in ROLES for b in ROLES if not (a == b and a in UNIQUE)]
GROUPS = """
Vigilante, Veteran, Mafioso, Citizen
Medium, Janitor, Retributionist
Survivor, Vampire Hunter, Amnesiac
Spy, Blackmailer, Jailor
Sheriff, Executioner, Werewolf
Framer, Vampire, Jester
Lookout, Forger, Witch
Escort, Transporter, Consort
Doctor, Disguiser, Serial Killer
Investigator, Consigliere, Mayor
Bodyguard, Godfather, Arsonist
"""
GROUP = {name: line.split(", ") for line in GROUPS.strip().splitlines() for name in line.split(", ")}

# --- face to face: what becomes of the row when it meets the column ------------------------------

DIES_FACING = {
    # At home and without defense: whoever kills.
    "Mayor": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf",
    "Medium": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf",
    "Retributionist": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf",
    "Spy": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf",
    "Citizen": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf",
    "Amnesiac": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf",
    "Jester": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf",
    # Out on a visit: the Veteran as well.
    "Bodyguard": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    "Doctor": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    "Investigator": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    "Lookout": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    "Sheriff": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    "Transporter": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    "Vampire Hunter": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    "Vigilante": "Jailor, Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Veteran",
    # It keeps most killers from coming; the Serial Killer and the Werewolf make it pay.
    "Escort": "Jailor, Serial Killer, Werewolf, Veteran",
    "Consort": "Jailor, Serial Killer, Werewolf, Veteran",
    # The prisoner does nothing.
    "Jailor": "",
    # Basic defense, at home.
    "Veteran": "Jailor, Werewolf",
    "Survivor": "Jailor, Werewolf",
    "Executioner": "Jailor, Werewolf",
    # Basic defense, out on a visit.
    "Godfather": "Jailor, Werewolf, Veteran",
    "Arsonist": "Jailor, Werewolf, Veteran",
    "Serial Killer": "Jailor, Werewolf, Veteran",
    "Werewolf": "Jailor, Veteran",
    # It sends those away who would attack it.
    "Witch": "Jailor, Veteran",
    # Mafia without defense: a Vampire's bite kills, their own don't.
    "Mafioso": "Jailor, Vigilante, Serial Killer, Werewolf, Veteran, Vampire",
    "Blackmailer": "Jailor, Vigilante, Serial Killer, Werewolf, Veteran, Vampire",
    "Consigliere": "Jailor, Vigilante, Serial Killer, Werewolf, Veteran, Vampire",
    "Disguiser": "Jailor, Vigilante, Serial Killer, Werewolf, Veteran, Vampire",
    "Forger": "Jailor, Vigilante, Serial Killer, Werewolf, Veteran, Vampire",
    "Framer": "Jailor, Vigilante, Serial Killer, Werewolf, Veteran, Vampire",
    "Janitor": "Jailor, Vigilante, Serial Killer, Werewolf, Veteran, Vampire",
    "Vampire": "Jailor, Godfather, Mafioso, Vigilante, Vampire Hunter, Serial Killer, Werewolf, Veteran",
}
CONVERTED_FACING_A_VAMPIRE = words(
    "Bodyguard, Doctor, Investigator, Lookout, Mayor, Medium, Retributionist, Sheriff, Spy, Transporter, Vigilante,"
    "Citizen, Amnesiac, Jester"
)
"""Not the Escort, who blocks it, the Jailor, the Hunter, the Veteran on alert, the Survivor in its vest, the Witch."""
SENT_BY_THE_WITCH_TO_KILL = words("Godfather, Mafioso, Vigilante, Serial Killer, Werewolf")
NOT_BLOCKED = words("Escort, Consort, Transporter, Veteran, Witch, Jailor")
"""Facing an Escort: all but the Jailor, whose prisoner it is, because they are immune."""
SUSPICIOUS = words(
    "Mafioso, Blackmailer, Consigliere, Consort, Disguiser, Forger, Framer, Janitor, Serial Killer, Werewolf"
)
STOPS_FINDING = words("Escort, Consort, Jailor")
LOOKS = words("Sheriff, Investigator, Consigliere, Lookout, Vampire Hunter, Spy, Janitor")


def found_facing(row: str, column: str) -> object:
    """Return what the row finds out when it faces the column."""
    if row not in LOOKS or row == "Janitor" or (column in STOPS_FINDING and not (row in MAFIA and column == "Consort")):
        return None
    if row == "Spy":
        return ["row"] if column in MAFIA else []  # the Mafia's own visit to it
    if row == "Lookout":
        return []  # nobody but itself visits the other
    met = "Citizen" if column == "Witch" else column  # the Witch sends it to the bystander
    if row == "Consigliere":
        return None if column in MAFIA else met
    if row == "Vampire Hunter":
        return met == "Vampire"
    return met in SUSPICIOUS if row == "Sheriff" else GROUP[met]


def act(role: str, me: str, it: str, other: str) -> dict[str, str]:
    """Return what a role does to another, if it may."""
    if role == other == "Vampire" or (role in MAFIA and other in MAFIA) or not ACTS[role]:
        return {}
    return {me: ACTS[role].format(me=me, it=it)}


@pytest.mark.parametrize("row", ROLES)
@pytest.mark.parametrize("row_first", [True, False])
def test_face_to_face(town, row, row_first):
    for column in ROLES:
        if (row, column) not in PAIRS:
            continue
        seats = {"row": row, "column": column} if row_first else {"column": column, "row": row}
        t = town(**seats, by="Citizen", grave="Citizen").kill("grave")
        acts = act(row, "row", "column", column) | act(column, "column", "row", row)
        jail = "row" if column == "Jailor" else "column" if row == "Jailor" else None
        acts.pop(jail or "", None)
        t.night(jail=jail, **acts)
        cell = f"{row} facing {column}"

        dead = {"row"} if column in words(DIES_FACING[row]) else set()
        if row in words(DIES_FACING[column]):
            dead.add("column")
        if (row == "Witch" and column in SENT_BY_THE_WITCH_TO_KILL) or (
            column == "Witch" and row in SENT_BY_THE_WITCH_TO_KILL
        ):
            dead.add("by")
        assert t.dead == dead, cell

        converted = set()
        if column == "Vampire" and row in CONVERTED_FACING_A_VAMPIRE:
            converted.add("row")
        if row == "Vampire" and column in CONVERTED_FACING_A_VAMPIRE:
            converted.add("column")
        if {row, column} == {"Vampire", "Witch"}:
            converted.add("by")
        assert {name for name, role in t.became().items() if role == "Vampire"} == converted, cell

        blocked = column == "Escort" or (column == "Consort" and row not in MAFIA)
        felt = "struck_back" if row == "Serial Killer" else "blocked"
        assert (felt in t.told("row")) is (blocked and row not in NOT_BLOCKED), cell
        assert t.found("row") == found_facing(row, column), cell


# --- at the same target: what becomes of a Citizen, and of the two ---------------------------------

KILLERS = words("Godfather, Mafioso, Vigilante, Serial Killer, Werewolf")
"""Who kill a Citizen whom they meet; the Jailor kills its prisoner."""
SAVES = words("Doctor, Bodyguard, Transporter")
"""With whom the Citizen lives, unless it is executed: healed, guarded, elsewhere."""
VISITORS = words(
    "Bodyguard, Doctor, Escort, Investigator, Lookout, Sheriff, Transporter, Vampire Hunter, Vigilante, Godfather,"
    "Mafioso, Blackmailer, Consigliere, Consort, Disguiser, Forger, Framer, Janitor, Witch, Arsonist, Serial Killer,"
    "Werewolf, Vampire"
)
FOUGHT_BY_A_BODYGUARD = words("Godfather, Mafioso, Vigilante, Serial Killer, Werewolf, Vampire")


def dies_beside(one: str, other: str) -> bool:
    """Return whether one dies who acts on the same Citizen as the other."""
    if "Jailor" in (one, other):
        return other == "Werewolf" and one in VISITORS
    if other == "Werewolf":
        return one in VISITORS
    if one == "Bodyguard":
        return other in FOUGHT_BY_A_BODYGUARD
    return other == "Bodyguard" and one in FOUGHT_BY_A_BODYGUARD


def found_beside(one: str, other: str) -> object:
    """Return what one finds out about a Citizen, on whom the other acts too."""
    if one == "Sheriff":
        return other == "Framer"
    if one == "Investigator":
        return GROUP[other if other in ("Framer", "Arsonist") else "Citizen"]
    if one == "Consigliere":
        return "Citizen"
    if one == "Vampire Hunter":
        return False
    if one == "Lookout":
        return ["column"] if other in VISITORS else []
    if one == "Spy":
        return ["it"] if other in MAFIA else []
    if one == "Janitor" and (other in KILLERS or other == "Jailor"):
        return {"role": "Citizen", "will": "Mine."}
    return None


@pytest.mark.parametrize("row", ROLES)
@pytest.mark.parametrize("row_first", [True, False])
def test_at_the_same_target(town, row, row_first):
    for column in ROLES:
        if (row, column) not in PAIRS:
            continue
        pair = {row, column}
        seats = {"row": row, "column": column} if row_first else {"column": column, "row": row}
        t = town(**seats, it="Citizen", by="Citizen", grave="Citizen").kill("grave")
        t["it"].will = "Mine."
        acts = act(row, "row", "it", "Citizen") | act(column, "column", "it", "Citizen")
        if row == column == "Vampire":
            acts.pop("row" if row_first else "column")  # the one with the higher seat is the younger
        t.night(jail="it" if "Jailor" in pair else None, **acts)
        cell = f"{row} and {column} at one Citizen"

        killed = bool(pair & KILLERS)
        dead = {name for name, a, b in (("row", row, column), ("column", column, row)) if dies_beside(a, b)}
        if "Jailor" in pair or (killed and not pair & SAVES):
            dead.add("it")
        elif killed and "Transporter" in pair:
            dead.add("by")
        assert t.dead == dead, cell

        bitten = "by" if "Transporter" in pair else "it"
        spared = killed or pair & words("Jailor, Doctor, Bodyguard")
        converted = {bitten} if "Vampire" in pair and not spared else set()
        assert {name for name, role in t.became().items() if role == "Vampire"} == converted, cell

        met = "by" if "Transporter" in pair and "Jailor" not in pair else "it"
        blocks = bool(pair & {"Escort", "Consort"}) and "Jailor" not in pair
        assert ("blocked" in t.told(met)) is blocks, cell
        expected = found_beside(row, column)
        assert t.found("row") == (["by"] if expected == ["it"] and met == "by" else expected), cell

        lives = met not in dead
        marks = {mark for mark in ("framed", "doused", "blackmailed") if getattr(t[met], mark)}
        looked = pair & {"Sheriff", "Investigator"}
        left = {"Framer": "framed", "Arsonist": "doused", "Blackmailer": "blackmailed"}
        due = {left[role] for role in pair & set(left)} - ({"framed"} if looked else set())
        assert marks == (due if lives else set()), cell
        if "it" in dead:
            shown = None if "Janitor" in pair else "Forged." if "Forger" in pair else "Mine."
            assert t["it"].last_will_shown == shown, cell
            assert t["it"].known_role == (None if "Janitor" in pair else "Citizen"), cell


# --- at a prisoner who is spared: what becomes of those who come ------------------------------------


@pytest.mark.parametrize("row", [role for role in ROLES if role != "Jailor"])
@pytest.mark.parametrize("row_first", [True, False])
def test_behind_bars(town, row, row_first):
    """Nothing short of fire and execution gets through; only a Serial Killer strikes, and only at the Jailor."""
    for column in ROLES:
        if (row, column) not in PAIRS or column == "Jailor":
            continue
        seats = {"row": row, "column": column} if row_first else {"column": column, "row": row}
        t = town(**seats, jailor="Jailor", by="Citizen", grave="Citizen").kill("grave")
        t.night(jail="row", **act(column, "column", "row", row))
        cell = f"{column} at {row} in jail"
        assert t.dead == ({"jailor"} if row == "Serial Killer" else set()), cell
        assert "Vampire" not in t.became().values(), cell
        assert not {"blocked", "struck_back", "controlled", "transported"} & set(t.told("row")), cell
        assert t.found("row") is None, cell
        finds = {
            "Sheriff": row in SUSPICIOUS,
            "Investigator": GROUP[row],
            "Consigliere": None if row in MAFIA else row,
            "Vampire Hunter": row == "Vampire",
            "Lookout": [],
            "Spy": [],
        }
        assert t.found("column") == finds.get(column), cell


# --- attacks against what protects -----------------------------------------------------------------

GRID = """
                nothing  vest  own   healed  jail  guarded
Mafioso         dies     lives lives lives   lives taken
Vigilante       dies     lives lives lives   lives taken
Serial Killer   dies     lives lives lives   lives taken
Vampire         bitten   lives lives lives   lives taken
Werewolf        dies     dies  dies  lives   lives taken
Veteran         dies     dies  dies  lives   -     dies
Arsonist        dies     dies  dies  dies    dies  dies
Jailor          -        -     -     -       dies  -
Jester          dies     dies  dies  dies    dies  dies
guilt           dies     -     -     dies    dies  dies
"""
"""Of one who is attacked as the row says, and protected as the column says. A dash: that can't be, or is elsewhere."""
COLUMNS = GRID.split("\n")[1].split()
LINES = {line[:16].strip(): line[16:].split() for line in GRID.split("\n")[2:-1]}
STRIKES = {
    "Mafioso": "kill {it}",
    "Vigilante": "shoot {it}",
    "Serial Killer": "stab {it}",
    "Vampire": "bite {it}",
    "Werewolf": "maul {it}",
    "Veteran": "alert",
    "Arsonist": "ignite",
    "Jailor": "execute {it}",
    "Jester": "haunt {it}",
}


def victim_of(row: str, column: str) -> str:
    """Return whom the row attacks, with the defense that the column says."""
    if row == "guilt":
        return "Vigilante"
    if row == "Veteran":  # it is the visitor who is attacked: there are none in vests
        return {"own": "Godfather", "vest": "Arsonist"}.get(column, "Sheriff")
    return {"own": "Executioner", "vest": "Survivor"}.get(column, "Citizen")


def attacked(town, row: str, column: str):
    """Return a town in which the row attacks "it", protected as the column says."""
    victim = victim_of(row, column)
    foe = {} if row in ("guilt", "Jailor") else {"foe": row}
    t = town(it=victim, by="Citizen", doc="Doctor", bg="Bodyguard", jailor="Jailor", **foe)
    acts = {} if row == "guilt" else {"jailor" if row == "Jailor" else "foe": STRIKES[row].format(it="it")}
    t["it"].guilt = row == "guilt"
    t["it"].doused = row == "Arsonist"
    if row == "Jester":
        t.kill("foe")
        t["foe"].haunts = t["it"].mask
    if row == "Veteran":
        acts["it"] = {"Godfather": "kill foe", "Arsonist": "douse foe", "Sheriff": "interrogate foe"}[victim]
    elif column == "vest":
        acts["it"] = "vest"
    acts |= {"healed": {"doc": "heal it"}, "guarded": {"bg": "guard it"}}.get(column, {})
    return t.night(jail="it" if column == "jail" else None, **acts)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", list(LINES))
def test_attacks_against_what_protects(town, row, column):
    expected = LINES[row][COLUMNS.index(column)]
    if expected == "-":
        return
    t = attacked(town, row, column)
    if row == "Veteran":
        assert ("it" in t.dead) is (expected == "dies")
        return
    outcome = {"dies": {"it"}, "lives": set(), "bitten": set(), "taken": {"bg", "foe"}}[expected]
    if row == "Werewolf" and column == "healed":
        outcome = {"doc"}  # it visited the one whom the Werewolf mauled
    assert t.dead == outcome
    assert ("it" in t.became()) is (expected == "bitten")
