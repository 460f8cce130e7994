// Modals of the app, confirm dialogs, the file viewer and toasts. One dialog is on top; everything
// under it is inert, Tab stays inside, Escape closes, and focus goes back where it came from.
import { h, icon, iconButton, bytes, bookmark, stops } from './dom.js';
import { textObject } from './text.js';
import { blocks, values, loadText, fileBody, closePopup } from './blocks.js';
import { S, api } from './state.js';

const host = () => document.getElementById('overlay');
const stack = [];
let serial = 0;

// dialog puts a box on top. onclose runs when the person dismisses it.
export function dialog(cls, label, children, onclose) {
  const from = bookmark(document.activeElement);
  const box = h('div', { class: 'dialog ' + cls, role: 'dialog', 'aria-modal': 'true', 'aria-label': label, tabindex: '-1' }, children);
  const scrim = h('div', { class: 'scrim' }, box);
  const entry = { scrim, box, close() {
    scrim.remove();
    stack.splice(stack.indexOf(entry), 1);
    settle();
    if (!stack.length) from()?.focus();
  } };
  scrim.addEventListener('mousedown', e => { if (e.target === scrim && cls !== 'modal') onclose(); });
  box.addEventListener('keydown', e => {
    if (e.key === 'Escape') { e.preventDefault(); e.stopPropagation(); onclose(); }
    if (e.key === 'Tab') trap(box, e);
  });
  closePopup();
  host().append(scrim);
  stack.push(entry);
  settle();
  focusFirst(box);
  return entry;
}

function settle() {
  document.getElementById('shell').inert = stack.length > 0;
  stack.forEach((e, i) => { e.scrim.inert = i < stack.length - 1; e.scrim.classList.toggle('under', i < stack.length - 1); });
}

function focusFirst(box) {
  const at = box.querySelector('[aria-invalid]') || box.querySelector('[data-focus]') || box.querySelector('.dialog-body input,.dialog-body textarea,.dialog-body select') ||
    box.querySelector('.btn.primary') || box.querySelector(stops) || box;
  at.focus();
}

function trap(box, e) {
  const all = [...box.querySelectorAll(stops)].filter(x => x.offsetParent !== null);
  if (!all.length) { e.preventDefault(); return; }
  const first = all[0], last = all[all.length - 1];
  if (e.shiftKey && document.activeElement === first) { e.preventDefault(); last.focus(); }
  else if (!e.shiftKey && document.activeElement === last) { e.preventDefault(); first.focus(); }
}

// confirmBox asks before an action.
export function confirmBox(c) {
  return new Promise(done => {
    const end = yes => { d.close(); done(yes); };
    const d = dialog('confirm', c.title ? c.title.text : 'Are you sure?', [
      h('div', { class: 'dialog-head' }, h('h2', {}, c.title ? c.title.text : 'Are you sure?')),
      h('div', { class: 'dialog-body' }, textObject(c.text)),
      h('div', { class: 'dialog-foot' },
        h('button', { type: 'button', class: 'btn', on: { click: () => end(false) } }, c.deny ? c.deny.text : 'Cancel'),
        h('button', { type: 'button', class: 'btn ' + (c.style || 'primary'), on: { click: () => end(true) } }, c.confirm ? c.confirm.text : 'Yes')),
    ], () => end(false));
  });
}

// viewer shows a text file in full.
export async function viewer(f) {
  const body = h('div', { class: 'dialog-body md', tabindex: '0' }, 'Loading…');
  const d = dialog('viewer', f.title, [
    h('div', { class: 'dialog-head' }, icon('file'), h('h2', {}, f.title, h('small', {}, ' ', f.name, ' · ', bytes(f.size))),
      iconButton('close', 'Close', () => d.close())), body], () => d.close());
  const text = await loadText(f);
  body.replaceChildren(h('div', {}, fileBody(f, text)));
}

// ---- modals opened by the app ----

const shown = new Map(); // view id -> {entry, hash, errors}

// syncViews makes the dialogs match the open views.
export function syncViews() {
  const want = new Map(S.views.map(v => [v.id, v]));
  for (const [id, s] of shown) if (!want.has(id)) { s.entry.close(); shown.delete(id); }
  for (const v of S.views) {
    const old = shown.get(v.id);
    if (!old) open(v);
    else if (old.hash !== v.hash) redraw(v, old);
  }
}

