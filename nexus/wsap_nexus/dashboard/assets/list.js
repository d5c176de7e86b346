// A list of any length: only visible rows are on the page, and at most `MOST` are in memory.
//
// A source loads pages of rows, from top to bottom: `above(key)`, `below(key)`, and `start(key)` around a key or, for
// null, at the start of the list.

import { el } from './dom.js';

const MOST = 800;     // rows in memory
const NEAR = 40;      // distance from an edge, in rows, at which more are loaded
const OVERSCAN = 8;

export function windowList(source, { label, height = 52, draw, onOpen, onActive, signal }) {
  const spacer = el('div.spacer', {});
  const box = el('div.list', { tabindex: '0', role: 'listbox', 'aria-label': label }, spacer);
  const note = el('p.empty', { role: 'status' }, 'Loading …');
  const node = el('div.list-outer', {}, box, note);
  const pool = [];
  let rows = [];
  let active = null;
  let top = false;      // there is nothing above
  let bottom = false;   // there is nothing below
  let busy = false;
  let waiting = false;
  let turn = 0;

  const uid = `l${Math.random().toString(36).slice(2, 8)}`;

  function paint() {
    waiting = false;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - OVERSCAN);
    const count = Math.min(rows.length - first, Math.ceil(box.clientHeight / height) + 2 * OVERSCAN);
    while (pool.length < count) {
      const row = el('div.row', { role: 'option' });
      spacer.append(row);
      pool.push({ row, key: null });
    }
    pool.forEach((slot, i) => {
      const data = i < count ? rows[first + i] : null;
      slot.row.hidden = !data;
      if (!data) { slot.key = null; slot.row.removeAttribute('id'); return; } // another row may have it now
      slot.row.style.transform = `translateY(${(first + i) * height}px)`;
      if (slot.key !== data.key || slot.data !== data) {
        slot.key = data.key;
        slot.data = data;
        slot.row.id = `${uid}-${data.key}`;
        slot.row.replaceChildren(...[draw(data)].flat());
      }
      const here = data.key === active;
      slot.row.setAttribute('aria-selected', String(here));
      slot.row.classList.toggle('active', here);
    });
    if (active !== null && rows.some((r) => r.key === active)) box.setAttribute('aria-activedescendant', `${uid}-${active}`);
    else box.removeAttribute('aria-activedescendant');
    more();
  }

  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(paint);
  }

  function resize() {
    spacer.style.height = `${rows.length * height}px`;
    note.hidden = rows.length > 0;
    box.hidden = rows.length === 0;
  }

  async function fetchInto(which) {
    busy = true;
    const now = turn;
    try {
      const edge = which === 'above' ? rows[0].key : rows[rows.length - 1].key;
      const found = await source[which](edge);
      if (now !== turn || signal?.aborted) return;
      if (!found.length) {
        if (which === 'above') top = true; else bottom = true;
        return;
      }
      if (which === 'above') {
        rows = [...found, ...rows];
        let shift = found.length;
        if (rows.length > MOST) { rows.length = MOST; bottom = false; }
        resize();
        box.scrollTop += shift * height;
      } else {
        rows = [...rows, ...found];
        const over = rows.length - MOST;
        if (over > 0) {
          rows = rows.slice(over);
          top = false;
          resize();
          box.scrollTop -= over * height;
        } else resize();
      }
      later();
    } catch (error) {
      if (!signal?.aborted) { note.textContent = error.message; note.hidden = false; }
    } finally { if (now === turn) busy = false; }
  }

  function more() {
    if (busy || !rows.length) return;
    const first = Math.floor(box.scrollTop / height);
    const last = first + Math.ceil(box.clientHeight / height);
    if (!bottom && last > rows.length - NEAR) fetchInto('below');
    else if (!top && first < NEAR) fetchInto('above');
  }

  // Reloads the list around a key, or at its start.
  async function start(key = null) {
    turn += 1;
    const now = turn;
    busy = true;
    const found = await source.start(key);
    if (now !== turn || signal?.aborted) return;
    rows = found.rows;
    top = Boolean(found.top);
    bottom = Boolean(found.bottom);
    busy = false;
    resize();
    note.textContent = rows.length ? '' : (found.empty || 'There is nothing here yet.');
    const at = key === null ? (found.end ? rows.length : 0) : Math.max(0, rows.findIndex((r) => r.key === key) - 3);
    box.scrollTop = at * height;
    paint();
  }

  function indexOf(key) { return rows.findIndex((r) => r.key === key); }

  function reveal(index) {
    const y = index * height;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + height > box.scrollTop + box.clientHeight) box.scrollTop = y + height - box.clientHeight;
  }

  function activate(key, { quiet = false } = {}) {
    active = key;
    const index = indexOf(key);
    if (index >= 0) reveal(index);
    later();
    if (!quiet && index >= 0 && onActive) onActive(rows[index]);
  }

  box.addEventListener('scroll', later, { passive: true });
  const resized = new ResizeObserver(later);
  resized.observe(box);
  signal?.addEventListener('abort', () => resized.disconnect());

  box.addEventListener('click', (event) => {
    const row = event.target.closest('.row');
    const slot = pool.find((s) => s.row === row);
    if (!slot || slot.key === null) return;
    activate(slot.key);
    if (onOpen) onOpen(slot.data);
  });

  box.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / height) - 1);
    const index = indexOf(active);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in moves) {
      event.preventDefault();
      const visible = Math.floor(box.scrollTop / height);
      const next = index < 0 ? visible : Math.min(rows.length - 1, Math.max(0, index + moves[event.key]));
      if (rows[next]) activate(rows[next].key);
    } else if (event.key === 'Home' || event.key === 'End') {
      event.preventDefault();
      const wanted = event.key === 'Home' ? source.first : source.last;
      if (wanted) wanted().then((key) => key === undefined || start(key).then(() => activate(key ?? rows[0]?.key)));
    } else if (event.key === 'Enter' && index >= 0 && onOpen) {
      event.preventDefault();
      onOpen(rows[index]);
    }
  });

  return {
    node, box, start, activate,
    // Adds new rows at the top and returns true if the list is scrolled there; otherwise they are loaded later.
    prepend(fresh) {
      if (!top || !rows.length || box.scrollTop > height) { top = false; return false; }
      rows = [...fresh, ...rows].slice(0, MOST);
      if (rows.length === MOST) bottom = false;
      resize();
      later();
      return true;
    },
    // Called when there are new rows at the bottom.
    ended() { bottom = false; later(); },
    get active() { return active; },
    has: (key) => indexOf(key) >= 0,
    get length() { return rows.length; },
  };
}
