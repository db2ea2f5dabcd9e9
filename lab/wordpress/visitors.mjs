// What visitors of a WordPress behind Larder get: the same pages fast, and nobody else's. Visitors here are
// scripts; people with a browser come after them. The site is the one of fill.php.
import fs from 'node:fs';
import http from 'node:http';

import { check, part, sum } from '../browser/checks.mjs';
import { BASE, Visitor, isFile, isHit, neverHit, secondIsHit, seen } from '../browser/visitor.mjs';
import { ADMIN_BAR, logIn } from './site.mjs';

const strangers = async (count, path) => {
  const answers = [];
  for (let n = 0; n < count; n++) answers.push(await new Visitor().get(path));
  return answers;
};

await part('plain HTTP', async () => {
  const { host, port } = new URL(process.env.LAB_HTTP);
  const to = { host: '127.0.0.1', port, path: '/post-1/?a=b', headers: { Host: host }, timeout: 10_000 };
  const location = await new Promise((resolve, reject) => {
    const answered = (response) => resolve(`${response.resume().statusCode} ${response.headers.location}`);
    http.get(to, answered).on('error', reject);
  });
  check('plain HTTP is redirected to HTTPS', /^308 https:\/\/wordpress\.localhost.*\/post-1\/\?a=b$/.test(location), location);
});

await part('anonymous pages', async () => {
  const front = await secondIsHit('front page', '/');
  for (const number of [200, 150, 100]) await secondIsHit(`post ${number}`, `/post-${number}/`);
  const feed = await secondIsHit('feed', '/feed/');
  check('feed: links are of this site', feed.text.includes(`<link>${BASE.origin}`));
  await secondIsHit('comment feed of a post', '/post-200/feed/');
  await secondIsHit('tag page', '/tag/tag-3/');
  await secondIsHit('second page of the list', '/page/2/');
  await secondIsHit('sitemap', '/wp-sitemap.xml');
  const robots = await secondIsHit('robots.txt, which PHP makes', '/robots.txt');
  check('robots.txt names the sitemap', robots.text.includes(`${BASE.origin}/wp-sitemap.xml`));
  const [posts] = await neverHit('REST list of posts', new Visitor(), '/wp-json/wp/v2/posts');
  check('REST: ten posts', JSON.parse(posts.text).length === 10);
  await neverHit('REST by query', new Visitor(), '/?rest_route=/wp/v2/posts');
  const [found] = await neverHit('search', new Visitor(), '/?s=Post+123');
  check('search finds the post', found.text.includes('/post-123/'));
  const gone = await strangers(2, '/there-is-no-such-page/');
  // WordPress forbids it: no-cache, and an Expires of 1984.
  check('404: not kept', gone.every((a) => a.status === 404 && !a.hit), seen(...gone));
  let answer = await new Visitor().get('/feed/', { fields: { 'If-None-Match': feed.headers.etag } });
  check('feed: a reader that has it gets 304 from the cache', answer.status === 304 && answer.hit, seen(answer));
  answer = await new Visitor({ _ga: 'GA1.2.3', _fbp: 'fb.1.2' }).get('/');
  check('tracking cookies do not split the cache', isHit(answer, front), seen(answer));
  answer = await new Visitor().get('/?utm_source=mail&gclid=x');
  check('tracking parameters do not split the cache', isHit(answer, front), seen(answer));
  answer = await new Visitor({ wordpress_test_cookie: 'WP%20Cookie%20check' }).get('/');
  check('who has seen the login form gets the cached page', isHit(answer, front), seen(answer));
  const icons = await strangers(2, '/favicon.ico');
  check('the redirect to the icon is kept', isHit(icons[1], icons[0]) && icons[1].status === 302, seen(...icons));
  answer = await new Visitor().ask('HEAD', '/');
  check('HEAD is answered from the stored GET', isHit(answer, front) && !answer.text, seen(answer));
});

await part('many at once', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => new Visitor().get('/post-50/')));
  const one = new Set(answers.map((a) => a.stamp)).size === 1 && new Set(answers.map((a) => a.text)).size === 1;
  check('20 first requests at once: one run of PHP, one body', one, new Set(answers.map((a) => a.stamp)).size);
});

