// The frame of a saved replay.

import { open } from './api.js';
import { add, el, fill } from './dom.js';
import { count } from './format.js';
import { runPage } from './runs.js';

const main = document.getElementById('main');

function failed(error) { add(main, [el('p.problem', { role: 'alert' }, error.message)]); }

async function show() {
  const data = await open();
  const root = el('div.page', {});
  const last = data.first + data.steps.length;
  fill(main, data.steps.length < data.of ? el('p.spectator', {}, `Steps ${count(data.first + 1)} to ${count(last)} of ${count(data.of)}.`) : null, root);
  await runPage({
    root, id: data.run.id, signal: new AbortController().signal,
    query: new URLSearchParams(location.hash.split('?')[1] || ''),
    on: () => {}, undo: () => {}, title: (text) => { document.title = text; },
    guard: (promise) => promise.catch(failed),
  });
}
show().catch(failed);
