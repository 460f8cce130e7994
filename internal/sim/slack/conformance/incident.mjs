// One incident by typing and clicking, from the pinned line to the report, with the real bot behind
// the page. UPSTREAM is the address that refuses. What only the caller can do is asked for by a line
// "ask WHAT" and goes on after a line on the standard input. Prints "incident ok" at the end.
import assert from 'node:assert/strict';
import readline from 'node:readline';
import { start, open, become, use, thread, card, press, modal, wide } from './person.mjs';

const { LAB_URL: base, UPSTREAM: upstream, SHOTS: shots } = process.env;
const reason = 'not on this host before noon';
const browser = await start(150_000);
const { page, wrong } = await open(browser, base, { patience: 45_000 });
const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async what => { console.log('ask', what); await answers.next(); };
const step = async (name, on = page) => {
  console.log('step', name);
  if (shots) await on.screenshot({ path: `${shots}/incident-${name.replace(/\W+/g, '-')}.png` });
};

// fits looks at the page in windows of many widths: nothing sticks out of any.
const fits = async what => {
  for (const width of [320, 360, 480, 640, 768, 900, 1100, 1280, 1500, 1700]) {
    await page.setViewportSize({ width, height: 800 });
    assert.equal(await wide(page), false, `${what} sticks out at ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
};

// Somebody who may not approve reports it, and is told so when they try to.
await become(page, 'oncall-checkout');
await page.locator('#channel .msg:has-text("Pinned")').waitFor();
await use(page, 'checkout');
await thread(page);
await card(page).waitFor();
await fits('the card');
await step('card');
await press(page, card(page), /^Approve/);
const refusal = page.locator('#thread .ephemeral', { hasText: 'not an approver' });
await refusal.waitFor();
assert.match(await refusal.innerText(), /Only visible to you/);
assert.equal(await card(page).count(), 1, 'the card still waits');
await step('refused');

// An approver sees nothing of that, and changes the command: first to one that nobody may run.
await become(page, 'oncall-netops');
await page.locator('#thread .msg').first().waitFor();
assert.equal(await refusal.count(), 0, 'the refusal was for one person');
await press(page, card(page), /^Modify/);
const command = modal(page).locator('textarea');
await command.fill('rm -rf /');
await modal(page).locator('[type=submit]').click();
await modal(page).locator('.b-error', { hasText: 'FORBIDDEN' }).waitFor();
assert.equal(await command.inputValue(), 'rm -rf /', 'what was typed is still there');
await step('forbidden');

// A reload in the middle of it loses neither window nor text.
await page.reload();
await command.waitFor();
assert.equal(await command.inputValue(), 'rm -rf /', 'a reload keeps what was typed');
const edited = 'timeout 2 tcpdump -i lo -nn -c 4 tcp port ' + upstream.split(':')[1];
await command.fill(edited);
await command.press('Control+Enter');
await modal(page).waitFor({ state: 'detached' });
const second = card(page, edited);
await second.waitFor();
await step('edited');

// The bot dies and comes back: the page says so, and keeps what is half written.
const draft = page.locator('#thread .composer-text');
await draft.fill('half written');
await ask('kill');
for (const pane of ['#channel', '#thread']) await page.locator(pane + ' .status.gone', { hasText: 'Ghost is away' }).waitFor();
await step('away');
await ask('run');
await page.waitForFunction(() => !document.querySelector('.status.gone'));
await page.locator('.socket.on').waitFor();
await page.locator('#thread .msg', { hasText: 'Another process continues this case' }).waitFor();
await page.reload();
await second.waitFor();
assert.equal(await draft.inputValue(), 'half written');
assert.match(await page.locator('#me').getAttribute('aria-label'), /oncall-netops\./);

// A third person approves it on a phone.
const phone = await open(browser, base, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, patience: 45_000 });
await become(phone.page, 'commander');
await phone.page.locator('#channel .msg', { hasText: 'Investigating:' }).locator('.summary').tap();
await card(phone.page, edited).waitFor();
assert.equal(await wide(phone.page), false, 'nothing sticks out');
await step('phone card', phone.page);
await card(phone.page, edited).getByRole('button', { name: /^Approve/ }).tap();
await page.locator('#thread .msg', { hasText: 'Approved by' }).first().waitFor();
await page.locator('#thread .msg', { hasText: 'Ran: ' + edited }).first().waitFor();

// Further cards are denied with a reason; at least one comes.
const report = page.locator('#channel .msg', { hasText: 'replied to a thread' });
const next = card(page);
await next.or(report).first().waitFor();
assert.equal(await report.count(), 0, 'a further card before the report');
while (await report.count() === 0) {
  await press(page, next, /^Deny/);
  await modal(page).locator('textarea').waitFor();
  await modal(page).locator('textarea').fill(reason);
  await fits('the window');
  await step('deny');
  await modal(page).locator('[type=submit]').click();
  await modal(page).waitFor({ state: 'detached' });
  await page.locator('#thread .msg', { hasText: 'Denied by' }).first().waitFor();
  await next.or(report).first().waitFor();
}

// The report is shown in the channel and in the thread, and its file can be read.
await report.filter({ hasText: 'Root cause found' }).waitFor();
assert.match(await report.innerText(), new RegExp(upstream.replaceAll('.', '\\.')));
const file = page.locator('#thread .file', { hasText: '.md' });
await file.waitFor();
await fits('the report');
await step('report');
await file.getByRole('button', { name: 'Open' }).click();
const text = page.locator('.dialog.viewer .dialog-body');
await text.getByRole('heading', { name: 'Root Cause', exact: true }).waitFor();
assert.match(await text.innerText(), new RegExp(reason), 'the reason is in the report');
await step('file');
await page.keyboard.press('Escape');
await text.waitFor({ state: 'detached' });
await page.locator('#thread .msg', { hasText: 'Investigation ended' }).waitFor();
await phone.page.locator('#thread .msg', { hasText: 'Investigation ended' }).waitFor();
assert.equal(await wide(phone.page), false, 'the report does not stick out');
await step('phone report', phone.page);

assert.deepEqual([...wrong, ...phone.wrong], []);
await browser.close();
console.log('incident ok');
process.exit(0);
