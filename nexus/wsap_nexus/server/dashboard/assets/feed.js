// Several things that pages share: rows of events, where an agent stands, and when to look again.

import { get } from './api.js';
import { el, link, say, to } from './dom.js';
import { count, figure, many, plain, sentence, sign, when } from './words.js';

export function eventRow(event, names) {
  return el('li', { 'data-seq': event.seq }, sign(event.kind), el('span.said', {}, sentence(event, names)), when(event.time));
}

// Calls a function at most once in a while, and once more at the end; never while nobody looks.
export function calmly(f, period) {
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

// Fetches a world's view whenever it may have changed: at most so often, and only where it can be seen.
export function watchView(context, worldId, node, draw, period) {
  let visible = true;
  let busy = false;
  const seen = new IntersectionObserver((entries) => { visible = entries[entries.length - 1].isIntersecting; });
  seen.observe(node);
  const look = calmly(async () => {
    if (busy || !visible) return;
    busy = true;
    try {
      const found = await get(`/dashboard/data/worlds/${encodeURIComponent(worldId)}/view`, context.signal);
      if (!context.signal.aborted) draw(found);
    } catch (error) {
      if (!context.signal.aborted) draw({ view: null, remark: error.message });
    } finally { busy = false; }
  }, period);
  context.undo(() => { seen.disconnect(); look.stop(); });
  look();
  return look;
}

// One line on what an agent does now, kept up to date in place.
export function stayLine(stay, name) {
  const parts = {
    action: el('span.act', {}), result: el('span.what', {}), steps: el('span.n', {}), reward: el('span.n', {}),
    state: el('span.tag', {}),
  };
  const node = el('div.stay', {},
    el('div.stay-head', {}, link(to('agent', stay.agent), name), parts.state, el('span.grow', {}), parts.steps, parts.reward),
    el('div.stay-now', {}, parts.action, ' ', parts.result));
  const update = (now) => {
    say(parts.steps, many(now.steps, 'step'));
    say(parts.reward, `${figure(now.reward)} reward`);
    say(parts.action, now.action ? plain(now.action) : 'about to begin');
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

export function runLink(id) { return link(to('run', id), id); }
export { count };
