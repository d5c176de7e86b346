"""What a place is like at first: planets from the seed, and the ship."""

from __future__ import annotations

from collections import Counter

from wsap_starbound.data import Planet, creatures, planets
from wsap_starbound.engine.noise import field, mix, ring
from wsap_starbound.engine.place import (
    AIR,
    HEIGHT,
    NUMBER,
    SHIP_HEIGHT,
    SHIP_WIDTH,
    SOLID,
    WIDTH,
    Creature,
    Place,
)

_START = 80
"""The column where a body lands first."""
_SETTLEMENT = 96
"""The first column of the settlement."""
_FLAT = range(_START - 5, _START + 6)


def planet(seed: int, name: str) -> Place:
    """Return a planet as it is before anybody has been there."""
    kind = planets()[name]
    own = mix(seed, *name.encode())
    ground = _ground(own, kind)
    place = Place(name, name, WIDTH, HEIGHT, bytearray(WIDTH * HEIGHT), (_START, ground[_START] - 1), ground)
    _fill(place, own, kind)
    _lakes(place, kind)
    _trees(place, own, kind)
    _chamber(place, own, kind)
    if kind.settlement:
        _settlement(place)
    _clear(place, _START)
    _herd(place, own, kind)
    place.restless.clear()
    return place


def _ground(own: int, kind: Planet) -> list[int]:
    broad, fine = ring(mix(own, 1), WIDTH, 20), ring(mix(own, 2), WIDTH, 8)
    rows = [
        kind.ground + (kind.relief * (2 * b + f) // 3000) - kind.relief // 2 for b, f in zip(broad, fine, strict=True)
    ]
    flat = [_FLAT]
    if kind.settlement:
        flat.append(range(_SETTLEMENT - 1, _SETTLEMENT + 16))
    for columns in flat:
        level = rows[columns[len(columns) // 2]]
        for x in columns:
            rows[x] = level
    return rows


def _fill(place: Place, own: int, kind: Planet) -> None:
    caves = field(mix(own, 3), WIDTH, HEIGHT, 8)
    veins = [(NUMBER[ore], least, share, field(mix(own, 4, n), WIDTH, HEIGHT, 4))
             for n, (ore, (least, share)) in enumerate(kind.ores.items())]  # fmt: skip
    rock, soil, cover, lava = (NUMBER[name] for name in (kind.rock, kind.soil, kind.cover, "lava"))
    cells = place.cells
    for y in range(HEIGHT):
        for x in range(WIDTH):
            depth = y - place.ground[x]
            if depth < 0:
                continue
            tile = cover if depth == 0 else soil if depth < kind.soil_depth else rock
            if depth >= 4 and caves[y][x] < kind.caves:
                tile = lava if depth >= kind.lava_from and caves[y][x] < kind.caves * 2 // 3 else AIR
            elif depth >= 1:
                for ore, least, share, vein in veins:
                    # A vein is where the noise is high; a share of 1000 would be everywhere.
                    if depth >= least and vein[y][x] > 880 - 2 * share and mix(own, ore, x, y) % 100 < 70:
                        tile = ore
                        break
            if y >= HEIGHT - 2:
                tile = NUMBER["bedrock"]
            cells[y * WIDTH + x] = tile
    _bank(place)


def _bank(place: Place) -> None:
    """Hold what flows: sand and lava above a hole become rock, so that a new world is at rest."""
    kind = place.kind
    rock = NUMBER["stone"] if kind is None else NUMBER[kind.rock]
    lava, sand = NUMBER["lava"], NUMBER["sand"]
    for y in range(HEIGHT - 2, -1, -1):
        for x in range(WIDTH):
            tile = place.at(x, y)
            beside = (place.at(ax, ay) for ax, ay in ((x - 1, y), (x + 1, y), (x, y + 1)))
            loose_lava = tile == lava and AIR in beside
            if loose_lava or (tile == sand and not SOLID[place.at(x, y + 1)]):
                place.cells[y * WIDTH + x] = rock


def _lakes(place: Place, kind: Planet) -> None:
    """Fill the valleys below the level of the lakes with water."""
    if not kind.lakes:
        return
    for x in range(WIDTH):
        if x in _FLAT or _SETTLEMENT - 1 <= x < _SETTLEMENT + 16:
            continue
        for y in range(kind.lakes, place.ground[x]):
            place.cells[y * WIDTH + x] = NUMBER["water"]
    # Flattened columns are dry: a bank of soil keeps the water beside them.
    for x in (*_FLAT, *range(_SETTLEMENT - 1, _SETTLEMENT + 16)):
        for y in range(kind.lakes, place.ground[x]):
            if NUMBER["water"] in (place.at(x - 1, y), place.at(x + 1, y)):
                place.cells[y * WIDTH + x] = NUMBER["soil"]
        tops = [y for y in range(HEIGHT) if SOLID[place.at(x, y)]]
        place.ground[x] = tops[0]


def _trees(place: Place, own: int, kind: Planet) -> None:
    if not kind.trees:
        return
    last = -9
    for x in range(WIDTH):
        if x in _FLAT or _SETTLEMENT - 2 <= x < _SETTLEMENT + 17 or x - last < 4:
            continue
        ground = place.ground[x]
        if place.at(x, ground - 1) != AIR or mix(own, 5, x) % 10 >= kind.trees:
            continue
        last = x
        tall = 3 + mix(own, 6, x) % 3
        for up in range(1, tall + 1):
            place.cells[(ground - up) * WIDTH + x] = NUMBER["trunk"]
        for ax, up in ((-1, tall), (1, tall), (0, tall + 1), (-1, tall + 1), (1, tall + 1)):
            if place.at(x + ax, ground - up) == AIR:
                place.cells[(ground - up) * WIDTH + (x + ax) % WIDTH] = NUMBER["leaves"]


def _chamber(place: Place, own: int, kind: Planet) -> None:
    """Build the chamber with the lens, somewhere between 25 and 60 columns from where a body lands."""
    away = 25 + mix(own, 7) % 20
    x = (_START - away) % WIDTH if kind.settlement or mix(own, 8) % 2 else (_START + away) % WIDTH
    y = min(HEIGHT - 12, place.ground[x] + kind.lens_depth + mix(own, 9) % 6)
    wall = NUMBER["vault"]
    for ax in range(-4, 5):
        for ay in range(-4, 2):
            edge = abs(ax) == 4 or ay in (-4, 1)
            place.cells[(y + ay) * WIDTH + (x + ax) % WIDTH] = wall if edge else AIR
    place.cells[y * WIDTH + x] = NUMBER["lens"]
    place.lens = (x, y)
    rock = NUMBER[kind.rock]
    for ax in range(-6, 7):
        for ay in range(-7, 4):
            if place.at(x + ax, y + ay) == NUMBER["lava"]:
                place.cells[(y + ay) * WIDTH + (x + ax) % WIDTH] = rock


def _settlement(place: Place) -> None:
    """Build three houses on flat ground; walls, floors and furniture are protected."""
    floor = place.ground[_SETTLEMENT]
    for x in range(_SETTLEMENT - 1, _SETTLEMENT + 16):
        place.cells[floor * WIDTH + x] = NUMBER["hall"]
        for y in range(floor):
            place.cells[y * WIDTH + x] = AIR
    for house in range(3):
        left = _SETTLEMENT + 5 * house
        for ax in range(5):
            place.cells[(floor - 5) * WIDTH + left + ax] = NUMBER["hall"]
        for side in (0, 4):
            place.cells[(floor - 4) * WIDTH + left + side] = NUMBER["hall"]
        place.cells[(floor - 4) * WIDTH + left + 2] = NUMBER["torch"]
    kinds = ("trader", "elder", "smith", "child")
    for number, who in enumerate(kinds):
        place.creatures.append(Creature(who, who, _SETTLEMENT + 2 + 4 * number, floor - 1, 20))


def _clear(place: Place, x: int) -> None:
    """Make room where a body lands."""
    for ax in range(-2, 3):
        for y in range(place.ground[x + ax]):
            place.cells[y * WIDTH + x + ax] = AIR
    place.start = (x, place.ground[x] - 1)


def _herd(place: Place, own: int, kind: Planet) -> None:
    """Put the creatures of the day on the surface."""
    calm = [name for name in kind.creatures if creatures()[name].temper in ("calm", "shy")]
    for number in range(8 if calm else 0):
        name = calm[number % len(calm)]
        x = mix(own, 10, number) % WIDTH
        y = place.ground[x] - 1
        if not place.solid(x, y) and place.at(x, y) != NUMBER["water"]:
            place.creatures.append(Creature(f"{name}-{number + 1}", name, x, y, creatures()[name].health))


def ship(owner: str) -> Place:
    """Return the inside of a new ship."""
    hull, floor = NUMBER["hull"], SHIP_HEIGHT - 2
    cells = bytearray(SHIP_WIDTH * SHIP_HEIGHT)
    place = Place(f"ship:{owner}", "", SHIP_WIDTH, SHIP_HEIGHT, cells, (4, floor - 1), [floor] * SHIP_WIDTH)
    for x in range(SHIP_WIDTH):
        for y in range(SHIP_HEIGHT):
            if x in (0, SHIP_WIDTH - 1) or y <= 1 or y >= floor:
                cells[y * SHIP_WIDTH + x] = hull
    furniture = {4: "beam_pad", 8: "locker", 12: "bed", 16: "star_chart", 20: "lantern"}
    for x, name in furniture.items():
        cells[(floor - 1) * SHIP_WIDTH + x] = NUMBER[name]
    for x in (10, 18):
        cells[3 * SHIP_WIDTH + x] = NUMBER["torch"]
    place.contents[8, floor - 1] = Counter({"bandage": 2, "torch": 6})
    return place