function open(v) {
  const s = { hash: v.hash, id: ++serial };
  s.entry = dialog('modal', v.title, [], () => api('close', { view_id: v.id, user: S.me }));
  shown.set(v.id, s);
  for (const kind of ['input', 'change']) s.entry.box.addEventListener(kind, () => {
    s.entry.box.querySelector('.banner')?.remove();
    sessionStorage.setItem('view ' + v.id, JSON.stringify(snapshot(s.entry.box)));
  });
  redraw(v, s, null, JSON.parse(sessionStorage.getItem('view ' + v.id) || 'null'));
}

// redraw keeps what was typed: in this dialog, or before a reload.
function redraw(v, s, errors, before) {
  s.hash = v.hash;
  const def = v.view;
  const typed = before || snapshot(s.entry.box);
  const close = () => api('close', { view_id: v.id, user: S.me });
  const send = () => submit(v, s);
  const ctx = {
    errors, people: () => [...S.users.values()].filter(u => !u.deleted && !u.is_bot), channels: () => S.channels,
    act: async (e, b, chosen, node) => {
      if (e.confirm && !await confirmBox(e.confirm)) return;
      node.classList.add('busy');
      const out = await api('click', { view_id: v.id, user: S.me, action_id: e.action_id, block_id: b.block_id, option: chosen, values: values(s.entry.box) });
      node.classList.remove('busy');
      if (!out.ok) banner(s.entry.box, out.detail || out.error);
    },
  };
  s.entry.box.replaceChildren(
    h('div', { class: 'dialog-head' }, h('span', { class: 'dialog-app' }, h('img', { src: 'icon.svg', alt: '' })), h('h2', {}, def.title.text),
      iconButton(v.depth ? 'back' : 'close', v.depth ? 'Back' : 'Close', close)),
    h('form', { class: 'dialog-body', novalidate: true, id: 'form-' + s.id, on: { submit: e => { e.preventDefault(); send(); } } }, blocks(v.blocks, ctx)),
    h('div', { class: 'dialog-foot' },
      h('button', { type: 'button', class: 'btn', on: { click: close } }, def.close ? def.close.text : 'Cancel'),
      def.submit && h('button', { type: 'submit', class: 'btn primary', form: 'form-' + s.id }, def.submit.text)));
  restore(s.entry.box, typed);
  s.entry.box.querySelectorAll('textarea').forEach(x => x.addEventListener('keydown', e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); send(); } }));
  focusFirst(s.entry.box);
}

// snapshot and restore keep what was typed when a form is drawn again: a field is known by its block,
// its action and, for choices, its value.
const fields = box => [...box.querySelectorAll('.dialog-body input,.dialog-body textarea,.dialog-body select')].map(f => [
  f, [f.closest('.b')?.dataset.blockId, f.closest('[data-action-id]')?.dataset.actionId, /^(checkbox|radio)$/.test(f.type) ? f.value : ''].join(' ')]);
const snapshot = box => Object.fromEntries(fields(box).map(([f, key]) => [key, { value: f.value, checked: f.checked, chosen: f.multiple ? [...f.selectedOptions].map(o => o.value) : null }]));
function restore(box, typed) {
  for (const [f, key] of fields(box)) {
    const was = typed[key];
    if (!was) continue;
    if (/^(checkbox|radio)$/.test(f.type)) f.checked = was.checked;
    else if (f.multiple) for (const o of f.options) o.selected = (was.chosen || []).includes(o.value);
    else f.value = was.value;
  }
}

async function submit(v, s) {
  const box = s.entry.box;
  const button = box.querySelector('[type=submit]');
  if (!button || button.disabled) return;
  button.disabled = true;
  button.classList.add('busy');
  let out;
  try { out = await api('submit', { view_id: v.id, user: S.me, values: values(box) }); } catch { out = { ok: false, detail: 'The workspace cannot be reached.' }; }
  button.disabled = false;
  button.classList.remove('busy');
  if (out.ok) return;
  if (out.errors) redraw(v, s, out.errors);
  else banner(box, out.detail || out.error);
}

function banner(box, text) {
  box.querySelector('.banner')?.remove();
  box.querySelector('.dialog-head').after(h('div', { class: 'banner', role: 'alert' }, icon('warn'), ' ', text));
}

export function toast(text) {
  const el = h('div', { class: 'toast' }, text);
  document.getElementById('toasts').append(el);
  setTimeout(() => el.remove(), 5000);
}
