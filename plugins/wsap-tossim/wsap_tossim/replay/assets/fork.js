// How to go on otherwise from here. Rounds count what no player may know of, so only the view of all has them.

function showFork(view, item) {
  const box = byId('fork-box');
  box.hidden = view !== 'all' || !game.fork;
  if (box.hidden) return;
  const event = item.event ?? game.events[Math.min(item.index, game.events.length - 1)];
  byId('round').textContent = `round ${event.round}`;
  const { called } = game.fork;
  byId('fork').replaceChildren(
    el('p', {}, 'To play from here on again, with all before it as it was:'),
    el('code', {}, `wsap tossim fork ${shown(called || 'FILE_OR_RUN')} --at ${event.round}`),
    el('p.muted', {}, el('code', {}, "--set 'PLAYER=ACTION'"), ' decides for somebody in this round.'));
}
