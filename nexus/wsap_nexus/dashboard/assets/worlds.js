// The list of worlds, and the page of one.

import { get, token } from './api.js';
import { drawObservation, drawView } from './blocks.js';
import { add, el, empty, fill, link, panel, say, scrolls, table, to } from './dom.js';
import { throttled, stayLine, watchView } from './feed.js';
import { controls } from './controls.js';
import { count, figure, many, plain, usage, when } from './format.js';

export async function worldsPage(context) {
  const { root, signal } = context;
  context.title('Worlds');
  const games = el('div', {});
  const list = el('div', {});
  const next = el('button', { type: 'button', hidden: true }, 'Show more');
  add(root, [el('h1', {}, 'Worlds'), panel('Games', games), panel('Worlds', list, el('p.more', {}, next))]);

  let rows = [];
  let awake = [];
  let names = {};
  let further = null;
  async function load(before = '') {
    const asked = new URLSearchParams({ limit: 60, before });
    const found = await get(`/nexus/worlds?${asked}`, signal);
    rows = before ? [...rows, ...found.worlds].slice(0, 3000) : found.worlds;
    if (!before) awake = found.awake;
    further = found.next;
    names = { ...names, ...found.names };
    next.hidden = !further || rows.length >= 3000;
    const shown = new Set(awake.map((w) => w.id));
    fill(list, rows.length ? table([
      { title: 'World', cell: (w) => [link(to('world', w.id), w.id), w.lives ? el('small', {}, ' lives on its own') : null] },
      { title: 'Agents', cell: (w) => (w.agents.length ? w.agents.map((a, i) => [i ? ', ' : '', link(to('agent', a), names[a] || a)]) : el('small', {}, 'none')) },
      { title: 'Owner', cell: (w) => (w.owner ? link(to('agent', w.owner), names[w.owner] || w.owner) : el('small', {}, 'shared')) },
      { title: 'Created', cell: (w) => when(w.created) },
    ], [...awake, ...rows.filter((w) => !shown.has(w.id))]) : empty('There are no worlds yet. One is created when an agent enters a game.'));
  }
  next.addEventListener('click', () => context.guard(load(further)));

  const { games: infos } = await get('/nexus/games', signal);
  fill(games, infos.length ? el('div.games', {}, infos.map((game) => el('article', {},
    el('h3', {}, game.name, el('span.tag', { class: game.status === 'available' ? 'good' : 'warn' }, game.status)),
    el('p', {}, game.description),
    game.reason ? el('p.where', {}, game.reason) : null,
    el('small', {}, [game.id === game.name.toLowerCase() ? '' : game.id, game.genre, game.multiplayer ? `up to ${game.capacity} at a time` : 'single player', game.active_agents ? `${many(game.active_agents, 'agent')} there now` : '', game.transit_compatible ? 'items can be transferred' : ''].filter(Boolean).join(' · ')))))
    : empty('No games are installed where the nexus runs. wsap-crafter is one.'));
  await load();
  const again = throttled(() => { load().catch(() => {}); }, 3000);
  context.undo(() => again.stop());
  context.on('nexus', (event) => { if (['entered', 'left'].includes(event.kind) && rows.length <= 60) again(); });
}

