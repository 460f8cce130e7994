// The report of a case that captured packets, as people see it: pictures in the thread, each with what it
// shows in words, on a desktop, on a phone and for a screen reader. With RECORD, a directory, the
// page is also kept as a picture there. Prints "plots ok" at the end.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { shrink } from './png.mjs';
import { start, open, wide } from './person.mjs';

const { LAB_URL: base, RECORD: into } = process.env;
const browser = await start(120_000);
const { page, wrong } = await open(browser, base, { patience: 45_000, deviceScaleFactor: into ? 1.5 : 1, colorScheme: 'light', locale: 'en-GB' });
const root = page.locator('#channel .msg', { hasText: 'Investigated: slow answers' }).last();
await root.locator('.summary').click();
const pictures = page.locator('#thread .file.image img');
await pictures.first().waitFor();
for (const img of await pictures.all()) {
  const alt = await img.getAttribute('alt');
  assert.ok(alt && alt.split(/\s+/).length > 4, `what a picture shows is said in words: ${alt}`);
  assert.ok(!/\.png$/.test(alt), `a name is no description: ${alt}`);
  await img.scrollIntoViewIfNeeded();
  await page.waitForFunction(i => i.complete && i.naturalWidth > 200, await img.elementHandle());
}
const file = page.locator('#thread .file', { hasText: 'Root cause analysis' });
assert.equal(await file.count(), 1, 'the report is there once');
for (const width of [320, 390, 640, 900, 1280]) {
  await page.setViewportSize({ width, height: 800 });
  assert.equal(await wide(page), false, `the thread sticks out at ${width}`);
}
if (into) {
  const shoot = async (name, at) => {
    const img = at.locator('#thread .file.image').first();
    await img.scrollIntoViewIfNeeded();
    await at.mouse.move(0, 0);
    const pane = await at.locator('#thread').boundingBox();
    fs.writeFileSync(path.join(into, name + '.png'), shrink(await at.screenshot({ clip: pane, animations: 'disabled', caret: 'hide' })));
  };
  await shoot('plots', page);
}
assert.deepEqual(wrong, []);
console.log('plots ok');
await browser.close();
process.exit(0);
