// A person at the page: types a command, clicks, fills a modal, works by keyboard, switches users,
// reloads. The bot behind it is the test's. Prints "browser ok" at the end.
import assert from 'node:assert/strict';
import { start, open, become, wide } from './person.mjs';

const base = process.env.LAB_URL;
const shots = process.env.SHOTS; // a directory for screenshots, for whoever wants to look
const browser = await start(120_000);
const { page, wrong } = await open(browser, base);

const step = async name => {
  console.log('step', name);
  if (shots) await page.screenshot({ path: `${shots}/${name.replace(/\W+/g, '-')}.png` });
};
const lab = async (path, body) => (await fetch(base + '/lab/' + path, body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json();

assert.equal(await page.locator('.composer-text').evaluate(e => e === document.activeElement), true, 'one can type at once');

// A command by keyboard, with the suggestion taken by Tab.
await page.keyboard.type('/gh');
await page.locator('.suggest-item').first().waitFor();
await page.keyboard.press('Tab');
await page.keyboard.type('checkout <b>fails</b> & <!channel>');
await page.keyboard.press('Enter');
await page.locator('.ephemeral:has-text("started")').waitFor();
assert.match(await page.locator('.ephemeral').innerText(), /Only visible to you/);
const root = page.locator('#channel .msg:has-text("case: investigate checkout <b>fails</b> & <!channel>")');
await root.waitFor();
assert.equal(await root.locator('b:text-is("fails")').count(), 0, 'text is not HTML');
await step('command');

// The thread, the modal, its errors, all by keyboard where one would.
await root.locator('.summary').click();
await page.locator('#thread button:has-text("Deny")').focus();
await page.keyboard.press('Enter');
const modal = page.locator('.dialog.modal');
await modal.waitFor();
assert.equal(await modal.getAttribute('aria-modal'), 'true');
assert.equal(await modal.locator('input').evaluate(e => e === document.activeElement), true, 'focus is on the first field');
for (let i = 0; i < 7; i++) {
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => !!document.activeElement.closest('.dialog')), true, 'Tab stays inside');
}
await modal.locator('button[type=submit]').click();
await modal.locator('.b-error:has-text("required")').waitFor();
await modal.locator('input').fill('bad');
await page.keyboard.press('Enter');
await modal.locator('.b-error:has-text("not good enough")').waitFor();
assert.equal(await modal.locator('input').inputValue(), 'bad', 'what was typed is still there');
await step('modal');
await page.keyboard.press('Escape');
await modal.waitFor({ state: 'detached' });
assert.deepEqual(await lab('views'), []);
await page.locator('#thread button:has-text("Deny")').click();
await modal.locator('input').fill('good');
await modal.locator('button[type=submit]').click();
await modal.waitFor({ state: 'detached' });
await step('submitted');

// What happens while the page reads the state anew is not lost, although that state is older. The
// conversation with the app, which comes into being here, has the page read it.
{
  let release, asked;
  const held = new Promise(r => release = r), reading = new Promise(r => asked = r);
  await page.route('**/lab/state*', async route => {
    const old = await route.fetch();
    asked();
    await held;
    await route.fulfill({ response: old });
  });
  const me = await page.evaluate(() => sessionStorage.getItem('me') || localStorage.getItem('me') || 'U0ONCALL01');
  await lab('home', { user: me });
  await reading;
  await lab('message', { channel: 'C0LAB00001', user: 'U0COMMAND1', text: 'said while the page reads' });
  await new Promise(r => setTimeout(r, 300)); // the stream has brought it
  const here = page.waitForResponse('**/lab/state*').then(r => r.finished());
  release();
  await here;
  await page.waitForTimeout(300); // it is drawn
  await page.locator('#channel .msg', { hasText: 'said while the page reads' }).waitFor(); // what came meanwhile stays
  await page.unroute('**/lab/state*');
  await step('read anew');
}

// Another person sees no ephemeral of the first, and clicks.
await become(page, 'guest-vendor');
await page.locator('#channel .msg').first().waitFor();
assert.equal(await page.locator('.ephemeral').count(), 0, 'ephemerals are for one person');
await page.locator('#thread button:has-text("Approve")').click();
await page.locator('#thread .msg:has-text("approved by")').waitFor();
await page.locator('#thread .ephemeral:has-text("thank you")').waitFor();
assert.equal(await page.locator('#thread .mention.mine').first().innerText(), '@guest-vendor');
await step('second person');

