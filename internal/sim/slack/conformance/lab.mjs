// What the scripts that drive official clients share: the way to play people, to wait, and to end in time.
import assert from 'node:assert/strict';

export const { SLACK_APP_TOKEN, SLACK_BOT_TOKEN, SLACK_API_URL } = process.env;
export const lab = SLACK_API_URL.replace('/api/', '/lab/');
export const C = 'C0LAB00001';
export const me = 'U0ONCALL01';

// limit ends the process when it takes longer: some clients wait for ever.
export const limit = ms => { setTimeout(() => { console.error('timeout'); process.exit(2); }, ms).unref(); };
export const sleep = ms => new Promise(r => setTimeout(r, ms));
export const step = name => console.log('step', name);
export const plain = text => ({ type: 'plain_text', text });

// act plays a person, or breaks something.
export async function act(path, body) {
  const res = await fetch(lab + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  const out = await res.json();
  assert.equal(res.status, 200, `${path}: ${JSON.stringify(out)}`);
  return out;
}

export const read = async path => (await fetch(lab + path)).json();
export const messages = (user = '') => read(`channels/${C}/messages?user=${user}`);
export const shown = async (text, user) => (await messages(user)).find(m => m.text === text);

export async function until(what, ok) {
  for (let i = 0; i < 800; i++) { const v = await ok(); if (v) return v; await sleep(25); }
  assert.fail('never: ' + what);
}

// within fails when a promise does not settle in time.
export const within = (ms, what, p) => Promise.race([p, sleep(ms).then(() => assert.fail(`${what} did not settle in ${ms} ms`))]);

export const sockets = async () => (await read(`state?user=${me}`)).sockets;

// recover breaks the connection and waits for the client's next one; a command must work on it.
export async function recover(fault, answer) {
  const before = (await read('requests?only=hello')).length;
  await act('fault', fault);
  await until('a new connection after ' + JSON.stringify(fault), async () => (await read('requests?only=hello')).length > before && await sockets() === 1);
  const out = await act('command', { channel: 'incidents', user: me, text: 'after ' + fault.kind });
  assert.equal(out.ok, true, JSON.stringify(out));
  assert.equal(out.ephemerals[0].text, answer('after ' + fault.kind));
}

// idle waits and demands that no connection was lost meanwhile.
export async function idle(ms) {
  const hellos = (await read('requests?only=hello')).length;
  const open = await sockets();
  await sleep(ms);
  assert.equal((await read('requests?only=hello')).length, hellos, 'no reconnect while idle');
  assert.equal(await sockets(), open, 'no connection lost while idle');
  step(`idle ${ms} ms`);
}
