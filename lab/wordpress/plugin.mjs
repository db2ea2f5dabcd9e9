// Larder's own plugin: whatever is changed, the next visitor sees it, and what has not changed stays stored. Pages are
// kept for minutes here, so that nothing else could make them new. Changes are made by PHP on the command line, as
// WordPress makes them, and one by the editor's own request.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

import { check, part, sum } from '../browser/checks.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';
import { edit, logIn, php } from './site.mjs';

const work = process.env.LAB_WORK;
const get = (path) => new Visitor().get(path);

async function stored(path) {
  await get(path);
  const [first, second] = [await get(path), await get(path)];
  check(`${path} is stored`, isHit(second, first), seen(first, second));
  return second;
}

// Makes the change; then `changed` are made anew and say `word`, and `others` are still there.
async function after(what, change, { changed, word, others = [] }) {
  const kept = [];
  for (const path of others) kept.push([path, await stored(path)]);
  for (const path of changed) await stored(path);
  await change();
  for (const path of changed) {
    const answer = await get(path);
    check(`${what}: the next visitor of ${path} sees it`,
      answer.status === 200 && !answer.hit && (!word || answer.text.includes(word)), seen(answer));
  }
  for (const [path, earlier] of kept) {
    const answer = await get(path);
    check(`${what}: ${path} is still stored`, isHit(answer, earlier), seen(answer));
  }
}

const install = (root) =>
  spawnSync(process.env.LAB_LARDER, ['preset', 'install', 'wordpress', '--root', root], { encoding: 'utf8' });

await part('installing', async () => {
  const nowhere = install(work);
  check('refused where there is no WordPress', nowhere.status !== 0 && nowhere.stderr.includes('no WordPress'), nowhere.stderr);
  const done = install(`${work}/site`);
  check('installed', done.status === 0 && done.stdout.includes('larder.php is installed'), done.stdout + done.stderr);
  // What is stored has no tags yet; after this nothing but Larder's plugin purges.
  php(`Lab\\purge(home_url('/'), 'regex');`);
  fs.rmSync(`${work}/site/wp-content/mu-plugins/purge.php`);
  const answer = await stored('/post-150/');
  check('visitors do not see tags', !answer.headers.xkey, answer.headers.xkey);
});

await part('posts', async () => {
  await after('a title', () => edit('post-195', 'ANOTHER-TITLE'),
    { changed: ['/post-195/', '/', '/feed/', '/tag/tag-6/'], word: 'ANOTHER-TITLE', others: ['/post-121/', '/post-120/feed/'] });
  await after('a new post', () => php(`wp_insert_post(['post_title' => 'BRAND-NEW', 'post_status' => 'publish',
    'post_author' => 1, 'tags_input' => ['tag-2']]);`),
  { changed: ['/', '/feed/', '/tag/tag-2/', '/author/admin/'], word: 'BRAND-NEW', others: ['/post-121/', '/tag/tag-3/'] });
  await after('a post in the trash', () => php(`wp_trash_post(get_page_by_path('brand-new', OBJECT, 'post')->ID);`),
    { changed: ['/', '/feed/', '/tag/tag-2/'], others: ['/post-121/', '/tag/tag-3/'] });
  check('it is gone from the list', !(await get('/')).text.includes('BRAND-NEW'));
  await after('a draft', () => php(`wp_insert_post(['post_title' => 'Draft', 'post_status' => 'draft']);`),
    { changed: [], others: ['/', '/post-121/'] });
  const edith = await logIn('edith');
  const page = await edith.get('/wp-admin/post-new.php');
  const [, nonce] = /createNonceMiddleware\( "([^"]+)" \)/.exec(page.text) ?? [];
  const id = php(`echo get_page_by_path('post-110', OBJECT, 'post')->ID;`);
  await after('the block editor', async () => {
    const answer = await edith.ask('POST', `/wp-json/wp/v2/posts/${id}`,
      { form: { title: 'BY-THE-EDITOR' }, fields: { 'X-WP-Nonce': nonce } });
    check('the editor saves', answer.status === 200, answer.status);
  }, { changed: ['/post-110/'], word: 'BY-THE-EDITOR', others: ['/post-121/', '/tag/tag-3/'] });
});

