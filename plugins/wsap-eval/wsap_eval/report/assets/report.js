// Draws the plots and the list of episodes. Texts are never set as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const NS = 'http://www.w3.org/2000/svg';
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node[key] = value;
  node.append(...children);
  return node;
};
const draw = (parent, tag, attributes, text) => {
  const node = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
};
const number = (x) => (x === null ? '–' : Math.abs(x) >= 1000 ? Math.round(x).toLocaleString('en') : String(+x.toPrecision(3)));
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const colour = (row) => `k${data.entrants.indexOf(row.entrant) % 8}`;
const games = Object.keys(data.games);
const rowsOf = (game) => data.rows.filter((row) => row.game === game);
const endOf = (row, i) => data.outcomes[row.ends[i]];
const valueAt = (row, i) => (endOf(row, i) === 'forfeited' ? row.worst : row.values[i]);
const plots = (id) => document.querySelector(`#${id} .plots`);

// Actions of a point.
const said = document.getElementById('said');
const address = document.getElementById('dashboard');
address.value = data.dashboard;
document.getElementById('opens').hidden = false;
let quiet;
function tell(text) {
  said.textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => { said.textContent = ''; }, 6000);
}
async function replay(row, i) {
  const base = address.value.trim().replace(/\/+$/, '');
  if (/^https?:\/\//.test(base)) { window.open(`${base}/#/run/${encodeURIComponent(row.runs[i])}`, '_blank', 'noopener'); return; }
  const command = data.command.replace('RUN', () => row.runs[i]);
  try { await navigator.clipboard.writeText(command); tell(`Copied: ${command}`); } catch { tell(command); }
}
const words = (row, i) => `${row.entrant}, seed ${row.seeds[i]}${row.repeats ? `.${row.repeats[i]}` : ''}: ${number(valueAt(row, i))} (${endOf(row, i)})`;

// Points of a plot: [x, y, row, index]. The one nearest to the pointer has a tooltip, and a click opens it.
const tip = document.body.appendChild(el('div', { id: 'tip', hidden: true }));
function interactive(svg, points) {
  const ring = draw(svg, 'circle', { class: 'near', r: 6, visibility: 'hidden' });
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null, least = 400;
    for (const point of points) {
      const distance = (point[0] - x) ** 2 + (point[1] - y) ** 2;
      if (distance < least) { least = distance; best = point; }
    }
    return best;
  };
  svg.classList.add('points');
  svg.addEventListener('pointermove', (event) => {
    const point = nearest(event);
    tip.hidden = !point;
    ring.setAttribute('visibility', point ? 'visible' : 'hidden');
    if (!point) return;
    ring.setAttribute('cx', point[0]); ring.setAttribute('cy', point[1]);
    tip.textContent = words(point[2], point[3]);
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, event.clientY - 12 - tip.offsetHeight)}px`;
  });
  svg.addEventListener('pointerleave', () => { tip.hidden = true; ring.setAttribute('visibility', 'hidden'); });
  svg.addEventListener('click', (event) => { const point = nearest(event); if (point) replay(point[2], point[3]); });
}
const path = (svg, points, kind) => draw(svg, 'path', { class: `dots ${kind}`, d: points.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join('') });

function axis(values, most = 6) {
  let low = Math.min(...values), high = Math.max(...values);
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= ((high - low) / most) * 0.999);
  const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  return { low: first * step, high: last * step, ticks: Array.from({ length: last - first + 1 }, (_, i) => +((first + i) * step).toPrecision(12)) };
}
const extent = (lists) => { let low = Infinity, high = -Infinity; for (const list of lists) for (const v of list) if (v !== null && v !== undefined) { if (v < low) low = v; if (v > high) high = v; } return low > high ? [0, 1] : [low, high]; };
function canvas(parent, width, height, label) {
  const svg = draw(parent, 'svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': label });
  return svg;
}
const scatter = (i) => (((i * 2654435761) >>> 0) / 4294967296 - 0.5) * 14; // deterministic jitter

function scores(figure, game, width) {
  const rows = rowsOf(game), bottom = rows.length * 46 + 4;
  const lists = rows.map((row) => row.values);
  const scale = axis(extent([...lists, ...rows.map((r) => [r.low, r.high, r.score, r.counts[2] ? r.worst : null])]));
  const x = (v) => 8 + ((v - scale.low) / (scale.high - scale.low)) * (width - 16);
  const svg = canvas(figure, width, bottom + 22, `${data.games[game].metric} in ${game}`);
  for (const t of scale.ticks) {
    draw(svg, 'line', { class: 'grid', x1: x(t), x2: x(t), y1: 0, y2: bottom });
    draw(svg, 'text', { class: 'tick', x: x(t), y: bottom + 16, 'text-anchor': t === scale.ticks[0] ? 'start' : t === scale.ticks.at(-1) ? 'end' : 'middle' }, number(t));
  }
  const points = [];
  rows.forEach((row, n) => {
    const y = n * 46 + 31, own = [];
    row.seeds.forEach((_, i) => { const v = valueAt(row, i); if (v !== null && endOf(row, i) !== 'failed') own.push([x(v), y + scatter(i), row, i]); });
    path(svg, own, colour(row));
    points.push(...own);
    const told = row.score === null || row.low !== null ? row.told : `${row.told}, no interval`;
    draw(svg, 'text', { class: 'name', x: 8, y: y - 14 }, short(row.entrant, Math.floor((width - told.length * 7 - 24) / 8)));
    draw(svg, 'text', { class: 'told', x: width - 8, y: y - 14, 'text-anchor': 'end' }, told);
    const group = draw(svg, 'g', { class: colour(row) });
    if (row.low !== null) draw(group, 'line', { class: 'span', x1: x(row.low), x2: x(row.high), y1: y, y2: y });
    if (row.score !== null) draw(group, 'circle', { class: 'mean', cx: x(row.score), cy: y, r: 6 });
  });
  interactive(svg, points);
}

function means(row) {
  const sums = new Map();
  row.seeds.forEach((seed, i) => {
    const v = valueAt(row, i);
    if (v === null || endOf(row, i) === 'failed') return;
    const [sum, count, first] = sums.get(seed) ?? [0, 0, i];
    sums.set(seed, [sum + v, count + 1, first]);
  });
  if (row.bySeed) for (const [seed, [, , first]] of sums) {
    if (row.bySeed[seed] === undefined) sums.delete(seed);
    else sums.set(seed, [row.bySeed[seed], 1, first]);
  }
  return sums;
}
function paired(figure, game, width) {
  const rows = rowsOf(game), name = data.games[game].baseline, bases = rows.filter((r) => r.own === name || r.entrant === name);
  if (!bases.length) return figure.append(el('p', { className: 'plain' }, `The baseline ${name} was not played in this game.`));
  figure.append(el('p', { className: 'plain' }, `Baseline: ${bases.map((b) => b.entrant).join(', ')}`));
  const grid = figure.appendChild(el('div', { className: 'pairs' }));
  const columns = Math.max(1, Math.floor((width + 12) / 232)), size = Math.min(300, (width - (columns - 1) * 12) / columns);
  for (const row of rows.filter((r) => !bases.includes(r))) {
    const told = row.difference || (row.apart ? `Played under other conditions: ${row.apart}.` : 'No seed in common.');
    const cell = grid.appendChild(el('div', {}, el('div', {}, short(row.entrant, 60)), el('div', { className: 'plain' }, told)));
    const base = bases.find((b) => b.entrant === row.base);
    if (!base) continue;
    const floor = means(base);
    const both = [...means(row)].filter(([seed]) => floor.has(seed)).map(([seed, [sum, count, i]]) => [floor.get(seed)[0] / floor.get(seed)[1], sum / count, row, i]);
    if (!both.length) continue;
    const scale = axis(extent([both.flatMap((b) => [b[0], b[1]])]), 4), at = (v) => ((v - scale.low) / (scale.high - scale.low)) * (size - 46);
    const svg = canvas(cell, size, size - 10, `${row.entrant} against ${base.entrant}`);
    const end = size - 32;
    for (const t of scale.ticks) {
      draw(svg, 'line', { class: 'grid', x1: 36 + at(t), x2: 36 + at(t), y1: end - at(scale.high), y2: end });
      draw(svg, 'line', { class: 'grid', x1: 36, x2: 36 + at(scale.high), y1: end - at(t), y2: end - at(t) });
      draw(svg, 'text', { class: 'tick', x: 36 + at(t), y: end + 15, 'text-anchor': 'middle' }, number(t));
      draw(svg, 'text', { class: 'tick', x: 32, y: end - at(t) + 4, 'text-anchor': 'end' }, number(t));
    }
    draw(svg, 'line', { class: 'same', x1: 36, y1: end, x2: 36 + at(scale.high), y2: end - at(scale.high) });
    const points = both.map(([a, b, r, i]) => [36 + at(a) + scatter(i) / 4, end - at(b) + scatter(i + 7) / 4, r, i]);
    path(svg, points, colour(row)).style.opacity = 0.7;
    interactive(svg, points);
  }
  if (grid.children.length === 0) grid.append(el('p', { className: 'plain' }, 'There are no other entrants to compare.'));
  if (data.games[game].set) figure.append(el('p', { className: 'plain' }, 'This metric is defined only for a set of episodes; single seeds have no values.'));
}

const SPENT = [['US dollars per episode', (v) => `$${number(v)}`], ['tokens per episode', number], ['seconds per episode', number]];
function cost(figure, game, width) {
  const rows = rowsOf(game).filter((r) => r.score !== null);
  const kind = [0, 1, 2].find((k) => rows.some((r) => r.spent[k] > 0)) ?? 2, [title, form] = SPENT[kind];
  const shown = rows.filter((r) => r.spent[kind] !== null), hidden = rows.filter((r) => r.spent[kind] === null);
  const height = 300, [left, end] = [44, height - 40];
  const across = axis([0, ...extent([shown.map((r) => r.spent[kind])])]), up = axis(extent(shown.map((r) => [r.score, r.low, r.high])));
  const x = (v) => left + ((v - across.low) / (across.high - across.low)) * (width - left - 16), y = (v) => end - ((v - up.low) / (up.high - up.low)) * (end - 12);
  const svg = canvas(figure, width, height, `Cost against score in ${game}`);
  for (const t of across.ticks) {
    draw(svg, 'line', { class: 'grid', x1: x(t), x2: x(t), y1: 12, y2: end });
    draw(svg, 'text', { class: 'tick', x: x(t), y: end + 16, 'text-anchor': 'middle' }, form(t));
  }
  for (const t of up.ticks) {
    draw(svg, 'line', { class: 'grid', x1: left, x2: width - 16, y1: y(t), y2: y(t) });
    draw(svg, 'text', { class: 'tick', x: left - 6, y: y(t) + 4, 'text-anchor': 'end' }, number(t));
  }
  draw(svg, 'text', { class: 'axis', x: width - 16, y: height - 6, 'text-anchor': 'end' }, title);
  let above = -Infinity;
  for (const row of [...shown].sort((a, b) => b.score - a.score)) {
    const [cx, cy, group] = [x(row.spent[kind]), y(row.score), draw(svg, 'g', { class: colour(row) })], onLeft = cx > width / 2;
    if (row.low !== null) draw(group, 'line', { class: 'span', x1: cx, x2: cx, y1: y(row.low), y2: y(row.high) });
    draw(draw(group, 'circle', { class: 'mean', cx, cy, r: 6 }), 'title', {}, `${row.entrant}: ${row.told}, ${form(row.spent[kind])}`);
    above = Math.max(cy + 4, above + 15);
    draw(group, 'text', { class: 'name', x: cx + (onLeft ? -10 : 10), y: above, 'text-anchor': onLeft ? 'end' : 'start' }, short(row.entrant, Math.floor(((onLeft ? cx - left : width - cx) - 16) / 8)));
  }
  if (hidden.length) figure.append(el('p', { className: 'plain' }, `Cost unknown: ${hidden.map((r) => r.entrant).join('; ')}`));
}

function outcomes(figure, game) {
  const legend = figure.appendChild(el('div', { className: 'legend' }));
  data.outcomes.forEach((name, k) => legend.append(el('span', {}, el('i', { className: `o${k}` }), name)));
  for (const row of rowsOf(game)) {
    const bar = el('div', { className: 'bar' });
    row.counts.forEach((count, k) => { if (count) { const part = bar.appendChild(el('span', { className: `o${k}`, title: `${count} ${data.outcomes[k]}` }, String(count))); part.style.flex = count; } });
    figure.append(el('div', {}, short(row.entrant, 80)), bar);
  }
}

// Plots near the window are drawn first, and all again when their width changes.
const DRAWN = { scores, paired, cost, outcomes };
const drawn = new WeakMap();
function fill(figure) {
  const style = getComputedStyle(figure), width = Math.floor(figure.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
  if (width < 1 || drawn.get(figure) === width) return;
  drawn.set(figure, width);
  while (figure.children.length > 1) figure.lastChild.remove();
  figure.style.minHeight = '';
  DRAWN[figure.dataset.kind](figure, figure.dataset.game, width);
}
const near = new IntersectionObserver((seen) => seen.forEach((s) => { if (s.isIntersecting) { fill(s.target); sized.observe(s.target); } }), { rootMargin: '300px' });
const sized = new ResizeObserver((seen) => seen.forEach((s) => fill(s.target)));
for (const kind of Object.keys(DRAWN)) {
  for (const game of games) {
    const about = data.games[game];
    const figure = el('figure', {}, el('figcaption', {}, game, ' ', el('small', {}, kind === 'outcomes' ? 'episodes' : `${about.summary || about.metric}${about.unit ? `, ${about.unit}` : ''}`)));
    Object.assign(figure.dataset, { kind, game });
    figure.style.minHeight = kind === 'cost' ? '330px' : `${rowsOf(game).length * 48 + 60}px`;
    plots(kind).append(figure);
    near.observe(figure);
  }
}

// Paper, and pictures of the whole page, have what was not scrolled to, too: the rest is drawn as soon as there is time.
const figures = [...document.querySelectorAll('.plots figure')];
const every = () => figures.forEach(fill);
addEventListener('beforeprint', every);
matchMedia('print').addEventListener('change', every);
// The conditions of each entrant are on paper, too.
let unfolded = [];
addEventListener('beforeprint', () => { unfolded = [...document.querySelectorAll('details:not([open])')]; unfolded.forEach((part) => { part.open = true; }); });
addEventListener('afterprint', () => { unfolded.forEach((part) => { part.open = false; }); unfolded = []; });
const soon = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
function rest() {
  const next = figures.find((figure) => !drawn.has(figure));
  if (!next) return;
  fill(next);
  if (drawn.has(next)) { sized.observe(next); soon(rest); }
}
soon(rest);

// The list of episodes, in pages.
const PAGE = 50;
const list = document.querySelector('#episodes .list'), pages = document.querySelector('#episodes .pages');
const choose = (label, options) => el('select', { ariaLabel: label, onchange: () => show(0) }, el('option', { value: '' }, label), ...options.map((o) => el('option', { value: o }, short(o, 60))));
const [game, entrant, outcome] = [choose('all games', games), choose('all entrants', data.entrants), choose('all outcomes', data.outcomes)];
const seed = el('input', { placeholder: 'seed', ariaLabel: 'seed', size: 8, inputMode: 'numeric', oninput: () => show(0) });
document.querySelector('#episodes .filters').append(game, entrant, outcome, seed);
function show(from) {
  const found = [];
  for (const row of data.rows) {
    if ((game.value && row.game !== game.value) || (entrant.value && row.entrant !== entrant.value)) continue;
    row.seeds.forEach((s, i) => { if ((!seed.value || String(s) === seed.value.trim()) && (!outcome.value || endOf(row, i) === outcome.value)) found.push([row, i]); });
  }
  const head = ['', 'game', 'entrant', 'seed', 'outcome', 'value', 'steps', 'cost', 'trajectory'];
  const lines = found.slice(from, from + PAGE).map(([row, i]) => {
    const value = [row.game, row.entrant, `${row.seeds[i]}${row.repeats?.[i] ? `.${row.repeats[i]}` : ''}`, endOf(row, i) + (row.why[i] ? `: ${row.why[i]}` : ''),
      number(row.values[i]), row.steps[i].toLocaleString('en'), row.costs ? (row.costs[i] === null ? '?' : `$${number(row.costs[i])}`) : '', row.hashes[i]];
    return el('tr', {}, el('td', {}, el('button', { type: 'button', onclick: () => replay(row, i), title: row.runs[i] }, 'replay')), ...value.map((text) => el('td', {}, text)));
  });
  list.replaceChildren(el('table', {}, el('thead', {}, el('tr', {}, ...head.map((text) => el('th', { scope: 'col' }, text)))), el('tbody', {}, ...lines)));
  const step = (text, to) => el('button', { type: 'button', disabled: to < 0 || to >= found.length, onclick: () => show(to) }, text);
  pages.replaceChildren(step('Previous', from - PAGE), step('Next', from + PAGE), found.length ? `${from + 1} to ${Math.min(from + PAGE, found.length)} of ${found.length.toLocaleString('en')}` : 'No matching episodes.');
}
show(0);
