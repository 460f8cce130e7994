// A person at the page: types a command, clicks, fills a modal, works by keyboard, switches users,
// reloads. The bot behind it is the test's. Prints "browser ok" at the end.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const base = process.env.LAB_URL;
const shots = process.env.SHOTS; // a directory for screenshots, for whoever wants to look

setTimeout(() => { console.error('timeout'); process.exit(2); }, 120_000).unref();

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(10_000);
const wrong = [];
page.on('request', r => { if (!r.url().startsWith(base) && !r.url().startsWith('data:')) wrong.push('request to ' + r.url()); });
page.on('console', m => { if (m.type() === 'error') wrong.push('console: ' + m.text()); });
page.on('pageerror', e => wrong.push('page error: ' + e.message));

const step = async name => {
  console.log('step', name);
  if (shots) await page.screenshot({ path: `${shots}/${name.replace(/\W+/g, '-')}.png` });
};
const lab = async (path, body) => (await fetch(base + '/lab/' + path, body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json();

await page.goto(base + '/');
await page.locator('h1:has-text("incidents")').waitFor();
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

// Another person sees no ephemeral of the first, and clicks.
await page.locator('#me').click();
await page.locator('.menu-item:has-text("guest-vendor")').click();
await page.locator('#me:has-text("guest-vendor")').waitFor();
await page.locator('#channel .msg').first().waitFor();
assert.equal(await page.locator('.ephemeral').count(), 0, 'ephemerals are for one person');
await page.locator('#thread button:has-text("Approve")').click();
await page.locator('#thread .msg:has-text("approved by")').waitFor();
await page.locator('#thread .ephemeral:has-text("thank you")').waitFor();
assert.equal(await page.locator('#thread .mention.mine').first().innerText(), '@guest-vendor');
await step('second person');

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
assert.ok((await page.locator('#app').boundingBox()).width <= 400);
await page.locator('#channel [aria-label="Channels"]').click();
await page.locator('.side-item:has-text("incidents")').click();
await page.locator('h1:has-text("incidents")').waitFor();
await step('phone preview');
await page.locator('#phone').click();
await page.setViewportSize({ width: 380, height: 700 });
const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
assert.equal(wide, false, 'nothing sticks out');
await step('narrow');
await page.setViewportSize({ width: 1280, height: 800 });

// Dark, and a message with every kind of block the app may use.
await page.locator('#theme').click();
assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
await page.locator('.msg:has-text("every block")').first().waitFor();
assert.equal(await page.locator('.b-unknown').count(), 0);
for (const part of ['.b-header', '.b-fields', '.b-context', '.b-actions select', '.b-actions .overflow', '.r-list', 'blockquote', '.code pre', '.b-markdown h3', 'table', 'time.date', '.b-actions input[type=radio]']) {
  assert.ok(await page.locator('.msg:has-text("every block") ' + part).count() > 0, 'rendered: ' + part);
}
await step('blocks');

// Text for screen readers.
const any = page.locator('.msg:has-text("every block")').first();
await any.hover();
await any.locator('[aria-label^="What a notification"]').click();
assert.match(await any.locator('.spoken-text').innerText(), /Ghost every block/);

assert.deepEqual(wrong, []);
await browser.close();
console.log('browser ok');
process.exit(0);
