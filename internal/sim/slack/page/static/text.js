// Slack's text: mrkdwn, its mention markup, emoji names, and the standard Markdown of markdown blocks
// and files. Everything is turned into DOM nodes.
import { h, add, slackDate, fullText } from './dom.js';

const emoji = {
  white_check_mark: '✅', heavy_check_mark: '✔️', x: '❌', no_entry: '⛔', no_entry_sign: '🚫', warning: '⚠️', rotating_light: '🚨',
  ghost: '👻', eyes: '👀', mag: '🔍', hourglass: '⌛', hourglass_flowing_sand: '⏳', stopwatch: '⏱️', alarm_clock: '⏰', lock: '🔒',
  unlock: '🔓', key: '🔑', fire: '🔥', boom: '💥', bug: '🐛', zap: '⚡', rocket: '🚀', wrench: '🔧', hammer: '🔨', gear: '⚙️',
  bulb: '💡', memo: '📝', page_facing_up: '📄', clipboard: '📋', link: '🔗', pushpin: '📌', bell: '🔔', speech_balloon: '💬',
  thumbsup: '👍', '+1': '👍', thumbsdown: '👎', '-1': '👎', raised_hands: '🙌', pray: '🙏', wave: '👋', tada: '🎉', smile: '😄',
  thinking_face: '🤔', red_circle: '🔴', large_green_circle: '🟢', green_circle: '🟢', large_yellow_circle: '🟡', large_blue_circle: '🔵',
  large_orange_circle: '🟠', white_circle: '⚪', black_circle: '⚫', question: '❓', exclamation: '❗', heavy_exclamation_mark: '❗',
  information_source: 'ℹ️', arrow_right: '➡️', arrow_forward: '▶️', octagonal_sign: '🛑', stop_sign: '🛑', construction: '🚧',
  satellite: '🛰️', globe_with_meridians: '🌐', computer: '💻', package: '📦', chart_with_upwards_trend: '📈', bar_chart: '📊',
  heart: '❤️', star: '⭐', sparkles: '✨', clock1: '🕐', repeat: '🔁', scissors: '✂️', shield: '🛡️', hand: '✋', raised_hand: '✋',
  robot_face: '🤖', mag_right: '🔎', seedling: '🌱', checkered_flag: '🏁', bookmark_tabs: '📑', label: '🏷️', books: '📚',
};
export const emojiNames = Object.keys(emoji);

export function emojiNode(name) {
  if (emoji[name]) return h('span', { class: 'emoji', role: 'img', 'aria-label': name.replace(/_/g, ' '), title: ':' + name + ':' }, emoji[name]);
  return document.createTextNode(':' + name + ':');
}

let directory = { users: new Map(), groups: new Map(), channels: new Map(), me: '' };
export function useDirectory(d) { directory = d; }

export function userChip(id) {
  const u = directory.users.get(id);
  const mine = id === directory.me ? ' mine' : '';
  return h('span', { class: 'mention' + mine, title: u ? u.real_name : id }, '@' + (u ? u.name : id));
}

export function groupChip(id) {
  const g = directory.groups.get(id);
  const mine = g && g.users.includes(directory.me) ? ' mine' : '';
  return h('span', { class: 'mention' + mine, title: g ? g.name : id }, '@' + (g ? g.handle : id));
}

export function broadcastChip(range) {
  return h('span', { class: 'mention broadcast', title: 'notifies everybody in the channel' }, '@' + range);
}

export function channelChip(id) {
  const c = directory.channels.get(id);
  return h('a', { class: 'mention', href: '#/' + id }, '#' + (c ? c.name : id));
}

export function dateNode(seconds, format, fallback) {
  return h('time', { class: 'date', title: fullText(new Date(Number(seconds) * 1000)) }, slackDate(seconds, format, fallback));
}

export function linkNode(url, label) {
  if (!/^(https?:|mailto:)/i.test(url)) return document.createTextNode(label || url);
  const own = url.startsWith(location.origin + '/archives/'); // a message of this workspace: no new window
  return h('a', { href: url, target: own ? undefined : '_blank', rel: 'noreferrer noopener', title: url }, label || url);
}

export const unescape = s => s.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&');

// token turns what stands between < and > into a node.
function token(body) {
  const bar = body.indexOf('|');
  const target = bar < 0 ? body : body.slice(0, bar);
  const label = bar < 0 ? '' : unescape(body.slice(bar + 1));
  if (target.startsWith('@')) return userChip(target.slice(1));
  if (target.startsWith('#')) return channelChip(target.slice(1));
  if (target.startsWith('!subteam^')) return groupChip(target.slice(9));
  if (target.startsWith('!date^')) {
    const [, seconds, format] = target.split('^');
    return dateNode(seconds, format || '{date}', label);
  }
  if (/^!(here|channel|everyone)$/.test(target)) return broadcastChip(target.slice(1));
  if (/^(https?:|mailto:)/i.test(target)) return linkNode(unescape(target), label || unescape(target).replace(/^mailto:/, ''));
  return document.createTextNode('<' + unescape(body) + '>');
}

