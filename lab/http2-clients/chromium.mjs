// Chromium over HTTP/2: a page of many parts, what scripts ask for, and WebSocket on the same connection.
import crypto from 'node:crypto';
import fs from 'node:fs';
import https from 'node:https';

import { check, part, sum } from '../browser/checks.mjs';
import { Person, openBrowser } from '../browser/people.mjs';
import { IMAGES, SCRIPTS, STYLES } from './page.mjs';

const MB = 1 << 20;
const browser = await openBrowser();
const anna = await Person.enter(browser, 'Anna');
const { page } = anna;

// Runs in the page: what a script gets that asks for `path`.
async function ask(path, { length, ...options } = {}) {
  return page.evaluate(async ([url, init, sent]) => {
    const body = sent && new Uint8Array(sent).map((_, n) => (n * 7919) >> 5);
    const answer = await fetch(url, { cache: 'no-store', ...init, ...(body && { body, method: 'POST' }) });
    const got = new Uint8Array(await answer.arrayBuffer());
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', got));
    return {
      status: answer.status,
      fields: Object.fromEntries(answer.headers),
      length: got.length,
      sum: Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join(''),
      same: body !== undefined && body.length === got.length && body.every((byte, n) => byte === got[n]),
      text: got.length < 100 ? new TextDecoder().decode(got) : '',
    };
  }, [path, options, length]);
}

// What a client gets that decodes nothing.
function raw(method, path, headers, body) {
  return new Promise((resolve, reject) => {
    const url = new URL(path, process.env.LAB_URL);
    const options = { method, headers, ca: fs.readFileSync(process.env.LAB_ROOT), hostname: '127.0.0.1', servername: url.hostname };
    const request = https.request(url, { ...options, headers: { host: url.host, ...headers } }, async (answer) => {
      const pieces = [];
      for await (const piece of answer) pieces.push(piece);
      resolve({ coding: answer.headers['content-encoding'], body: Buffer.concat(pieces) });
    });
    request.on('error', reject);
    request.end(body);
  });
}

const whole = (answer, length) => answer.status === 200 && answer.length === length && answer.sum === answer.fields['x-sha256'];

await part('a page', async () => {
  for (const time of ['from the origin', 'from the cache']) {
    const opened = await anna.open('/page');
    await page.waitForLoadState('load');
    const found = await page.evaluate(() => ({
      drawn: [...document.images].filter((image) => image.complete && image.naturalWidth === 32).length,
      ran: document.querySelector('#ran').textContent,
      styles: document.styleSheets.length,
      protocols: performance.getEntries().filter((entry) => ['navigation', 'resource'].includes(entry.entryType))
        .map((entry) => entry.nextHopProtocol),
    }));
    check(`${time}: comes`, opened.status === 200, opened.headers['cache-status']);
    check(`${time}: all images are drawn`, found.drawn === IMAGES, found.drawn);
    check(`${time}: all scripts ran`, found.ran === `${SCRIPTS} scripts ran`, found.ran);
    check(`${time}: all styles are there`, found.styles === STYLES, found.styles);
    check(`${time}: everything over h2`, found.protocols.length === 1 + IMAGES + SCRIPTS + STYLES
      && found.protocols.every((protocol) => protocol === 'h2'), [...new Set(found.protocols)]);
    await anna.shot(time);
    // Nothing from the browser's own cache the second time.
    const devtools = await anna.context.newCDPSession(page);
    await devtools.send('Network.clearBrowserCache');
  }
});

