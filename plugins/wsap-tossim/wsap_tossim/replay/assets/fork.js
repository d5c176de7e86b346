// How to fork the game here. Round numbers count hidden choices, so only the view of all has them.

function showFork(view, item) {
  const box = byId('fork-box');
  box.hidden = view !== 'all' || !game.fork;
  if (box.hidden) return;
  const event = item.event ?? game.events[Math.min(item.index, game.events.length - 1)];
  byId('round').textContent = `round ${event.round}`;
  const { called } = game.fork;
  byId('fork').replaceChildren(
    el('p', {}, 'To play on from here, with everything before it unchanged:'),
    el('code', {}, `wsap tossim fork ${shown(called || 'FILE_OR_RUN')} --at ${event.round}`),
    el('p.muted', {}, el('code', {}, "--set 'PLAYER=ACTION'"), ' decides for a player in this round.'));
}
