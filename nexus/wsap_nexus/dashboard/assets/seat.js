// A dialog that gives people seats in a game: one on this device, others by an address each.

import { act, get } from './api.js';
import { toast } from './actions.js';
import { el, fill, say, to } from './dom.js';

const MOST = 14; // others at one table
const HOURS = 12; // for which the address of a seat is valid

function idOf(name) {
  const plain = name.normalize('NFKD').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 30);
  return `${plain || 'guest'}-${Math.random().toString(36).slice(2, 6)}`;
}

// The address of a seat, with its QR code.
export async function seatAddress(agent) {
  const page = location.origin + location.pathname;
  return act('POST', '/nexus/passes', { scope: 'seat', target: agent, hours: HOURS, page });
}

export function seatCode(name, told) {
  const here = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);
  return el('div.seat-code', {}, el('h3', {}, name), el('img.qr', { src: told.qr, alt: `The seat of ${name} as a QR code`, width: 200, height: 200 }),
    el('p', {}, el('a', { href: told.address, target: '_blank', rel: 'noopener' }, `Play as ${name}`)),
    here ? el('p.where', {}, 'It opens on this machine only. For other devices, start with: ', el('code', {}, 'wsap nexus start --expose')) : null);
}

// A dialog with the address of the seat of one agent.
export async function giveSeat(agent, name) {
  let told;
  try { told = await seatAddress(agent); } catch (error) { toast(error.message, 'bad'); return; }
  if (!told) return;
  const box = el('dialog.share', { 'aria-label': `The seat of ${name}` }, el('p', {}, `Whoever opens this plays as ${name}, for ${HOURS} hours.`),
    seatCode(name, told), el('div.buttons', {}, el('button.main', { type: 'button', onclick: () => box.close() }, 'Close')));
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
}

export async function takeSeat(signal) {
  let games;
  try { ({ games } = await get('/nexus/games', signal)); } catch (error) { toast(error.message, 'bad'); return; }
  const open = games.filter((game) => game.status === 'available');
  const game = el('select', { id: 'seat-game' }, open.map((one) => el('option', { value: one.id }, one.name)));
  const mine = el('input', { id: 'seat-name', maxlength: 40, autocomplete: 'off', placeholder: 'empty, if only others play' });
  const others = el('textarea', { id: 'seat-others', rows: 3, maxlength: 800, placeholder: 'one name a line; each gets an address and a QR code' });
  const problem = el('p.bad', { role: 'alert' });
  const start = el('button.main', { type: 'submit' }, 'Start');
  const form = el('form', {}, el('h2', {}, 'Take a seat'),
    el('label', { for: 'seat-game' }, 'Game'), game,
    el('label', { for: 'seat-name' }, 'Your name'), mine,
    el('label', { for: 'seat-others' }, 'Others who play with you'), others,
    problem, el('div.buttons', {}, el('button.quiet', { type: 'button', onclick: () => box.close() }, 'Cancel'), start));
  const box = el('dialog.share', { 'aria-label': 'Take a seat' }, form);

  async function seat(name) {
    const id = idOf(name);
    const made = await act('POST', '/nexus/agents', { id, name, policies: { '*': { agent: 'external' } } });
    return made && { id, name };
  }

  async function begin() {
    const names = others.value.split('\n').map((name) => name.trim()).filter(Boolean);
    if (names.length > MOST) throw new Error(`At most ${MOST} others can play with you.`);
    const me = mine.value.trim();
    if (!me && !names.length) throw new Error('Say who plays: your name, or the names of others.');
    const seats = [];
    for (const name of me ? [me, ...names] : names) {
      const one = await seat(name);
      if (!one) return;
      seats.push(one);
    }
    const guests = me ? seats.slice(1) : seats;
    for (const one of guests) one.told = await seatAddress(one.id);
    say(start, 'They take their seats …');
    // Together, so that they meet in one world.
    await Promise.all(seats.map((one) => act('POST', '/nexus/transit/enter', { agent_id: one.id, game: game.value })));
    const go = () => { box.close(); if (me) location.hash = to('play', seats[0].id); };
    if (!guests.length) { go(); return; }
    fill(form, el('h2', {}, 'Their seats'), guests.map((one) => seatCode(one.name, one.told)),
      el('div.buttons', {}, el('button.main', { type: 'button', onclick: go }, me ? 'Go to my seat' : 'Close')));
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    say(problem, '');
    start.disabled = true;
    try { await begin(); } catch (error) { say(problem, error.message); } finally { start.disabled = false; say(start, 'Start'); }
  });
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
}
