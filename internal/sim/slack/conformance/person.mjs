// A person in front of the page: starts a browser, and does what people do. Shared by the checks and
// by the pictures of the documents.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

// start launches Chromium; whatever happens, the process ends after limit milliseconds.
export async function start(limit) {
  setTimeout(() => { console.error('timeout'); process.exit(2); }, limit).unref();
  return chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

// open shows the workspace at base. wrong collects what must not happen: requests to elsewhere, errors.
export async function open(browser, base, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(options.patience || 10_000);
  const wrong = [];
  page.on('request', r => { if (!r.url().startsWith(base) && !r.url().startsWith('data:')) wrong.push('request to ' + r.url()); });
  page.on('console', m => { if (m.type() === 'error') wrong.push('console: ' + m.text()); });
  page.on('pageerror', e => wrong.push('page error: ' + e.message));
  await page.goto(base + '/');
  await page.locator('h1:has-text("incidents")').waitFor();
  return { page, wrong };
}

// become switches to another user by the menu.
export async function become(page, name) {
  await page.locator('#me').click();
  await page.locator('.menu-item').filter({ has: page.getByText(name, { exact: true }) }).click();
  await page.locator(`#me[aria-label^="Acting as ${name}."]`).waitFor();
}

// use presses Use on the pinned line that contains text, and Enter.
export async function use(page, text) {
  await page.locator('#channel .code', { hasText: text }).first().getByText('Use', { exact: true }).click();
  assert.match(await page.locator('#channel .composer-text').inputValue(), /^\/ghost investigate /);
  await page.keyboard.press('Enter');
}

// thread opens the thread of the newest case.
export async function thread(page) {
  const root = page.locator('#channel .msg', { hasText: 'Investigating:' }).last();
  await root.locator('.summary').click();
  await page.locator('#thread .msg').first().waitFor();
}

// card is the newest card of the open thread that waits; text narrows it.
export const card = (page, text = '') => page.locator('#thread .msg', { hasText: 'Approval needed: ' + text }).filter({ has: page.getByRole('button', { name: /^Approve/ }) }).last();

// press operates a button of a message by keyboard.
export async function press(page, message, name) {
  await message.getByRole('button', { name }).focus();
  await page.keyboard.press('Enter');
}

export const modal = page => page.locator('.dialog.modal');

// wide says whether anything sticks out of the window to the right.
export const wide = page => page.evaluate(() => document.documentElement.scrollWidth > innerWidth ||
  [...document.querySelectorAll('#channel *, #thread *, .dialog *')].some(e => e.checkVisibility({ visibilityProperty: true }) && !e.closest('.table-box, .sr, .suggest, .avatar, pre, .topic, .btn, select') && e.getBoundingClientRect().right > innerWidth + 1));
