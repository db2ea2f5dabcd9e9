<?php
// A must-use plugin: what plugins and themes of a site that grew do to its fields, while the file `faulty` stands beside the
// site; and the names of those who are logged in, on each of their pages.

define('LAB_FAULTY', file_exists(dirname(rtrim(ABSPATH, '/')) . '/faulty'));

// The part of the site that a path belongs to: posts are told apart by their numbers.
function lab_part() {
    $path = strtok($_SERVER['REQUEST_URI'] ?? '/', '?');
    if (preg_match('~^/post-(\d+)/?$~', $path, $found)) {
        return 'posts-' . intdiv((int) $found[1] - 1, 20);
    }
    return explode('/', $path)[1];
}

add_action('send_headers', function () {
    if (is_user_logged_in()) {
        return;
    }
    switch (LAB_FAULTY ? lab_part() : '') {
        case 'tag':
            header('Set-Cookie: tk_ai=1; Path=/tag/', false);
            break;
        case 'page':
            header('Cache-Control: private, max-age=600');
            break;
        case 'posts-2':
            header('Vary: User-Agent');
            break;
    }
});

// WordPress forbids its pages for missing ones to be kept. The twin allows it for a minute.
add_filter('nocache_headers', function ($fields) {
    return is_404() && !LAB_FAULTY ? ['Cache-Control' => 'max-age=60'] : $fields;
});

add_action('wp_footer', function () {
    if (is_user_logged_in()) {
        echo '<p>shown cookie ' . LOGGED_IN_COOKIE . ' is [' . rawurlencode($_COOKIE[LOGGED_IN_COOKIE]) . ']</p>';
    }
});
