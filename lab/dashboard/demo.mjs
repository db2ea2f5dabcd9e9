// The link that `larder demo` prints: it signs in by itself, and the token does not stay in the address.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { Watcher } from './desk.mjs';

const browser = await openBrowser();

// Resolves once the link is printed; all that comes later is read too, so that the demo does not wait for a reader.
const linkOf = (demo) => new Promise((resolve, reject) => {
  let text = '';
  demo.stdout.setEncoding('utf8').on('data', (chunk) => {
    text = (text + chunk).slice(-4_000);
    const link = /http:\/\/\S+#token=\S+(?=\s)/.exec(text)?.[0];
    if (link) resolve(link);
  }).on('end', () => reject(new Error(`no link: ${text}`)));
});

await part("the demo's link", async () => {
  const demo = spawn(process.env.LAB_LARDER, ['demo', '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(demo, 'exit');
  try {
    const link = new URL(await linkOf(demo));
    const token = link.hash.slice('#token='.length);
    const anna = await Watcher.enter(browser, 'whoever clicks');
    const { page } = anna;
    // Another daemon than that of the other parts.
    anna.expected.push(new RegExp(`^foreign ${link.origin}/`));
    const asked = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.goto(link.href);
    await page.waitForSelector('#board:not([hidden])');
    await page.waitForSelector('#state[data-state="live"]');
    check('the token is gone from the address', page.url() === `${link.origin}/`, page.url());
    check('and no server was sent it in one', asked.length > 3 && !asked.join(' ').includes(token), asked.length);
    await anna.until('figures come', async () => (await anna.tile('Memory')).number > 0);
    await anna.shot('signed in');
    await page.reload();
    await page.waitForSelector('#board:not([hidden])');
    check('the tab stays signed in', !(await page.isVisible('#sign-in')));
    await page.goBack().catch(() => {});
    check('going back does not bring it either', !page.url().includes('token='), page.url());
    await anna.leave();
  } finally {
    demo.kill('SIGTERM');
    await ended;
  }
});

await browser.close();
sum('the dashboard, the link of the demo');
