// The controls of an agent: pause, resume, one step, send, recall.

import { get } from './api.js';
import { el } from './dom.js';
import { perform, toast } from './actions.js';

export function controls(context, agentId, state) {
  const path = (what) => `/nexus/agents/${encodeURIComponent(agentId)}/${what}`;
  const button = (title, f, hint) => el('button', { type: 'button', title: hint, onclick: f }, title);
  const pause = button('Pause', () => perform('POST', path('pause'), {}, 'It pauses after its current decision.'), 'Make no further decisions');
  const resume = button('Resume', () => perform('POST', path('resume'), {}, 'It has resumed.'), 'Continue making decisions');
  const step = button('One step', () => perform('POST', path('step'), {}, 'It makes one decision.'), 'Make one decision, then pause again');
  const send = button('Send …', () => sendDialog(context, agentId), 'Send it to a game');
  const recall = button('Recall', () => perform('POST', path('recall'), {}, 'It returns to the nexus after its current decision.'), 'Return it to the nexus without a safety check');
  const node = el('div.buttons', { role: 'group', 'aria-label': 'Controls' }, pause, resume, step, send, recall);
  const update = (now) => {
    pause.hidden = now.paused;
    resume.hidden = !now.paused;
    step.hidden = !now.paused;
    recall.hidden = now.place !== 'world';
  };
  update(state);
  return { node, update };
}

// An unresolved transfer, which a person can settle if the game will not come back.
export function transferControls(agentId, move, again) {
  const decide = (title, outcome, hint) => el('button', {
    type: 'button', title: hint,
    onclick: async () => {
      const path = `/nexus/agents/${encodeURIComponent(agentId)}/settle`;
      if (await perform('POST', path, { outcome, transfer: move.transfer }, 'The transfer is settled.')) await again();
    },
  }, title);
  const things = move.items.length === 1 ? 'one item' : `${move.items.length} items`;
  return el('div.problem', {}, el('p', {}, `The outcome of its transfer to ${move.game}, with ${things}, is unknown: ${move.why} If the game will not come back, decide:`),
    el('div.buttons', {}, decide('It returned', 'returned', 'Its items are returned to it'),
      decide('It arrived', 'arrived', 'Its items are in that world, or lost if the world no longer exists')));
}

async function sendDialog(context, agentId) {
  let games;
  try { ({ games } = await get('/nexus/games', context.signal)); } catch { return; }
  const open = games.filter((g) => g.status === 'available');
  const game = el('select', { id: 'send-game' }, open.map((g) => el('option', { value: g.id }, g.name)));
  const goal = el('input', { id: 'send-goal', maxlength: 500, placeholder: 'optional, such as: find a diamond' });
  const until = el('input', { id: 'send-until', maxlength: 500, placeholder: 'optional, such as: health < 10% or step >= 500' });
  const form = el('form', { method: 'dialog' },
    el('h2', {}, 'Send it to a game'),
    el('label', { for: 'send-game' }, 'Game'), game,
    el('label', { for: 'send-goal' }, 'Goal'), goal,
    el('label', { for: 'send-until' }, 'Until'), until,
    el('div.buttons', {}, el('button.quiet', { type: 'button', onclick: () => box.close() }, 'Cancel'), el('button.main', { type: 'submit' }, 'Send')));
  const box = el('dialog', { 'aria-label': 'Send it to a game' }, form);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    box.close();
    const terms = {
      agent_id: agentId, game: game.value, goals: goal.value.trim() ? [goal.value.trim()] : [], exit_when: until.value.trim(),
    };
    const { agent } = await get(`/nexus/agents/${encodeURIComponent(agentId)}`, context.signal);
    const answer = agent.place === 'world'
      ? await perform('POST', '/nexus/transit/exit', { agent_id: agentId, force: true, destination: terms })
      : await perform('POST', '/nexus/transit/enter', terms, 'It has entered the game.');
    if (answer?.onward_error) toast(answer.onward_error.message, 'bad');
    else if (answer?.entered) toast('It has entered the game.');
  });
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
}

