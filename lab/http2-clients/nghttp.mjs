// nghttp and h2load: windows, priorities, padding, tables and trailers as other clients choose them, and a great many
// requests of which none may be missing.
import crypto from 'node:crypto';

import { check, part, sum } from '../browser/checks.mjs';
import { IMAGES, SCRIPTS, STYLES } from './page.mjs';
import { PLAIN, SECURE, file, run, sha256 } from './tools.mjs';

const MB = 1 << 20;

// The client asks the address; :authority has the name.
const at = (base, path) => {
  const url = new URL(path, base);
  url.hostname = '127.0.0.1';
  return url.href;
};
const named = (base) => ['--header', `:authority: ${base.host}`];
const nghttp = (base, options, ...paths) =>
  run('nghttp', ['--no-verify-peer', '--timeout=30', ...named(base), ...options, ...paths.map((path) => at(base, path))]);

// The frames that came, as nghttp tells them: type, stream, and what is said of each.
async function frames(base, options, ...paths) {
  const { code, text } = await nghttp(base, ['--verbose', '--null-out', ...options], ...paths);
  const came = text.split(/^\[ *[\d.]+\] /m).filter((event) => event.startsWith('recv '));
  const of = (type) => came.filter((event) => event.startsWith(`recv ${type} frame`));
  const statuses = came.map((event) => /^recv \(stream_id=\d+\) :status: (\d+)/.exec(event)?.[1]).filter(Boolean);
  const lengths = of('DATA').map((event) => Number(/length=(\d+)/.exec(event)[1]));
  return { code, text, of, statuses, lengths, bytes: lengths.reduce((all, n) => all + n, 0) };
}

async function whole(what, base, length, options, path = `/kept/${length}`) {
  const [answer, sums] = [await nghttp(base, options, path), await frames(base, options, path)];
  const wanted = / x-sha256: (\w+)/.exec(sums.text)?.[1];
  check(what, answer.code === 0 && answer.bytes.length === length && sha256(answer.bytes) === wanted,
    answer.bytes.length);
  return sums;
}

async function client(name, base) {
  await part(`nghttp, ${name}`, async () => {
    const hello = await frames(base, [], '/kept/10000');
    const settings = hello.of('SETTINGS').find((event) => !event.includes('ACK'));
    const streams = Number(/MAX_CONCURRENT_STREAMS\(0x03\):(\d+)/.exec(settings)?.[1]);
    check(`${name}: settings come first, with room for 100 streams`, streams >= 100, streams);
    check(`${name}: the client's settings are acknowledged`,
      hello.of('SETTINGS').some((event) => /flags=0x01/.test(event)));
    check(`${name}: an answer ends its stream, and nothing is amiss`, hello.bytes === 10000
      && hello.of('GOAWAY').length === 0 && hello.of('RST_STREAM').length === 0);
    const small = await whole(`${name}: windows of 1 KB`, base, 300_000, ['--window-bits=10']);
    check(`${name}: no frame is larger than the window`, Math.max(...small.lengths) <= 1023, Math.max(...small.lengths));
    await whole(`${name}: windows of 1 GB`, base, 20 * MB, ['--window-bits=30', '--connection-window-bits=30'],
      `/passed/${20 * MB}`);
    const both = ['--window-bits=16', '--connection-window-bits=16'];
    await whole(`${name}: a body of unknown length`, base, 2 * MB, both, `/passed-chunked/${2 * MB}`);
    await whole(`${name}: padded requests`, base, 10000, ['--padding=255']);
    await whole(`${name}: without priorities of RFC 7540`, base, 10000, ['--no-rfc7540-pri', '--header', 'priority: u=0, i']);
    await whole(`${name}: with weights`, base, 10000, ['--weight=256']);
    for (const table of [['0'], ['65536'], ['0', '4096']]) {
      const options = table.map((size) => `--header-table-size=${size}`);
      await whole(`${name}: a header table of ${table.join(', then ')}`, base, 10000, options);
    }
    await whole(`${name}: an encoder without a table`, base, 10000, ['--encoder-header-table-size=0']);
    const continued = await frames(base, ['--continuation'], '/request');
    check(`${name}: a head of several frames`, continued.statuses.join() === '200'
      || continued.statuses.join() === '431', continued.statuses);
    const head = await frames(base, ['--header', ':method: HEAD'], '/kept/10000');
    check(`${name}: HEAD has no body`, head.statuses.join() === '200' && head.bytes === 0, head.bytes);
    const many = await frames(base, ['--multiply=100'], '/kept/10000', '/passed/20000', `/passed-chunked/${30_000}`);
    check(`${name}: 300 requests at once`, many.statuses.filter((status) => status === '200').length === 300
      && many.bytes === 100 * 60_000, many.statuses.length);
    const assets = await frames(base, ['--get-assets'], '/page');
    check(`${name}: a page and all its parts`, assets.statuses.length === 1 + IMAGES + SCRIPTS + STYLES
      && assets.statuses.every((status) => status === '200'), assets.statuses.length);
  });

  await part(`nghttp, ${name}: uploads`, async () => {
    const sent = crypto.randomBytes(5 * MB);
    const data = `--data=${file(sent)}`;
    const echo = await nghttp(base, [data], '/echo');
    check(`${name}: 5 MB come back`, echo.bytes.equals(sent), echo.bytes.length);
    const unsized = await nghttp(base, [data, '--no-content-length'], '/request');
    check(`${name}: 5 MB of unsaid length arrive`, JSON.parse(unsized.text).length === sent.length);
    const trailer = await nghttp(base, [data, '--trailer', 'x-sum: 1'], '/request');
    check(`${name}: with a trailer`, JSON.parse(trailer.text).length === sent.length, trailer.text.slice(-120));
    const expects = await frames(base, [data, '--expect-continue'], '/request');
    check(`${name}: who expects 100 gets it first`, expects.statuses.join() === '100,200', expects.statuses);
    const early = await frames(base, [], '/early');
    check(`${name}: early hints, then the answer`, early.statuses.join() === '103,200', early.statuses);
  });
}

