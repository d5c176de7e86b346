// The story, row by row.

const TAGS = { whisper: 'whisper', channel: 'private talk', private: 'private' };

function rowOf(item, view, query) {
  const { event, thoughts } = item;
  const node = el(`li.row.${event ? event.tone : 'alone'}`, { id: `e${item.key}`, tabindex: '-1', 'data-key': item.key });
  node.append(event ? said(item, view, query) : el('div.said', {}, el('p.line', {}, named(thoughts[0].player, query), el('span.muted', {}, ' thinks'))));
  if (thoughts.length) node.append(el('div.thoughts', {}, thoughts.map((t) => thoughtOf(t, event, query))));
  return node;
}

function said(item, view, query) {
  const { event } = item;
  const box = el('div.said');
  box.append(el('p.line', {}, permalink(item), sentence(event, view, query), tags(event, view)));
  if (event.text) box.append(words(event.text, query));
  if (event.tally) box.append(tallyOf(event.tally));
  return box;
}

function sentence(event, view, query) {
  const parts = event.parts.map((part) => (typeof part === 'number' ? named(part, query) : marked(shown(part), query)));
  if (view === 'all' && event.speaker !== undefined) {
    return [named(event.speaker, query), ' \u2013 heard as \u201c', parts[0], '\u201d', ...parts.slice(1)];
  }
  return parts;
}

function tags(event, view) {
  const found = [];
  if (TAGS[event.tone]) found.push(el('span.tag', {}, TAGS[event.tone]));
  const own = event.by !== undefined && event.known === 1 << event.by; // the sentence names its owner
  if (view === 'all' && event.known && event.known !== EVERYONE && !own) found.push(el('span.known', {}, knownBy(event.known)));
  return found;
}

function knownBy(mask) {
  const players = game.names.map((_, n) => n).filter((n) => (mask >> n) & 1);
  const who = players.length > 3 ? `${players.length} players` : players.map((n) => shortened(nameOf(n))).join(', ');
  return `known to ${who}`;
}

function permalink(item) {
  // For the mouse; the address bar links to the selected event.
  return el('a.link', { href: hashOf(item.key, reader.view), title: 'Link to this event', 'aria-hidden': 'true', tabindex: '-1' }, `#${item.key}`);
}

function thoughtOf(thought, event, query) {
  const whose = event && event.by === thought.player ? el('span.vh', {}, `${nameOf(thought.player)} thinks: `) : null;
  const other = event && !whose ? el('p.line', {}, named(thought.player, query), ' thinks') : null;
  return el('div.thought', {}, whose, other, words(thought.text, query));
}

function tallyOf(tally) {
  if (!tally.counts.length) return null;
  const rows = tally.counts.map(([player, count]) => {
    const fill = el('span.fill');
    fill.style.width = `${Math.min(100, (100 * count) / tally.needed)}%`;
    return el('li', {}, el('bdi', {}, nameOf(player)), el('b', {}, String(count)), fill);
  });
  return el('ul.tally', { 'aria-label': `Votes so far, of ${tally.needed} needed` }, rows, el('li.needed', {}, `${tally.needed} needed`));
}

function sectionOf(section, number, view, query) {
  const id = `s${number}`;
  const list = el('ol.rows');
  let step = null;
  for (const item of section.items) {
    const own = view === 'all' && item.event && item.event.step ? item.event.step : null;
    if (own && own !== step) list.append(el('li.step', {}, own));
    if (own) step = own;
    list.append(rowOf(item, view, query));
  }
  const night = section.phase === 'night' ? '.night' : '';
  return el(`section.part${night}`, { 'aria-labelledby': id },
    el('h2', { id }, section.title),
    section.items.length ? list : el('p.empty', {}, 'This view knows of nothing here.'));
}

// The searchable text of a row.
function textOf(item) {
  const { event, thoughts } = item;
  const parts = event ? event.parts.map((p) => (typeof p === 'number' ? nameOf(p) : shown(p))) : [];
  if (event && event.text) parts.push('\n', shown(event.text));
  for (const thought of thoughts) parts.push('\n', nameOf(thought.player), ' ', shown(thought.text));
  return parts.join('').toLowerCase();
}
