// The box in which people write: messages, mentions, slash commands.
import { h, icon, avatar } from './dom.js';
import { S, api, remember, recall } from './state.js';
import { toast } from './modal.js';

const usage = ['investigate <what you see>', 'status', 'list', 'stop', 'resume', 'rca', 'help'];

// composer makes a box for a channel, or for a thread when thread is set.
export function composer(channel, label, thread) {
  const key = 'draft ' + channel + (thread ? ' ' + thread : '');
  const area = h('textarea', { class: 'composer-text', rows: '1', placeholder: label, 'aria-label': label, spellcheck: 'false', autocomplete: 'off' });
  area.value = recall(key);
  const list = h('div', { class: 'suggest', role: 'listbox', hidden: true });
  const button = h('button', { type: 'button', class: 'send', 'aria-label': 'Send', title: 'Send (Enter)', on: { click: () => go() } }, icon('send'));
  const also = thread && h('label', { class: 'also' }, h('input', { type: 'checkbox' }), ' Also send to the channel');
  const box = h('div', { class: 'composer' }, list, area, h('div', { class: 'composer-foot' }, also || h('span', { class: 'composer-hint empty' }, h('kbd', {}, '/'), ' commands ', h('kbd', {}, '@'), ' mention'), also ? '' : h('span', { class: 'composer-hint filled' }, h('kbd', {}, 'Enter'), ' sends, ', h('kbd', {}, 'Shift'), '+', h('kbd', {}, 'Enter'), ' starts a new line'), button));
  const fit = () => {
    area.style.height = 'auto';
    area.style.height = Math.min(area.scrollHeight, 220) + 'px';
    box.classList.toggle('ready', area.value.trim() !== '');
  };
  let items = [], at = 0;
  const hide = () => { list.hidden = true; items = []; };
  const pick = i => { items[i].run(); hide(); fit(); area.focus(); };
  const suggest = () => {
    items = suggestions(area, thread);
    at = 0;
    list.hidden = !items.length;
    list.replaceChildren(...items.map((it, i) => h('div', { class: 'suggest-item' + (i === at ? ' at' : ''), role: 'option', on: { mousedown: e => { e.preventDefault(); pick(i); } } }, it.lead, h('b', {}, it.label), h('span', { class: 'muted' }, it.note))));
  };
  area.addEventListener('input', () => { remember(key, area.value); fit(); suggest(); });
  area.addEventListener('blur', () => setTimeout(hide, 150));
  area.addEventListener('keydown', e => {
    if (items.length && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) {
      e.preventDefault();
      at = (at + (e.key === 'ArrowDown' ? 1 : items.length - 1)) % items.length;
      [...list.children].forEach((c, i) => c.classList.toggle('at', i === at));
    } else if (items.length && (e.key === 'Tab' || (e.key === 'Enter' && !items[at].whole))) { e.preventDefault(); pick(at); }
    else if (e.key === 'Escape' && items.length) { e.stopPropagation(); hide(); }
    else if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); go(); }
  });
  async function go() {
    const text = area.value.trim();
    if (!text || box.classList.contains('busy')) return;
    if (thread && text.startsWith('/')) { toast('Slash commands do not work in threads. Write it in the channel.'); return; }
    hide();
    box.classList.add('busy');
    let out;
    try {
      out = text.startsWith('/') ? await api('command', { channel, user: S.me, text }) : await api('message', { channel, user: S.me, text, thread_ts: thread || '', reply_broadcast: !!(also && also.firstChild.checked) });
    } catch { out = { error: 'unreachable', detail: 'The workspace cannot be reached.' }; }
    box.classList.remove('busy');
    const shownAsNotice = out.error === 'operation_timeout' || out.error === 'dispatch_failed' || out.error === 'invalid_command_response';
    if (!out.ok && !shownAsNotice) { toast(out.detail || out.error); return; }
    if (area.value.trim() === text) { area.value = ''; remember(key, ''); }
    if (also) also.firstChild.checked = false;
    fit();
    area.focus();
  }
  requestAnimationFrame(fit);
  box.insert = text => { area.value = text; remember(key, text); fit(); area.focus(); };
  box.focusText = () => area.focus();
  box.key = key;
  return box;
}

// suggestions for what is being typed before the caret.
function suggestions(area, thread) {
  const before = area.value.slice(0, area.selectionStart);
  if (!thread && /^\/\S*$/.test(before)) {
    return [S.command].filter(c => c.startsWith(before) && before.length > 0).flatMap(c => usage.map(u => {
      const insert = c + ' ' + u.split(' ')[0] + (u.includes('<') ? ' ' : '');
      return { label: c + ' ' + u, note: 'Ghost', lead: avatar(S.users.get(S.team.bot_user_id), 'small'), run: () => { area.value = insert; area.dispatchEvent(new Event('input')); } };
    }));
  }
  const m = /(^|\s)@([a-z0-9._-]*)$/i.exec(before);
  if (!m) return [];
  const q = m[2].toLowerCase();
  const put = name => () => {
    const head = before.slice(0, before.length - m[2].length) + name + ' ';
    area.value = head + area.value.slice(area.selectionStart);
    area.setSelectionRange(head.length, head.length);
    area.dispatchEvent(new Event('input'));
  };
  const people = [...S.users.values()].filter(u => !u.deleted && u.name.startsWith(q)).map(u => ({ label: u.name, note: ' ' + u.real_name, lead: avatar(u, 'small'), run: put(u.name) }));
  const groups = S.groups.filter(g => g.handle.startsWith(q)).map(g => ({ label: g.handle, note: ' notifies ' + g.users.length + ' people', run: put(g.handle) }));
  const all = ['channel', 'here'].filter(x => x.startsWith(q)).map(x => ({ label: x, note: ' notifies everybody in this channel', run: put(x) }));
  return [...people, ...groups, ...all].slice(0, 8);
}
