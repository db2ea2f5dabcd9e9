// Requests to the daemon. The token is sent in a header, never in a URL or a cookie, and is kept in this
// tab's session storage only.

const KEPT = 'larder-token';
// The timeout of a silent stream: figures come every second.
const SILENCE_MS = 6_000;

export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEPT),
  set: (value) => sessionStorage.setItem(KEPT, value),
  forget: () => sessionStorage.removeItem(KEPT),
  // What can stand in a header at all; none where the daemon's own socket is asked, through ssh.
  isOne: (value) => /^[\x21-\x7e]{0,512}$/.test(value),
};

async function send(path, options) {
  const { headers, ...rest } = options;
  const response = await fetch(path, {
    cache: 'no-store', credentials: 'omit', redirect: 'error', ...rest,
    headers: { ...headers, ...(token.get() && { Authorization: `Bearer ${token.get()}` }) },
  });
  if (!response.ok) throw new Refused(response.status, await reason(response));
  return response;
}

// The text of a refusal: JSON with an error or with a check's result, or plain text.
async function reason(response) {
  const body = (await response.text()).trim();
  try {
    const { error, said } = JSON.parse(body);
    if (typeof (error ?? said) === 'string') return error ?? said;
  } catch {
    // Plain text, then.
  }
  return body || `The daemon answered ${response.status}.`;
}

// Sends a request; responses are JSON.
export async function post(path, body) {
  const json = { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
  return (await send(path, { method: 'POST', ...(body !== undefined && json) })).json();
}

// Sends a GET.
export const get = async (path) => (await send(path, {})).json();

// Server-sent events as they come, each { name, data }. Ends when the stream does; throws when it breaks.
export async function* events(path, signal) {
  const silence = new AbortController();
  const response = await send(path, {
    headers: { Accept: 'text/event-stream' }, signal: AbortSignal.any([signal, silence.signal]),
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const timer = setTimeout(() => silence.abort(new Error('the stream fell silent')), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event) yield event;
    }
  }
}

function parse(block) {
  let name = 'message';
  const data = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice(7);
    else if (line.startsWith('data: ')) data.push(line.slice(6));
  }
  return data.length ? { name, data: JSON.parse(data.join('\n')) } : undefined;
}
