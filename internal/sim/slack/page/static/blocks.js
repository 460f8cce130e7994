// Block Kit: blocks and elements as DOM, and what a person chose in them.
import { h, icon, bytes } from './dom.js';
import * as t from './text.js';

// blocks renders a list of blocks. ctx: {act(element, block, chosen, node), errors, inView}.
export function blocks(list, ctx) {
  return h('div', { class: 'blocks' }, (list || []).map(b => block(b, ctx)));
}

function block(b, ctx) {
  const draw = drawers[b.type];
  const el = draw ? draw(b, ctx) : h('div', { class: 'b-unknown' }, 'unsupported block: ' + b.type);
  el.classList.add('b');
  el.dataset.blockId = b.block_id || '';
  return el;
}

const drawers = {
  header: b => h('h' + Math.min(6, 2 + (b.level || 1)), { class: 'b-header' }, t.plain(b.text.text)),
  divider: () => h('div', { role: 'separator' }, h('hr')),
  section,
  context: b => h('div', { class: 'b-context' }, b.elements.map(e =>
    e.type === 'image' ? picture(e, 'b-context-image') : h('span', { class: 'b-context-text' }, t.textObject(e)))),
  actions: (b, ctx) => h('div', { class: 'b-actions' }, b.elements.map(e => element(e, b, ctx))),
  context_actions: (b, ctx) => h('div', { class: 'b-actions' }, b.elements.map(e => element(e, b, ctx))),
  image: b => h('figure', { class: 'b-image' }, b.title && h('figcaption', {}, t.plain(b.title.text)), picture(b)),
  input,
  rich_text: b => h('div', { class: 'b-rich' }, b.elements.map(e => rich(e))),
  markdown: b => h('div', { class: 'b-markdown md' }, t.markdown(b.text)),
  table,
  file: b => h('div', { class: 'b-context' }, icon('file'), ' remote file ', b.external_id),
  video: b => h('div', {}, t.linkNode(b.title_url || b.video_url, b.title.text)),
  task_card: b => h('div', { class: 'b-task' }, h('span', { class: 'b-task-state ' + (b.status || '') }, b.status || 'pending'), ' ', b.title),
  plan: (b, ctx) => h('div', { class: 'b-plan' }, h('b', {}, b.title), (b.tasks || []).map(x => block({ ...x, type: 'task_card' }, ctx))),
};

function section(b, ctx) {
  const text = h('div', { class: 'b-section-main' },
    b.text && clamp(h('div', { class: 'b-text' }, t.textObject(b.text)), b),
    b.fields && h('div', { class: 'b-fields' }, b.fields.map(f => h('div', { class: 'b-field' }, t.textObject(f)))));
  return h('div', { class: 'b-section' }, text, b.accessory && h('div', { class: 'b-accessory' },
    b.accessory.type === 'image' ? picture(b.accessory, 'b-accessory-image') : element(b.accessory, b, ctx)));
}

// clamp folds a long section as Slack does, unless it says expand.
function clamp(el, b) {
  if (b.expand || b.text.text.length < 700) return el;
  el.classList.add('folded');
  const more = h('button', { type: 'button', class: 'link', on: { click: () => { el.classList.remove('folded'); more.remove(); } } }, 'Show more');
  return h('div', {}, el, more);
}

