// A seat that a person plays: what it sees, what it can do, and how long the world waits.

import { act, get } from './api.js';
import { drawObservation } from './blocks.js';
import { el, fill, pre, say, scrolls } from './dom.js';
import { face } from './face.js';
import { heard, lettersButton } from './keys.js';

const PATIENCE = 25; // seconds that one request for a turn waits
const LOOK = 2000; // milliseconds between two looks whether the turn that is shown is over
const AGAIN = 1000; // milliseconds before the nexus is asked again after a failure
const CHIPS = 8; // choices that are buttons; more are a list
const WHERE = { up: 'up', down: 'down', left: 'left', right: 'right' };
const KEYS = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right', ' ': 'space' };
const CAPS = { up: '↑', down: '↓', left: '←', right: '→' };

// The page of the owner, who plays as an agent of theirs.
export async function playPage(context) {
  const { id, root, signal } = context;
  const path = `/nexus/agents/${encodeURIComponent(id)}`;
  const { agent } = await get(path, signal);
  context.title(`Play as ${agent.name}`);
  context.undo(play(root, { id, name: agent.name }, {
    turn: (asked) => get(`${path}/turn?${asked}`, signal),
    act: (action) => act('POST', `${path}/act`, action),
  }));
}

// Draws a seat into a node and plays it; returns a function that ends that.
export function play(node, who, door, ended = () => {}) {
  const place = el('p.where', {});
  const clock = el('p.play-clock', { role: 'timer', hidden: true });
  const told = el('p.play-told', { role: 'status', 'aria-live': 'polite' });
  const seen = scrolls(el('div.play-seen.stage', {}));
  const cover = el('button.quiet', { type: 'button', 'aria-pressed': 'false' }, 'Cover');
  const doing = el('section.play-do', { 'aria-label': 'What you can do' });
  const rules = el('details.play-rules', { hidden: true }, el('summary', {}, 'The rules'), pre(''));
  fill(node, el('div.play-head', {}, face(who.id, 'awake'), el('h1', {}, who.name), place, el('span.grow', {}), clock, cover),
    el('div.play', {}, el('section.panel', { 'aria-label': 'What you see' }, seen, rules),
      scrolls(el('section.panel.play-side', {}, told, doing, lettersButton(() => { if (turn) drawActions(turn.actions); })))));
  let turn = null; // the turn that is shown
  let known = ''; // its name; empty if it has to be told again
  let busy = false;
  let acting = Promise.resolve(); // settled once the action that was sent is answered
  let wake = () => {}; // looks for the next turn at once
  let over = false;
  let late = 0; // when the world goes on without this seat; 0 for never
  fill(seen, el('p.empty', {}, 'What you see comes with your first turn.'));
  say(told, 'It is not your turn yet.');

  cover.addEventListener('click', () => {
    seen.hidden = !seen.hidden;
    cover.setAttribute('aria-pressed', String(seen.hidden));
    say(cover, seen.hidden ? 'Show what I see' : 'Cover');
  });

  function tick() {
    const left = late ? Math.max(0, Math.ceil((late - performance.now()) / 1000)) : 0;
    clock.hidden = !late;
    if (late) say(clock, left ? `${left} s, then the world goes on without you` : 'The world goes on without you');
    clock.classList.toggle('bad', late > 0 && left <= 10);
    if (late && !left) doing.inert = true;
  }
  const ticking = setInterval(tick, 500);

  function send(action, parameters) {
    if (!busy && !over && !doing.inert) acting = carryOut(action, parameters);
  }

  async function carryOut(action, parameters) {
    const until = late;
    busy = true;
    late = 0;
    tick();
    doing.inert = true;
    say(told, 'You act …');
    try {
      const answer = await door.act({ name: action.name, parameters, turn: turn.turn });
      if (!answer) {
        say(told, '');
        again();
      } else {
        say(told, `${answer.result.success ? '' : 'Not possible: '}${answer.result.message || (answer.result.success ? 'Done.' : '')}`);
        told.classList.toggle('bad', !answer.result.success);
      }
    } catch (error) {
      say(told, error.message);
      told.classList.add('bad');
      if (error.status === 401) { stop(); ended(error); return; }
      if (error.code !== 'TURN_OVER') again();
    }
    busy = false;
    wake();

    function again() {
      late = until;
      doing.inert = false;
      tick();
    }
  }

  // --- actions -----------------------------------------------------------------------------------

  // What pressing a seat at the table does: the possible actions that ask for nothing but one of the seats.
  function bySeat(actions) {
    const can = actions.filter((one) => one.possible && !one.aside && one.parameters.length === 1 && one.parameters[0].kind === 'choice');
    const choices = (name) => can.flatMap((action) => action.parameters[0].choices.filter((one) => one.value === name).map((one) => ({ action, value: one.value })));
    const take = ({ action, value }) => send(action, { [action.parameters[0].name]: value });
    const press = (name) => {
      if (busy || doing.inert) return;
      const found = choices(name);
      if (found.length === 1) { take(found[0]); return; }
      doing.querySelector('.play-seat')?.remove();
      doing.prepend(el('div.play-choice.play-seat', { role: 'group', 'aria-label': name }, el('span', {}, name), found.map((one) => el('button', { type: 'button', onclick: () => take(one) }, one.action.words))));
      doing.querySelector('.play-seat button').focus();
    };
    press.has = (name) => choices(name).length > 0;
    press.words = can.map((action) => action.words).join(', ');
    return { seat: press };
  }

  const instant = (action) => action.possible && action.parameters.every((p) => p.optional);

  function cap(action) {
    return action.key && heard(action.key) ? el('kbd', { 'aria-hidden': 'true' }, CAPS[action.key] || action.key) : null;
  }

  function button(action, onclick, more = {}) {
    return el('button', { type: 'button', title: action.description || undefined, onclick, ...more }, cap(action), action.words);
  }

  function field(action, asked) {
    const id = `play-${action.name}-${asked.name}`;
    const required = !asked.optional;
    const isNumber = asked.kind === 'whole' || asked.kind === 'number';
    const input = asked.kind === 'choice'
      ? el('select', { id, required }, asked.optional ? el('option', { value: '' }, '–') : null, asked.choices.map((one, i) => el('option', { value: i }, one.words)))
      : isNumber ? el('input', { id, required, type: 'number', step: asked.kind === 'whole' ? 1 : 'any', min: asked.low, max: asked.high })
        : asked.kind === 'text' ? el('input', { id, required, type: 'text', maxlength: asked.high, autocomplete: 'off' })
          : el('textarea', { id, required, rows: 3, spellcheck: 'false' });
    const value = () => {
      if (input.value === '') return undefined;
      if (asked.kind === 'choice') return asked.choices[Number(input.value)].value;
      if (isNumber) return Number(input.value);
      if (asked.kind === 'text') return input.value;
      try { return JSON.parse(input.value); } catch { return input.value; } // the game says what is wrong with it
    };
    return { name: asked.name, value, node: el('p', {}, el('label', { for: id }, asked.words, asked.hint && asked.hint !== asked.words ? el('small', {}, ` ${asked.hint}`) : null), input) };
  }

  // One choice among few is a row of buttons; anything else is a form that opens below its button.
  function deed(action) {
    const needed = action.parameters.filter((p) => !p.optional);
    if (!action.parameters.length) return button(action, () => send(action, {}));
    const [only] = needed;
    if (needed.length === 1 && action.parameters.length === 1 && only.kind === 'choice' && only.choices.length <= CHIPS) {
      return el('div.play-choice', { role: 'group', 'aria-label': action.words }, el('span', {}, action.words),
        only.choices.map((one) => el('button', { type: 'button', onclick: () => send(action, { [only.name]: one.value }) }, one.words)));
    }
    const box = el('div.play-form', { hidden: true });
    const open = button(action, () => {
      box.hidden = !box.hidden;
      open.setAttribute('aria-expanded', String(!box.hidden));
      if (box.hidden || box.childNodes.length) { box.querySelector('input, select, textarea')?.focus(); return; }
      const fields = [...needed, ...action.parameters.filter((p) => p.optional)].map((asked) => field(action, asked));
      const form = el('form', {}, fields.map((one) => one.node), el('button.main', { type: 'submit' }, action.words));
      form.addEventListener('submit', (event) => {
        event.preventDefault();
        send(action, Object.fromEntries(fields.map((one) => [one.name, one.value()]).filter(([, value]) => value !== undefined)));
      });
      fill(box, form);
      form.querySelector('input, select, textarea')?.focus();
    }, { 'aria-expanded': 'false' });
    return [open, box];
  }

  function drawActions(actions) {
    const can = actions.filter((one) => one.possible);
    const moves = can.filter((one) => WHERE[one.key] && !one.parameters.length);
    const pad = moves.length > 2 ? moves : [];
    const rest = can.filter((one) => !pad.includes(one));
    const cannot = actions.filter((one) => !one.possible);
    const kept = (name) => doing.querySelector(`details[data-of="${name}"]`)?.open;
    const fold = (name, heading, ...inside) => el('details', { 'data-of': name, open: kept(name) }, el('summary', {}, heading), ...inside);
    const aside = rest.filter((one) => one.aside);
    const main = rest.filter((one) => !one.aside);
    fill(doing,
      pad.length ? el('div.pad', { role: 'group', 'aria-label': 'Moves' }, pad.map((one) => button(one, () => send(one, {}), { class: `pad-${WHERE[one.key]}` }))) : null,
      el('div.deeds', {}, (main.length ? main : aside).map(deed)),
      main.length && aside.length ? fold('aside', 'More', el('div.deeds', {}, aside.map(deed))) : null,
      cannot.length ? fold('cannot', `${cannot.length} not possible now`, el('ul.play-not', {}, cannot.map((one) => el('li', {}, el('b', {}, one.words), one.reason ? ` – ${one.reason}` : '')))) : null);
    doing.inert = false;
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !turn || busy || !heard(event.key)) return;
    if (event.target.closest?.('input, select, textarea, dialog')) return;
    if (event.key === ' ' && event.target.closest?.('button, summary, a')) return; // presses what has the focus
    const key = KEYS[event.key] || event.key;
    const action = turn.actions.find((one) => one.key === key && instant(one));
    if (!action) return;
    event.preventDefault();
    send(action, {});
  }
  document.addEventListener('keydown', press);

  // --- turns -------------------------------------------------------------------------------------

  // While a turn is shown, it is looked now and then whether it is over: somebody else may have acted, or the world gone on.
  async function watch() {
    while (!over) {
      let found;
      try {
        found = await door.turn(new URLSearchParams({ wait: doing.inert || !known ? PATIENCE : 0, after: known }));
      } catch (error) {
        if (over || error.name === 'AbortError') return;
        if (error.status === 401) { stop(); ended(error); say(told, error.message); return; }
        if (error.status !== 503) say(told, error.message);
        doing.inert = true;
        known = '';
        await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
        continue;
      }
      await acting;
      if (over) return;
      if (found && !found.pending) show(found);
      if (!doing.inert) await new Promise((resolve) => { wake = resolve; setTimeout(resolve, LOOK); });
    }
  }

  function show(found) {
    const first = !known;
    const moved = !turn || found.session !== turn.session;
    turn = found;
    known = found.turn;
    late = found.seconds_left === null ? 0 : performance.now() + found.seconds_left * 1000;
    tick();
    say(place, found.place === 'nexus' ? 'At home. Choose a game.' : `In ${found.title}`);
    rules.querySelector('pre').textContent = found.description;
    rules.hidden = !found.description;
    let view = found.view || found.seen.view;
    if (view?.blocks.some((block) => block.kind === 'image')) view = { ...view, blocks: view.blocks.filter((block) => block.kind !== 'grid') }; // the same in letters
    drawObservation(seen, { ...found.seen, view }, { pick: bySeat(found.actions) });
    const words = seen.querySelector(':scope > details');
    if (words && !view) words.open = true; // all that there is
    if (moved) fill(doing); // what is opened there was about another place
    if (first) {
      say(told, 'It is your turn.');
      told.classList.remove('bad');
    }
    drawActions(found.actions);
  }

  function stop() {
    over = true;
    late = 0;
    clearInterval(ticking);
    document.removeEventListener('keydown', press);
    clock.hidden = true;
    doing.inert = true;
  }
  watch();
  return stop;
}