// With less room the thread takes the place of the channel list.
await page.setViewportSize({ width: 900, height: 700 });
assert.ok((await page.locator('#channel').boundingBox()).width >= 400);
assert.ok((await page.locator('#thread').boundingBox()).width >= 400);
assert.equal(await wide(page), false, 'nothing sticks out');
await step('between');
await page.setViewportSize({ width: 1280, height: 800 });

// A reload keeps person, place, thread, draft.
await page.locator('#channel .composer-text').fill('a draft');
await page.reload();
await page.locator('#thread .msg:has-text("approved by")').waitFor();
assert.equal(await page.locator('#me .me-name').innerText(), 'guest-vendor');
assert.equal(await page.locator('#channel .composer-text').inputValue(), 'a draft');
await page.locator('#thread .composer-text').focus();
await page.keyboard.press('Escape');
await page.locator('#thread').waitFor({ state: 'hidden' });
await step('reload');

// Mentions: the counter goes up for what really pages, and unread channels show it.
await lab('message', { channel: 'network', user: 'commander', text: '@guest-vendor look at this' });
await page.locator('#paged.some b:text-is("2")').waitFor();
await page.locator('.side-item:has-text("network") .side-badge').waitFor();
await page.locator('.side-item:has-text("network")').click();
await page.locator('.msg.mentions-me').waitFor();
await page.locator('.side-item:has-text("network") .side-badge').waitFor({ state: 'detached' });
await step('mentions');

// Phone width, in the preview and in a narrow window.
await page.locator('#phone').click();
assert.equal((await page.locator('#shell').boundingBox()).width, 390);
await page.locator('#channel [aria-label="Channels"]').click();
await page.locator('.side-item:has-text("incidents")').click();
await page.locator('h1:has-text("incidents")').waitFor();
await step('phone preview');
await page.locator('#phone').click();
await page.setViewportSize({ width: 380, height: 700 });
assert.equal(await wide(page), false, 'nothing sticks out');
assert.equal(await page.locator('#phone').isVisible(), false, 'no preview of a phone on a phone');
await page.locator('#channel [aria-label="Channels"]').click();
await page.locator('.side-item:has-text("incidents")').waitFor();
assert.equal(await page.locator('#channel .composer-text').isVisible(), false, 'one pane at a time');
await page.locator('.side-item:has-text("incidents")').click();
for (const id of ['#socket', '#paged', '#lab', '#theme', '#me']) assert.equal(await page.locator(id).isVisible(), true, id + ' is reachable');
await step('narrow');
await page.setViewportSize({ width: 1280, height: 800 });

// Dark, and a message with every kind of block the app may use.
await page.locator('#theme').click();
assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
await page.locator('.msg:has-text("every block")').first().waitFor();
assert.equal(await page.locator('.b-unknown').count(), 0);
for (const part of ['.b-header', '.b-fields', '.b-context', '.b-actions select', '.b-actions .overflow', '.r-list', 'blockquote', '.code pre', '.b-markdown h3', 'table', 'time.date', '.b-actions input[type=radio]', '.b-actions input[type=checkbox]', '.b-section .b-accessory button', '.b-input input']) {
  assert.ok(await page.locator('.msg:has-text("every block") ' + part).count() > 0, 'rendered: ' + part);
}
await step('blocks');

// Keyboard: a message's toolbar is one stop, F6 goes from pane to pane, what is typed while nothing
// has the focus is written.
const bar = page.locator('#channel .msg:has-text("every block") .toolbar').first();
assert.equal(await bar.locator('button:not([tabindex="-1"])').count(), 1);
await bar.locator('button').first().focus();
await page.keyboard.press('ArrowRight');
assert.equal(await bar.locator('button').nth(1).evaluate(e => e === document.activeElement), true);
assert.equal(await bar.evaluate(e => getComputedStyle(e).opacity), '1', 'what has the focus is seen');
const inPane = () => page.evaluate(() => document.activeElement.className + ' ' + document.activeElement.closest('nav, main, aside')?.id);
const round = [];
for (let i = 0; i < 3; i++) { await page.keyboard.press('F6'); round.push(await inPane()); }
assert.deepEqual(round, ['side-item here sidebar', 'composer-text channel', 'side-item here sidebar']);
await page.locator('#channel .composer-text').fill('');
await page.locator('#channel .feed').focus();
await page.keyboard.type('written');
assert.equal(await page.locator('#channel .composer-text').inputValue(), 'written');
await page.keyboard.press('Enter');
await page.locator('#channel .msg:has-text("written")').waitFor();
assert.equal(await page.locator('#channel .composer-text').inputValue(), '', 'Enter sends');
for (const at of ['#lab', '#theme', '#me', '.side-item >> nth=1', '.composer-text >> nth=0']) {
  await page.locator(at).focus();
  await page.keyboard.press('Shift'); // a key, so that the browser shows where the focus is
  assert.notEqual(await page.locator(at).evaluate(e => { const s = getComputedStyle(e), box = e.closest('.composer'); return s.outlineStyle !== 'none' ? s.outlineStyle : box ? getComputedStyle(box).boxShadow : 'none'; }), 'none', 'visible focus: ' + at);
}
await step('keyboard');

