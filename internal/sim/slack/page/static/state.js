// What the page knows, kept up to date by the event stream. Per-browser settings live in
// localStorage, everything else on the server, so that a reload loses nothing.
import { useDirectory } from './text.js';

export const S = {
  me: sessionStorage.getItem('me') || localStorage.getItem('me') || 'U0ONCALL01',
  channel: '', thread: '',
  team: {}, channels: [], users: new Map(), groups: [], messages: new Map(), views: [], statuses: new Map(),
  direct: null, home: null, sockets: 0, limits: {}, pages: { total: 0, entries: [] }, command: '/ghost', shortcuts: [], connected: false, away: false,
  warnings: new Map(), // message ts -> action ids whose click failed
};

const listeners = new Set();
export const onChange = f => listeners.add(f);
export const changed = what => { for (const f of listeners) f(what); };

export async function api(path, body) {
  const init = body === undefined ? {} : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const res = await fetch('/lab/' + path, init);
  return res.json();
}

// drafts and the like are remembered for each person apart.
// actAs changes who sits at this tab. Each tab has its own person; a new one starts with the last.
export function actAs(id) {
  S.me = id; S.views = []; S.warnings.clear();
  sessionStorage.setItem('me', id);
  localStorage.setItem('me', id);
}

export const remember = (key, value) => value === '' || value === null ? localStorage.removeItem(S.me + ' ' + key) : localStorage.setItem(S.me + ' ' + key, value);
export const recall = key => localStorage.getItem(S.me + ' ' + key) || '';

let stream;
let epoch = 0;
let reads = 0;
let ready = false;
let queue = []; // what came since the state that is being read was asked for

// connect opens the event stream first and reads the state then: nothing falls between. Events are
// applied by ts, so that seeing one twice does no harm.
export function connect() {
  const mine = ++epoch;
  if (stream) stream.close();
  stream = new EventSource('/lab/events?user=' + S.me);
  queue = []; ready = false;
  stream.addEventListener('ready', () => { queue = []; read(mine); });
  stream.onmessage = m => event(JSON.parse(m.data));
  stream.onerror = () => { if (S.connected) { S.connected = false; changed('top'); } };
}

// read takes the whole state. Events wait until it is here: it may be older than they are.
async function read(mine) {
  const turn = ++reads;
  ready = false;
  const state = await api('state?user=' + S.me).catch(() => null);
  if (mine !== epoch || turn !== reads) return;
  if (!state) { setTimeout(() => { if (mine === epoch && turn === reads) read(mine); }, 1000); return; }
  const people = state.users.filter(u => !u.is_bot && !u.deleted);
  if (people.length && !people.some(u => u.id === S.me)) { actAs(people[0].id); connect(); return; }
  take(state);
  ready = true;
  const came = queue;
  queue = [];
  came.filter(e => e.kind !== 'channel').forEach(event);
  if (came.some(e => e.kind === 'channel')) read(mine); // once for all of them
  changed('all');
}

function event(e) {
  if (ready) apply(e); else queue.push(e);
}

function take(st) {
  S.team = st.team; S.users = new Map(st.users.map(u => [u.id, u])); S.groups = st.groups;
  S.channels = st.channels.filter(c => !c.is_archived && c.members.includes(S.me));
  S.direct = st.direct || null; S.home = st.home || null;
  S.messages = new Map(Object.entries(st.messages));
  S.views = st.views; S.sockets = st.sockets; S.limits = st.limits; S.pages = st.pages; S.command = st.command; S.shortcuts = st.shortcuts || [];
  S.statuses = new Map(st.statuses.map(s => [s.channel + ' ' + s.thread_ts, s]));
  S.connected = true;
  notice(S.sockets > 0);
  useDirectory({ users: S.users, groups: new Map(S.groups.map(g => [g.id, g])), channels: new Map(st.channels.map(c => [c.id, c])), me: S.me });
}

function apply(e) {
  switch (e.kind) {
    case 'message': case 'ephemeral': case 'message_changed': case 'reaction':
      put(e.full);
      if (e.kind === 'message') { S.statuses.delete(e.channel + ' ' + (e.full.thread_ts || '')); announce(e.full); }
      changed('messages ' + e.channel);
      break;
    case 'message_deleted': {
      const list = S.messages.get(e.channel);
      if (list) S.messages.set(e.channel, list.filter(m => m.ts !== e.ts));
      changed('messages ' + e.channel);
      break;
    }
    case 'view': case 'view_changed':
      S.views = S.views.filter(v => v.id !== e.open.id).concat(e.open).sort((a, b) => a.depth - b.depth);
      changed('views');
      break;
    case 'view_closed': S.views = S.views.filter(v => v.id !== e.open.id); changed('views'); break;
    case 'home': S.home = e.open; changed('home'); break;
    case 'status':
      if (e.status.status) S.statuses.set(e.status.channel + ' ' + e.status.thread_ts, e.status);
      else S.statuses.delete(e.status.channel + ' ' + e.status.thread_ts);
      changed('status');
      break;
    case 'sockets': S.sockets = Number(e.text); notice(S.sockets > 0, 1500); changed('top'); break;
    case 'pages': api('pages').then(p => { S.pages = p; changed('top'); }); break;
    case 'channel': read(epoch); break;
    case 'click_failed': S.warnings.set(e.ts, e.text); changed('messages ' + e.channel); break;
  }
}

// notice keeps S.away: a socket that is recycled comes back at once and is not worth a word.
let missing;
function notice(here, patience = 0) {
  clearTimeout(missing);
  const set = away => { if (S.away !== away) { S.away = away; changed('top'); } };
  if (here) set(false); else missing = setTimeout(() => set(S.sockets === 0), patience);
}

function put(m) {
  let list = S.messages.get(m.channel);
  if (!list) {
    if (m.channel !== 'D' + S.me.slice(1)) return;
    S.messages.set(m.channel, list = []);
  }
  const at = list.findIndex(x => x.ts === m.ts);
  if (at >= 0) list[at] = m; else { list.push(m); list.sort((a, b) => a.ts < b.ts ? -1 : 1); }
}

// announce lets screen readers hear new messages in the open channel: the fallback text, as a
// notification would.
function announce(m) {
  if (m.channel !== S.channel || m.user === S.me) return;
  const who = S.users.get(m.user);
  document.getElementById('spoken').textContent = (who ? who.real_name : 'Slack') + ': ' + m.text;
}

export const channelOf = id => S.channels.find(c => c.id === id) || (S.direct && S.direct.id === id ? S.direct : null);
export const listOf = id => S.messages.get(id) || [];

// mentionsMe: does this message notify the person at the keyboard?
export const mentionsMe = m => (m.paged || []).includes(S.me);

// unread counts what came after the last look, in the channel itself.
export function unread(id) {
  const seen = recall('read ' + id) || localStorage.getItem('born') || '0';
  let n = 0, at = 0;
  for (const m of listOf(id)) {
    if (m.ts <= seen || m.user === S.me || m.ephemeral) continue;
    if (mentionsMe(m)) at++;
    if (!m.thread_ts || m.broadcast) n++;
  }
  return { n, at };
}

export function markRead(id) {
  const list = listOf(id);
  if (list.length) remember('read ' + id, list[list.length - 1].ts);
}

if (!localStorage.getItem('born')) localStorage.setItem('born', (Date.now() / 1000 - 60).toFixed(6));