await part('logged in', async () => {
  await neverHit('login page', new Visitor(), '/wp-login.php');
  const edith = await logIn('edith');
  const own = await neverHit('logged in, a page nobody else has seen', edith, '/post-120/');
  check('logged in: the page has the admin bar', own.every((a) => a.text.includes(ADMIN_BAR)));
  const others = await strangers(2, '/post-120/');
  const stamps = new Set(own.map((a) => a.stamp));
  const apart = others.every((a) => !a.text.includes(ADMIN_BAR) && !stamps.has(a.stamp));
  check('an anonymous visitor then gets a page of their own', apart, seen(...others));
  check('whose second request is a hit', isHit(others[1], others[0]), seen(...others));
  const again = await edith.get('/post-120/');
  check('the cached anonymous page is not served to the logged-in one',
    again.text.includes(ADMIN_BAR) && !again.hit, seen(again));
  const front = await neverHit('logged in, the cached front page', edith, '/');
  check('logged in: the front page has the admin bar', front.every((a) => a.text.includes(ADMIN_BAR)));
  await neverHit('dashboard', edith, '/wp-admin/index.php');
  await neverHit('dashboard by its folder', edith, '/wp-admin/');
  await neverHit('profile', edith, '/wp-admin/profile.php');
  let answers = await strangers(2, '/wp-admin/profile.php');
  check('anonymous visitors of the dashboard are sent to the login page',
    answers.every((a) => a.status === 302 && a.headers.location.includes('wp-login')), seen(...answers));
  const secret = await neverHit('private post, for its reader', edith, '/private-post/');
  check('private post: its reader sees it', secret.every((a) => a.text.includes('PRIVATE-CONTENT')));
  answers = await strangers(2, '/private-post/');
  check('private post: nobody else does',
    answers.every((a) => a.status === 404 && !a.text.includes('PRIVATE-CONTENT')), seen(...answers));
  const rita = await logIn('rita');
  const hers = await rita.get('/post-120/');
  check('two who are logged in get pages of their own',
    hers.text.includes('Rita Reader') && !hers.text.includes('Edith Editor') && again.text.includes('Edith Editor'));
  const forged = await new Visitor({ wordpress_logged_in_x: 'forged' }).get('/post-120/');
  check('a forged session cookie is not served from the cache', !forged.hit, seen(forged));
  const fields = { Authorization: 'Basic eDp5' };
  await neverHit('a request with Authorization', new Visitor(), '/post-119/', { fields });
});

await part('scripts with a password of their own', async () => {
  const password = fs.readFileSync(`${process.env.LAB_WORK}/application-password`, 'utf8');
  const fields = { Authorization: `Basic ${Buffer.from(`edith:${password}`).toString('base64')}` };
  const path = '/wp-json/wp/v2/users/me?context=edit';
  const own = await neverHit('REST with a password', new Visitor(), path, { fields });
  check('REST: the password reaches WordPress', own.every((a) => JSON.parse(a.text).email === 'edith@example.org'));
  const [stranger] = await strangers(1, path);
  check('REST: nobody else is told', stranger.status === 401 && !stranger.text.includes('edith'), stranger.status);
  const drafted = await new Visitor().ask('POST', '/wp-json/wp/v2/posts', { fields, form: { title: 'By a script' } });
  check('REST: a script writes a draft', drafted.status === 201, drafted.status);
  const body = '<?xml version="1.0"?><methodCall><methodName>demo.sayHello</methodName></methodCall>';
  const rpc = await new Visitor().ask('POST', '/xmlrpc.php', { body, fields: { 'Content-Type': 'text/xml' } });
  check('XML-RPC answers', rpc.status === 200 && rpc.text.includes('Hello!'), rpc.status);
});

await part('redirects', async () => {
  const expected = {
    '/wp-admin': '/wp-admin/',
    '/wp-admin?a=b': '/wp-admin/?a=b',
    '/post-77': '/post-77/',
    '/index.php/post-77/': '/post-77/',
    '/?p=1': '/hello-world/',
    '/favicon.ico': '/wp-includes/images/w-logo-blue-white-bg.png',
  };
  for (const [from, to] of Object.entries(expected)) {
    const answer = await new Visitor().get(from);
    const where = answer.headers.location && new URL(answer.headers.location, BASE.origin + from);
    check(`${from} leads to ${to}`, answer.status < 400 && where?.href === BASE.origin + to, `${answer.status} ${where}`);
  }
});

