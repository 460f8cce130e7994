// What people do outside of a case's cards, with the real bot behind the page: a message becomes a
// case by its menu, the cases of a channel are listed, the Home tab shows what waits and is kept up
// to date, the report is judged and sent. ALERT is the ts of an alert, TARGET what it is about. Prints
// "entry ok" at the end.
import assert from 'node:assert/strict';
import { start, open, become, card, press, modal, wide } from './person.mjs';

const { LAB_URL: base, ALERT: alert, TARGET: target, SHOTS: shots } = process.env;
const browser = await start(150_000);
const { page, wrong } = await open(browser, base, { patience: 45_000, locale: 'en-GB' });
const step = async (name, on = page) => {
  console.log('step', name);
  if (shots) await on.screenshot({ path: `${shots}/entry-${name.replace(/\W+/g, '-')}.png` });
};
const fits = async what => {
  for (const width of [320, 390, 640, 900, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    assert.equal(await wide(page), false, `${what} sticks out at ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
};

// The menu of the alert, by keyboard; the window holds its words and can be edited.
await become(page, 'oncall-netops');
const message = page.locator(`#channel .msg[data-ts="${alert}"]`);
await message.hover();
await message.getByRole('button', { name: 'More actions' }).focus();
await page.keyboard.press('Enter');
await page.locator('.menu-item', { hasText: 'Investigate this' }).focus();
await page.keyboard.press('Enter');
const area = modal(page).locator('textarea');
await area.waitFor();
for (const line of ['High error rate', 'Severity: critical']) assert.ok((await area.inputValue()).includes(line), line);
assert.ok(await modal(page).getByLabel(/Symptom/).count() > 0, 'the field has a label');
await fits('the window');
await step('shortcut');
await page.setViewportSize({ width: 390, height: 844 });
await step('shortcut on a phone');
await page.setViewportSize({ width: 1280, height: 800 });
await area.fill('checkout gets 502 from ' + target);
await modal(page).locator('[type=submit]').click();
await modal(page).waitFor({ state: 'detached' });
const root = page.locator('#channel .msg', { hasText: 'Investigating: checkout gets 502' });
await root.waitFor();
assert.match(await root.innerText(), /about this message/);
await root.locator('.summary').click();
await card(page).waitFor();
await page.locator('#thread', { hasText: 'Budget: ' }).waitFor();
await step('thread');

// The list, privately, with a link into the thread.
const type = async text => {
  const box = page.locator('#channel .composer-text');
  await box.fill(text);
  await box.press('Enter');
};
await type('/ghost list');
const list = page.locator('#channel .ephemeral', { hasText: '1 open, 0 closed' });
await list.waitFor();
assert.match(await list.innerText(), /waiting for approval/);
await fits('the list');
await step('list');

// Somebody describes the same again: they are asked, and join.
await type('/ghost investigate is http://' + target + '/ down?');
const asked = page.locator('#channel .ephemeral', { hasText: 'looks at the same' });
await asked.waitFor();
await step('join');
await asked.getByRole('button', { name: 'Join that case' }).click();
await page.locator('#channel .ephemeral', { hasText: 'You joined' }).waitFor();
assert.equal(await asked.count(), 0, 'the answer takes the place of the question');

// The Home tab: what waits, with a link to the card; after the decision it is gone.
await page.locator('.side-item', { hasText: 'Ghost' }).click();
await page.locator('.tab', { hasText: 'Home' }).click();
const home = page.locator('.home');
await home.getByText('Open the card').waitFor();
assert.equal(await page.getByRole('heading', { name: 'Investigations' }).count(), 1, 'it has a heading');
await fits('the tab');
await step('home');
await page.setViewportSize({ width: 390, height: 844 });
await step('home on a phone');
await page.setViewportSize({ width: 1280, height: 800 });
await home.getByText('Open the card').click();
await card(page).waitFor();
const first = await card(page).getAttribute('data-ts');
await press(page, card(page), /^Deny/);
await modal(page).getByRole('button', { name: 'Skip' }).click();
await page.locator(`#thread .msg[data-ts="${first}"]`).getByRole('button', { name: /^Deny/ }).waitFor({ state: 'detached' });
const ended = page.locator('#thread .msg', { hasText: 'Investigation ended' });
await card(page).or(ended).first().waitFor({ timeout: 90_000 });
if (await ended.count() === 0) { // another optional one, which the words of whoever joined asked for
  await press(page, card(page), /^Deny/);
  await modal(page).getByRole('button', { name: 'Skip' }).click();
}
await ended.waitFor({ timeout: 90_000 });

// The report is judged, and sent to whoever asks.
const report = page.locator('#thread .msg', { has: page.getByRole('button', { name: /^Useful/ }) });
await report.getByRole('button', { name: /^Useful/ }).click();
await modal(page).locator('textarea').fill('the upstream was down');
await step('opinion');
await modal(page).locator('[type=submit]').click();
await modal(page).waitFor({ state: 'detached' });
await type('/ghost rca');
const rca = page.locator('#channel .ephemeral', { hasText: 'The report of this case' });
await rca.waitFor();
await step('rca');
await rca.getByRole('button', { name: /^Send me the report/ }).click();
await page.locator('#channel .ephemeral', { hasText: 'in your conversation with me' }).waitFor();
await page.locator('.side-item', { hasText: 'Ghost' }).click();
await page.locator('.tab', { hasText: 'Home' }).click();
await home.getByText('Open the report').waitFor();
await step('home afterwards');
await page.locator('.tab', { hasText: 'Messages' }).click();
await page.locator('#channel .file', { hasText: 'ghost_rca_' }).waitFor();
assert.deepEqual(wrong, []);
console.log('entry ok');
await browser.close();
process.exit(0);