// Files: a picture takes its room before it is there, Markdown can be read.
await page.locator('figure.image img[alt="three dots"]').waitFor();
assert.deepEqual(await page.locator('figure.image img').evaluate(i => [i.getAttribute('width'), i.getAttribute('height'), i.naturalWidth]), ['30', '20', 30]);
await page.locator('.file:has-text("notes.md")').getByRole('button', { name: 'Open' }).click();
await page.locator('.dialog.viewer h3:has-text("Notes")').waitFor();
await page.keyboard.press('Escape');
await page.locator('.dialog.viewer').waitFor({ state: 'detached' });
await step('files');

// The rate limits: seen, and switched.
await page.locator('#lab').click();
await page.locator('.menu-item', { hasText: 'Counted only: enforce' }).click();
for (let i = 0; i < 200 && !(await lab('limits')).enforce; i++) await page.waitForTimeout(25);
assert.equal((await lab('limits')).enforce, true);
await page.locator('#lab').click();
await page.locator('.menu-item', { hasText: 'Enforced: switch off' }).click();
for (let i = 0; i < 200 && (await lab('limits')).enforce; i++) await page.waitForTimeout(25);
assert.equal((await lab('limits')).enforce, false);
await step('limits');

// Two tabs can be two people.
const second = await page.context().newPage();
await second.goto(base + '/');
await become(second, 'commander');
await second.reload();
await second.locator('#me[aria-label^="Acting as commander."]').waitFor();
await page.reload();
await page.locator('#me[aria-label^="Acting as guest-vendor."]').waitFor();
await second.close();
await step('two people');

// What asks before it acts, and what hides in a menu. The app answers each by an update.
const asks = (name, element) => fetch(base + '/api/chat.postMessage', { method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + process.env.SLACK_BOT_TOKEN },
  body: JSON.stringify({ channel: 'C0LAB00001', text: name, blocks: [{ type: 'section', text: { type: 'plain_text', text: name } }, { type: 'actions', elements: [element] }] }) });
const plain = text => ({ type: 'plain_text', text });
const approved = page.locator('#channel .msg', { hasText: 'approved by' });
const had = await approved.count();
await asks('a risky thing', { type: 'button', action_id: 'yes', text: plain('Do it'), confirm: { title: plain('Sure?'), text: plain('It cannot be undone.'), confirm: plain('Do'), deny: plain('Leave') } });
const sure = page.locator('.dialog.confirm');
const risky = page.locator('#channel .msg:has-text("a risky thing")').getByRole('button', { name: 'Do it' });
await risky.click();
await sure.waitFor();
assert.match(await sure.innerText(), /Sure\?[\s\S]*It cannot be undone\./);
await sure.getByRole('button', { name: 'Leave' }).click();
await sure.waitFor({ state: 'detached' });
const clicks = async () => (await lab('requests?only=interactive')).length;
const before = await clicks();
await risky.click();
await sure.getByRole('button', { name: 'Do', exact: true }).click();
await approved.nth(had).waitFor();
assert.equal(await clicks(), before + 1, 'the app hears of a click only when it is confirmed');
await asks('a menu', { type: 'overflow', action_id: 'more', options: [{ text: plain('Details'), value: 'd' }, { text: plain('Stop'), value: 's' }] });
await page.locator('#channel .msg:has-text("a menu") .b-actions .overflow button').click();
await page.locator('.menu-item', { hasText: 'Stop' }).click();
await approved.nth(had + 1).waitFor();
assert.equal((await lab('requests?only=interactive')).at(-1).body.payload.actions[0].selected_option.value, 's');
await step('confirmation and menu');

// Text for screen readers.
const any = page.locator('.msg:has-text("every block")').first();
await any.hover();
await any.locator('[aria-label^="What a notification"]').click();
assert.match(await any.locator('.spoken-text').innerText(), /Ghost every block/);

assert.deepEqual(wrong, []);
await browser.close();
console.log('browser ok');
process.exit(0);
