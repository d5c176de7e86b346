// What a view knows. A page for one player has only the events that the player may know, not who else knows them.

function sees(event, view) {
  if (view === 'all' || game.view !== 'all') return true;
  return view === 'public' ? event.known === EVERYONE : Boolean((event.known >> view) & 1);
}

function thinks(thought, view) {
  return view === 'all' || game.view !== 'all' || thought.player === view;
}

// The sections of the story, each with its items: events, and thoughts without a visible event.
function sectionsOf(view) {
  const shownAt = game.events.map((event) => sees(event, view));
  const beside = new Map();
  const alone = new Map();
  game.thoughts.forEach((thought, number) => {
    if (!thinks(thought, view)) return;
    const at = thought.beside !== null && shownAt[thought.beside] ? thought.beside : null;
    const [map, key] = at === null ? [alone, thought.before] : [beside, at];
    if (!map.has(key)) map.set(key, []);
    map.get(key).push({ ...thought, number });
  });

  const sections = [];
  let now = { day: 1, phase: 'start', title: 'The beginning', items: [] };
  const begin = (day, phase) => {
    if (now.items.length || now.phase !== 'start') sections.push(now);
    now = { day, phase, title: titleOf(day, phase), items: [] };
  };
  const addAlone = (index) => {
    for (const thought of alone.get(index) || []) {
      if (now.phase !== 'start' && (thought.day !== now.day || thought.phase !== now.phase)) begin(thought.day, thought.phase);
      now.items.push({ key: `t${thought.number}`, index, thoughts: [thought], event: null });
    }
  };
  game.events.forEach((event, index) => {
    addAlone(index);
    if (!shownAt[index]) return;
    const other = event.day !== now.day || event.phase !== now.phase;
    if (event.kind === 'phase') {
      if (other || event.phase !== 'night') begin(event.day, event.phase);
      return;
    }
    if (now.phase !== 'start' ? other : event.phase === 'over') begin(event.day, event.phase);
    if (event.kind === 'whispered' && isToldNext(event, index, shownAt)) return;
    now.items.push({ key: String(index), index, event, thoughts: beside.get(index) || [] });
  });
  addAlone(game.events.length);
  sections.push(now);
  return sections;
}

// The notice of a whisper is omitted if the whisper itself follows.
function isToldNext(event, index, shownAt) {
  const next = game.events[index + 1];
  return Boolean(next && shownAt[index + 1] && next.kind === 'whisper' && next.data.player === event.data.player && next.data.to === event.data.to);
}

// Roles are dealt before anything else happens.
const DEALT = game.events.findIndex((event) => event.kind === 'phase');

// What a view knows of each player after an event.
function standing(view, at) {
  const upto = Math.max(at, DEALT);
  const rows = game.names.map((_, number) => ({ number, alive: true, role: null, was: null, told: null, died: 0, jailed: false, mayor: false, won: false }));
  const last = game.events[Math.min(upto, game.events.length - 1)];
  game.events.forEach((event, index) => {
    if (!event.data || index > upto || !sees(event, view)) return;
    const { kind, data } = event;
    const one = rows[data.player];
    if (kind === 'role' && (view === 'all' || data.player === view)) {
      one.role = data.role;
      for (const [mate, role] of Object.entries(data.mates || {})) rows[mate].role = role;
    } else if (kind === 'becomes') {
      if (one.role !== data.role) one.was ??= one.role;
      one.role = data.role;
    } else if (kind === 'revealed') {
      one.mayor = true;
      one.role = 'Mayor';
    } else if (kind === 'death') {
      one.alive = false;
      one.died = event.day;
      if (view === 'all') one.told = data.role;
      else if (data.role) one.role = data.role;
    } else if (kind === 'raised') {
      one.alive = true;
      one.died = 0;
      one.told = null;
    } else if (kind === 'jailed') {
      one.jailed = event.day === last.day && last.phase === 'night';
    } else if (kind === 'over') {
      for (const winner of data.winners) rows[winner].won = true;
    } else if (kind === 'truth') {
      data.final.forEach((role, number) => {
        rows[number].role = role;
        rows[number].was = data.roles[number] === role ? null : data.roles[number];
      });
    }
  });
  return rows;
}
