// The players as far as the view knows them, and the outcome.

function showRoster(view, upto, title) {
  byId('when').textContent = title;
  byId('roster').replaceChildren(...standing(view, upto).map((one) => playerRow(one, view)));
}

// The list is rebuilt with the view, so the focus moves to the story.
function seeAs(player) {
  reader.show(player);
  reader.select(reader.at, { focus: true });
}

function playerRow(one, view) {
  const name = el('bdi', {}, nameOf(one.number));
  const open = VIEWS.length > 1
    ? el('button.plain', { type: 'button', title: 'See the game as this player saw it', onclick: () => seeAs(one.number) }, name)
    : name;
  const notes = [
    one.number === view ? 'this view' : '',
    one.jailed ? 'in jail' : '',
    one.was ? `began as ${shown(one.was)}` : '',
    one.mayor && one.role !== 'Mayor' ? 'was revealed as Mayor' : '',
    one.told && one.told !== one.role ? `announced as ${one.told}` : '',
    one.won ? 'won' : '',
    new Set(game.minds).size > 1 ? shown(game.minds[one.number]) : '',
  ].filter(Boolean);
  const state = one.alive ? null : el('span.dead', {}, `died, day ${one.died}`);
  return el(`li.player-row${one.alive ? '' : '.gone'}`, {}, dot(one.number),
    el('div.grow', {},
      el('div.first', {}, open, state),
      notes.length ? el('div.notes', {}, notes.join(' \u00b7 ')) : null),
    one.role ? el(`span.role.${faction(one.role)}`, {}, one.role) : el('span.role.unknown', {}, 'unknown'));
}

function showOutcome() {
  const box = byId('outcome');
  const { outcome } = game;
  if (!outcome) {
    const last = game.events.at(-1);
    box.replaceChildren(el('p', {}, el('strong', {}, 'This game is not over.'), last ? ` Last phase: ${titleOf(last.day, last.phase).toLowerCase()}.` : ''));
    return;
  }
  const side = outcome.side ? `The ${shown(outcome.side)} ${outcome.side === 'Vampires' ? 'win' : 'wins'}` : 'A draw';
  const winners = outcome.winners.flatMap((n, at) => [at ? ', ' : '', el('bdi', {}, nameOf(n))]);
  box.replaceChildren(
    el('p.won', {}, side),
    el('p', {}, shown(outcome.reason)),
    el('p.muted', {}, ...(winners.length ? ['Winners: ', ...winners] : ['Nobody has won.'])));
}

function showAbout() {
  const days = game.events.at(-1)?.day || 1;
  const parts = [`${game.names.length} players`, `mode ${shown(game.mode) || 'unknown'}`, `rules ${shown(game.rules) || 'unknown'}`, `${days} ${days === 1 ? 'day' : 'days'}`];
  if (game.minds[0] && new Set(game.minds).size === 1) parts.push(`all played by ${shown(game.minds[0])}`);
  byId('about').textContent = parts.join(' \u00b7 ');
  byId('about').title = byId('about').textContent;
}
