// Two approvers at the page, with the real bot behind it: a command that needs two people asks once
// more, says who was the first, and one that needs a code opens a window for it. CODE_FILE is where the
// caller writes the code of now when it is asked for. Prints "approvers ok" at the end.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import readline from 'node:readline';
import { start, open, become, use, thread, card, press, modal } from './person.mjs';

const { LAB_URL: base, CODE_FILE: codeFile, SHOTS: shots } = process.env;
const browser = await start(120_000);
const { page, wrong } = await open(browser, base, { patience: 45_000 });
const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async what => { console.log('ask', what); await answers.next(); };
const step = async name => { if (shots) await page.screenshot({ path: `${shots}/approvers-${name}.png` }); };
const voted = text => page.locator('#thread .msg', { hasText: 'Approved 1 of 2: ' + text }).filter({ has: page.getByRole('button', { name: /^Approve/ }) }).last();

await use(page, 'checkout');
await thread(page);
await card(page, 'timeout').waitFor();
assert.match(await card(page, 'timeout').innerText(), /0 of 2/);

// Approve asks once more; Back decides nothing.
const sure = page.locator('.dialog.confirm');
await press(page, card(page, 'timeout'), /^Approve/);
await sure.waitFor();
assert.match(await sure.innerText(), /Approve this command\?[\s\S]*Target: /);
await step('confirm');
await sure.getByRole('button', { name: 'Back' }).click();
await sure.waitFor({ state: 'detached' });
assert.equal(await voted('timeout').count(), 0, 'Back decides nothing');
await press(page, card(page, 'timeout'), /^Approve/);
await sure.getByRole('button', { name: 'Approve' }).click();
await voted('timeout').waitFor();
assert.match(await voted('timeout').innerText(), /1 of 2: approved by @oncall-netops/);
await step('one-of-two');

// Somebody else sees who it was, and is the second.
await become(page, 'commander');
await voted('timeout').waitFor();
await press(page, voted('timeout'), /^Approve/);
await sure.getByRole('button', { name: 'Approve' }).click();
await page.locator('#thread .msg', { hasText: /Running: timeout|Done: timeout|Failed: timeout/ }).last().waitFor();

// The next command needs a code of each.
await become(page, 'oncall-netops');
await card(page, 'journalctl').waitFor();
await press(page, card(page, 'journalctl'), /^Approve/);
const field = modal(page).locator('input:not([type=hidden]), textarea').first();
await field.waitFor();
assert.equal(await sure.count(), 0, 'a code is asked for, and nothing besides');
await ask('code');
const right = fs.readFileSync(codeFile, 'utf8').trim();
await field.fill(String((Number(right) + 271828) % 1_000_000).padStart(6, '0'));
await modal(page).locator('[type=submit]').click();
await modal(page).locator('.b-error', { hasText: 'Wrong code (1 of 5' }).waitFor();
await step('code');
await ask('code');
await field.fill(fs.readFileSync(codeFile, 'utf8').trim());
await field.press('Enter');
await modal(page).waitFor({ state: 'detached' });
await voted('journalctl').waitFor();
assert.deepEqual(wrong, []);
console.log('approvers ok');
await browser.close();
process.exit(0);
