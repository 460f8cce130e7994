// The list of messages: grouping, threads, ephemerals, reactions, and what can be done with them.
import { h, icon, iconButton, avatar, when, timeText, fullText, dayText, liveTime, rove } from './dom.js';
import { mrkdwn, emojiNode } from './text.js';
import { blocks, values, fileCard, popup } from './blocks.js';
import { S, api, channelOf, listOf, mentionsMe, changed } from './state.js';
import { confirmBox, viewer, toast } from './modal.js';

// cache keeps the element of every message that did not change, so that what somebody has half
// filled in survives new messages.
const cache = new Map();

function cached(key, m, mode, build) {
  const stamp = JSON.stringify([m, mode, S.warnings.get(m.ts) || '']);
  const old = cache.get(key);
  if (old && old.stamp === stamp) return old.el;
  const el = build();
  cache.set(key, { stamp, el });
  return el;
}

export const forget = () => cache.clear();

// rows is the content of a list: day dividers and messages; threads says whether to show their
// summaries.
export function rows(list, where, threads) {
  const out = [];
  let day = '', last = null;
  for (const m of list) {
    const d = when(m.ts);
    const label = dayText(d);
    if (threads && label !== day) {
      out.push(h('div', { class: 'day', role: 'separator' }, h('span', {}, label)));
      day = label; last = null;
    }
    const joined = last && last.user === m.user && !m.ephemeral && !last.ephemeral && when(m.ts) - when(last.ts) < 3e5 &&
      !m.thread_ts && !(threads && replies(last).length);
    const sum = threads ? replies(m) : [];
    const mode = [where, joined, sum.length, sum.length ? sum[sum.length - 1].ts : '', S.me, m.thread_ts && threads, pinned(m)];
    out.push(cached(where + ' ' + m.ts, m, mode, () => message(m, { joined, threads, replies: sum })));
    last = m;
  }
  return out;
}

const pinned = m => (channelOf(m.channel)?.pinned || []).includes(m.ts);

export const replies = m => m.thread_ts ? [] : listOf(m.channel).filter(x => x.thread_ts === m.ts && !x.ephemeral);

function message(m, { joined, threads, replies: sum }) {
  const u = S.users.get(m.user);
  const notice = m.user === 'USLACKBOT';
  const name = notice ? 'Slackbot' : u ? u.name : m.user;
  const bot = notice || !!m.bot_id;
  const cls = ['msg', joined && 'joined', m.ephemeral && 'ephemeral', mentionsMe(m) && 'mentions-me', m.subtype === 'tombstone' && 'gone'].filter(Boolean).join(' ');
  const body = h('div', { class: 'msg-body' });
  const el = h('article', { class: cls, data: { ts: m.ts, channel: m.channel }, 'aria-label': `${name}, ${timeText(when(m.ts))}` });
  if (m.ephemeral) body.append(h('div', { class: 'only-you' }, icon('eye'), ' Only visible to you'));
  if (pinned(m)) body.append(h('div', { class: 'only-you' }, icon('pin'), ' Pinned'));
  if (m.thread_ts && threads) body.append(h('div', { class: 'broadcast-note' }, 'replied to a thread: ', threadLink(m)));
  if (!joined) {
    body.append(h('div', { class: 'msg-head' }, h('b', { class: 'msg-name' }, u ? u.real_name : name), bot && h('span', { class: 'badge' }, 'APP'),
      u && u.is_restricted && h('span', { class: 'badge guest' }, 'GUEST'), u && u.is_stranger && h('span', { class: 'badge guest' }, 'EXTERNAL'),
      h('a', { class: 'msg-time', href: `#/${m.channel}/${m.ts}`, title: fullText(when(m.ts)) }, timeText(when(m.ts)))));
  }
  body.append(content(m));
  if (m.reactions && m.reactions.length) body.append(reactions(m));
  if (m.paged && m.paged.length) body.append(paged(m));
  if (sum.length && threads) body.append(summary(m, sum));
  el.append(joined ? h('a', { class: 'msg-gutter', href: `#/${m.channel}/${m.ts}`, title: fullText(when(m.ts)) }, timeText(when(m.ts))) : avatar(notice ? { id: 'USLACKBOT', name: 'slackbot', real_name: 'Slackbot' } : u), body, toolbar(m, threads));
  return el;
}

function content(m) {
  const box = h('div', { class: 'msg-content' });
  if (m.subtype === 'tombstone') { box.append(h('span', { class: 'muted' }, 'This message was deleted.')); return box; }
  const hasBlocks = m.blocks && m.blocks.length;
  if (hasBlocks) box.append(blocks(m.blocks, context(m, box)));
  else if (m.text) box.append(h('div', { class: 'b-text' }, mrkdwn(m.text)));
  if (m.edited_ts && !hasBlocks) box.append(h('span', { class: 'edited' }, ' (edited)'));
  for (const a of m.attachments || []) {
    box.append(h('div', { class: 'attachment' }, a.pretext && h('div', {}, mrkdwn(a.pretext)), a.title && h('div', {}, h('b', {}, a.title)), a.text && h('div', {}, mrkdwn(a.text)),
      (a.fields || []).map(f => h('div', {}, h('b', {}, f.title), ' ', mrkdwn(String(f.value)))), a.blocks && blocks(a.blocks, {})));
  }
  if (m.files && m.files.length) box.append(h('div', { class: 'files' }, m.files.map(f => fileCard(f, viewer))));
  if (m.streaming) box.append(h('span', { class: 'typing' }, '●'));
  const warned = S.warnings.get(m.ts);
  if (warned) {
    const [block, action] = warned.split(' ');
    const at = [...box.querySelectorAll('[data-action-id]')].find(n => n.dataset.actionId === action && n.closest('.b').dataset.blockId === block);
    if (at) at.after(h('span', { class: 'failed', role: 'img', 'aria-label': 'The app did not respond', title: 'The app did not respond. Try again.' }, icon('warn')));
  }
  return box;
}

