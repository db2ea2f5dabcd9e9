// People with a browser on the lab's Django site: forms with tokens, messages that are shown once, sessions, a chat, the
// admin, and notes that appear while one looks; strangers see no trace of any of it.
import { check, part, sum } from '../browser/checks.mjs';
import { Person, openBrowser, strangers, traces } from '../browser/people.mjs';
import { BASE, Visitor, isFile, isHit, neverHit, secondIsHit, seen } from '../browser/visitor.mjs';

// What the site puts only into pages of those who are logged in or have just sent a form.
const TRACES = ['csrfmiddlewaretoken', 'id="logout"', 'id="me"', 'class="message"', 'edith', 'rita', 'href="/admin/', 'New note'];

const browser = await openBrowser();
const enter = (name) => Person.enter(browser, name);

async function logIn(person, login) {
  await person.open('/accounts/login/');
  await person.page.fill('#id_username', login);
  await person.page.fill('#id_password', `${login}-password`);
  await person.page.click('#send');
  await person.page.waitForURL('**/me/');
}

const strangersSee = strangers(browser, TRACES);

await part('scripts as visitors', async () => {
  const note = await secondIsHit('a note', '/notes/1/');
  check('Django varies it by cookies', /cookie/i.test(note.headers.vary), note.headers.vary);
  const tracked = await new Visitor({ _ga: 'GA1.2.3' }).get('/notes/1/');
  check('tracking cookies do not split the cache', isHit(tracked, note), seen(tracked));
  await neverHit('with a session', new Visitor({ sessionid: 'forged' }), '/notes/1/');
  const login = await neverHit('the login form', new Visitor(), '/accounts/login/', { times: 2 });
  const tokens = login.map((a) => /csrfmiddlewaretoken" value="(\w+)"/.exec(a.text)?.[1]);
  check('each visitor has a token', tokens[0] && tokens[1] && tokens[0] !== tokens[1]);
  const strangers = [await new Visitor().get('/contact/'), await new Visitor().get('/contact/')];
  const cookies = strangers.map((a) => String(a.headers['set-cookie']));
  check('each visitor of a form has a token cookie of their own',
    strangers.every((a) => !a.hit) && cookies[0] !== cookies[1] && cookies[0].includes('csrftoken'), seen(...strangers));
  await new Visitor().get('/me/').then((a) => check('/me/ sends to the login',
    a.status === 302 && a.headers.location === '/accounts/login/?next=/me/', a.headers.location));
  const forged = await new Visitor().ask('POST', '/contact/', { form: { name: 'x', text: 'y' } });
  check('a form without its token is refused', forged.status === 403, forged.status);
  await isFile('/static/notes/notes.css', 'text/css');
  await isFile('/static/admin/js/core.js', 'text/javascript');
});

await part('a crowd', async () => {
  const tokenOf = (answer) => /csrfmiddlewaretoken" value="(\w+)"/.exec(answer.text)[1];
  const members = async (login) => {
    const visitor = new Visitor();
    const csrfmiddlewaretoken = tokenOf(await visitor.get('/accounts/login/'));
    const form = { csrfmiddlewaretoken, username: login, password: `${login}-password`, next: '/' };
    const fields = { Referer: new URL('/accounts/login/', BASE).href };
    const answer = await visitor.ask('POST', '/accounts/login/', { form, fields });
    check(`${login} logs in by script`, answer.status === 302, answer.status);
    return visitor;
  };
  const crowd = { edith: await members('edith'), rita: await members('rita'), nobody: new Visitor() };
  const wrong = [];
  let hits = 0;
  // Pages that nobody has seen, asked for by all at once: what is made for one must not be what another waits for.
  const asked = Array.from({ length: 240 }, async (_, n) => {
    const name = Object.keys(crowd)[n % 3];
    // Each asks with the cookies they came with.
    const answer = await new Visitor(Object.fromEntries(crowd[name].jar)).get(`/notes/${4 + (n % 8)}/`);
    const member = /<a id="me" href="\/me\/">(\w+)</.exec(answer.text)?.[1] ?? 'nobody';
    if (answer.status !== 200 || member !== name || (answer.hit && name !== 'nobody')) wrong.push(`${name}: ${member} ${answer.status}`);
    hits += answer.hit;
  });
  await Promise.all(asked);
  check('240 requests of three at once: each has their own page', wrong.length === 0, wrong.slice(0, 5));
  check('and strangers share theirs', hits > 0, hits);
});

await part('anonymous', async () => {
  await strangersSee('front page', '/', 'Note 20');
  await strangersSee('a note', '/notes/2/', 'The text of note 2.');
});

await part('a form without a login', async () => {
  const carl = await enter('Carl, who sends the form');
  await carl.open('/contact/');
  await carl.page.fill('#id_name', 'Carl');
  await carl.page.fill('#id_text', 'Hello.');
  await carl.shot('form');
  await carl.page.click('#send');
  await carl.page.getByText('Thank you, Carl.').waitFor();
  await carl.shot('thanks');
  const again = await carl.open('/');
  check('thanks are said once', !again.html.includes('Thank you'));
  await strangersSee('front page after the form', '/', 'Note 20');
  await carl.leave();
});

const edith = await enter('Edith');

await part('Edith logs in and writes', async () => {
  const { page } = edith;
  await logIn(edith, 'edith');
  check('her page has her name', await page.getByRole('heading', { name: 'Edith Editor' }).isVisible());
  await edith.shot('her-page');
  const counts = [];
  for (let n = 0; n < 3; n++) {
    const mine = await edith.open('/me/');
    counts.push(`${await page.locator('#visits').textContent()}${mine.hit ? ' hit' : ''}`);
  }
  check('each visit of it counts', counts.join() === 'Visits: 2,Visits: 3,Visits: 4', counts);
  for (const path of ['/', '/notes/3/']) {
    const own = await edith.open(path);
    check(`logged in, ${path}: never a hit`, !own.hit && own.html.includes('id="me"'));
  }
  await page.getByRole('link', { name: 'New note' }).click();
  await page.fill('#id_title', "Edith's note");
  await page.fill('#id_text', 'Written by hand.');
  await page.click('#send');
  await page.getByText('Your note is saved.').waitFor();
  check('her note can be edited', await page.getByRole('link', { name: 'Edit', exact: true }).isVisible());
  await edith.shot('her-note');
});

await part('the admin', async () => {
  const { page } = edith;
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await page.waitForURL('**/admin/notes/note/**');
  await edith.shot('admin');
  await page.fill('#id_text', 'Written by hand, and changed.');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('was changed successfully').waitFor();
  await edith.shot('admin-list');
});

await part('strangers see what Edith read and wrote', async () => {
  await strangersSee('what Edith read first', '/notes/3/', 'The text of note 3.');
  await strangersSee('the new note', '/notes/21/', 'Written by hand, and changed.');
});

await part('two who are logged in', async () => {
  const rita = await enter('Rita');
  await logIn(rita, 'rita');
  const hers = await rita.open('/me/');
  const found = traces(hers.html, ['edith', 'Edith']);
  check("Rita's page is Rita's", found.length === 0 && hers.html.includes('rita@example.org') && !hers.hit, found);
  await rita.shot('page-of-rita');
  rita.expected.push(/404 GET .*notes\/999/);
  const gone = await rita.open('/notes/999/');
  check('a missing note is 404', gone.status === 404);
  await rita.leave();
});

await part('notes as they come', async () => {
  const anna = await enter('anonymous Anna, live');
  await anna.open('/live/');
  await anna.page.getByText('listening').waitFor();
  await edith.open('/notes/new/');
  await edith.page.fill('#id_title', 'A live note');
  await edith.page.fill('#id_text', 'Now.');
  await edith.page.click('#send');
  await anna.page.locator('#live').getByText('A live note').waitFor();
  check('a note appears while Anna looks', true);
  await anna.shot('live');
  await anna.leave();
});

await part('a chat', async () => {
  const anna = await enter('anonymous Anna, chatting');
  for (const person of [anna, edith]) {
    await person.open('/chat/');
    await person.page.getByText('connected').waitFor();
  }
  const say = async (person, words) => {
    await person.page.fill('#words', words);
    await person.page.click('#say button');
  };
  await say(anna, 'Is anybody there?');
  await edith.page.getByText('somebody: Is anybody there?').waitFor();
  await say(edith, 'I am.');
  await anna.page.getByText('edith: I am.').waitFor();
  // Longer than any buffer on the way.
  const long = 'x'.repeat(500_000);
  await say(anna, long);
  await edith.page.locator('#said li').nth(2).waitFor();
  const heard = await edith.page.locator('#said li').nth(2).textContent();
  check('Anna and Edith hear each other', heard === `somebody: ${long}`, heard.length);
  const said = await anna.page.locator('#said li').allTextContents();
  check('in the order in which they spoke', said.slice(0, 2).join() === 'somebody: Is anybody there?,edith: I am.');
  await anna.page.evaluate(() => document.querySelector('#said').lastChild.remove());
  await anna.shot('chat');
  await anna.leave();
});

await part('Edith logs out', async () => {
  const { page } = edith;
  await page.click('#logout');
  await page.locator('#login').waitFor();
  await edith.shot('logged-out');
  for (const path of ['/', '/notes/3/', '/notes/21/']) {
    const found = traces((await edith.open(path)).html, TRACES);
    check(`${path}: the logged-out browser sees no trace`, found.length === 0, found);
  }
  await edith.open('/me/');
  check('her page asks for a login', page.url().includes('/accounts/login/'));
  await edith.leave();
});

await browser.close();
sum('Django, visited by people');
