// Passes what the suite's client asks in HTTP/1.1 on to a proxy over HTTP/2, by prior knowledge and on one connection,
// and the answers back; neither adds nor removes anything that both versions have. What only HTTP/1.1 has stays on its
// side: fields about its connection (RFC 9113 8.2.2) and reason phrases. usage: node over-http2.mjs HOST:PORT
import http from 'node:http'
import http2 from 'node:http2'

const OF_THE_CONNECTION = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te', 'host']
const proxy = `http://${process.argv[2]}`
let opening

// The connection, once the proxy has said how many streams it takes: the suite asks for hundreds at once.
function connection () {
  opening ??= new Promise((resolve, reject) => {
    const session = http2.connect(proxy)
    session.once('remoteSettings', () => resolve(session))
    // Its streams tell whom it concerns.
    session.on('error', reject)
    session.once('close', () => { opening = undefined })
  })
  return opening
}

// Pairs of a list that has names and values in turn.
function * pairs (raw) {
  for (let at = 0; at < raw.length; at += 2) yield [raw[at], raw[at + 1]]
}

function head (request) {
  const fields = { ':method': request.method, ':path': request.url, ':authority': request.headers.host }
  const named = (request.headers.connection ?? '').toLowerCase().split(/\s*,\s*/)
  for (const [name, value] of pairs(request.rawHeaders)) {
    const lower = name.toLowerCase()
    if (OF_THE_CONNECTION.includes(lower) || named.includes(lower)) continue
    // Node does not send some fields twice; a list on one line is the same (RFC 9110 5.3).
    fields[lower] = lower in fields ? `${fields[lower]}, ${value}` : value
  }
  return fields
}

// Names and values in turn, as they came.
const regular = raw => [...pairs(raw)].filter(([name]) => !name.startsWith(':')).flat()

async function pass (request, response) {
  response.sendDate = false
  const hasBody = 'content-length' in request.headers || 'transfer-encoding' in request.headers
  const stream = (await connection()).request(head(request), { endStream: !hasBody })
  if (hasBody) request.pipe(stream)
  const cut = () => response.destroy()
  stream.on('error', cut)
  stream.on('aborted', cut)
  response.on('close', () => response.writableFinished || stream.close(http2.constants.NGHTTP2_CANCEL))
  // Node writes early hints with a Link only; the suite's have none.
  stream.on('headers', (fields, flags, raw) => {
    const lines = [...pairs(regular(raw))].map(([name, value]) => `${name}: ${value}\r\n`)
    response.socket?.write(`HTTP/1.1 ${fields[':status']} Interim\r\n${lines.join('')}\r\n`)
  })
  stream.on('response', (fields, flags, raw) => {
    response.writeHead(fields[':status'], regular(raw))
    stream.pipe(response)
  })
}

const server = http.createServer((request, response) => pass(request, response).catch(() => response.destroy()))

server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`))
