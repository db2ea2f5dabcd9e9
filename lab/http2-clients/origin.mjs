// The origin that HTTP/2's labs have behind Larder; HTTP/1.1 on a unix socket. usage: node origin.mjs SOCKET
//
// Each answer has a number of its own in X-Origin-Request, so that one that was given before is known, and, where its
// body is known beforehand, that body's checksum in X-Sha256.
import crypto from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { page, pageFile } from './page.mjs';
import { accept } from './socket.mjs';

const PIECE = 64 << 10;
let requests = 0;

// A body of so many bytes, piece by piece: always the same, and no two places of it alike.
function* pieces(length) {
  const cipher = crypto.createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16));
  for (let left = length; left > 0; left -= PIECE) yield cipher.update(Buffer.alloc(Math.min(left, PIECE)));
}

const sums = new Map();
function sum(length) {
  if (!sums.has(length)) {
    const hash = crypto.createHash('sha256');
    for (const piece of pieces(length)) hash.update(piece);
    sums.set(length, hash.digest('hex'));
  }
  return sums.get(length);
}

const writable = (response) => new Promise((resolve) => {
  response.once('drain', resolve);
  response.once('close', resolve);
});

async function send(response, length, upTo = length) {
  let done = 0;
  for (const piece of pieces(length)) {
    if (response.destroyed || done >= upTo) break;
    done += piece.length;
    if (!response.write(piece)) await writable(response);
  }
}

const KEPT = { 'Cache-Control': 'max-age=3600' };
const PASSED = { 'Cache-Control': 'no-store' };
let relayed = Buffer.alloc(0);

// `kept` and `passed` say the length of what they send, the `-chunked` ones do not.
async function body(request, response, lifetime, length, chunked) {
  const etag = `"${length}"`;
  const fields = { ...lifetime, 'Content-Type': 'application/octet-stream', ETag: etag, 'X-Sha256': sum(length) };
  if (!chunked) fields['Accept-Ranges'] = 'bytes';
  if (request.headers['if-none-match'] === etag) return response.writeHead(304, fields).end();
  if (!chunked) fields['Content-Length'] = length;
  response.writeHead(200, fields);
  if (request.method !== 'HEAD') await send(response, length);
  return response.end();
}

// The bytes `from..to` of a WAV of `length` bytes: a tone that comes and goes, and a header before it.
function recorded(from, to, length) {
  const piece = Buffer.allocUnsafe(to - from);
  for (let at = from; at < to; at++) piece[at - from] = 128 + 60 * Math.sin(at / 5) * Math.sin(at / 9973);
  if (from < WAV) wavHeader(length).copy(piece, 0, from);
  return piece;
}

