// The reader's position: view, event and search.

const reader = {
  view: VIEWS[0],
  sections: [],
  items: [], // all rows of the view, in order, each with its section
  at: 0,
  query: '',
  hits: [],
  hides: false,
  nodes: [],

  // Shows a view; stays at the same moment of the game.
  show(view, key) {
    const before = this.items[this.at];
    this.view = view;
    this.sections = sectionsOf(view);
    this.items = this.sections.flatMap((section, number) => section.items.map((item) => ({ ...item, section: number })));
    byId('view').value = String(view);
    this.draw();
    showBeliefs(view);
    const wanted = key ?? before?.key;
    this.select(wanted === undefined ? 0 : this.find(wanted, before?.index ?? 0), { scroll: before !== undefined || key !== undefined });
    if (before) tell(`View: ${viewName(view)}, ${this.items.length} events`);
  },

  draw() {
    const thoughts = this.items.some((item) => item.thoughts.length);
    byId('story').className = thoughts ? 'with-thoughts' : '';
    byId('story').replaceChildren(...this.sections.map((section, number) => sectionOf(section, number, this.view, this.query)));
    this.nodes = this.items.map((item) => byId(`e${item.key}`));
    byId('days').replaceChildren(...dayLinks(this.sections));
    Object.assign(byId('scrub'), { max: String(Math.max(1, this.items.length)) });
    this.hide();
  },

  // Finds a row by its key; if the view does not show it, the last one before it.
  find(key, fallback) {
    const exact = this.items.findIndex((item) => item.key === key);
    if (exact >= 0) return exact;
    const index = /^\d+$/.test(key) ? Number(key) : fallback;
    const later = this.items.findIndex((item) => item.index > index);
    return later < 0 ? this.items.length - 1 : Math.max(0, later - 1);
  },

  select(at, { scroll = true, focus = false } = {}) {
    if (!this.items.length) return;
    this.nodes[this.at]?.removeAttribute('aria-current');
    this.at = Math.max(0, Math.min(at, this.items.length - 1));
    const item = this.items[this.at];
    const node = this.nodes[this.at];
    const section = this.sections[item.section];
    for (const other of document.querySelectorAll('.row[tabindex="0"]')) other.tabIndex = -1;
    node.tabIndex = 0;
    node.setAttribute('aria-current', 'true');
    if (focus) node.focus({ preventScroll: true });
    if (scroll) {
      moving = true;
      node.scrollIntoView({ block: 'nearest' });
      requestAnimationFrame(() => requestAnimationFrame(() => { moving = false; }));
    }
    const place = `${section.title}, ${this.at + 1} of ${this.items.length}`;
    byId('scrub').value = String(this.at + 1);
    byId('scrub').setAttribute('aria-valuetext', place);
    byId('place').textContent = place;
    for (const link of document.querySelectorAll('#days a')) {
      if (link.dataset.label === dayLabel(section)) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
    showRoster(this.view, item.index, section.phase === 'start' ? 'at the beginning' : `at ${section.title.toLowerCase()}`);
    showFork(this.view, item);
    if (this.hides) this.hide();
    remember();
  },

  step(by) {
    this.select(this.at + by, { focus: true });
  },

  // Selects the first row of the next (or previous) section that fits.
  jump(by, fits) {
    let number = this.items[this.at]?.section;
    for (number += by; number >= 0 && number < this.sections.length; number += by) {
      if (fits(this.sections[number]) && this.sections[number].items.length) {
        this.select(this.items.findIndex((item) => item.section === number), { focus: true });
        return;
      }
    }
    tell(by > 0 ? 'There is nothing after this.' : 'There is nothing before this.');
  },

  phase(by) {
    const { section } = this.items[this.at];
    const first = this.items.findIndex((item) => item.section === section);
    if (by < 0 && this.at > first) this.select(first, { focus: true });
    else this.jump(by, () => true);
  },

  day(by) {
    const { day } = this.sections[this.items[this.at].section];
    const wanted = this.sections.filter((s) => s.items.length && (by > 0 ? s.day > day : s.day < day)).map((s) => s.day);
    const target = by > 0 ? Math.min(...wanted) : Math.max(...wanted);
    const number = this.sections.findIndex((s) => s.items.length && s.day === target);
    if (number >= 0) this.select(this.items.findIndex((item) => item.section === number), { focus: true });
    else tell(by > 0 ? 'This is the last day.' : 'This is the first day.');
  },

  nextView(by) {
    if (VIEWS.length === 1) tell('This file was made for one view.');
    else this.show(VIEWS[(VIEWS.indexOf(this.view) + by + VIEWS.length) % VIEWS.length]);
  },

  // Hides everything after the current row, so that a game can be followed without spoilers.
  hide() {
    document.body.classList.toggle('follows', this.hides);
    byId('later').setAttribute('aria-pressed', String(this.hides));
    this.nodes.forEach((node, at) => { node.hidden = this.hides && at > this.at; });
    const now = this.items[this.at]?.section ?? 0;
    [...byId('story').children].forEach((node, number) => { node.hidden = this.hides && number > now; });
    for (const step of document.querySelectorAll('.step')) step.hidden = Boolean(step.nextElementSibling?.hidden);
    byId('outcome').hidden = this.hides;
    byId('beliefs-box').classList.toggle('closed', this.hides);
  },

  toggleHide() {
    this.hides = !this.hides;
    this.hide();
    tell(this.hides ? 'What follows is hidden.' : 'What follows is shown.');
    this.select(this.at);
  },

  search(query) {
    this.query = query.trim().toLowerCase();
    this.hits = this.query ? this.items.flatMap((item, at) => (textOf(item).includes(this.query) ? [at] : [])) : [];
    this.draw();
    this.select(this.at, { scroll: false });
    this.nodes.forEach((node, at) => node.classList.toggle('hit', this.hits.includes(at)));
    this.count();
  },

  nextHit(by) {
    if (!this.hits.length) return;
    const later = by > 0 ? this.hits.find((at) => at > this.at) : this.hits.findLast((at) => at < this.at);
    this.select(later ?? (by > 0 ? this.hits[0] : this.hits.at(-1)));
    this.count();
  },

  count() {
    const number = this.hits.indexOf(this.at) + 1;
    byId('hits').textContent = this.query ? (number ? `${number} of ${this.hits.length}` : `${this.hits.length} found`) : '';
  },
};

let moving = false;
let remembering = 0;
let known = location.hash;

function tell(text) {
  byId('status').textContent = text;
}

function hashOf(key, view) {
  return `#${key}${view === VIEWS[0] ? '' : `,${view === 'public' ? view : view + 1}`}`;
}

function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const hash = hashOf(reader.items[reader.at].key, reader.view);
    // A hash set meanwhile is kept: its `hashchange` is still pending.
    if (location.hash === known && known !== hash) history.replaceState(null, '', known = hash);
  }, 200);
}

