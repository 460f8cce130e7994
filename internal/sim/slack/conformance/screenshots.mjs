// The pictures of the documents: runs the demo, plays the first incident, and writes PNG files.
//   node screenshots.mjs GHOSTLAB DIRECTORY
// Every *.txt in the directory is a recorded terminal (SGR colours are kept) and becomes a picture of
// the same name. Sizes are fixed: pictures differ between runs only in times, numbers and heads.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { shrink } from './png.mjs';
import { start, open, use, thread, card, press, modal } from './person.mjs';

const [lab, into] = process.argv.slice(2).map(p => path.resolve(p));
const limit = 300_000; // bytes of a picture
const scale = 1.5;

// demo starts the demo on a state of its own and gives its address. env is for its bot.
async function demo(env = {}) {
  const state = fs.mkdtempSync(path.join(os.tmpdir(), 'ghostbot-pictures-'));
  const child = spawn(lab, ['demo', '--addr', '127.0.0.1:0', '--state-dir', state], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const heard = [];
  const wait = (stream, rule) => new Promise((done, failed) => {
    readline.createInterface({ input: stream }).on('line', line => { heard.push(line); const m = rule.exec(line); if (m) done(m[1]); });
    child.once('exit', code => failed(new Error(`the demo ended with ${code}:\n${heard.join('\n')}`)));
  });
  const connected = wait(child.stderr, /(connected to slack)/);
  const url = await wait(child.stdout, /Slack workspace +(\S+)/);
  await connected;
  const end = () => new Promise(done => { child.removeAllListeners('exit'); child.once('exit', done); child.kill('SIGTERM'); }).then(() => fs.rmSync(state, { recursive: true }));
  return { url, end };
}

const written = [];
async function shoot(page, name, clip) {
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.fonts.ready);
  const at = path.join(into, name + '.png');
  fs.writeFileSync(at, shrink(await page.screenshot({ clip, animations: 'disabled', caret: 'hide' })));
  written.push(at);
}

// around is a clip of w x h with the element in its middle.
async function around(locator, w, h) {
  const b = await locator.boundingBox();
  return { x: Math.round(b.x + b.width / 2 - w / 2), y: Math.round(b.y + b.height / 2 - h / 2), width: w, height: h };
}

// whole is a clip of a message of the thread, over the whole width of its pane.
async function whole(page, message) {
  await message.scrollIntoViewIfNeeded();
  const b = await message.boundingBox(), pane = await page.locator('#thread .feed').boundingBox();
  const y = Math.max(pane.y, b.y);
  return { x: pane.x, y, width: pane.width, height: Math.min(b.y + b.height, pane.y + pane.height) - y };
}

async function incident(browser, url) {
  const { page } = await open(browser, url, { viewport: { width: 1280, height: 800 }, deviceScaleFactor: scale, patience: 60_000, colorScheme: 'light', locale: 'en-GB' });
  await use(page, 'checkout gets 502');
  await thread(page);
  await card(page).waitFor();
  await shoot(page, 'approval', await whole(page, card(page)));

  const phone = await open(browser, url, { viewport: { width: 390, height: 844 }, deviceScaleFactor: scale, isMobile: true, hasTouch: true, patience: 60_000, colorScheme: 'dark', locale: 'en-GB' });
  await phone.page.locator('#channel .summary').last().tap();
  await card(phone.page).waitFor();
  await shoot(phone.page, 'phone');

  await press(page, card(page), /^Modify/);
  await modal(page).locator('textarea').fill('rm -rf /');
  await modal(page).locator('[type=submit]').click();
  await modal(page).locator('.b-error').waitFor();
  await shoot(page, 'edit-error', await around(modal(page), 640, 460));
  await page.keyboard.press('Escape');
  await modal(page).waitFor({ state: 'detached' });

  await press(page, card(page), /^Approve/);
  await page.locator('#thread .msg', { hasText: 'Ran: ' }).first().waitFor();
  await card(page).waitFor();
  await press(page, card(page), /^Deny/);
  await modal(page).locator('textarea').fill('not needed, the cause is clear');
  await shoot(page, 'deny', await around(modal(page), 640, 520));
  await modal(page).locator('[type=submit]').click();
  await page.locator('#thread .msg', { hasText: 'Investigation ended' }).waitFor();
  await page.locator('#thread .feed').evaluate(f => f.scrollTo(0, 0));
  await shoot(page, 'thread');
  await page.locator('#thread .file').getByRole('button', { name: 'Open' }).click();
  const viewer = page.locator('.dialog.viewer');
  await viewer.getByRole('heading', { name: 'Root Cause', exact: true }).waitFor();
  await shoot(page, 'report', await around(viewer, 860, 790));
}

