// People with a browser on the lab's WordPress: they read, log in, write, comment, unlock and log out, and what
// strangers then see has no trace of it.
import fs from 'node:fs';

import { check, part, sum } from '../browser/checks.mjs';
import { Person, openBrowser, strangers, traces } from '../browser/people.mjs';
import { Visitor, isHit } from '../browser/visitor.mjs';
import { EDITOR_PICTURES, logIn, write } from '../browser/wordpress.mjs';

// What WordPress puts only into pages of those who are logged in.
const TRACES = [
  'wpadminbar', 'logged-in', 'Howdy', 'Logged in as', '_wpnonce', 'wpApiSettings', 'action=edit', 'action=logout',
  'profile.php', /wp-admin\/(?!admin-ajax)/, 'edith@example.org', 'rita@example.org', 'Rita Reader',
];
const POST_TEXT = 'Written in the block editor, read by everybody.';

const browser = await openBrowser();
const enter = (name) => Person.enter(browser, name);

const strangersSee = strangers(browser, TRACES);

await part('anonymous', async () => {
  await strangersSee('front page', '/', 'Post 200');
  await strangersSee('a post', '/post-199/', 'About post 199.');
  const anna = await enter('anonymous Anna, walking');
  await anna.open('/');
  await anna.page.getByRole('link', { name: 'Post 198', exact: true }).first().click();
  await anna.page.waitForURL('**/post-198/');
  check('a link is followed', (await anna.page.title()).startsWith('Post 198'));
  await anna.page.goto(new URL('/?s=Post+77', anna.page.url()).href);
  check('search finds the post', await anna.page.getByRole('link', { name: 'Post 77', exact: true }).count());
  await anna.shot('search');
  await anna.open('/wp-sitemap.xml');
  await anna.shot('sitemap');
  anna.expected.push(/404 GET .*no-such-page/);
  const gone = await anna.open('/no-such-page/');
  check('a missing page is 404', gone.status === 404);
  await anna.shot('missing-page');
  await anna.leave();
});

const edith = await enter('Edith, editor');
edith.expected.push(EDITOR_PICTURES);
let post;

await part('Edith logs in and writes', async () => {
  await logIn(edith, 'edith', 'edith-password');
  await edith.shot('dashboard');
  const own = await edith.open('/post-190/');
  check('logged in: admin bar and edit link', traces(own.html, ['wpadminbar', 'action=edit']).length === 2 && !own.hit);
  await edith.shot('post-logged-in');
  const link = await write(edith, 'From the block editor', POST_TEXT);
  post = new URL(await link.getAttribute('href')).pathname;
  check('the block editor publishes', post === '/from-the-block-editor/', post);
  await edith.shot('published');
  await link.click();
  await edith.page.waitForURL(`**${post}`);
  check('its author sees the post with edit link',
    traces(await edith.page.content(), [POST_TEXT, 'wpadminbar', 'action=edit']).length === 3);
  await edith.shot('post-of-its-author');
});

await part('Edith uploads a picture', async () => {
  const { page } = edith;
  await edith.open('/wp-admin/media-new.php?browser-uploader');
  // One red pixel, made large by the attachment's page.
  const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
  const file = { name: 'pixel.png', mimeType: 'image/png', buffer: Buffer.from(picture, 'base64') };
  await page.setInputFiles('#async-upload', file);
  await page.click('#html-upload');
  await page.waitForURL('**/wp-admin/upload.php**');
  await edith.shot('media-library');
  const listed = (await edith.open('/wp-admin/upload.php?mode=list')).html;
  const [, href] = /src="([^"]*\/wp-content\/uploads\/[^"]*pixel[^"]*\.png)"/.exec(listed) ?? [];
  check('the picture is in the library', href);
  const answer = await new Visitor().get(new URL(href).pathname);
  check('the picture is served as it was sent', answer.status === 200 && answer.bytes.equals(file.buffer), answer.status);
});

