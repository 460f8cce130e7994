// Small helpers to build the page. Text always goes in as text nodes: nothing a bot or a person
// wrote is ever parsed as HTML.

export function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (k === 'class') el.className = v;
    else if (k === 'on') for (const [e, f] of Object.entries(v)) el.addEventListener(e, f);
    else if (k === 'data') for (const [d, x] of Object.entries(v)) el.dataset[d] = x;
    else if (k === 'style') Object.assign(el.style, v);
    else if (k in el && typeof v !== 'string') el[k] = v;
    else el.setAttribute(k, v === true ? '' : v);
  }
  add(el, children);
  return el;
}

export function add(el, children) {
  for (const c of [children].flat(Infinity)) {
    if (c === undefined || c === null || c === false) continue;
    el.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
  return el;
}

const paths = {
  hash: 'M4 9h16M4 15h16M10 3 8 21M16 3l-2 18',
  lock: 'M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3',
  bell: 'M6 9a6 6 0 0 1 12 0c0 7 3 7 3 9H3c0-2 3-2 3-9M10 21h4',
  phone: 'M7 2h10v20H7zM11 18.5h2',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M5 19l1.5-1.5M17.5 6.5 19 5',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  lab: 'M9 3h6M10 3v6L4.5 19a1.5 1.5 0 0 0 1.3 2h12.4a1.5 1.5 0 0 0 1.3-2L14 9V3M7 15h10',
  close: 'M6 6l12 12M18 6 6 18',
  back: 'M15 5l-7 7 7 7',
  send: 'M3 11.5 21 3l-6 18-4-7.5z',
  thread: 'M5 4h14v12H9l-4 4z',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  link: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1',
  eye: 'M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6',
  voice: 'M4 10v4h4l5 4V6l-5 4zM16 9a4 4 0 0 1 0 6M18.5 6.5a8 8 0 0 1 0 11',
  pin: 'M9 3h6l-1 7 4 3v2H6v-2l4-3zM12 15v6',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  smile: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M8 14a5 5 0 0 0 8 0M9 9h.01M15 9h.01',
  file: 'M6 2h8l5 5v15H6zM14 2v5h5',
  warn: 'M12 3 2 20h20zM12 10v4M12 17h.01',
  people: 'M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8M2 21c0-4 3-7 7-7s7 3 7 7M16 3.5a4 4 0 0 1 0 7M17 14.5c3 .7 5 3.2 5 6.5',
  check: 'M4 12.5 9.5 18 20 6',
  menu: 'M4 6h16M4 12h16M4 18h16',
  down: 'M6 9l6 6 6-6',
  home: 'M4 11 12 4l8 7v9h-5v-6H9v6H4z',
};

export function icon(name, cls = '') {
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon ' + cls);
  svg.setAttribute('aria-hidden', 'true');
  const p = document.createElementNS(ns, 'path');
  p.setAttribute('d', paths[name]);
  svg.append(p);
  return svg;
}

export function iconButton(name, label, onclick, cls = '') {
  return h('button', { type: 'button', class: 'icon-button ' + cls, 'aria-label': label, title: label, on: { click: onclick } }, icon(name));
}

const colours = ['#2d7d6f', '#8a4fbf', '#c2562d', '#2767b0', '#a3356b', '#5b7d1e', '#8c6a16', '#4457b8', '#b03a3a', '#35788c'];

export function avatar(user, size = '') {
  const el = h('span', { class: 'avatar ' + size, 'aria-hidden': 'true' });
  if (user && user.name === 'ghost') {
    el.classList.add('ghost');
    el.append(h('img', { src: 'icon.svg', alt: '' }));
    return el;
  }
  const name = user ? user.real_name || user.name : '?';
  let sum = 0;
  for (const c of user ? user.id : '?') sum = (sum * 31 + c.charCodeAt(0)) >>> 0;
  el.style.background = colours[sum % colours.length];
  const words = name.replace(/[()]/g, '').split(/[\s-]+/).filter(Boolean);
  el.textContent = ((words[0] || '?')[0] + (words.length > 1 ? words[words.length - 1][0] : '')).toUpperCase();
  return el;
}

// ---- focus ----

// bookmark remembers an element of a message, so that it is found again after the message was drawn
// anew. The returned function gives the element, else the list that it was in, else null.
export function bookmark(el) {
  const msg = el && el.closest('[data-ts]');
  const pane = el && el.closest('#channel, #thread');
  const action = el && el.closest('[data-action-id]')?.dataset.actionId;
  const label = el && el.getAttribute('aria-label');
  return () => {
    if (el && el.isConnected) return el;
    if (!pane) return null;
    const again = msg && pane.querySelector(`[data-ts="${msg.dataset.ts}"]`);
    const all = again ? [...again.querySelectorAll(stops)] : [];
    return all.find(x => action ? x.closest('[data-action-id]')?.dataset.actionId === action : label && x.getAttribute('aria-label') === label) || pane.querySelector('.feed');
  };
}

// steady redraws and keeps the focus where it was.
export function steady(redraw) {
  const at = document.activeElement;
  const find = at && at.closest('[data-ts]') ? bookmark(at) : null;
  redraw();
  if (find && !at.isConnected) find()?.focus({ preventScroll: true });
}

export const stops = 'a[href],button:not([disabled]),input:not([disabled]),textarea,select,[tabindex="0"]';

// rove makes a toolbar one stop of the Tab key; arrows move inside.
export function rove(bar) {
  const all = [...bar.querySelectorAll('button')];
  const only = at => all.forEach(b => { b.tabIndex = b === at ? 0 : -1; });
  only(all[0]);
  bar.addEventListener('focusin', e => only(e.target.closest('button') || all[0]));
  bar.addEventListener('keydown', e => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
  });
  return bar;
}

