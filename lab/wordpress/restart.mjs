// A site whose cache has a disk, over a restart and over a kill: every page of its sitemap is there at once, nobody gets
// what is another's, and a purge that was answered stays a purge. The plugin's purge that met nobody is lost: the page
// that it was for stays until it is purged again, or its time is over.
import http from 'node:http';

import { check, part, sum } from '../browser/checks.mjs';
import { BASE, Visitor, isHit, seen } from '../browser/visitor.mjs';
import { command, disk, figures, signal, start, stop, until } from './daemon.mjs';
import { ADMIN_BAR, beginPurges, edit, logIn, purges } from './site.mjs';

// Made anew after seconds; see restart.toml.
const BRIEF = '/post-118/';
// Has a cart in it that is each visitor's own: WordPress is asked for that each time.
const SHOP = '/shop/';
// Pages that something happens to.
const OWN = [120, 121, 122, 130, 131, 132, 133].map((number) => `/post-${number}/`);
const GZIP = { fields: { 'Accept-Encoding': 'gzip' } };

const get = (path, more) => new Visitor().get(path, more);

const locations = async (path) => [...(await get(path)).text.matchAll(/<loc>([^<]+)/g)].map(([, url]) => new URL(url).pathname);

async function sitemap() {
  const pages = [];
  for (const list of await locations('/wp-sitemap.xml')) pages.push(...(await locations(list)));
  return [...new Set(pages)].filter((path) => path !== BRIEF && path !== SHOP);
}

// Visits all, four at a time.
async function visit(paths, see) {
  const left = [...paths];
  const one = async () => {
    for (let path = left.shift(); path; path = left.shift()) await see(path);
  };
  await Promise.all([one(), one(), one(), one()]);
}

// A page as it is: plain and in gzip.
const both = async (path) => [await get(path), await get(path, GZIP)];

// Asks for all pages, and says how many are not the ones that were kept, out of the cache.
async function compare(what, kept) {
  const wrong = [];
  await visit(kept.keys(), async (path) => {
    const [before, now] = [kept.get(path), await both(path)];
    const isSame = (answer, at) => answer.status === 200 && isHit(answer, before[at]) && answer.bytes.equals(before[at].bytes);
    if (!now.every(isSame)) wrong.push(`${path} ${seen(...now)}`);
  });
  check(`${what}: all ${kept.size} pages are hits, with the body that they had`, wrong.length === 0, wrong.slice(0, 5).join(' '));
}

// The words of the fresh process: it has asked WordPress for nothing.
async function asksNothing(what) {
  const { origin_requests_total: asked, disk_hits_total: hits } = await figures();
  check(`${what}: WordPress was asked for nothing`, asked === 0 && hits > 0, `${asked} requests, ${hits} hits on disk`);
}

async function passes(what, person, name, path) {
  const answers = [await person.get(path), await person.get(path)];
  const own = answers.every((a) => a.status === 200 && !a.hit && a.text.includes(ADMIN_BAR) && a.text.includes(name));
  check(`${what}: ${name}'s pages still pass, with the admin bar`, own && answers[0].stamp !== answers[1].stamp, seen(...answers));
  const stranger = await get(path);
  check(`${what}: a stranger's is without it`, stranger.hit && !stranger.text.includes(ADMIN_BAR), seen(stranger));
}

const kept = new Map();
const people = {};

await part('pages come in', async () => {
  people.edith = await logIn('edith');
  people.rita = await logIn('rita');
  const named = await sitemap();
  check('the sitemap names the posts, the lists and the front page', named.length > 200 && named.includes('/'), named.length);
  const most = Number(process.env.LAB_PAGES);
  const pages = named.filter((path, at) => OWN.includes(path) || at % Math.ceil(named.length / most) === 0);
  const wrong = [];
  await visit(pages, async (path) => {
    const first = await get(path);
    const stored = await both(path);
    kept.set(path, stored);
    if (!stored.every((answer) => isHit(answer, first))) wrong.push(`${path} ${seen(first, ...stored)}`);
  });
  check('each is a hit the second time', wrong.length === 0, wrong.slice(0, 5).join(' '));
});