// ---- two people, each with a code ----

// enrol gives an approver a secret with the program's own verb; code is what the app would show.
function enrol(file, user) {
  const out = execFileSync(path.join(path.dirname(lab), 'ghostbot'), ['totp', 'enrol', user, '--file', file], { encoding: 'utf8' });
  const bits = [...(/secret=([A-Z2-7]+)/.exec(out))[1]].map(c => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('');
  const secret = Buffer.from(bits.match(/.{8}/g).map(b => parseInt(b, 2)));
  return () => {
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
    const mac = createHmac('sha1', secret).update(counter).digest();
    const at = mac[19] & 15;
    return String((mac.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
  };
}

async function twoPeople(browser) {
  const secrets = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'ghostbot-secrets-')), 'totp');
  const code = enrol(secrets, 'U0ONCALL01');
  const { url, end } = await demo({ GHOST_TWO_PERSON: 'RISKY', GHOST_SECOND_FACTOR: 'RISKY', GHOST_TOTP_FILE: secrets });
  try {
    const { page } = await open(browser, url, { viewport: { width: 1280, height: 800 }, deviceScaleFactor: scale, patience: 60_000, colorScheme: 'light', locale: 'en-GB' });
    await use(page, 'checkout gets 502');
    await thread(page);
    await card(page).waitFor();
    await press(page, card(page), /^Approve/);
    const field = modal(page).locator('input:not([type=hidden]), textarea').first();
    await field.fill(String((Number(code()) + 271828) % 1_000_000).padStart(6, '0'));
    await modal(page).locator('[type=submit]').click();
    await modal(page).locator('.b-error').waitFor();
    await shoot(page, 'code', await around(modal(page), 640, 480));
    await field.fill(code());
    await modal(page).locator('[type=submit]').click();
    const voted = page.locator('#thread .msg', { hasText: 'Approved 1 of 2' }).filter({ has: page.getByRole('button', { name: /^Approve/ }) }).last();
    await voted.waitFor();
    await modal(page).waitFor({ state: 'detached' });
    await shoot(page, 'one-of-two', await whole(page, voted));
  } finally {
    await end();
    fs.rmSync(path.dirname(secrets), { recursive: true });
  }
}

// outside is what people see outside of a case's thread: the window of the shortcut, the list of a
// channel's cases, the Home tab.
async function outside(browser, url) {
  const look = { deviceScaleFactor: scale, patience: 60_000, colorScheme: 'light', locale: 'en-GB' };
  const { page } = await open(browser, url, { viewport: { width: 1280, height: 800 }, ...look });
  await page.locator('#channel .composer-text').fill('[FIRING] checkout: 38 % of requests fail\nGET https://shop.example.com/cart answers 502 since 10:40\nseverity: critical, region: east');
  await page.keyboard.press('Enter');
  const line = page.locator('#channel .msg', { hasText: 'requests fail' }).last();
  await line.waitFor();
  await line.hover();
  await line.getByRole('button', { name: 'More actions' }).click();
  await page.locator('.menu-item', { hasText: 'Investigate this' }).click();
  await modal(page).locator('textarea').waitFor();
  await shoot(page, 'shortcut', await around(modal(page), 640, 460));
  await page.keyboard.press('Escape');
  await modal(page).waitFor({ state: 'detached' });
  await use(page, 'checkout gets 502');
  await thread(page);
  await card(page).waitFor();
  await page.locator('#channel .composer-text').fill('/ghost list');
  await page.keyboard.press('Enter');
  const list = page.locator('#channel .ephemeral', { hasText: 'Cases of this channel' });
  await list.waitFor();
  const b = await list.boundingBox();
  await shoot(page, 'list', { x: b.x, y: b.y - 4, width: b.width, height: b.height + 8 });
  const home = async p => {
    await p.locator('.tab', { hasText: 'Home' }).click();
    await p.locator('.home').getByText('Open the card').waitFor();
  };
  await page.locator('.side-item', { hasText: 'Ghost' }).click();
  await home(page);
  await shoot(page, 'home', { x: 260, y: 44, width: 780, height: 440 });
  const phone = await open(browser, url, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, ...look });
  await phone.page.goto(url + '/#/list');
  await phone.page.locator('.side-item', { hasText: 'Ghost' }).tap();
  await home(phone.page);
  await shoot(phone.page, 'home-phone');
}

// ---- recorded terminals ----

