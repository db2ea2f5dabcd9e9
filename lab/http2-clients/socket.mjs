// The origin's end of a WebSocket (RFC 6455): what comes goes back. As much of it as a browser needs.
import crypto from 'node:crypto';

const CONTINUED = 0;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

function frame(first, payload) {
  const long = payload.length > 65535;
  const head = Buffer.alloc(payload.length < 126 ? 2 : long ? 10 : 4);
  head[0] = first;
  if (payload.length < 126) head[1] = payload.length;
  else if (long) head.writeBigUInt64BE(BigInt(payload.length), (head[1] = 127, 2));
  else head.writeUInt16BE(payload.length, (head[1] = 126, 2));
  return Buffer.concat([head, payload]);
}

// The first whole frame of `bytes`, unmasked, and what follows it; nothing when it is not there in full.
function parse(bytes) {
  if (bytes.length < 2) return undefined;
  let length = bytes[1] & 0x7f;
  let at = 2;
  if (length === 126) {
    if (bytes.length < 4) return undefined;
    length = bytes.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return undefined;
    length = Number(bytes.readBigUInt64BE(2));
    at = 10;
  }
  if (bytes.length < at + 4 + length) return undefined;
  const mask = bytes.subarray(at, at + 4);
  const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length));
  for (let i = 0; i < length; i++) payload[i] ^= mask[i % 4];
  return { first: bytes[0], payload, rest: bytes.subarray(at + 4 + length) };
}

export function accept(request, socket) {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  socket.write([
    'HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${crypto.createHash('sha1').update(key).digest('base64')}`, '', '',
  ].join('\r\n'));
  let bytes = Buffer.alloc(0);
  socket.on('error', () => socket.destroy());
  socket.on('data', (piece) => {
    bytes = Buffer.concat([bytes, piece]);
    for (let next = parse(bytes); next; next = parse(bytes)) {
      bytes = next.rest;
      const opcode = next.first & 0x0f;
      if (opcode === PING) socket.write(frame(0x80 | PONG, next.payload));
      else if (opcode === CLOSE) socket.end(frame(0x80 | CLOSE, next.payload));
      else if (opcode !== PONG && opcode >= CONTINUED) socket.write(frame(next.first, next.payload));
    }
  });
}
