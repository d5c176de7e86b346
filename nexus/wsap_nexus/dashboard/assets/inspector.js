// The details of one decision: observation, model calls and result.

import { get } from './api.js';
import { drawObservation } from './blocks.js';
import { el, fill, pre } from './dom.js';
import { cost, count, figure, plain } from './format.js';

const ROLE = { system: 'System', user: 'User', assistant: 'Model', tool: 'Tool' };

export function inspector(context, runId) {
  const node = el('div.inspector', {});
  const open = new Set(['calls']); // opened sections stay open at the next step

  function fold(name, title, body, always) {
    const box = el('details', { open: open.has(name) || always }, el('summary', {}, title), body);
    box.addEventListener('toggle', () => (box.open ? open.add(name) : open.delete(name)));
    return box;
  }

  function call(found) {
    const spent = found.usage || {};
    const prompt = el('div.prompt', {}, (found.messages || []).map(message));
    const whole = el('button', { type: 'button' }, 'Show the whole prompt');
    whole.addEventListener('click', async () => {
      whole.disabled = true;
      try {
        const all = await get(`/nexus/runs/${encodeURIComponent(runId)}/calls/${found.seq}`, context.signal);
        fill(prompt, all.whole ? null : el('p.empty', {}, 'The beginning of the prompt is not available.'), all.messages.map(message));
        whole.remove();
      } catch (error) { whole.disabled = false; fill(prompt, el('p.problem', {}, error.message)); }
    });
    return el('section.call', {},
      el('h3', {}, found.purpose ? `Model call: ${plain(found.purpose)}` : 'Model call'),
      el('p.where', {}, [`${count(spent.prompt_tokens)} tokens in, ${count(spent.completion_tokens)} out`, cost(spent.cost),
        found.constraint ? 'constrained to legal actions' : 'unconstrained', `ended: ${plain(found.finish)}`].join(' · ')),
      found.withheld ? el('p.empty', {}, 'Its prompt and its reply are not in this page.') : [
        fold('prompt', found.shared ? `New in the prompt (after ${found.shared} messages shared with the previous call)` : 'The prompt', el('div', {}, prompt, found.shared ? whole : null)),
        found.thinking ? fold('thinking', 'Thinking', pre(found.thinking)) : null,
        el('h4', {}, 'Reply'),
        pre((found.prefill || '') + (found.reply || '') || '(empty)', 'reply'),
        found.chances?.length ? el('ul.chances', {}, found.chances.map(([option, chance]) => el('li', {}, `${Math.round(100 * chance)}% ${option}`))) : null,
      ]);
  }

  function message(m) {
    return el('div.message', {}, el('b', {}, ROLE[m.role] || m.role), pre(m.text));
  }

  function other(found) {
    if (found.kind === 'lessons') return el('section', {}, el('h3', {}, 'Lessons'), el('ul.happened', {}, (found.data?.lessons || []).map((l) => el('li', {}, l))));
    if (found.kind === 'tool') return el('section', {}, el('h3', {}, `Tool: ${found.data?.name || found.data?.tool || ''}`), pre(JSON.stringify(found.data, null, 2)));
    if (found.kind === 'refusal') return el('section', {}, el('h3', {}, 'The server refused to constrain the reply'), el('p', {}, found.data?.refused || ''));
    if (found.kind === 'failure') return el('section', {}, el('h3', {}, 'The request to the model failed'), el('p.bad', {}, found.data?.words || ''));
    if (found.kind === 'death') return el('section', {}, el('h3', {}, 'It died'), pre(JSON.stringify(found.data, null, 2)));
    return null;
  }

  function show(found) {
    const { step, decision } = found;
    const parameters = Object.entries(found.action.parameters || {});
    const notes = [];
    if (decision?.forced || step.forced) notes.push(['warn', 'forced', `The fallback was used${decision?.cause ? `: ${plain(decision.cause)}` : ', because no reply could be parsed.'}`]);
    if (decision?.repaired) notes.push(['warn', 'repaired', 'The first reply could not be parsed.']);
    if (decision?.cut) notes.push(['warn', 'cut off', 'A reply reached its token limit.']);
    if (decision?.unconstrained) notes.push(['warn', 'unconstrained', 'Replies were not constrained to legal actions.']);
    if (decision?.continued) notes.push(['', 'continued', 'The step continues an earlier decision, without a model call.']);
    if (decision?.chosen) notes.push(['', 'chosen', 'The model scored the options and one was drawn; it wrote nothing.']);
    const usage = decision?.usage;
    const calls = found.behind.filter((b) => b.kind === 'call' && !b.damaged);
    const rest = found.behind.map(other).filter(Boolean);
    const seen = el('div', {});
    drawObservation(seen, found.seen);
    fill(node,
      el('p.chosen', {}, el('span.act', {}, plain(found.action.name)), parameters.length ? el('span', {}, ` (${parameters.map(([k, v]) => `${k}: ${typeof v === 'string' ? v : JSON.stringify(v)}`).join(', ')})`) : ''),
      found.reasoning ? el('blockquote', {}, found.reasoning) : el('p.empty', {}, 'No reasoning was given.'),
      el('dl.facts', {},
        el('dt', {}, 'Result'), el('dd', { class: step.success ? '' : 'bad' }, found.message || (step.success ? 'Success.' : 'Failed.')),
        step.outcome && step.outcome !== 'done' ? [el('dt', {}, el('span.tag.warn', {}, step.outcome)), el('dd', {}, step.outcome === 'unknown' ? 'It is unknown whether the action was done.' : 'The action was started, but failed.')] : null,
        step.reward ? [el('dt', {}, 'Reward'), el('dd', {}, figure(step.reward))] : null,
        step.achievements.length ? [el('dt', {}, 'Achieved'), el('dd.good', {}, step.achievements.map(plain).join(', '))] : null,
        usage?.calls ? [el('dt', {}, 'Models'), el('dd', {}, `${usage.calls} calls, ${count(usage.prompt_tokens)} tokens in, ${count(usage.completion_tokens)} out, ${cost(usage.cost)}`)] : null,
        notes.map(([tone, name, why]) => [el('dt', {}, el('span.tag', { class: tone }, name)), el('dd', {}, why)])),
      found.plan.length ? fold('plan', `Plan (${found.plan.length}), the last before this step`, el('ol.plan', {}, found.plan.map((l) => el('li', {}, l)))) : null,
      fold('seen', 'Observation', seen),
      calls.length ? calls.map(call) : el('p.empty', {}, 'No model was used for this decision.'),
      rest);
  }

  return { node, show, none: () => fill(node, el('p.empty', {}, 'There is no decision.')) };
}
