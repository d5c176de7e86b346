// The list of runs, and the page of one, step by step.

import { get, token } from './api.js';
import { drawObservation } from './blocks.js';
import { drawCurves } from './curves.js';
import { add, el, empty, fill, link, say, table, to } from './dom.js';
import { inspector } from './inspector.js';
import { heard, lettersButton } from './keys.js';
import { runLook } from './look.js';
import { windowList } from './list.js';
import { count, figure, plain, sign, usage, when } from './format.js';

const SPEEDS = [1, 2, 4, 8, 16];
const BEFORE = 10; // steps before a moment at which it is shown from

export async function runsPage(context) {
  const { root, signal } = context;
  context.title('Replays');
  const list = el('div', {});
  const next = el('button', { type: 'button', hidden: true }, 'Show more');
  const visits = el('input', { type: 'checkbox', id: 'visits' });
  add(root, [el('h1', {}, 'Replays'),
    el('p', {}, 'Each session of an agent in a world is a recorded run, which can be replayed step by step.'),
    el('div.filters', {}, visits, el('label', { for: 'visits' }, 'Include sessions in the nexus')),
    el('section.panel', {}, list, el('p.more', {}, next))]);
  let rows = [];
  let further = null;
  async function load() {
    const asked = new URLSearchParams({ limit: 50, visits: visits.checked, before: further || '' });
    const found = await get(`/nexus/runs?${asked}`, signal);
    rows = [...rows, ...found.runs];
    further = found.next;
    next.hidden = !further || rows.length >= 2000;
    fill(list, rows.length ? table([
      { title: 'Run', cell: (r) => link(to('run', r.id), r.id) },
      { title: 'Game', cell: (r) => plain(r.game) },
      { title: 'Who', cell: (r) => (r.players.length ? r.players.map((p, i) => [i ? ', ' : '', link(to('agent', p.id), p.name)]) : r.agent) },
      { title: 'When', cell: (r) => when(r.created) },
      { title: '', cell: (r) => el('span.tag', { class: { playing: '', failed: 'bad', interrupted: 'warn' }[r.status] ?? 'good' }, r.status) },
      { title: 'Steps', number: true, cell: (r) => count(r.steps) },
      { title: 'Reward', number: true, cell: (r) => figure(r.reward) },
      { title: 'Models', cell: (r) => usage(r.usage) || el('small', {}, 'none') },
    ], rows) : empty('Nothing is recorded yet. Start with: wsap play crafter, or let agents enter a world.'));
  }
  next.addEventListener('click', () => context.guard(load()));
  visits.addEventListener('change', () => { rows = []; further = null; context.guard(load()); });
  await load();
}

// Saves the replay as one HTML file, which its reader opens without a nexus.
function savePage(context, path) {
  if (!context.save) return null;
  const prompts = el('input', { type: 'checkbox', id: 'prompts' });
  const save = el('button', { type: 'button' }, 'Save as page');
  save.addEventListener('click', () => context.guard((async () => {
    save.disabled = true;
    try { await context.save(`${path}/page?${new URLSearchParams({ prompts: prompts.checked })}`); } finally { save.disabled = false; }
  })()));
  return el('p.filters', {}, save, prompts, el('label', { for: 'prompts' }, 'with prompts, which can quote memories'));
}

