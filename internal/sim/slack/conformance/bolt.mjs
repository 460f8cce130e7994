// Drives Bolt, as published, against the workspace: it knows nothing of it but its address and tokens.
// People are played through /lab/*. Prints one line per step and "bolt ok" at the end; anything else
// is a failure.
import assert from 'node:assert/strict';
import bolt from '@slack/bolt';
import { C, SLACK_API_URL, SLACK_APP_TOKEN, SLACK_BOT_TOKEN, act, idle, limit, me, messages, plain, read, recover, shown, sockets, step, until, within } from './lab.mjs';

limit(150_000);
const clientOptions = { slackApiUrl: SLACK_API_URL };

// A wrong token is an answer, not a silence.
const wrong = new bolt.App({ token: SLACK_BOT_TOKEN, appToken: 'xapp' + '-1-A0-wrong', socketMode: true, logLevel: 'error', clientOptions });
await within(10_000, 'start with a wrong token', assert.rejects(wrong.start(), /invalid_auth/));
step('wrong token');

const app = new bolt.App({ token: SLACK_BOT_TOKEN, appToken: SLACK_APP_TOKEN, socketMode: true, clientOptions });
const heard = [], chosen = [], closed = [], failures = [];
app.error(async e => { failures.push(e.message); });
app.event('app_mention', async ({ event, say }) => { heard.push(event.text); await say({ text: 'you called', thread_ts: event.ts }); });
app.event('app_home_opened', async ({ event, client }) => {
  await client.views.publish({ user_id: event.user, view: { type: 'home', blocks: [{ type: 'section', text: plain('Home of ' + event.user) }] } });
});
app.message('ping', async ({ message, say }) => { heard.push('message ' + message.text); await say('pong'); });
app.command('/ghost', async ({ ack, respond, command }) => {
  await ack({ text: 'acknowledged ' + command.text });
  if (command.text === 'often') {
    for (let i = 1; i <= 5; i++) await respond(`answer ${i}`);
    await assert.rejects(respond('answer 6'));
    heard.push('five answers');
    return;
  }
  if (!command.text.startsWith('investigate')) return;
  await respond({ response_type: 'in_channel', text: 'visible', blocks: [{ type: 'actions', block_id: 'card', elements: [
    { type: 'button', action_id: 'open', text: plain('Open'), value: 'p-1' },
    { type: 'overflow', action_id: 'more', options: [{ text: plain('Details'), value: 'd' }, { text: plain('Stop'), value: 's' }] },
    { type: 'button', action_id: 'gone', text: plain('Delete'), style: 'danger' }] }] });
});
const input = { type: 'input', block_id: 'why', label: plain('Why'), element: { type: 'plain_text_input', action_id: 'r' } };
const form = { type: 'modal', callback_id: 'form', title: plain('Form'), submit: plain('Go'), private_metadata: 'p-1', notify_on_close: true, blocks: [input] };
app.action('open', async ({ ack, body, client, action }) => {
  await ack();
  assert.equal(action.value, 'p-1');
  await client.views.open({ trigger_id: body.trigger_id, view: form });
  await assert.rejects(client.views.open({ trigger_id: body.trigger_id, view: form }), /exchanged_trigger_id/);
});
app.action('more', async ({ ack, action, respond }) => { await ack(); chosen.push(action.selected_option.value); await respond({ replace_original: true, text: 'replaced', blocks: [{ type: 'actions', elements: [{ type: 'button', action_id: 'gone', text: plain('Delete') }] }] }); });
app.action('gone', async ({ ack, respond }) => { await ack(); await respond({ delete_original: true }); });
app.view('form', async ({ ack, view }) => {
  assert.equal(view.private_metadata, 'p-1');
  switch (view.state.values.why.r.value) {
    case 'bad': return ack({ response_action: 'errors', errors: { why: 'no' } });
    case 'more': return ack({ response_action: 'push', view: { type: 'modal', callback_id: 'second', title: plain('Second'), submit: plain('Go'), blocks: [input] } });
  }
  return ack({ response_action: 'update', view: { type: 'modal', title: plain('Done'), notify_on_close: true, callback_id: 'done', blocks: [{ type: 'section', text: plain('Thank you') }] } });
});
app.view('second', async ({ ack, view }) => ack(view.state.values.why.r.value === 'all' ? { response_action: 'clear' } : undefined));
app.view({ callback_id: 'done', type: 'view_closed' }, async ({ ack, view, body }) => { await ack(); closed.push([view.callback_id, body.is_cleared]); });
app.shortcut('ghost_investigate', async ({ ack, shortcut, respond }) => { await ack(); await respond('about ' + shortcut.message.text); });

