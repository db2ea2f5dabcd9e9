// One site alone: the choice, its charts and tables, statuses, hit ratio and percentiles over time, what origins were
// spared, and the configuration in force, with no secret in it.
import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { Watcher, get, load } from './desk.mjs';

const browser = await openBrowser();
const stop = load();

const legend = (page, title) => page.locator('.chart', { hasText: title }).first().locator('.legend').innerText();
const figureOf = (words, label) => {
  const [, number] = new RegExp(`${label}\\s*([\\d.,]+)`).exec(words) ?? [];
  return number === undefined ? undefined : Number(number.replaceAll(',', ''));
};

for (const [what, options] of [['light', {}], ['narrow dark', { viewport: { width: 360, height: 780 }, colorScheme: 'dark', hasTouch: true }]]) {
  await part(`one site alone, ${what}`, async () => {
    const anna = await Watcher.enter(browser, what, options);
    const { page } = anna;
    await anna.signIn('read');
    await anna.until('the sites can be chosen', async () => (await page.locator('#site option').allInnerTexts()).join()
      === 'All sites,*,shop.example,dead.example');
    await anna.until('all of them at first', async () => (await anna.tile('Requests')).number > 20);
    for (const [title, label] of [['Answers by status', '2xx'], ['Answers by status', '5xx'], ['Hit ratio', 'hits'], ['Time to answer', 'hits p50'],
      ['Time to answer', 'others p99'], ['Origins were spared', 'spared']]) {
      await anna.until(`${title}: ${label} has a figure`, async () => figureOf(await legend(page, title), label) >= 0);
    }
    await anna.until('origins were spared requests, and work', async () => (await anna.tile('Origins were spared')).number > 10
      && /\d+ (s|min|h).* of work/.test(await page.locator('.tile', { hasText: 'Origins were spared' }).innerText()));
    // The load comes in waves: all of it is what is there at its highest.
    let all = 0;
    for (let n = 0; n < 6; n += 1) {
      all = Math.max(all, (await anna.tile('Requests')).number);
      await page.waitForTimeout(1_000);
    }
    await page.selectOption('#site', 'shop.example');
    await anna.until('the heading says so', async () => (await page.innerText('#traffic-title')).startsWith('Traffic of shop.example'));
    await anna.until('its requests are fewer than those of all', async () => {
      const own = (await anna.tile('Requests')).number;
      return own > 5 && own < all * 0.8;
    });
    await anna.until('its hits', async () => figureOf(await legend(page, 'Requests'), 'hits') > 1);
    await anna.until('its URLs', async () => await page.locator('#time-table tbody tr').count() > 2);
    const urls = await page.locator('#time-table tbody th, #misses-table tbody th').allInnerTexts();
    check('and none of others', urls.every((url) => url.startsWith('shop.example')), urls.filter((url) => !url.startsWith('shop')));
    await anna.until('its errors, also those of before', async () => await page.locator('#errors-table tbody tr').count() > 0);
    const errors = await page.locator('#errors-table tbody th').allInnerTexts();
    check('and none of others', errors.every((url) => url.includes('shop.example')), errors);
    check('its origin alone', (await page.locator('#origins-table tbody tr').allInnerTexts()).every((row) => row.includes('app')));
    for (const id of ['disk', 'cluster', 'limits']) check(`${id} is not shown`, !await page.isVisible(`#${id}`));
    for (const label of ['Memory', 'Connections']) check(`${label} is not shown`, !await page.locator('.tile', { hasText: label }).isVisible());
    const words = await page.innerText('#board');
    check('every figure is a number', !/NaN|undefined|null/.test(words), /.{30}(NaN|undefined|null).{30}/s.exec(words)?.[0]);
    const range = page.locator('.chart', { hasText: 'Requests' }).first().locator('p');
    check('with the time before it was chosen', /highest .* was [1-9]/.test(await range.textContent()), await range.textContent());
    await page.waitForTimeout(3_000);
    await anna.shot('one site');
    const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    check('nothing sticks out at the side', wide <= width, `${wide} of ${width}`);
    await page.selectOption('#site', '');
    await anna.until('and all again', async () => await page.isVisible('#limits') && (await anna.tile('Requests')).number > all * 0.5);
    const only = page.locator('#sites-table tbody tr', { hasText: 'dead.example' }).locator('button');
    await get('/', { Host: 'dead.example' });
    await anna.until('by its row in the table, too', async () => await only.count() === 1);
    await only.click();
    await anna.until('it is said', async () => (await page.innerText('#traffic-title')).startsWith('Traffic of dead.example')
      && await page.inputValue('#site') === 'dead.example');
    await anna.until('bad news stays', async () => {
      await get('/', { Host: 'dead.example' });
      return (await page.innerText('#news')).includes('Origin dead');
    });
    await only.click();
    await anna.until('and all again', async () => await page.inputValue('#site') === '');
    await anna.leave();
  });
}

await part('the configuration in force', async () => {
  const anna = await Watcher.enter(browser, 'a reader');
  const { page } = anna;
  await anna.signIn('read');
  await anna.until('counted', async () => (await page.innerText('#in-force-count')) === '3 sites, 2 origins');
  const site = page.locator('#in-force details', { hasText: 'shop.example' });
  await site.locator('summary').click();
  const rules = await site.locator('pre').innerText();
  check('the rules of a site, as check --show says them', rules.includes('site               shop.example') && rules.includes('preset')
    && rules.includes('cookies removed'), rules.slice(0, 80));
  check('a secret is not shown', rules.includes('X-Key is set') && !(await page.content()).includes('word-of-the-shop'));
  check('origins with their servers', /app: .*origin\.sock/.test(await page.innerText('#in-force .plain')), await page.innerText('#in-force .plain'));
  await anna.shot('in force');
  await anna.leave();
});

await stop();
await browser.close();
sum('the dashboard, one site');