export async function runPage(context) {
  const { root, signal, id, query } = context;
  context.title(`Run ${id}`);
  const path = `/nexus/runs/${encodeURIComponent(id)}`;
  const found = await get(path, signal);
  const { run } = found;
  let total = found.steps;
  let live = found.playing;

  const players = found.players.map((p, i) => [i ? ', ' : '', link(to('agent', p.id), p.name)]);
  const summary = run.summary || {};
  const heading = [
    el('h1', {}, run.title, ' ', el('small', {}, run.id)),
    el('p.where', {}, players.length ? [players, ' · '] : '', [...new Set(run.seats.map((s) => s.agent))].map((agent, i) => [i ? ', ' : '', agent]), run.seats.length ? ' · ' : '', when(run.created), run.seed === null ? ' · ' : ` · seed ${run.seed} · `, live ? 'being played' : run.status,
      summary.reward !== undefined ? ` · reward ${figure(summary.reward)}` : '', usage(summary.usage) ? ` · ${usage(summary.usage)}` : '',
      found.players[0] ? [' · ', link(to('world', found.players[0].world), 'its world')] : ''),
  ];
  if (!token()) {
    add(root, [heading, empty('Unlock this page to see its steps.')]);
    return;
  }

  const view = found.views ? runLook(context, path, live || run.status === 'running') : null;
  if (view && !total && !run.seats.length) {
    add(root, [heading, view.node]);
    await view.load();
    return;
  }

  const position = el('input.scrub', { type: 'range', min: 0, max: Math.max(0, total - 1), value: 0, step: 1, 'aria-label': 'Step', disabled: !total });
  const where = el('output.n', { for: 'scrub' });
  const curves = el('div.curves', { hidden: true });
  const ticks = el('ol.ticks', { 'aria-label': 'Moments', hidden: true });
  const play = el('button', { type: 'button', title: 'Play or pause (space)' }, '▶ Play');
  const speed = el('select', { 'aria-label': 'Steps per second' }, SPEEDS.map((s) => el('option', { value: s }, `${s} per second`)));
  speed.value = '4';
  const jump = el('input', { type: 'number', min: 1, id: 'jump', inputmode: 'numeric' });
  const follow = el('button', { type: 'button', hidden: !live }, 'Follow');
  const stage = el('div.stage', {});
  const several = run.seats.length > 1;
  const afterward = el('h2', {}, 'After this step');
  const decided = el('h2', {}, 'The decision');
  const shown = el('div', {});
  const fewer = (f) => el('button', { type: 'button', onclick: () => f() });
  const firstButton = fewer(() => go(0)); firstButton.textContent = '«'; firstButton.title = 'First step (Home)';
  const backButton = fewer(() => go(at - 1)); backButton.textContent = '‹'; backButton.title = 'One step back (left arrow)';
  const onButton = fewer(() => go(at + 1)); onButton.textContent = '›'; onButton.title = 'One step forward (right arrow)';
  const lastButton = fewer(() => go(total - 1)); lastButton.textContent = '»'; lastButton.title = 'Last step (End)';
  for (const b of [firstButton, backButton, onButton, lastButton]) b.setAttribute('aria-label', b.title);

  let at = -1;
  let seqs = new Map();   // position -> event, for recently loaded steps
  let wanted = null;
  let busy = false;
  let timer = null;
  let following = false;

  const look = inspector(context, id);
  const list = windowList({
    async start(key) {
      if (key === null) return page({ position: 0 }, { top: true });
      const [above, here] = await Promise.all([page({ before: key }), page({ after: key - 1 })]);
      return { rows: [...above.rows, ...here.rows], top: above.rows.length < 100 };
    },
    above: async (key) => (await page({ before: key })).rows,
    below: async (key) => (await page({ after: key })).rows,
    first: async () => null,
    last: async () => (await page({ position: Math.max(0, total - 1) })).rows.at(-1)?.key,
  }, {
    label: 'Steps', height: 52, signal,
    draw: ({ step, position: place }) => [
      el('span.n', {}, several ? place + 1 : step.number),
      el('span.said', {}, run.seats.length > 1 ? el('b', {}, `${step.seat} `) : '', el('span.act', { class: step.success ? '' : 'bad' }, plain(step.action)),
        step.forced ? el('span.tag.warn', { title: step.cause }, 'forced') : '', step.repaired ? el('span.tag.warn', {}, 'repaired') : '', step.chosen ? el('span.tag', {}, 'chosen') : '',
        step.achievements.map((a) => el('span.tag.good', {}, `★ ${plain(a)}`)), step.done ? el('span.tag', {}, 'end') : '',
        el('small', {}, ` ${step.reasoning || step.message}`)),
      step.reward ? el('span.n', { class: step.reward > 0 ? 'good' : 'bad' }, `${step.reward > 0 ? '+' : ''}${figure(step.reward)}`) : '',
    ],
    onActive: (row) => goTo(row.key, row.position),
    onOpen: (row) => goTo(row.key, row.position),
  });

  async function page(asked, more = {}) {
    const got = await get(`${path}/steps?${new URLSearchParams({ limit: 100, ...asked })}`, signal);
    setTotal(got.total);
    const rows = got.steps.map((step, i) => ({ key: step.seq, step, position: got.first + i }));
    for (const row of rows) seqs.set(row.position, row.key);
    if (seqs.size > 4000) seqs = new Map([...seqs].slice(-2000));
    return { rows, ...more, empty: live ? 'The first steps will appear here.' : 'This run has no steps.' };
  }

  function setTotal(n) {
    if (n === total) return;
    total = n;
    position.max = Math.max(0, total - 1);
    position.disabled = !total;
    showWhere();
  }

  function showWhere() { say(where, total ? `step ${count(at + 1)} of ${count(total)}` : 'no steps'); }

  async function seqAt(n) {
    if (!seqs.has(n)) await page({ position: n });
    return seqs.get(n);
  }

  // Marks what happened above the steps; a press starts a little before it.
  let moments = [];
  async function mark() {
    moments = (await get(`${path}/moments`, signal)).moments;
    ticks.hidden = !moments.length || total < 2;
    const places = Math.max(8, Math.floor(ticks.clientWidth / 26)); // so that none covers another
    const marked = new Map();
    for (const moment of moments) {
      const place = Math.floor(places * moment.position / (total + 1));
      marked.set(place, [...(marked.get(place) || []), moment]);
    }
    fill(ticks, [...marked].map(([place, together]) => {
      const moment = together.reduce((best, one) => (one.weight > best.weight ? one : best));
      const words = together.map((one) => one.words).join('; ');
      const tick = el('button.tick', { type: 'button', title: words, 'aria-label': `Step ${moment.position}: ${words}`, onclick: () => go(before(moment)) },
        sign(moment.kind === 'again' ? 'achievement' : moment.kind));
      const item = el('li', {}, tick);
      item.style.insetInlineStart = `${100 * (place + 0.5) / places}%`;
      return item;
    }));
  }
  let plotted = [];
  async function plot() {
    if (total > 1) plotted = (await get(`${path}/curve`, signal)).curves;
    drawCurves(curves, plotted);
  }

  // Another run of the game beside this one, at the same step.
  const beside = el('section.panel', { hidden: true, 'aria-label': 'The other run' });
  const against = el('select', { id: 'against' }, el('option', { value: '' }, 'no other run'));
  const comparing = el('p.filters', { hidden: true }, el('label', { for: 'against' }, 'Compare with'), against);
  let other = null; // the run that is compared with
  async function offer() {
    if (!context.save || !total) return; // a saved page holds one run
    const { runs } = await get(`/nexus/runs?${new URLSearchParams({ game: run.game, limit: 50 })}`, signal);
    const rest = runs.filter((one) => one.id !== id && one.steps);
    comparing.hidden = !rest.length;
    add(against, rest.map((one) => el('option', { value: one.id }, `${one.id}, ${one.players.map((p) => p.name).join(', ') || one.agent}, ${count(one.steps)} steps`)));
  }
  async function compare() {
    const chosen = against.value;
    other = null;
    beside.hidden = !chosen;
    fill(beside);
    drawCurves(curves, plotted);
    if (!chosen) return;
    const there = `/nexus/runs/${encodeURIComponent(chosen)}`;
    let about;
    let drawn;
    try {
      [about, drawn] = await Promise.all([get(there, signal), get(`${there}/curve`, signal)]);
    } catch (error) {
      if (against.value === chosen) fill(beside, el('p.problem', { role: 'alert' }, error.message));
      return;
    }
    if (against.value !== chosen) return; // another one was chosen meanwhile
    const same = about.run.seed === run.seed ? 'The same seed: the same world at its start.' : 'Another seed: another world.';
    const picture = el('div.stage', {});
    const at = el('p.where', {});
    fill(beside, el('h2', {}, 'The other run'), el('p', {}, link(to('run', about.run.id), about.run.id), ` · ${same}`), at, picture);
    other = { there, steps: about.steps, picture, at };
    drawCurves(curves, plotted, drawn.curves);
    await showOther();
  }
  async function showOther() {
    if (!other) return;
    const { there, steps, picture, at: said } = other;
    const place = Math.min(Math.max(0, at), steps - 1);
    let row;
    let step;
    try {
      ({ steps: [row] } = await get(`${there}/steps?position=${place}&limit=1`, signal));
      if (!row) return;
      step = await get(`${there}/steps/${row.seq}`, signal);
    } catch (error) { // this run is shown nevertheless
      fill(picture);
      say(said, error.message);
      return;
    }
    say(said, `${at > place ? 'Over since step' : 'Step'} ${count(place + 1)} of ${count(steps)}: ${plain(row.action)}${row.message ? ` – ${row.message}` : ''}`);
    drawObservation(picture, step.after || step.seen);
  }
  against.addEventListener('change', () => context.guard(compare()));
  const before = (moment) => Math.max(0, moment.position - 1 - BEFORE);
  function toMoment(way) {
    const places = moments.map((moment) => moment.position - 1);
    const found = way > 0 ? places.find((place) => place > at) : places.findLast((place) => place < at);
    if (found !== undefined) go(found);
  }

  // Goes to a step; while one is loading, only the latest request counts.
  function go(n) {
    if (!total) return;
    wanted = Math.max(0, Math.min(total - 1, n));
    at = wanted;
    position.value = wanted;
    showWhere();
    if (!busy) context.guard(fetchStep());
  }

  function goTo(seq, n) { if (n !== at) { seqs.set(n, seq); go(n); } }

  async function fetchStep() {
    busy = true;
    try {
      while (wanted !== null) {
        const n = wanted;
        wanted = null;
        const seq = await seqAt(n);
        if (seq === undefined) continue;
        const step = await get(`${path}/steps/${seq}`, signal);
        if (wanted !== null && timer === null) continue;
        if (several) {
          say(afterward, `After this step, as ${step.step.seat} sees it`);
          say(decided, `The decision of ${step.step.seat}`);
        }
        drawObservation(stage, step.after || step.seen);
        look.show(step);
        await showOther();
        if (list.has(seq)) list.activate(seq, { quiet: true });
        else list.start(seq).then(() => list.activate(seq, { quiet: true }));
        const asked = new URLSearchParams(location.hash.split('?')[1]);
        asked.set('step', n + 1);
        asked.delete('play');
        history.replaceState(null, '', `${to('run', id)}?${asked}`);
      }
    } finally { busy = false; }
  }

  // Shows the first step if it is there; otherwise the next pulse tries again.
  async function begin() {
    await page({ position: 0 });
    if (!total) return;
    await list.start();
    go(0);
  }

  function stopPlaying() {
    clearInterval(timer);
    timer = null;
    say(play, '▶ Play');
  }
  function startPlaying() {
    if (!total) return;
    if (at >= total - 1) go(0);
    say(play, '❚❚ Pause');
    timer = setInterval(() => {
      if (document.hidden || busy) return;
      if (at >= total - 1) stopPlaying(); else go(at + 1);
    }, 1000 / Number(speed.value));
  }
  const toggle = () => (timer === null ? startPlaying() : stopPlaying());
  play.addEventListener('click', toggle);
  speed.addEventListener('change', () => { if (timer !== null) { stopPlaying(); startPlaying(); } });
  position.addEventListener('input', () => go(Number(position.value)));
  jump.addEventListener('change', () => { if (jump.value) go(Number(jump.value) - 1); });
  follow.addEventListener('click', () => { following = !following; follow.setAttribute('aria-pressed', String(following)); if (following) go(total - 1); });
  context.undo(stopPlaying);

  const keys = (event) => {
    if (event.target.closest('input, select, textarea, button, a, summary, dialog, .list') || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(total - 1), PageDown: null, ' ': toggle, n: () => toMoment(1), p: () => toMoment(-1) };
    if (!moves[event.key] || !heard(event.key)) return;
    event.preventDefault();
    moves[event.key]();
  };
  document.addEventListener('keydown', keys);
  context.undo(() => document.removeEventListener('keydown', keys));

  add(root, [
    heading,
    found.remark ? el('p.problem', {}, found.remark) : null,
    live || !total ? null : savePage(context, path),
    comparing,
    run.look_back ? el('p.where', {}, 'Make a replay page: ', el('code', {}, run.look_back)) : null,
    view?.node,
    el('section.panel.player', {},
      el('div.buttons', { role: 'group', 'aria-label': 'Playback' }, firstButton, backButton, play, onButton, lastButton, speed,
        el('label', { for: 'jump' }, 'Go to'), jump, follow, lettersButton(), el('span.grow', {}), where),
      el('div.track', {}, curves, ticks, position)),
    el('div.columns.run', {},
      el('div', {}, el('section.panel', {}, afterward, stage), beside, el('section.panel.flush', {}, el('h2', {}, 'Steps'), list.node)),
      el('section.panel', {}, decided, look.node)),
    shown,
  ]);
  if (!total) {
    fill(stage, empty(live ? 'It has not started yet.' : 'This run has no steps.'));
    look.none();
  }
  showWhere();
  await Promise.all([view?.load(), list.start(), mark()]);
  context.guard(plot()); // a replay without curves is one, too
  context.guard(offer());
  if (total) go(Math.max(0, Number(query.get('step') || 1) - 1));
  if (query.get('play')) startPlaying();
  else if (!query.has('step') && !live && moments.length) { // a replay opens playing, a little before what weighs most
    go(before(moments.reduce((best, one) => (one.weight > best.weight ? one : best))));
    startPlaying();
  }
  context.on('pulse', (pulse) => {
    const mine = pulse.agents.find((s) => s.run === id);
    if (!mine) return;
    live = true;
    if (!total) { // opened before the first step
      if (!busy) context.guard(begin());
      return;
    }
    // A step is reported before it is committed, so the total is loaded with the next page.
    if (following && !busy) context.guard(page({ position: Math.max(0, total - 1) }).then(() => { list.ended(); go(total - 1); }));
    else setTotal(Math.max(total, found.players.length === 1 ? mine.steps : total));
  });
  context.on('nexus', (event) => { if (event.kind === 'left' && event.body?.run === id) { live = false; follow.hidden = true; } });
}

