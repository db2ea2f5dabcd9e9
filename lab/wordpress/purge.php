<?php
// The requests that Proxy Cache Purge (varnish-http-purge) sends when a post is saved, byte for byte: PURGE for the
// post, its feeds, the front page and the lists it is in; with "purge all" one expression. Written for this lab; it
// does nothing until the file LAB_PURGE is there.
namespace Lab;

function purge(string $url, string $method = 'default'): void {
    $parts = parse_url($url);
    $host = $parts['host'] . (isset($parts['port']) ? ':' . $parts['port'] : '');
    $path = ($parts['path'] ?? '/') . ($method === 'regex' ? '.*' : '');
    $query = isset($parts['query']) ? '?' . $parts['query'] : '';
    $answer = wp_remote_request('http://' . LAB_PROXY . $path . $query, [
        'method' => 'PURGE',
        'headers' => ['host' => $host, 'X-Purge-Method' => $method],
    ]);
    $status = is_wp_error($answer) ? $answer->get_error_message() : wp_remote_retrieve_response_code($answer);
    file_put_contents(LAB_PURGE, "PURGE $url $method: $status\n", FILE_APPEND);
}

add_action('save_post', function ($id, $post) {
    if (!file_exists(LAB_PURGE) || $post->post_status !== 'publish' || wp_is_post_revision($id)) {
        return;
    }
    $urls = [get_permalink($id), home_url('/'), get_bloginfo('rss2_url'), get_post_comments_feed_link($id)];
    foreach (get_the_tags($id) ?: [] as $tag) {
        $urls[] = get_tag_link($tag);
    }
    foreach (get_the_category($id) as $category) {
        $urls[] = get_category_link($category);
    }
    array_map(fn ($url) => purge($url), array_unique($urls));
}, 10, 2);

add_action('switch_theme', fn () => file_exists(LAB_PURGE) && purge(home_url('/'), 'regex'));
// Site Health is to find the cache, however busy this machine is.
add_filter('site_status_good_response_time_threshold', fn () => 60000);
