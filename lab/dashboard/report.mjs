// The report of `larder bench`, of two runs against this Larder: for everyone, in light, dark, narrow and on paper, and
// without a word to anybody.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { look } from './axe.mjs';
import { SITE } from './desk.mjs';

const work = process.env.LAB_WORK;
const at = (name) => path.join(work, name);
const bench = (...args) => execFileSync(process.env.LAB_LARDER, ['bench', ...args], { encoding: 'utf8' });
const browser = await openBrowser();
const report = at('report.html');

await part('two runs and their report', async () => {
  const load = ['-c', '1..8', '--rounds', '3', '-d', '200ms', '--warm-up', '50ms'];
  for (const name of ['monday', 'tuesday']) {
    bench(...load, '--pid', fs.readFileSync(process.env.LAB_PID, 'utf8').trim(), '--json', at(`${name}.json`), `${SITE.origin}/kept/1`);
  }
  bench('report', at('monday.json'), at('tuesday.json'), '--html', report, '--title', 'Two days <of it>');
  const text = bench('report', at('monday.json'));
  check('without a file it is Markdown', text.startsWith('# Load test\n') && text.includes('| requests/s |'));
});

const shown = [
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['narrow', { viewport: { width: 360, height: 780 } }],
];
for (const [what, options] of shown) {
  await part(`the report, ${what}`, async () => {
    const page = await browser.newPage(options);
    const asked = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.goto(pathToFileURL(report).href);
    check(`${what}: it asks nobody`, asked.length === 1, asked);
    check(`${what}: its charts are there, with names`, (await page.getByRole('img').count()) === 5);
    const named = await page.getByRole('img', { name: 'Latency, 99th percentile' }).count();
    check(`${what}: each chart has its title`, named === 1, named);
    const rows = await page.locator('tbody tr').count();
    check(`${what}: a row for each load of both days`, rows === 8, rows);
    check(`${what}: words are words`, (await page.locator('h1').innerText()) === 'Two days <of it>');
    await look(page, what);
    const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    check(`${what}: nothing sticks out at the side`, wide <= width, `${wide} of ${width}`);
    await page.screenshot({ path: path.join(process.env.LAB_SHOTS, `report-${what}.png`), fullPage: true });
    await page.close();
  });
}

await part('the report, on paper', async () => {
  const page = await browser.newPage({ viewport: { width: 700, height: 1000 } });
  await page.goto(pathToFileURL(report).href);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  check('paper is white, whatever the screen is', ground === 'rgb(255, 255, 255)', ground);
  const cut = await page.evaluate(() => [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > document.documentElement.clientWidth).length);
  check('nothing is cut off', cut === 0, cut);
  await page.screenshot({ path: path.join(process.env.LAB_SHOTS, 'report-paper.png'), fullPage: true });
  await page.pdf({ path: path.join(process.env.LAB_SHOTS, 'report.pdf'), format: 'A4' });
  await page.close();
});

await browser.close();
sum('the report of larder bench');
