// Creates elements from data. Text is never inserted as markup.

export function el(tag, props, ...children) {
  const [name, ...classes] = tag.split('.');
  const node = document.createElement(name || 'div');
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'class') node.classList.add(...value.split(' ').filter(Boolean));
    else if (key === 'value' || key === 'checked' || key === 'disabled' || key === 'hidden') node[key] = value;
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

// Replaces what is in a node; a control that has the focus gives it to the one that takes its place.
export function fill(node, ...children) {
  const held = node.contains(document.activeElement) ? document.activeElement : null;
  node.replaceChildren();
  add(node, children);
  if (held && held !== node) [...node.querySelectorAll(held.localName)].find((twin) => same(twin, held))?.focus({ preventScroll: true });
  return node;
}

function same(one, other) {
  return ['id', 'href', 'aria-label'].every((name) => one.getAttribute(name) === other.getAttribute(name)) && one.textContent === other.textContent;
}

// Lets a node be scrolled by keys, as long as it is smaller than what is in it.
export function scrolls(node) {
  node.tabIndex = 0;
  sized.observe(node);
  return node;
}

// A text as it stands, which may be long.
export function pre(text, ...classes) {
  return scrolls(el(['pre.text', ...classes].join('.'), {}, text));
}

const sized = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    const hidden = target.scrollHeight > target.clientHeight || target.scrollWidth > target.clientWidth;
    if (hidden && getComputedStyle(target).overflow !== 'visible') target.tabIndex = 0;
    else target.removeAttribute('tabindex');
  }
});

// Sets a text only if it differs, to avoid a layout.
export function say(node, text) {
  const said = String(text ?? '');
  if (node.textContent !== said) node.textContent = said;
}

export function link(href, ...children) {
  return el('a', { href }, ...children);
}

export function to(...parts) {
  return '#/' + parts.map(encodeURIComponent).join('/');
}

export function panel(title, ...children) {
  const heading = title ? el('h2', {}, title) : null;
  return el('section.panel', {}, heading, ...children);
}

export function empty(...words) {
  return el('p.empty', {}, ...words);
}

// On small screens, the rows of tables with more than three columns become cards.
export function table(columns, rows) {
  return scrolls(el('div.scroll', {},
    el('table', { class: columns.length > 3 ? 'wide' : '' },
      el('thead', {}, el('tr', {}, columns.map((c) => el('th', { scope: 'col', class: c.number ? 'num' : '' }, c.title)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, columns.map((c) => el('td', { class: c.number ? 'num' : '', 'data-label': c.title }, c.cell(row)))))))));
}
