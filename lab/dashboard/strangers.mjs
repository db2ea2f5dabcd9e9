// A thousand strings that would be markup or script, in URLs, Host, User-Agent, Referer and other fields: on the
// dashboard they are text. No dialog, no request to elsewhere, no element that the dashboard does not make itself, no
// violation of the content security policy: what is inserted as text never gets as far as the policy.
import net from 'node:net';

import { check, part, sum } from '../browser/checks.mjs';
import { openBrowser } from '../browser/people.mjs';
import { SITE, Watcher } from './desk.mjs';

const COUNT = 1_000;
// Fewer than the dashboard shows of what went wrong.
const BATCH = 40;

// Each with a number in place of N, by which it is found again.
const FORMS = [
  '<script>alert("xN")</script>', '<script src="//evil.example/xN.js"></script>', '<img src=x onerror=alert("xN")>',
  '<svg onload=alert("xN")>', '<svg><script>alert("xN")</script></svg>', '<iframe src="javascript:alert(\'xN\')"></iframe>',
  '<iframe srcdoc="<script>alert(\'xN\')</script>">', '<object data="//evil.example/xN">', '<embed src="//evil.example/xN">',
  '<a href="javascript:alert(\'xN\')">xN</a>', '<body onload=alert("xN")>', '<input autofocus onfocus=alert("xN")>',
  '<details open ontoggle=alert("xN")>', '<video src=x onerror=alert("xN")></video>', '<math><mi xlink:href="javascript:alert(\'xN\')">',
  '<style>@import "//evil.example/xN.css";</style>', '<link rel=stylesheet href="//evil.example/xN.css">',
  '<base href="//evil.example/xN/">', '<meta http-equiv=refresh content="0;url=//evil.example/xN">',
  '<form action="//evil.example/xN"><button autofocus>', '"><script>alert("xN")</script>', '\'><img src=x onerror=alert("xN")>',
  '</td></tr></table><script>alert("xN")</script>', '</textarea><script>alert("xN")</script>', '</title><script>alert("xN")</script>',
  '</script><script>alert("xN")</script>', '<!--<img src="--><img src=x onerror=alert("xN")//">', '<![CDATA[<script>alert("xN")</script>]]>',
  '<scr<script>ipt>alert("xN")</script>', '<SCRIPT>alert("xN")</SCRIPT>', '<img/src/onerror=alert("xN")>', '<x/onclick=alert("xN")>xN',
  'javascript:alert("xN")', 'data:text/html,<script>alert("xN")</script>', '${alert("xN")}', '{{constructor.constructor("alert(xN)")()}}',
  '&lt;script&gt;alert("xN")&lt;/script&gt;', '&#60;img src=x onerror=alert("xN")&#62;', '"onmouseover="alert(\'xN\')" x="', '\\u003cscript\\u003ealert("xN")',
];

// Where it stands, and what it may be written as there.
const PLACES = [
  ['URL', (text) => ({ target: `/fail/${text.replaceAll(' ', '+')}` })],
  ['URL, encoded', (text) => ({ target: `/fail/${encodeURIComponent(text)}` })],
  ['query', (text) => ({ target: `/fail?q=${encodeURIComponent(text).replaceAll('%3C', '<').replaceAll('%3E', '>')}` })],
  ['Host', (text) => ({ fields: { Host: text } })],
  ['User-Agent', (text) => ({ fields: { 'User-Agent': text } })],
  ['Referer', (text) => ({ fields: { Referer: text } })],
  ['X-Forwarded-For', (text) => ({ fields: { 'X-Forwarded-For': text } })],
  ['Cookie', (text) => ({ fields: { Cookie: `a=${text}` } })],
  ['Accept-Language', (text) => ({ fields: { 'Accept-Language': text } })],
  ['method', (text) => ({ method: text.replaceAll(' ', '') })],
];

// Sends it byte by byte as it is; no client would.
function send(number, { target, method = 'GET', fields = {} }) {
  const head = Object.entries({
    Host: `host${number}.example`, 'User-Agent': `agent x${number}`, Connection: 'close', ...fields,
  }).map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return new Promise((resolve) => {
    const socket = net.connect(SITE.port, SITE.hostname, () => {
      socket.write(`${method} ${target ?? `/fail/${number}`} HTTP/1.1\r\n${head}\r\n`);
    });
    const pieces = [];
    socket.setTimeout(10_000, () => socket.destroy());
    socket.on('data', (piece) => pieces.push(piece));
    socket.on('error', () => resolve(0));
    socket.on('close', () => resolve(Number(Buffer.concat(pieces).toString('latin1').slice(9, 12))));
  });
}

