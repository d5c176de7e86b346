// The list of agents, and the page of one.

import { get, token } from './api.js';
import { drawObservation, drawView } from './blocks.js';
import { controls, transferControls } from './controls.js';
import { perform } from './actions.js';
import { add, el, empty, fill, link, panel, scrolls, table, to } from './dom.js';
import { throttled, feed as feedOf, stat, stayLine, thoughtLine, watchView } from './feed.js';
import { giveSeat } from './seat.js';
import { stays } from './worlds.js';
import { count, lasting, many, percent, plain, when } from './format.js';

export async function agentsPage(context) {
  const { root, signal } = context;
  context.title('Agents');
  const search = el('input', { type: 'search', id: 'search', placeholder: 'name or id', autocomplete: 'off' });
  const list = el('div', {});
  const next = el('button', { type: 'button', hidden: true }, 'Show more');
  add(root, [el('h1', {}, 'Agents'),
    el('form.filters', { onsubmit: (e) => e.preventDefault() }, el('label', { for: 'search' }, 'Find'), search),
    el('section.panel', {}, list, el('p.more', {}, next))]);
  let rows = [];
  let turn = 0;
  async function load(after = '') {
    turn += 1;
    const now = turn;
    const found = await get(`/nexus/agents?${new URLSearchParams({ limit: 100, after, search: search.value.trim() })}`, signal);
    if (now !== turn) return;
    const page = found.agents.map((a) => ({ ...a, stay: found.stays[a.id], decides: found.decides[a.id] }));
    rows = after ? [...rows, ...page] : page;
    next.hidden = !found.next || rows.length >= 2000;
    fill(list, rows.length ? table([
      { title: 'Agent', cell: (a) => [link(to('agent', a.id), a.name), a.state === 'paused' ? el('span.tag.warn', {}, 'paused') : ''] },
      { title: 'Where', cell: (a) => (a.stay ? link(to('world', a.stay.world), plain(a.stay.game)) : a.place === 'world' ? 'in a world' : el('small', {}, 'the nexus')) },
      { title: 'Action', cell: (a) => (a.stay?.action ? [el('span.act', {}, plain(a.stay.action)), ' ', el('small', {}, a.stay.reasoning)] : '') },
      { title: 'Decided by', cell: (a) => el('small', {}, a.decides.join(', ')) },
      { title: 'Steps', number: true, cell: (a) => count(a.lifetime_steps + (a.stay?.steps || 0)) },
    ], rows) : empty(search.value ? 'No agent matches.' : 'There are no agents yet. Add one with: wsap nexus agents add'));
  }
  const again = throttled(() => { if (rows.length <= 100) load().catch(() => {}); }, 2000);
  context.undo(() => again.stop());
  search.addEventListener('input', throttled(() => context.guard(load()), 200));
  next.addEventListener('click', () => context.guard(load(rows[rows.length - 1].id)));
  await load();
  context.on('pulse', again);
  context.on('nexus', again);
}