await within(10_000, 'start', app.start());
assert.equal(await sockets(), 1);
step('start');

let out = await act('command', { channel: 'incidents', user: me, text: 'investigate x', wait_ms: 2000 });
assert.equal(out.ok, true);
assert.equal(out.ephemerals[0].text, 'acknowledged investigate x');
const card = await until('the visible response', () => shown('visible'));
step('command, ack payload, respond in channel');

await act('command', { channel: 'incidents', user: me, text: 'often', wait_ms: 2000 });
await until('the refusal of a sixth answer', () => heard.includes('five answers'));
assert.deepEqual((await messages()).map(m => m.text), ['visible'], 'answers are ephemeral unless they say in_channel');
assert.deepEqual((await messages(me)).filter(m => m.text.startsWith('answer')).map(m => m.text), [1, 2, 3, 4, 5].map(i => 'answer ' + i));
step('respond five times');

const open = async () => { out = await act('click', { ts: card.ts, channel: C, user: me, label: 'Open' }); assert.equal(out.view_title, 'Form'); return out.view_id; };
const submit = (view, why) => act('submit', { view_id: view, user: me, values: { why } });
const titles = async () => (await read('views')).map(v => v.title);
let view = await open();
assert.deepEqual((await submit(view, 'bad')).errors, { why: 'no' });
assert.deepEqual(await titles(), ['Form'], 'a form with errors stays open');
assert.equal((await submit(view, 'good')).ok, true);
assert.deepEqual(await titles(), ['Done']);
await act('close', { view_id: view, user: me });
assert.deepEqual(await titles(), []);
await until('view_closed', () => closed.length);
assert.deepEqual(closed, [['done', false]]);
step('modal: open, errors, update, closed');

view = await open();
assert.equal((await submit(view, 'more')).view_title, 'Second');
assert.deepEqual(await titles(), ['Form', 'Second']);
const top = async () => (await read('views')).at(-1).id;
assert.equal((await submit(await top(), 'one')).ok, true);
assert.deepEqual(await titles(), ['Form'], 'a plain ack closes the top view');
await submit(view, 'more');
assert.equal((await submit(await top(), 'all')).ok, true);
assert.deepEqual(await titles(), [], 'clear closes all of them');
step('modal: push, close one, clear');

await act('click', { ts: card.ts, channel: C, user: me, label: 'Stop' });
assert.deepEqual(chosen, ['s']);
await until('the replaced message', async () => (await messages()).some(m => m.ts === card.ts && m.text === 'replaced'));
await act('click', { ts: card.ts, channel: C, user: me, label: 'Delete' });
await until('the deletion', async () => !(await messages()).some(m => m.ts === card.ts));
step('overflow, replace and delete the original');

await act('message', { channel: C, user: me, text: '@ghost are you there' });
await until('the mention', () => heard.includes('<@U0GHOSTBOT> are you there'));
await until('the answer in the thread', async () => (await messages()).some(m => m.text === 'you called' && m.thread_ts));
await act('message', { channel: C, user: me, text: 'ping' });
await until('pong', () => shown('pong'));
assert.equal((await messages()).filter(m => m.text === 'pong').length, 1, 'the app does not answer itself');
await act('home', { user: me });
await until('the Home tab', async () => (await read(`state?user=${me}`)).home?.blocks[0].text.text === 'Home of ' + me);
const asked = await shown('ping');
await act('shortcut', { channel: C, user: me, ts: asked.ts, callback_id: 'ghost_investigate', wait_ms: 2000 });
await until('the answer to the shortcut', () => shown('about ping', me));
step('events, say, Home, message shortcut');

// A delivery that comes twice: telling is up to the app.
await act('fault', { kind: 'duplicate', times: 5 }); // echoes of its own messages may take some
await act('message', { channel: C, user: me, text: 'ping' });
await until('two more answers', async () => (await messages()).filter(m => m.text === 'pong').length >= 3);
await act('fault', { kind: 'clear' });
step('duplicate delivery');

const answer = text => 'acknowledged ' + text;
await recover({ kind: 'disconnect', reason: 'warning' }, answer);
await recover({ kind: 'drop' }, answer);
step('reconnects');
await idle(Number(process.env.IDLE_MS || 20_000));
assert.deepEqual(failures, []);
await within(10_000, 'stop', app.stop());
console.log('bolt ok');
process.exit(0);