// Reads "#43" or "#43,public" or "#43,2": an event, and a view (a player by number from 1).
function fromHash() {
  const found = /^#(t?\d{1,9})(?:,(public|\d{1,2}))?$/.exec(location.hash);
  if (!found) return null;
  const view = found[2] === undefined ? VIEWS[0] : found[2] === 'public' ? 'public' : Number(found[2]) - 1;
  return { key: found[1], view: VIEWS.includes(view) ? view : VIEWS[0] };
}

function dayLabel(section) {
  if (section.phase === 'start' || section.phase === 'over') return section.title;
  return section.phase === 'night' ? `Night ${section.day}` : `Day ${section.day}`;
}

function dayLinks(sections) {
  const found = new Map();
  sections.forEach((section, number) => {
    const label = dayLabel(section);
    if (!found.has(label)) found.set(label, { first: number, deaths: 0 });
    found.get(label).deaths += section.items.filter((item) => item.event?.kind === 'death').length;
  });
  return [...found].map(([label, { first, deaths }]) => el('a', {
    href: `#s${first}`, 'data-label': label, onclick: (click) => { click.preventDefault(); toSection(first); },
  }, label, deaths ? el('span.deaths', { title: `${deaths} died` }, ` \u2020${deaths > 1 ? deaths : ''}`) : null));
}

function toSection(number) {
  const at = reader.items.findIndex((item) => item.section >= number);
  if (reader.hides && at > reader.at) reader.hides = false;
  reader.select(at < 0 ? reader.items.length - 1 : at);
  byId(`s${number}`).scrollIntoView({ block: 'start' });
}
