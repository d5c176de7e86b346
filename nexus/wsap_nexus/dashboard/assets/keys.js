// Single letters as shortcuts; whoever dictates, or presses keys by accident, turns them off.

import { el, say } from './dom.js';

let on = true;

// Whether a pressed key counts as a shortcut.
export const heard = (key) => on || key.length > 1 || key === ' ';

// The switch; `changed` is called after each press.
export function lettersButton(changed = () => {}) {
  const words = () => `Letter keys ${on ? 'on' : 'off'}`;
  const button = el('button.quiet', { type: 'button', title: 'Whether single letters are shortcuts' }, words());
  button.addEventListener('click', () => {
    on = !on;
    say(button, words());
    changed();
  });
  return button;
}
