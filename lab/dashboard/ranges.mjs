// How far the charts reach back: what there is of it after a start, and a day, in light, dark and narrow.
import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { Watcher, load } from './desk.mjs';

const browser = await openBrowser();
const stop = load();

// Gives the page a day that the daemon has not seen: its own figures follow.
function invent() {
  const day = (columns) => Array.from({ length: 1_440 }, (_, n) => {
    const time = Math.floor(Date.now() / 60_000 - 1_440 + n) * 60_000;
    const wave = 1 + Math.sin((n / 1_440) * 2 * Math.PI - 2) * 0.6 + Math.sin(n * n) * 0.08;
    const rates = { hits: 900 * wave, misses: 70 * wave, passes: 40, requests: 970 * wave + 40, bytes_out: 9e6 * wave,
      origin_requests: 80 * wave + 40, errors: n % 400 > 380 ? 9 : 0, successes: 900 * wave, redirects: 60 * wave, client_errors: 12, spared_s: 30 * wave,
      from_store: 900 * wave, judged: 970 * wave + 40, hits_p50_us: 60, hits_p90_us: 140, hits_p99_us: 900 * wave,
      others_p50_us: 40_000, others_p90_us: 90_000 * wave, others_p99_us: 700_000 * wave };
    return columns.map((name) => (name === 'time_ms' ? time : rates[name]));
  });
  const asked = window.fetch;
  window.fetch = async (target, options) => {
    const response = await asked(target, options);
    if (!String(target).includes('/api/v1/live')) return response;
    let text = '';
    let told = false;
    const decoder = new TextDecoder();
    const change = new TransformStream({
      transform(chunk, out) {
        if (told) {
          out.enqueue(chunk);
          return;
        }
        text += decoder.decode(chunk, { stream: true });
        const found = /event: history\ndata: (.*)\n\n/.exec(text);
        if (!found) return;
        told = true;
        const history = JSON.parse(found[1]);
        history.minutes = day(history.columns);
        out.enqueue(new TextEncoder().encode(text.replace(found[1], () => JSON.stringify(history))));
      },
    });
    return new Response(response.body.pipeThrough(change), response);
  };
}

const pressed = (page) => page.locator('#ranges [aria-pressed="true"]').allInnerTexts();
const peak = (page) => page.locator('.chart', { hasText: 'Requests' }).first().locator('p').textContent();

await part('after a start', async () => {
  const anna = await Watcher.enter(browser, 'the first');
  const { page } = anna;
  await anna.signIn('read');
  await anna.until('figures come', async () => (await anna.tile('Requests')).number > 5);
  check('the choice', (await page.locator('#ranges button').allInnerTexts()).join() === '10 minutes,1 hour,6 hours,1 day');
  check('the last ten minutes to begin with', (await pressed(page)).join() === '10 minutes');
  check('what is known so far is said', /^\d+ (s|min) so far$/.test(await page.innerText('#known')), await page.innerText('#known'));
  await page.waitForTimeout(3_000);
  await anna.shot('young');
  await page.focus('#ranges button');
  for (const words of ['1 hour', '6 hours', '1 day']) {
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    check(`${words}, by keyboard`, (await pressed(page)).join() === words, await pressed(page));
    check(`${words} in words`, (await peak(page)).includes(`in ${words} was`), await peak(page));
  }
  await anna.leave();
});

for (const [what, options] of [
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['narrow', { viewport: { width: 360, height: 780 }, hasTouch: true }],
  ['narrow dark', { viewport: { width: 360, height: 780 }, colorScheme: 'dark' }],
]) {
  await part(`a day, ${what}`, async () => {
    const anna = await Watcher.enter(browser, what, options);
    const { page } = anna;
    await page.addInitScript(invent);
    await anna.signIn('read');
    await page.evaluate(() => document.getElementById('traffic').scrollIntoView({ behavior: 'instant' }));
    for (const words of ['1 hour', '6 hours', '1 day', '10 minutes']) {
      await page.getByRole('button', { name: words, exact: true }).click();
      check(`${words} is chosen`, (await pressed(page)).join() === words);
      if (words !== '10 minutes') check(`${words}: nothing is missing`, await page.innerText('#known') === '', await page.innerText('#known'));
      await page.waitForTimeout(300);
      await anna.shot(`${what} ${words}`);
    }
    await page.getByRole('button', { name: '1 day', exact: true }).click();
    const highest = /was ([\d,]+)/.exec(await peak(page))?.[1];
    check('the highest of the day is told', Number(highest?.replace(',', '')) > 1_300, highest);
    const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    check(`nothing sticks out at the side`, wide <= width, `${wide} of ${width}`);
    await anna.leave();
  });
}

await stop();
await browser.close();
sum('the dashboard, how far it reaches back');
