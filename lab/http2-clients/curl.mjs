// curl over HTTP/2: chosen by ALPN, and by prior knowledge on a plain listener.
import crypto from 'node:crypto';
import fs from 'node:fs';

import { check, part, sum } from '../browser/checks.mjs';
import { PLAIN, ROOT, SECURE, file, isHit, isWhole, run, } from './tools.mjs';

const MB = 1 << 20;
const FACTS = '%{http_version} %{num_connects} %{response_code} %{size_download}\\n';

function common(base) {
  const know = base.protocol === 'https:' ? ['--http2', '--cacert', ROOT] : ['--http2-prior-knowledge'];
  return ['--silent', '--show-error', '--resolve', `${base.hostname}:${base.port}:127.0.0.1`, '--max-time', '50',
    ...know];
}

// One answer, and those of 1xx before it.
async function ask(base, path, ...more) {
  const [head, body] = [file(''), file('')];
  const ran = await run('curl', [
    ...common(base), '--dump-header', head, '--output', body, '--write-out', FACTS, ...more, new URL(path, base).href,
  ]);
  const blocks = fs.readFileSync(head, 'utf8').split('\r\n\r\n').filter(Boolean).map((block) => {
    const [first, ...lines] = block.split('\r\n');
    const fields = Object.fromEntries(lines.map((line) => line.split(/: ?(.*)/s)).map(([k, v]) => [k.toLowerCase(), v]));
    return { status: Number(first.split(' ')[1]), fields };
  });
  const [version, , , size] = ran.text.trim().split(' ');
  const last = blocks.at(-1) ?? { status: 0, fields: {} };
  return { ...last, hints: blocks.slice(0, -1), version, size, code: ran.code, body: fs.readFileSync(body) };
}

async function overHttp2(name, base) {
  const get = (path, ...more) => ask(base, path, ...more);
  await part(`${name}: hits and misses`, async () => {
    const kept = `/kept/10000?${name}`;
    const [first, second] = [await get(kept), await get(kept)];
    check(`${name}: is HTTP/2`, first.version === '2', first.version);
    check(`${name}: a miss arrives whole`, isWhole(first, 10000));
    check(`${name}: the second is a hit, whole`, isHit(second, first) && isWhole(second, 10000),
      second.fields['cache-status']);
    const passed = [await get('/passed/500'), await get('/passed/500')];
    check(`${name}: what is not to be kept is no hit`, passed.every((a) => isWhole(a, 500)) && !isHit(...passed));
    const head = await get(kept, '--head');
    check(`${name}: HEAD has the length and no body`,
      head.status === 200 && head.fields['content-length'] === '10000' && head.size === '0', head.status);
    const same = await get(kept, '--header', `If-None-Match: ${first.fields.etag}`);
    check(`${name}: 304 for who has it`, same.status === 304 && same.body.length === 0, same.status);
    const range = await get(kept, '--range', '100-299');
    check(`${name}: a part of it`, range.status === 206 && range.body.equals(first.body.subarray(100, 300))
      && range.fields['content-range'] === 'bytes 100-299/10000', range.status);
  });

  await part(`${name}: bodies`, async () => {
    const long = await get(`/passed/${50 * MB}`);
    check(`${name}: 50 MB arrive whole`, isWhole(long, 50 * MB), long.body.length);
    const keptLong = [await get(`/kept/${5 * MB}?${name}`), await get(`/kept/${5 * MB}?${name}`)];
    check(`${name}: 5 MB from the cache, whole`, isHit(keptLong[1], keptLong[0]) && isWhole(keptLong[1], 5 * MB));
    const unknown = await get(`/passed-chunked/${3 * MB}`);
    check(`${name}: a body of unknown length, whole`, isWhole(unknown, 3 * MB) && !unknown.fields['transfer-encoding']);
    const sent = crypto.randomBytes(5 * MB);
    const echo = await get('/echo', '--data-binary', `@${file(sent)}`);
    check(`${name}: POST of 5 MB comes back`, echo.status === 200 && echo.body.equals(sent), echo.body.length);
    const put = await get('/request', '--upload-file', file(sent));
    check(`${name}: PUT of 5 MB arrives`, JSON.parse(put.body).length === sent.length, put.body.subarray(0, 80));
    const slow = await get(`/passed/${MB}`, '--limit-rate', '2M');
    check(`${name}: a slow reader gets it all`, isWhole(slow, MB));
    for (const path of [`/cut/${MB}`, `/cut-chunked/${MB}`]) {
      const cut = await get(path);
      check(`${name}: ${path} is not taken for whole`, cut.status === 200 && cut.code !== 0, `curl ${cut.code}`);
    }
  });

  await part(`${name}: heads`, async () => {
    for (const status of [204, 404, 410, 500, 503]) {
      const answer = await get(`/status/${status}`);
      const body = status === 204 ? '' : `status ${status}`;
      check(`${name}: ${status} as the origin has it`, answer.status === status && String(answer.body) === body);
    }
    const field = await get('/field/20000');
    check(`${name}: a field of 20 KB comes`, field.fields['x-long']?.length === 20000, field.status);
    const given = await get('/request', '--header', `X-Long: ${'l'.repeat(20000)}`, '--cookie', 'a=1; b=2');
    const { fields, url } = JSON.parse(given.body);
    const valuesOf = (wanted) => fields.filter((_, at) => at % 2 && fields[at - 1].toLowerCase() === wanted);
    check(`${name}: a field of 20 KB goes`, valuesOf('x-long')[0]?.length === 20000);
    check(`${name}: cookies are one field, as sent`, valuesOf('cookie').join('|') === 'a=1; b=2', valuesOf('cookie'));
    check(`${name}: the origin's Host is who was asked`, valuesOf('host').join() === base.host && url === '/request',
      valuesOf('host'));
    const tooLong = await get('/request', '--header', `X-Long: ${'l'.repeat(60000)}`);
    check(`${name}: a field of 60 KB is refused`, tooLong.status === 431, tooLong.status);
    const hop = await get('/connection');
    const own = ['connection', 'keep-alive', 'x-hop', 'transfer-encoding'].filter((field) => field in hop.fields);
    check(`${name}: fields about the origin's connection stay there`, own.length === 0 && hop.fields['x-end'] === 'all',
      own);
    const early = await get('/early');
    check(`${name}: early hints, then the answer`, early.status === 200 && String(early.body) === 'late'
      && early.hints[0]?.status === 103 && early.hints[0].fields.link?.includes('style-1.css'), early.hints[0]?.status);
  });
}

