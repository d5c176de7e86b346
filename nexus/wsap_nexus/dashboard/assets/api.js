// Requests to the nexus. Without the token, only public data is available, and only on the machine of the nexus.

import { el } from './dom.js';

const KEPT = 'wsap-token';
const PASS = 'wsap-pass';

export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function token() {
  return sessionStorage.getItem(KEPT) || '';
}

export function headers() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

async function answered(response) {
  let body = null;
  try { body = await response.json(); } catch { /* a response without a body */ }
  if (response.ok) return body;
  const error = (body && body.error) || {};
  throw new Refusal(response.status, error.code || '', error.message || `The nexus responded with status ${response.status}.`);
}

// Relative to the page, which a reverse proxy may serve below a path.
export function here(path) {
  return `.${path}`;
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(here(path), options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal(0, 'AWAY', 'The nexus does not respond. Is it running? Start it with: wsap nexus start');
  }
  return answered(response);
}

export async function get(path, signal) {
  try {
    return await ask(path, { headers: headers(), cache: 'no-cache', signal });
  } catch (error) {
    if (error.status === 401 && await unlock(error.message)) return ask(path, { headers: headers(), signal });
    throw error;
  }
}

// Saves what is at a path as a file, under the name that the nexus gives it.
export async function save(path) {
  const response = await fetch(here(path), { headers: headers() });
  if (!response.ok) await answered(response);
  const name = /filename="([^"]+)"/.exec(response.headers.get('Content-Disposition') || '')?.[1] || 'page.html';
  const url = URL.createObjectURL(await response.blob());
  el('a', { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

// A request that changes something, repeated with the same key until it is done.
async function insist(method, path, body, who, key = `page-${Date.now()}-${Math.random()}`) {
  let answer;
  do {
    answer = await ask(path, {
      method,
      headers: { ...who, 'Content-Type': 'application/json', 'Idempotency-Key': key },
      body: JSON.stringify(body || {}),
    });
  } while (answer?.pending);
  return answer;
}

export async function act(method, path, body) {
  if (!token() && !(await unlock(''))) return null;
  const key = `page-${Date.now()}-${Math.random()}`;
  const send = () => insist(method, path, body, headers(), key);
  try {
    return await send();
  } catch (error) {
    if (error.status !== 401) throw error;
    forget();
    return (await unlock(error.message)) ? send() : null;
  }
}

export function forget() {
  sessionStorage.removeItem(KEPT);
  changed();
}

// The address printed at the start has a one-time key after the #.
export async function useKey() {
  const found = /^#key=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, '', '#/');
  try {
    const given = await ask('/unlock', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key: found[1] }),
    });
    sessionStorage.setItem(KEPT, given.token);
  } catch (error) { unlock(error.message); } // already used: the page is read-only until it is unlocked
  changed();
}

// The pass of an address that somebody shared; empty without one. It is kept in this tab.
export function usePass() {
  const found = /^#pass=([\w-]+)$/.exec(location.hash);
  if (/^#key=/.test(location.hash)) sessionStorage.removeItem(PASS);
  if (found) {
    sessionStorage.setItem(PASS, found[1]);
    sessionStorage.removeItem(KEPT);
    history.replaceState(null, '', '#/');
  }
  return sessionStorage.getItem(PASS) || '';
}

// A request with the pass alone: what it may not see can't be asked for.
export function withPass(pass, path, signal, body) {
  const sent = { Authorization: `Bearer ${pass}` };
  return body === undefined ? ask(`/nexus/pass${path}`, { headers: sent, cache: 'no-cache', signal })
    : insist('POST', `/nexus/pass${path}`, body, sent);
}

let listeners = [];
export function onToken(listener) { listeners.push(listener); }
function changed() { for (const listener of listeners) listener(); }

// A note on the data hidden from spectators, and how to see it; null with the token.
export function spectatorNote() {
  if (token()) return null;
  return el('p.spectator', {}, 'You are a spectator: observations, decisions, memories and messages of agents are hidden. To see them, open the address that ',
    el('code', {}, 'wsap nexus start'), ' printed, or ',
    el('button.link', { type: 'button', onclick: () => unlock('') }, 'unlock this page'), ' with the token.');
}

let asking = null;

export function unlock(why) {
  asking = asking || dialog(why).finally(() => { asking = null; });
  return asking;
}

function dialog(why) {
  return new Promise((resolve) => {
    const problem = el('p.bad', { role: 'alert' }, why || '');
    const input = el('input', { type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true });
    const form = el('form', { method: 'dialog' },
      el('h2', {}, 'Unlock this page'),
      el('p', {}, 'The token of this nexus lets you see everything and control the agents. It is in the file ', el('code', {}, 'nexus.token'),
        ' in WSAP’s folder, and is only kept in this tab.'),
      problem,
      el('label', { for: 'token' }, 'Token'), input,
      el('div.buttons', {},
        el('button.quiet', { type: 'button', onclick: () => box.close() }, 'Cancel'),
        el('button.main', { type: 'submit' }, 'Unlock')));
    const box = el('dialog', { 'aria-label': 'Unlock this page' }, form);
    let good = false;
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const given = input.value.trim();
      try {
        const { caller } = await ask('/nexus', { headers: { Authorization: `Bearer ${given}` } });
        if (caller !== 'owner') throw new Error('This is the token of an agent; the page needs the owner’s.');
        sessionStorage.setItem(KEPT, given);
        good = true;
        changed();
        box.close();
      } catch (error) {
        problem.textContent = /^[\x21-\x7e]*$/.test(given) ? error.message : 'The token contains invalid characters.';
        input.focus();
      }
    });
    box.addEventListener('close', () => { box.remove(); resolve(good); });
    document.body.append(box);
    box.showModal();
    input.focus();
  });
}
