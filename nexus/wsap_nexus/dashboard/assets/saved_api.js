// In a saved replay, in place of api.js: answers from the data in the page, without a request.

let data = null;

// Unpacks the data of the page.
export async function open() {
  const packed = Uint8Array.from(atob(document.getElementById('data').textContent), (c) => c.charCodeAt(0));
  data = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
  return data;
}

export function token() { return 'saved'; }

export async function get(path) {
  const [place, query] = path.split('?');
  const [kind, seq] = place.split('/').slice(4);
  if (!kind) return { run: data.run, playing: false, players: [], steps: data.steps.length, views: false, remark: '' };
  if (kind === 'moments') return { moments: data.moments, more: 0 };
  if (kind === 'curve') return { curves: data.curves, steps: data.steps.length, remark: '' };
  if (kind === 'calls') return data.calls[seq] || { messages: [], whole: false };
  if (seq) return data.steps.find((one) => one.step.seq === Number(seq));
  return page(Object.fromEntries(new URLSearchParams(query)));
}

function page({ position, after, before, limit }) {
  const { steps } = data;
  let first = Number(position ?? 0);
  let end = first + Number(limit);
  if (after !== undefined) {
    first = steps.findIndex((one) => one.step.seq > Number(after));
    if (first < 0) first = steps.length;
    end = first + Number(limit);
  } else if (before !== undefined) {
    end = steps.findLastIndex((one) => one.step.seq < Number(before)) + 1;
    first = Math.max(0, end - Number(limit));
  }
  const rows = steps.slice(first, end).map((one) => one.step);
  return { steps: rows, first: rows.length ? first : null, total: steps.length };
}
