// Sends an action to the nexus and shows its outcome.

import { act } from './api.js';
import { el } from './dom.js';

export function toast(text, tone = '') {
  const node = el('div.toast', { class: tone }, text);
  document.getElementById('toasts').append(node);
  setTimeout(() => node.remove(), 6000);
}

export async function perform(method, path, body, done) {
  try {
    const answer = await act(method, path, body);
    if (answer === null) return null;
    if (answer.done === false) toast(answer.message);
    else if (done) toast(done);
    return answer;
  } catch (error) {
    toast(error.message, 'bad');
    return null;
  }
}
