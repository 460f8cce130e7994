// Drives the Socket Mode client, as published, without Bolt above it: envelopes, acknowledgements,
// and every way of losing a connection. Prints "socket ok" at the end; anything else is a failure.
import assert from 'node:assert/strict';
import { SocketModeClient } from '@slack/socket-mode';
import { C, SLACK_API_URL, SLACK_APP_TOKEN, act, idle, limit, me, read, recover, shown, sleep, sockets, step, until, within } from './lab.mjs';

limit(150_000);
const clientOptions = { slackApiUrl: SLACK_API_URL };
const client = new SocketModeClient({ appToken: SLACK_APP_TOKEN, logLevel: 'error', clientOptions });
const seen = [];
let deaf = false;
client.on('slack_event', async ({ ack, body, type, envelope_id, retry_num, accepts_response_payload }) => {
  const event = body?.event;
  if (event?.bot_id) return ack();
  seen.push({ type, envelope_id, retry: retry_num, text: event?.text, id: body?.event_id, accepts: accepts_response_payload });
  if (deaf) return;
  await ack(type === 'slash_commands' ? { text: 'heard ' + body.text } : undefined);
});
await within(10_000, 'start', client.start());
assert.equal(await sockets(), 1);
step('start');

const answer = text => 'heard ' + text;
let out = await act('command', { channel: 'incidents', user: me, text: 'x' });
assert.equal(out.ephemerals[0].text, 'heard x');
assert.equal(seen[0].accepts, true);
await act('message', { channel: C, user: me, text: 'hello' });
const first = await until('the event', () => seen.find(e => e.text === 'hello'));
assert.deepEqual([first.type, first.accepts], ['events_api', false]);
step('envelopes and acknowledgements');

// A command that nobody acknowledges fails visibly after three seconds, an event comes again.
deaf = true;
out = await act('command', { channel: 'incidents', user: me, text: 'anybody' });
assert.deepEqual([out.ok, out.error], [false, 'operation_timeout']);
assert.ok(out.ack_ms >= 3000);
deaf = false;
await act('fault', { kind: 'lose_acks', times: 1 });
await act('message', { channel: C, user: me, text: 'again' });
await until('the second delivery', () => seen.filter(e => e.text === 'again').length === 2);
const twice = seen.filter(e => e.text === 'again');
assert.equal(twice[0].id, twice[1].id, 'the same event');
assert.equal(twice[1].retry, 1);
step('deadline and redelivery');

await recover({ kind: 'disconnect', reason: 'refresh_requested' }, answer);
await recover({ kind: 'drop' }, answer);
await act('fault', { kind: 'disconnect', reason: 'link_disabled' });
await until('nobody connected', async () => await sockets() === 0);
out = await act('command', { channel: 'incidents', user: me, text: 'off' });
assert.deepEqual([out.ok, out.error], [false, 'dispatch_failed']);
await act('fault', { kind: 'enable' });
await until('connected again', async () => await sockets() === 1);
step('refresh, drop, switched off and on');

if (process.env.LONG) {
  await recover({ kind: 'stall', ms: 12_000 }, answer); // longer than the client waits for a pong
  step('stall');
  await idle(20_000);
}

// The eleventh connection is turned away. These clients do not come back by themselves.
const more = [];
for (let i = 2; i <= 10; i++) {
  const c = new SocketModeClient({ appToken: SLACK_APP_TOKEN, logLevel: 'error', clientOptions, autoReconnectEnabled: false });
  c.on('slack_event', async ({ ack }) => ack());
  await c.start();
  more.push(c);
}
assert.equal(await sockets(), 10);
const frames = (await read('requests?only=hello')).slice(-9).map(f => f.body.num_connections);
assert.deepEqual(frames, [2, 3, 4, 5, 6, 7, 8, 9, 10], 'hello says how many there are');
const extra = new SocketModeClient({ appToken: SLACK_APP_TOKEN, logLevel: 'error', clientOptions, autoReconnectEnabled: false });
extra.start().catch(() => {});
await until('the refusal', async () => (await read('requests?only=disconnect')).some(f => f.body.reason === 'too_many_websockets'));
await sleep(100);
assert.equal(await sockets(), 10);
for (const c of more) await within(10_000, 'disconnect', c.disconnect());
await within(10_000, 'disconnect', client.disconnect());
await until('nobody left', async () => await sockets() === 0);
assert.equal(await shown('off'), undefined);
step('ten connections and no more');

console.log('socket ok');
process.exit(0);
