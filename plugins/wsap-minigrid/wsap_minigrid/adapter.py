"""MiniGrid as a game of the protocol: eight levels, one body, portable keys."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from wsap_core.authoring.grid import chart, compass, offset
from wsap_core.authoring.one_body import OneBodyGame, Refused
from wsap_core.errors import ConfigError
from wsap_core.protocol import (
    Action,
    ActionResult,
    AvatarState,
    Effect,
    Entity,
    Event,
    Goal,
    Location,
    PortableItem,
    View,
)
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.options import read_option
from wsap_minigrid.catalogue import (
    DESCRIPTION,
    DESCRIPTION_WITH_PACK,
    FACINGS,
    LEGEND,
    PORTABLE,
    SPACE,
    THINGS,
    character_of,
    is_portable,
    name_of,
    thing_of,
)
from wsap_minigrid.plugin import HARD_FIRST, LEVELS, PACK, TRANSFER_RULES
from wsap_minigrid.seen import ARROWS, GridObservation

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # MiniGrid imports pygame, which prints a greeting

import gymnasium
import minigrid  # noqa: F401  # registers its environments
import numpy as np

NAMES = tuple(LEVELS)


class MiniGridAdapter(OneBodyGame):
    """Eight levels of MiniGrid, each as the original begins it.

    The option `level` (1 to 8) is the first one. With `pack`, which MiniGrid doesn't have, things in hand at the end of
    a level open doors of later ones; without it they are only kept for other worlds.
    """

    game_id = "minigrid"
    action_space = SPACE
    transfer_rules = TRANSFER_RULES

    def __init__(self, context: Context | None = None) -> None:
        super().__init__()
        first = (context := context or Context()).config.get("level", 1)
        if type(first) is not int or not 1 <= first <= len(NAMES):
            raise ConfigError(f"MiniGrid's `level` must be a whole number from 1 to {len(NAMES)}, not {first!r}.")
        self._packs = read_option(PACK, context.config.get(PACK.name, PACK.default))
        self._own_first = self._first = first - 1
        self._seed, self._episode = context.seed, 0
        self._won: Counter[str] = Counter()
        self.reset(context.seed)

    @property
    @override
    def game_description(self) -> str:
        """Return the rules; with a pack they have one more."""
        return DESCRIPTION_WITH_PACK if self._packs else DESCRIPTION

    @override
    def begin(self, seed: int | None) -> None:
        self._seed, self._episode = (self._seed, self._episode + 1) if seed is None else (seed, 0)
        self._won, self._achieved, self._scattered = Counter(), list[str](), False
        self._enter(self._first)

    @override
    def settle(self, *, spawn: str = "", loadout: str = "", difficulty: str = "") -> None:
        """Begin at a level by the difficulty, in the first episode if it has no step yet; anywhere in the first level
        if the spawn is random; with a lockpick if that is the loadout."""
        if loadout == "lockpick":
            self.gifts["lockpick"] += 1
        if difficulty:
            self._first = {"easy": 0, "hard": HARD_FIRST - 1}.get(difficulty, self._own_first)
        if self.steps == 0 and (spawn == "random" or (difficulty and self._level != self._first)):
            self._scattered = self._scattered or spawn == "random"
            self._enter(self._first)
            if self._scattered:
                self._env.place_agent()

    def _enter(self, level: int, news: str = "") -> None:
        """Start a level, whose seed depends on the world's, the episode and the level."""
        self._level, self._news = level, news
        env: Any = gymnasium.make(LEVELS[NAMES[level]], disable_env_checker=True).unwrapped
        env.reset(seed=derive_seed(self._seed, "level", self._episode, level))
        self._env, self._limit = env, int(env.max_steps)
        self._things = [o for o in env.grid.grid if o is not None and o.type in ("key", "ball", "box", "door")]

    def _game(self) -> Any:
        """Return the environment with the player's bonuses applied."""
        env = self._env
        env.agent_view_size, env.see_through_walls = 7 + self.gifts["sight"], self.gifts["hearing"] > 0
        env.max_steps = self._limit * (100 + self.gifts["time"]) // 100
        return env

    # --- actions ------------------------------------------------------------------------------------

    @override
    def refusal(self, action: Action) -> str:
        """Boxes stay closed: they are empty, and gone once opened."""
        ahead, hand, name = self._env.grid.get(*self._env.front_pos), self._env.carrying, action.name
        what = f"there is {name_of(ahead)} ahead"
        if name == "forward" and ahead and not ahead.can_overlap():
            return f"{what}, in the way"
        if name == "pickup" and (hand or not (ahead and ahead.can_pickup())):
            return f"your hand is full: it holds {name_of(hand)}" if hand else f"{what}, which can't be picked up"
        if name == "drop" and (ahead or not hand):
            return f"{what}, in the way" if hand else "your hand is empty"
        if name == "toggle" and not (ahead and ahead.type == "door"):
            return f"{what}, and no door"
        if name == "toggle" and ahead.is_locked and not self._opener(ahead):
            return f"it is locked, and you have no {ahead.color} key"
        return ""

    @override
    def play(self, action: Action) -> ActionResult:
        env, name, self._news = self._game(), action.name, ""
        ahead = env.grid.get(*env.front_pos)
        did = [f"take_{ahead.type}"] if name == "pickup" else []
        hand, opener = env.carrying, ""
        if name == "toggle" and not ahead.is_open:
            did += ["open_door", "unlock_door"] if ahead.is_locked else ["open_door"]
            opener = self._opener(ahead) if ahead.is_locked else ""
            did += ["improvise"] if ahead.is_locked and self._unlock(ahead) else []
        _, reward, over, late, _ = env.step(SPACE.names.index(name))
        truncated = False
        what = self._told(name, ahead if name in ("pickup", "toggle") else hand, opener)
        if over and reward > 0:
            did.append(f"solve_{NAMES[self._level]}")
            self._solve()
        elif over:
            self._news = "You went into the lava."
            self.die("lava")
        elif truncated := bool(late):
            self._news, self.done = "Your time for this level is up.", True
        new = [name for name in did if name not in self._achieved]
        self._achieved += new
        told = self._news or what
        return ActionResult(True, told, float(reward), new, self.done, self.observe(), truncated=truncated)

    def _told(self, name: str, thing: Any, opener: str) -> str:
        """Return what an action has changed; `thing` is what it was done to, `opener` what unlocked a door."""
        facing = FACINGS[self._env.agent_dir]
        if name == "forward":
            return f"You went one cell {facing}."
        if name in ("pickup", "drop"):
            return f"You {'took' if name == 'pickup' else 'laid down'} the {name_of(thing)}."
        if name == "toggle":
            key = f"the {thing.color} key in your hand" if opener == "hand" else f"your {opener}"
            how = f" with {key}{', which broke' * (opener == 'tool')}" if opener else ""
            did = f"{'unlocked and ' * bool(how)}{'opened' if thing.is_open else 'closed'}"
            return f"You {did} the {thing.color} door{how}."
        return f"You turned {name.removeprefix('turn_')} and face {facing}."

    def _opener(self, door: Any) -> str:
        """Return what opens a locked door: "hand", the key in the pack, "lockpick", "tool" or "" for nothing."""
        key, pack = f"{door.color} key", self._usable()
        have = {"hand": name_of(self._env.carrying) == key, key: pack[key], "lockpick": self.gifts["lockpick"]}
        return next((name for name, amount in {**have, "tool": pack["tool"]}.items() if amount), "")

    def _unlock(self, door: Any) -> bool:
        """Unlock a door from the pack, and return whether that was needed: MiniGrid uses a key in hand itself."""
        opener = self._opener(door)
        self.gifts["lockpick"] -= opener == "lockpick"
        if opener == "tool":
            self.use_up("tool", "broken on a locked door")
        door.is_locked = opener == "hand"
        return not door.is_locked

    def _solve(self) -> None:
        """Keep the thing in hand, and start the next level."""
        hand, self.done = self._env.carrying, self._level + 1 == len(NAMES)
        if hand and not self._is_full():
            self._won[name_of(hand)] += 1
        if self.done:
            self._news = "You have solved the last level."
        else:
            self._enter(self._level + 1, f"You have solved the level {NAMES[self._level]!r}; here is the next.")

    # --- items --------------------------------------------------------------------------------------

    def _usable(self) -> Counter[str]:
        """Return what opens doors besides the thing in hand: what was brought along, and with a pack what was won."""
        return self.items.count() + self._won if self._packs else self.items.count()

    def _shown(self) -> dict[str, int]:
        """Return all that is carried; what opens nothing here is told apart."""
        kept = (
            Counter() if self._packs else Counter({f"{name} of an earlier level": n for name, n in self._won.items()})
        )
        return dict(self._usable() + kept + Counter({"lockpick": self.gifts["lockpick"]}))

    def _is_full(self) -> bool:
        return (self._won + self.items.count()).total() >= 6 + self.gifts["pack"]

    @override
    def thing_for(self, item: PortableItem) -> str | Refused:
        known = thing_of(item)
        return Refused("the pack is full") if isinstance(known, str) and self._is_full() else known

    @override
    def take_out(self) -> Sequence[PortableItem]:
        """Give out the things won in levels; a thing in hand belongs to its level."""
        won, self._won = sorted(self._won.elements()), Counter()
        return [PortableItem("", n, *PORTABLE[n.split()[1]], {}, self.game_id, {self.game_id: n}) for n in won]

    # --- observations -------------------------------------------------------------------------------

    @override
    def observe(self) -> GridObservation:
        env, (x, y) = self._game(), map(int, self._env.agent_pos)
        (rows, things), hand, size = self._view(), env.carrying, env.agent_view_size
        alive, equipment = self.body.state is not AvatarState.DESTROYED, {"hand": name_of(hand)} if hand else {}
        pack = self._shown()
        return GridObservation(
            status={"level": f"{self._level + 1} of {len(NAMES)}", "steps_left": max(0, env.max_steps - env.step_count),
                    "ahead": name_of(env.grid.get(*env.front_pos)), "in_hand": name_of(hand) if hand else "nothing"},
            inventory=pack,
            location=Location((x, y), NAMES[self._level], f"level {NAMES[self._level]!r}"),
            nearby_entities=things,
            active_effects=[Effect(r.bonus.name, r.description) for r in TRANSFER_RULES if self.gifts[r.bonus.name]],
            current_goals=[] if self.done else [Goal(NAMES[self._level], env.mission)],
            recent_events=[Event(self._news)] if self._news else [],
            step=self.steps,
            available_actions=self.possible(),
            avatar=self.avatar(position=(x, y), health=int(alive), max_health=1, inventory=pack, equipment=equipment),
            facing=FACINGS[env.agent_dir],
            vision_range=size // 2 + size - 1,
            vision_cone=180.0,
            local_map=rows,
            legend=LEGEND,
        )  # fmt: skip

    def _view(self) -> tuple[list[str], list[Entity]]:
        """Return the rows of the map in view, and the things on it, row by row."""
        env, (x, y) = self._env, map(int, self._env.agent_pos)
        left, top, right, bottom = map(int, env.get_view_exts())
        wide, high = range(left, right), range(top, bottom)
        seen = np.rot90(env.gen_obs_grid()[1].T, -int(env.agent_dir) - 1)  # MiniGrid rotates the view to face up
        marks = {(i, j): self._cell(i, j, seen[j - top, i - left]) for j in high for i in wide}
        rows = ["".join(marks[i, j] for i in wide) for j in high]
        things = [(name_of(env.grid.get(i, j)), i - x, j - y) for (i, j), mark in marks.items() if mark in THINGS]
        return rows, [Entity(n.split()[-1], n, abs(i) + abs(j), compass(i, j), description=f"{n}, {offset(i, j)}")
                      for n, i, j in things]  # fmt: skip

    def _cell(self, x: int, y: int, seen: Any = True) -> str:
        env = self._env
        if (x, y) == tuple(env.agent_pos):
            return ARROWS[env.agent_dir]
        inside = 0 <= x < env.width and 0 <= y < env.height
        return character_of(env.grid.get(x, y)) if seen and inside else " "

    def render(self) -> View:
        """Return the map of the whole level."""
        rows = ["".join(self._cell(x, y) for x in range(self._env.width)) for y in range(self._env.height)]
        return chart(rows, LEGEND, f"MiniGrid, level {NAMES[self._level]}: {self._env.mission}")

    # --- snapshots ----------------------------------------------------------------------------------

    @override
    def dump(self) -> JsonValue:
        """Return the seeds and number of the level, and the states of its things."""
        env, cells = self._env, self._env.grid.grid
        spot = {id(thing): number for number, thing in enumerate(cells) if thing is not None}
        things = [spot.get(id(o), -1) if o.type != "door" else [o.is_open, o.is_locked] for o in self._things]
        place = [int(env.agent_pos[0]), int(env.agent_pos[1]), int(env.agent_dir), env.step_count]
        kept = [self._seed, self._episode, self._level, self._news, self._achieved, dict(self._won)]
        more = [self._first, True] if self._scattered else [self._first] if self._first != self._own_first else []
        return [[*kept, *more], place, things]

    @override
    def load(self, data: JsonValue) -> None:
        (seed, episode, level, news, achieved, won, *more), (x, y, facing, steps), things = data
        first, scattered = more[0] if more else self._own_first, more[1] if more[1:] else False
        whole = (seed, episode, level, x, y, facing, steps, *won.values(), first)
        sound = facing in range(4) and {level, first} <= set(range(len(NAMES))) and all(map(is_portable, won))
        sound = sound and isinstance(scattered, bool) and len(more) <= 2
        if not sound or not all(type(n) is int and n >= 0 for n in whole):
            raise ValueError("a number or name is invalid")
        self._seed, self._episode, self._achieved, self._won = seed, episode, [str(a) for a in achieved], Counter(won)
        self._first, self._scattered = first, scattered
        self._enter(level, str(news))
        env, cells = self._env, self._env.grid.grid
        cells[:] = [None if o is not None and o.type in ("key", "ball", "box") else o for o in cells]
        for thing, state in zip(self._things, things, strict=True):
            if thing.type == "door":
                thing.is_open, thing.is_locked = state[0] is True, state[1] is True
            elif state == -1 and env.carrying is None:
                env.carrying = thing
            elif 0 <= state < len(cells) and cells[state] is None:
                cells[state] = thing
            else:
                raise ValueError("two things are in one place")
        if not (x < env.width and y < env.height) or name_of(env.grid.get(x, y)) == "wall":
            raise ValueError("the player is in a wall or outside")
        env.agent_pos, env.agent_dir, env.step_count = (x, y), facing, steps
