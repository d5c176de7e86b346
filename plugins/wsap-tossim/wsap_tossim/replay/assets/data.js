// The data of the page, which is only ever shown as text.

const game = JSON.parse(document.getElementById('game').textContent);
const EVERYONE = game.events.length ? game.events[0].known : 0;
const VIEWS = game.view === 'all' ? ['all', 'public', ...game.names.keys()] : [game.view];

// Controls and marks that reorder text are spelled out, so that nobody's words can disguise others.
const UNSEEN = /[^\P{Cc}\n\t]|[\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

function shown(text) {
  const code = (c) => `[U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`;
  return String(text).replaceAll('\r\n', '\n').replace(UNSEEN, code);
}

function nameOf(player) {
  return shown(game.names[player] ?? `player ${player + 1}`);
}

function viewName(view) {
  if (view === 'all') return 'All-seeing';
  return view === 'public' ? 'Public' : shortened(nameOf(view));
}

function shortened(text) {
  return text.length > 60 ? `${text.slice(0, 58)}\u2026` : text;
}

function faction(role) {
  return (game.factions[role] || 'none').toLowerCase();
}

function capital(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function titleOf(day, phase) {
  if (phase === 'over') return 'The end';
  return phase === 'night' ? `Night ${day}` : `Day ${day}: ${phase}`;
}
