// People with a browser on the lab's MediaWiki: they read, log in, edit, talk and log out; strangers see the new text
// within the time that MediaWiki gives, and no trace of who is logged in.
import { check, part, sum } from '../browser/checks.mjs';
import { Person, openBrowser, strangers, traces } from '../browser/people.mjs';
import { Visitor, isFile, neverHit, secondIsHit, seen } from '../browser/visitor.mjs';

const maxAge = Number(process.env.LAB_MAX_AGE);
// What MediaWiki puts only into pages of those who are logged in.
const TRACES = [
  /"wgUserName":"/, 'wgUserId"', 'pt-logout', 'pt-userpage', 'Log out', 'pt-preferences', 'wpEditToken', /csrfToken":"[0-9a-f]/,
  'ca-watch', /wgUserGroups":\["\*","/,
];
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

const browser = await openBrowser();
const enter = (name) => Person.enter(browser, name);

const strangersSee = strangers(browser, TRACES, { mayRenew: true });

await part('scripts as visitors', async () => {
  const front = await secondIsHit('an article', '/wiki/Beta');
  check('MediaWiki says how long', front.headers['cache-control']?.includes('s-maxage'), front.headers['cache-control']);
  const tracked = await new Visitor({ _ga: 'GA1.2.3' }).get('/wiki/Beta');
  check('tracking cookies do not split the cache', tracked.hit, seen(tracked));
  const load = '/load.php?lang=en&modules=startup&only=scripts&raw=1&skin=vector';
  await secondIsHit('scripts by load.php', load);
  await secondIsHit('source by action=raw', '/index.php?title=Beta&action=raw&smaxage=20');
  for (const session of [{ wiki_session: 'x' }, { wikiUserID: '2' }, { wikiToken: 'x' }, { wikiUserName: 'Edith' }]) {
    await neverHit(`with ${Object.keys(session)[0]}`, new Visitor(session), '/wiki/Beta', { times: 2 });
  }
  for (const path of ['/wiki/Special:RecentChanges', '/wiki/Special:MyTalk', '/index.php?title=Beta&action=history',
    '/index.php?title=Beta&action=edit', '/index.php?title=Special:UserLogin', '/wiki/special%3AMyPage']) {
    const answers = [await new Visitor().get(path), await new Visitor().get(path)];
    check(`${path} is not kept`, answers.every((a) => !a.hit && a.status < 400) && answers[0].stamp !== answers[1].stamp,
      seen(...answers));
  }
  for (const path of ['/maintenance/run.php', '/includes/Setup.php', '/mw-config/index.php', '/vendor/autoload.php',
    '/extensions/Cite/Cite.alias.php', '/.htaccess', '/images/x.php',
    '/vendor/composer/installed.json']) {
    const answer = await new Visitor().get(path);
    check(`${path} is refused`, [403, 404].includes(answer.status), answer.status);
  }
  for (const path of ['/composer.json', '/extensions/Cite/composer.json']) {
    const answer = await new Visitor().get(path);
    check(`${path} is a page's title, not a file`, answer.status === 301 && answer.stamp, answer.status);
  }
  await isFile('/resources/assets/poweredby_mediawiki_88x31.png', 'image/png');
  await isFile('/skins/Vector/resources/common/images/search.svg?bbf78', 'image/svg+xml');
});

await part('anonymous', async () => {
  await strangersSee('an article', '/wiki/Gamma', 'About Gamma.');
  const anna = await enter('anonymous Anna, walking');
  await anna.open('/wiki/Gamma');
  await anna.page.getByRole('link', { name: 'Alpha', exact: true }).click();
  await anna.page.waitForURL('**/wiki/Alpha');
  check('a link is followed', await anna.page.getByText('The first text of Alpha.').isVisible());
  // The search field of each page goes to the list or to the article, as its script is there in time or not.
  await anna.open('/index.php?title=Special:Search&fulltext=1');
  await anna.page.fill('#searchText input', 'Delta');
  await anna.page.press('#searchText input', 'Enter');
  await anna.page.waitForURL(/search=Delta/);
  await anna.shot('search');
  await anna.page.locator('.mw-search-results a', { hasText: 'Delta' }).first().click();
  await anna.page.waitForURL('**/wiki/Delta');
  check('search finds the article', await anna.page.getByText('About Delta.').isVisible());
  await anna.page.locator('#ca-history a').click();
  await anna.page.waitForURL('**action=history**');
  await anna.shot('history');
  await anna.page.locator('#ca-talk a').click();
  anna.expected.push(/404 GET .*Talk:Delta/);
  await anna.page.waitForURL('**Talk:Delta**');
  await anna.shot('empty-talk-page');
  await anna.leave();
});

