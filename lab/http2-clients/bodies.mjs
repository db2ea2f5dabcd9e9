// What clients get of bodies: each a coding that it takes, all of one stored response, and of what is long the part that
// a player seeks. Chromium, curl, wget, and a client that knows no coding.
import http from 'node:http';

import { check, part, sum } from '../browser/checks.mjs';
import { Person, openBrowser } from '../browser/people.mjs';
import { PLAIN, ROOT, SECURE, run, sha256 } from './tools.mjs';

const LINES = 3000;
const TEXT = `/text/${LINES}`;
const MB = 1 << 20;
const RECORDING = 64;

const browser = await openBrowser();
const anna = await Person.enter(browser, 'Anna, who reads and listens');
const { page } = anna;
const devtools = await anna.context.newCDPSession(page);
await devtools.send('Network.enable');
// The last answer for each path, as DevTools have it: its coding, and the bytes that came.
const answers = new Map();
devtools.on('Network.responseReceived', ({ requestId, response }) => {
  answers.set(requestId, { path: new URL(response.url).pathname, coding: response.headers['content-encoding'] ?? 'none' });
});
devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
  if (answers.has(requestId)) answers.get(requestId).bytes = encodedDataLength;
});
const last = (path) => [...answers.values()].findLast((answer) => answer.path === path && answer.bytes !== undefined);

// Asks for the text as a page's script does.
const ask = () => page.evaluate(async (path) => {
  const answer = await fetch(path, { cache: 'no-store' });
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', await answer.arrayBuffer()));
  const sum = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return { whole: sum === answer.headers.get('x-sha256'), origin: answer.headers.get('x-origin-request') };
}, TEXT);

await part('codings in Chromium', async () => {
  await anna.open('/page');
  const first = await ask();
  check('what was not stored comes whole', first.whole);
  for (const coding of ['br', 'zstd', 'gzip']) {
    await devtools.send('Network.setExtraHTTPHeaders', { headers: { 'Accept-Encoding': coding } });
    // Further forms are made behind what is asked for often.
    let answer;
    for (let tries = 0; tries < 300 && answer?.coding !== coding; tries += 1) {
      const got = await ask();
      if (!got.whole || got.origin !== first.origin) throw new Error(`not the stored text: ${JSON.stringify(got)}`);
      for (let wait = 0; wait < 100 && !(answer = last(TEXT)); wait += 1) await page.waitForTimeout(10);
      if (answer.coding !== coding) await page.waitForTimeout(20);
    }
    check(`${coding}, as DevTools say`, answer.coding === coding, `${answer.coding}, ${answer.bytes} bytes`);
  }
  await devtools.send('Network.setExtraHTTPHeaders', { headers: {} });
});

// The fields of an answer that curl or wget print.
const field = (text, name) => new RegExp(`^\\s*${name}: (.*?)\\r?$`, 'im').exec(text)?.[1];

await part('curl', async () => {
  const base = ['--silent', '--max-time', '20', '--resolve', `${SECURE.hostname}:${SECURE.port}:127.0.0.1`, '--cacert', ROOT];
  const url = new URL(TEXT, SECURE).href;
  const plain = await run('curl', [...base, url]);
  for (const coding of ['gzip', 'br', 'zstd']) {
    const head = await run('curl', [...base, '--head', '--header', `Accept-Encoding: ${coding}`, url]);
    check(`${coding}: in that coding, and one of several`,
      field(head.text, 'content-encoding') === coding && /accept-encoding/i.test(field(head.text, 'vary')), field(head.text, 'content-encoding'));
    const body = await run('curl', [...base, '--compressed', '--header', `Accept-Encoding: ${coding}`, url]);
    // A curl that was built without a decoder says so with 61.
    check(`${coding}: the same text`, body.code === 61 || body.bytes.equals(plain.bytes), body.code);
  }
  const same = await run('curl', [...base, '--head', '--compressed', url]);
  const etag = field(same.text, 'etag');
  const again = await run('curl', [...base, '--compressed', '--include', '--header', `If-None-Match: ${etag}`, url]);
  check('304 for the form that it has', again.text.startsWith('HTTP/2 304'), etag);
});