const browser = await openBrowser();
const anna = await Watcher.enter(browser, 'the operator');
const { page } = anna;
await anna.signIn('config');
const MADE = ['TABLE', 'THEAD', 'TBODY', 'TR', 'TH', 'TD', 'SPAN', 'BUTTON', 'DIV', 'OL', 'LI', 'DL', 'DT', 'DD', 'P', 'H3'];
await page.evaluate((made) => {
  window.larderStrange = [];
  const look = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const acts = [...node.attributes].filter(({ name }) => /^(on|href|src|style|srcdoc|action)/.test(name));
    if (!made.includes(node.tagName) || acts.length) window.larderStrange.push(node.outerHTML.slice(0, 200));
    node.childNodes.forEach(look);
  };
  new MutationObserver((changes) => changes.forEach(({ type, target, attributeName, addedNodes }) => {
    if (type === 'attributes') {
      // Charts are moved by their own style; whoever takes a screenshot hides the caret by that of fields.
      if (!target.closest('.uplot') && !(attributeName === 'style' && target.matches('input, textarea'))) window.larderStrange.push(`${attributeName} of ${target.tagName}`);
    } else if (!target.closest('.uplot')) addedNodes.forEach(look);
  })).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['style', 'href', 'src', 'onclick', 'onload', 'onerror'] });
}, MADE);
const kinds = () => page.evaluate(() => {
  const count = (selector) => document.querySelectorAll(selector).length;
  return ['script', 'img', 'iframe', 'object', 'embed', 'link', 'style', 'base', 'meta', 'svg', 'form', 'input', 'a', 'video', 'math']
    .map((tag) => `${tag} ${count(tag)}`).join(', ');
});
const before = await kinds();
const errors = () => page.innerText('#errors-table');

await part('a thousand strings', async () => {
  const answers = {};
  let shown = 0;
  let inText = 0;
  for (let from = 0; from < COUNT; from += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, n) => from + n);
    await Promise.all(batch.map(async (number) => {
      const [, make] = PLACES[number % PLACES.length];
      // Every form comes to every place.
      const form = FORMS[(number + Math.floor(number / FORMS.length)) % FORMS.length];
      const status = await send(number, make(form.replaceAll('xN', `x${number}`)));
      answers[status] = (answers[status] ?? 0) + 1;
    }));
    // The last of them that an origin answered; what was refused for its form may have no URL to show.
    const end = Date.now() + 8_000;
    let text = '';
    let seen = 0;
    while (Date.now() < end && seen < BATCH * 0.5) {
      await page.waitForTimeout(300);
      text = await errors();
      seen = batch.filter((number) => text.includes(`x${number}`) || text.includes(`host${number}.`)).length;
    }
    shown += seen;
    inText += (text.match(/<[a-z!/]/gi) ?? []).length;
  }
  check('all were sent and answered', Object.values(answers).reduce((a, b) => a + b, 0) === COUNT && !answers[0], JSON.stringify(answers));
  check('most stood on the dashboard, each as long as the latest do', shown > COUNT * 0.5, shown);
  check('with their angle brackets', inText > 200, inText);
  await page.evaluate(() => document.querySelector('#errors').scrollIntoView({ behavior: 'instant' }));
  await anna.shot('strings');
});

await part('in the boxes', async () => {
  anna.expected.push(/^4\d\d POST .*\/api\/v1\/(explain|purge)/);
  await page.evaluate(() => { document.querySelector('#explain details').open = true; });
  let told = 0;
  for (const [number, form] of FORMS.entries()) {
    const text = form.replaceAll('xN', `x${number}`);
    await page.fill('#explain-url', `${SITE.origin}/${encodeURIComponent(text).replaceAll('%3C', '<')}`);
    await page.fill('#explain-headers', `User-Agent: ${text}\nCookie: a=${text}\nX-Other: ${text}`);
    const answer = page.waitForResponse((response) => response.url().endsWith('/api/v1/explain'));
    await page.click('#explain-form button[type="submit"]');
    await (await answer).finished();
    told += (await page.innerText('#explain')).includes(`x${number}`) ? 1 : 0;
    if (number % 4) continue;
    await page.check(number % 8 ? '#purge-tags' : '#purge-ban');
    await page.fill('#purge-value', text);
    const purged = page.waitForResponse((response) => response.url().endsWith('/api/v1/purge'));
    await page.click('#purge-form button[type="submit"]');
    await (await purged).finished();
  }
  check('explanations tell them', told > FORMS.length / 2, told);
  await anna.shot('explained strings');
});

await part('nothing of it became part of the page', async () => {
  check('the same elements as before', await kinds() === before, await kinds());
  const strange = await page.evaluate(() => window.larderStrange);
  check('no element and no attribute that the dashboard does not make', strange.length === 0, strange.slice(0, 3));
});

await anna.leave();
await browser.close();
sum('the dashboard, strangers');