// picture shows an image that this server has; others are not loaded, but named.
function picture(b, cls = '') {
  let src = '';
  if (b.slack_file) src = '/lab/files/' + (b.slack_file.id || (/-(F\w+)\//.exec(b.slack_file.url || '') || [])[1]);
  else if (b.image_url && (b.image_url.startsWith(location.origin + '/') || b.image_url.startsWith('data:image/'))) src = b.image_url;
  if (src) return h('img', { class: 'picture ' + cls, src, alt: b.alt_text });
  return h('span', { class: 'picture-missing' + (cls ? ' tiny' : ''), role: 'img', 'aria-label': b.alt_text }, icon('file'), ' ',
    t.linkNode(b.image_url || '', b.alt_text));
}

function table(b) {
  const cell = (c, i, head) => {
    const set = (b.column_settings || [])[i] || {};
    const body = c.type === 'rich_text' ? c.elements.map(e => rich(e)) : String(c.text ?? c.value ?? '');
    return h(head ? 'th' : 'td', { style: { textAlign: set.align || 'left', whiteSpace: set.is_wrapped ? 'normal' : '' } }, body);
  };
  const rows = b.rows.map((r, n) => h('tr', {}, r.map((c, i) => cell(c, i, n === 0))));
  return h('div', { class: 'table-box', tabindex: '0' }, h('table', {}, h('thead', {}, rows[0]), h('tbody', {}, rows.slice(1))));
}

// ---- rich text ----

const bullets = [['disc', 'circle', 'square'], ['decimal', 'lower-alpha', 'lower-roman']]; // by depth

function rich(e) {
  switch (e.type) {
    case 'rich_text_section': return h('div', { class: 'r-section' }, e.elements.map(richInline));
    case 'rich_text_quote': return h('blockquote', {}, e.elements.map(richInline));
    case 'rich_text_preformatted': return t.codeBlock(e.elements.map(x => x.type === 'link' ? (x.text || x.url) : x.text));
    case 'rich_text_list': return h(e.style === 'ordered' ? 'ol' : 'ul', { class: 'r-list', style: { marginLeft: (e.indent || 0) * 24 + 'px', listStyleType: bullets[e.style === 'ordered' ? 1 : 0][(e.indent || 0) % 3] }, start: e.offset ? String(e.offset + 1) : undefined },
      e.elements.map(x => h('li', {}, rich(x))));
  }
  return h('span', {}, e.type);
}

function richInline(e) {
  switch (e.type) {
    case 'text': return styled(e.text, e.style);
    case 'link': return styledNode(t.linkNode(e.url, e.text), e.style);
    case 'user': return t.userChip(e.user_id);
    case 'usergroup': return t.groupChip(e.usergroup_id);
    case 'channel': return t.channelChip(e.channel_id);
    case 'broadcast': return t.broadcastChip(e.range);
    case 'emoji': return t.emojiNode(e.name);
    case 'date': return t.dateNode(e.timestamp, e.format || '{date}', e.fallback || '');
    case 'color': return h('span', {}, h('span', { class: 'swatch', style: { background: /^#[0-9a-f]{3,8}$/i.test(e.value) ? e.value : 'none' } }), e.value);
  }
  return '';
}

function styled(text, style) {
  const lines = String(text).split('\n');
  return styledNode(h('span', {}, lines.flatMap((l, i) => i ? [h('br'), l] : [l])), style);
}

function styledNode(node, style = {}) {
  for (const [k, tag] of [['code', 'code'], ['bold', 'b'], ['italic', 'i'], ['strike', 's']]) if (style[k]) node = h(tag, {}, node);
  return node;
}

// ---- inputs ----

let serial = 0;
const fresh = p => p + (++serial);

function input(b, ctx) {
  const id = fresh('in-');
  const err = ctx.errors && ctx.errors[b.block_id];
  const node = element(b.element, b, ctx, id);
  const hint = b.hint && h('div', { class: 'b-hint', id: id + '-hint' }, t.plain(b.hint.text));
  const target = node.matches('input,textarea,select') ? node : node.querySelector('input,textarea,select') || node;
  const group = b.element.type === 'radio_buttons' || b.element.type === 'checkboxes';
  const described = [hint && id + '-hint', err && id + '-err'].filter(Boolean).join(' ');
  if (described) target.setAttribute('aria-describedby', described);
  if (err) target.setAttribute('aria-invalid', 'true');
  const label = [t.plain(b.label.text), b.optional && h('span', { class: 'optional' }, ' (optional)')];
  return h(group ? 'fieldset' : 'div', { class: 'b-input' + (err ? ' bad' : '') },
    group ? h('legend', {}, label) : h('label', { for: id }, label), node, hint,
    err && h('div', { class: 'b-error', id: id + '-err', role: 'alert' }, icon('warn'), ' ', err));
}

const opts = e => [...(e.options || []), ...(e.option_groups || []).flatMap(g => g.options)];

// element renders an interactive element. Inside input blocks it only holds a value; elsewhere a
// change is an action.
export function element(e, b, ctx, id) {
  const acts = b.type !== 'input' || b.dispatch_action;
  const node = draw(e, b, ctx, id, chosen => acts && ctx.act && ctx.act(e, b, chosen, node));
  node.dataset.actionId = e.action_id || '';
  node.dataset.elementType = e.type;
  node.elementSpec = e;
  if (e.accessibility_label) node.setAttribute('aria-label', e.accessibility_label);
  if (e.focus_on_load) node.dataset.focus = '1';
  return node;
}

function draw(e, b, ctx, id, act) {
  const hint = e.placeholder ? e.placeholder.text : '';
  switch (e.type) {
    case 'button': case 'workflow_button': case 'icon_button':
      return h('button', { type: 'button', class: 'btn ' + (e.style || ''), title: e.text.text.length > 30 ? e.text.text : undefined, on: { click: () => act() } }, t.plain(e.text.text));
    case 'overflow': return overflow(e, act);
    case 'feedback_buttons': return h('span', { class: 'feedback' }, [e.positive_button, e.negative_button].map(x =>
      h('button', { type: 'button', class: 'btn', 'aria-label': x.accessibility_label || x.text.text, on: { click: () => act(x.value) } }, t.plain(x.text.text))));
    case 'plain_text_input': case 'rich_text_input': {
      const props = { id, class: 'field', placeholder: hint, maxlength: String(e.max_length || 3000), value: e.initial_value || '', spellcheck: 'false' };
      if (!e.multiline && e.type === 'plain_text_input') return h('input', { type: 'text', ...props, on: { keydown: k => k.key === 'Enter' && act(k.target.value) } });
      return h('textarea', { ...props, rows: '4' }, typeof e.initial_value === 'string' ? e.initial_value : '');
    }
    case 'email_text_input': return h('input', { id, type: 'email', class: 'field', placeholder: hint, value: e.initial_value || '' });
    case 'url_text_input': return h('input', { id, type: 'url', class: 'field', placeholder: hint, value: e.initial_value || '' });
    case 'number_input': return h('input', { id, type: 'text', inputmode: 'decimal', class: 'field', placeholder: hint, value: e.initial_value || '' });
    case 'datepicker': return h('input', { id, type: 'date', class: 'field short', value: e.initial_date || '', on: { change: x => act(x.target.value) } });
    case 'timepicker': return h('input', { id, type: 'time', class: 'field short', value: e.initial_time || '', on: { change: x => act(x.target.value) } });
    case 'datetimepicker': return h('input', { id, type: 'datetime-local', class: 'field short', on: { change: x => act(Date.parse(x.target.value) / 1000) } });
    case 'radio_buttons': case 'checkboxes': return choices(e, act);
  }
  if (/select$/.test(e.type)) return select(e, id, ctx, act);
  return h('span', { class: 'b-unknown' }, 'unsupported element: ' + e.type);
}

function choices(e, act) {
  const radio = e.type === 'radio_buttons';
  const name = fresh('opt-');
  const chosen = new Set(radio ? [e.initial_option && e.initial_option.value] : (e.initial_options || []).map(o => o.value));
  const box = h('div', { class: 'choices', role: radio ? 'radiogroup' : 'group' });
  for (const o of e.options) {
    const inp = h('input', { type: radio ? 'radio' : 'checkbox', name, value: o.value, checked: chosen.has(o.value), on: { change: () => act(valueOf(box)) } });
    inp.checked = chosen.has(o.value);
    box.append(h('label', { class: 'choice' }, inp, h('span', {}, t.textObject(o.text), o.description && h('small', {}, t.textObject(o.description)))));
  }
  return box;
}

function select(e, id, ctx, act) {
  const multi = e.type.startsWith('multi_');
  const kind = e.type.replace('multi_', '').replace('_select', '');
  const el = h('select', { id, class: 'field select', multiple: multi, on: { change: () => act(valueOf(el)) } });
  if (!multi) el.append(h('option', { value: '' }, e.placeholder ? e.placeholder.text : 'Choose an option'));
  const put = (o, into) => into.append(h('option', { value: o.value }, o.text.text + (o.description ? ' · ' + o.description.text : '')));
  if (kind === 'users') ctx.people().forEach(u => put({ value: u.id, text: { text: u.name } }, el));
  else if (kind === 'channels' || kind === 'conversations') ctx.channels().forEach(c => put({ value: c.id, text: { text: '#' + c.name } }, el));
  else {
    (e.options || []).forEach(o => put(o, el));
    for (const g of e.option_groups || []) {
      const og = h('optgroup', { label: g.label.text });
      g.options.forEach(o => put(o, og));
      el.append(og);
    }
  }
  const first = e.initial_option ? [e.initial_option.value] : (e.initial_options || []).map(o => o.value);
  const init = new Set([...first, e.initial_user, e.initial_channel, e.initial_conversation, ...(e.initial_users || []), ...(e.initial_channels || [])].filter(Boolean));
  for (const o of el.options) if (init.has(o.value)) o.selected = true;
  return el;
}

function overflow(e, act) {
  const button = h('button', { type: 'button', class: 'btn icon-only', 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-label': 'More actions' }, icon('more'));
  const box = h('span', { class: 'overflow' }, button);
  button.addEventListener('click', () => popup(button, e.options.map(o => ({ label: t.plain(o.text.text), note: o.description && o.description.text, run: () => act(o.value) }))));
  return box;
}

// popup shows a menu under a button: arrows move, Escape closes, focus returns to the button.
export function popup(button, items, cls = '') {
  closePopup();
  const host = document.getElementById('overlay');
  const menu = h('div', { class: 'menu ' + cls, role: 'menu' });
  for (const it of items) {
    if (it.title) { menu.append(h('div', { class: 'menu-title' }, it.title)); continue; }
    menu.append(h('button', { type: 'button', role: it.checked === undefined ? 'menuitem' : 'menuitemradio', 'aria-checked': it.checked === undefined ? undefined : String(it.checked), class: 'menu-item', tabindex: '-1', on: { click: () => { closePopup(); button.focus(); it.run(); } } },
      it.lead, h('span', { class: 'menu-text' }, h('span', { class: 'menu-label' }, it.label), it.note && h('small', {}, it.note)), it.tail));
  }
  host.append(menu);
  place(menu, button);
  button.setAttribute('aria-expanded', 'true');
  const all = [...menu.querySelectorAll('.menu-item')];
  (all.find(x => x.getAttribute('aria-checked') === 'true') || all[0])?.focus();
  const key = k => {
    const at = all.indexOf(document.activeElement);
    if (k.key === 'Escape') { k.preventDefault(); k.stopPropagation(); closePopup(); button.focus(); }
    else if (k.key === 'ArrowDown') { k.preventDefault(); all[(at + 1) % all.length].focus(); }
    else if (k.key === 'ArrowUp') { k.preventDefault(); all[(at - 1 + all.length) % all.length].focus(); }
    else if (k.key === 'Tab') { closePopup(); }
  };
  const away = m => { if (!menu.contains(m.target) && !button.contains(m.target)) closePopup(); };
  menu.addEventListener('keydown', key);
  document.addEventListener('mousedown', away);
  open = () => { menu.remove(); document.removeEventListener('mousedown', away); button.setAttribute('aria-expanded', 'false'); open = null; };
}

let open = null;
export function closePopup() { if (open) open(); }
export const popupOpen = () => !!open;

export function place(box, button) {
  const frame = document.getElementById('app').getBoundingClientRect();
  const at = button.getBoundingClientRect();
  const w = box.offsetWidth, tall = box.offsetHeight;
  const left = Math.max(8, Math.min(at.left - frame.left, frame.width - w - 8));
  const below = at.bottom - frame.top + 4;
  const top = below + tall > frame.height - 8 ? Math.max(8, at.top - frame.top - tall - 4) : below;
  box.style.left = left + 'px';
  box.style.top = top + 'px';
}

// valueOf reads what a person chose or typed.
export function valueOf(node) {
  const type = node.dataset.elementType;
  if (type === 'radio_buttons') return node.querySelector('input:checked')?.value ?? null;
  if (type === 'checkboxes') return [...node.querySelectorAll('input:checked')].map(i => i.value);
  if (type && type.startsWith('multi_')) return [...node.selectedOptions].map(o => o.value);
  if (type === 'datetimepicker') return node.value ? Date.parse(node.value) / 1000 : null;
  return node.value ?? null;
}

const holds = /(_input|_select|picker|radio_buttons|checkboxes)$/;

// values collects the state of all inputs under root, as /lab/submit takes it.
export function values(root) {
  const out = {};
  for (const node of root.querySelectorAll('[data-element-type]')) {
    if (!holds.test(node.dataset.elementType)) continue;
    const b = node.closest('.b');
    (out[b.dataset.blockId] ||= {})[node.dataset.actionId] = valueOf(node);
  }
  return out;
}

// ---- files ----

export function fileCard(f, open) {
  if (f.mimetype.startsWith('image/')) {
    return h('figure', { class: 'file image' }, h('figcaption', {}, f.title, ' ', h('span', { class: 'muted' }, bytes(f.size))),
      h('a', { href: f.url, target: '_blank' }, h('img', { src: f.url, alt: f.alt_text || f.title, width: f.width || undefined, height: f.height || undefined, on: { load: () => document.dispatchEvent(new Event('grown')) } })));
  }
  const textual = f.mimetype.startsWith('text/') || /json/.test(f.mimetype);
  const card = h('div', { class: 'file' },
    h('div', { class: 'file-head' }, h('span', { class: 'file-icon' }, icon('file')),
      h('span', { class: 'file-name' }, h('b', {}, f.title), h('small', {}, f.name, ' · ', bytes(f.size))),
      textual && h('button', { type: 'button', class: 'btn small', on: { click: () => open(f) } }, 'Open'),
      h('a', { class: 'btn small', href: f.url + '?download', download: f.name }, 'Download')));
  if (textual) {
    const view = h('div', { class: 'file-preview md' + (f.size > 600 ? ' tall' : ''), inert: true });
    card.append(view);
    loadText(f).then(text => { view.append(h('div', {}, fileBody(f, text))); requestAnimationFrame(() => view.classList.toggle('cut', view.scrollHeight > view.clientHeight)); document.dispatchEvent(new Event('grown')); }).catch(() => view.remove());
  }
  return card;
}

const texts = new Map();
export async function loadText(f) {
  if (!texts.has(f.id)) texts.set(f.id, fetch(f.url).then(r => r.text()));
  return texts.get(f.id);
}

export function fileBody(f, text) {
  return f.filetype === 'markdown' ? t.markdown(text) : h('pre', {}, text);
}
