// The boxes: explaining, purging, servers by hand, the configuration.
import fs from 'node:fs';
import path from 'node:path';

import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { SITE, Watcher, get } from './desk.mjs';

const browser = await openBrowser();
const anna = await Watcher.enter(browser, 'the operator');
const { page } = anna;
await anna.signIn('config');
const answered = async (box, words) => (await page.innerText(`#${box}-answer`)).includes(words);

async function purge(kind, value, soft = false) {
  await page.check(`#purge-${kind}`);
  if (value) await page.fill('#purge-value', value);
  await page.setChecked('#purge-soft', soft);
  await page.click('#purge-form button[type="submit"]');
}

await part('explaining', async () => {
  for (let n = 0; n < 3; n += 1) await get('/kept/explained');
  const explain = async (url, headers = '') => {
    await page.fill('#explain-url', url);
    if (headers) await page.evaluate(() => { document.querySelector('#explain details').open = true; });
    if (headers) await page.fill('#explain-headers', headers);
    await page.click('#explain-form button[type="submit"]');
  };
  const outcome = () => page.locator('#explanation .served').innerText();
  await explain(`${SITE.origin}/kept/explained`);
  await anna.until('a stored page is a hit', async () => await page.isVisible('#explanation .steps') && await outcome() === 'HIT');
  check('steps are told, one decides', await page.locator('#explanation .steps li.decided').count() >= 1);
  check('and what happened before', await page.locator('#explanation ol').count() === 2);
  const rows = page.locator('#explanation ol').last().locator('li');
  check('equal requests are in one row', await rows.count() === 2, await rows.count());
  const advice = await page.locator('#explanation .advice').allInnerTexts();
  check('what to do is said last', advice.join(' ').startsWith('Nothing: the cache answers.'), advice);
  await anna.shot('explained');
  await explain(`${SITE.origin}/kept/explained`, 'Authorization: Basic eDp5');
  await anna.until('with other header lines it is not', async () => await outcome() !== 'HIT');
  await page.fill('#explain-headers', '');
  const row = page.locator('#misses-table tbody tr', { hasText: '/passed/explained' });
  // What the parts before have asked for fades over half a minute, and may fill the table until then.
  await anna.until('the table has it with its port', async () => {
    for (let n = 0; n < 5; n += 1) await get('/passed/explained');
    return await row.count() === 1 && (await row.innerText()).includes(`${SITE.host}/passed/explained`);
  });
  await row.locator('button').click();
  const asked = await page.inputValue('#explain-url');
  check('the button of a row asks for what the row is', asked === `${SITE.origin}/passed/explained`, asked);
  await anna.until('and is answered', async () => (await page.innerText('#explanation')).includes('/passed/explained'));
  anna.expected.push(/^4\d\d POST .*\/api\/v1\/explain/);
  await explain('no url at all');
  await anna.until('what is no URL is said', async () => (await page.innerText('#explain-answer')).length > 5);
});

await part('purging', async () => {
  const host = SITE.host;
  await get('/kept/a');
  await get('/kept/b');
  await purge('url', `${SITE.origin}/kept/a`);
  await anna.until('by URL', () => answered('purge', '1 object'));
  await purge('tags', 'b');
  await anna.until('by tag', () => answered('purge', 'tag b: 1 object'));
  await get('/kept/c');
  await purge('ban', 'req.url ~ "^/kept/c"');
  await anna.until('by ban', () => answered('purge', 'ban expression'));
  await get('/kept/d');
  await purge('prefix', `${SITE.origin}/kept/`, true);
  await anna.until('by prefix, softly', () => answered('purge', 'Soft purge of prefix'));
  await purge('host', host.split(':')[0]);
  await page.click('#confirm-yes');
  await anna.until('by host, when asked', () => answered('purge', 'Purge of host'));
  await get('/kept/e');
  await purge('all', '');
  check('everything asks first', await page.isVisible('#confirm'));
  await anna.shot('confirm');
  await page.keyboard.press('Escape');
  check('and may be left alone', !(await answered('purge', 'everything')));
  await purge('all', '');
  await page.click('#confirm-yes');
  await anna.until('everything', () => answered('purge', 'Purge of everything'));
  await anna.until('nothing is left', async () => (await anna.tile('Objects')).number === 0);
  anna.expected.push(/^4\d\d POST .*\/api\/v1\/purge/);
  await purge('ban', 'req.urll ~ (');
  await anna.until('a bad expression is said', async () => (await page.locator('#purge-answer.bad').innerText()).length > 5);
});

await part('servers by hand', async () => {
  const app = page.locator('#origins-table tbody tr', { hasText: 'app' });
  const button = (word) => app.locator('button', { hasText: word });
  const pressed = async (word) => await button(word).getAttribute('aria-pressed') === 'true';
  await anna.until('as probes say', () => pressed('Auto'));
  await button('Drain').click();
  check('the last one asks first', await page.isVisible('#confirm'));
  await page.click('#confirm-yes');
  await anna.until('draining', () => pressed('Drain'));
  check('nothing new is fetched', await get('/passed/drained') === 503);
  await button('Auto').click();
  await anna.until('and back', () => pressed('Auto'));
  check('and fetched again', await get('/passed/back') === 200);
});

await part('configuration', async () => {
  const file = path.join(process.env.LAB_WORK, 'larder.toml');
  const good = fs.readFileSync(file, 'utf8');
  await page.click('#config-check');
  await anna.until('a good file', () => answered('config', 'can be used'));
  anna.expected.push(/^422 POST .*\/api\/v1\/config\/(check|reload)/);
  fs.writeFileSync(file, `${good}\norgin = "typo"\n`);
  await page.click('#config-reload');
  await page.click('#confirm-yes');
  await anna.until('a bad one is not taken', () => answered('config', 'stays'));
  check('and what is wrong with it is told', (await page.innerText('#config-output')).includes('orgin'));
  await anna.shot('bad configuration');
  fs.writeFileSync(file, `workers = 1\n${good}`);
  await page.click('#config-reload');
  await page.click('#confirm-yes');
  await anna.until('what takes a restart is named', () => answered('config', 'a restart is needed for: workers.'));
  fs.writeFileSync(file, good);
  await page.click('#config-reload');
  await page.click('#confirm-yes');
  await anna.until('a good one is', () => answered('config', 'Reloaded'));
});

await anna.leave();
await browser.close();
sum('the dashboard, its boxes');
