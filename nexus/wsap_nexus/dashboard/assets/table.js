// A round table: players in a circle with their faces, arrows between them, and what is in the middle.

import { el, fill, table } from './dom.js';
import { faceAt, shape, short } from './face.js';

const SIZE = 400;
const MIDDLE = SIZE / 2;
const WIDER = 1.02; // the table is a little wider than high
const FEW = 9; // seats that are drawn larger than more would be
const MOST = 40;
const MOON = 'M-4 -22 A22 22 0 1 0 20 10 A20 20 0 0 1 -4 -22 Z';

const at = (x, y) => `translate(${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10})`;
const text = (y, words, more) => shape('text', { y, ...more }, words);

const called = (seat) => seat.called || seat.name;
const known = (seat) => [seat.state === 'out' ? '†' : seat.state === 'away' ? 'away' : '', seat.note].filter(Boolean).join(' ');

// One seat, around the origin.
function drawSeat(seat, size, letters) {
  const state = seat.state === 'out' ? 'dead' : seat.state === 'away' ? 'asleep' : 'awake';
  const below = seat.note || (seat.called ? seat.name : '');
  const mark = 0.3 * size;
  return [
    shape('title', {}, [called(seat), seat.called ? seat.name : '', known(seat), seat.badge].filter(Boolean).join(', ')),
    shape('circle', { class: 'ring', r: size / 2 + 3 }), faceAt(seat.who || seat.name, state, size),
    seat.state === 'out' ? shape('path', { class: 'cross', d: `M${-mark} ${-mark} L${mark} ${mark} M${mark} ${-mark} L${-mark} ${mark}` }) : null,
    text(size / 2 + 14, short(called(seat), letters), { class: 'name' }),
    below ? text(size / 2 + 25, short(below, letters + 2), { class: 'note' }) : null,
    seat.badge ? shape('g', { class: 'badge', transform: at(0, -size / 2) },
      shape('rect', { x: -3.2 * Math.min(seat.badge.length, 12) - 5, y: -9, width: 6.4 * Math.min(seat.badge.length, 12) + 10, height: 16, rx: 8 }), text(3.5, short(seat.badge, 12))) : null,
  ];
}

// An arrow from one seat to another, bent towards the middle of the table.
function arrow([x1, y1], [x2, y2], kind, gap) {
  const bend = [MIDDLE + 0.3 * ((x1 + x2) / 2 - MIDDLE), MIDDLE + 0.3 * ((y1 + y2) / 2 - MIDDLE)];
  const toward = ([x, y], [tx, ty], by) => { const far = Math.hypot(tx - x, ty - y) || 1; return [x + (tx - x) / far * by, y + (ty - y) / far * by]; };
  const from = toward([x1, y1], bend, gap);
  const tip = toward([x2, y2], bend, gap);
  const foot = toward(tip, bend, 9);
  const [dx, dy] = [(tip[1] - foot[1]) / 2, (foot[0] - tip[0]) / 2];
  const point = (...values) => values.map((value) => Math.round(value * 10) / 10).join(' ');
  return shape('g', { class: `link link-${/^[a-z]+$/.test(kind) ? kind : 'other'}` },
    shape('path', { d: `M${point(...from)} Q${point(...bend)} ${point(...foot)}` }),
    shape('path', { class: 'tip', d: `M${point(...tip)} L${point(foot[0] + dx, foot[1] + dy)} L${point(foot[0] - dx, foot[1] - dy)} Z` }));
}

function lines(words, most) {
  const found = [''];
  for (const word of words.split(/\s+/)) {
    if (found.at(-1) && found.at(-1).length + word.length >= most) found.push('');
    found.push(`${found.pop()} ${word}`.trim());
  }
  return found.length > 4 ? [...found.slice(0, 3), '…'] : found;
}

function middle(block) {
  const seat = block.seats.find((one) => one.name === block.centre);
  if (seat) {
    return [faceAt(seat.who || seat.name, seat.state === 'out' ? 'dead' : 'awake', 64), text(50, short(called(seat), 16), { class: 'centre' }),
      seat.badge ? text(66, short(seat.badge, 20), { class: 'said' }) : null];
  }
  if (block.centre) return lines(block.centre, 18).map((words, i, all) => text(5 + 18 * (i - (all.length - 1) / 2), words, { class: 'centre' }));
  return block.dark ? shape('path', { class: 'moon', d: MOON }) : null;
}