const edith = await enter('Edith');

await part('Edith logs in and edits', async () => {
  const { page } = edith;
  await edith.open('/wiki/Beta');
  await page.locator('#pt-login a, #pt-login-2 a').first().click();
  await page.fill('#wpName1', 'Edith');
  await page.fill('#wpPassword1', 'edith-password-1');
  await page.click('#wpLoginAttempt');
  await page.waitForURL('**/wiki/Beta');
  check('Edith is logged in', (await page.locator('#pt-userpage').textContent()).includes('Edith'));
  await edith.shot('logged-in');
  for (const time of ['first', 'second']) {
    const own = await edith.open('/wiki/Alpha');
    check(`logged in, the ${time} time: never a hit`, !own.hit && traces(own.html, TRACES).length > 3);
  }
  await page.locator('#ca-edit a').click();
  await page.waitForURL('**action=edit**');
  await page.fill('#wpTextbox1', 'The second text of Alpha, by Edith.');
  await page.fill('#wpSummary', 'second');
  await edith.shot('edit-form');
  await page.click('#wpSave');
  await page.waitForURL('**/wiki/Alpha**');
  check('Edith sees her text', await page.getByText('The second text of Alpha, by Edith.').isVisible());
  await edith.shot('her-text');
  await edith.open('/index.php?title=Talk:Alpha&action=edit');
  await page.fill('#wpTextbox1', 'Let us talk about Alpha. ~~~~');
  await page.click('#wpSave');
  await page.waitForURL('**Talk:Alpha**');
  check('Edith sees her talk page', await page.getByText('Let us talk about Alpha.').isVisible());
  await edith.shot('talk-page');
});

await part('strangers see the new text', async () => {
  // MediaWiki would send PURGE; without, a page is seen for as long as it was said to be good.
  let answer;
  for (let waited = 0; waited < 3 * maxAge; waited++) {
    answer = await new Visitor().get('/wiki/Alpha');
    if (answer.text.includes('The second text of Alpha')) break;
    await pause(1);
  }
  check('the new text is there once the old one is too old', answer.text.includes('The second text of Alpha'));
  await strangersSee('the edited article', '/wiki/Alpha', 'The second text of Alpha, by Edith.');
  await strangersSee('the talk page', '/wiki/Talk:Alpha', 'Let us talk about Alpha.');
  const bert = await enter('anonymous Bert, history');
  await bert.open('/index.php?title=Alpha&action=history');
  check('the history has both versions', (await bert.page.locator('#pagehistory li').count()) === 2);
  await bert.shot('history-of-two');
  const old = await bert.page.locator('#pagehistory li a.mw-changeslist-date').last().getAttribute('href');
  check('the old version can be read', (await bert.open(old)).html.includes('The first text of Alpha.'));
  await bert.leave();
});

await part('an anonymous edit', async () => {
  const carl = await enter('Carl, who edits without a login');
  await carl.open('/index.php?title=Delta&action=edit');
  await carl.page.fill('#wpTextbox1', 'About Delta, by nobody.');
  await carl.page.click('#wpSave');
  await carl.page.waitForURL('**/wiki/Delta**');
  check('Carl sees his text at once', await carl.page.getByText('About Delta, by nobody.').isVisible());
  const again = await carl.open('/wiki/Delta');
  check('and still does', again.html.includes('About Delta, by nobody.') && !again.hit);
  await carl.shot('anonymous-edit');
  await carl.leave();
});

await part('Edith logs out', async () => {
  const { page } = edith;
  await edith.open('/wiki/Gamma');
  await page.locator('#pt-logout a').click();
  await page.locator('#pt-login a, #pt-login-2 a').first().waitFor();
  await edith.shot('logged-out');
  for (const path of ['/wiki/Alpha', '/wiki/Beta', '/wiki/Gamma']) {
    const found = traces((await edith.open(path)).html, TRACES);
    check(`${path}: the logged-out browser sees no trace`, found.length === 0, found);
  }
  await edith.leave();
});

await browser.close();
sum('MediaWiki, visited by people');
