// A face for each agent, drawn from its id alone, so that it is the same on every page.

import { add } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';

// An element of a picture.
export function shape(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(name, String(value));
  return add(node, children);
}

// FNV-1a, 32 bits, over UTF-8.
export function hashOf(text) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

const HEADS = [
  ['circle', { cx: 24, cy: 27, r: 13 }],
  ['rect', { x: 11, y: 14, width: 26, height: 26, rx: 8 }],
  ['ellipse', { cx: 24, cy: 27, rx: 11, ry: 14 }],
  ['ellipse', { cx: 24, cy: 28, rx: 15, ry: 11 }],
  ['path', { d: 'M24 12 C34 16 38 26 36 34 C34 41 14 41 12 34 C10 26 14 16 24 12 Z' }],
];
const TOPS = [
  [],
  [['circle', { cx: 14, cy: 15, r: 5 }], ['circle', { cx: 34, cy: 15, r: 5 }]],
  [['path', { d: 'M12 20 L13 7 L22 15 Z' }], ['path', { d: 'M36 20 L35 7 L26 15 Z' }]],
  [['rect', { x: 23, y: 5, width: 2, height: 11 }], ['circle', { cx: 24, cy: 5, r: 3 }]],
  [['path', { d: 'M15 18 C10 14 11 8 14 6 C14 11 17 13 20 15 Z' }], ['path', { d: 'M33 18 C38 14 37 8 34 6 C34 11 31 13 28 15 Z' }]],
  [['path', { d: 'M24 15 C18 12 18 6 24 3 C30 6 30 12 24 15 Z' }]],
  [['ellipse', { cx: 17, cy: 9, rx: 3, ry: 8 }], ['ellipse', { cx: 31, cy: 9, rx: 3, ry: 8 }]],
  [['path', { d: 'M12 18 L15 9 L20 14 L24 6 L28 14 L33 9 L36 18 Z' }]],
];
const EYES = [
  [['circle', { cx: 19, cy: 26, r: 2 }], ['circle', { cx: 29, cy: 26, r: 2 }]],
  [['ellipse', { cx: 19, cy: 26, rx: 2, ry: 3.2 }], ['ellipse', { cx: 29, cy: 26, rx: 2, ry: 3.2 }]],
  [['circle', { cx: 20, cy: 27, r: 1.6 }], ['circle', { cx: 28, cy: 27, r: 1.6 }]],
  [['rect', { x: 17, y: 24, width: 4, height: 4, rx: 1 }], ['rect', { x: 27, y: 24, width: 4, height: 4, rx: 1 }]],
];
const CLOSED = [['path', { d: 'M16 26 Q19 29 22 26', fill: 'none', stroke: '#1a2420', 'stroke-width': 1.6 }], ['path', { d: 'M26 26 Q29 29 32 26', fill: 'none', stroke: '#1a2420', 'stroke-width': 1.6 }]];
const MOUTHS = [
  'M20 33 Q24 36 28 33', 'M21 33 L27 33', 'M21 32 Q24 37 27 32 Z', 'M20 33 Q22 35 24 33 Q26 35 28 33', 'M22 34 Q24 32 26 34',
];

// A face of a size around the origin of a drawing.
export function faceAt(id, state, size) {
  const node = face(id, state);
  for (const [name, value] of Object.entries({ x: -size / 2, y: -size / 2, width: size, height: size })) node.setAttribute(name, value);
  return node;
}

// A name as far as it fits into a drawing.
export const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// The face of an agent: `awake`, `asleep` (at home, or paused), or `dead`.
export function face(id, state = 'awake') {
  let rest = hashOf(id);
  const pick = (count) => {
    const chosen = rest % count;
    rest = Math.floor(rest / count);
    return chosen;
  };
  const head = HEADS[pick(HEADS.length)];
  const top = TOPS[pick(TOPS.length)];
  const eyes = EYES[pick(EYES.length)];
  const mouth = MOUTHS[pick(MOUTHS.length)];
  const hue = 15 * pick(24);
  const skin = state === 'dead' ? '#a7aeab' : `hsl(${hue} 62% 66%)`;
  const dark = '#1a2420';
  const node = shape('svg', { viewBox: '0 0 48 48', class: `face ${state}`, 'aria-hidden': 'true', focusable: 'false' });
  node.append(shape('circle', { cx: 24, cy: 24, r: 24, fill: state === 'dead' ? '#e2e6e4' : `hsl(${(hue + 150) % 360} 42% 90%)` }));
  for (const [tag, given] of [...top, head]) node.append(shape(tag, { fill: skin, ...given }));
  for (const [tag, given] of state === 'awake' ? eyes : CLOSED) node.append(shape(tag, { fill: dark, ...given }));
  node.append(shape('path', { d: mouth, fill: mouth.endsWith('Z') ? dark : 'none', stroke: dark, 'stroke-width': 1.6, 'stroke-linecap': 'round' }));
  return node;
}
