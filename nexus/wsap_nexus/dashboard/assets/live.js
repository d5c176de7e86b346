// The stream of events, shared by the whole page; after a lost connection it resumes at the last event.

import { headers, onToken } from './api.js';

const QUIET = 40000; // the nexus sends something at least every 15 s
const listeners = { nexus: new Set(), pulse: new Set(), hello: new Set(), state: new Set() };
let lastId = null;
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
  const given = { ...headers(), Accept: 'text/event-stream' };
  if (lastId !== null) given['Last-Event-ID'] = lastId;
  const response = await fetch('/dashboard/live', { headers: given, cache: 'no-store', signal: controller.signal });
  if (!response.ok) throw new Error(`refused: ${response.status}`);
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

function take(message) {
  let kind = 'message';
  let data = '';
  for (const line of message.split('\n')) {
    if (line.startsWith('event: ')) kind = line.slice(7);
    else if (line.startsWith('data: ')) data += line.slice(6);
    else if (line.startsWith('id: ')) lastId = line.slice(4);
  }
  if (!data || !(kind in listeners)) return;
  const body = JSON.parse(data);
  if (kind === 'hello') {
    attempt = 0;
    become('live');
    tell('hello', { ...body, again: known });
    known = true;
    return;
  }
  tell(kind, body);
}
