// The origin behind the dashboard's Larder; HTTP/1.1 on a unix socket. usage: node origin.mjs SOCKET
//
// `/kept/...` may be stored and has tags, `/fail/...` is answered 503, all else is passed, after some milliseconds.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const PAGE = '<!doctype html><title>Page</title><p>Fresh pages, close at hand.'.repeat(60);

http.createServer(async (request, response) => {
  if (request.url.startsWith('/fail')) {
    response.writeHead(503, { 'Content-Type': 'text/plain' }).end('not today\n');
    return;
  }
  const kept = request.url.startsWith('/kept');
  await sleep(kept ? 5 : 20);
  response.writeHead(200, {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': kept ? 'max-age=3600' : 'no-store',
    'Surrogate-Key': `all ${request.url.split('/')[2] ?? ''}`,
  }).end(PAGE);
}).listen(process.argv[2]);
