// The page: top bar, channel list, channel, thread. It draws what state.js knows.
import { h, icon, iconButton, avatar, liveTime, refreshTimes, timeText, when, steady } from './dom.js';
import { mrkdwn } from './text.js';
import { blocks, values, popup, closePopup, popupOpen } from './blocks.js';
import { S, connect, onChange, actAs, api, channelOf, listOf, unread, markRead, remember, recall } from './state.js';
import { rows, forget, replies, act } from './messages.js';
import { syncViews, dialog, toast } from './modal.js';
import { composer } from './composer.js';

const $ = id => document.getElementById(id);
const app = $('app');

// ---- where we are: #/CHANNEL/TS/THREAD ----

function route() {
  const [, channel, ts, thread] = location.hash.split('/');
  const id = channel && (S.channels.find(c => c.id === channel || c.name === channel)?.id || (channel.startsWith('D') ? channel : ''));
  const target = id || recall('last channel') || S.channels[0]?.id || '';
  const moved = target !== S.channel;
  S.channel = channelOf(target) ? target : S.channels[0]?.id || '';
  remember('last channel', S.channel);
  S.thread = thread || '';
  const inThread = S.thread && listOf(S.channel).some(m => m.ts === S.thread);
  app.dataset.pane = channel === 'list' ? 'list' : inThread ? 'thread' : 'channel';
  const point = ts && (ts.startsWith('p') ? ts.slice(1, -6) + '.' + ts.slice(-6) : ts);
  drawSidebar();
  drawChannel(moved);
  drawThread(true);
  if (point) requestAnimationFrame(() => highlight(point));
}

function highlight(ts) {
  const el = document.querySelector(`#thread [data-ts="${ts}"], #channel [data-ts="${ts}"]`);
  if (!el || S.thread === ts) return;
  el.scrollIntoView({ block: 'center' });
  el.classList.add('target');
  setTimeout(() => el.classList.remove('target'), 2500);
}

const go = (channel, ts, thread) => { location.hash = '#/' + [channel, ts, thread].filter(Boolean).join('/'); };

// ---- top bar ----

function drawTop() {
  $('team').replaceChildren(h('img', { src: 'icon.svg', alt: '' }), S.team.name || 'Ghost Lab');
  const n = S.sockets;
  $('socket').className = 'socket ' + (!S.connected ? 'off' : n ? 'on' : 'idle');
  $('socket').title = n + ' Socket Mode connection' + (n === 1 ? '' : 's');
  $('socket').replaceChildren(h('span', { class: 'socket-text' }, !S.connected ? 'Workspace is not running' : n === 1 ? 'Ghost is connected' : n ? `Ghost is connected (${n} sockets)` : 'Ghost is not connected'));
  $('paged').replaceChildren(icon('bell'), h('span', { class: 'pill-label' }, 'Mention notifications '), h('b', {}, String(S.pages.total)), S.pages.silent ? h('span', { class: 'pill-note' }, '+' + S.pages.silent + ' silent') : '');
  $('paged').classList.toggle('some', S.pages.total > 0);
  $('paged').title = 'What Slack would have notified people of because a message names them: who may approve a card, who asked. Edits notify nobody.';
  $('paged').setAttribute('aria-label', `Notifications by mentions: ${S.pages.total}`);
  $('lab').replaceChildren(icon('lab'), h('span', { class: 'sr' }, 'Limits and faults'));
  $('phone').replaceChildren(icon('phone'), h('span', { class: 'sr' }, 'Phone-width preview'));
  $('theme').replaceChildren(icon(dark() ? 'sun' : 'moon'), h('span', { class: 'sr' }, 'Light or dark'));
  const me = S.users.get(S.me);
  $('me').replaceChildren(avatar(me, 'small'), h('span', { class: 'me-name' }, me ? me.name : ''), icon('down', 'tiny'));
  $('me').setAttribute('aria-label', 'Acting as ' + (me ? me.name : '') + '. Switch user');
}

const role = u => [u.is_stranger && 'other company', u.is_restricted && 'guest', u.approver ? 'may approve' : 'may not approve'].filter(Boolean).join(', ');

