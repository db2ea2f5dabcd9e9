// The documentation's site (`make site`), opened from its folder: light, dark and on a phone, its search, and axe-core on
// a page of each kind. It must not ask any host for anything.
import { pathToFileURL } from 'node:url';
import path from 'node:path';

import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser, Person } from '../browser/people.mjs';
import { look } from './axe.mjs';
import { Watcher } from './desk.mjs';

const site = process.env.LAB_DOCUMENTS;
const at = (page) => pathToFileURL(path.join(site, page)).href;
const browser = await openBrowser();

async function reader(name, options) {
  const person = await Person.enter(browser, name, options);
  // The search box asks for the page's own styles once more, which a folder does not give; it looks well without.
  person.expected.push(/file:.*\.css/);
  return person;
}

for (const colorScheme of ['light', 'dark']) {
  await part(colorScheme, async () => {
    const person = await reader(`a reader in ${colorScheme}`, { colorScheme });
    for (const page of ['index.html', 'docs/guide/caching.html', 'docs/reference/configuration.html',
      'docs/reference/admin-api.html', 'man/larder-serve.1.html', 'docs/lab/mixed-10k.html']) {
      await person.page.goto(at(page));
      await look(person.page, `${page}, ${colorScheme}`);
      const broken = await person.page.evaluate(() =>
        [...document.images].filter((image) => !image.complete || image.naturalWidth === 0).map((image) => image.src));
      check(`${page}, ${colorScheme}: pictures are there`, broken.length === 0, broken);
      await person.shot(`${colorScheme} ${page}`);
    }
    await person.leave();
  });
}

await part('search', async () => {
  const person = await reader('a reader who searches');
  await person.page.goto(at('index.html'));
  await person.page.keyboard.press('/');
  await person.page.keyboard.type('stale-while-revalidate', { delay: 20 });
  const count = person.page.getByText(/^\d+ results$/);
  await count.waitFor({ timeout: 20_000 });
  check('a search finds pages', Number.parseInt(await count.textContent(), 10) > 5, await count.textContent());
  await person.shot('search');
  await person.page.keyboard.press('Enter');
  await person.page.waitForURL((url) => !url.pathname.endsWith('/index.html'));
  const text = await person.page.locator('main').textContent();
  check('its first result leads to a page about it', /stale|while/i.test(text), person.page.url());
  await person.leave();
});

await part('phone', async () => {
  const person = await reader('a reader on a phone', { viewport: { width: 390, height: 844 } });
  for (const page of ['index.html', 'docs/guide/purging.html', 'docs/reference/configuration.html']) {
    await person.page.goto(at(page));
    const wide = await person.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    check(`${page}: fits a phone`, wide <= 0, wide);
    await person.shot(`phone ${page}`);
  }
  await person.leave();
});

await part('help', async () => {
  const person = await Watcher.enter(browser, 'a reader from the dashboard');
  await person.signIn('read');
  const link = person.page.getByRole('link', { name: 'Help on purging' });
  await link.waitFor();
  check('the dashboard links to the page about purging', await link.isVisible());
  await person.page.goto(new URL(await link.getAttribute('href'), process.env.LAB_URL).href);
  check('the page is there', /Purging/.test(await person.page.locator('h1').first().textContent()));
  await look(person.page, 'help');
  await person.page.keyboard.press('/');
  await person.page.keyboard.type('surrogate key', { delay: 20 });
  await person.page.getByText(/^\d+ results$/).waitFor({ timeout: 20_000 });
  check('its search works over HTTP', true);
  await person.shot('help');
  await person.leave();
});

await browser.close();
sum('the documentation');