await part('wget, and a client without a coding', async () => {
  const url = new URL(TEXT, `http://127.0.0.1:${PLAIN.port}`).href;
  const wget = (words) => run('wget', ['--quiet', '--no-proxy', '--timeout=20', '--server-response', '--output-document=-', ...words, url]);
  const plain = await wget([]);
  check('wget asks for none, and gets none', plain.code === 0 && !/content-encoding/i.test(plain.errors), plain.code);
  // A form is made behind what has been hit again.
  let zipped;
  for (let tries = 0; tries < 300 && !/content-encoding: gzip/i.test(zipped?.errors); tries += 1) {
    zipped = await wget(['--compression=gzip']);
    await page.waitForTimeout(20);
  }
  check('wget in gzip', /content-encoding: gzip/i.test(zipped.errors) && zipped.bytes.equals(plain.bytes), zipped.code);
  const bare = await new Promise((resolve, reject) => {
    http.get(url, (answer) => {
      const pieces = [];
      answer.on('data', (piece) => pieces.push(piece));
      answer.on('end', () => resolve({ fields: answer.headers, body: Buffer.concat(pieces) }));
    }).on('error', reject);
  });
  check('a client without a coding reads the stored text', sha256(bare.body) === bare.fields['x-sha256']
    && /;\s*hit\b/.test(bare.fields['cache-status']) && !bare.fields['content-encoding'], bare.fields['cache-status']);
});

await part('a player that seeks', async () => {
  const numberAt = async (path) => Number(await page.evaluate(async (at) => (await fetch(at)).text(), path));
  const seen = await page.evaluate(async ({ path, seconds }) => {
    const player = document.createElement('video');
    document.body.append(player);
    player.muted = true;
    player.preload = 'metadata';
    const happens = (event) => new Promise((resolve, reject) => {
      player.addEventListener(event, resolve, { once: true });
      player.addEventListener('error', () => reject(new Error(player.error.message)), { once: true });
    });
    const known = happens('loadedmetadata');
    player.src = path;
    await known;
    const places = [];
    for (const share of [0.75, 0.25, 0.9]) {
      const found = happens('seeked');
      player.currentTime = seconds * share;
      await found;
      const began = player.currentTime;
      await player.play();
      await happens('timeupdate');
      player.pause();
      places.push(player.currentTime >= began);
    }
    const { duration } = player;
    player.removeAttribute('src');
    player.load();
    return { duration, places };
  }, { path: `/recording/${RECORDING}`, seconds: (RECORDING * MB) / 8000 });
  check('knows how long it is', Math.round(seen.duration) === Math.round((RECORDING * MB - 44) / 8000), seen.duration);
  check('plays at three places', seen.places.every(Boolean), seen.places);
  const bytes = await numberAt('/sent');
  check('the origin has sent a part of it', bytes > 0 && bytes < (RECORDING * MB) * 0.75, `${(bytes / MB).toFixed(1)} of ${RECORDING} MiB`);
  // Slices that the player no longer waits for go on to the store: only this one's bytes are counted.
  const slice = await page.evaluate(async (path) => {
    const answer = await fetch(path, { headers: { Range: 'bytes=50331648-50331663' }, cache: 'no-store' });
    return { status: answer.status, length: (await answer.arrayBuffer()).byteLength, how: answer.headers.get('cache-status') };
  }, `/recording/${RECORDING}`);
  check('what was played is stored', slice.status === 206 && slice.length === 16 && /;\s*hit\b/.test(slice.how)
    && await numberAt('/times-sent/50331648') === 1, slice.how);
});

await anna.leave();
await browser.close();
sum('Chromium, curl and wget, over codings and slices');
