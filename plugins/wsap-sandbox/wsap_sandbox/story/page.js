'use strict';
// Shows the story in the element #data; its contents are text, never markup.
const data = JSON.parse(document.getElementById('data').textContent);
const { words, places, characters, ticks } = data;
const PAGE = 24;
const nameOf = new Map([...places, ...characters]);
const indexOf = new Map(ticks.map((tick, i) => [tick.n, i]));
const state = { tick: 0, character: '', place: '', search: '', first: null };

function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (['value', 'disabled', 'max', 'min', 'hidden'].includes(key)) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== ''));
  return node;
}

function svg(tag, props, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, String(value));
  node.append(...children.flat(9));
  return node;
}

// Replaces what is in a node; a control that has the focus gives it to the one that takes its place.
function fill(node, ...children) {
  const held = node.contains(document.activeElement) ? document.activeElement : null;
  node.replaceChildren(...children);
  if (held) [...node.querySelectorAll(held.localName)].find((twin) => twin.textContent === held.textContent)?.focus({ preventScroll: true });
}

// --- filtering ---

const everything = ticks.flatMap((tick, at) => tick.scenes.map((scene) => ({ at, tick, scene, low: scene.text.toLocaleLowerCase() })));

function fitting() {
  const low = state.search.toLocaleLowerCase();
  return everything.filter(({ scene, low: text }) => (scene.text || low === '') && text.includes(low)
    && (!state.place || scene.place === state.place) && (!state.character || scene.who.includes(state.character)));
}

// --- the map: force-directed layout ---

const spots = new Map(places.map(([id], i) => [id, { x: Math.cos(i / places.length * 6.2832), y: Math.sin(i / places.length * 6.2832) }]));
const ways = data.exits.filter(([from, to], i, all) => spots.has(from) && spots.has(to) && from !== to && all.findIndex(([a, b]) => (a === from && b === to) || (a === to && b === from)) === i);
(function layOut() {
  const all = [...spots.values()];
  const ideal = 1.6 / Math.sqrt(all.length || 1);
  for (let round = 0; round < 240 && all.length <= 200; round += 1) {
    const moves = new Map(all.map((spot) => [spot, { x: 0, y: 0 }]));
    const push = (a, b, strength) => {
      const x = a.x - b.x || 1e-3;
      const y = a.y - b.y || 1e-3;
      const by = strength(Math.hypot(x, y)) / Math.hypot(x, y);
      for (const [spot, sign] of [[a, 1], [b, -1]]) { moves.get(spot).x += sign * x * by; moves.get(spot).y += sign * y * by; }
    };
    all.forEach((a, i) => all.slice(i + 1).forEach((b) => push(a, b, (far) => ideal * ideal / far)));
    for (const [from, to] of ways) push(spots.get(from), spots.get(to), (far) => -far * far / ideal);
    for (const [spot, move] of moves) {
      const far = Math.hypot(move.x, move.y) || 1;
      const by = Math.min(far, 0.2 * (1 - round / 240)) / far;
      spot.x += move.x * by;
      spot.y += move.y * by;
    }
  }
  for (const [axis, size] of [['x', 500], ['y', 340]]) {
    const low = Math.min(...all.map((spot) => spot[axis]));
    const room = Math.max(...all.map((spot) => spot[axis])) - low;
    for (const spot of all) spot[axis] = room < 1e-6 ? size / 2 : 70 + (spot[axis] - low) / room * (size - 140);
  }
}());

// The horizontal shift that keeps a label on the map.
function inside(id, said) {
  const half = said.length * 4 + 6;
  return Math.max(0, half - spots.get(id).x) - Math.max(0, spots.get(id).x + half - 500);
}

function map(tick) {
  return svg('svg', { viewBox: '0 0 500 340', role: 'group', 'aria-label': `${words.map} ${tick.n}` },
    ways.map(([from, to]) => svg('line', { x1: spots.get(from).x, y1: spots.get(from).y, x2: spots.get(to).x, y2: spots.get(to).y })),
    places.map(([id, name]) => {
      const people = tick.where[id] || [];
      const shown = people.map((one) => nameOf.get(one) || one);
      const named = shown.length > 3 ? `${shown.slice(0, 2).join(', ')} +${shown.length - 2}` : shown.join(', ');
      const spot = svg('g', {
        transform: `translate(${spots.get(id).x} ${spots.get(id).y})`, tabindex: 0, role: 'button', 'aria-pressed': id === state.place,
        class: [people.length ? 'peopled' : '', people.includes(state.character) ? 'followed' : '', id === state.place ? 'chosen' : ''].join(' '),
      }, svg('circle', { r: 10 + 2 * Math.min(people.length, 6) }), svg('text', { x: inside(id, name), y: 36, class: 'place' }, name),
      named ? svg('text', { x: inside(id, named), y: -26 }, named) : '');
      const choose = () => go({ place: state.place === id ? '' : id, first: null });
      spot.addEventListener('click', choose);
      spot.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(); } });
      return spot;
    }));
}

// --- the page ---

