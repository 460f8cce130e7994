// Drives the official Node client against the workspace, knowing nothing of it but its address and
// tokens. People are played through /lab/*. Prints one line per step and "conformance ok" at the end;
// anything else is a failure.
import assert from 'node:assert/strict';
import bolt from '@slack/bolt';
import { WebClient } from '@slack/web-api';

const { SLACK_APP_TOKEN, SLACK_BOT_TOKEN, SLACK_API_URL } = process.env;
const lab = SLACK_API_URL.replace('/api/', '/lab/');
const C = 'C0LAB00001';
const me = 'U0ONCALL01';

setTimeout(() => { console.error('timeout'); process.exit(2); }, 150_000).unref();

const act = async (path, body) => {
  const res = await fetch(lab + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  const out = await res.json();
  assert.equal(res.status, 200, `${path}: ${JSON.stringify(out)}`);
  return out;
};
const read = async path => (await fetch(lab + path)).json();
const sleep = ms => new Promise(r => setTimeout(r, ms));
const until = async (what, ok) => {
  for (let i = 0; i < 400; i++) { const v = await ok(); if (v) return v; await sleep(25); }
  assert.fail('never: ' + what);
};
const step = name => console.log('step', name);
const plain = text => ({ type: 'plain_text', text });

const app = new bolt.App({
  token: SLACK_BOT_TOKEN, appToken: SLACK_APP_TOKEN, socketMode: true, logLevel: 'error', clientOptions: { slackApiUrl: SLACK_API_URL },
});
const heard = [];
app.event('app_mention', async ({ event, say }) => { heard.push(event.text); await say({ text: 'you called', thread_ts: event.ts }); });
app.message('ping', async ({ message, say }) => { heard.push('message ' + message.text); await say('pong'); });
app.command('/ghost', async ({ ack, respond, command }) => {
  await ack({ text: 'acknowledged ' + command.text });
  await respond({ response_type: 'in_channel', text: 'visible', blocks: [{ type: 'actions', block_id: 'card', elements: [
    { type: 'button', action_id: 'open', text: plain('Open'), value: 'p-1' },
    { type: 'overflow', action_id: 'more', options: [{ text: plain('Details'), value: 'd' }, { text: plain('Stop'), value: 's' }] }] }] });
});
app.action('open', async ({ ack, body, client, action }) => {
  await ack();
  assert.equal(action.value, 'p-1');
  await client.views.open({ trigger_id: body.trigger_id, view: { type: 'modal', callback_id: 'form', title: plain('Form'), submit: plain('Go'), private_metadata: 'p-1', blocks: [
    { type: 'input', block_id: 'why', label: plain('Why'), element: { type: 'plain_text_input', action_id: 'r' } }] } });
});
const chosen = [];
app.action('more', async ({ ack, action, respond }) => { await ack(); chosen.push(action.selected_option.value); await respond({ replace_original: true, text: 'replaced' }); });
app.view('form', async ({ ack, view }) => {
  if (view.state.values.why.r.value === 'bad') return ack({ response_action: 'errors', errors: { why: 'no' } });
  return ack({ response_action: 'update', view: { type: 'modal', title: plain('Done'), blocks: [{ type: 'section', text: plain('Thank you') }] } });
});

await app.start();
step('start');

let out = await act('command', { channel: 'incidents', user: me, text: 'investigate x', wait_ms: 2000 });
assert.equal(out.ok, true);
assert.equal(out.ephemerals[0].text, 'acknowledged investigate x');
const card = await until('the visible response', async () => (await read(`channels/${C}/messages`)).find(m => m.text === 'visible'));
step('command, ack payload, respond in channel');

out = await act('click', { ts: card.ts, channel: C, user: me, label: 'Open' });
assert.equal(out.view_title, 'Form');
const view = out.view_id;
out = await act('submit', { view_id: view, user: me, values: { why: 'bad' } });
assert.deepEqual(out.errors, { why: 'no' });
out = await act('submit', { view_id: view, user: me, values: { why: 'good' } });
assert.equal(out.ok, true);
assert.equal((await read('views'))[0].title, 'Done');
await act('close', { view_id: view, user: me });
assert.deepEqual(await read('views'), []);
step('modal: open, errors, update, close');

await act('click', { ts: card.ts, channel: C, user: me, label: 'Stop' });
assert.deepEqual(chosen, ['s']);
await until('the replaced message', async () => (await read(`channels/${C}/messages`)).some(m => m.ts === card.ts && m.text === 'replaced'));
step('overflow, replace original');

await act('message', { channel: C, user: me, text: '@ghost are you there' });
await until('the mention', () => heard.includes('<@U0GHOSTBOT> are you there'));
await act('message', { channel: C, user: me, text: 'ping' });
await until('pong', async () => (await read(`channels/${C}/messages`)).some(m => m.text === 'pong'));
assert.equal((await read(`channels/${C}/messages`)).filter(m => m.text === 'pong').length, 1);
step('events');

const web = new WebClient(SLACK_BOT_TOKEN, { slackApiUrl: SLACK_API_URL });
const up = await web.files.uploadV2({ channel_id: C, filename: 'a.md', content: '# A', title: 'A', initial_comment: 'one file' });
assert.equal(up.files[0].files[0].title, 'A');
await web.files.uploadV2({ channel_id: C, file_uploads: [{ filename: 'b.txt', content: 'bbb' }, { filename: 'c.txt', content: 'cc' }] });
const shared = (await read(`channels/${C}/messages`)).filter(m => m.files.length);
assert.deepEqual(shared.map(m => m.files.map(f => [f.name, f.size])), [[['a.md', 3]], [['b.txt', 3], ['c.txt', 2]]]);
assert.equal(await (await fetch(new URL(shared[0].files[0].url, lab))).text(), '# A');
step('uploads');

const names = [];
for await (const page of web.paginate('conversations.list', { limit: 7 })) names.push(...page.channels.map(c => c.name));
assert.equal(new Set(names).size, names.length);
assert.ok(names.length >= 22 && names.includes('incidents'));
step('pagination: ' + names.length + ' channels');

const root = await web.chat.postMessage({ channel: C, text: 'root', metadata: { event_type: 't', event_payload: { k: 1 } } });
const stream = web.chatStream({ channel: C, thread_ts: root.ts, recipient_user_id: me, recipient_team_id: 'T0GHOSTLAB', buffer_size: 1 });
await stream.append({ markdown_text: 'first ' });
await stream.append({ markdown_text: '**second**' });
await stream.stop();
const replies = await web.conversations.replies({ channel: C, ts: root.ts, include_all_metadata: true });
assert.equal(replies.messages[0].metadata.event_payload.k, 1);
assert.equal(replies.messages[1].blocks[0].text, 'first **second**');
step('thread, metadata, stream');

await assert.rejects(web.chat.postMessage({ channel: C, text: 'x', blocks: [{ type: 'header', text: plain('x'.repeat(151)) }] }), e => {
  assert.equal(e.data.error, 'invalid_blocks');
  assert.match(e.data.response_metadata.messages[0], /must be less than 151 characters \[json-pointer:\/blocks\/0\/text\/text\]/);
  return true;
});
step('rejected blocks');

await act('fault', { kind: 'ratelimit', method: 'users.info', retry_after: 1, times: 2 });
const began = Date.now();
await web.users.info({ user: me });
assert.ok(Date.now() - began >= 2000, 'the client waits for Retry-After, twice');
await act('fault', { kind: 'ratelimit', method: 'users.info', retry_after: 1, times: 1 });
const strict = new WebClient(SLACK_BOT_TOKEN, { slackApiUrl: SLACK_API_URL, rejectRateLimitedCalls: true });
await assert.rejects(strict.users.info({ user: me }), e => e.code === 'slack_webapi_rate_limited_error');
step('rate limits');

const connected = async () => until('a socket', async () => (await read(`state?user=${me}`)).sockets === 1);
for (const f of [{ kind: 'disconnect', reason: 'warning' }, { kind: 'drop' }]) {
  await act('fault', f);
  await until('the disconnect', async () => (await read(`state?user=${me}`)).sockets === 0);
  await connected();
  out = await act('command', { channel: 'incidents', user: me, text: 'after ' + f.kind });
  assert.equal(out.ok, true, 'after ' + f.kind + ': ' + JSON.stringify(out));
}
step('reconnects');

const idle = Number(process.env.IDLE_MS || 8000);
const frames = () => read('requests?only=hello');
const hellos = (await frames()).length;
await sleep(idle);
assert.equal((await frames()).length, hellos, 'no reconnect while idle');
step('idle ' + idle + ' ms');

await app.stop();
console.log('conformance ok');
process.exit(0);
