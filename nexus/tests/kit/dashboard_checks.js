// What the tests of the dashboard look for in a page; an object of functions.
({
  // Contrast as WCAG 2.2 has it, of every text that is seen, against the colours that lie behind it.
  contrast() {
    const parse = (colour) => {
      const [r, g, b, a] = colour.match(/[\d.]+/g).map(Number);
      return { r, g, b, a: a ?? 1 };
    };
    const channel = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = (c) => 0.2126 * channel(c.r) + 0.7152 * channel(c.g) + 0.0722 * channel(c.b);
    const mix = (top, under, key) => top[key] * top.a + under[key] * (1 - top.a);
    const over = (top, under) => ({ r: mix(top, under, 'r'), g: mix(top, under, 'g'), b: mix(top, under, 'b'), a: 1 });
    const behind = (node) => {
      const layers = [];
      for (let at = node; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour.a) layers.push(colour);
        if (colour.a === 1) break;
      }
      return layers.reverse().reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
    };
    const bad = [];
    let seen = 0;
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode.textContent.trim();
      const node = walk.currentNode.parentElement;
      if (!text || node.closest('noscript, script, style, option, .skip')) continue;
      if (!node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
      const style = getComputedStyle(node);
      const back = behind(node);
      const [light, dark] = [luminance(over(parse(style.color), back)), luminance(back)].sort((a, b) => b - a);
      const ratio = (light + 0.05) / (dark + 0.05);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      seen += 1;
      if (ratio < (large ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)} ${node.tagName}.${node.className}: ${text.slice(0, 40)}`);
    }
    return { bad, seen };
  },

  // Controls that say nothing to who can't see them, and ids that are given twice.
  nameless() {
    const said = (n) => n.innerText || n.title || n.getAttribute('aria-label') || n.labels?.length;
    const controls = [...document.querySelectorAll('button, a, input, select, textarea')];
    const ids = [...document.querySelectorAll('[id]')].map((n) => n.id);
    return [
      ...controls.filter((n) => n.checkVisibility() && !said(n)).map((n) => n.outerHTML.slice(0, 80)),
      ...ids.filter((id, at) => ids.indexOf(id) !== at),
    ];
  },

  // Elements that only markup in somebody's words can have made.
  foreign() {
    const made = 'script, svg:not(.map, .face, .table, .village, .curves-plot), iframe, object, embed, [onerror], [onload], img:not([src^="data:image/png;base64,"])';
    return document.querySelectorAll('main').length && [...document.querySelectorAll('main *')].filter((n) => n.matches(made)).length;
  },

  links() { return [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href')); },

  // What has the focus, and whether that is seen.
  focus() {
    const node = document.activeElement;
    const style = getComputedStyle(node);
    return { text: node.innerText.trim().slice(0, 20), ring: style.outlineStyle === 'solid' ? parseFloat(style.outlineWidth) : 0 };
  },

  // Notes what gets the focus from now on, and whether that is seen.
  noteFocus() {
    window.focused = new Map();
    document.addEventListener('focusin', ({ target }) => {
      const style = getComputedStyle(target);
      window.focused.set(this.named(target), style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2);
    });
  },

  // Controls that had not got it, and those that got it unseen.
  unfocused() {
    const seen = this.controls(document, ', [tabindex="0"]').filter((n) => !n.disabled && n.tabIndex >= 0).map((n) => this.named(n));
    return [...seen.filter((name) => !window.focused.has(name)), ...[...window.focused].filter(([, ring]) => !ring).map(([name]) => `unseen: ${name}`)];
  },

  named(n) { return [n.localName, n.id, n.getAttribute('href'), n.getAttribute('aria-label') || n.textContent.trim().slice(0, 40)].filter(Boolean).join(' '); },

  controls(within, more = '') {
    return [...within.querySelectorAll(`button, a[href], input, select, textarea, summary${more}`)].filter((n) => n.checkVisibility() && !n.closest('[inert]'));
  },

  // Controls that a finger misses: fewer pixels high or wide. A link within a sentence is as high as its line.
  small(selector, least) {
    const inline = (n) => (n.matches('.link') || getComputedStyle(n).display === 'inline') && n.parentElement.textContent.trim() !== n.textContent.trim();
    const tight = (n) => Math.min(...['width', 'height'].map((side) => n.getBoundingClientRect()[side])) < least - 0.5;
    return [...document.querySelectorAll(selector)].flatMap((within) => this.controls(within)).filter((n) => !n.matches('.skip') && !inline(n) && tight(n))
      .map((n) => `${this.named(n)}: ${n.getBoundingClientRect().width} x ${n.getBoundingClientRect().height}`);
  },

  // Notes from now on how often a node's children change, and what moves on the page then.
  noteMotion(selector) {
    window.moved = [];
    window.changes = 0;
    new MutationObserver(() => requestAnimationFrame(() => {
      window.moved.push(...document.getAnimations().map((one) => one.animationName || one.transitionProperty));
      window.changes += 1;
    })).observe(document.querySelector(selector), { childList: true });
  },

  // Scrolls a list most of a screen at a time, and lets each be drawn.
  async scroll(frames) {
    const box = document.querySelector('.list');
    for (let n = 0; n < frames; n += 1) {
      box.scrollTop += box.clientHeight * 0.8;
      await new Promise(requestAnimationFrame);
    }
  },

  rows() { return [...document.querySelectorAll('.row:not([hidden])')].map((row) => Number(row.id.split('-').pop())); },
  nodes() { return document.querySelectorAll('*').length; },
})