const WAV = 44;
function wavHeader(length) {
  const header = Buffer.alloc(WAV);
  header.write('RIFF');
  header.writeUInt32LE(length - 8, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(8000, 24);
  header.writeUInt32LE(8000, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.write('data', 36);
  header.writeUInt32LE(length - WAV, 40);
  return header;
}

const sent = [];
const routes = {
  kept: (request, response, n) => body(request, response, KEPT, n),
  passed: (request, response, n) => body(request, response, PASSED, n),
  'kept-chunked': (request, response, n) => body(request, response, KEPT, n, true),
  'passed-chunked': (request, response, n) => body(request, response, PASSED, n, true),

  // A version of a script: long, and little of it new. The first is a dictionary for the others (RFC 9842).
  dictionary(request, response, n) {
    const lines = Array.from({ length: 2000 }, (_, at) => `function f${at}() { return ${(at * 7919) % 104729}; }`);
    const own = n === 1 && { 'Use-As-Dictionary': 'match="/dictionary*"' };
    response.writeHead(200, { ...KEPT, 'Content-Type': 'text/javascript', ...own });
    response.end(`${lines.join('\n')}\nwindow.version = ${n};\n`);
  },

  // What was sent last, as a body in dcb.
  async 'dictionary-relayed'(request, response) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    if (request.method === 'POST') relayed = Buffer.concat(pieces);
    response.writeHead(200, { ...PASSED, 'Content-Type': 'text/javascript', 'Content-Encoding': 'dcb' });
    response.end(request.method === 'POST' ? '' : relayed);
  },

  // Text that compresses well.
  text(request, response, n) {
    const line = 'A line of a page says what others have said, and its neighbours say it once more. ';
    const text = Array.from({ length: n }, (_, at) => `${at} ${line}\n`).join('');
    const fields = { ...KEPT, 'Content-Type': 'text/plain', ETag: `"text-${n}"`, 'Content-Length': text.length };
    response.writeHead(200, { ...fields, 'X-Sha256': crypto.createHash('sha256').update(text).digest('hex') }).end(text);
  },

  // A recording of so many megabytes, in eight bits and eight thousand samples a second, also in parts.
  async recording(request, response, n) {
    const length = n << 20;
    const fields = { ...KEPT, 'Content-Type': 'audio/wav', ETag: `"recording-${n}"`, 'Accept-Ranges': 'bytes' };
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const begin = Number(from ?? 0);
    const end = Math.min(to ? Number(to) + 1 : length, length);
    if (from) fields['Content-Range'] = `bytes ${begin}-${end - 1}/${length}`;
    response.writeHead(from ? 206 : 200, { ...fields, 'Content-Length': end - begin });
    for (let at = begin; at < end && request.method !== 'HEAD' && !response.destroyed; at += PIECE) {
      const piece = recorded(at, Math.min(at + PIECE, end), length);
      sent.push([at, at + piece.length]);
      if (!response.write(piece)) await writable(response);
    }
    return response.end();
  },

  // The bytes of recordings that were sent so far.
  sent(request, response) {
    const bytes = sent.reduce((sum, [begin, end]) => sum + end - begin, 0);
    response.writeHead(200, { ...PASSED, 'Content-Type': 'text/plain' }).end(String(bytes));
  },

  // How often the byte of recordings at a place was sent so far.
  'times-sent': (request, response, at) => {
    const times = sent.filter(([begin, end]) => begin <= at && at < end).length;
    response.writeHead(200, { ...PASSED, 'Content-Type': 'text/plain' }).end(String(times));
  },

  // What is sent, once all of it is there.
  async echo(request, response) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    response.writeHead(200, { ...PASSED, 'Content-Type': 'application/octet-stream' });
    response.end(Buffer.concat(pieces));
  },

  // What came, in its order.
  async request(request, response) {
    let length = 0;
    for await (const piece of request) length += piece.length;
    const { method, url, rawHeaders, rawTrailers } = request;
    response.writeHead(200, { ...PASSED, 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ method, url, length, fields: rawHeaders, trailers: rawTrailers }));
  },

  status(request, response, n) {
    response.writeHead(n, { ...PASSED, 'Content-Type': 'text/plain' }).end(`status ${n}`);
  },

  // One long field.
  field(request, response, n) {
    response.writeHead(200, { ...PASSED, 'X-Long': 'l'.repeat(n) }).end('long');
  },

  // Fields that are about this connection only.
  connection(request, response) {
    const fields = { ...PASSED, Connection: 'keep-alive, X-Hop', 'Keep-Alive': 'timeout=5', 'X-Hop': 'one' };
    response.writeHead(200, { ...fields, 'X-End': 'all' }).end('hop');
  },

  async early(request, response) {
    response.writeEarlyHints({ link: '</page/style-1.css>; rel=preload; as=style' });
    await sleep(50);
    response.writeHead(200, PASSED).end('late');
  },

  async events(request, response) {
    response.writeHead(200, { ...PASSED, 'Content-Type': 'text/event-stream' });
    for (let n = 1; n <= 5 && !response.destroyed; n++) {
      response.write(`data: ${n} ${Date.now()}\n\n`);
      await sleep(200);
    }
    response.end();
  },

  // An origin that dies halfway through what it promised, or through what it did not say the length of.
  async cut(request, response, n) {
    response.writeHead(200, { ...PASSED, 'Content-Length': n });
    await send(response, n, n / 2);
    setTimeout(() => response.destroy(), 50);
  },
  async 'cut-chunked'(request, response, n) {
    response.writeHead(200, PASSED);
    await send(response, n, n / 2);
    setTimeout(() => response.destroy(), 50);
  },

  page(request, response, n, name) {
    const [type, text] = name ? pageFile(name) : ['text/html; charset=utf-8', page()];
    response.writeHead(200, { ...KEPT, 'Content-Type': type, 'Content-Length': text.length }).end(text);
  },

  // The root, for those who want nothing but an answer.
  '': (request, response) => (request.method === 'GET' ? body(request, response, KEPT, 1024) : routes.echo(request, response)),
};

const server = http.createServer({ maxHeaderSize: 128 << 10 }, async (request, response) => {
  requests += 1;
  response.setHeader('X-Origin-Request', requests);
  // Who gives up a request gets no answer.
  request.on('error', () => response.destroy());
  const [, route, name] = new URL(request.url, 'http://origin').pathname.split('/');
  if (!Object.hasOwn(routes, route)) return response.writeHead(404, PASSED).end('no such thing');
  return Promise.resolve(routes[route](request, response, Number(name), name)).catch(() => response.destroy());
});
server.on('upgrade', (request, socket) => {
  if (request.url === '/socket') accept(request, socket);
  else socket.destroy();
});
server.listen(process.argv[2]);