const bareURL = /^https?:\/\/[^\s<>|"]*[^\s<>|"'.,:;!?)\]}]/;
const wordy = c => c !== undefined && /[\p{L}\p{N}_]/u.test(c);
const marks = { '*': 'b', '_': 'i', '~': 's' };

// inline parses one stretch of mrkdwn. code: only mention markup counts.
function inline(text, opt, code = false) {
  const out = [];
  let plain = '';
  const flush = () => { if (plain) out.push(unescape(plain)); plain = ''; };
  for (let i = 0; i < text.length;) {
    const c = text[i];
    if (c === '<') {
      const end = text.indexOf('>', i);
      if (end > i + 1) { flush(); out.push(token(text.slice(i + 1, end))); i = end + 1; continue; }
    }
    if (!code && c === '`') {
      const end = text.indexOf('`', i + 1);
      if (end > i + 1) { flush(); out.push(h('code', {}, inline(text.slice(i + 1, end), opt, true))); i = end + 1; continue; }
    }
    if (!code && marks[c] && !wordy(text[i - 1])) {
      const end = closing(text, i, c);
      if (end > 0) { flush(); out.push(h(marks[c], {}, inline(text.slice(i + 1, end), opt))); i = end + 1; continue; }
    }
    if (!code && c === ':') {
      const m = /^:([a-z0-9_+-]+):/.exec(text.slice(i, i + 40));
      if (m && emoji[m[1]]) { flush(); out.push(emojiNode(m[1])); i += m[0].length; continue; }
    }
    if (!code && !opt.verbatim && c === 'h') {
      const m = bareURL.exec(text.slice(i));
      if (m && !wordy(text[i - 1])) { flush(); out.push(linkNode(unescape(m[0]))); i += m[0].length; continue; }
    }
    if (c === '\n') { flush(); out.push(h('br')); i++; continue; }
    plain += c;
    i++;
  }
  flush();
  return out;
}

function closing(text, i, c) {
  if (text[i + 1] === undefined || /\s/.test(text[i + 1]) || text[i + 1] === c) return -1;
  for (let j = i + 2; j < text.length && text[j] !== '\n'; j++) {
    if (text[j] === '`') { const e = text.indexOf('`', j + 1); if (e < 0) continue; j = e; continue; }
    if (text[j] === c && !/\s/.test(text[j - 1]) && !wordy(text[j + 1])) return j;
  }
  return -1;
}

// mrkdwn renders Slack's markup.
export function mrkdwn(text, opt = {}) {
  const out = [];
  String(text ?? '').split(/```/).forEach((part, i, all) => {
    if (i % 2 === 1 && i < all.length - 1) { out.push(codeBlock(inline(part.replace(/^\n|\n$/g, ''), opt, true))); return; }
    if (i % 2 === 1) part = '```' + part;
    if (i > 0) part = part.replace(/^\n/, '');
    if (i < all.length - 1) part = part.replace(/\n$/, '');
    out.push(...quotes(part, opt));
  });
  return out;
}

function quotes(text, opt) {
  const out = [];
  let lines = [], quoted = null;
  const flush = () => {
    if (!lines.length) return;
    const body = inline(lines.join('\n'), opt);
    out.push(quoted ? h('blockquote', {}, body) : h('span', {}, body));
    lines = [];
  };
  for (const line of text.split('\n')) {
    const q = /^(&gt;|>)\s?/.exec(line);
    if (quoted !== null && quoted !== !!q) flush();
    quoted = !!q;
    lines.push(q ? line.slice(q[0].length) : line);
  }
  flush();
  return out;
}

// plain renders plain_text: emoji codes only.
export function plain(text) {
  return String(text ?? '').split(/(:[a-z0-9_+-]+:|\n)/).map(p => {
    if (p === '\n') return h('br');
    const m = /^:(.+):$/.exec(p);
    return m && emoji[m[1]] ? emojiNode(m[1]) : unescape(p);
  });
}

// codeBlock is a block of code with a button to copy it and, for a slash command, one to use it.
export function codeBlock(children) {
  const pre = h('pre', {}, children);
  const box = h('div', { class: 'code' }, pre);
  const tools = h('div', { class: 'code-tools' });
  const text = pre.textContent;
  tools.append(h('button', { type: 'button', class: 'code-tool', on: { click: e => copy(text, e.currentTarget) } }, 'Copy'));
  if (/^\/[a-z]/.test(text)) {
    tools.append(h('button', { type: 'button', class: 'code-tool use', on: { click: () => document.dispatchEvent(new CustomEvent('use-text', { detail: text })) } }, 'Use'));
  }
  box.append(tools);
  return box;
}

async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); button.textContent = 'Copied'; } catch { button.textContent = 'Press Ctrl-C'; }
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

// ---- standard Markdown ----