$('me').addEventListener('click', () => {
  const people = [...S.users.values()].filter(u => !u.is_bot && !u.deleted);
  popup($('me'), [{ title: 'Act as' }, ...people.map(u => ({
    lead: avatar(u, 'small'), label: u.name, note: role(u), checked: u.id === S.me, tail: u.approver ? h('span', { class: 'badge' }, 'APPROVER') : null,
    run: () => { closePopup(); actAs(u.id); syncViews(); forget(); connect(); } }))], 'wide');
});

$('paged').addEventListener('click', async () => {
  S.pages = await api('pages');
  drawTop();
  const name = id => (S.users.get(id) || {}).name || id;
  const what = m => [...(m.users || []).map(u => '@' + name(u)), ...(m.groups || []).map(g => '@' + ((S.groups.find(x => x.id === g) || {}).handle || g)), ...(m.broadcasts || []).map(b => '@' + b)].join(' ');
  const list = [...S.pages.entries].reverse();
  const d = dialog('viewer', 'Mention notifications', [
    h('div', { class: 'dialog-head' }, icon('bell'), h('h2', {}, 'Notifications by mentions'), iconButton('close', 'Close', () => d.close())),
    h('div', { class: 'dialog-body' },
      h('p', { class: 'muted' }, 'Every mention that Slack would act on, counted once for each person: a card names those who may approve it. Text that only looks like a mention is not counted; edits and ephemeral messages notify nobody and are listed as silent.'),
      list.length ? h('ul', { class: 'paged-list' }, list.map(p => h('li', {}, h('a', { href: `#/${p.channel}/${p.ts}`, on: { click: () => d.close() } }, '#' + (channelOf(p.channel)?.name || p.channel), ' ', timeText(when(p.ts))),
        ' ', h('b', {}, name(p.author)), ' wrote ', h('span', { class: 'mention' }, what(p.mentions)), p.silent ? h('span', { class: 'badge' }, 'SILENT') : ` and notified ${p.people.length}: ${p.people.map(name).join(', ') || 'nobody'}`))) : h('p', {}, 'Nobody so far.')),
  ], () => d.close());
});

$('lab').addEventListener('click', async () => {
  S.limits = await api('limits');
  const over = Object.entries(S.limits.over).map(([k, v]) => `${k} ${v}×`).join(', ') || 'none';
  const fault = (label, note, f) => ({ label, note, run: async () => { const out = await api('fault', f); toast(out.ok ? label + ': done' : out.detail); } });
  popup($('lab'), [
    { title: 'Rate limits' },
    { label: S.limits.enforce ? 'Enforced: switch off' : 'Counted only: enforce', note: 'calls over Slack’s limits: ' + over, checked: S.limits.enforce, run: () => api('limits', { enforce: !S.limits.enforce }) },
    { title: 'Let something go wrong' },
    fault('Warn and recycle the socket', 'disconnect, reason warning', { kind: 'disconnect', reason: 'warning' }),
    fault('Cut the socket', 'TCP drop without a close frame', { kind: 'drop' }),
    fault('Stall the socket for 40 s', 'open, but deaf and dumb', { kind: 'stall', ms: 40000 }),
    fault('Deliver the next envelope twice', 'same envelope id, attempt 0', { kind: 'duplicate', times: 1 }),
    fault('Lose the next acknowledgement', 'the person sees an error', { kind: 'lose_acks', times: 1 }),
    fault('429 on the next call', 'Retry-After 2', { kind: 'ratelimit', retry_after: 2, times: 1 }),
    fault('500 on the next call', '', { kind: 'status', status: 500, times: 1 }),
    fault('Everything back to normal', '', { kind: 'clear' }),
  ], 'wide');
});

