// A graph of places and exits as a picture; the layout is deterministic.

import { shape } from './face.js';

const WIDTH = 640;
const HEIGHT = 380;
const MARGIN = 70;
const ROUNDS = 240;
export const MOST = 60;

// A force-directed layout: connected places attract, all repel each other; from a circle, with shrinking moves.
function laidOut(places, exits) {
  const spots = places.map((_, i) => ({ x: Math.cos(i / places.length * 2 * Math.PI), y: Math.sin(i / places.length * 2 * Math.PI) }));
  const at = new Map(places.map((place, i) => [place, spots[i]]));
  const ties = exits.map(([from, target]) => [at.get(from), at.get(target)]).filter(([a, b]) => a && b && a !== b);
  const ideal = 1.6 / Math.sqrt(places.length);
  for (let round = 0; round < ROUNDS; round += 1) {
    const moves = new Map(spots.map((spot) => [spot, { x: 0, y: 0 }]));
    const push = (a, b, strength) => {
      const x = a.x - b.x || 1e-3;
      const y = a.y - b.y || 1e-3;
      const far = Math.hypot(x, y);
      const by = strength(far) / far;
      moves.get(a).x += x * by; moves.get(a).y += y * by;
      moves.get(b).x -= x * by; moves.get(b).y -= y * by;
    };
    spots.forEach((a, i) => spots.slice(i + 1).forEach((b) => push(a, b, (far) => ideal * ideal / far)));
    for (const [a, b] of ties) push(a, b, (far) => -far * far / ideal);
    const most = 0.2 * (1 - round / ROUNDS);
    for (const [spot, move] of moves) {
      const far = Math.hypot(move.x, move.y) || 1;
      spot.x += move.x / far * Math.min(far, most);
      spot.y += move.y / far * Math.min(far, most);
    }
  }
  return at;
}

function scaled(values, size) {
  const low = Math.min(...values);
  const room = Math.max(...values) - low;
  return (value) => (room < 1e-6 ? size / 2 : MARGIN + (value - low) / room * (size - 2 * MARGIN));
}

// Returns the shift that keeps a label on the map.
function inside(middle, said) {
  const half = said.length * 4.5 + 4;
  return Math.max(0, half - middle) - Math.max(0, middle + half - WIDTH);
}

// The ways between known places, each once, whichever way round it is given.
export function waysOf(exits, isKnown) {
  const found = new Set();
  return exits.filter(([from, target]) => {
    const way = JSON.stringify([from, target].sort());
    return isKnown(from) && isKnown(target) && !found.has(way) && found.add(way);
  });
}

// `choose` is called with a clicked place.
export function drawMap(block, choose) {
  const at = laidOut(block.places, block.exits);
  const x = scaled([...at.values()].map((spot) => spot.x), WIDTH);
  const y = scaled([...at.values()].map((spot) => spot.y), HEIGHT);
  const ways = waysOf(block.exits, (place) => at.has(place)).map(([from, target]) => shape('line', { x1: x(at.get(from).x), y1: y(at.get(from).y), x2: x(at.get(target).x), y2: y(at.get(target).y) }));
  const spots = block.places.map((place) => {
    const people = block.occupants?.[place] || [];
    const named = people.length > 3 ? `${people.slice(0, 2).join(', ')} +${people.length - 2}` : people.join(', ');
    const spot = shape('g', { transform: `translate(${x(at.get(place).x)} ${y(at.get(place).y)})`, class: [place === block.here ? 'here' : '', people.length ? 'peopled' : ''].join(' ') },
      shape('circle', { r: 9 + Math.min(people.length, 6) * 2 }), shape('text', { x: inside(x(at.get(place).x), place), y: 36, class: 'place' }, place),
      named ? shape('text', { x: inside(x(at.get(place).x), named), y: -26 }, named) : '');
    if (choose?.has(place)) {
      spot.classList.add('choice');
      spot.addEventListener('click', () => choose(place));
    }
    return spot;
  });
  // Hidden from screen readers: the list below has the same content.
  return shape('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'map', 'aria-hidden': 'true' }, ways, spots);
}
