// Figures, times and events in words.

import { el, link, to } from './dom.js';

const locale = undefined; // the reader's
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

// A time, in the reader's zone, that keeps itself up to date.
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

export const WHY = {
  jack_out: 'of its own accord', exit_game: 'of its own accord', death: 'it died', finished: 'it is over', condition: 'its exit condition held',
  step_limit: 'its steps were used up', kicked: 'called back', failed: 'the world failed',
};

const WENT = { world: 'went into a world', lost: 'was lost', escrow: 'came into safe keeping', transfer: 'went on its way' };

const SIGNS = {
  entered: ['→', 'in'], left: ['←', 'out'], died: ['✕', 'bad'], achievement: ['★', 'good'], skill_gained: ['↑', 'good'],
  item_found: ['◆', 'good'], item_moved: ['◇', ''], world_failed: ['!', 'bad'], agent_failed: ['!', 'bad'],
  transfer_cancelled: ['↩', 'warn'], transfer_in_doubt: ['?', 'warn'], transfer_settled: ['✓', 'good'], game_offline: ['!', 'bad'], game_failed: ['!', 'bad'],
  diary: ['✎', ''], message_sent: ['✉', ''], meta_goal_set: ['◎', 'in'], meta_goal_reached: ['◉', 'good'], agent_registered: ['+', 'in'], agent_paused: ['❚❚', 'warn'], agent_resumed: ['▶', 'good'],
};

export const PLAIN_KINDS = new Set(['avatar_changed', 'items_moved', 'item_moved']);

export const TOGETHER = new Set(['skill_gained', 'achievement', 'item_found']);

export function sign(kind) {
  const [mark, tone] = SIGNS[kind] || ['·', ''];
  return el('span.sign', { class: tone, 'aria-hidden': 'true' }, mark);
}

const shorter = (text) => (text.length > 90 ? `${text.slice(0, 90).trimEnd()} …` : text);

