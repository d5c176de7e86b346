// Elements made from data. Text goes in as text, never as markup.

function el(tag, props, ...children) {
  const [name, ...classes] = tag.split('.');
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'value' || key === 'hidden' || key === 'open') node[key] = value;
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== ''));
  return node;
}

function svg(name, props, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

// A player's number in a colour of its own: 15 of them, far apart beside each other.
function dot(player) {
  const node = el('span.dot', { 'aria-hidden': 'true' }, String(player + 1));
  node.style.setProperty('--hue', String((player * 137) % 360));
  return node;
}

// Text in pieces, with the matches of a search marked.
function marked(text, query) {
  if (!query) return [text];
  const low = text.toLowerCase();
  if (low.length !== text.length) return [text]; // some letters are longer in lower case
  const pieces = [];
  let from = 0;
  for (let at = low.indexOf(query); at >= 0; at = low.indexOf(query, from)) {
    pieces.push(text.slice(from, at), el('mark', {}, text.slice(at, at + query.length)));
    from = at + query.length;
  }
  return [...pieces, text.slice(from)];
}

function named(player, query) {
  const name = nameOf(player);
  return el(name.length > 20 ? 'span.name' : 'span.name.short', {}, dot(player), el('bdi', {}, marked(name, query)));
}

const LONGEST = 1200;

// The text of a speech, thought or paper; a long one is cut until the reader expands it.
function words(text, query) {
  const all = shown(text);
  const box = el('div.words', { dir: 'auto' });
  if (all.length <= LONGEST || query) {
    box.append(...marked(all, query));
    return box;
  }
  const more = el('button.more', { type: 'button' }, `Show all ${all.length.toLocaleString('en')} characters`);
  const open = () => box.replaceChildren(all);
  more.addEventListener('click', open);
  box.addEventListener('unfold', open);
  box.append(`${all.slice(0, LONGEST - 200)}\u2026 `, more);
  return box;
}
