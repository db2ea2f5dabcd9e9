// The owner of a new WordPress, with a browser: sets it up, chooses how links look, writes a post and changes it; and
// visitors who read it. The post is written and changed in the block editor.
import fs from 'node:fs';

import { check, part, sum } from '../browser/checks.mjs';
import { Person, openBrowser } from '../browser/people.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';
import { EDITOR_PICTURES, logIn, rewrite, write } from '../browser/wordpress.mjs';
import { Page } from './page.mjs';
import { file, inside, read } from './room.mjs';

const guide = new Page('docs/guide/wordpress.md');
const PASSWORD = 'correct horse battery staple';
const browser = await openBrowser();
const olga = await Person.enter(browser, 'Olga, who owns the site');
// A new WordPress asks for pictures of those who write.
olga.expected.push(EDITOR_PICTURES, / https:\/\/secure\.gravatar\.com\//);
const { page } = olga;
let post;

await part('the installer', async () => {
  await olga.open('/');
  check('a new WordPress sends its owner to it', new URL(page.url()).pathname === '/wp-admin/setup-config.php', page.url());
  await page.getByRole('link', { name: 'Let’s go!' }).click();
  await page.fill('#dbname', 'wordpress');
  await page.fill('#uname', 'wordpress');
  await page.fill('#pwd', 'secret');
  await olga.shot('database');
  await page.click('input[name=submit]');
  await page.getByRole('link', { name: 'Run the installation' }).click();
  await page.fill('#weblog_title', 'From a package');
  await page.fill('#user_login', 'olga');
  await page.fill('#pass1', PASSWORD);
  await page.fill('#admin_email', 'olga@example.org');
  await olga.shot('installer');
  await page.click('#submit');
  await page.getByRole('heading', { name: 'Success!' }).waitFor();
  await olga.shot('installed');
  await logIn(olga, 'olga', PASSWORD);
  check('its owner is on the dashboard', await page.locator('#wpadminbar').count() === 1);
  await olga.shot('dashboard');
});

await part('the guide: a hit', async () => {
  const { command } = guide.commands('console', 'curl -sI')[0];
  inside(command);
  const { out } = inside(command);
  check(`"${command}", the second time`, /^cache-status: larder; hit; ttl=\d+/.test(out), out.trim());
});

await part('links, on the page for that', async () => {
  await olga.open('/wp-admin/options-permalink.php');
  const offered = await page.locator('input[name=selection]').evaluateAll((all) => all.map((one) => one.value));
  check('links without index.php are offered, none with it',
    offered.includes('/%postname%/') && !offered.some((one) => one.includes('index.php')), offered);
  await page.check('input[name=selection][value="/%postname%/"]');
  await olga.shot('permalinks');
  await page.click('#submit');
  await page.getByText('Permalink structure updated.').waitFor();
  check('nothing more is asked of the owner', await page.getByText(/update your .* (now|file)|\.htaccess/).count() === 0);
  const hello = await new Visitor().get('/hello-world/');
  check('a post is at its new link', hello.status === 200 && hello.text.includes('Welcome to WordPress.'), hello.status);
});

await part("the guide: Larder's plugin, and pages kept for an hour", async () => {
  const [{ command, output }] = guide.commands('console', 'larder preset install');
  const done = inside(command);
  check(`"${command}" says what the page has`, done.good && done.out.trim() === output.trim(), done.all.trim().replaceAll('\n', ' / '));
  const config = '/etc/larder/larder.toml';
  fs.writeFileSync(file(config), `${read(config)}\n${guide.block('toml', '[site.cache]')}`);
  const [reload] = guide.said(/`(systemctl reload larder)`/);
  const reloaded = inside(reload);
  check(`"${reload}"`, reloaded.good, reloaded.all.trim());
  const [purge] = guide.said(/no tags: `(?:sudo )?([^`]+)` once/);
  const purged = inside(purge);
  check(`"${purge}"`, purged.good, purged.all.trim());
});

// What somebody without cookies sees: with a browser of their own, and by a script.
async function visit(name, text) {
  const visitor = await Person.enter(browser, name);
  const opened = await visitor.open(post);
  await visitor.shot(name);
  await visitor.leave();
  check(`${name}: sees what is to be seen`, opened.status === 200 && opened.html.includes(text) && !opened.html.includes('wpadminbar'), opened.status);
  return opened;
}

const FIRST = 'Written by the owner of a site from a package.';
const SECOND = 'Changed a minute later.';

await part('a post', async () => {
  const link = await write(olga, 'The first post', FIRST);
  post = new URL(await link.getAttribute('href')).pathname;
  check('the block editor publishes it', post === '/the-first-post/', post);
  const front = await new Visitor().get('/');
  check('the front page shows it to strangers at once', front.text.includes('The first post'), seen(front));
  const first = await visit('Anna, the first visitor', FIRST);
  const second = await visit('Bert, the second', FIRST);
  check('the second visitor gets a hit', !first.hit && isHit(second, first), `${first.hit} ${second.hit}`);
  const ttl = Number(/ttl=(\d+)/.exec(second.headers['cache-status'])?.[1]);
  check('which may be kept for long', ttl > 3000, second.headers['cache-status']);
});

await part('the post is changed', async () => {
  const before = await new Visitor().get(post);
  // If not, what was asked last shows who purged it.
  check('what a visitor gets is stored', before.hit, before.hit ? '' : inside('larder log --once | tail -n 25').all);
  const listed = await olga.open('/wp-admin/edit.php');
  const [, id] = /id="post-(\d+)"[^>]*>[^]*?The first post/.exec(listed.html);
  await rewrite(olga, id, SECOND);
  const after = await new Visitor().get(post);
  check("a visitor's next request has the change", !after.hit && after.text.includes(SECOND) && !after.text.includes(FIRST), seen(after));
  const again = await visit('Carl, later', SECOND);
  check('which is stored in turn', isHit(again, after), again.hit);
  const front = await new Visitor().get('/');
  check('the front page has it, too', front.text.includes('The first post') && !front.text.includes(FIRST), seen(front));
  await olga.leave();
});

await browser.close();
sum('A new WordPress behind the package, by browser');