const colours = ['#1d1f21', '#f2637f', '#5fd7a7', '#e2c065', '#6cb6f5', '#c792ea', '#5bd1d7', '#e6e5e7', '#8b8a8e', '#ff8aa0', '#8aecc4', '#f5d77a', '#9ccfff', '#dcb6f7', '#8ee6ea', '#ffffff'];

// runs splits recorded output into pieces of one style; sequences other than SGR are dropped.
function runs(text) {
  const out = [];
  let style = {};
  for (const part of text.replace(/\r/g, '').split(/(\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.)/)) {
    const sgr = /^\x1b\[([0-9;]*)m$/.exec(part);
    if (sgr) style = sgrStyle(style, sgr[1].split(';').map(Number));
    else if (part && !part.startsWith('\x1b')) out.push([part, style]);
  }
  return out;
}

function sgrStyle(old, codes) {
  let s = { ...old };
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i];
    if (c === 0) s = {};
    else if (c === 1) s.fontWeight = '700';
    else if (c === 2) s.opacity = '0.65';
    else if (c === 3) s.fontStyle = 'italic';
    else if (c === 4) s.textDecoration = 'underline';
    else if (c === 7) { s.background = '#e6e5e7'; s.color = '#1a1d21'; }
    else if (c === 22) { delete s.fontWeight; delete s.opacity; }
    else if (c === 27) { delete s.background; delete s.color; }
    else if (c === 39) delete s.color;
    else if (c === 49) delete s.background;
    else if (c >= 30 && c <= 37) s.color = colours[c - 30];
    else if (c >= 90 && c <= 97) s.color = colours[c - 82];
    else if (c >= 40 && c <= 47) s.background = colours[c - 40];
    else if ((c === 38 || c === 48) && codes[i + 1] === 5) { s[c === 38 ? 'color' : 'background'] = indexed(codes[i + 2]); i += 2; }
    else if ((c === 38 || c === 48) && codes[i + 1] === 2) { s[c === 38 ? 'color' : 'background'] = `rgb(${codes.slice(i + 2, i + 5)})`; i += 4; }
  }
  return s;
}

function indexed(n) {
  if (n < 16) return colours[n];
  if (n >= 232) return `rgb(${Array(3).fill(8 + 10 * (n - 232))})`;
  const level = x => x ? 55 + 40 * x : 0;
  return `rgb(${[Math.floor((n - 16) / 36), Math.floor((n - 16) / 6) % 6, (n - 16) % 6].map(level)})`;
}

async function terminal(browser, name) {
  const text = fs.readFileSync(path.join(into, name + '.txt'), 'utf8').trimEnd();
  const context = await browser.newContext({ viewport: { width: 860, height: 400 }, deviceScaleFactor: scale });
  const page = await context.newPage();
  await page.setContent(`<style>body{margin:0;padding:18px;background:#f0eff2;width:824px}div{background:#1a1d21;border-radius:10px;overflow:hidden;box-shadow:0 6px 22px #0004}
    header{padding:10px 14px;background:#2a2d31;display:flex;gap:8px}i{width:11px;height:11px;border-radius:50%;background:#4a4c52}
    pre{margin:0;padding:14px 18px 18px;color:#e6e5e7;font:13px/1.5 "JetBrains Mono","DejaVu Sans Mono",monospace;font-variant-ligatures:none;white-space:pre-wrap;overflow-wrap:anywhere}</style>
    <div><header><i></i><i></i><i></i></header><pre></pre></div>`);
  await page.evaluate(list => {
    for (const [text, style] of list) Object.assign(document.querySelector('pre').appendChild(document.createElement('span')).style, style), document.querySelector('pre').lastChild.textContent = text;
  }, runs(text));
  const height = await page.evaluate(() => 2 * Math.ceil((document.querySelector('div').getBoundingClientRect().bottom + 18) / 2));
  await page.setViewportSize({ width: 860, height });
  await shoot(page, name);
}

fs.mkdirSync(into, { recursive: true });
const browser = await start(240_000);
const { url, end } = await demo();
try {
  if (!process.env.ONLY) await incident(browser, url);
  await outside(browser, url);
  if (!process.env.ONLY) await twoPeople(browser);
  if (!process.env.ONLY) for (const f of fs.readdirSync(into).filter(f => f.endsWith('.txt'))) await terminal(browser, f.slice(0, -4));
} finally {
  await browser.close();
  await end();
}
for (const at of written) {
  const size = fs.statSync(at).size;
  console.log(at, size);
  assert.ok(size < limit, `${at} has ${size} bytes, at most ${limit} are allowed`);
}
process.exit(0);
