// The curves of a run above its steps: the reward as an area, what an agent needs to live as lines.

import { el, fill } from './dom.js';
import { shape } from './face.js';
import { figure } from './format.js';

const HEIGHT = 60;

// Draws the curves into a node; another run's ones, if given, dashed behind them.
export function drawCurves(node, curves, others = []) {
  node.hidden = !curves.length && !others.length;
  if (node.hidden) return;
  const svg = shape('svg', { class: 'curves-plot', viewBox: `0 0 600 ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  const meters = curves.filter((one) => one.kind === 'meter');
  const rewards = curves.filter((one) => one.kind === 'reward');
  const other = others.filter((one) => one.kind === 'reward');
  const scale = range([...rewards, ...other]);
  const most = Math.max(1, ...meters.map((one) => Math.max(...one.high)));
  rewards.forEach((one, i) => svg.append(area(one, scale, `curve-reward curve-${i}`)));
  other.forEach((one) => svg.append(line(one.high, scale, 'curve-other')));
  meters.forEach((one, i) => svg.append(line(one.low, [0, most], `curve-meter curve-${i + 1}`)));
  fill(node, svg, el('ul.legend', {}, [...rewards, ...meters].map((one, i) => el('li', {},
    el('span.curve-key', { class: `${one.kind === 'meter' ? 'curve-meter' : 'curve-reward'} curve-${one.kind === 'meter' ? i - rewards.length + 1 : i}`, 'aria-hidden': 'true' }),
    ` ${one.name} ${figure(one.high.at(-1))} at the end, ${figure(Math.min(...one.low))} to ${figure(Math.max(...one.high))}`)),
  other.map((one) => el('li', {}, el('span.curve-key.curve-other', { 'aria-hidden': 'true' }), ` the other run: ${one.name} ${figure(one.high.at(-1))} at the end`))));
}

function range(curves) {
  const low = Math.min(0, ...curves.flatMap((one) => one.low));
  const high = Math.max(0, ...curves.flatMap((one) => one.high));
  return high > low ? [low, high] : [low, low + 1];
}

const across = (i, count) => (count > 1 ? 600 * i / (count - 1) : 0).toFixed(1);
const up = (value, [low, high]) => (HEIGHT - 2 - (HEIGHT - 4) * (value - low) / (high - low)).toFixed(1);
const points = (values, scale) => values.map((value, i) => `${across(i, values.length)},${up(value, scale)}`);

function line(values, scale, kind) {
  return shape('polyline', { class: kind, points: points(values.length > 1 ? values : [values[0], values[0]], scale).join(' '), 'vector-effect': 'non-scaling-stroke' });
}

function area(one, scale, kind) {
  const values = one.high.length > 1 ? one.high : [one.high[0], one.high[0]];
  return shape('polygon', { class: kind, points: [`0,${up(0, scale)}`, ...points(values, scale), `600,${up(0, scale)}`].join(' '), 'vector-effect': 'non-scaling-stroke' });
}
