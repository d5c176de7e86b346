// Draws view blocks: pictures, maps, tables, talk, text, places and timelines. Their texts are never inserted as markup.

import { el, fill, pre, scrolls, table } from './dom.js';
import { MOST, drawMap } from './map.js';
import { drawTable, updateTable } from './table.js';
import { drawVillage, hasSpots, sameVillage, updateVillage } from './village.js';

// A tile's colour depends only on its character, so that a map keeps its colours.
function tone(character) {
  if (character === '.' || character === ' ') return 't0';
  return `t${1 + (character.codePointAt(0) % 9)}`;
}

function image(block) {
  if (!/^[A-Za-z0-9+/=]+$/.test(block.base64)) return el('p', {}, block.alt);
  const picture = el('img.frame', { alt: block.alt || 'Picture of the world', width: block.width || undefined, height: block.height || undefined });
  picture.src = `data:image/png;base64,${block.base64}`;
  if (block.width && block.width <= 160) picture.classList.add('pixels');
  return picture;
}

function grid(block) {
  const rows = block.rows.map((row) => {
    const line = el('div', {});
    let run = '';
    let last = null;
    const flush = () => { if (run) line.append(el('span', { class: last }, run)); run = ''; };
    for (const character of row) {
      const next = tone(character);
      if (next !== last) { flush(); last = next; }
      run += character;
    }
    flush();
    return line;
  });
  const legend = Object.entries(block.legend || {}).slice(0, 40);
  const words = legend.map(([character, word]) => `${character} ${word}`).join(', ');
  return el('div', {},
    scrolls(el('div.grid', { role: 'img', 'aria-label': `Map. ${words}` }, rows)),
    legend.length ? el('ul.legend', { 'aria-hidden': 'true' }, legend.map(([character, word]) =>
      el('li', {}, el('span.key', { class: tone(character) }, character), ` ${word}`))) : null);
}

function chat(block) {
  if (!block.lines.length) return el('p.empty', {}, 'No messages yet.');
  // Scrollable, with the last lines in view.
  return el('ol.chat', { tabindex: 0, 'aria-label': block.title || 'Chat' }, block.lines.slice(-80).map((line) =>
    el('li', {}, el('b', {}, line.speaker), line.channel ? el('small', {}, ` ${line.channel}`) : '', ' ', line.text)));
}

// A word, selectable if the view allows it: `pick` maps a selection's name to the function that selects a value.
function word(pick, name, value, shown = value) {
  const choose = pick?.[name];
  if (!choose || !choose.has(value)) return shown;
  return el('button.link', { type: 'button', 'aria-pressed': String(choose.chosen === String(value)), onclick: () => choose(value) }, shown);
}

const listed = (values, f) => values.map((value, i) => [i ? ', ' : '', f(value)]);

function places(block, pick) {
  const exits = new Map();
  for (const [from, target] of block.exits || []) exits.set(from, [...(exits.get(from) || []), target]);
  const picture = hasSpots(block) ? drawVillage(block, pick?.place) : exits.size && block.places.length <= MOST ? drawMap(block, pick?.place) : '';
  return el('div', {}, picture, el('ul.places', {}, (block.places || []).map((place) =>
    el('li', { class: place === block.here ? 'here' : '' },
      el('b', {}, word(pick, 'place', place)), place === block.here ? ' (here)' : '',
      exits.get(place)?.length ? el('small', {}, ` → ${exits.get(place).join(', ')}`) : '',
      block.occupants?.[place]?.length ? el('div', {}, listed(block.occupants[place], (who) => word(pick, 'character', who))) : null))));
}

// The same map stays, so that people walk on it.
function updatePlaces(node, block, pick) {
  const map = node.querySelector('.village-map');
  if (!map || !sameVillage(map, block)) { node.replaceWith(places(block, pick)); return; }
  updateVillage(map, block);
  node.lastElementChild.replaceWith(places({ ...block, spots: {}, exits: [] }, pick).lastElementChild);
}

function timeline(block, pick) {
  if (!block.entries.length) return el('p.empty', {}, 'Nothing to show.');
  return el('ol.timeline', { tabindex: 0, 'aria-label': block.title || 'Timeline' }, block.entries.map((entry) => el('li', {},
    el('p.head', {}, entry.number === null ? '' : el('span.n', {}, word(pick, 'tick', entry.number)),
      entry.title ? el('b', {}, entry.title) : '', entry.place ? el('b', {}, word(pick, 'place', entry.place)) : '',
      entry.who.length ? el('span', {}, listed(entry.who, (who) => word(pick, 'character', who))) : ''),
    el('p.prose', {}, entry.text),
    entry.details.length ? el('details', {}, el('summary', {}, 'Details'), el('ul', {}, entry.details.map((line) => el('li', {}, line)))) : null)));
}

function rows(block) {
  return table(block.columns.map((title, i) => ({ title, cell: (row) => row[i] ?? '' })), block.rows);
}

const KINDS = {
  image, grid, chat, places, timeline, table: rows, seats: drawTable,
  text: (block) => pre(block.text),
};
// Blocks that are changed in place rather than drawn anew.
const UPDATES = { seats: updateTable, places: updatePlaces };

export function drawBlock(block, pick) {
  const draw = KINDS[block.kind];
  const title = block.title ? el('h3', {}, block.title) : null;
  return el('div.block', { class: `block-${draw ? block.kind : 'other'}` }, title,
    draw ? draw(block, pick) : el('p.empty', {}, `Unknown kind of block: ${block.kind}`));
}

