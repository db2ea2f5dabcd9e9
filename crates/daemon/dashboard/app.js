// The dashboard: signs in, keeps the stream of figures, and hands them to the parts of the page.
//
// Text from a request is never inserted as markup: elements are made in dom.js, from text nodes only.
import { Advice } from './advice.js';
import { Refused, events, token } from './api.js';
import { Board } from './board.js';
import { Config } from './config.js';
import { byId, show, text } from './dom.js';
import { Explain } from './explain.js';
import { Origins } from './origins.js';
import { Purge } from './purge.js';
import { Sites } from './sites.js';

const RETRY_MS = [1_000, 2_000, 5_000, 10_000];
// Time after which a hidden tab closes its stream.
const UNSEEN_MS = 60_000;

const board = new Board();
const origins = new Origins();
const explain = new Explain();
const sites = new Sites(choose);
const parts = [origins, new Advice(), new Purge(), new Config(() => sites.load())];

let stream;
let unseen;
let signsIn = false;

function state(word, words) {
  byId('state').dataset.state = word;
  text(byId('state'), words);
}

function signedIn(is) {
  show(byId('sign-in'), !is);
  for (const id of ['board', 'parts', 'pause', 'sign-out', 'role']) show(byId(id), is);
}

function signOut(problem = '') {
  stream?.abort();
  stream = undefined;
  token.forget();
  signedIn(false);
  state('out', 'Not signed in');
  text(byId('token-problem'), problem);
  byId('token').value = '';
  byId('token').focus();
}

// Shows one site alone, or all.
function choose(site) {
  board.site = site;
  sites.chosen(site);
  follow();
}

function welcome({ role, version, host, docs }) {
  Object.assign(board, { version, host });
  document.title = `${host}: Larder`;
  for (const part of parts) part.allow(role);
  sites.load();
  for (const link of document.querySelectorAll('.help')) show(link, docs);
  text(byId('role'), role);
  byId('role').title = { read: 'may look and explain', purge: 'may look, explain and purge', config: 'may do everything' }[role];
  if (byId('board').hidden) {
    signedIn(true);
    board.draw();
    // After a sign-in the focus goes on from here; a reloaded page starts at its top.
    if (signsIn) byId('main').focus({ preventScroll: true });
    signsIn = false;
  }
}

const handlers = {
  hello: welcome,
  history: (data) => board.start(data),
  figures(data) {
    board.fill(data);
    if (board.paused) return;
    const own = data.site?.origins;
    // A program's backends are in no site's list.
    origins.fill(own?.length ? data.servers.filter(({ origin }) => own.includes(origin)) : data.servers);
  },
};

function live() {
  if (board.paused) state('paused', 'Paused');
  else state('live', 'Live');
}

// Follows the stream until it is stopped; a broken one is reported and reopened.
async function follow() {
  const own = new AbortController();
  stream?.abort();
  stream = own;
  for (let tries = 0; !own.signal.aborted; tries += 1) {
    try {
      const path = board.site ? `/api/v1/live?site=${encodeURIComponent(board.site)}` : '/api/v1/live';
      for await (const { name, data } of events(path, own.signal)) {
        tries = 0;
        handlers[name]?.(data);
        live();
      }
    } catch (error) {
      if (own.signal.aborted) return;
      if (error instanceof Refused && [401, 403].includes(error.status)) {
        const unknown = token.get() ? 'This token is not known here.' : 'A token is required.';
        signOut(error.status === 401 ? unknown : error.message);
        return;
      }
      // The site is gone: a configuration without it was put in force.
      if (error instanceof Refused && error.status === 404 && board.site) {
        choose(undefined);
        return;
      }
      if (error instanceof Refused && byId('board').hidden) {
        signOut(error.message);
        return;
      }
    }
    if (own.signal.aborted) return;
    const wait = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)];
    state('lost', 'Connection lost, trying again');
    await new Promise((resolve) => { setTimeout(resolve, wait); });
  }
}

byId('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const value = byId('token').value.trim();
  if (!token.isOne(value)) {
    text(byId('token-problem'), 'This cannot be a token: copy the line of its file.');
    return;
  }
  token.set(value);
  text(byId('token-problem'), '');
  state('out', 'Signing in');
  signsIn = true;
  follow();
});

byId('sign-out').addEventListener('click', () => signOut());

byId('pause').addEventListener('click', () => {
  board.paused = !board.paused;
  byId('pause').setAttribute('aria-pressed', String(board.paused));
  live();
});

byId('board').addEventListener('click', (event) => {
  const button = event.target.closest('button[data-action="explain"]');
  if (!button) return;
  explain.about(button.closest('tr').larderRow);
});

document.addEventListener('visibilitychange', () => {
  clearTimeout(unseen);
  if (document.hidden) {
    unseen = setTimeout(() => {
      if (!stream) return;
      stream.abort();
      state('out', 'Paused while this tab is hidden');
    }, UNSEEN_MS);
  } else if (stream?.signal.aborted && token.get() !== null) {
    follow();
  }
});

// A link may bring a token in its fragment, which no server is sent. It leaves the address at once, and with it the
// history.
function takeToken() {
  const brought = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (brought === undefined) return false;
  history.replaceState(null, '', location.pathname + location.search);
  if (!token.isOne(brought)) return false;
  token.set(brought);
  return true;
}

window.addEventListener('hashchange', () => {
  if (takeToken()) follow();
});

takeToken();
if (token.get() !== null) follow();
else byId('token').focus();
