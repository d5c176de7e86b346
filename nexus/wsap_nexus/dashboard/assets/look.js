// A game's view of a run, with its selections.

import { get } from './api.js';
import { drawView } from './blocks.js';
import { el, fill, say } from './dom.js';

const PLAYING = 2000;
const RESTING = 15000;

export function runLook(context, path, live) {
  const { signal, query } = context;
  const bar = el('div.filters', { role: 'group', 'aria-label': 'Selection' });
  const title = el('p.moment', { hidden: true });
  const stage = el('div.stage.look', {});
  const node = el('section.panel', {}, bar, title, stage);
  const chosen = new Map([...query].filter(([name]) => name !== 'step'));
  let shown = '';
  let asked = 0;
  let waiting = 0;

  async function load() {
    const mine = ++asked;
    waiting += 1;
    let found;
    try { found = await get(`${path}/view?${new URLSearchParams([...chosen])}`, signal); } finally { waiting -= 1; }
    if (mine !== asked) return;
    const now = JSON.stringify(found);
    if (now === shown) return;
    shown = now;
    const selections = found.view?.selections || [];
    title.hidden = !found.view?.title;
    say(title, found.view?.title);
    drawBar(selections);
    drawView(stage, found.view, found.remark, Object.fromEntries(selections.map((s) => [s.name, picker(s)])));
  }

  function choose(name, value) {
    if (value === '') chosen.delete(name); else chosen.set(name, String(value));
    const step = new URLSearchParams(location.hash.split('?')[1]).get('step');
    const asQuery = new URLSearchParams([...chosen, ...(step ? [['step', step]] : [])]).toString();
    history.replaceState(null, '', `${location.hash.split('?')[0]}${asQuery ? `?${asQuery}` : ''}`);
    context.guard(load());
  }

  function picker(selection) {
    const choices = new Set(selection.choices);
    const pick = (value) => choose(selection.name, selection.chosen === String(value) ? '' : value);
    pick.has = (value) => choices.has(String(value)) || (Number(value) >= 1 && Number(value) <= selection.highest);
    pick.chosen = selection.chosen;
    return pick;
  }

  // Redraws the selections, which change with new ticks; keeps the focus and a text being typed.
  let drawn = '';
  function drawBar(selections) {
    const now = JSON.stringify(selections);
    if (now === drawn) return;
    drawn = now;
    const at = bar.contains(document.activeElement) ? document.activeElement : null;
    const typed = at?.matches('input') && at.value !== at.dataset.drawn ? at.value : null;
    fill(bar, selections.map((s) => [el('label', { for: `select-${s.name}` }, s.title || s.name), s.highest ? number(s) : s.choices.length ? list(s) : text(s)]));
    bar.hidden = !selections.length;
    const again = at ? bar.querySelector(`#${CSS.escape(at.id)}`) : null;
    if (again && typed !== null) again.value = typed;
    again?.focus({ preventScroll: true });
  }

  function list(s) {
    const box = el('select', { id: `select-${s.name}` }, el('option', { value: '' }, 'all'), s.choices.map((c) => el('option', { value: c }, c)));
    box.value = s.chosen;
    box.addEventListener('change', () => choose(s.name, box.value));
    return box;
  }

  function text(s) {
    const input = el('input', { type: 'search', id: `select-${s.name}`, value: s.chosen, 'data-drawn': s.chosen });
    input.addEventListener('change', () => choose(s.name, input.value.trim()));
    return input;
  }

  function number(s) {
    const at = Number(s.chosen) || s.highest;
    const input = el('input', { type: 'number', id: `select-${s.name}`, min: 1, max: s.highest, value: at, 'data-drawn': at, inputmode: 'numeric' });
    const go = (n) => choose(s.name, n >= s.highest ? '' : Math.max(1, n));
    input.addEventListener('change', () => { if (input.value) go(Number(input.value)); });
    const step = (sign, by, what) => el('button', { type: 'button', id: `select-${s.name}-${what}`, 'aria-label': `${what} ${s.title || s.name}`, disabled: by < 0 ? at <= 1 : !s.chosen, onclick: () => go(at + by) }, sign);
    return [step('‹', -1, 'Previous'), input, step('›', 1, 'Next'), el('small', {}, `of ${s.highest}`),
      el('button', { type: 'button', id: `select-${s.name}-newest`, 'aria-pressed': String(!s.chosen), onclick: () => choose(s.name, '') }, 'Newest')];
  }

  const timer = setInterval(() => { if (!document.hidden && !waiting) load().catch(() => {}); }, live ? PLAYING : RESTING);
  context.undo(() => clearInterval(timer));
  return { node, load };
}