await overHttp2('TLS', SECURE);
await overHttp2('h2c', PLAIN);

// Over TLS alone: Debian's curl (7.88) fails to use a connection of prior knowledge again.
await part('many at once', async () => {
  const wanted = Array.from({ length: 100 }, (_, n) => `/${n % 3 ? 'kept' : 'passed'}/${1000 * n}`);
  const outputs = wanted.map(() => file(''));
  const config = file(wanted.map((path, n) => `url = "${new URL(path, SECURE)}"\noutput = "${outputs[n]}"\n`).join(''));
  const ran = await run('curl', [...common(SECURE), '--parallel', '--parallel-max', '100', '--write-out', FACTS,
    '--config', config]);
  const facts = ran.text.trim().split('\n').map((line) => line.split(' '));
  const wrong = wanted.filter((path, n) => fs.statSync(outputs[n]).size !== n * 1000);
  check('100 at once, each whole', ran.code === 0 && wrong.length === 0
    && facts.filter(([version, , status]) => version === '2' && status === '200').length === 100, wrong.slice(0, 5));
  const connections = facts.reduce((all, [, connects]) => all + Number(connects), 0);
  check('on one connection', connections === 1, connections);
});

await part('other versions', async () => {
  const old = await ask(SECURE, '/kept/1000?1', '--http1.1');
  check('HTTP/1.1 for who asks for it, over TLS', old.version === '1.1' && isWhole(old, 1000), old.version);
  const plain = await ask(PLAIN, '/kept/1000?2', '--http1.1');
  check('and on the plain listener', plain.version === '1.1' && isWhole(plain, 1000), plain.version);
  // RFC 9113 has no Upgrade to h2c any more; a server that does not know it answers in HTTP/1.1.
  const upgrade = await ask(PLAIN, '/kept/1000?3', '--http2');
  check('Upgrade: h2c is answered in HTTP/1.1', upgrade.version === '1.1' && isWhole(upgrade, 1000), upgrade.version);
  const shared = [await ask(SECURE, '/kept/1000?4', '--http1.1'), await ask(SECURE, '/kept/1000?4')];
  check('what HTTP/1.1 fetched is a hit for HTTP/2', shared[1].version === '2' && isHit(shared[1], shared[0]));
});

sum('curl, over HTTP/2');