export function markdown(source) {
  const lines = String(source ?? '').replace(/\r\n?/g, '\n').split('\n');
  const out = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    let m;
    if (!line.trim()) { i++; continue; }
    if ((m = /^(```+|~~~+)\s*(\S*)/.exec(line))) {
      const body = [];
      for (i++; i < lines.length && !lines[i].startsWith(m[1]); i++) body.push(lines[i]);
      i++;
      out.push(codeBlock(body.join('\n')));
    } else if ((m = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line))) {
      out.push(h('h' + Math.min(6, m[1].length + 2), { class: 'md-h' + m[1].length }, span(m[2])));
      i++;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.push(h('hr'));
      i++;
    } else if (/^\s*>/.test(line)) {
      const body = [];
      for (; i < lines.length && /^\s*>/.test(lines[i]); i++) body.push(lines[i].replace(/^\s*>\s?/, ''));
      out.push(h('blockquote', {}, markdown(body.join('\n'))));
    } else if (line.includes('|') && /^\s*\|?[\s:|-]+\|[\s:|-]*$/.test(lines[i + 1] ?? '') && lines[i + 1].includes('-')) {
      const rows = [];
      for (; i < lines.length && lines[i].includes('|'); i++) rows.push(cells(lines[i]));
      out.push(mdTable(rows));
    } else if (item(line)) {
      let list;
      [list, i] = mdList(lines, i);
      out.push(list);
    } else {
      const body = [];
      for (; i < lines.length && lines[i].trim() && !/^(#{1,6}\s|```|~~~|\s*>)/.test(lines[i]) && !(body.length && item(lines[i])); i++) body.push(lines[i]);
      out.push(h('p', {}, span(body.join('\n'))));
    }
  }
  return out;
}

const item = line => /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/.exec(line);

function mdList(lines, i) {
  const first = item(lines[i]);
  const depth = first[1].length;
  const ordered = /\d/.test(first[2]);
  const list = h(ordered ? 'ol' : 'ul', ordered ? { start: String(parseInt(first[2], 10)) } : {});
  while (i < lines.length) {
    const m = item(lines[i]);
    if (!m || m[1].length < depth) break;
    if (m[1].length > depth + 1 && list.lastChild) {
      let inner;
      [inner, i] = mdList(lines, i);
      list.lastChild.append(inner);
      continue;
    }
    let text = m[3];
    for (i++; i < lines.length && lines[i].trim() && !item(lines[i]) && /^\s+/.test(lines[i]); i++) text += '\n' + lines[i].trim();
    while (i + 1 < lines.length && !lines[i].trim() && item(lines[i + 1]) && item(lines[i + 1])[1].length >= depth) i++;
    list.append(h('li', {}, span(text)));
  }
  return [list, i];
}

const cells = line => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map(c => c.trim().replace(/\\\|/g, '|'));

function mdTable(rows) {
  const align = rows[1].map(c => /^:-+:$/.test(c) ? 'center' : /-:$/.test(c) ? 'right' : 'left');
  const row = (cs, tag) => h('tr', {}, cs.map((c, i) => h(tag, { style: { textAlign: align[i] } }, span(c))));
  return h('div', { class: 'table-box', tabindex: '0' }, h('table', {}, h('thead', {}, row(rows[0], 'th')), h('tbody', {}, rows.slice(2).map(r => row(r, 'td')))));
}

// span parses Markdown inside a line; mention markup is active as it is on Slack.
function span(text) {
  const rule = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([\s\S]+?)\*\*|__([\s\S]+?)__|~~([\s\S]+?)~~|\*([^\s*][^*]*?)\*|(?<![\p{L}\p{N}])_([^\s_][^_]*?)_(?![\p{L}\p{N}])|!?\[([^\]]*)\]\(([^)\s]+)[^)]*\)|<([@#!][^<>\n]+|https?:[^<>\s]+)>|(https?:\/\/[^\s<>"]*[^\s<>"'.,:;!?)\]}])|\\([\\`*_{}[\]()#+.!|>~-])|:([a-z0-9_+-]+):|( {2,}\n|\n)/gu;
  const out = [];
  let last = 0;
  for (const m of text.matchAll(rule)) {
    if (m.index > last) out.push(unescape(text.slice(last, m.index)));
    last = m.index + m[0].length;
    if (m[2] !== undefined) out.push(h('code', {}, m[2]));
    else if (m[3] ?? m[4]) out.push(h('b', {}, span(m[3] ?? m[4])));
    else if (m[5]) out.push(h('s', {}, span(m[5])));
    else if (m[6] ?? m[7]) out.push(h('i', {}, span(m[6] ?? m[7])));
    else if (m[9]) out.push(linkNode(m[9], m[8] || m[9]));
    else if (m[10]) out.push(token(m[10]));
    else if (m[11]) out.push(linkNode(m[11]));
    else if (m[12]) out.push(m[12]);
    else if (m[13]) out.push(emojiNode(m[13]));
    else out.push(m[14] === '\n' ? '\n' : h('br'));
  }
  if (last < text.length) out.push(unescape(text.slice(last)));
  return out;
}

export function textObject(t, opt = {}) {
  if (!t) return [];
  return t.type === 'mrkdwn' ? mrkdwn(t.text, { verbatim: t.verbatim, ...opt }) : plain(t.text);
}

export { add };
