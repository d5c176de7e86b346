// The frame of the pages: routing, the state of the connection, and the lock.

import { forget, onToken, save, spectatorNote, token, unlock, useKey, usePass } from './api.js';
import { add, el, fill, say } from './dom.js';
import { liveState, on, start } from './live.js';
import { guest } from './guest.js';
import { agentPage, agentsPage } from './agents.js';
import { logPage } from './log.js';
import { overviewPage } from './overview.js';
import { playPage } from './play.js';
import { runPage, runsPage } from './runs.js';
import { stagePage } from './stage.js';
import { worldPage, worldsPage } from './worlds.js';

const ROUTES = {
  '': stagePage, ops: overviewPage, worlds: worldsPage, world: worldPage, agents: agentsPage, agent: agentPage,
  runs: runsPage, run: runPage, log: logPage, play: playPage,
};
const SECTION = { worlds: 'ops', world: 'ops', log: 'ops', agent: 'agents', run: 'runs', play: 'agents' };

const main = document.getElementById('main');
let leave = () => {};
let first = true;

function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  let parts;
  try { parts = path.split('/').map(decodeURIComponent); } catch { parts = ['?']; }
  return { name: parts[0], id: parts.slice(1).join('/'), query: new URLSearchParams(query || '') };
}

function show() {
  leave();
  const route = parse();
  const page = ROUTES[route.name];
  const section = SECTION[route.name] || route.name;
  for (const node of document.querySelectorAll('#nav a')) {
    if (node.getAttribute('href') === `#/${section}`) node.setAttribute('aria-current', 'page');
    else node.removeAttribute('aria-current');
  }
  const stop = new AbortController();
  const undo = [];
  leave = () => { stop.abort(); undo.forEach((f) => f()); };
  const root = el('div.page', { 'aria-busy': 'true' });
  const context = {
    root, id: route.id, query: route.query, signal: stop.signal,
    on: (kind, listener) => undo.push(on(kind, listener)),
    undo: (f) => undo.push(f),
    save,
    title: (text) => { document.title = `${text} – WSAP nexus`; },
    guard: (promise) => promise.catch((error) => failed(error, stop.signal, root)),
  };
  fill(main, spectatorNote(), root);
  if (!page) {
    root.removeAttribute('aria-busy');
    add(root, [el('h1', {}, 'Page not found'), el('p', {}, 'Start at the ', el('a', { href: '#/' }, 'stage'), '.')]);
  } else {
    const drawn = Promise.resolve(page(context)).catch((error) => {
      if (error.status === 404) fill(root); // a frame without contents
      throw error;
    });
    context.guard(drawn.finally(() => root.removeAttribute('aria-busy')));
  }
  window.scrollTo(0, 0);
  if (!first) main.focus({ preventScroll: true });
  first = false;
}

function failed(error, signal, root) {
  if (signal.aborted || error.name === 'AbortError') return;
  add(root, [el('p.problem', { role: 'alert' }, error.message)]);
}

const live = document.getElementById('live');
const SAID = { connecting: 'connecting', live: 'live', lost: 'connection lost, reconnecting' };
function showLive() {
  live.className = `live ${liveState()}`;
  say(live, SAID[liveState()]);
}
on('state', showLive);

const lock = document.getElementById('unlock');
function showLock() { say(lock, token() ? 'Lock' : 'Unlock'); }
lock.addEventListener('click', () => (token() ? forget() : unlock('')));
onToken(showLock);

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});

async function begin() {
  const pass = usePass();
  if (pass) { guest(pass); return; }
  showLive();
  await useKey();
  showLock();
  window.addEventListener('hashchange', show);
  onToken(show);
  show();
  start();
}
begin();
