// Node's HTTP/2 client: what only a program sees that has streams in its hands.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http2 from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';

import { check, part, sum } from '../browser/checks.mjs';
import { PLAIN, ROOT, SECURE, isHit, isWhole } from './tools.mjs';

const MB = 1 << 20;
const { constants } = http2;

function connect(base, settings = {}) {
  const target = `${base.protocol}//127.0.0.1:${base.port}`;
  return new Promise((resolve, reject) => {
    const session = http2.connect(target, { ca: fs.readFileSync(ROOT), servername: base.hostname, settings });
    session.on('error', reject);
    session.once('remoteSettings', () => resolve({ session, authority: base.host, scheme: base.protocol.slice(0, -1) }));
  });
}

function open({ session, authority, scheme }, path, { method = 'GET', fields = {}, body } = {}) {
  const head = { ':method': method, ':path': path, ':authority': authority, ':scheme': scheme, ...fields };
  const stream = session.request(head, { endStream: body === undefined });
  stream.setTimeout(30_000, () => stream.close(constants.NGHTTP2_CANCEL));
  if (body !== undefined) stream.end(body);
  return stream;
}

// The whole answer of a stream.
function answerOf(stream) {
  return new Promise((resolve, reject) => {
    const answer = { status: 0, fields: {}, hints: [], pieces: [] };
    stream.on('headers', (fields) => answer.hints.push(fields));
    stream.on('response', (fields) => Object.assign(answer, { status: fields[':status'], fields }));
    stream.on('trailers', (fields) => Object.assign(answer, { trailers: fields }));
    stream.on('data', (piece) => answer.pieces.push(piece));
    stream.on('error', reject);
    stream.on('close', () => resolve({ ...answer, body: Buffer.concat(answer.pieces), code: stream.rstCode }));
  });
}

const ask = (connection, path, more) => answerOf(open(connection, path, more));

