// The believed probability that each player is evil, by day.

let believer = 'mean';

function showBeliefs(view) {
  const box = byId('beliefs-box');
  const known = game.beliefs.filter(([, player]) => view === 'all' || game.view !== 'all' || player === view);
  box.hidden = !known.length;
  if (box.hidden) return;
  const minds = [...new Set(known.map(([, player]) => player))].sort((a, b) => a - b);
  if (believer !== 'mean' && !minds.includes(believer)) believer = 'mean';
  const chosen = minds.length === 1 ? minds[0] : believer;
  const days = [...new Set(known.map(([day]) => day))].sort((a, b) => a - b);
  const course = (target) => days.map((day) => mean(known.filter(([d, p]) => d === day && (chosen === 'mean' || p === chosen)).map(([, , evil]) => evil[target]).filter((v) => v !== undefined)));
  const rows = game.names.map((_, n) => ({ n, course: course(n) })).filter((row) => row.course.some((v) => v !== null));
  const final = standing(view, game.events.length);
  byId('beliefs').replaceChildren(
    minds.length > 1 ? picker(minds, view) : el('p.muted', {}, `As ${nameOf(chosen)} saw it.`),
    foundOut(chosen === 'mean' ? minds : [chosen]),
    el('table', {},
      el('caption.vh', {}, 'Probability of being evil, by day'),
      el('thead', {}, el('tr', {}, ['Player', `Day ${days[0]} to ${days.at(-1)}`, 'Last'].map((t) => el('th', { scope: 'col' }, t)))),
      el('tbody', {}, rows.map((row) => beliefRow(row, days, final[row.n].role)))));
}

// Says which beliefs were recomputed after the game.
function foundOut(minds) {
  const later = minds.filter((n) => game.found_out.includes(n));
  if (!later.length) return null;
  const who = later.length === minds.length ? 'They were' : `Those of ${later.map((n) => shortened(nameOf(n))).join(', ')} were`;
  return el('p.muted', {}, `${who} not recorded, but recomputed from what the scripted players knew on each day.`);
}

function picker(minds, view) {
  const select = el('select', { id: 'believer', onchange: () => { believer = select.value === 'mean' ? 'mean' : Number(select.value); showBeliefs(view); byId('believer').focus(); } },
    el('option', { value: 'mean' }, 'all (mean)'), minds.map((n) => el('option', { value: String(n) }, viewName(n))));
  select.value = String(believer);
  return el('label', {}, 'As seen by ', select);
}

function mean(values) {
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
}

function percent(value) {
  return `${Math.round(100 * value)} %`;
}

function beliefRow({ n, course }, days, role) {
  const last = course.filter((v) => v !== null).at(-1);
  const told = days.flatMap((day, at) => (course[at] === null ? [] : [`day ${day} ${percent(course[at])}`])).join(', ');
  return el('tr', {},
    el('th', { scope: 'row' }, dot(n), el('bdi', {}, nameOf(n)), role ? el(`span.role.${faction(role)}`, {}, role) : null),
    el('td', {}, spark(course, `${nameOf(n)}: ${told}`)),
    el('td.count', {}, percent(last)));
}

function spark(course, label) {
  const [width, height] = [96, 28];
  const step = course.length > 1 ? (width - 8) / (course.length - 1) : 0;
  const points = course.flatMap((v, at) => (v === null ? [] : [[4 + at * step, height - 4 - v * (height - 8)]]));
  const text = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
  const [x, y] = points.at(-1);
  return svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label },
    svg('line', { x1: 0, x2: width, y1: height / 2, y2: height / 2, class: 'half' }),
    svg('polyline', { points: text, class: 'course' }),
    svg('circle', { cx: x, cy: y, r: 2.5, class: 'now' }));
}
