// The stream of events, shared by the whole page; after a lost connection it resumes at the last event.

import { headers, here, onToken } from './api.js';

const QUIET = 40000; // the nexus sends something at least every 15 s
const listeners = { nexus: new Set(), pulse: new Set(), hello: new Set(), state: new Set(), thinking: new Set() };
const thoughts = new Map(); // what is known of models that are asked: agent -> requests by number
// More missed events than this are not sent to the page; it loads what it shows anew.
const MOST_BEHIND = 1000;
const STREAM = '/nexus/events?also=pulse&also=thinking&sentences=true';
let lastId = null;
let reset = false;
let state = 'connecting';
let known = false;
let attempt = 0;
let running = null;

export function on(kind, listener) {
  listeners[kind].add(listener);
  return () => listeners[kind].delete(listener);
}

export function liveState() { return state; }

function tell(kind, data) {
  for (const listener of [...listeners[kind]]) listener(data);
}

function become(next) {
  if (next === state) return;
  state = next;
  tell('state', state);
}

export async function start() {
  onToken(() => { if (running) running.abort(); });
  for (;;) {
    running = new AbortController();
    try {
      await listen(running);
    } catch { /* shown by the state below */ }
    become('lost');
    attempt = Math.min(attempt + 1, 6);
    // Random, so that pages don't all reconnect at once.
    await new Promise((done) => setTimeout(done, 250 * 2 ** attempt * (0.5 + Math.random() / 2)));
  }
}

async function listen(controller) {
  const given = { headers: headers(), cache: 'no-store', signal: controller.signal };
  if (lastId !== null) {
    const about = await fetch(here('/nexus'), given);
    const missed = (await about.json()).last_event - lastId;
    // A negative number: the database was replaced by an older one.
    if (missed < 0 || missed > MOST_BEHIND) { lastId = null; reset = true; }
  }
  if (lastId !== null) given.headers['Last-Event-ID'] = lastId;
  const response = await fetch(here(STREAM), given);
  if (!response.ok) throw new Error(`refused: ${response.status}`);
  thoughts.clear(); // a new stream begins with the current state
  attempt = 0;
  become('live');
  tell('hello', { again: known, reset });
  known = true;
  reset = false;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let watch = setTimeout(() => controller.abort(), QUIET);
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(watch);
      watch = setTimeout(() => controller.abort(), QUIET);
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      for (const part of parts) take(part);
    }
  } finally {
    clearTimeout(watch);
  }
}

function think({ agent_id: agent, body }) {
  const asked = thoughts.get(agent) || new Map();
  if (body.state === 'done') asked.delete(body.request);
  else asked.set(body.request, { ...body, at: performance.now() });
  if (asked.size) thoughts.set(agent, asked);
  else thoughts.delete(agent);
  tell('thinking', agent);
}

// The latest request to a model for an agent; null if there is none.
export function thoughtOf(agent) {
  const asked = thoughts.get(agent);
  return asked ? [...asked.values()].pop() : null;
}

function take(message) {
  let data = '';
  for (const line of message.split('\n')) {
    if (line.startsWith('data: ')) data += line.slice(6);
    else if (line.startsWith('id: ')) lastId = line.slice(4);
  }
  if (!data) return;
  const event = JSON.parse(data);
  if (event.kind === 'thinking') think(event);
  else if (event.kind === 'pulse') tell('pulse', event.body);
  else tell('nexus', event);
}