await part('comments', async () => {
  const insert = `$p = get_page_by_path('post-130', OBJECT, 'post'); echo wp_insert_comment(['comment_post_ID' => $p->ID,
    'comment_content' => 'APPROVED-LATER', 'comment_author' => 'Someone', 'comment_approved' => 0]);`;
  let id;
  await after('a comment that waits', () => { id = php(insert); }, { changed: [], others: ['/post-130/', '/comments/feed/'] });
  await after('approved', () => php(`wp_set_comment_status(${id}, 'approve');`),
    { changed: ['/post-130/', '/comments/feed/'], word: 'APPROVED-LATER', others: ['/post-121/'] });
  await after('taken away', () => php(`wp_delete_comment(${id}, true);`), { changed: ['/post-130/'], others: ['/post-121/'] });
});

await part('what is on every page', async () => {
  const link = (label) => `<!-- wp:navigation-link {"label":"${label}","url":"/x","kind":"custom"} /-->`;
  const menu = `wp_insert_post(['post_type' => 'wp_navigation', 'post_title' => 'Menu', 'post_status' => 'publish',
    'post_content' => '${link('MENU-ONE')}']);`;
  const changed = ['/', '/post-121/'];
  let id;
  await after('a menu', () => { id = php(`echo ${menu}`); }, { changed, word: 'MENU-ONE' });
  await after('another entry', () => php(`wp_update_post(['ID' => ${id}, 'post_content' => '${link('MENU-TWO')}']);`),
    { changed, word: 'MENU-TWO' });
  await after("the site's name", () => php(`update_option('blogname', 'ANOTHER-NAME');`), { changed, word: 'ANOTHER-NAME' });
  await after('a term', () => php(`$t = get_term_by('slug', 'tag-3', 'post_tag');
    wp_update_term($t->term_id, 'post_tag', ['name' => 'RENAMED-TAG']);`),
  { changed: ['/tag/tag-3/', '/post-150/'], word: 'RENAMED-TAG', others: ['/post-121/'] });
  await after('the name of an author', () => php(`wp_update_user(['ID' => 1, 'display_name' => 'PEN-NAME']);`),
    { changed: ['/author/admin/', '/post-121/'], word: 'PEN-NAME', others: ['/comments/feed/'] });
  await after('words about an author', () => php(`wp_update_user(['ID' => 1, 'description' => 'Writes.']);`),
    { changed: ['/author/admin/', '/post-121/'] });
  await after("an author's profile saved by its form", () => php(`do_action('personal_options_update', 1);`), { changed: ['/author/admin/'] });
  await after('what the block editor keeps of its user', () => {
    const status = php(`wp_set_current_user(1); $ask = new WP_REST_Request('POST', '/wp/v2/users/me');
      $ask->set_body_params(['meta' => ['persisted_preferences' => ['core/edit-post' => ['welcomeGuide' => false]]]]);
      echo rest_do_request($ask)->get_status();`);
    check('it is kept', status === '200', status);
  }, { changed: [], others: ['/author/admin/', '/post-121/', '/'] });

  // An old kind of theme, with links to the post before and after, a menu and a widget.
  const theme = `${work}/site/wp-content/themes/lab`;
  fs.mkdirSync(theme);
  fs.writeFileSync(`${theme}/style.css`, '/* Theme Name: Lab */');
  fs.writeFileSync(`${theme}/functions.php`,
    "<?php register_nav_menu('top', 'Top'); register_sidebar(['id' => 'side']);");
  fs.writeFileSync(`${theme}/index.php`, `<?php wp_head(); echo 'LAB-THEME'; wp_nav_menu(['theme_location' => 'top']);
    while (have_posts()) { the_post(); the_title('<h1>', '</h1>'); the_tags(); if (is_single()) the_post_navigation(); }
    dynamic_sidebar('side'); wp_footer();`);
  await after('another theme', () => php(`switch_theme('lab');`), { changed, word: 'LAB-THEME' });
  await after('a menu of that kind', () => php(`$m = wp_create_nav_menu('Top');
    wp_update_nav_menu_item($m, 0, ['menu-item-title' => 'OLD-MENU', 'menu-item-url' => '/x', 'menu-item-status' => 'publish']);
    set_theme_mod('nav_menu_locations', ['top' => $m]);`), { changed, word: 'OLD-MENU' });
  await after('a widget', () => php(`update_option('widget_text', [2 => ['title' => '', 'text' => 'WIDGET-TEXT'],
    '_multiwidget' => 1]); update_option('sidebars_widgets', ['side' => ['text-2'], 'array_version' => 3]);`),
  { changed, word: 'WIDGET-TEXT' });
  await after('the title of a neighbour', () => edit('post-60', 'NEXT-DOOR'),
    { changed: ['/post-59/', '/post-61/'], word: 'NEXT-DOOR', others: ['/post-63/'] });
  await after('a post between two', () => php(`wp_insert_post(['post_title' => 'IN-BETWEEN', 'post_status' => 'publish',
    'post_author' => 1, 'post_date' => gmdate('Y-m-d H:i:s', 1700000000 + 3600 * 70 + 1800)]);`),
  { changed: ['/post-70/', '/post-71/'], word: 'IN-BETWEEN', others: ['/post-63/'] });
  await after('a list of posts in a widget', () => php(`update_option('widget_recent-posts', [2 => ['number' => 5],
    '_multiwidget' => 1]); update_option('sidebars_widgets', ['side' => ['recent-posts-2'], 'array_version' => 3]);`), { changed });
  await after('a new post in that list', () => php(`wp_insert_post(['post_title' => 'IN-THE-LIST', 'post_status' => 'publish',
    'post_author' => 1]);`), { changed, word: 'IN-THE-LIST' });
});

