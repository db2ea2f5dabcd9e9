// Figures that move under load, and stand still without.
import { hostname } from 'node:os';
import tls from 'node:tls';
import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { Watcher, get, load, tokenOf } from './desk.mjs';

const browser = await openBrowser();

// One handshake of the old version.
function shakeHands() {
  const to = { host: '127.0.0.1', port: process.env.LAB_HTTPS, maxVersion: 'TLSv1.2', rejectUnauthorized: false };
  const socket = tls.connect(to, () => socket.end());
  socket.on('error', () => {});
}

await part('signing in', async () => {
  const anna = await Watcher.enter(browser, 'a stranger');
  const { page } = anna;
  anna.expected.push(/^401 GET .*\/api\/v1\/live/);
  await page.goto(process.env.LAB_URL);
  for (const [token, words] of [['', 'is required'], ['not-a-token-of-this-daemon', 'not known'], ['zwei Wörter', 'cannot be a token']]) {
    await page.fill('#token', token);
    await page.keyboard.press('Enter');
    await anna.until(`refused: ${token}`, async () => (await page.innerText('#token-problem')).includes(words));
    check('no figures are there', !(await page.isVisible('#board')));
  }
  await anna.shot('refused');
  await anna.leave();
});

await part('who may what', async () => {
  for (const [role, purges, changes] of [['read', false, false], ['purge', true, false], ['config', true, true]]) {
    const anna = await Watcher.enter(browser, `role ${role}`);
    await anna.signIn(role);
    const { page } = anna;
    check(`${role}: is said`, await page.innerText('#role') === role);
    check(`${role}: purge box`, await page.isEnabled('#purge-value') === purges);
    check(`${role}: reload`, await page.isEnabled('#config-reload') === changes);
    await anna.until(`${role}: servers by hand`, async () => (await page.locator('#origins-table td button').count() > 0) === changes);
    const kept = await page.evaluate(() => [location.href, document.cookie, JSON.stringify(localStorage)]);
    check(`${role}: the token is in no URL, cookie or lasting storage`, !kept.join(' ').includes(tokenOf(role)), kept);
    await page.reload();
    await page.waitForSelector('#board:not([hidden])');
    await page.click('#sign-out');
    check(`${role}: signed out`, await page.isVisible('#token') && await page.evaluate(() => sessionStorage.length) === 0);
    await anna.leave();
  }
});

await part('figures under load', async () => {
  const anna = await Watcher.enter(browser, 'the operator');
  const { page } = anna;
  await anna.signIn('config');
  await anna.until('still without load', async () => (await anna.tile('Requests')).number < 5, 20_000);
  const stop = load();
  await anna.until('requests/s', async () => (await anna.tile('Requests')).number > 20);
  await anna.until('hit ratio', async () => (await anna.tile('Hit ratio')).number > 50);
  for (const label of ['Sent', 'Origin requests', 'Errors', 'Memory', 'Objects', 'Connections']) {
    await anna.until(label, async () => (await anna.tile(label)).number > 0);
  }
  const words = await page.innerText('#tiles');
  check('every figure is a number', !/NaN|undefined|null/.test(words), words.replaceAll('\n', ' '));
  const row = (table, words) => page.locator(`#${table} tbody tr`, { hasText: words }).first();
  for (const [table, words] of [['misses-table', '/passed/'], ['time-table', 'shop.example/'], ['errors-table', '/fail/'],
    ['sites-table', '*'], ['disk-table', '/disk'], ['clients-table', '127.0.0.1'], ['origins-table', 'app'],
    ['cluster-table', 'ready'], ['reasons-table', 'no-store']]) {
    await anna.until(`${table} has ${words}`, () => row(table, words).isVisible());
  }
  await anna.until('certificates say how long they are good for', async () => /\b(19|20) days/.test(
    await row('certificates-table', 'cert.pem').innerText()));
  await anna.until('servers say how long they take', async () => /\d (µs|ms)/.test(await row('origins-table', 'app').innerText()));
  check('the page says on which machine it is', (await page.innerText('#about')).includes(` on ${hostname()}, up `)
    && await page.title() === `${hostname()}: Larder`, await page.title());
  await row('reasons-table', 'no-store').locator('button').click();
  await anna.until('a reason has its URLs, each with its button', () => row('reason-urls-table', '/passed/').locator('button').isVisible());
  await row('reasons-table', 'no-store').locator('button').click();
  await anna.until('and they go again', async () => !await page.isVisible('#reason-urls-table'));
  check('no bad news so far', !await page.isVisible('#news'), await page.innerText('#news'));
  check('a server nobody answers for', await get('/', { Host: 'dead.example' }) === 502);
  await anna.until('is bad news, on top', async () => {
    await get('/', { Host: 'dead.example' });
    return (await page.innerText('#news')).includes('Origin dead is down since ');
  });
  const dead = () => row('origins-table', 'dead').innerText();
  await anna.until('its last failure says what and when', async () => /refused[^]*\d\d:\d\d/.test(await dead()));
  const shaking = setInterval(shakeHands, 200);
  const connections = page.locator('.tile', { hasText: 'Connections' }).first();
  await anna.until('handshakes are told, and those of TLS 1.2', async () => /TLS\/s, 100\.0 % of 1\.2/.test(await connections.innerText()));
  clearInterval(shaking);
  const trusts = async () => (await page.innerText('#cluster-title')).includes('board, trusts its stored responses');
  await anna.until('the node trusts what it stores', trusts);
  const first = await anna.tile('Objects');
  const quantiles = page.getByRole('list', { name: 'All others: quantiles of times' });
  await anna.until('times of misses are told', async () => /p50\s*\d/.test(await quantiles.innerText()));
  check('objects are counted', first.number > 10, first.text);
  const told = async () => (await page.locator('#tiles').innerText());
  const before = await told();
  await anna.until('figures move', async () => await told() !== before);
  await page.click('#pause');
  await page.waitForTimeout(1_200);
  const paused = await told();
  await page.waitForTimeout(2_500);
  check('paused, they stand still', await told() === paused && await page.innerText('#state') === 'Paused');
  await page.click('#pause');
  await anna.until('and move again', async () => await told() !== paused);
  const later = await Watcher.enter(browser, 'a newcomer');
  await later.signIn('read');
  const peak = () => later.page.locator('.chart', { hasText: 'Requests' }).first().locator('p').textContent();
  await later.until('a newcomer sees the minutes before', async () => /highest .* was [1-9]/.test(await peak()));
  await later.leave();
  await page.waitForTimeout(4_000);
  await anna.shot('under load');
  const sent = await stop();
  await anna.until('still again', async () => (await anna.tile('Requests')).number < 5, 20_000);
  check('the load was a load', sent > 200, sent);
  await anna.leave();
});

await browser.close();
sum('the dashboard, live');