// h2load with so many requests: all of them have to succeed, and all bytes to arrive.
async function load(what, base, count, size, options, path = `/kept/${size}`) {
  const ran = await run('h2load', [`--requests=${count}`, ...named(base), ...options, at(base, path)]);
  const done = /requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored/.exec(ran.text);
  const good = /status codes: (\d+) 2xx/.exec(ran.text)?.[1];
  const data = Number(/\((\d+)\) data/.exec(ran.text)?.[1]);
  check(`h2load, ${what}: ${count} of ${size} bytes`, done?.[2] === String(count) && done[3] === done[2]
    && good === done[2] && data === count * size, done?.[0] ?? ran.text.slice(-300));
}

async function loads(name, base) {
  await part(`h2load, ${name}`, async () => {
    await load(name, base, 5000, 1024, ['--clients=10', '--max-concurrent-streams=100']);
    await load(`${name}, one at a time`, base, 1000, 1024, ['--clients=20', '--max-concurrent-streams=1']);
    await load(`${name}, small windows`, base, 500, 26_000, ['--clients=5', '--max-concurrent-streams=20', '--window-bits=14',
      '--connection-window-bits=16']);
    await load(`${name}, not kept`, base, 500, 26_000, ['--clients=5', '--max-concurrent-streams=20'], '/passed/26000');
    await load(`${name}, large`, base, 100, MB, ['--clients=4', '--max-concurrent-streams=10']);
    const data = file(Buffer.alloc(100_000, 'x'));
    await load(`${name}, uploads`, base, 300, 100_000, ['--clients=5', '--max-concurrent-streams=10', `--data=${data}`], '/echo');
  });
}

await client('TLS', SECURE);
await client('h2c', PLAIN);
await loads('TLS', SECURE);
await loads('h2c', PLAIN);
await part('h2load, HTTP/1.1 on the same listeners', async () => {
  await load('TLS', SECURE, 1000, 1024, ['--clients=10', '--h1']);
  await load('plain', PLAIN, 1000, 1024, ['--clients=10', '--h1']);
});
sum('nghttp and h2load, over HTTP/2');