await part('what scripts ask for', async () => {
  const [first, second] = [await ask('/kept/10000?chromium'), await ask('/kept/10000?chromium')];
  const hit = /;\s*hit\b/.test(second.fields['cache-status']) && second.fields['x-origin-request'] === first.fields['x-origin-request'];
  check('a miss, then a hit', whole(first, 10000) && whole(second, 10000) && hit, second.fields['cache-status']);
  const head = await ask('/kept/10000?chromium', { method: 'HEAD' });
  check('HEAD has the length and no body', head.fields['content-length'] === '10000' && head.length === 0);
  const same = await ask('/kept/10000?chromium', { headers: { 'If-None-Match': first.fields.etag } });
  check('304 for who has it', same.status === 304 && same.length === 0, same.status);
  const range = await ask('/kept/10000?chromium', { headers: { Range: 'bytes=100-299' } });
  check('a part of it', range.status === 206 && range.length === 200, range.status);
  anna.expected.push(/^(404|503) GET .*\/status\//);
  for (const status of [404, 503]) {
    const answer = await ask(`/status/${status}`);
    check(`${status} as the origin has it`, answer.status === status && answer.text === `status ${status}`);
  }
  check('a field of 20 KB', (await ask('/field/20000')).fields['x-long']?.length === 20000);
  const long = await ask(`/passed/${50 * MB}`);
  check('50 MB arrive whole', whole(long, 50 * MB), long.length);
  check('a body of unknown length', whole(await ask(`/passed-chunked/${3 * MB}`), 3 * MB));
  const echo = await ask('/echo', { length: 5 * MB });
  check('POST of 5 MB comes back', echo.same, echo.length);
  const many = await Promise.all(Array.from({ length: 100 }, (_, n) => ask(`/${n % 2 ? 'kept' : 'passed'}/${n * 600}`)));
  check('100 at once, each whole', many.every((answer, n) => whole(answer, n * 600)));
  anna.expected.push(/net::ERR_\w+ GET .*\/cut/);
  for (const path of [`/cut/${MB}`, `/cut-chunked/${MB}`]) {
    const outcome = await ask(path).then((answer) => `${answer.length} bytes`, () => 'failed');
    check(`${path} is not taken for whole`, outcome === 'failed', outcome);
  }
  const events = await page.evaluate(() => new Promise((resolve) => {
    const source = new EventSource('/events');
    const late = [];
    source.onmessage = ({ data }) => { late.push(Date.now() - Number(data.split(' ')[1])); };
    source.onerror = () => { source.close(); resolve(late); };
  }));
  check('events come as they happen', events.length === 5 && events.every((ms) => ms < 190), events);
});

await part('a dictionary', async () => {
  const devtools = await anna.context.newCDPSession(page);
  await devtools.send('Network.enable');
  const codings = new Map();
  devtools.on('Network.responseReceived', ({ response }) => {
    codings.set(new URL(response.url).pathname, response.headers['content-encoding']);
  });
  const run = async (path) => {
    await page.addScriptTag({ url: path });
    return page.evaluate(() => window.version);
  };
  check('the first version runs', await run('/dictionary/1') === 1, codings.get('/dictionary/1'));
  // The browser keeps it as a dictionary, and Larder makes the difference, both behind what is asked.
  let coding;
  for (let tries = 0; tries < 100 && coding !== 'dcz'; tries += 1) {
    coding = (await ask('/dictionary/2')).fields['content-encoding'];
    await page.waitForTimeout(50);
  }
  check('the second comes as a difference', coding === 'dcz', coding);
  check('and runs', await run('/dictionary/2') === 2, codings.get('/dictionary/2'));
  check('so DevTools say', codings.get('/dictionary/2') === 'dcz', codings.get('/dictionary/2'));
  // The browser takes both codings alike and so gets one of them. The other is fetched for it, and handed to it as it is.
  const { body: first } = await raw('GET', '/dictionary/1', {});
  const hash = crypto.createHash('sha256').update(first).digest('base64');
  let other;
  for (let tries = 0; tries < 100 && other?.coding !== 'dcb'; tries += 1) {
    other = await raw('GET', '/dictionary/2', { 'accept-encoding': 'gzip, dcb', 'available-dictionary': `:${hash}:` });
    await page.waitForTimeout(50);
  }
  check('a client without Zstandard gets dcb', other.coding === 'dcb', other.coding);
  await raw('POST', '/dictionary-relayed', {}, other.body);
  check('which the browser decodes', await run('/dictionary-relayed') === 2, codings.get('/dictionary-relayed'));
});

await part('WebSocket', async () => {
  const devtools = await anna.context.newCDPSession(page);
  await devtools.send('Network.enable');
  const agreed = new Promise((resolve) => {
    devtools.once('Network.webSocketHandshakeResponseReceived', ({ response }) => resolve(response.status));
  });
  const heard = await page.evaluate(() => new Promise((resolve, reject) => {
    const socket = new WebSocket(`wss://${location.host}/socket`);
    const said = ['hello', 'x'.repeat(1_000_000), 'bye'];
    const got = [];
    socket.onopen = () => said.forEach((words) => socket.send(words));
    socket.onerror = () => reject(new Error('no WebSocket'));
    socket.onmessage = ({ data }) => {
      got.push(data);
      if (got.length === said.length) socket.close(1000);
    };
    socket.onclose = ({ wasClean }) => resolve({ same: got.join() === said.join(), wasClean });
  }));
  check('says what it is told, and ends well', heard.same && heard.wasClean, `same ${heard.same}, clean ${heard.wasClean}`);
  // 101 is what HTTP/1.1 answers.
  const status = await agreed;
  check('over HTTP/2 (RFC 8441)', status === 200, status);
});

await anna.leave();
await browser.close();
sum('Chromium, over HTTP/2');
