// A dialog that makes passes, shows them as QR codes, and takes them back.

import { act, get } from './api.js';
import { el, fill, say } from './dom.js';
import { many } from './format.js';

const HOURS = [[1, '1 hour'], [24, '1 day'], [168, '1 week']];

export function share(agent, name) {
  const hours = el('select', { id: 'share-hours' }, HOURS.map(([value, text]) => el('option', { value }, text)));
  hours.value = '24';
  const talks = el('input', { type: 'checkbox', id: 'share-talks' });
  const problem = el('p.bad', { role: 'alert' });
  const made = el('div.share-made', {});
  const valid = el('div', {});
  const make = el('button.main', { type: 'submit' }, 'Make an address');
  const form = el('form', {},
    el('h2', {}, `Share ${name}`),
    el('p', {}, `Whoever opens the address sees the picture of the world that ${name} is in, and who is in it; no thoughts, no memories, nothing else.`),
    el('label', { for: 'share-hours' }, 'It is valid for'), hours,
    el('p', {}, talks, ' ', el('label', { for: 'share-talks' }, `They may talk to ${name}, which may cost calls of its model`)),
    problem, made, valid,
    el('div.buttons', {}, el('button.quiet', { type: 'button', onclick: () => box.close() }, 'Close'), make));
  const box = el('dialog.share', { 'aria-label': `Share ${name}` }, form);

  function list(passes) {
    fill(valid, passes.length ? el('p.where', {}, `${many(passes.length, 'pass', 'passes')} valid now:`) : null,
      el('ul.share-list', {}, passes.slice(0, 20).map((one) => el('li', {}, `${one.target}, until ${new Date(one.expires * 1000).toLocaleString()} `,
        el('button', { type: 'button', 'aria-label': `Take back ${one.id}`, onclick: () => takeBack(one.id) }, 'Take back')))));
  }

  async function takeBack(id) {
    try {
      const left = await act('DELETE', `/nexus/passes/${id}`);
      if (left) list(left.passes);
    } catch (error) { say(problem, error.message); }
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    say(problem, '');
    make.disabled = true;
    try {
      const page = location.origin + location.pathname;
      const told = await act('POST', '/nexus/passes', { scope: 'agent', target: agent, hours: Number(hours.value), talks: talks.checked, page });
      if (!told) return;
      const here = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);
      fill(made, el('img.qr', { src: told.qr, alt: 'The address as a QR code', width: 230, height: 230 }),
        el('p', {}, el('a', { href: told.address, target: '_blank', rel: 'noopener' }, told.address)),
        here ? el('p.where', {}, 'It opens on this machine only. For other devices, start with: ', el('code', {}, 'wsap nexus start --expose')) : null);
      list((await get('/nexus/passes')).passes);
    } catch (error) { say(problem, error.message); } finally { make.disabled = false; }
  });
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
  get('/nexus/passes').then((found) => list(found.passes)).catch((error) => say(problem, error.message));
}
