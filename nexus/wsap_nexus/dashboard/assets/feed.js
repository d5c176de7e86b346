// Parts that pages share: rows of events, the state of an agent, and refreshing.

import { get } from './api.js';
import { el, link, say, to } from './dom.js';
import { count, figure, many, plain, sentence, sign, together, when } from './format.js';
import { thoughtOf } from './live.js';

// Milliseconds after which a world's view is refreshed even without an event.
const MEANWHILE = 2000;

// Events, newest first, without minor ones. Consecutive gains of one agent share a line.
export function feed(node, most, { without = new Set() } = {}) {
  const seen = new Set();
  let top = null;

  const groupOf = (event) => (event.gain ? [event.kind, event.agent_id, event.session_id].join() : null);

  function row(group) {
    const { first } = group;
    const said = group.events.length > 1 ? together(group.events) : sentence(first);
    return el('li', { 'data-seq': first.seq }, sign(first.kind), el('span.said', {}, said), when(first.time));
  }

  function put(event, place) {
    if (event.minor || without.has(event.kind) || seen.has(event.seq)) return;
    seen.add(event.seq);
    if (seen.size > 4000) for (const seq of [...seen].slice(0, 2000)) seen.delete(seq);
    const group = groupOf(event);
    node.querySelector('.empty')?.remove();
    const beside = place === 'top' ? top : last;
    if (group && beside && beside.group === group) {
      if (place === 'top') { beside.events = [event, ...beside.events].slice(0, 60); beside.first = event; }
      else if (beside.events.length < 60) beside.events.push(event);
      const fresh = row(beside);
      beside.node.replaceWith(fresh);
      beside.node = fresh;
      return;
    }
    const made = { group, events: [event], first: event };
    made.node = row(made);
    if (place === 'top') { node.prepend(made.node); top = made; last = last || made; }
    else { node.append(made.node); last = made; top = top || made; }
    while (node.children.length > most) node.lastChild.remove();
  }
  let last = null;

  return {
    fill(events, nothing) {
      seen.clear();
      top = null;
      last = null;
      node.replaceChildren();
      for (const event of events) put(event, 'end');
      if (!node.children.length) node.append(el('li.empty', {}, nothing));
      last = null; // new events go on top
    },
    add: (event) => put(event, 'top'),
  };
}

// Calls a function at most once per period, and once more at the end; never while the page is hidden.
export function throttled(f, period) {
  let last = 0;
  let timer = null;
  let stopped = false;
  const run = () => {
    timer = null;
    if (stopped) return;
    if (document.hidden) { timer = setTimeout(run, 1000); return; }
    last = performance.now();
    f();
  };
  const ask = () => {
    if (timer !== null || stopped) return;
    timer = setTimeout(run, Math.max(0, period - (performance.now() - last)));
  };
  ask.stop = () => { stopped = true; clearTimeout(timer); };
  return ask;
}

// Fetches a world's view when it may have changed, at most once per period and only while it is visible.
export function watchView(context, worldId, node, draw, period) {
  let visible = true;
  let busy = false;
  const seen = new IntersectionObserver((entries) => { visible = entries[entries.length - 1].isIntersecting; });
  seen.observe(node);
  const look = throttled(async () => {
    if (busy || !visible) return;
    busy = true;
    try {
      const found = await get(`/nexus/worlds/${encodeURIComponent(worldId)}/view`, context.signal);
      if (!context.signal.aborted) draw(found);
    } catch (error) {
      if (!context.signal.aborted) draw({ view: null, remark: error.message });
    } finally { busy = false; }
  }, period);
  // A world with several seats may change between reported steps.
  const meanwhile = setInterval(look, Math.max(MEANWHILE, period));
  context.undo(() => { seen.disconnect(); clearInterval(meanwhile); look.stop(); });
  look();
  return look;
}

// Two lines on what an agent's model is asked and is writing now; hidden while none is asked.
export function thoughtLine(context, agent) {
  const model = el('b', {});
  const state = el('span', {});
  const text = el('div.thought-text', {});
  const node = el('div.thought', { hidden: true }, el('div.thought-head', {}, model, state), text);
  const update = () => {
    const now = thoughtOf(agent);
    // Most replies come at once: a line that flashes would tell nothing.
    const seconds = now ? now.seconds + (performance.now() - now.at) / 1000 : 0;
    node.hidden = !now || (!now.text && !now.waiting && seconds < 0.5);
    if (!now) return;
    say(model, now.model);
    const what = now.text ? `is ${now.state}` : `${now.waiting || `reading ${many(now.tokens, 'token')}`}, ${count(Math.floor(seconds))} s`;
    say(state, now.purpose && now.purpose !== 'decide' ? `${what} (${now.purpose})` : what);
    say(text, now.text);
    text.hidden = !now.text;
    text.scrollTop = text.scrollHeight;
  };
  const ticking = setInterval(update, 500);
  context.undo(() => clearInterval(ticking));
  context.on('thinking', (who) => { if (who === agent) update(); });
  update();
  return node;
}

// One line on the current action of an agent, updated in place.
export function stayLine(stay, name, thought = null) {
  const parts = {
    action: el('span.act', {}), result: el('span.what', {}), steps: el('span.n', {}), reward: el('span.n', {}),
    state: el('span.tag', {}),
  };
  const node = el('div.stay', {},
    el('div.stay-head', {}, link(to('agent', stay.agent), name),
      stay.seat && stay.seat !== stay.agent ? el('small', {}, `as ${stay.seat}`) : '', parts.state, el('span.grow', {}), parts.steps, parts.reward),
    el('div.stay-now', {}, parts.action, ' ', parts.result), thought);
  const update = (now) => {
    if (now.steps !== undefined) { // not sent to spectators
      say(parts.steps, many(now.steps, 'step'));
      say(parts.reward, `${figure(now.reward)} reward`);
      say(parts.action, now.action ? plain(now.action) : 'about to start');
    }
    say(parts.result, now.reasoning || now.message || '');
    parts.action.classList.toggle('bad', now.success === false);
    const state = now.leaving ? 'leaving' : now.paused ? 'paused' : '';
    say(parts.state, state);
    parts.state.hidden = !state;
  };
  update(stay);
  return { node, update };
}

export function stat(label, value, more) {
  const number = el('b', {}, value);
  const rest = el('small', {}, more || '');
  return { node: el('div.stat', {}, el('span', {}, label), number, rest), set: (v, m) => { say(number, v); if (m !== undefined) say(rest, m); } };
}
