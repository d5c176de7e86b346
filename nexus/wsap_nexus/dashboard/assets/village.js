// A map of places that have their spots: houses by their looks, ways between them, and people who walk.

import { el, fill, say } from './dom.js';
import { faceAt, shape, short } from './face.js';
import { waysOf } from './map.js';

const WIDTH = 420;
const HEIGHT = 330;
const ABREAST = 3; // people beside each other
const MOST = 60;
const HEAD = 22;

const house = (x, y, w, h) => [shape('rect', { class: 'wall', x: x - w / 2, y: y - h, width: w, height: h }),
  shape('path', { class: 'roof', d: `M${x - w / 2 - 4} ${y - h} L${x} ${y - h - 0.6 * w} L${x + w / 2 + 4} ${y - h} Z` }),
  shape('rect', { class: 'door', x: x - 3.5, y: y - 11, width: 7, height: 11 })];
const tree = (x, y, r) => [shape('rect', { class: 'trunk', x: x - 1.5, y: y - r, width: 3, height: r + 3 }), shape('circle', { class: 'leaf', cx: x, cy: y - r - 3, r })];
const fir = (x, y, h) => [shape('rect', { class: 'trunk', x: x - 1.5, y: y - 4, width: 3, height: 7 }), shape('path', { class: 'leaf', d: `M${x - 8} ${y - 3} L${x} ${y - h} L${x + 8} ${y - 3} Z` })];
const LOOKS = {
  house: () => house(0, 12, 28, 18),
  shop: () => [shape('rect', { class: 'chimney', x: 7, y: -24, width: 6, height: 16 }), ...house(0, 12, 30, 18)],
  inn: () => [...house(-8, 12, 24, 20), ...house(12, 12, 20, 14)],
  mill: () => [...house(-6, 12, 26, 22), shape('circle', { class: 'wheel', cx: 13, cy: 2, r: 11 }), shape('path', { class: 'wheel', d: 'M13 -9 L13 13 M2 2 L24 2 M5 -6 L21 10 M21 -6 L5 10' })],
  square: () => [shape('ellipse', { class: 'yard', cx: 0, cy: 6, rx: 44, ry: 15 }), shape('rect', { class: 'stone', x: -9, y: -2, width: 18, height: 10, rx: 2 }),
    shape('path', { class: 'roof', d: 'M-13 -10 L0 -20 L13 -10 Z' }), shape('path', { class: 'post', d: 'M-8 -10 L-8 -2 M8 -10 L8 -2' })],
  dam: () => [shape('path', { class: 'water', d: 'M-44 -14 Q-22 -26 0 -16 T44 -18 L44 0 L-44 0 Z' }), shape('path', { class: 'stone', d: 'M-48 0 L48 0 L42 13 L-42 13 Z' }),
    shape('path', { class: 'water', d: 'M-5 3 L5 3 L7 16 L-7 16 Z' })],
  orchard: () => [...tree(-18, 6, 9), ...tree(2, 0, 9), ...tree(18, 8, 9)],
  forest: () => [...fir(-16, 8, 24), ...fir(0, 2, 26), ...fir(15, 10, 24)],
  gate: () => [shape('rect', { class: 'stone', x: -17, y: -16, width: 8, height: 28 }), shape('rect', { class: 'stone', x: 9, y: -16, width: 8, height: 28 }), shape('path', { class: 'wheel', d: 'M-13 -14 Q0 -30 13 -14' })],
  cave: () => [shape('path', { class: 'stone', d: 'M-26 12 Q-22 -22 0 -20 Q24 -20 26 12 Z' }), shape('path', { class: 'door', d: 'M-10 12 Q-9 -8 0 -8 Q9 -8 10 12 Z' })],
};

export const hasSpots = (block) => block.places.length > 0 && block.places.every((place) => block.spots?.[place]);
const within = (part) => Math.min(1, Math.max(0, Number(part) || 0));
const at = (block, place) => [48 + within(block.spots[place][0]) * (WIDTH - 96), 44 + within(block.spots[place][1]) * (HEIGHT - 124)];

const kept = new WeakMap(); // map -> who is drawn on it

// `choose` is called with a pressed place.
export function drawVillage(block, choose) {
  const ways = waysOf(block.exits, (place) => block.spots[place]).map(([from, to]) => { const [[x1, y1], [x2, y2]] = [at(block, from), at(block, to)]; return shape('line', { x1, y1: y1 + 8, x2, y2: y2 + 8 }); });
  const houses = block.places.map((place) => {
    const [x, y] = at(block, place);
    const look = Object.hasOwn(LOOKS, block.looks[place]) ? block.looks[place] : 'house';
    const spot = shape('g', { transform: `translate(${x} ${y})`, class: `spot look-${look}${place === block.here ? ' here' : ''}` },
      LOOKS[look](), shape('text', { y: 27, class: 'place' }, short(place, 22)));
    if (choose?.has(place)) { spot.classList.add('choice'); spot.addEventListener('click', () => choose(place)); }
    return spot;
  });
  // Hidden from screen readers: the list below has the same content.
  const svg = shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'village', 'aria-hidden': 'true' },
    shape('rect', { class: 'ground', width: WIDTH, height: HEIGHT, rx: 14 }), ways, houses, shape('g', { class: 'people' }));
  const node = el('figure.village-map', { 'data-places': placesOf(block) }, svg, el('figcaption', {}));
  kept.set(node, new Map());
  updateVillage(node, block);
  return node;
}

const placesOf = (block) => JSON.stringify([block.places, block.exits, block.spots, block.looks, block.here]);
export const sameVillage = (node, block) => hasSpots(block) && node.dataset.places === placesOf(block);

// Lets people walk to where they are now.
export function updateVillage(node, block) {
  const group = node.querySelector('.people');
  const before = kept.get(node);
  const now = new Map();
  for (const [place, people] of Object.entries(block.occupants || {})) {
    if (!block.spots[place]) continue;
    const [x, y] = at(block, place);
    people.slice(0, MOST).forEach((who, i) => {
      const row = Math.floor(i / ABREAST);
      const beside = Math.min(ABREAST, people.length - row * ABREAST);
      const person = before.get(who) || shape('g', { class: 'person' });
      fill(person, shape('title', {}, block.doing[who] || who), faceAt(who, 'awake', HEAD), shape('text', { y: HEAD / 2 + 9 }, short(who, 9)));
      person.style.transform = `translate(${x + (i % ABREAST - (beside - 1) / 2) * 40}px, ${y + 44 + row * 34}px)`;
      now.set(who, person);
      if (!person.parentNode) group.append(person);
    });
  }
  for (const [who, person] of before) if (!now.has(who)) person.remove();
  kept.set(node, now);
  say(node.querySelector('figcaption'), Object.values(block.doing || {}).at(-1) || '');
}