async function overHttp2(name, base) {
  const connection = await connect(base);
  const { session } = connection;

  await part(`${name}: requests`, async () => {
    if (base.protocol === 'https:') check(`${name}: chosen by ALPN`, session.alpnProtocol === 'h2', session.alpnProtocol);
    const { maxConcurrentStreams, enableConnectProtocol } = session.remoteSettings;
    check(`${name}: room for 100 streams`, maxConcurrentStreams >= 100, maxConcurrentStreams);
    check(`${name}: announces WebSocket (RFC 8441)`, enableConnectProtocol === true);
    const kept = `/kept/10000?${name}-node`;
    const [first, second] = [await ask(connection, kept), await ask(connection, kept)];
    check(`${name}: a miss, then a hit`, isWhole(first, 10000) && isHit(second, first) && isWhole(second, 10000),
      second.fields['cache-status']);
    const passed = [await ask(connection, '/passed/500'), await ask(connection, '/passed/500')];
    check(`${name}: what is not to be kept is no hit`, passed.every((a) => isWhole(a, 500)) && !isHit(...passed));
    const head = await ask(connection, kept, { method: 'HEAD' });
    check(`${name}: HEAD has the length and no body`, head.fields['content-length'] === '10000' && head.body.length === 0);
    const same = await ask(connection, kept, { fields: { 'if-none-match': first.fields.etag } });
    check(`${name}: 304 for who has it`, same.status === 304 && same.body.length === 0, same.status);
    const part206 = await ask(connection, kept, { fields: { range: 'bytes=0-99' } });
    check(`${name}: a part of it`, part206.status === 206 && part206.body.equals(first.body.subarray(0, 100)), part206.status);
    const error = await ask(connection, '/status/503');
    check(`${name}: 503 as the origin has it`, error.status === 503 && String(error.body) === 'status 503', error.status);
    const field = await ask(connection, '/field/20000');
    check(`${name}: a field of 20 KB`, field.fields['x-long']?.length === 20000, field.status);
    // Node joins what came in several fields; the origin has to see one.
    const cookies = await ask(connection, '/request', { fields: { cookie: ['a=1', 'b=2', 'c=3'] } });
    const raw = JSON.parse(cookies.body).fields;
    const values = raw.filter((_, at) => at % 2 && raw[at - 1].toLowerCase() === 'cookie');
    check(`${name}: cookies in several fields become one`, values.join('|') === 'a=1; b=2; c=3', values);
    const hop = await ask(connection, '/connection');
    check(`${name}: no field about the origin's connection`,
      !['connection', 'keep-alive', 'x-hop', 'transfer-encoding'].some((one) => one in hop.fields));
    const early = await ask(connection, '/early');
    check(`${name}: early hints, then the answer`, early.hints[0]?.[':status'] === 103 && String(early.body) === 'late',
      early.hints.length);
    const unknown = await ask(connection, `/passed-chunked/${3 * MB}`);
    check(`${name}: a body of unknown length`, isWhole(unknown, 3 * MB));
    const long = await ask(connection, `/passed/${50 * MB}`);
    check(`${name}: 50 MB arrive whole`, isWhole(long, 50 * MB), long.body.length);
    const sent = crypto.randomBytes(5 * MB);
    const echo = await ask(connection, '/echo', { method: 'POST', body: sent });
    check(`${name}: POST of 5 MB comes back`, echo.body.equals(sent), echo.body.length);
  });

  await part(`${name}: streams do not wait for each other`, async () => {
    const stalled = ['a', 'b', 'c'].map((n) => open(connection, `/passed/${20 * MB}?${n}`));
    await Promise.all(stalled.map((stream) => new Promise((resolve) => { stream.once('response', resolve); })));
    const small = Array.from({ length: 100 }, (_, n) => ask(connection, `/${n % 2 ? 'kept' : 'passed'}/${n * 100}`));
    const answers = await Promise.all(small);
    check(`${name}: 100 at once arrive whole next to three that nobody reads`,
      answers.every((answer, n) => isWhole(answer, n * 100)));
    const finished = stalled.slice(1).map(answerOf);
    stalled[0].close(constants.NGHTTP2_CANCEL);
    const whole = await Promise.all(finished);
    check(`${name}: and the three go on where they were, but for the one that was given up`,
      whole.every((answer) => answer.body.length === 20 * MB), whole.map((answer) => answer.body.length));
    const events = open(connection, '/events');
    const times = [];
    events.on('data', () => times.push(Date.now()));
    await new Promise((resolve) => { events.once('close', resolve); });
    check(`${name}: events come as they happen`, times.length >= 4 && times.at(-1) - times[0] > 300, times.length);
  });

  await part(`${name}: trouble`, async () => {
    for (const path of [`/cut/${MB}`, `/cut-chunked/${MB}`]) {
      const outcome = await ask(connection, path).then((answer) => answer.code, (error) => error.code);
      check(`${name}: ${path} is not taken for whole`, outcome !== constants.NGHTTP2_NO_ERROR, outcome);
    }
    // Given up while the server writes; many more in so short a time would be an attack.
    for (let n = 0; n < 50; n++) {
      const given = open(connection, `/kept/${5 * MB}`);
      given.on('error', () => {});
      await new Promise((resolve) => { given.once('response', resolve); given.once('close', resolve); });
      given.close(constants.NGHTTP2_CANCEL);
    }
    const after = await ask(connection, '/kept/1000');
    check(`${name}: the connection outlives what was cut and given up`, !session.destroyed && isWhole(after, 1000));
    const ping = await new Promise((resolve) => { session.ping((error, ms) => resolve(error ? -1 : ms)); });
    check(`${name}: answers PING`, ping >= 0);
    const tooLong = await ask(connection, '/request', { fields: { 'x-long': 'l'.repeat(40_000) } });
    check(`${name}: a field of 40 KB is refused`, tooLong.status === 431, tooLong.status);
  });

  await part(`${name}: settings while it goes on`, async () => {
    const running = ask(connection, `/passed/${10 * MB}`);
    // Node opens a window when half of it is used. By less than 1 KiB at a time that would count as an attack as soon as it
    // has happened a thousand times (h2_control_frames), which depends on how fast the machine is.
    for (const initialWindowSize of [4000, 1_000_000, 70_000]) {
      await sleep(20);
      await new Promise((resolve) => { session.settings({ initialWindowSize, headerTableSize: initialWindowSize % 4096 }, resolve); });
    }
    const [answer, other] = [await running, await ask(connection, '/kept/1000')];
    check(`${name}: windows and tables that change`, isWhole(answer, 10 * MB) && isWhole(other, 1000), answer.body.length);
  });

  await part(`${name}: WebSocket`, async () => {
    const socket = session.request({
      ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': connection.scheme, ':authority': connection.authority,
      ':path': '/socket', 'sec-websocket-version': '13', origin: base.origin,
    }, { endStream: false });
    const status = await new Promise((resolve, reject) => {
      socket.once('response', (fields) => resolve(fields[':status']));
      socket.once('error', reject);
    });
    check(`${name}: is agreed to`, status === 200, status);
    const came = [];
    socket.on('data', (piece) => came.push(piece));
    // "hello" in a masked frame of text, then the close.
    socket.write(Buffer.concat([Buffer.from([0x81, 0x85, 0, 0, 0, 0]), Buffer.from('hello')]));
    while (Buffer.concat(came).length < 7) await sleep(10);
    check(`${name}: says what it is told`, String(Buffer.concat(came).subarray(2)) === 'hello');
    socket.end(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
    await new Promise((resolve) => { socket.once('close', resolve); });
    check(`${name}: and closes`, Buffer.concat(came)[7] === 0x88, socket.rstCode);
  });
  session.close();
}

await overHttp2('TLS', SECURE);
await overHttp2('h2c', PLAIN);
sum('Node, over HTTP/2');
