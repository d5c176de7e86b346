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
  const chosen = new Map([...query].filter(([name]) => name !== 'step' && name !== 'play'));
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

  // A control for each selection. It stays while its selection does, so that a new tick takes neither focus nor what is typed.
  let controls = [];
  let drawn = '';
  function drawBar(selections) {
    const kinds = selections.map((s) => [s.name, s.title, s.highest ? 'number' : s.choices.length ? 'list' : 'text']);
    const now = JSON.stringify(kinds);
    if (now !== drawn) {
      drawn = now;
      controls = kinds.map(([name, title, kind]) => CONTROL[kind](name, title || name));
      fill(bar, controls.map(({ nodes }, i) => [el('label', { for: `select-${kinds[i][0]}` }, kinds[i][1] || kinds[i][0]), nodes]));
      bar.hidden = !selections.length;
    }
    selections.forEach((s, i) => controls[i].update(s));
  }

  function onEntered(input, listener) {
    input.addEventListener('change', () => {
      input.dataset.drawn = input.value;
      listener(input.value);
    });
  }

  // Sets the value of a field, but not over one that somebody is changing.
  function put(input, value) {
    const typed = input === document.activeElement && input.value !== input.dataset.drawn;
    input.dataset.drawn = value;
    if (!typed && input.value !== String(value)) input.value = value;
  }

  function list(name) {
    const box = el('select', { id: `select-${name}` });
    let offered = '';
    box.addEventListener('change', () => choose(name, box.value));
    return {
      nodes: box,
      update(s) {
        const now = JSON.stringify(s.choices);
        if (now !== offered) fill(box, el('option', { value: '' }, 'all'), s.choices.map((c) => el('option', { value: c }, c)));
        offered = now;
        box.value = s.chosen;
      },
    };
  }

  function text(name) {
    const input = el('input', { type: 'search', id: `select-${name}` });
    onEntered(input, (value) => choose(name, value.trim()));
    return { nodes: input, update: (s) => put(input, s.chosen) };
  }

  function number(name, title) {
    let highest = 1;
    let at = 1;
    const go = (n) => choose(name, n >= highest ? '' : Math.max(1, n));
    const input = el('input', { type: 'number', id: `select-${name}`, min: 1, inputmode: 'numeric' });
    onEntered(input, (value) => { if (value) go(Number(value)); });
    const step = (sign, by, what) => el('button', { type: 'button', id: `select-${name}-${what}`, 'aria-label': `${what} ${title}`, onclick: () => go(at + by) }, sign);
    const previous = step('‹', -1, 'Previous');
    const next = step('›', 1, 'Next');
    const of = el('small', {});
    const newest = el('button', { type: 'button', id: `select-${name}-newest`, onclick: () => choose(name, '') }, 'Newest');
    return {
      nodes: [previous, input, next, of, newest],
      update(s) {
        highest = s.highest;
        at = Number(s.chosen) || highest;
        input.max = highest;
        put(input, at);
        previous.disabled = at <= 1;
        next.disabled = !s.chosen;
        say(of, `of ${highest}`);
        newest.setAttribute('aria-pressed', String(!s.chosen));
      },
    };
  }

  const CONTROL = { number, list, text };

  const timer = setInterval(() => { if (!document.hidden && !waiting) load().catch(() => {}); }, live ? PLAYING : RESTING);
  context.undo(() => clearInterval(timer));
  return { node, load };
}
