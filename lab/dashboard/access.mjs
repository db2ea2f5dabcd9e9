// For everyone: axe-core in light, dark and narrow, and the whole page by keyboard alone.
import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { look } from './axe.mjs';
import { SITE, Watcher, get, load, tokenOf } from './desk.mjs';

const browser = await openBrowser();
const stop = load();

for (const [what, options] of [
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['narrow', { viewport: { width: 360, height: 780 }, hasTouch: true }],
  ['narrow dark', { viewport: { width: 360, height: 780 }, colorScheme: 'dark' }],
  ['less motion, more contrast', { reducedMotion: 'reduce', forcedColors: 'active' }],
]) {
  await part(what, async () => {
    const anna = await Watcher.enter(browser, what, options);
    const { page } = anna;
    await page.goto(process.env.LAB_URL);
    await look(anna.page, `${what}, signing in`);
    await anna.shot(`${what} sign in`);
    await anna.signIn('config');
    await page.waitForSelector('#errors-table tbody tr');
    await page.fill('#explain-url', `${SITE.origin}/kept/1`);
    await page.click('#explain-form button[type="submit"]');
    await page.waitForSelector('#explanation .steps');
    await page.check('#purge-tags');
    await page.fill('#purge-value', 'nothing-has-this');
    await page.click('#purge-form button[type="submit"]');
    await page.waitForSelector('#purge-answer:not(:empty)');
    await look(anna.page, what);
    const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    check(`${what}: nothing sticks out at the side`, wide <= width, `${wide} of ${width}`);
    for (const id of ['main', 'origins', 'cluster', 'urls', 'errors', 'explain', 'purge']) {
      await page.evaluate((id) => document.getElementById(id).scrollIntoView({ behavior: 'instant' }), id);
      await page.waitForTimeout(150);
      await anna.shot(`${what} ${id}`);
    }
    const moves = await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior === 'smooth');
    check(`${what}: scrolling is smooth unless less motion is wanted`, moves === (options.reducedMotion !== 'reduce'));
    await page.check('#purge-all');
    await page.click('#purge-form button[type="submit"]');
    await look(anna.page, `${what}, being asked`);
    await page.keyboard.press('Escape');
    await anna.leave();
  });
}

await part('by keyboard', async () => {
  // Where the focus goes is looked at once it is there.
  const anna = await Watcher.enter(browser, 'without a mouse', { reducedMotion: 'reduce' });
  const { page } = anna;
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  const focus = () => page.evaluate(() => {
    const { activeElement: at } = document;
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    const bar = document.querySelector('.bar').getBoundingClientRect();
    return {
      name: at.id || at.getAttribute('aria-label') || at.textContent.trim().slice(0, 30),
      tag: at.tagName,
      top: box.top + scrollY,
      seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
      covered: !at.closest('.bar, .skip') && box.bottom < bar.bottom,
      inView: box.bottom > 0 && box.top < innerHeight,
    };
  });
  await page.goto(process.env.LAB_URL);
  check('the token is asked for at once', (await focus()).name === 'token');
  await page.keyboard.insertText(tokenOf('config'));
  await press('Enter');
  await page.waitForSelector('#errors-table tbody tr');
  check('then the figures have the focus', (await focus()).name === 'main');
  await page.reload();
  await page.waitForSelector('#errors-table tbody tr');
  const way = [];
  for (let n = 0; n < 400; n += 1) {
    await press('Tab');
    const at = await focus();
    if (at.tag === 'BODY') break;
    way.push(at);
  }
  check('the way starts with the skip link', way[0]?.name.startsWith('Skip'), way[0]?.name);
  check('and has an end', way.length > 30 && way.length < 400, way.length);
  const names = way.map(({ name }) => name);
  for (const name of ['pause', 'sign-out', 'explain-method', 'explain-url', 'purge-url', 'purge-value', 'purge-soft', 'config-check', 'config-reload']) {
    check(`it comes by ${name}`, names.includes(name));
  }
  const hidden = way.filter(({ seen, covered, inView }) => !seen || covered || !inView).map(({ name }) => name);
  check('the focus is always seen', hidden.length === 0, hidden);
  const below = way.filter(({ top }) => top > 100);
  const order = names.indexOf('explain-url') < names.indexOf('purge-value') && names.indexOf('purge-value') < names.indexOf('config-check');
  check('in the order of the page', below.length > 20 && order);

  await page.reload();
  await page.waitForSelector('#errors-table tbody tr');
  await press('Tab', 'Enter', 'Tab');
  check('the skip link skips the bar', !(await page.evaluate(() => Boolean(document.activeElement.closest('.bar, body:focus')))));

  await page.focus('#explain-url');
  await page.keyboard.insertText(`${SITE.origin}/kept/2`);
  await press('Enter');
  await page.waitForSelector('#explanation .steps');
  check('explaining by Enter', true);

  await get('/kept/keys');
  await page.focus('#purge-url');
  await press('ArrowRight', 'ArrowRight');
  check('arrows choose what is purged', await page.isChecked('#purge-tags'));
  await press('Tab');
  await page.keyboard.insertText('keys');
  await press('Enter');
  await anna.until('purging by Enter', async () => (await page.innerText('#purge-answer')).includes('tag keys: 1 object'));
  await page.focus('#purge-tags');
  await press('ArrowRight', 'ArrowRight', 'ArrowRight');
  check('and everything', await page.isChecked('#purge-all'));
  await press('Tab', 'Tab', 'Enter');
  check('which asks, with the focus on Cancel', (await focus()).name === 'Cancel');
  await press('Tab');
  check('then on Purge', (await focus()).name === 'confirm-yes');
  await press('Escape');
  check('Escape leaves it and gives the focus back', (await focus()).name === 'Purge' && !(await page.isVisible('#confirm')));
  await anna.leave();
});

await stop();
await browser.close();
sum('the dashboard, access');