await part('a restart', async () => {
  await stop('SIGTERM');
  await start();
  await compare('after a restart', kept);
  await asksNothing('after a restart');
  await passes('after a restart', people.edith, 'Edith Editor', '/post-120/');
  await passes('after a restart', people.rita, 'Rita Reader', '/post-120/');
});

await part('edits while it is down', async () => {
  const brief = await get(BRIEF);
  beginPurges();
  await stop('SIGTERM');
  for (const name of ['post-118', 'post-120', 'post-121', 'post-122']) edit(name, `Changed, ${name}`);
  const sent = purges();
  const unheard = sent.length > 8 && sent.every((line) => /Failed to connect|refused/.test(line));
  check('the plugin sends its purges, and nobody answers', unheard, sent[0]);
  await start();
  const old = async (path) => {
    const answer = await get(path);
    check(`${path} is the old page still, out of the cache`, isHit(answer, kept.get(path)[0]), seen(answer));
  };
  const renewed = async (path, why) => {
    const answer = await get(path);
    const title = `Changed, ${path.slice(1, -1)}`;
    check(`${path} is new after ${why}`, !answer.hit && answer.text.includes(title), seen(answer));
    kept.delete(path);
  };
  for (const path of ['/post-120/', '/post-121/', '/post-122/']) await old(path);
  await until('the page whose time is over is new', async () => {
    const answer = await get(BRIEF);
    const isNew = answer.text.includes('Changed, post-118');
    if (!isNew && !answer.bytes.equals(brief.bytes)) throw new Error('it is neither the old page nor the new one');
    return isNew;
  });
  check(`${BRIEF} is new after its time, without a purge`, true);
  for (const path of ['/post-120/', '/post-121/', '/post-122/']) await old(path);
  await command('purge', `${BASE.origin}/post-120/`);
  await renewed('/post-120/', 'a purge by hand');
  edit('post-121', 'Changed, post-121');
  const again = purges();
  check('a save that Larder hears of', again.length > 0 && again.every((line) => line.endsWith(': 200')), again[0]);
  await renewed('/post-121/', 'the next save');
  await old('/post-122/');
  // The front page and the lists of the posts are among what that save has purged.
  for (const path of ['/', '/category/uncategorized/', '/tag/tag-2/']) kept.delete(path);
});

await part('a kill', async () => {
  await until('all is on disk', async () => {
    const { records, rests } = await disk();
    return records >= kept.size && rests;
  });
  await stop('SIGKILL');
  await start();
  await compare('after a kill', kept);
  await asksNothing('after a kill');
  await passes('after a kill', people.edith, 'Edith Editor', '/post-130/');
});

// Asks for a purge, and kills the daemon the moment its answer is there.
function purgeAndKill(path) {
  const { host, port } = new URL(process.env.LAB_HTTP);
  const to = { host: '127.0.0.1', port, method: 'PURGE', path, headers: { Host: BASE.host }, timeout: 10_000 };
  return new Promise((resolve, reject) => {
    const answered = (response) => {
      signal('SIGKILL');
      response.on('error', () => {}).resume();
      resolve(response.statusCode);
    };
    http.request(to, answered).on('error', reject).end();
  });
}

await part('a purge, and a kill at once', async () => {
  const purged = ['/post-131/', '/post-132/', '/post-133/'];
  for (const path of purged) {
    check(`the purge of ${path} is answered`, (await purgeAndKill(path)) === 200);
    await stop('SIGKILL');
    await start();
    const [first, second] = [await get(path), await get(path)];
    const isAnew = !first.hit && first.stamp !== kept.get(path)[0].stamp && isHit(second, first);
    check(`${path} is fetched anew after the start`, first.status === 200 && isAnew, seen(first, second));
    kept.delete(path);
  }
  await compare('after the purges', kept);
});
sum('WordPress, over restarts');