await part('carts', async () => {
  const path = '/post-110/';
  const first = await secondIsHit('before there is a cart', path);
  const carts = [{ woocommerce_items_in_cart: '1' }, { wp_woocommerce_session_0123: 'x' }, { woocommerce_cart_hash: 'a' }];
  for (const cart of carts) await neverHit(`with ${Object.keys(cart)[0]}`, new Visitor(cart), path, { times: 2 });
  const [stranger] = await strangers(1, path);
  check('others still get the stored page', isHit(stranger, first), seen(stranger));
  for (const where of ['/cart/', '/checkout/', '/my-account/', '/post-110/?add-to-cart=7', '/?wc-ajax=get_refreshed_fragments']) {
    const answers = await strangers(2, where);
    check(`${where} is not kept`, answers.every((a) => !a.hit) && answers[0].stamp !== answers[1].stamp, seen(...answers));
  }
});

await part('behind a password', async () => {
  const path = '/behind-a-password/';
  const locked = (answers) => answers.every((a) => a.status === 200 && !a.text.includes('PROTECTED-CONTENT'));
  check('password-protected post: strangers see the form', locked(await strangers(2, path)));
  const knower = new Visitor();
  const form = { post_password: 'post-password', Submit: 'Enter' };
  const fields = { Referer: BASE.origin + path };
  const answer = await knower.ask('POST', '/wp-login.php?action=postpass', { form, fields });
  const got = [...knower.jar.keys()].some((name) => name.startsWith('wp-postpass_'));
  check('the password is taken', answer.status === 302 && got, answer.status);
  const open = await neverHit('with the password', knower, path);
  check('with the password: the content is there', open.every((a) => a.text.includes('PROTECTED-CONTENT')));
  const answers = await strangers(3, path);
  check('strangers still see the form only', locked(answers), seen(...answers));
});

await part('commenting', async () => {
  const path = '/post-80/';
  const [, id] = /name='comment_post_ID' value='(\d+)'/.exec((await new Visitor().get(path)).text);
  const author = new Visitor();
  const form = {
    comment_post_ID: id, author: 'Erika Mustermann', email: 'erika@example.org', comment: 'WRITTEN BY ERIKA',
    'wp-comment-cookies-consent': 'yes', submit: 'Post Comment',
  };
  const answer = await author.ask('POST', '/wp-comments-post.php', { form });
  const got = [...author.jar.keys()].some((name) => name.startsWith('comment_author_'));
  check('a comment is taken', answer.status === 302 && got, `${answer.status} ${[...author.jar.keys()]}`);
  const own = await neverHit('with comment-author cookies', author, path);
  const filled = 'value="Erika Mustermann"';
  check('with comment-author cookies: the form knows its author', own.every((a) => a.text.includes(filled)));
  const answers = await strangers(3, path);
  check("nobody else's form does", answers.every((a) => !a.text.includes(filled)), seen(...answers));
});

await part('files', async () => {
  await isFile('/wp-includes/css/dashicons.min.css?ver=6.1', 'text/css');
  await isFile('/wp-includes/js/jquery/jquery.min.js', 'text/javascript');
  await isFile('/wp-includes/images/w-logo-blue.png', 'image/png');
  await isFile('/wp-includes/fonts/dashicons.woff2', 'font/woff2');
});

await part('what is neither run nor shown', async () => {
  // What editors and dumps leave behind.
  const site = `${process.env.LAB_WORK}/site`;
  for (const name of ['wp-config.php~', 'wp-config.php.bak', 'dump.sql', '.env', 'wp-content/uploads/x.php']) {
    fs.writeFileSync(`${site}/${name}`, "<?php echo 'SECRET-CONTENT';");
  }
  const paths = ['/wp-config.php~', '/wp-config.php.bak', '/dump.sql', '/.env', '/wp-content/uploads/x.php',
    '/wp-content/uploads/x.php/y.css', '/wp-includes/css/dashicons.css/x.php', '/.htaccess', '/.git/config',
    '/wp-includes/%2e%2e/wp-config.php~', '/wp-content/uploads/x%2ephp'];
  for (const path of paths) {
    const answer = await new Visitor().get(path);
    check(`${path} is refused`, [400, 403, 404].includes(answer.status) && !answer.text.includes('SECRET'), answer.status);
  }
  const config = await new Visitor().get('/wp-config.php');
  check('/wp-config.php runs and says nothing', config.status === 200 && !config.text, config.status);
});

sum('WordPress, visited by scripts');
