// The event log of the nexus, newest first.

import { get } from './api.js';
import { add, el, fill, link, pre, to } from './dom.js';
import { windowList } from './list.js';
import { plain, sentence, sign, when } from './format.js';

const KINDS = [
  ['', 'Everything'], ['entered,left,transfer_cancelled', 'Entries and exits'], ['died', 'Deaths'],
  ['achievement', 'Achievements'], ['skill_gained', 'Skills'], ['item_found,item_moved', 'Items'],
  ['agent_failed,world_crashed,entry_refused,listener_failed', 'Failures'],
];
const PAGE = 100;

export async function logPage(context) {
  const { root, signal, query } = context;
  context.title('Log');
  const agent = el('input', { type: 'search', id: 'agent', placeholder: 'an id, such as ada', value: query.get('agent') || '', autocomplete: 'off' });
  const kind = el('select', { id: 'kind' }, KINDS.map(([value, title]) => el('option', { value }, title)));
  kind.value = KINDS.some(([v]) => v === query.get('kind')) ? query.get('kind') : '';
  const fresh = el('button', { type: 'button', hidden: true, onclick: () => list.start() }, 'Show new events');
  const detail = el('div.detail', { 'aria-live': 'polite' }, el('p.empty', {}, 'Select an event to see its details.'));

  async function fetchPage(where) {
    const asked = new URLSearchParams({ limit: PAGE, ...where });
    if (agent.value.trim()) asked.set('agent', agent.value.trim());
    for (const each of kind.value.split(',').filter(Boolean)) asked.append('kind', each);
    const found = await get(`/nexus/log?${asked}`, signal);
    return found.events.map((event) => ({ key: event.seq, event }));
  }

  const source = {
    async start(key) {
      fresh.hidden = true;
      const rows = await fetchPage(key === null ? {} : { before: key + 1 });
      return { rows, top: key === null, bottom: rows.length < PAGE, empty: agent.value || kind.value ? 'No such events. Remove a filter.' : 'No events yet.' };
    },
    above: (key) => fetchPage({ after: key }),
    below: (key) => fetchPage({ before: key }),
    first: async () => null,
    last: async () => (await fetchPage({ after: 0 })).at(-1)?.key,
  };

  function open(row) {
    const { event } = row;
    const body = event.body || {};
    fill(detail,
      el('h2', {}, plain(event.kind)), el('p', {}, sentence(event)),
      el('p', {}, when(event.time), ` · event ${event.seq}`),
      el('p.links', {},
        event.agent_id ? link(to('agent', event.agent_id), 'The agent') : null, ' ',
        body.world ? link(to('world', body.world), 'The world') : null, ' ',
        body.run ? link(to('run', body.run), 'The run') : null),
      pre(JSON.stringify(body, null, 2)));
  }

  const list = windowList(source, {
    label: 'Events', signal, height: 44, onOpen: open, onActive: open,
    draw: ({ event }) => [sign(event.kind), el('span.said', {}, sentence(event, false)), when(event.time)],
  });

  add(root, [
    el('h1', {}, 'Log'),
    el('form.filters', { onsubmit: (e) => e.preventDefault() },
      el('label', { for: 'kind' }, 'Show'), kind, el('label', { for: 'agent' }, 'of the agent'), agent, fresh),
    el('div.columns.log', {}, el('section.panel.flush', {}, list.node), el('section.panel', {}, detail)),
  ]);
  const again = () => context.guard(list.start());
  kind.addEventListener('change', again);
  agent.addEventListener('change', again);
  agent.addEventListener('search', again);

  await list.start();
  context.on('hello', (hello) => { if (hello.again || hello.reset) again(); });
  context.on('nexus', (event) => {
    if (agent.value.trim() && event.agent_id !== agent.value.trim()) return;
    if (kind.value && !kind.value.split(',').includes(event.kind)) return;
    if (list.has(event.seq)) return;
    if (!list.length) { again(); return; }
    if (!list.prepend([{ key: event.seq, event }])) fresh.hidden = false;
  });
}
