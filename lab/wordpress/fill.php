<?php
// Installs WordPress into an empty database and fills it. usage: php fill.php SITE_FOLDER
// What the tests look for is written in capitals.

define('WP_INSTALLING', true);
$site = rtrim($argv[1], '/') . '/';

// The installer mails the new administrator; there is nobody to read it.
function wp_new_blog_notification() {}

require $site . 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';

wp_install('Larder Lab', 'admin', 'admin@example.org', true, '', 'admin-password');
switch_theme('twentytwentythree');
// Without it links are as in a new WordPress, /?p=1.
if (!getenv('LAB_NEW_LINKS')) {
    update_option('permalink_structure', '/%postname%/');
}
update_option('posts_per_page', 10);
// Comments appear at once, so that their author can be recognised on the page.
update_option('comment_moderation', 0);
update_option('comment_previously_approved', 0);
update_option('require_name_email', 1);
flush_rewrite_rules(false);

// Avatars and emoji pictures are other hosts' matter.
update_option('show_avatars', 0);

function lab_user(string $login, string $name, string $role) {
    $id = wp_insert_user(['user_login' => $login, 'user_pass' => "$login-password", 'role' => $role,
        'user_email' => "$login@example.org", 'display_name' => $name]);
    if (is_wp_error($id)) {
        fwrite(STDERR, $id->get_error_message() . "\n");
        exit(1);
    }
    return $id;
}

// An administrator: the block editor asks for templates, which editors are refused.
$edith = lab_user('edith', 'Edith Editor', 'administrator');
lab_user('rita', 'Rita Reader', 'subscriber');
// For scripts that speak to the REST API; the tests read it from here.
[$password] = WP_Application_Passwords::create_new_application_password($edith, ['name' => 'lab']);
file_put_contents(dirname($site) . '/application-password', $password);

// Functions, not variables: WordPress has globals of its own called $post and the like.
function lab_paragraph() {
    static $words = null;
    $words ??= explode(' ', 'a page that is made anew for each visitor costs its server as much time as the '
        . 'first one although it says the same to everybody and nothing in it has changed since the minute '
        . 'before');
    $text = [];
    for ($i = 0; $i < 90; $i++) {
        $text[] = $words[mt_rand(0, count($words) - 1)];
    }
    return '<!-- wp:paragraph --><p>' . ucfirst(implode(' ', $text)) . '.</p><!-- /wp:paragraph -->';
}

function lab_post(array $fields) {
    $id = wp_insert_post($fields + [
        'post_status' => 'publish',
        'post_author' => 1,
        'post_content' => implode("\n", array_map('lab_paragraph', range(1, 8))),
    ], true);
    if (is_wp_error($id)) {
        fwrite(STDERR, $id->get_error_message() . "\n");
        exit(1);
    }
    return $id;
}

mt_srand(1);
wp_defer_term_counting(true);
wp_defer_comment_counting(true);
for ($number = 1; $number <= 200; $number++) {
    $id = lab_post(['post_title' => "Post $number", 'post_name' => "post-$number",
        'post_date' => gmdate('Y-m-d H:i:s', 1700000000 + 3600 * $number)]);
    wp_set_post_tags($id, 'tag-' . ($number % 7));
    wp_insert_comment(['comment_post_ID' => $id, 'comment_author' => 'Someone', 'comment_approved' => 1,
        'comment_author_email' => 'someone@example.org', 'comment_content' => "About post $number."]);
}
lab_post(['post_title' => 'Behind a password', 'post_name' => 'behind-a-password',
    'post_password' => 'post-password', 'post_content' => 'PROTECTED-CONTENT']);
lab_post(['post_title' => 'Private', 'post_name' => 'private-post', 'post_status' => 'private',
    'post_content' => 'PRIVATE-CONTENT']);
lab_post(['post_title' => 'Shop', 'post_name' => 'shop', 'post_type' => 'page',
    'post_content' => 'The same for everybody.']);
wp_defer_term_counting(false);
wp_defer_comment_counting(false);
echo wp_count_posts()->publish, " posts\n";