const kept = new WeakMap(); // table -> its seats that are drawn

// `pick.seat`, if there is one, is called with the name of a pressed seat; its `has` says which can be pressed, and its
// `words` what that does.
export function drawTable(block, pick) {
  const node = el('div.round', {}, el('ol.phases', { 'aria-label': 'Phases' }), shape('svg', { viewBox: `0 0 ${SIZE} ${SIZE}` }),
    el('details.seated', {}, el('summary', {}, 'Everybody at the table'), el('div', {})));
  kept.set(node, new Map());
  updateTable(node, block, pick);
  return node;
}

export function updateTable(node, block, pick) {
  const [phases, svg, list] = node.children;
  const choose = pick?.seat;
  fill(phases, block.phases.map((name) => el('li', { 'aria-current': name === block.phase ? 'step' : null }, name)));
  phases.hidden = !block.phases.length;
  const shown = block.seats.slice(0, MOST);
  const size = shown.length > FEW ? 34 : 46;
  const letters = shown.length > 12 ? 9 : shown.length > FEW ? 11 : 16;
  const radius = MIDDLE - size / 2 - 22;
  const places = new Map(shown.map((seat, i) => {
    const turn = 2 * Math.PI * i / shown.length - Math.PI / 2;
    return [seat.name, [MIDDLE + WIDER * radius * Math.cos(turn), MIDDLE - 14 + radius * Math.sin(turn)]];
  }));
  svg.setAttribute('class', `table${block.dark ? ' dark' : ''}${shown.length > FEW ? ' many' : ''}`);
  svg.setAttribute('role', choose ? 'group' : 'img');
  svg.setAttribute('aria-label', block.alt || `A table with ${shown.length} seats`);
  const old = kept.get(node);
  const seats = new Map(shown.map((seat) => {
    const can = Boolean(choose?.has(seat.name));
    const key = JSON.stringify([seat, size, places.get(seat.name), can && choose.words]);
    const before = old.get(seat.name);
    if (before?.key === key) { before.choose = choose; return [seat.name, before]; }
    const one = { key, choose, node: before?.node || shape('g', {}) };
    const press = (event) => {
      if (event.type === 'keydown' && event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      event.stopPropagation();
      one.choose(seat.name);
    };
    if (can) for (const [name, value] of Object.entries({ role: 'button', tabindex: 0, 'aria-label': `${called(seat)}: ${choose.words}` })) one.node.setAttribute(name, value);
    else for (const name of ['role', 'tabindex', 'aria-label']) one.node.removeAttribute(name);
    one.node.onclick = can ? press : null;
    one.node.onkeydown = can ? press : null;
    one.node.setAttribute('class', `seat ${seat.state}${seat.turn ? ' turn' : ''}${seat.name === block.centre ? ' middle' : ''}${can ? ' choice' : ''}`);
    one.node.setAttribute('transform', at(...places.get(seat.name)));
    fill(one.node, drawSeat(seat, size, letters));
    return [seat.name, one];
  }));
  kept.set(node, seats);
  const links = block.links.filter(([from, to]) => places.has(from) && places.has(to) && from !== to)
    .map(([from, to, kind]) => arrow(places.get(from), places.get(to), kind || '', size / 2 + 4));
  const stay = new Set([...seats.values()].map((one) => one.node));
  // Seats that stay are not taken out, so that they keep the focus.
  for (const child of [...svg.children]) if (!stay.has(child)) child.remove();
  svg.prepend(shape('ellipse', { class: 'top', cx: MIDDLE, cy: MIDDLE, rx: WIDER * radius - 38, ry: radius - size / 2 - 20 }), ...links,
    shape('g', { class: 'inside', transform: at(MIDDLE, MIDDLE), 'aria-hidden': 'true' }, middle(block)));
  for (const one of seats.values()) if (!one.node.parentNode) svg.append(one.node);
  const now = new Map(block.links.map(([from, to]) => [from, `→ ${to}`]));
  fill(list.lastElementChild, table([
    { title: 'Who', cell: (seat) => (seat.called ? [seat.called, el('small', {}, ` ${seat.name}`)] : seat.name) },
    { title: 'Known', cell: known },
    { title: 'Now', cell: (seat) => [seat.badge, now.get(seat.name), seat.turn ? 'has the turn' : ''].filter(Boolean).join(', ') },
  ], block.seats));
}