const slider = el('input', { type: 'range', min: 0, max: ticks.length - 1, 'aria-label': words.tick, oninput: () => go({ tick: Number(slider.value), first: null }) });
const where = el('output', {});
const step = (sign, by) => el('button', { type: 'button', 'aria-label': by < 0 ? words.earlier : words.later, onclick: () => go({ tick: state.tick + by, first: null }) }, sign);
const choice = (key, all, options) => el('select', { 'aria-label': words[`${key}s`], onchange: (event) => go({ [key]: event.target.value, first: null }) },
  el('option', { value: '' }, all), options.map(([id, name]) => el('option', { value: id }, name)));
const who = choice('character', words.everybody, characters);
const place = choice('place', words.everywhere, places);
const search = el('input', { type: 'search', placeholder: words.search, 'aria-label': words.search, oninput: () => go({ search: search.value, first: null }) });
const picture = el('div', { class: 'map' });
const mind = el('dl', { class: 'mind' });
const found = el('p', { class: 'found', role: 'status' });
const list = el('ol', { class: 'scenes' });
const before = el('button', { type: 'button', onclick: () => turn(-1) }, `↑ ${words.earlier}`);
const next = el('button', { type: 'button', onclick: () => turn(1) }, `↓ ${words.later}`);
document.body.append(
  el('header', {}, el('h1', {}, data.title), el('div', { class: 'controls' }, step('‹', -1), slider, step('›', 1), where, who, place, search)),
  el('main', {}, el('aside', {}, picture, mind), el('section', {}, found, before, list, next)));

function marked(text) {
  const low = text.toLocaleLowerCase();
  const wanted = state.search.toLocaleLowerCase();
  if (!wanted || low.length !== text.length) return [text];
  const parts = [];
  let at = 0;
  for (let hit = low.indexOf(wanted); hit >= 0; hit = low.indexOf(wanted, at)) {
    parts.push(text.slice(at, hit), el('mark', {}, text.slice(hit, hit + wanted.length)));
    at = hit + wanted.length;
  }
  return [...parts, text.slice(at)];
}

const word = (key, id) => el('button', { type: 'button', class: 'word', 'aria-pressed': String(state[key] === id), onclick: () => go({ [key]: state[key] === id ? '' : id, first: null }) }, nameOf.get(id) || id);

function drawScene({ at, tick, scene }) {
  return el('li', { class: at === state.tick ? 'now' : '' },
    el('p', { class: 'head' }, el('button', { type: 'button', class: 'word n', onclick: () => go({ tick: at }) }, `${words.tick} ${tick.n}`), ' ', word('place', scene.place), scene.who.length ? ' · ' : '',
      scene.who.map((one, i) => [i ? ', ' : '', word('character', one)])),
    el('p', { class: 'text' }, marked(scene.text)),
    scene.rests.length ? el('details', {}, el('summary', {}, words.rests), el('ul', {}, scene.rests.map((line) => el('li', {}, line)))) : null);
}

let scenes = [];
function turn(by) { go({ first: state.first + by * PAGE }); list.scrollIntoView({ block: 'nearest' }); }

function go(change) {
  Object.assign(state, change);
  state.tick = Math.max(0, Math.min(ticks.length - 1, state.tick));
  if ('character' in change || 'place' in change || 'search' in change || !scenes.length) scenes = fitting();
  if (state.first === null) state.first = scenes.findIndex((one) => one.at >= state.tick);
  if (state.first < 0) state.first = 'first' in change && change.first !== null ? 0 : scenes.length - 1;
  state.first = Math.max(0, Math.min(scenes.length - 1, state.first));
  draw();
}

function draw() {
  const tick = ticks[state.tick];
  slider.value = state.tick;
  where.textContent = `${words.tick} ${tick.n} ${words.of} ${ticks[ticks.length - 1].n}`;
  who.value = state.character;
  place.value = state.place;
  if (search.value !== state.search) search.value = state.search;
  fill(picture, map(tick));
  const person = tick.people[state.character];
  mind.replaceChildren(...(person ? [el('dt', { class: 'name' }, nameOf.get(state.character)), ...['intention', 'memory', 'feels', 'wants'].filter((key) => person[key]).flatMap((key) => [el('dt', {}, words[key]), el('dd', {}, person[key])])] : []));
  found.textContent = scenes.length ? `${words.found}: ${scenes.length}` : words.nothing;
  fill(list, ...scenes.slice(state.first, state.first + PAGE).map(drawScene));
  before.hidden = state.first === 0;
  next.hidden = state.first + PAGE >= scenes.length;
  const kept = new URLSearchParams({ tick: tick.n });
  for (const key of ['character', 'place', 'search']) if (state[key]) kept.set(key, state[key]);
  try { history.replaceState(null, '', `#${kept}`); } catch { /* a page in a frame may not */ }
}

const kept = new URLSearchParams(location.hash.slice(1));
const ids = (key, all) => (all.some(([id]) => id === kept.get(key)) ? kept.get(key) : '');
go({
  tick: indexOf.get(Number(kept.get('tick'))) ?? 0,
  character: ids('character', characters), place: ids('place', places), search: kept.get('search') || '',
});