// An event of the nexus as a sentence; who and where are links unless the row itself is one.
export function sentence(event, names, linked = true) {
  const who = event.agent_id
    ? (linked ? link(to('agent', event.agent_id), names[event.agent_id] || event.agent_id)
      : el('b', {}, names[event.agent_id] || event.agent_id))
    : el('b', {}, 'The nexus');
  const body = event.body || {};
  const game = event.game ? plain(event.game) : '';
  const place = body.world && linked ? link(to('world', body.world), game || body.world) : game || body.world || 'a world';
  switch (event.kind) {
    case 'entered': {
      const bonuses = Object.keys(body.bonuses || {}).length;
      const how = body.respawned ? ' in a body brought back to life' : body.woken ? ' and woke in its body' : '';
      return [who, ' entered ', place, how, bonuses ? `, with ${many(bonuses, 'bonus', 'bonuses')}` : ''];
    }
    case 'left': {
      const gained = (body.achievements || []).length;
      return [who, ' left ', place, ` after ${many(body.steps ?? 0, 'step')}: ${WHY[body.reason] || plain(body.reason)}`,
        gained ? `; ${many(gained, 'achievement')}` : ''];
    }
    case 'died': return [who, ' died in ', game, body.cause ? `: ${body.cause}` : ''];
    case 'achievement': return [who, ' achieved ', el('b', {}, plain(body.name)), ' in ', game, ' for the first time'];
    case 'skill_gained': return [who, ' grew in ', el('b', {}, plain(body.domain)), ` to ${percent(body.level ?? 0)}`,
      body.source ? ` (${plain(String(body.source).split(':').pop())})` : ''];
    case 'item_found': return [who, ' brought ', el('b', {}, body.item?.name || 'an item'), ' out of ', game];
    case 'item_moved': return [who, '’s ', el('b', {}, plain(body.name || body.item_id)), ` ${WENT[body.to] || plain(body.to)}`, body.why ? `: ${body.why}` : ''];
    case 'items_moved': return [many((body.items || []).length, 'thing'), ' of ', who, ` ${WENT[body.to] || plain(body.to)}`, body.why ? `: ${body.why}` : ''];
    case 'items_refused': return [who, ' could not take everything into ', game, body.why ? `: ${body.why}` : ''];
    case 'diary': return [who, '’s diary: ', shorter(body.text || '')];
    case 'message_sent': return [who, ' wrote ', body.to ? ['to ', linked ? link(to('agent', body.to), names[body.to] || body.to) : el('b', {}, names[body.to] || body.to)] : `to ${many(body.recipients ?? 0, 'other')}`];
    case 'meta_goal_set': return [who, ' set out to: ', body.description || plain(body.goal)];
    case 'meta_goal_reached': return [who, ' reached its goal: ', body.description || plain(body.goal)];
    case 'meta_goal_abandoned': return [who, ' gave up its goal ', plain(body.goal)];
    case 'onward_refused': return [who, ' could not go straight on to ', plain(body.destination) || 'another world', body.why || body.error ? `: ${body.why || body.error}` : ''];
    case 'agent_removed': return [who, ' was removed'];
    case 'agent_renamed': return [who, ' has another name'];
    case 'agent_imported': return [who, ' came from another nexus'];
    case 'agent_moved_away': return [who, ' moved to another nexus'];
    case 'policy_changed': return [who, ' is decided for by another policy', game ? ` in ${game}` : ''];
    case 'game_joined': return [el('b', {}, game), ' joined'];
    case 'game_failed': return [el('b', {}, game), ' failed: ', body.error || body.reason || ''];
    case 'game_offline': return [el('b', {}, game), ' was taken offline: ', body.reason || body.error || ''];
    case 'transfer_settled': return [who, ': a person says that what it carried has ', body.outcome || ''];
    case 'transfer_in_doubt': return [who, ': it is not known yet what became of its move'];
    case 'pruned': return ['What is old was forgotten: ', many(body.runs ?? 0, 'run'), ' and ', many(body.nexus_events ?? 0, 'event')];
    case 'avatar_changed': return [who, `’s body in `, place, ` is ${body.state}`];
    case 'agent_registered': return [who, ' was born'];
    case 'agent_paused': return [who, ' was paused'];
    case 'agent_resumed': return [who, ' goes on'];
    case 'agent_failed': return [who, ' failed and is paused: ', body.error || ''];
    case 'world_failed': return [who, ' was not let into ', game, ': ', body.error || ''];
    case 'transfer_cancelled': return [who, ' turned back: ', body.why || ''];
    case 'persona_changed': return [who, ' was given another persona'];
    case 'resumed': return [who, ' goes on in ', game, ' where it was'];
    case 'started': return ['The nexus was started with ', many(body.agents ?? 0, 'agent')];
    case 'stopped': return ['The nexus was stopped'];
    default: return [event.agent_id ? who : 'The nexus', `: ${plain(event.kind)}`, body.text || body.name ? ` – ${body.text || body.name}` : ''];
  }
}

// What an agent gained at one time: several events of one kind, newest first, in one sentence.
export function together(events, names) {
  const [event] = events;
  const who = link(to('agent', event.agent_id), names[event.agent_id] || event.agent_id);
  const game = event.game ? [' in ', plain(event.game)] : '';
  const list = (items) => [items.slice(0, 6).map((item, i) => [i ? ', ' : '', el('b', {}, item)]), items.length > 6 ? ` and ${count(items.length - 6)} more` : ''];
  if (event.kind === 'skill_gained') {
    const levels = new Map();
    for (const e of events) if (!levels.has(e.body?.domain)) levels.set(e.body?.domain, e.body?.level ?? 0);
    return [who, ' grew in ', list([...levels].map(([domain, level]) => `${plain(domain)} ${percent(level)}`))];
  }
  if (event.kind === 'achievement') return [who, ' achieved for the first time', game, ': ', list(events.map((e) => plain(e.body?.name)))];
  return [who, ' brought ', list(events.map((e) => e.body?.item?.name || 'an item')), event.game ? [' out of ', plain(event.game)] : ''];
}