// ---- times ----

export const when = ts => new Date(parseFloat(ts) * 1000);

const fmt = o => new Intl.DateTimeFormat(undefined, o);
const clock = fmt({ hour: 'numeric', minute: '2-digit' });
const clockSecs = fmt({ hour: 'numeric', minute: '2-digit', second: '2-digit' });
const dayLong = fmt({ weekday: 'long', month: 'long', day: 'numeric' });
const full = fmt({ dateStyle: 'full', timeStyle: 'medium' });
const dates = {
  date: fmt({ month: 'long', day: 'numeric', year: 'numeric' }),
  date_short: fmt({ month: 'short', day: 'numeric', year: 'numeric' }),
  date_long: fmt({ weekday: 'long', month: 'long', day: 'numeric', year: 'numeric' }),
};

export const timeText = d => clock.format(d);
export const fullText = d => isNaN(d) ? '' : full.format(d);

export function dayText(d) {
  const days = Math.round((startOfDay(new Date()) - startOfDay(d)) / 864e5);
  if (days === 0) return 'Today';
  if (days === 1) return 'Yesterday';
  return dayLong.format(d);
}

const startOfDay = d => new Date(d.getFullYear(), d.getMonth(), d.getDate());

export function ago(d) {
  const s = Math.round((Date.now() - d) / 1000);
  const rtf = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
  if (Math.abs(s) < 45) return s < -5 ? rtf.format(-s, 'second') : 'just now';
  if (Math.abs(s) < 3600) return rtf.format(-Math.round(s / 60), 'minute');
  if (Math.abs(s) < 86400) return rtf.format(-Math.round(s / 3600), 'hour');
  return rtf.format(-Math.round(s / 86400), 'day');
}

// slackDate expands a date format such as "{date_short_pretty} at {time}" in the reader's own time.
export function slackDate(seconds, format, fallback) {
  const d = new Date(Number(seconds) * 1000);
  if (isNaN(d)) return fallback;
  const pretty = base => {
    const day = dayText(d);
    return day === 'Today' || day === 'Yesterday' ? day.toLowerCase() : dates[base].format(d);
  };
  return format.replace(/\{(\w+)\}/g, (all, name) => {
    switch (name) {
      case 'time': return clock.format(d);
      case 'time_secs': return clockSecs.format(d);
      case 'ago': return ago(d);
      case 'date_num': return d.toISOString().slice(0, 10);
      case 'date': case 'date_short': case 'date_long': return dates[name].format(d);
      case 'date_pretty': return pretty('date');
      case 'date_short_pretty': return pretty('date_short');
      case 'date_long_pretty': return pretty('date_long');
    }
    return all;
  });
}

// liveTime is an element whose relative time stays right.
export function liveTime(d, prefix = '') {
  return h('time', { datetime: d.toISOString(), title: fullText(d), data: { ago: String(+d), prefix } }, prefix + ago(d));
}

export function refreshTimes() {
  for (const el of document.querySelectorAll('time[data-ago]')) {
    const text = el.dataset.prefix + ago(new Date(Number(el.dataset.ago)));
    if (el.textContent !== text) el.textContent = text;
  }
}

export function bytes(n) {
  if (n < 1000) return n + ' B';
  if (n < 1e6) return (n / 1e3).toFixed(n < 1e4 ? 1 : 0) + ' kB';
  return (n / 1e6).toFixed(1) + ' MB';
}
