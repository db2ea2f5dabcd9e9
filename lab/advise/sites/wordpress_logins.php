<?php
// Prints the cookies of five readers who are logged in, as JSON. usage: php wordpress_logins.php SITE_FOLDER
require rtrim($argv[1], '/') . '/wp-load.php';
$cookies = [];
for ($number = 0; $number < 5; $number++) {
    $id = username_exists("reader$number") ?: wp_create_user("reader$number", wp_generate_password());
    // Without a point of its own, which a cookie's value would need to have escaped.
    $value = wp_generate_auth_cookie($id, time() + 86400, 'logged_in');
    $cookies[] = [LOGGED_IN_COOKIE => rawurlencode($value)];
}
echo json_encode($cookies);
