"""The original Crafter, reproducible and without images.

:class:`CrafterEngine` is ``crafter.Env`` without its images: the rules are the game's classes, the map and creatures of
a seed are the same, and a step does what the original does in the same order. It differs in what made processes diverge
(see :mod:`wsap_crafter.simulation.world`), and in speed.

A faster engine could replace this class: the adapter uses only ``reset``, ``step``, ``world``, ``player``, ``steps``,
``length`` and the snapshot functions of the game.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsap_crafter.simulation.creatures import Player, make_creature
from wsap_crafter.simulation.game import Env, Object, Plant, constants
from wsap_crafter.simulation.world import ChunkKey, OrderedSet, OrderedWorld
from wsap_crafter.simulation.worldgen import generate_world

AREA = (64, 64)
"""Width and height of the world in cells."""

_VIEW = 9
_NEAR = 2 * _VIEW
"""Only objects nearer than this (Manhattan) move."""

_CHUNK = (12, 12)


@dataclass(frozen=True, slots=True)
class StepReport:
    """The effects of a step that can't be derived from the game's state."""

    reward: float
    """A tenth of the change in health, and 1 if anything was unlocked."""

    unlocked: tuple[str, ...] = ()
    """Achievements unlocked in this step, in the catalogue's order."""

    wounds: tuple[tuple[str, int], ...] = ()
    """Source and amount of damage: "zombie", "arrow", "lava", "want" (hunger, thirst or fatigue)."""

    lost_plants: tuple[tuple[int, int], ...] = ()
    """Positions of plants that were eaten or shot in this step."""