await part('Edith looks around', async () => {
  const { page } = edith;
  const pages = ['edit.php', 'edit-comments.php', 'themes.php', 'plugins.php', 'users.php', 'options-reading.php',
    'options-permalink.php', 'site-health.php'];
  for (const name of pages) {
    const seen = await edith.open(`/wp-admin/${name}`);
    check(`${name} opens`, seen.status === 200 && !seen.hit && seen.html.includes('wpfooter'), seen.status);
  }
  await edith.open('/wp-admin/site-editor.php');
  const canvas = page.frameLocator('iframe[name="editor-canvas"]');
  await canvas.getByText('Larder Lab').first().waitFor();
  await edith.shot('site-editor');
  await edith.open('/wp-admin/export.php');
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#submit')]);
  const exported = fs.readFileSync(await download.path(), 'utf8');
  check('the export arrives whole', exported.includes('[Post 1]') && exported.trimEnd().endsWith('</rss>'), exported.length);
});

await part('strangers read what Edith read and wrote', async () => {
  await strangersSee('the new post', post, POST_TEXT);
  await strangersSee('what Edith read first', '/post-190/', 'About post 190.');
});

await part('comments', async () => {
  const carl = await enter('Carl, who comments without a login');
  await carl.open(post);
  await carl.page.fill('#comment', 'A comment by Carl.');
  await carl.page.fill('#author', 'Carl Comment');
  await carl.page.fill('#email', 'carl@example.org');
  await carl.page.check('#wp-comment-cookies-consent');
  await carl.shot('comment-form');
  await carl.page.click('#submit');
  await carl.page.waitForURL('**#comment-*');
  check('Carl sees his comment', await carl.page.getByText('A comment by Carl.').isVisible());
  check('the form knows Carl', (await carl.page.inputValue('#author')) === 'Carl Comment');
  await carl.page.locator('.comment').last().scrollIntoViewIfNeeded();
  await carl.shot('comment-of-carl');

  const rita = await enter('Rita, reader');
  await logIn(rita, 'rita', 'rita-password');
  await rita.open('/post-189/');
  check('Rita is known by name', await rita.page.getByText('Logged in as Rita Reader').isVisible());
  check('Rita may not edit', !(await rita.page.content()).includes('action=edit'));
  await rita.page.fill('#comment', 'A comment by Rita.');
  await rita.page.click('#submit');
  await rita.page.waitForURL('**#comment-*');
  check('Rita sees her comment', await rita.page.getByText('A comment by Rita.').isVisible());
  await rita.page.locator('.comment').last().scrollIntoViewIfNeeded();
  await rita.shot('comment-of-rita');

  const anna = await enter('anonymous Anna, after the comments');
  const page = await anna.open(post);
  const filled = await anna.page.inputValue('#author');
  check("a stranger's comment form is empty", filled === '' && !page.html.includes('carl@example.org'), filled);
  const found = traces((await anna.open('/post-189/')).html, TRACES.filter((word) => word !== 'Rita Reader'));
  check('no trace of Rita but her public comment', found.length === 0, found);
  await anna.leave();
  await carl.leave();
  await rita.leave();
});

await part('a post behind a password', async () => {
  const [clara, bert] = [await enter('Clara, who knows the password'), await enter('Bert, who does not')];
  await clara.open('/behind-a-password/');
  await clara.page.fill('input[name=post_password]', 'post-password');
  await clara.shot('locked');
  await clara.page.click('.post-password-form input[type=submit]');
  await clara.page.getByText('PROTECTED-CONTENT').waitFor();
  await clara.shot('unlocked');
  const again = await clara.open('/behind-a-password/');
  check('Clara still sees it', again.html.includes('PROTECTED-CONTENT') && !again.hit);
  for (const time of ['first', 'second']) {
    const page = await bert.open('/behind-a-password/');
    check(`Bert does not, the ${time} time`, !page.html.includes('PROTECTED-CONTENT'));
  }
  await bert.shot('locked-for-others');
  await clara.leave();
  await bert.leave();
});

await part('Edith logs out', async () => {
  const { page } = edith;
  await edith.open('/post-188/');
  await page.hover('#wp-admin-bar-my-account');
  await page.locator('#wp-admin-bar-logout a').click();
  await page.waitForURL('**/wp-login.php?loggedout=true**');
  await edith.shot('logged-out');
  for (const path of ['/', '/post-190/', '/post-188/', post]) {
    const seen = await edith.open(path);
    const found = traces(seen.html, TRACES);
    check(`${path}: the logged-out browser sees no trace`, found.length === 0, found);
  }
  await edith.open('/wp-admin/');
  check('the dashboard asks for a login', page.url().includes('/wp-login.php'));
  await edith.leave();
});

await browser.close();
sum('WordPress, visited by people');