await part('Site Health', async () => {
  const edith = await logIn('edith');
  const page = await edith.get('/wp-admin/site-health.php');
  const [, nonce] = /createNonceMiddleware\( "([^"]+)" \)/.exec(page.text) ?? /"nonce":"([^"]+)"/.exec(page.text) ?? [];
  const answer = await edith.get('/wp-json/wp-site-health/v1/tests/page-cache', { fields: { 'X-WP-Nonce': nonce } });
  const test = answer.status === 200 ? JSON.parse(answer.text) : {};
  check('its test of the page cache passes', test.status === 'good', `${answer.status} ${test.status === 'good' ? test.label : test.description}`);
  const own = JSON.parse(php('echo json_encode(Larder\\health());'));
  check('its test of purges passes', own.status === 'good', own.description);
});

await part('without Larder', async () => {
  const away = { LAB_ADDRESS: '127.0.0.1:1' };
  const path = '/post-90/';
  const earlier = await stored(path);
  const code = `require '${work}/site/wp-load.php'; $p = get_page_by_path('post-90', OBJECT, 'post');
    echo wp_update_post(['ID' => $p->ID, 'post_title' => 'WHILE-AWAY']);`;
  const saved = spawnSync('php', ['-d', 'variables_order=EGPCS', '-d', 'display_errors=stderr', '-r', code],
    { env: { ...process.env, HTTPS: 'on', HTTP_HOST: new URL(process.env.LAB_URL).host, ...away }, encoding: 'utf8' });
  check('a post is saved without a word', saved.status === 0 && /^\d+$/.test(saved.stdout) && !/larder|socket/i.test(saved.stderr),
    saved.stdout + saved.stderr);
  check('nobody has told Larder', isHit(await get(path), earlier));
  const own = JSON.parse(php('echo json_encode(Larder\\health());', away));
  check('Site Health says so', own.status === 'recommended' && own.description.includes('127.0.0.1:1'), own.description);
  // What WordPress runs once a minute is over.
  php(`foreach (_get_cron_array() as $at => $hooks) foreach ($hooks['larder_again'] ?? [] as $event) {
    wp_unschedule_event($at, 'larder_again', $event['args']); do_action_ref_array('larder_again', $event['args']); }`);
  const answer = await get(path);
  check('the purge is sent again, later', !answer.hit && answer.text.includes('WHILE-AWAY'), seen(answer));
  const complaints = fs.readFileSync(`${work}/php.log`, 'utf8').split('\n').filter((line) => line.includes('larder.php'));
  check('PHP has nothing to say about the plugin', complaints.length === 0, complaints);
});
sum("WordPress: Larder's plugin");
