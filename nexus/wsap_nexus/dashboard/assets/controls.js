// The controls of an agent: pause, resume, one step, send to a game, call back.

import { get } from './api.js';
import { el } from './dom.js';
import { perform } from './actions.js';

export function controls(context, agentId, state) {
  const path = (what) => `/nexus/agents/${encodeURIComponent(agentId)}/${what}`;
  const button = (title, f, hint) => el('button', { type: 'button', title: hint, onclick: f }, title);
  const pause = button('Pause', () => perform('POST', path('pause'), {}, 'It pauses after the decision it is making.'), 'Begin no further decision');
  const resume = button('Go on', () => perform('POST', path('resume'), {}, 'It goes on.'), 'Let it decide again');
  const step = button('One step', () => perform('POST', path('step'), {}, 'It makes one decision.'), 'Let it make one decision, and wait again');
  const send = button('Send …', () => sendDialog(context, agentId), 'Send it into a game');
  const recall = button('Call back', () => perform('POST', `/dashboard/agents/${encodeURIComponent(agentId)}/recall`, {}, 'It comes back to the nexus after the decision it is making.'), 'Bring it back into the nexus, safe or not');
  const node = el('div.buttons', { role: 'group', 'aria-label': 'What you can do' }, pause, resume, step, send, recall);
  const update = (now) => {
    pause.hidden = now.paused;
    resume.hidden = !now.paused;
    step.hidden = !now.paused;
    recall.hidden = now.place !== 'world';
  };
  update(state);
  return { node, update };
}

// An unresolved transfer, which a person can settle when the game is gone for good.
export function doubt(agentId, move, again) {
  const decide = (title, outcome, hint) => el('button', {
    type: 'button', title: hint,
    onclick: async () => {
      const path = `/nexus/agents/${encodeURIComponent(agentId)}/settle`;
      if (await perform('POST', path, { outcome, transfer: move.transfer }, 'It is settled.')) await again();
    },
  }, title);
  const things = move.items.length === 1 ? 'one thing' : `${move.items.length} things`;
  return el('div.problem', {}, el('p', {}, `The outcome of its transfer to ${move.game}, with ${things}, is unknown: ${move.why} If the game is gone for good, decide:`),
    el('div.buttons', {}, decide('It came back', 'returned', 'What it carried is with it again'),
      decide('It arrived', 'arrived', 'What it carried is in the world there; lost, if that world is no more')));
}

async function sendDialog(context, agentId) {
  let games;
  try { games = (await get('/dashboard/data/overview', context.signal)).games; } catch { return; }
  const open = games.filter((g) => g.status === 'available');
  const game = el('select', { id: 'send-game' }, open.map((g) => el('option', { value: g.id }, g.name)));
  const goal = el('input', { id: 'send-goal', maxlength: 500, placeholder: 'optional, such as: find a diamond' });
  const until = el('input', { id: 'send-until', maxlength: 500, placeholder: 'optional, such as: health < 10% or step >= 500' });
  const form = el('form', { method: 'dialog' },
    el('h2', {}, 'Send it into a game'),
    el('label', { for: 'send-game' }, 'Game'), game,
    el('label', { for: 'send-goal' }, 'With the goal'), goal,
    el('label', { for: 'send-until' }, 'Until'), until,
    el('div.buttons', {}, el('button.quiet', { type: 'button', onclick: () => box.close() }, 'Cancel'), el('button.main', { type: 'submit' }, 'Send')));
  const box = el('dialog', { 'aria-label': 'Send it into a game' }, form);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    box.close();
    await perform('POST', `/dashboard/agents/${encodeURIComponent(agentId)}/send`, {
      game: game.value, goals: goal.value.trim() ? [goal.value.trim()] : [], exit_when: until.value.trim(),
    }, 'It is there.');
  });
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
}

