// Backstage: numbers, what needs attention, worlds and recent events, live.

import { get } from './api.js';
import { add, el, empty, fill, link, panel, to } from './dom.js';
import { throttled, feed as feedOf, stat, stayLine, thoughtLine, watchView } from './feed.js';
import { on } from './live.js';
import { thumbnail } from './blocks.js';
import { cost, count, lasting, many, plain, size } from './format.js';

const FEED = 60;

export async function overviewPage(context) {
  const { root, signal } = context;
  context.title('Backstage');
  const stats = {
    agents: stat('Agents', '–', ''), rate: stat('Decisions', '–', ''), stays: stat('Sessions', '–', ''),
    models: stat('Models, last day', '–', ''), health: stat('Running for', '–', ''),
  };
  const attention = el('div', {});
  const worlds = el('div.cards', {});
  const here = el('div', {});
  const feed = el('ol.feed', { 'aria-label': 'Recent events, newest first' });
  add(root, [
    el('h1', {}, 'Backstage'),
    el('p.where', {}, link('#/worlds', 'All games and worlds'), ' · ', link('#/log', 'All events')),
    el('div.stats', {}, Object.values(stats).map((s) => s.node)),
    attention,
    el('div.columns', {},
      el('div', {}, panel('In worlds', worlds), panel('In the nexus', here)),
      panel('Recent events', feed, el('p.more', {}, link('#/log', 'All events')))),
  ]);

  const happened = feedOf(feed, FEED);
  let held = '';
  let names = {};
  let lines = new Map();
  let looks = new Map();
  let cleanup = [];
  context.undo(() => cleanup.forEach((f) => f()));

  function showWorlds(found) {
    cleanup.forEach((f) => f());
    cleanup = [];
    lines = new Map();
    looks = new Map();
    const part = { undo: (f) => cleanup.push(f), on: (kind, f) => cleanup.push(on(kind, f)) };
    fill(worlds, found.worlds.map((world) => {
      const picture = el('div.thumb', { 'aria-hidden': 'true' });
      const own = { signal, undo: (f) => cleanup.push(f) };
      if (world.draws) looks.set(world.id, watchView(own, world.id, picture, (seen) => thumbnail(picture, seen.view), 1000));
      else picture.append(el('span', {}, world.title.slice(0, 2)));
      const stays = world.stays.map((stay) => {
        const line = stayLine(stay, names[stay.agent] || stay.agent, thoughtLine(part, stay.agent));
        lines.set(stay.agent, line);
        return line.node;
      });
      return el('article.card', {}, picture, el('div.grow', {},
        el('h3', {}, link(to('world', world.id), world.title), ' ', el('small', {}, world.id)), stays,
        world.stays.length ? null : el('small', {}, 'Lives on its own; no agents are in it.')));
    }), found.more_worlds ? el('p.more', {}, link('#/worlds', `${many(found.more_worlds, 'more world')}`)) : null,
    found.worlds.length ? null : empty('No agents are in worlds. They choose one themselves within seconds; or open an ',
      link('#/agents', 'agent'), ' and send it into one.'));
  }

  function showHere(found) {
    const part = { undo: (f) => cleanup.push(f), on: (kind, f) => cleanup.push(on(kind, f)) }; // cleaned up by showWorlds
    const moving = new Map(found.transit.map((t) => [t.agent, t.kind]));
    fill(here, found.nexus.length ? el('ul.chips', {}, found.nexus.map((a) => el('li', {},
      link(to('agent', a.id), a.name),
      moving.has(a.id) ? el('span.tag', {}, moving.get(a.id) === 'enter' ? 'entering a world' : 'returning') : '',
      a.state === 'paused' ? el('span.tag', {}, 'paused') : '', thoughtLine(part, a.id))))
      : empty(found.counts.agents ? 'All agents are in worlds.' : 'There are no agents yet. Add one with: wsap nexus agents add'),
    found.counts.in_nexus > found.nexus.length ? el('p.more', {}, link('#/agents', `${many(found.counts.in_nexus - found.nexus.length, 'more agent')}`)) : null);
  }

  function show(found) {
    names = found.names;
    held = found.health.held;
    stats.agents.set(count(found.counts.agents), `${count(found.counts.in_worlds)} in worlds, ${count(found.counts.in_nexus)} in the nexus`);
    stats.rate.set(`${found.health.rate}/s`, `${count(found.health.decisions)} since the start`);
    stats.stays.set(count(found.counts.sessions), `in ${many(found.counts.worlds, 'world')}`);
    const spent = found.spent;
    stats.models.set(spent.calls ? cost(spent.cost) : 'none used', spent.calls ? `${many(spent.calls, 'call')}, ${count(spent.prompt_tokens + spent.completion_tokens)} tokens` : 'all agents are scripted');
    stats.health.set(lasting(found.now - found.health.since), [size(found.health.database_bytes), `version ${found.health.version}`].filter(Boolean).join(', '));
    fill(attention, found.attention.length ? el('section.panel.attention', {}, el('h2', {}, 'Needs attention'),
      el('ul', {}, found.attention.map((item) => el('li', {},
        item.kind === 'agent' ? link(to('agent', item.id), item.name) : el('b', {}, plain(item.name)), ` – ${item.what}`)))) : null);
    showWorlds(found);
    showHere(found);
    happened.fill(found.recent, 'No events yet.');
  }

  async function load() { show(await get('/nexus/overview', signal)); }
  await load();

  // Entries and exits change the cards; reloads are throttled, as there may be many at once.
  const again = throttled(() => load().catch(() => {}), 1500);
  context.undo(() => again.stop());
  context.on('hello', (hello) => { if (hello.again || hello.reset) again(); });
  context.on('nexus', (event) => {
    if (['entered', 'left', 'agent_registered', 'agent_removed', 'agent_failed', 'agent_paused', 'agent_resumed', 'resumed'].includes(event.kind)) again();
    happened.add(event);
  });
  context.on('pulse', (pulse) => {
    stats.rate.set(`${pulse.rate}/s`, `${count(pulse.decisions)} since the start`);
    if (pulse.held !== held) again();
    for (const stay of pulse.agents) lines.get(stay.agent)?.update(stay);
    for (const world of pulse.worlds) looks.get(world)?.();
  });
}

