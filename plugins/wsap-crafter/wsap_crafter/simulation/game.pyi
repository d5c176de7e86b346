from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

# Any: a position is a tuple, a list or an array of two integers.

class _Item(TypedDict):
    max: int
    initial: int

class _Collect(TypedDict):
    require: dict[str, int]
    receive: dict[str, int]
    leaves: str

class _Place(TypedDict):
    uses: dict[str, int]
    where: list[str]
    type: str

class _Make(TypedDict):
    uses: dict[str, int]
    nearby: list[str]
    gives: int

class _Constants:
    root: Path
    actions: list[str]
    materials: list[str]
    walkable: list[str]
    items: dict[str, _Item]
    collect: dict[str, _Collect]
    place: dict[str, _Place]
    make: dict[str, _Make]
    achievements: list[str]

constants: _Constants

class World:
    area: tuple[int, int]
    random: Any
    daylight: float
    _chunk_size: tuple[int, int]
    _mat_names: dict[int, str | None]
    _mat_ids: dict[str | None, int]
    _mat_map: npt.NDArray[np.uint8]
    _obj_map: npt.NDArray[np.uint32]
    _objects: list[Object | None]
    _chunks: Any
    def __init__(self, area: tuple[int, int], materials: Sequence[str], chunk_size: tuple[int, int]) -> None: ...
    def reset(self, seed: int | None = None) -> None: ...
    @property
    def objects(self) -> list[Object]: ...
    @property
    def chunks(self) -> Any: ...
    def add(self, obj: Object) -> None: ...
    def remove(self, obj: Object) -> None: ...
    def move(self, obj: Object, pos: Any) -> None: ...
    def __setitem__(self, pos: Any, material: str) -> None: ...
    def __getitem__(self, pos: Any) -> tuple[str | None, Object | None]: ...
    def chunk_key(self, pos: Any) -> tuple[int, int, int, int]: ...

class Object:
    world: Any
    pos: Any
    random: Any
    inventory: dict[str, int]
    removed: bool
    def __init__(self, world: Any, pos: Any) -> None: ...
    @property
    def health(self) -> int: ...
    @health.setter
    def health(self, value: int) -> None: ...
    def update(self) -> None: ...
    def move(self, direction: Any) -> bool: ...
    def is_free(self, target: Any, materials: Any = None) -> bool: ...
    def distance(self, target: Any) -> int: ...
    def toward(self, target: Any, long_axis: bool = True) -> Any: ...

class Player(Object):
    facing: tuple[int, int]
    achievements: dict[str, int]
    action: str
    sleeping: bool

class Cow(Object): ...

class Zombie(Object):
    cooldown: int
    def __init__(self, world: Any, pos: Any, player: Object) -> None: ...

class Skeleton(Object):
    reload: int
    def __init__(self, world: Any, pos: Any, player: Object) -> None: ...

class Arrow(Object):
    facing: Any
    def __init__(self, world: Any, pos: Any, facing: Any) -> None: ...

class Plant(Object):
    grown: int
    @property
    def ripe(self) -> bool: ...

class Env:
    _world: Any
    _player: Any
    def _update_time(self) -> None: ...
    def _balance_chunk(self, chunk: tuple[int, int, int, int], objs: Any) -> None: ...
    def _balance_object(
        self,
        chunk: tuple[int, int, int, int],
        objs: Any,
        cls: type[Object],
        material: str,
        span_dist: int,
        despan_dist: int,
        spawn_prob: float,
        despawn_prob: float,
        ctor: Callable[[Any], Object],
        target_fn: Callable[[int, int], tuple[float, float]],
    ) -> None: ...
    def reset(self) -> Any: ...
    def step(self, action: Any) -> Any: ...

class Textures:
    def __init__(self, directory: Path) -> None: ...

class LocalView:
    def __init__(self, world: Any, textures: Textures, grid: Sequence[int]) -> None: ...
    def __call__(self, player: Any, unit: Any) -> npt.NDArray[Any]: ...

class ItemView:
    def __init__(self, textures: Textures, grid: Sequence[int]) -> None: ...
    def __call__(self, inventory: Mapping[str, int], unit: Any) -> npt.NDArray[Any]: ...