export async function worldPage(context) {
  const { root, signal, id } = context;
  context.title(id);
  const stage = el('div.stage', {});
  const moment = el('p.moment', { hidden: true });
  const people = el('div', {});
  const bodies = el('div', {});
  const past = el('div', {});
  const about = el('p.where', {});
  const doing = scrolls(el('ol.feed.doing', { 'aria-label': 'Decisions, newest first' }, el('li.empty', {}, 'New decisions appear here.')));
  const title = el('h1', {}, id);
  add(root, [title, about, el('div.columns', {},
    el('div', {}, panel('Now', moment, stage), token() ? panel('Decisions', doing) : null),
    el('div', {}, panel('Agents', people), panel('Avatars', bodies), panel('Sessions', past)))]);

  let lines = new Map();
  let name = '';
  let look = () => {};
  let stop = [];
  context.undo(() => stop.forEach((f) => f()));

  async function load() {
    const found = await get(`/nexus/worlds/${encodeURIComponent(id)}`, signal);
    const { world, names } = found;
    name = found.game?.name || plain(world.game);
    fill(title, name, ' ', el('small', {}, id));
    fill(about, world.seed === null ? 'Created ' : `Seed ${world.seed} · created `, when(world.created), world.owner ? [' · belongs to ', link(to('agent', world.owner), names[world.owner] || world.owner)] : ' · shared',
      found.run ? [' · ', link(to('run', found.run), found.stays.length || found.lives ? 'what happened so far' : 'steps of its last session')] : '');
    stop.forEach((f) => f());
    stop = [];
    lines = new Map();
    fill(people, found.stays.map((stay) => {
      const line = stayLine(stay, names[stay.agent] || stay.agent);
      const own = { ...context, undo: (f) => stop.push(f), on: context.on };
      const buttons = controls(own, stay.agent, { place: 'world', paused: stay.paused });
      lines.set(stay.agent, { update: (now) => { line.update(now); buttons.update({ place: 'world', paused: now.paused }); } });
      return el('div.person', {}, line.node, buttons.node);
    }), found.stays.length ? null : empty(found.over ? 'The game is over; no agents are here.' : found.lives ? 'No agents are here. The world goes on by itself.' : 'No agents are here. The world is suspended.'));
    fill(bodies, found.avatars.length ? table([
      { title: 'Avatar', cell: (a) => a.data?.name || a.id }, { title: 'Agent', cell: (a) => link(to('agent', a.agent_id), names[a.agent_id] || a.agent_id) },
      { title: 'State', cell: (a) => a.state },
    ], found.avatars) : empty('No avatars are here.'));
    fill(past, found.sessions.length ? stays(found.sessions, names, {}) : empty('No agent has been here yet.'));
    look = () => {};
    if (found.stays.length || found.lives) {
      look = watchView({ signal, undo: (f) => stop.push(f) }, id, stage, (seen) => {
        // The view's title, unless it is only the game's name.
        const title = seen.view?.title || '';
        moment.hidden = !title || title === name;
        say(moment, title);
        if (seen.view) drawView(stage, seen.view);
        else showSeen(seen.remark);
      }, 200);
    } else {
      moment.hidden = true;
      drawView(stage, null, found.over ? 'The game is over. Its sessions can be replayed step by step.'
        : 'No agents are here. Past sessions can be replayed step by step.');
      if (found.look_back) add(stage, [el('p.where', {}, 'Make a replay page: ', el('code', {}, found.look_back))]);
    }
  }

  // If the game has no view, an agent's observation is shown.
  let asking = false;
  async function showSeen(remark) {
    const [agent] = token() ? lines.keys() : [];
    if (!agent || asking) { if (!agent) drawView(stage, null, remark); return; }
    asking = true;
    try {
      const now = await get(`/nexus/agents/${encodeURIComponent(agent)}/now`, signal);
      stage.dataset.key = '';
      if (now.observation) drawObservation(stage, now.observation);
      else drawView(stage, null, remark);
    } catch { /* it has left */ } finally { asking = false; }
  }

  await load();
  const again = throttled(() => load().catch(() => {}), 1000);
  context.undo(() => again.stop());
  context.on('hello', (hello) => { if (hello.again || hello.reset) again(); });
  context.on('nexus', (event) => { if (event.body?.world === id || lines.has(event.agent_id)) again(); });
  context.on('pulse', (pulse) => {
    for (const stay of pulse.agents) {
      if (stay.world !== id) continue;
      lines.get(stay.agent)?.update(stay);
      doing.querySelector('.empty')?.remove();
      doing.prepend(decision(stay));
      while (doing.children.length > 40) doing.lastChild.remove();
    }
    if (pulse.worlds.includes(id)) look();
  });
}

export function decision(stay) {
  return el('li', {}, el('span.n', {}, stay.steps), el('span.said', {}, el('span.act', { class: stay.success ? '' : 'bad' }, plain(stay.action)), ' ',
    stay.reasoning, stay.message ? el('small', {}, ` ${stay.message}`) : '', (stay.achievements || []).map((a) => el('span.tag.good', {}, `★ ${plain(a)}`))),
  stay.gained ? el('span.n', {}, `${stay.gained > 0 ? '+' : ''}${figure(stay.gained)}`) : '');
}

export function stays(sessions, names, spent) {
  return table([
    { title: 'When', cell: (s) => link(to('run', s.run_id), when(s.opened)) },
    { title: names ? 'Who' : 'Game', cell: (s) => (names ? link(to('agent', s.agent_id), names[s.agent_id] || s.agent_id) : link(to('world', s.world_id), plain(s.game))) },
    { title: 'Ended', cell: (s) => (s.closed ? s.ended : el('span.tag', {}, 'there now')) },
    { title: 'Steps', number: true, cell: (s) => (s.closed ? count(s.steps) : '') },
    { title: 'Reward', number: true, cell: (s) => (s.closed ? figure(s.stats?.reward) : '') },
    ...(Object.keys(spent).length ? [{ title: 'Models', cell: (s) => usage(spent[s.id]) }] : []),
  ], sessions);
}
