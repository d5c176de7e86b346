// Formats numbers, times and events.

import { el, link, to } from './dom.js';

const locale = undefined; // the default of the browser
const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 });
const two = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 });
const full = new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'long' });
const day = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

export const count = (n) => (n === null || n === undefined ? '–' : Math.abs(n) >= 100000 ? short.format(n) : whole.format(n));
export const figure = (n) => (n === null || n === undefined ? '–' : two.format(n));
export const percent = (n) => `${Math.round(n * 1000) / 10} %`;
export const many = (n, one, more) => `${count(n)} ${n === 1 ? one : more || one + 's'}`;
export const plain = (name) => String(name ?? '').replaceAll('_', ' ');

export function size(bytes) {
  if (bytes === null || bytes === undefined) return '';
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  return bytes < 1e9 ? `${two.format(Math.round(bytes / 1e5) / 10)} MB` : `${two.format(bytes / 1e9)} GB`;
}

export function lasting(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

function since(ms) {
  const seconds = (Date.now() - ms) / 1000;
  if (seconds < 3) return 'now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return day.format(ms);
}

// A time in the reader's zone, which updates itself.
export function when(value) {
  const ms = typeof value === 'number' ? value * 1000 : Date.parse(value);
  if (!Number.isFinite(ms)) return el('span', {}, '–');
  return el('time', { datetime: new Date(ms).toISOString(), title: full.format(ms), 'data-ms': ms }, since(ms));
}

setInterval(() => {
  if (document.hidden) return;
  for (const node of document.querySelectorAll('time[data-ms]')) {
    const text = since(Number(node.dataset.ms));
    if (node.textContent !== text) node.textContent = text;
  }
}, 5000);

export function usage(spent) {
  if (!spent || !spent.calls) return '';
  const tokens = `${count(spent.prompt_tokens)} → ${count(spent.completion_tokens)} tokens`;
  return `${many(spent.calls, 'call')}, ${tokens}, ${cost(spent.cost)}`;
}

export function cost(dollars) {
  if (dollars === null || dollars === undefined) return 'cost unknown';
  if (!dollars) return 'no cost';
  return `$${dollars < 0.01 ? dollars.toPrecision(2) : dollars.toFixed(2)}`;
}

const SIGNS = {
  entered: ['→', 'in'], left: ['←', 'out'], died: ['✕', 'bad'], hit: ['♥', 'bad'], achievement: ['★', 'good'], skill_gained: ['↑', 'good'],
  item_found: ['◆', 'good'], item_moved: ['◇', ''], world_crashed: ['!', 'bad'], entry_refused: ['!', 'bad'], listener_failed: ['!', 'bad'], agent_failed: ['!', 'bad'],
  transfer_cancelled: ['↩', 'warn'], transfer_in_doubt: ['?', 'warn'], transfer_settled: ['✓', 'good'], game_offline: ['!', 'bad'], game_failed: ['!', 'bad'],
  diary: ['✎', ''], message_sent: ['✉', ''], meta_goal_set: ['◎', 'in'], meta_goal_reached: ['◉', 'good'], agent_registered: ['+', 'in'], agent_paused: ['❚❚', 'warn'], agent_resumed: ['▶', 'good'],
};

export function sign(kind) {
  const [mark, tone] = SIGNS[kind] || ['·', ''];
  return el('span.sign', { class: tone, 'aria-hidden': 'true' }, mark);
}

// An event's sentence, with links to its agent and world unless the row itself is a link.
function linkedUp(event, text, linked) {
  const at = event.name ? text.indexOf(event.name) : -1;
  if (at < 0) return [text];
  const rest = text.slice(at + event.name.length);
  const who = linked ? link(to('agent', event.agent_id), event.name) : el('b', {}, event.name);
  const world = linked && event.game ? event.body?.world : null;
  const there = world ? rest.indexOf(event.game) : -1;
  if (there < 0) return [text.slice(0, at), who, rest];
  return [text.slice(0, at), who, rest.slice(0, there), link(to('world', world), event.game), rest.slice(there + event.game.length)];
}

export const sentence = (event, linked = true) => linkedUp(event, event.sentence, linked);

// Several gains of one kind, newest first, in one sentence.
export function together(events) {
  const [event] = events;
  const gained = new Map();
  for (const { gain } of events) if (!gained.has(gain.key)) gained.set(gain.key, gain.text);
  const texts = [...gained.values()];
  const more = texts.length > 6 ? ` and ${count(texts.length - 6)} more` : '';
  return linkedUp(event, `${event.gain.lead} ${texts.slice(0, 6).join(', ')}${more}`, true);
}