const dark = () => (document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
function theme(name) {
  if (name) { document.documentElement.dataset.theme = name; localStorage.setItem('theme', name); }
  drawTop();
}
$('theme').addEventListener('click', () => theme(dark() ? 'light' : 'dark'));
if (localStorage.getItem('theme')) document.documentElement.dataset.theme = localStorage.getItem('theme');

function phone(on) {
  document.body.classList.toggle('phone', on);
  $('phone').setAttribute('aria-pressed', String(on));
  localStorage.setItem('phone', on ? '1' : '');
}
$('phone').addEventListener('click', () => phone(!document.body.classList.contains('phone')));
phone(localStorage.getItem('phone') === '1');

// ---- sidebar ----

function drawSidebar() {
  const entry = (id, name, lead, title) => {
    const { n, at } = unread(id);
    const here = id === S.channel;
    return h('a', { class: 'side-item' + (here ? ' here' : '') + (n && !here ? ' unread' : ''), href: '#/' + id, title, 'aria-current': here ? 'page' : undefined },
      lead, h('span', { class: 'side-name' }, name), n && !here ? h('span', { class: 'sr' }, `${n} unread`) : '', at && !here ? h('span', { class: 'side-badge', 'aria-label': at + ' mentions' }, at) : '');
  };
  const scroll = $('sidebar').scrollTop;
  $('sidebar').replaceChildren(
    h('div', { class: 'side-head' }, S.team.name || ''),
    h('div', { class: 'side-title' }, 'Channels'),
    ...S.channels.map(c => entry(c.id, c.name, h('span', { class: 'side-lead' }, icon('hash')), c.topic)),
    h('div', { class: 'side-title' }, 'Apps'),
    S.direct ? entry(S.direct.id, 'Ghost', avatar(S.users.get(S.team.bot_user_id), 'small'), 'Home and direct messages')
      : h('button', { type: 'button', class: 'side-item', on: { click: openDirect } }, avatar(S.users.get(S.team.bot_user_id), 'small'), h('span', { class: 'side-name' }, 'Ghost')));
  $('sidebar').scrollTop = scroll;
  const total = S.channels.reduce((sum, c) => sum + (c.id === S.channel ? 0 : unread(c.id).at), 0);
  document.title = (total ? `(${total}) ` : '') + (channelOf(S.channel)?.name || '') + ' · ' + (S.team.name || 'Ghost Lab');
}

async function openDirect() {
  await api('home', { user: S.me });
  setTimeout(() => go('D' + S.me.slice(1)), 150);
}

// ---- channel ----

let feed, write, tab = 'messages';

function drawChannel(moved) {
  const c = channelOf(S.channel);
  if (!c) return;
  if (moved || !feed || !write || write.key !== 'draft ' + c.id) {
    feed = h('div', { class: 'feed', role: 'log', 'aria-label': 'Messages', 'aria-live': 'off', tabindex: '0', on: { scroll: atBottom } });
    watch(feed);
    write = composer(c.id, c.is_im ? 'Message Ghost' : 'Message #' + c.name);
    $('channel').replaceChildren(head(c), feed, status(c.id, ''), h('div', { class: 'composer-box' }, write));
    tab = 'messages';
    drawFeed(true);
    if (!matchMedia('(pointer: coarse)').matches && !S.thread) write.focusText();
    return;
  }
  $('channel').firstChild.replaceWith(head(c));
  $('channel').querySelector('.composer-box').hidden = !!c.is_im && tab === 'home'; // a tab is not written to
  $('channel').querySelector('.status').replaceWith(status(c.id, ''));
  drawFeed(false);
}

function head(c) {
  const pinned = (c.pinned || []).map(ts => listOf(c.id).find(m => m.ts === ts)).filter(Boolean);
  const tabs = c.is_im && h('div', { class: 'tabs', role: 'tablist' }, ['home', 'messages'].map(x => h('button', { type: 'button', role: 'tab', 'aria-selected': String(tab === x), class: 'tab' + (tab === x ? ' at' : ''), on: { click: () => { tab = x; if (x === 'home') api('home', { user: S.me }); drawChannel(false); } } }, x[0].toUpperCase() + x.slice(1))));
  return h('header', { class: 'channel-head' },
    iconButton('back', 'Channels', () => { location.hash = '#/list'; }, 'only-narrow'),
    h('div', { class: 'channel-title' }, h('h1', {}, c.is_im ? avatar(S.users.get(S.team.bot_user_id), 'small') : icon('hash'), c.is_im ? 'Ghost' : c.name), tabs, c.topic && h('span', { class: 'topic', title: c.topic }, c.topic)),
    pinned.length ? h('button', { type: 'button', class: 'btn small quiet', on: { click: () => showPinned(c, pinned) } }, icon('pin'), ` ${pinned.length} pinned`) : '',
    h('span', { class: 'members', title: c.members.map(id => (S.users.get(id) || {}).name || id).join(', ') }, icon('people'), ' ', c.members.length));
}

function showPinned(c, list) {
  const d = dialog('viewer', 'Pinned messages', [
    h('div', { class: 'dialog-head' }, icon('pin'), h('h2', {}, 'Pinned in #' + c.name), iconButton('close', 'Close', () => d.close())),
    h('div', { class: 'dialog-body pinned' }, rows(list, 'pin', false))], () => d.close());
  d.box.addEventListener('click', e => { if (e.target.closest('.use')) { d.close(); write.focusText(); } });
}

function drawFeed(toEnd) {
  const c = channelOf(S.channel);
  if (c.is_im && tab === 'home') { drawHome(); return; }
  const list = listOf(S.channel).filter(m => !m.thread_ts || m.broadcast);
  const near = feed.stick || forMe(feed, list);
  const intro = h('div', { class: 'intro' }, h('h2', {}, c.is_im ? 'Ghost' : '# ' + c.name), h('p', {}, c.topic || ''));
  steady(() => morph(feed, [intro, ...rows(list, 'channel', true)]));
  if (toEnd || near) feed.scrollTop = feed.scrollHeight;
  if (document.visibilityState === 'visible') markRead(S.channel);
}

function drawHome() {
  const v = S.home;
  const body = h('div', { class: 'home' });
  body.append(v ? blocks(v.blocks, {
    people: () => [], channels: () => S.channels,
    act: (e, b, chosen, node) => act(e, node, () => api('click', { view_id: v.id, user: S.me, action_id: e.action_id, block_id: b.block_id, option: chosen, values: values(body) })),
  }) : h('p', { class: 'muted' }, 'The app shows nothing here.'));
  feed.replaceChildren(body);
  feed.scrollTop = 0;
}

// morph replaces the children of a list but leaves those that are the same element in place, so that
// focus and selection survive.
function morph(el, want) {
  const keep = new Set(want);
  for (const c of [...el.childNodes]) if (!keep.has(c)) c.remove();
  want.forEach((c, i) => { if (el.childNodes[i] !== c) el.insertBefore(c, el.childNodes[i] || null); });
}

// watch notes whether a feed is at its end, where it then stays when something grows.
function watch(el) {
  el.stick = true;
  el.addEventListener('scroll', () => { el.stick = el.scrollHeight - el.scrollTop - el.clientHeight < 60; });
  new ResizeObserver(() => { if (el.stick) el.scrollTop = el.scrollHeight; }).observe(el);
}
document.addEventListener('grown', () => { for (const f of [feed, threadFeed]) if (f && f.stick) f.scrollTop = f.scrollHeight; });

// forMe: the newest message is new, and the person at the keyboard wrote it or it is for them alone.
function forMe(el, list) {
  const last = list[list.length - 1];
  const fresh = last && last.ts !== el.last && el.last;
  el.last = last ? last.ts : '0';
  return fresh && (last.user === S.me || last.ephemeral);
}

function atBottom() { if (feed.scrollHeight - feed.scrollTop - feed.clientHeight < 80) markRead(S.channel); }

function status(channel, thread) {
  const s = S.statuses.get(channel + ' ' + thread);
  const gone = !S.connected ? 'The workspace is not running. This page waits for it.' : S.away ? 'Ghost is away: buttons and commands fail for now.' : '';
  if (gone) return h('div', { class: 'status gone', role: 'status' }, icon('warn'), ' ', gone);
  return h('div', { class: 'status', role: 'status', data: { status: thread } }, s ? [h('span', { class: 'dots', 'aria-hidden': 'true' }, h('i'), h('i'), h('i')), ' Ghost ', s.status] : '');
}

// ---- thread ----

let threadFeed, threadWrite;

function drawThread(fresh) {
  const root = S.thread && listOf(S.channel).find(m => m.ts === S.thread);
  $('thread').hidden = !root;
  app.classList.toggle('with-thread', !!root);
  if (!root) { threadFeed = null; return; }
  const c = channelOf(S.channel);
  const list = listOf(S.channel).filter(m => m.ts === S.thread || m.thread_ts === S.thread);
  const key = 'draft ' + c.id + ' ' + S.thread;
  if (!threadFeed || threadWrite.key !== key) {
    threadFeed = h('div', { class: 'feed', role: 'log', 'aria-label': 'Thread', 'aria-live': 'off', tabindex: '0' });
    watch(threadFeed);
    threadWrite = composer(c.id, 'Reply…', S.thread);
    $('thread').replaceChildren(
      h('header', { class: 'channel-head' }, iconButton('back', 'Back to channel', () => go(c.id), 'only-narrow'),
        h('div', { class: 'channel-title' }, h('h1', {}, 'Thread'), h('span', { class: 'topic' }, '# ' + c.name)),
        iconButton('close', 'Close thread', () => go(c.id), 'not-narrow')),
      threadFeed, status(c.id, S.thread), h('div', { class: 'composer-box' }, threadWrite));
    fresh = true;
  }
  $('thread').querySelector('.status').replaceWith(status(c.id, S.thread));
  const near = threadFeed.stick || forMe(threadFeed, list);
  const items = rows(list, 'thread', false);
  const n = replies(root).length;
  if (n) items.splice(1, 0, h('div', { class: 'day left', role: 'separator' }, h('span', {}, n === 1 ? '1 reply' : n + ' replies')));
  steady(() => morph(threadFeed, items));
  if (fresh || near) threadFeed.scrollTop = threadFeed.scrollHeight;
}

// ---- wiring ----

let queued = new Set();
onChange(what => {
  queued.add(what);
  if (queued.size === 1) queueMicrotask(() => { const all = queued; queued = new Set(); draw(all); });
});

function draw(all) {
  if (all.has('all')) { drawTop(); route(); syncViews(); return; }
  if (all.has('top')) drawTop();
  if (all.has('views')) syncViews();
  const touched = [...all].some(x => x.startsWith('messages'));
  if (touched) drawSidebar();
  if (all.has('messages ' + S.channel) || all.has('home')) { drawChannel(false); drawThread(false); }
  if (all.has('status') || all.has('top') || touched) {
    $('channel').querySelector('.status')?.replaceWith(status(S.channel, ''));
    if (S.thread) drawThread(false);
  }
}

// What is typed while nothing has the focus is meant for the composer, as on Slack. F6 goes from the
// channel list to the channel's composer and on to the thread's.
document.addEventListener('keydown', e => {
  const at = document.activeElement;
  if ($('shell').inert || popupOpen() || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === 'F6') {
    e.preventDefault();
    const panes = [document.querySelector('.side-item.here'), write && write.querySelector('textarea'), S.thread && threadWrite && threadWrite.querySelector('textarea')].filter(x => x && x.checkVisibility({ visibilityProperty: true }));
    const pane = panes.findIndex(x => x.closest('nav, main, aside').contains(at));
    panes[(pane + (e.shiftKey ? panes.length - 1 : 1) + (pane < 0 && e.shiftKey ? 1 : 0)) % panes.length]?.focus();
    return;
  }
  const idle = at === document.body || at.classList.contains('feed');
  if (idle && e.key.length === 1 && e.key !== ' ') (at.closest('#thread') && threadWrite ? threadWrite : write)?.focusText();
});

addEventListener('hashchange', () => { closePopup(); route(); });
document.addEventListener('visibilitychange', () => { if (S.channel && document.visibilityState === 'visible') { markRead(S.channel); drawSidebar(); } });
document.addEventListener('use-text', e => { if (write) write.insert(e.detail); });
document.addEventListener('keydown', e => {
  if (e.key === 'Escape' && !popupOpen() && S.thread && !$('shell').inert) go(S.channel);
});
setInterval(refreshTimes, 20000);
connect();
