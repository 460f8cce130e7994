// Drives the WebClient, as published: uploads, streams, pages, errors and the forms of being too
// fast. Prints "web ok" at the end; anything else is a failure.
import assert from 'node:assert/strict';
import { WebClient } from '@slack/web-api';
import { C, SLACK_API_URL, SLACK_APP_TOKEN, SLACK_BOT_TOKEN, act, lab, limit, me, messages, plain, step } from './lab.mjs';

limit(150_000);
const client = (options, token = SLACK_BOT_TOKEN) => new WebClient(token, { slackApiUrl: SLACK_API_URL, logLevel: 'error', ...options });
const web = client();

// What Slack refuses is an answer with status 200: the client tells it from a broken server.
const refused = (p, error) => assert.rejects(p, e => { assert.equal(e.code, 'slack_webapi_platform_error', String(e)); assert.equal(e.data.error, error); return true; });
const id = await web.auth.test();
assert.deepEqual([id.team_id, id.user_id, id.bot_id], ['T0GHOSTLAB', 'U0GHOSTBOT', 'B0GHOSTBOT']);
assert.ok(id.response_metadata.scopes.includes('chat:write'));
await refused(client({}, 'xoxb' + '-wrong').auth.test(), 'invalid_auth');
await refused(client({}, null).auth.test(), 'not_authed');
await refused(client({}, SLACK_APP_TOKEN).auth.test(), 'not_allowed_token_type');
await refused(web.apiCall('no.such.method'), 'unknown_method');
await refused(web.chat.postMessage({ channel: 'C404', text: 'x' }), 'channel_not_found');
await assert.rejects(web.chat.postMessage({ channel: C, text: 'x', blocks: [{ type: 'header', text: plain('x'.repeat(151)) }] }), e => {
  assert.equal(e.data.error, 'invalid_blocks');
  assert.match(e.data.response_metadata.messages[0], /must be less than 151 characters \[json-pointer:\/blocks\/0\/text\/text\]/);
  return true;
});
step('identity and refusals');

const up = await web.files.uploadV2({ channel_id: C, filename: 'a.md', content: '# A', title: 'A', initial_comment: 'one file' });
assert.equal(up.files[0].files[0].title, 'A');
const root = await web.chat.postMessage({ channel: C, text: 'root', metadata: { event_type: 't', event_payload: { k: 1 } } });
await web.files.uploadV2({ channel_id: C, thread_ts: root.ts, initial_comment: 'two files', file_uploads: [{ filename: 'b.txt', content: 'bbb' }, { filename: 'c.bin', file: Buffer.from([0, 1]), alt_text: 'two bytes' }] });
const shared = (await messages()).filter(m => m.files.length);
assert.deepEqual(shared.map(m => [m.text, m.thread_ts || '', m.files.map(f => [f.name, f.size])]), [['one file', '', [['a.md', 3]]], ['two files', root.ts, [['b.txt', 3], ['c.bin', 2]]]]);
assert.equal(await (await fetch(new URL(shared[0].files[0].url, lab))).text(), '# A');
const secret = await web.files.uploadV2({ filename: 'private.txt', content: 'p' });
assert.equal((await messages()).filter(m => m.files.length).length, 2, 'a file without a channel is shown nowhere');
const info = await web.files.info({ file: secret.files[0].files[0].id });
assert.equal(info.file.is_public, false);
assert.equal(await (await fetch(info.file.url_private, { headers: { Authorization: 'Bearer ' + SLACK_BOT_TOKEN } })).text(), 'p');
assert.equal((await fetch(info.file.url_private)).ok, false, 'a private file needs the token');
step('uploads: single, multiple in a thread, private');

const names = [];
for await (const page of web.paginate('conversations.list', { limit: 7 })) names.push(...page.channels.map(c => c.name));
assert.equal(new Set(names).size, names.length);
assert.ok(names.length >= 22 && names.includes('incidents'));
for (let i = 0; i < 9; i++) await web.chat.postMessage({ channel: C, thread_ts: root.ts, text: 'reply ' + i });
let pages = 0;
const replies = await web.paginate('conversations.replies', { channel: C, ts: root.ts, limit: 4 }, () => false, (all = [], page) => { pages++; return all.concat(page.messages.map(m => m.ts)); });
assert.ok(pages >= 3);
assert.equal(new Set(replies).size, 11, 'the parent, the files and nine replies, each once');
step('pagination: ' + names.length + ' channels, a thread');

const start = { channel: C, thread_ts: root.ts, recipient_user_id: me, recipient_team_id: 'T0GHOSTLAB' };
const stream = web.chatStream({ ...start, buffer_size: 1 });
await stream.append({ markdown_text: 'first ' });
await stream.append({ markdown_text: '**second**' });
await stream.stop({ blocks: [{ type: 'context', elements: [plain('the end')] }] });
const buffered = web.chatStream(start); // buffers 256 characters, so that stop sends everything
await buffered.append({ markdown_text: 'short' });
await buffered.stop();
const thread = (await web.conversations.replies({ channel: C, ts: root.ts, include_all_metadata: true, limit: 100 })).messages;
assert.equal(thread[0].metadata.event_payload.k, 1);
const texts = thread.slice(-2).map(m => m.blocks.map(b => b.text ?? b.elements[0].text));
assert.deepEqual(texts, [['first **second**', 'the end'], ['short']]);
await assert.rejects(stream.append({ markdown_text: 'late' }));
step('metadata, streams');

// By default the client waits for Retry-After and says so; told to, it refuses.
const waits = [];
web.on('rate_limited', s => waits.push(s));
await act('fault', { kind: 'ratelimit', method: 'users.info', retry_after: 1, times: 2 });
const began = Date.now();
assert.equal((await web.users.info({ user: me })).user.id, me);
assert.ok(Date.now() - began >= 2000, 'the client waits for Retry-After, twice');
assert.deepEqual(waits, [1, 1]);
await act('fault', { kind: 'ratelimit', method: 'users.info', retry_after: 30, times: 1 });
await assert.rejects(client({ rejectRateLimitedCalls: true }).users.info({ user: me }), e => e.code === 'slack_webapi_rate_limited_error' && e.retryAfter === 30);
for (const error of ['ratelimited', 'rate_limited']) {
  await act('fault', { kind: 'error', method: 'users.info', error, times: 1 });
  await refused(web.users.info({ user: me }), error);
}
await act('limits', { enforce: true });
const strict = client({ rejectRateLimitedCalls: true });
const calls = await Promise.allSettled(Array.from({ length: 21 }, () => strict.users.list({ limit: 1 })));
assert.deepEqual(calls.filter(c => c.status === 'rejected').map(c => c.reason.code), ['slack_webapi_rate_limited_error'], 'the 21st call of a tier 2 method in a minute');
await act('limits', { enforce: false });
step('rate limits');

await act('fault', { kind: 'status', method: 'users.info', status: 503, times: 1 });
await act('fault', { kind: 'cut', method: 'users.info', times: 1 });
assert.equal((await client({ retryConfig: { retries: 3, minTimeout: 10, factor: 1 } }).users.info({ user: me })).ok, true);
step('broken answers');

console.log('web ok');
process.exit(0);
