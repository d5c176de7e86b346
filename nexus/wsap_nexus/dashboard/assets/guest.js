// What a pass opens: one world, one agent in whatever world it is and a line to talk to it, or a seat to play.

import { withPass } from './api.js';
import { drawView } from './blocks.js';
import { el, fill, say, scrolls } from './dom.js';
import { face } from './face.js';
import { play } from './play.js';

const EVERY = 500; // milliseconds between two looks at the world
const ABOUT_EVERY = 5000;
const LONGEST = 500; // characters of a message

export async function guest(pass) {
  document.getElementById('nav').hidden = true;
  document.getElementById('unlock').hidden = true;
  const live = document.getElementById('live');
  say(live, 'live');
  const main = document.getElementById('main');
  const name = el('h1', {});
  const where = el('p.where', {});
  const look = scrolls(el('div.panel.guest-view', {}));
  const remark = el('p.empty', {});
  const answer = el('p.guest-answer', { role: 'status', 'aria-live': 'polite' });
  const talk = el('section.panel', { hidden: true, 'aria-label': 'Talk' });
  const page = el('div.page.guest', {}, name, where, look, talk);
  fill(main, page);
  let over = false;

  // A pass that has expired or was taken back is told in one sentence, and the page asks no more.
  function ends(error) {
    if (error.status !== 401) { say(live, 'The nexus does not answer'); return; }
    over = true;
    talk.hidden = true;
    say(live, '');
    fill(page, el('p.problem', { role: 'alert' }, error.message));
  }

  async function about() {
    const told = await withPass(pass, '');
    document.title = `${told.name} – WSAP nexus`;
    if (told.scope === 'seat') { sit(told); return; }
    fill(name, told.scope === 'agent' ? face(told.target, 'awake') : null, told.name);
    const others = told.agents.filter((one) => told.scope !== 'agent' || one !== told.name);
    say(where, told.title ? `In ${told.title}${others.length ? `, with ${others.slice(0, 5).join(', ')}${others.length > 5 ? ` and ${others.length - 5} more` : ''}` : ''}` : 'At home, between games');
    if (told.talks && !talk.childNodes.length) addTalk(told.name);
    talk.hidden = !told.talks;
  }

  function sit(told) {
    over = true;
    live.hidden = true;
    page.classList.remove('guest');
    play(page, { id: told.target, name: told.name }, {
      turn: (asked) => withPass(pass, `/turn?${asked}`),
      act: (action) => withPass(pass, '/act', undefined, action),
    }, ends);
  }

  function addTalk(who) {
    const words = el('input', { type: 'text', id: 'words', maxlength: LONGEST, autocomplete: 'off', required: true });
    const send = el('button.main', { type: 'submit' }, 'Send');
    const form = el('form.guest-talk', {}, el('label', { for: 'words' }, `Say something to ${who}`), words, send);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      send.disabled = true;
      try {
        const told = await withPass(pass, '/talk', undefined, { text: words.value });
        say(answer, told.how === 'whisper' ? `${who} hears it at its next step.` : told.how === 'letter' ? `${who} reads it later.` : `${who}: ${told.text}`);
        words.value = '';
      } catch (error) {
        if (error.status === 401) ends(error); else say(answer, error.message);
      } finally { send.disabled = false; }
    });
    fill(talk, form, answer);
  }

  async function see() {
    const seen = await withPass(pass, '/view');
    say(live, 'live');
    say(remark, seen.view ? '' : seen.remark);
    const picture = seen.view?.blocks.find((block) => block.kind === 'image');
    if (seen.view) { remark.remove(); drawView(look, picture ? { ...seen.view, blocks: [picture] } : seen.view); } else { look.dataset.key = ''; fill(look, remark); }
  }

  async function again(f, period) {
    if (!document.hidden) { try { await f(); } catch (error) { ends(error); } }
    if (!over) setTimeout(() => again(f, period), period);
  }
  again(about, ABOUT_EVERY).then(() => { if (!over) again(see, EVERY); });
}
