// The stage: one agent in its world, what it thinks and wants, what just happened, and the other worlds along a line.

import { act, get, token } from './api.js';
import { drawView, isVillage, meters, thumbnail } from './blocks.js';
import { add, el, fill, link, say, scrolls, to } from './dom.js';
import { face } from './face.js';
import { throttled, watchView } from './feed.js';
import { many, plain, sign, when } from './format.js';
import { thoughtOf } from './live.js';
import { takeSeat } from './seat.js';
import { share } from './share.js';

const EVERY = 3000; // milliseconds after which the stage is asked for again even if nothing was told
const CARDS = 3;
const TOGETHER = 10; // seconds within which first times of one agent are one card
const BEFORE = 10; // steps before a moment at which its replay starts
const LONGEST = 110; // characters of a thought
const FRESH = 15; // seconds in which a moment is newer than what a game tells

export async function stagePage(context) {
  const { root, signal } = context;
  context.title('Stage');
  document.body.classList.add('on-stage');
  context.undo(() => document.body.classList.remove('on-stage'));

  const scene = el('div.scene', {});
  const where = el('a.chip', {});
  const why = el('span.chip.why', {});
  const pin = el('button.chip', { type: 'button', 'aria-pressed': 'false' }, 'Stay here');
  const give = el('button.chip', { type: 'button', hidden: true, onclick: () => { if (focus) share(focus, stage.agents.find((agent) => agent.id === focus)?.name || focus); } }, 'Share');
  const sit = el('button.chip', { type: 'button', hidden: true, onclick: () => takeSeat(signal) }, 'Take a seat');
  const full = el('button.chip.full', { type: 'button' }, 'Full screen');
  const bubble = el('p.bubble', { hidden: true });
  const caption = el('p.caption', {});
  const plate = el('section.plate', { 'aria-label': 'On stage' });
  const cards = scrolls(el('ol.moments', { 'aria-label': 'What happened, newest first' }));
  const spoken = el('p.sr', { role: 'status', 'aria-live': 'polite' });
  const talk = el('section.say', { 'aria-label': 'Talk' });
  const line = el('ol.line', { 'aria-label': 'Home and worlds' });
  const screen = el('div.screen', {}, scene, el('div.chips-top', {}, where, why, el('span.grow', {}), pin, give, sit, full), bubble);
  add(root, [el('h1.sr', {}, 'Stage'), el('div.theatre', {}, screen, caption, plate, cards), spoken, talk, line]);

  let shown = null; // what is on stage, as the nexus told it
  let stage = null; // the world that is looked at: the one on stage, unless another is pinned
  let pinned = '';
  let focus = null; // the agent that is looked at
  let look = () => {};
  let looks = new Map();
  let stop = [];
  let said = '';
  let happened = { words: '', time: 0 }; // the latest moment in the world that is looked at
  let inView = {}; // what its view tells in words: the caption, and what stands in for one
  context.undo(() => stop.forEach((f) => f()));

  // --- the picture -----------------------------------------------------------------------------

  function watch(world) {
    stop.forEach((f) => f());
    stop = [];
    scene.dataset.key = '';
    fill(scene);
    look = () => {};
    if (!world) return;
    if (!world.draws) { cover(world.title, 'This game draws no picture.'); return; }
    look = watchView({ signal, undo: (f) => stop.push(f) }, world.id, scene, (seen) => {
      inView = seen.view ? { caption: cut(seen.view.caption, 2 * LONGEST), words: cut(wordsOf(seen.view), 2 * LONGEST) } : {};
      showCaption();
      if (seen.view) drawScene(seen.view);
      else cover(world.title, seen.remark);
    }, 200);
  }

  function cover(title, remark) {
    scene.dataset.key = '';
    fill(scene, el('div.cover', {}, el('p.cover-title', {}, title), remark ? el('p', {}, remark) : null));
  }

  // What a view without a caption tells in words: the last line of its story or talk, else its title.
  function wordsOf(view) {
    const story = view.blocks.find((block) => block.kind === 'timeline')?.entries.at(-1)?.text;
    const line = view.blocks.find((block) => block.kind === 'chat')?.lines.at(-1);
    return story || (line ? `${line.speaker}: ${line.text}` : view.title && view.title !== stage.title ? view.title : '');
  }

  function cut(words, most) {
    return words.length > most ? `${words.slice(0, most).replace(/\s\S*$/, '')} …` : words;
  }

  // A game's caption comes first; what happened stands there until it is old and the game tells something newer.
  function showCaption() {
    const fresh = Date.now() / 1000 - happened.time < FRESH && happened.words;
    say(caption, inView.caption || fresh || inView.words || happened.words);
  }

  // A picture fills the screen, before its own enlarged and blurred copy; a table or village stands there alone, since
  // the caption tells what was said; other blocks stand on a card.
  function drawScene(view) {
    const picture = view.blocks.find((block) => block.kind === 'image');
    const board = picture || view.blocks.find((block) => block.kind === 'seats' || isVillage(block));
    const whole = board ? { ...view, blocks: [board] } : view;
    const kind = picture ? 'picture' : board ? 'board' : 'blocks';
    let stand = scene.querySelector(`.${kind}`);
    if (!stand) {
      scene.dataset.key = '';
      stand = scrolls(el(`div.${kind}`, {}));
      fill(scene, stand);
    }
    drawView(stand, whole);
    const front = stand.querySelector('img.frame');
    const back = scene.querySelector('img.backdrop');
    if (front && !back) scene.prepend(el('img.backdrop', { alt: '', 'aria-hidden': 'true', src: front.src }));
    else if (front && back.src !== front.src) back.src = front.src;
  }

  // --- who, what it wants, what happened ---------------------------------------------------------

  const told = el('p.now', {});
  const bars = el('div.meters', {});
  const about = el('p.where', {});

  function showPlate() {
    const one = stage?.agents.find((agent) => agent.id === focus);
    give.hidden = !(one && token());
    sit.hidden = !token();
    if (!one) {
      fill(plate, stage
        ? el('div.plate-head', {}, el('div', {}, el('p.plate-name', {}, link(to('world', stage.id), stage.title)), el('p.where', {}, 'It goes on by itself; no agents are in it.')))
        : el('div.plate-head', {}, face('nobody', 'asleep'), el('div', {}, el('p.plate-name', {}, 'Nobody plays'),
          el('p.where', {}, shown?.home.length ? 'They are at home, and choose a game soon.' : 'Nobody lives here yet. Invite an agent: ', shown?.home.length ? '' : el('code', {}, 'wsap nexus agents add Ada')))));
      return;
    }
    fill(plate, el('div.plate-head', {}, face(one.id, one.paused ? 'asleep' : 'awake'),
      el('div', {}, el('p.plate-name', {}, link(to('agent', one.id), one.name)), about)), bars, told);
    say(about, one.paused ? `Paused in ${stage.title}` : `In ${stage.title}${stage.agents.length > 1 ? `, with ${many(stage.agents.length - 1, 'other')}` : ''}`);
    if (!token()) { fill(bars); say(told, ''); }
  }

  // What only the owner may see: meters, the plan, and the last thought.
  const askMind = throttled(async () => {
    const asked = focus;
    if (!asked || !token()) return;
    try {
      const now = await get(`/nexus/agents/${encodeURIComponent(asked)}/now`, signal);
      if (asked !== focus || signal.aborted) return;
      fill(bars, meters(now.observation));
      const wish = (now.plan[0] || (now.observation?.goals || [])[0]?.description || '').replace(/^now:\s*/i, '');
      fill(told, wish ? [el('b', {}, 'Now '), wish] : '');
      if (now.stay) think(now.stay);
    } catch { /* it has left */ }
  }, 500);
  context.undo(() => askMind.stop());

  function think(stay) {
    const writing = thoughtOf(stay.agent);
    const words = firstSentence(writing?.text ? writing.text : stay.reasoning || '');
    bubble.hidden = !words;
    say(bubble, words);
  }

  function firstSentence(text) {
    const [first] = text.split(/(?<=[.!?])\s/);
    return cut(first, LONGEST);
  }

  let known = []; // the cards that are shown
  function showMoments(moments) {
    const groups = [];
    for (const moment of moments) {
      const last = groups.at(-1);
      if (last && moment.kind === 'achievement' && last[0].kind === 'achievement' && last[0].agent === moment.agent && last[0].time - moment.time < TOGETHER) last.push(moment);
      else groups.push([moment]);
    }
    const keys = groups.slice(0, CARDS).map((group) => JSON.stringify(group));
    if (keys.join() === known.join()) return;
    fill(cards, groups.slice(0, CARDS).map(([moment, ...more], i) => {
      const [first] = more.length ? [more.at(-1)] : [moment];
      const words = more.length ? `${moment.name}: ${more.length + 1} first times` : moment.words;
      const back = moment.run && token() && first.step;
      return el('li.card-moment', { class: known.includes(keys[i]) ? '' : 'fresh' }, face(moment.agent, moment.kind === 'died' ? 'dead' : 'awake'),
        el('div', {}, el('p', {}, sign(moment.kind === 'again' ? 'achievement' : moment.kind), ' ', words),
          el('p.where', {}, when(moment.time), back ? [' · ', link(`${to('run', moment.run)}?step=${Math.max(1, first.step - BEFORE)}&play=1`, `↺ ${BEFORE} steps before`)]
            : moment.run ? [' · ', link(to('run', moment.run), 'Replay')] : null)));
    }));
    known = keys;
    const [newest] = moments;
    if (newest && newest.words !== said) { said = newest.words; announce(); }
  }
  const announce = throttled(() => say(spoken, said), 5000);
  context.undo(() => announce.stop());

  // --- the line of worlds ------------------------------------------------------------------------

  let drawnLine = '';
  let cleanup = [];
  context.undo(() => cleanup.forEach((f) => f()));
  const words = new Map();

  function showLine(found) {
    const key = JSON.stringify([found.worlds.map((w) => [w.id, w.title, w.draws, w.agents]), found.home, stage?.id]);
    if (key !== drawnLine) {
      drawnLine = key;
      cleanup.forEach((f) => f());
      cleanup = [];
      looks = new Map();
      words.clear();
      const home = el('li.station.home', {}, el('span.station-picture', { 'aria-hidden': 'true' }, '⌂'),
        el('span.faces', {}, found.home.slice(0, 5).map((agent) => face(agent.id, 'asleep'))),
        el('b', {}, 'Home'), el('small', {}, found.home.length ? resting(found.home) : 'Nobody rests here.'));
      const order = [...found.worlds].sort((a, b) => (a.id < b.id ? -1 : 1));
      fill(line, home, order.map((world) => {
        const picture = el('span.station-picture', { 'aria-hidden': 'true' });
        if (world.draws) looks.set(world.id, watchView({ signal, undo: (f) => cleanup.push(f) }, world.id, picture, (seen) => thumbnail(picture, seen.view), 1500));
        else picture.append(world.title.slice(0, 2));
        const sentence = el('small', {});
        words.set(world.id, sentence);
        const here = world.id === stage?.id;
        return el('li.station', { class: here ? 'here' : '' },
          el('button.station-button', { type: 'button', 'aria-pressed': String(here), onclick: () => { pinned = pinned === world.id ? '' : world.id; again(); } },
            picture, here ? el('span.tag.on', {}, 'on stage') : null,
            el('span.faces', {}, world.agents.slice(0, 5).map((agent) => face(agent.id, agent.paused ? 'asleep' : 'awake'))),
            el('b', {}, world.title), sentence));
      }), found.more_worlds ? el('li.station', {}, link('#/worlds', many(found.more_worlds, 'more world'))) : null);
    }
    for (const world of found.worlds) {
      const names = world.agents.map((agent) => agent.name);
      say(words.get(world.id), world.told || (names.length ? `${names.slice(0, 3).join(', ')} ${names.length > 1 ? 'play' : 'plays'}` : 'Goes on by itself'));
    }
  }

  function resting(home) {
    const names = home.slice(0, 3).map((agent) => agent.name);
    return `${names.join(', ')}${home.length > 3 ? ` and ${home.length - 3} more` : ''} ${home.length > 1 ? 'rest' : 'rests'}`;
  }

  // --- talking -----------------------------------------------------------------------------------

  let talkTo = null;
  function showTalk() {
    const one = stage?.agents.find((agent) => agent.id === focus) || null;
    if (talkTo === (one && token() ? one.id : '')) return;
    talkTo = one && token() ? one.id : '';
    if (!one || !token()) {
      fill(talk, one ? el('p.where', {}, `Unlock this page to talk to ${one.name}.`) : null);
      return;
    }
    const input = el('input', { type: 'text', id: 'say', maxlength: 500, autocomplete: 'off', placeholder: `Say something to ${one.name} …`, 'aria-label': `Say something to ${one.name}` });
    const send = el('button.main', { type: 'submit' }, 'Send');
    const reply = el('p.reply', { role: 'status' });
    const form = el('form', {}, input, send);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (!text) return;
      send.disabled = true;
      try {
        const answer = await act('POST', `/nexus/agents/${encodeURIComponent(one.id)}/talk`, { text });
        if (!answer) return;
        input.value = '';
        fill(reply, `You: ${text} `, el('b', {}, `${one.name}: `), answer.how === 'whisper' ? el('i', {}, 'hears it at the next step') : answer.text);
      } catch (error) {
        fill(reply, el('span.bad', {}, error.message));
      } finally { send.disabled = false; }
    });
    fill(talk, face(one.id), reply, form);
  }

  // --- all of it -----------------------------------------------------------------------------------

  function show(found) {
    shown = found;
    const on = found.worlds.find((world) => world.id === pinned) || found.worlds.find((world) => world.id === found.on_stage?.world) || null;
    if (pinned && on?.id !== pinned) pinned = '';
    pin.setAttribute('aria-pressed', String(!!pinned));
    const moved = on?.id !== stage?.id || on?.draws !== stage?.draws;
    stage = on;
    const here = found.moments.filter((moment) => moment.world === stage?.id);
    const wanted = found.on_stage?.world === stage?.id ? found.on_stage?.agent : here.find((m) => stage.agents.some((a) => a.id === m.agent))?.agent;
    const next = stage ? wanted || stage.agents[0]?.id || null : null;
    if (next !== focus) { focus = next; fill(bars); say(told, ''); bubble.hidden = true; }
    where.textContent = stage ? stage.title : 'Nothing is being played';
    if (stage) where.href = to('world', stage.id); else where.removeAttribute('href');
    why.hidden = !stage;
    fill(why, pinned ? 'You stay here' : ['On stage: ', el('b', {}, found.on_stage?.reason || '')]);
    pin.hidden = !stage;
    happened = here[0] || { words: '', time: 0 };
    if (moved) { inView = {}; watch(stage); }
    showCaption();
    showPlate();
    showMoments(found.moments);
    showLine(found);
    showTalk();
    askMind();
  }

  async function load() { show(await get('/nexus/stage', signal)); }
  const again = throttled(() => load().catch(() => {}), 700);
  context.undo(() => again.stop());
  pin.addEventListener('click', () => { pinned = pinned ? '' : stage?.id || ''; again(); });
  full.addEventListener('click', () => { if (document.fullscreenElement) document.exitFullscreen(); else root.querySelector('.theatre').requestFullscreen().catch(() => {}); });
  full.hidden = !document.fullscreenEnabled;
  await load();

  const meanwhile = setInterval(again, EVERY);
  context.undo(() => clearInterval(meanwhile));
  context.on('hello', (hello) => { if (hello.again || hello.reset) again(); });
  context.on('nexus', () => again());
  context.on('thinking', (who) => { if (who === focus) { const now = thoughtOf(who); if (now?.text) think({ agent: who, reasoning: now.text }); } });
  context.on('pulse', (pulse) => {
    for (const world of pulse.worlds) { looks.get(world)?.(); if (world === stage?.id) look(); }
    const mine = pulse.agents.find((stay) => stay.agent === focus);
    if (mine) { think(mine); askMind(); }
    if (pulse.agents.some((stay) => stay.achievements?.length)) again();
  });
}
