// Pictures of a Larder under a light load: the dashboard right after it is opened and after PICTURE_MINUTES, ten by
// default, in light, dark and 390 pixels wide, and the page that visitors see of a dead origin. The first of those after
// the minutes is the guide's; GUIDE names the file to which it is copied.
import fs from 'node:fs';
import path from 'node:path';

import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { SITE, Watcher, get } from './desk.mjs';

const minutes = Number(process.env.PICTURE_MINUTES ?? 10);
const shots = process.env.LAB_SHOTS;
const looks = [
  ['light', { viewport: { width: 1200, height: 900 } }],
  ['dark', { viewport: { width: 1200, height: 900 }, colorScheme: 'dark' }],
  ['narrow', { viewport: { width: 390, height: 844 }, hasTouch: true }],
];

// Visitors who come in waves, some twenty requests a second at most, for as long as is said.
async function visitors(ms) {
  const end = Date.now() + ms;
  for (let n = 0; Date.now() < end; n += 1) {
    const host = { Host: n % 3 ? 'www.example' : 'shop.example' };
    const page = n % 7 === 0 ? `/account/${n % 5}` : `/kept/${(n * n + (n >> 3)) % 300}`;
    await get(page, host).catch(() => {});
    if (n % 90 === 0) await get('/fail/search', host).catch(() => {});
    const wave = 1 + Math.sin(n / 150) * 0.7;
    await new Promise((resolve) => { setTimeout(resolve, 70 * wave + 20); });
  }
}

let browser = await openBrowser();

async function everyLook(when) {
  for (const [what, options] of looks) {
    await part(`${when}, ${what}`, async () => {
      const anna = await Watcher.enter(browser, `${when} ${what}`, options);
      const { page } = anna;
      await anna.signIn('config');
      await page.screenshot({ path: path.join(shots, `${when}-${what}-at-once.png`) });
      await anna.until('figures come', async () => (await anna.tile('Requests')).number > 0);
      await page.waitForSelector('#time-table tbody tr');
      await page.waitForTimeout(3_000);
      await page.screenshot({ path: path.join(shots, `${when}-${what}.png`) });
      await page.screenshot({ path: path.join(shots, `${when}-${what}-whole.png`), fullPage: true });
      const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      check('nothing sticks out at the side', wide <= width, `${wide} of ${width}`);
      await anna.leave();
    });
  }
}

const coming = visitors(minutes * 60_000 + 90_000);
await everyLook('first');
await browser.close();
await new Promise((resolve) => { setTimeout(resolve, minutes * 60_000); });
browser = await openBrowser({ keep: true });
await everyLook('later');
const picture = path.join(shots, 'later-light.png');
check('the picture is small', fs.statSync(picture).size < 300_000, fs.statSync(picture).size);
if (process.env.GUIDE) fs.copyFileSync(picture, process.env.GUIDE);

// The browser cannot be told to name another host, so a page is asked for as `old.localhost`.
await part('the page of a dead origin', async () => {
  for (const [what, options] of looks) {
    const anna = await Watcher.enter(browser, `visitor ${what}`, options);
    anna.expected.push(/^502 GET /, /^foreign /);
    await anna.page.goto(`http://old.localhost:${SITE.port}/there`);
    const text = await anna.page.innerText('body');
    check('no address and no errno', !/127\.0\.0\.1|refused|os error/i.test(text), text.replaceAll('\n', ' '));
    await anna.page.screenshot({ path: path.join(shots, `error-${what}.png`) });
    await anna.leave();
  }
  const anna = await Watcher.enter(browser, 'an operator');
  await anna.signIn('config');
  const row = anna.page.locator('#errors-table tbody tr', { hasText: 'old.localhost' }).first();
  await anna.until('the operator sees why', async () => /refused/i.test(await row.innerText()));
  await row.scrollIntoViewIfNeeded();
  await anna.page.screenshot({ path: path.join(shots, 'error-operator.png') });
  await anna.leave();
});

await coming;
await browser.close();
sum('the dashboard, pictures');
