// Keys, buttons and start-up.

const KEYS = {
  j: () => reader.step(1), ArrowDown: () => reader.step(1), ArrowRight: () => reader.step(1),
  k: () => reader.step(-1), ArrowUp: () => reader.step(-1), ArrowLeft: () => reader.step(-1),
  n: () => reader.phase(1), p: () => reader.phase(-1),
  d: () => reader.day(1), D: () => reader.day(-1),
  v: () => reader.nextView(1), V: () => reader.nextView(-1),
  Home: () => reader.select(0, { focus: true }), End: () => reader.select(reader.items.length - 1, { focus: true }),
  h: () => reader.toggleHide(),
  '/': () => byId('query').focus(),
  '?': () => byId('help').showModal(),
};

document.addEventListener('keydown', (press) => {
  if (press.ctrlKey || press.metaKey || press.altKey || press.defaultPrevented || byId('help').open) return;
  const target = press.target instanceof Element ? press.target : document.body;
  if (target.id === 'query') {
    if (press.key === 'Escape') {
      press.preventDefault();
      byId('query').value = '';
      reader.search('');
      reader.select(reader.at, { focus: true });
    }
    return;
  }
  if (target.matches('select, textarea')) return;
  if (target.id === 'scrub' && /^(Arrow|Home|End)/.test(press.key)) return; // the slider handles these
  const action = KEYS[press.key];
  if (!action) return;
  press.preventDefault();
  action();
});

byId('next').addEventListener('click', () => reader.select(reader.at + 1));
byId('previous').addEventListener('click', () => reader.select(reader.at - 1));
byId('scrub').addEventListener('input', () => reader.select(Number(byId('scrub').value) - 1));
byId('later').addEventListener('click', () => reader.toggleHide());
byId('keys').addEventListener('click', () => byId('help').showModal());
byId('view').addEventListener('change', () => {
  const { value } = byId('view');
  reader.show(VIEWS.find((view) => String(view) === value));
});
byId('search').addEventListener('submit', (send) => {
  send.preventDefault();
  reader.nextHit(1);
});
byId('query').addEventListener('keydown', (press) => {
  if (press.key !== 'Enter' || !press.shiftKey) return;
  press.preventDefault();
  reader.nextHit(-1);
});
byId('query').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => reader.search(byId('query').value), 120);
});
byId('story').addEventListener('click', (click) => {
  const row = click.target.closest('.row');
  if (!row || click.target.closest('a, button') || String(getSelection())) return;
  reader.select(reader.find(row.dataset.key, 0), { scroll: false });
});
// Scrolling selects the row in the upper third of the window.
document.addEventListener('scroll', () => {
  if (moving || reader.hides) return;
  const box = byId('story').getBoundingClientRect();
  const row = document.elementFromPoint(box.left + 40, innerHeight * 0.35)?.closest('.row');
  if (!row || row.getAttribute('aria-current')) return;
  reader.select(reader.find(row.dataset.key, 0), { scroll: false });
}, { passive: true });
addEventListener('hashchange', () => {
  known = location.hash;
  const wanted = fromHash();
  if (!wanted) return;
  if (wanted.view === reader.view) reader.select(reader.find(wanted.key, 0));
  else reader.show(wanted.view, wanted.key);
});
addEventListener('beforeprint', () => {
  for (const box of document.querySelectorAll('.words')) box.dispatchEvent(new Event('unfold'));
});

let typing = 0;

byId('view').replaceChildren(...VIEWS.map((view) => el('option', { value: String(view) }, viewName(view))));
byId('view').disabled = VIEWS.length === 1;
if (matchMedia('(max-width: 760px)').matches) byId('roster-box').open = false;
showAbout();
showOutcome();
const wanted = fromHash();
reader.show(wanted ? wanted.view : VIEWS[0], wanted?.key);