export async function agentPage(context) {
  const { root, signal, id } = context;
  const path = `/nexus/agents/${encodeURIComponent(id)}`;
  const whole = Boolean(token()); // else only public data
  context.title(id);
  const title = el('h1', {}, id);
  const about = el('p.where', {});
  const trouble = el('div', {});
  const now = el('div', {});
  const stage = el('div.stage', {});
  const stats = { steps: stat('Lifetime steps', '–'), time: stat('In worlds', '–'), stays: stat('Sessions', '–'), achieved: stat('Achievements', '–') };
  const boxes = Object.fromEntries(['persona', 'skills', 'goals', 'achieved', 'items', 'bodies', 'past', 'memories', 'diary', 'talk'].map((k) => [k, el('div', {})]));
  const feed = el('ol.feed', { 'aria-label': 'Events, newest first' });
  const buttons = controls(context, id, { place: 'nexus', paused: false });
  const past = [panel('Sessions', boxes.past), panel('Events', feed, el('p.more', {}, link(`#/log?agent=${encodeURIComponent(id)}`, 'All events')))];
  const seat = el('div.buttons', { hidden: true }, link(to('play', id), 'Play as it'),
    el('button', { type: 'button', onclick: () => giveSeat(id, name) }, 'Let somebody play'));
  add(root, [title, about, trouble, buttons.node, seat,
    el('div.stats', {}, Object.values(stats).filter((s) => whole || s !== stats.achieved).map((s) => s.node)),
    el('div.columns', {},
      el('div', {}, panel('Now', now, whole ? thoughtLine(context, id) : null, stage), whole ? panel('Skills', boxes.skills) : null, whole && past),
      whole ? el('div', {}, panel('Persona', boxes.persona), boxes.talk, boxes.goals, panel('Items', boxes.items), panel('Avatars', boxes.bodies), panel('Achievements', boxes.achieved), panel('Memories', boxes.memories), boxes.diary) : el('div', {}, past))]);

  let line = null;
  let look = () => {};
  let stop = [];
  let state = {};
  let name = id;
  context.undo(() => stop.forEach((f) => f()));

  function showNow(found) {
    stop.forEach((f) => f());
    stop = [];
    line = null;
    look = () => {};
    const { agent, stay } = found;
    state = { place: agent.place, paused: agent.state === 'paused' || Boolean(stay?.paused) };
    buttons.update(state);
    if (!stay) {
      fill(now, el('p.empty', {}, agent.place === 'world' ? 'It is about to resume.' : state.paused ? 'It is in the nexus, paused.' : 'It is in the nexus, choosing a game.'));
      drawView(stage, null);
      return;
    }
    line = stayLine(stay, plain(stay.game));
    line.node.querySelector('a').href = to('world', stay.world);
    fill(now, line.node, whole ? el('p.more', {}, link(to('run', stay.run), 'Replay')) : null);
    if (!whole) {
      look = watchView({ signal, undo: (f) => stop.push(f) }, stay.world, stage, (seen) => drawView(stage, seen.view, seen.remark), 400);
      return;
    }
    look = throttled(async () => {
      try {
        const seen = await get(`${path}/now`, signal);
        if (!line || signal.aborted) return;
        stage.dataset.key = '';
        if (seen.observation) drawObservation(stage, seen.observation);
        else fill(stage, empty('It is about to make its first decision.'));
      } catch { /* it has left */ }
    }, 400);
    stop.push(() => look.stop());
    look();
  }

  function showPersona(agent) {
    const text = agent.persona;
    const policies = Object.entries(agent.policies || {}).map(([game, p]) => `${game === '*' ? 'elsewhere' : plain(game)}: ${p.agent}${p.options?.model ? ` (${p.options.model})` : ''}`);
    const edit = el('button', { type: 'button' }, text ? 'Edit' : 'Write a persona');
    edit.addEventListener('click', () => {
      const area = el('textarea', { id: 'persona', maxlength: 10000 });
      area.value = text;
      const save = el('button.main', { type: 'submit' }, 'Save');
      const form = el('form', {}, el('label', { for: 'persona' }, 'Persona'), area,
        el('div.buttons', {}, save, el('button.quiet', { type: 'button', onclick: () => showPersona(agent) }, 'Cancel')));
      form.addEventListener('submit', async (event) => {
        event.preventDefault();
        const done = await perform('PATCH', `/nexus/agents/${encodeURIComponent(id)}`, { persona: area.value }, 'Saved. It takes effect in the next session.');
        if (done) showPersona({ ...agent, persona: area.value });
      });
      form.addEventListener('keydown', (event) => { if (event.key === 'Escape') { event.stopPropagation(); showPersona(agent); } });
      fill(boxes.persona, form);
      area.focus();
    });
    fill(boxes.persona, text ? el('p.prose', {}, text) : empty('No persona.'), edit,
      policies.length ? el('p.where', {}, `Policies: ${policies.join('; ')}`) : null);
  }

  function showSkills(skills) {
    fill(boxes.skills, skills.length ? el('ul.skills', {}, skills.map((skill) => el('li', {},
      keep(`skill ${skill.domain}`, el('details', { open: opened.has(`skill ${skill.domain}`) }, el('summary', {}, el('span.skill', {}, el('span.skill-name', {}, plain(skill.domain)), el('meter', { min: 0, max: 1, value: skill.level, 'aria-label': plain(skill.domain) }), el('span.n', {}, percent(skill.level)))),
        table([
          { title: 'Source', cell: (e) => plain(e.source.split(':').pop()) }, { title: 'Game', cell: (e) => plain(e.game) },
          { title: 'Times', number: true, cell: (e) => count(e.times) }, { title: 'Gained', number: true, cell: (e) => percent(e.gained) },
        ], skill.evidence)))))) : empty('None yet. Agents gain skills in worlds.'));
  }

  // Opened sections stay open when the page is refreshed.
  const opened = new Set();
  function fold(key, heading, items, draw) {
    if (!items.length) return null;
    const box = el('details', { open: opened.has(key) }, el('summary', {}, heading), opened.has(key) ? draw(items) : null);
    box.addEventListener('toggle', () => {
      if (box.open) { opened.add(key); if (box.children.length < 2) box.append(draw(items)); } else opened.delete(key);
    });
    return box;
  }

  function keep(key, box) {
    box.addEventListener('toggle', () => (box.open ? opened.add(key) : opened.delete(key)));
    return box;
  }

  const PLACE = { escrow: 'in escrow', world: 'in a world', transfer: 'in transit', lost: 'lost' };

  function show(found) {
    const { agent } = found;
    name = agent.name;
    context.title(name);
    fill(title, name, name === agent.id ? '' : [' ', el('small', {}, agent.id)], state.paused ? el('span.tag.warn', {}, 'paused') : '');
    fill(about, agent.place === 'world' ? 'In a world' : 'In the nexus', ' · created ', when(agent.created));
    fill(trouble, found.failure ? el('p.problem', {}, `It is paused after a failure: ${found.failure}`) : null,
      (found.in_doubt || []).map((move) => transferControls(id, move, load)));
    const playing = found.stay?.steps || 0;
    const past = (sessions) => stays(sessions, null, found.spent);
    stats.steps.set(count(agent.lifetime_steps + playing));
    stats.time.set(lasting(agent.playtime));
    stats.stays.set(count(Object.values(found.visits).reduce((n, times) => n + times, 0)), Object.entries(found.visits).map(([game, times]) => `${plain(game)} ${times}`).join(', '));
    showNow(found);
    fill(boxes.past, found.sessions.length ? past(found.sessions.slice(0, 8)) : empty('No sessions yet.'), fold('past', 'Earlier sessions', found.sessions.slice(8), past));
    if (whole) showOwn(found);
  }

  function showOwn(found) {
    const { agent } = found;
    seat.hidden = !Object.values(agent.policies || {}).some((policy) => policy.agent === 'external');
    stats.achieved.set(count(found.achievements.length), found.achievements.length ? `in ${many(new Set(found.achievements.map((a) => a.game)).size, 'game')}` : '');
    if (!boxes.persona.querySelector('form')) showPersona(agent);
    showSkills(Object.entries(found.skills).map(([domain, level]) => ({ domain, level, evidence: found.evidence.filter((e) => e.domain === domain) })));
    fill(boxes.goals, found.meta_goals.length ? panel('Meta-goals', el('ul.goals', {}, found.meta_goals.map((g) => el('li', {},
      el('b', {}, g.description || g.id), el('span.tag', { class: g.state === 'reached' ? 'good' : '' }, g.state), el('br'), el('small', {}, g.progress || ''),
      g.share !== undefined ? el('meter', { min: 0, max: 1, value: g.share, 'aria-label': 'Progress' }) : '')))) : null);
    fill(boxes.achieved, found.achievements.length ? el('ul.chips', {}, found.achievements.map((a) => el('li', { title: `first on ${a.first}` }, plain(a.name), ' ', el('small', {}, `${plain(a.game)}${a.times > 1 ? ` × ${a.times}` : ''}`)))) : empty('None yet.'));
    const things = (items) => table([
      { title: 'Item', cell: (i) => [i.item.name, ' ', el('small', {}, [i.item.category, i.item.tier ? `tier ${i.item.tier}` : ''].filter(Boolean).join(', '))] },
      { title: 'Where', cell: (i) => [PLACE[i.place] || i.place, i.place === 'world' && i.place_id ? [' ', link(to('world', i.place_id), i.place_id)] : '', i.note ? el('small', {}, ` ${i.note}`) : ''] },
    ], items);
    const kept = found.items.filter((i) => i.place !== 'lost');
    const lost = found.items.filter((i) => i.place === 'lost');
    fill(boxes.items, kept.length ? things(kept) : empty('No items.'), fold('lost', `${many(lost.length, 'item')} lost or used up`, lost, things));
    const bodies = (avatars) => table([
      { title: 'Avatar', cell: (a) => a.avatar.name || a.avatar.avatar_id }, { title: 'World', cell: (a) => link(to('world', a.world_id), a.world_id) }, { title: 'State', cell: (a) => a.avatar.state },
    ], avatars);
    const alive = found.avatars.filter((a) => a.avatar.state !== 'destroyed');
    const gone = found.avatars.filter((a) => a.avatar.state === 'destroyed');
    fill(boxes.bodies, alive.length ? bodies(alive) : empty('No living avatars. One is created when it enters a world.'), fold('gone', `${many(gone.length, 'avatar')} destroyed`, gone, bodies));
    showTalk(found);
  }

  function showTalk(found) {
    const spoken = (said, reply, how) => [el('li', {}, el('b', {}, 'You'), ` ${said}`), el('li', {}, el('b', {}, how === 'words' ? name : 'The nexus'), ` ${reply}`)];
    const letters = [
      ...found.letters.map((l) => [l.created, el('li', {}, el('b', {}, l.sender), el('small', {}, ` to ${l.recipient}, `), when(l.created), el('div', {}, l.content))]),
      ...found.talk.map((t) => [t.time, spoken(t.said, t.reply, t.how)]),
    ].sort(([a], [b]) => Date.parse(a) - Date.parse(b)).map(([, lines]) => lines);
    if (boxes.talk.querySelector('textarea') && boxes.talk.contains(document.activeElement)) {
      fill(boxes.talk.querySelector('.letters'), letters);
      return;
    }
    const said = scrolls(el('ol.chat.letters', { 'aria-label': 'Conversation' }, letters));
    const area = el('textarea', { id: 'say', maxlength: 2000, rows: 2 });
    const form = el('form', {}, el('label', { for: 'say' }, found.stay ? 'Whisper to it; shown at its next decision' : 'Talk with it'), area, el('div.buttons', {}, el('button.main', { type: 'submit' }, 'Send message')));
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const text = area.value.trim();
      if (!text) return;
      const answer = await perform('POST', `/nexus/agents/${encodeURIComponent(id)}/talk`, { text }, '');
      if (!answer) return;
      area.value = '';
      add(said, spoken(text, answer.text, answer.how));
    });
    fill(boxes.talk, panel('Talk', said, form));
  }

  function memory(m) {
    const from = [plain(m.world || m.game || ''), Number.isInteger(m.step) ? `step ${m.step}` : '', /^run \d+$/.test(m.run || '') ? `its ${m.run}` : ''].filter(Boolean).join(', ');
    return el('li', {}, m.text, ' ', el('small', {}, m.kind ? `${plain(m.kind)} · ` : '', m.time ? link(to('run', m.run) , from) : from));
  }

  // What it keeps in every world, one entry a line.
  function editKept(found) {
    const area = (id, lines) => { const box = el('textarea', { id, rows: 5, maxlength: 2000 }); box.value = lines.join('\n'); return box; };
    const core = area('core', found.core);
    const ways = area('strategies', found.strategies);
    const close = () => { boxes.memories.replaceChildren(); context.guard(loadMemories()); };
    const form = el('form', {}, el('label', { for: 'core' }, 'Core memories, one a line'), core,
      el('label', { for: 'strategies' }, 'Strategies, one a line'), ways,
      el('div.buttons', {}, el('button.main', { type: 'submit' }, 'Save'), el('button.quiet', { type: 'button', onclick: close }, 'Cancel')));
    const lines = (box) => box.value.split('\n').map((line) => line.trim()).filter(Boolean);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const kept = { core_memories: lines(core), strategies: lines(ways) };
      if (await perform('PATCH', path, kept, 'Saved. It takes effect in the next session.')) close();
    });
    form.addEventListener('keydown', (event) => { if (event.key === 'Escape') { event.stopPropagation(); close(); } });
    fill(boxes.memories, form);
    core.focus();
  }

  async function loadMemories() {
    const found = await get(`${path}/memories`, signal);
    if (boxes.memories.querySelector('form')) return showDiary(found);
    const groups = [['Core', found.core.map((text) => ({ text }))], ['Strategies', found.strategies.map((text) => ({ text }))],
      ['Recalled', found.in_mind], ['Lessons from recent sessions', found.lessons]].filter(([, items]) => items.length);
    fill(boxes.memories, groups.length ? groups.map(([heading, items]) => [el('h3', {}, heading), el('ul.happened', {}, items.map(memory))])
      : empty('None. To remember, an agent needs a model and a memory; see: wsap nexus agents add --help'),
    el('button', { type: 'button', onclick: () => editKept(found) }, 'Change what it keeps in mind'));
    return showDiary(found);
  }

  function showDiary(found) {
    const diary = (entries) => el('ol.diary', {}, entries.map((e) => el('li', {}, when(e.time), e.own_words ? '' : el('small', {}, ' from the log'), el('p.prose', {}, e.text))));
    fill(boxes.diary, found.diary.length ? panel('Diary', diary(found.diary.slice(0, 3)), fold('diary', 'Earlier entries', found.diary.slice(3), diary)) : null);
  }

  const happened = feedOf(feed, 40, { without: new Set(['diary']) });
  async function loadFeed() {
    const found = await get(`/nexus/log?${new URLSearchParams({ agent: id, limit: 100 })}`, signal);
    happened.fill(found.events, 'Nothing yet.');
  }

  async function load() {
    const [found, talk] = await Promise.all([get(path, signal), whole ? get(`${path}/talk?limit=25`, signal) : null]);
    show({ ...found, talk: talk?.exchanges });
  }
  await load();
  const loadMind = async () => { if (whole) await loadMemories(); };
  await Promise.all([loadFeed(), loadMind()]);
  const again = throttled(() => { load().catch(() => {}); loadMind().catch(() => {}); }, 1000);
  context.undo(() => again.stop());
  context.on('hello', (hello) => { if (hello.again || hello.reset) { again(); loadFeed().catch(() => {}); } });
  context.on('nexus', (event) => {
    if (event.agent_id !== id) return;
    again();
    happened.add(event);
  });
  context.on('pulse', (pulse) => {
    const mine = pulse.agents.find((s) => s.agent === id);
    if (!mine) return;
    if (!line) { again(); return; }
    line.update(mine);
    if (mine.paused !== state.paused) { state.paused = mine.paused; buttons.update(state); }
    look();
  });
}