class CrafterEngine(Env):
    """One player in one Crafter world.

    The first episode of `seed` is that of ``crafter.Env(seed=seed)``; `length` is the maximum number of steps of an
    episode, 0 for no limit.
    """

    def __init__(self, seed: int, length: int = 10_000) -> None:
        # The original's constructor is not called because it loads textures for images.
        self._area = AREA
        self._view = (_VIEW, _VIEW)
        self._length = length
        self._seed = seed
        self._episode = 0
        self._world = OrderedWorld(AREA, constants.materials, _CHUNK)
        self._step = 0
        self._unlocked: set[str] = set()
        self._last_health = 0
        self._space: dict[str, int] = {}
        self._player: Player
        self._untouched: dict[str, int] | None = None  # the inventory of an episode without any step yet

    @property
    def world(self) -> OrderedWorld:
        """The map and everything on it."""
        world: OrderedWorld = self._world
        return world

    @property
    def player(self) -> Any:
        """The game's player object."""
        return self._player

    @property
    def steps(self) -> int:
        """Steps since the start of the episode."""
        return self._step

    @property
    def length(self) -> int:
        """Maximum number of steps of an episode; 0 for no limit."""
        return self._length

    @property
    def seed(self) -> int:
        """The last seed."""
        return self._seed

    @property
    def episode(self) -> int:
        """Number of episodes started with this seed."""
        return self._episode

    @property
    def last_health(self) -> int:
        """Health at the end of the last step, the base of the next reward."""
        return self._last_health

    @property
    def dead(self) -> bool:
        """Whether the player's health is 0."""
        health: int = self._player.inventory["health"]
        return health <= 0

    @property
    def done(self) -> bool:
        """Whether the episode is over, by death or by its length."""
        return self.dead or self.late

    @property
    def late(self) -> bool:
        """Whether the episode has its maximum number of steps."""
        return 0 < self._length <= self._step

    def reset(self, seed: int | None = None) -> None:
        """Start the next episode of this seed, or the first one of a new seed."""
        if seed == self._seed and self._episode == 1 and self._untouched == self._player.inventory:
            return  # a new game already has this state, and generating it takes 30 ms
        if seed is not None:
            self._seed, self._episode = seed, 0
        self._episode += 1
        self._step = 0
        # As in the original. The hash of a tuple of integers is the same in every process.
        self._world.reset(seed=hash((self._seed, self._episode)) % (2**31 - 1))
        self._update_time()
        self._player = Player(self._world, (AREA[0] // 2, AREA[1] // 2))
        self._last_health = self._player.health
        self._world.add(self._player)
        self._unlocked = set()
        generate_world(self._world, self._player, self._creature)
        self._untouched = dict(self._player.inventory)

    def resume(self, player: Player, episode: int, steps: int, last_health: int) -> None:
        """Continue from a state that was put into :attr:`world`."""
        self._player, self._episode, self._step, self._untouched = player, episode, steps, None
        self._update_time()
        self._last_health = last_health
        self._unlocked = {name for name, count in player.achievements.items() if count > 0}

    def unlock_only(self, achievements: dict[str, int]) -> None:
        """Set how often each achievement was unlocked in this episode."""
        self._untouched = None
        self._player.achievements = dict(achievements)
        self._unlocked = {name for name, count in achievements.items() if count > 0}

    def _creature(self, kind: str, pos: Any) -> Object:
        return make_creature(kind, self._world, pos, self._player)

    def step(self, action: str) -> StepReport:
        """Execute one of the game's 17 actions as one step of the world."""
        self._step += 1
        self._untouched = None
        self._update_time()
        world, player = self._world, self._player
        world.compact()
        player.action = action
        newcomers = len(world.slots)
        wounds: list[tuple[str, int]] = []
        lost: list[tuple[int, int]] = []
        before = player.inventory["health"]
        player.update()
        after = player.inventory["health"]
        if after < before:
            wounds.append(("lava" if world[player.pos][0] == "lava" else "want", before - after))
        self._update_others(newcomers, wounds, lost)
        if self._step % 10 == 0:
            self._balance()
        return self._report(tuple(wounds), tuple(lost))

    def _update_others(self, newcomers: int, wounds: list[tuple[str, int]], lost: list[tuple[int, int]]) -> None:
        """Update the objects near the player that existed before it acted, in order of index."""
        world, player = self._world, self._player
        inventory = player.inventory
        px, py = player.pos.tolist()
        left, top = max(0, px - _NEAR), max(0, py - _NEAR)
        window = world.occupants[left : px + _NEAR + 1, top : py + _NEAR + 1]
        indices = window[window > 0].tolist()
        indices.sort()
        slots = world.slots
        for obj in [slots[i] for i in indices if i < newcomers]:
            if obj is player:
                continue
            x, y = obj.pos.tolist()
            if abs(x - px) + abs(y - py) >= _NEAR:
                continue
            before = inventory["health"]
            obj.update()
            after = inventory["health"]
            if after < before:
                wounds.append((type(obj).__name__.lower(), before - after))
            if obj.removed and type(obj) is Plant:
                lost.append((x, y))

    def _balance(self) -> None:
        """Spawn and despawn creatures by the game's rule for each chunk."""
        world = self._world
        ids, materials = world.material_ids, world.materials
        counts = {
            name: np.add.reduceat(
                np.add.reduceat(materials == ids[name], range(0, AREA[0], _CHUNK[0]), axis=0, dtype=np.int64),
                range(0, AREA[1], _CHUNK[1]),
                axis=1,
            ).tolist()
            for name in ("grass", "path")
        }
        for chunk, occupants in world.chunks.items():
            column, row = chunk[0] // _CHUNK[0], chunk[2] // _CHUNK[1]
            self._space = {name: table[column][row] for name, table in counts.items()}
            self._balance_chunk(chunk, occupants)

    def _balance_object(
        self,
        chunk: ChunkKey,
        objs: OrderedSet,
        cls: type[Object],
        material: str,
        span_dist: int,
        despan_dist: int,
        spawn_prob: float,
        despawn_prob: float,
        ctor: Callable[[Any], Object],
        target_fn: Callable[[int, int], tuple[float, float]],
    ) -> None:
        """Call the game's rule if it would draw a random number; otherwise it would do nothing."""
        number = sum(isinstance(obj, cls) for obj in objs)
        fewest, most = target_fn(number, self._space[material])
        if int(fewest) <= number <= int(most):
            return
        name = cls.__name__
        super()._balance_object(
            chunk,
            objs,
            cls,
            material,
            span_dist,
            despan_dist,
            spawn_prob,
            despawn_prob,
            lambda pos: self._creature(name, pos),
            target_fn,
        )

    def _report(self, wounds: tuple[tuple[str, int], ...], lost: tuple[tuple[int, int], ...]) -> StepReport:
        player = self._player
        reward = (player.inventory["health"] - self._last_health) / 10
        self._last_health = player.inventory["health"]
        unlocked: tuple[str, ...] = ()
        achievements = player.achievements
        if sum(map(bool, achievements.values())) != len(self._unlocked):
            unlocked = tuple(name for name, count in achievements.items() if count > 0 and name not in self._unlocked)
            self._unlocked.update(unlocked)
            reward += 1.0
        return StepReport(reward, unlocked, wounds, lost)