// context lets the blocks of a message act.
function context(m, box) {
  return {
    people: () => [...S.users.values()].filter(u => !u.deleted && !u.is_bot), channels: () => S.channels,
    act: (e, b, chosen, node) => act(e, node, () => api('click', { ts: m.ts, channel: m.channel, user: S.me, action_id: e.action_id, block_id: b.block_id, option: chosen, values: values(box) }), () => { S.warnings.delete(m.ts); }),
  };
}

// act asks for confirmation if the element wants it, shows that it is busy, and reports what did not
// work.
export async function act(e, node, send, before) {
  if (e.confirm && !await confirmBox(e.confirm)) return;
  if (e.url) window.open(e.url, '_blank', 'noopener');
  if (before) before();
  node.classList.add('busy');
  node.setAttribute('aria-busy', 'true');
  try {
    const out = await send();
    if (!out.ok && out.detail && out.error !== 'operation_timeout' && out.error !== 'dispatch_failed') toast(out.detail);
    else if (!out.ok) toast('The app did not respond (' + out.error + ').');
  } catch { toast('The workspace cannot be reached.'); }
  node.classList.remove('busy');
  node.removeAttribute('aria-busy');
}

function reactions(m) {
  return h('div', { class: 'reactions' }, m.reactions.map(r => {
    const mine = r.users.includes(S.me);
    const names = r.users.map(id => (S.users.get(id) || {}).name || id).join(', ');
    return h('button', { type: 'button', class: 'reaction' + (mine ? ' mine' : ''), 'aria-pressed': String(mine), title: names + ' reacted with :' + r.name + ':', on: { click: () => api('react', { ts: m.ts, channel: m.channel, user: S.me, name: r.name, remove: mine }) } },
      emojiNode(r.name), ' ', r.users.length);
  }));
}

function paged(m) {
  const names = m.paged.map(id => (S.users.get(id) || {}).name || id);
  return h('div', { class: 'paged', title: names.join(', ') }, icon('bell'), ` notified ${names.length} ${names.length === 1 ? 'person' : 'people'}`);
}

function threadLink(m) {
  const root = listOf(m.channel).find(x => x.ts === m.thread_ts);
  return h('a', { href: `#/${m.channel}/${m.ts}/${m.thread_ts}` }, root ? root.text.slice(0, 200) || 'thread' : 'thread');
}

function summary(m, list) {
  const people = [...new Set(list.map(x => x.user))].slice(0, 4).map(id => avatar(S.users.get(id), 'small'));
  return h('button', { type: 'button', class: 'summary', on: { click: () => { location.hash = `#/${m.channel}/${m.ts}/${m.ts}`; } } }, people,
    h('span', { class: 'summary-count' }, list.length === 1 ? '1 reply' : list.length + ' replies'),
    h('span', { class: 'muted' }, liveTime(when(list[list.length - 1].ts), 'Last reply ')));
}

const quick = ['white_check_mark', 'eyes', '+1', 'tada', 'question'];

function toolbar(m, threads) {
  const bar = h('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Message actions' });
  const emoji = iconButton('smile', 'Add reaction', () => popup(emoji, quick.map(n => ({ lead: emojiNode(n), label: ':' + n + ':', run: () => api('react', { ts: m.ts, channel: m.channel, user: S.me, name: n }) }))));
  if (!m.ephemeral) bar.append(emoji);
  if (threads && !m.ephemeral) bar.append(iconButton('thread', 'Reply in thread', () => { location.hash = `#/${m.channel}/${m.ts}/${m.thread_ts || m.ts}`; }));
  bar.append(iconButton('voice', 'What a notification and a screen reader say', () => {
    const box = bar.parentElement.querySelector('.msg-body');
    const old = box.querySelector('.spoken-text');
    if (old) { old.remove(); return; }
    const u = S.users.get(m.user);
    box.append(h('div', { class: 'spoken-text' }, h('b', {}, (u ? u.real_name : 'Slackbot') + ' '), m.text ? mrkdwn(m.text) : h('i', {}, 'This message has no text: notifications and screen readers have nothing to say.')));
  }));
  if (m.ephemeral) {
    bar.append(iconButton('close', 'Dismiss', () => {
      S.messages.set(m.channel, listOf(m.channel).filter(x => x.ts !== m.ts));
      changed('messages ' + m.channel);
    }));
  } else bar.append(iconButton('link', 'Copy link', () => { navigator.clipboard.writeText(`${location.origin}/archives/${m.channel}/p${m.ts.replace('.', '')}`); toast('Link copied'); }));
  if (!m.ephemeral && m.subtype !== 'tombstone' && S.shortcuts.length) {
    const more = iconButton('more', 'More actions', () => popup(more, S.shortcuts.map(k => ({ label: k.name, note: ' Ghost', run: () => use(m, k) }))));
    more.setAttribute('aria-haspopup', 'menu');
    bar.append(more);
  }
  return rove(bar);
}

// use runs a message shortcut of the app.
async function use(m, shortcut) {
  const out = await api('shortcut', { ts: m.ts, channel: m.channel, user: S.me, callback_id: shortcut.callback_id }).catch(() => ({ detail: 'The workspace cannot be reached.' }));
  if (!out.ok && out.error !== 'operation_timeout' && out.error !== 'dispatch_failed') toast(out.detail || out.error);
}