// Draws a view into a node; pictures are updated in place to avoid flicker.
export function drawView(node, view, remark, pick) {
  if (!view) {
    node.dataset.key = '';
    fill(node, remark ? el('p.empty', {}, remark) : null);
    return;
  }
  const kinds = view.blocks.map((block) => block.kind).join();
  if (node.dataset.key === kinds) {
    view.blocks.forEach((block, i) => {
      const old = node.children[i];
      const picture = block.kind === 'image' && old.querySelector('img.frame');
      if (picture && /^[A-Za-z0-9+/=]+$/.test(block.base64)) {
        const source = `data:image/png;base64,${block.base64}`;
        if (picture.src !== source) picture.src = source;
        if (picture.alt !== block.alt && block.alt) picture.alt = block.alt;
      } else if (UPDATES[block.kind]) {
        UPDATES[block.kind](old.lastElementChild, block, pick);
      } else {
        exchange(old, block, pick);
      }
    });
    return;
  }
  node.dataset.key = kinds;
  fill(node, view.blocks.map((block) => drawBlock(block, pick)));
  for (const talk of node.querySelectorAll(LONG)) talk.scrollTop = talk.scrollHeight;
}

const LONG = '.chat, .timeline';

const SCROLLED = `${LONG}, .text, .grid, .scroll`;
const drawn = new WeakMap(); // a block's node -> what it shows

// Redraws a block that differs; focus and scroll position are kept, except that the end of a conversation or timeline stays in view.
function exchange(old, block, pick) {
  const now = JSON.stringify(block);
  if (!pick && drawn.get(old) === now) return;
  const before = old.querySelector(SCROLLED);
  const { scrollTop, scrollLeft, scrollHeight, clientHeight } = before || {};
  const older = before && (!before.matches(LONG) || scrollHeight - scrollTop - clientHeight > 40);
  const within = before && before === document.activeElement;
  const fresh = drawBlock(block, pick);
  drawn.set(fresh, now);
  old.replaceWith(fresh);
  const after = fresh.querySelector(SCROLLED);
  if (!after) return;
  if (older) after.scrollTo(scrollLeft, scrollTop);
  else if (after.matches(LONG)) after.scrollTop = after.scrollHeight;
  if (within) after.focus({ preventScroll: true });
}

export const isVillage = (block) => block.kind === 'places' && hasSpots(block);

// A view's thumbnail for cards: its first picture or map.
export function thumbnail(node, view) {
  const block = view?.blocks.find((b) => b.kind === 'image') || view?.blocks.find((b) => b.kind === 'grid')
    || view?.blocks.find(isVillage) || view?.blocks.find((b) => b.kind === 'table') || view?.blocks[0];
  if (!block) { fill(node); return; }
  // Text would be too small to read, so the view's title is shown instead.
  if (view.title && !['image', 'grid'].includes(block.kind) && !isVillage(block)) { node.dataset.key = ''; fill(node, el('p.moment', {}, view.title)); return; }
  drawView(node, { blocks: [block] });
}

const PARTS = 24;

// Draws an observation: status, map, inventory, events, messages, and the text.
export function drawObservation(node, seen, { text = true, pick } = {}) {
  if (!seen) { fill(node, el('p.empty', {}, 'No observation was recorded.')); return; }
  const status = Object.entries(seen.status || {}).slice(0, PARTS);
  const bag = Object.entries(seen.inventory || {}).filter(([, n]) => n !== 0).slice(0, 40);
  const open = node.querySelector(':scope > details')?.open; // by whoever reads it
  const map = el('div', {});
  if (seen.view) drawView(map, seen.view, '', pick);
  const where = [seen.location?.description || seen.location?.region, seen.time_of_day].filter(Boolean).join(' · ');
  fill(node,
    where ? el('p.where', {}, where) : null,
    status.length ? el('dl.status', {}, status.map(([key, value]) => el('div', {}, el('dt', {}, key.replaceAll('_', ' ')), el('dd', {}, meter(key, value, seen.meters?.[key]))))) : null,
    map,
    bag.length ? el('ul.bag', { 'aria-label': 'Items' }, bag.map(([key, n]) => el('li', {}, el('b', {}, n), ` ${key.replaceAll('_', ' ')}`))) : null,
    seen.events?.length ? el('ul.happened', { 'aria-label': 'Events' }, seen.events.map((line) => el('li', {}, line))) : null,
    seen.messages?.length ? el('ul.happened', {}, seen.messages.map((m) => el('li', {}, el('b', {}, m.sender || m.from || ''), ` ${m.content || m.text || ''}`))) : null,
    text && seen.text ? el('details', { open }, el('summary', {}, 'As text'), pre(seen.text)) : null);
}

// The meters that an observation's game names, each as a bar.
export function meters(seen) {
  return Object.entries(seen?.meters || {}).map(([key, most]) =>
    el('p.vital', {}, el('span', {}, key.replaceAll('_', ' ')), meter(key, seen.status[key], most)));
}

function meter(key, value, most) {
  if (most !== undefined) {
    return [el('meter', { min: 0, max: most, low: most / 3, high: most / 2, optimum: most, value, 'aria-label': key.replaceAll('_', ' ') }), ` ${Math.round(value * 100) / 100}`];
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'number' ? Math.round(value * 100) / 100 : String(value);
}
