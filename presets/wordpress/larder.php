<?php
/**
 * Plugin Name: Larder
 * Description: Tells Larder, the cache in front of this site, what each page shows, and what has changed.
 * Version: 1
 * Requires at least: 5.5
 * Requires PHP: 7.4
 * License: Apache-2.0 OR GPL-2.0-or-later
 *
 * A must-use plugin: it belongs into wp-content/mu-plugins, as `larder preset install wordpress` puts it.
 * Pages go out with tags (surrogate keys) of what is on them, and a change purges the pages that have its
 * tags. wp-config.php may say where Larder takes purges, and the site's token where it has one:
 *
 *     define('LARDER_ADDRESS', '127.0.0.1:80');
 *     define('LARDER_TOKEN', '...');
 *
 * Other plugins: `do_action('larder_tag', ['name'])` while a page is made, and
 * `do_action('larder_purge', ['name'])`.
 */

namespace Larder;

if (!defined('ABSPATH')) {
    exit;
}

/** Seconds for which Larder is waited for, to take a connection and to answer. */
const PATIENCE = 1;
/** Tags of one purge; a change with more purges the whole site. */
const PURGED = 200;
/** Tags of one page; one with more is purged by every change. */
const SHOWN = 400;
/** Bytes of a page that are held until its tags are known; a longer one is purged by every change. */
const HELD = 2 << 20;
/** Times that a purge is sent, a minute apart, before it is given up. */
const TRIES = 60;

/** The name of a tag: sites of a network have posts of the same numbers. */
function tag(string $name): string
{
    return 'wp' . get_current_blog_id() . '-' . preg_replace('/[^\x21-\x2b\x2d-\x7e]/', '-', $name);
}

/** Sends one purge; null if Larder has taken it, else the reason. */
function purge(string $host, array $tags): ?string
{
    $address = defined('LARDER_ADDRESS') ? LARDER_ADDRESS : '127.0.0.1:80';
    $url = strpos($address, '://') === false ? "tcp://$address" : $address;
    if (!function_exists('stream_socket_client')) {
        return 'stream_socket_client is switched off';
    }
    $stream = @stream_socket_client($url, $number, $reason, PATIENCE);
    if (!$stream) {
        return "$address: " . ($reason ?: 'no connection');
    }
    stream_set_timeout($stream, PATIENCE);
    $token = defined('LARDER_TOKEN') ? 'X-Purge-Token: ' . LARDER_TOKEN . "\r\n" : '';
    $keys = implode(' ', $tags);
    @fwrite($stream, "PURGE / HTTP/1.1\r\nHost: $host\r\nSurrogate-Key: $keys\r\n{$token}Connection: close\r\n\r\n");
    $answer = (string) @fgets($stream, 256);
    fclose($stream);
    if (preg_match('#^HTTP/1\.\d 200 #', $answer)) {
        return null;
    }
    return "$address: " . (trim($answer) ?: 'no answer');
}

/** What is on the page that is being made. */
final class Page
{
    private $tags = [];
    private $is_open = false;

    public function watch(): void
    {
        add_action('template_redirect', [$this, 'begin'], -1000);
        add_action('larder_tag', function ($names) {
            $this->add(...array_values((array) $names));
        });
        // Lists beside the page's own: of posts, pages, comments and terms.
        add_action('pre_get_posts', [$this, 'posts'], PHP_INT_MAX);
        add_action('pre_get_comments', [$this, 'comments']);
        add_action('pre_get_terms', [$this, 'terms']);
        add_filter('get_pages', function ($pages) {
            $this->add('list-page');
            return $pages;
        });
        add_filter('get_the_terms', function ($terms) {
            foreach (is_array($terms) ? $terms : [] as $term) {
                $this->add("term-$term->term_id");
            }
            return $terms;
        });
        foreach (['previous', 'next'] as $side) {
            add_filter("get_{$side}_post_where", [$this, 'beside'], 10, 5);
            add_filter("{$side}_post_link", [$this, 'neighbour'], 10, 4);
        }
    }

    public function add(string ...$names): void
    {
        foreach ($names as $name) {
            $this->tags[tag($name)] = true;
        }
    }

    public function posts($query): void
    {
        if ($query->is_main_query()) {
            return;
        }
        $types = (array) ($query->get('post_type') ?: 'post');
        if (in_array('any', $types, true)) {
            $types = get_post_types(['public' => true]);
        }
        foreach (array_filter($types, 'is_post_type_viewable') as $type) {
            $this->add("list-$type");
        }
    }

    public function comments($query): void
    {
        if (empty($query->query_vars['post_id'])) {
            $this->add('comments');
        }
    }

    public function terms($query): void
    {
        $asked = $query->query_vars;
        foreach (['object_ids', 'slug', 'include', 'name', 'term_taxonomy_id'] as $one) {
            // Terms of a post, or those that something names.
            if (!empty($asked[$one])) {
                return;
            }
        }
        if (array_filter((array) ($asked['taxonomy'] ?? []), 'is_taxonomy_viewable')) {
            $this->add('terms');
        }
    }

    public function beside($where, $in_same_term, $excluded, $taxonomy, $post)
    {
        // Changes know the post before and after theirs by date alone.
        if ($in_same_term || $excluded) {
            $this->add("list-$post->post_type");
        }
        return $where;
    }

    public function neighbour($link, $format, $text, $post)
    {
        if ($post) {
            $this->add("post-$post->ID");
        }
        return $link;
    }

    /** Begins to hold the page: its query is done, and nothing is sent yet. */
    public function begin(): void
    {
        if (is_user_logged_in() || headers_sent()) {
            return;
        }
        $this->of_query($GLOBALS['wp_query']);
        // Until the page is whole, and if it never is. `pass` takes this back.
        $this->say(true);
        $this->is_open = true;
        ob_start([$this, 'pass'], HELD);
    }

    private function of_query(\WP_Query $query): void
    {
        $this->add('site');
        $kinds = ['home' => $query->is_home() || is_front_page(), 'feed' => $query->is_feed(),
            'comments' => $query->is_comment_feed(),
            'sitemap' => (bool) (get_query_var('sitemap') ?: get_query_var('sitemap-stylesheet'))];
        $this->add(...array_keys(array_filter($kinds)));
        if ($query->is_category() || $query->is_tag() || $query->is_tax()) {
            $term = $query->get_queried_object();
            if ($term instanceof \WP_Term) {
                $this->add("term-$term->term_id", "in-term-$term->term_id");
            }
        }
        if ($query->is_author()) {
            $id = (int) $query->get('author');
            $this->add("author-$id", "by-author-$id");
        }
        if ($query->is_date() || $query->is_search() || $query->is_post_type_archive()) {
            $types = (array) ($query->get('post_type') ?: 'post');
            if ($query->is_search() || in_array('any', $types, true)) {
                $types = get_post_types(['public' => true]);
            }
            foreach ($types as $type) {
                $this->add("list-$type");
            }
        }
        foreach ((array) $query->posts as $post) {
            $id = is_object($post) ? ($post->ID ?? 0) : $post;
            $this->add("post-$id");
            if (is_object($post) && isset($post->post_author) && !$query->is_comment_feed()) {
                $this->add("author-$post->post_author");
            }
        }
        foreach ((array) ($query->comments ?? []) as $comment) {
            if (is_object($comment)) {
                $this->add("post-$comment->comment_post_ID");
            }
        }
    }

    /** Takes the page on its way out. */
    public function pass($text, $phase)
    {
        if ($this->is_open && !headers_sent()) {
            // It goes on after this, or what was made is thrown away for something else.
            $parts = !($phase & PHP_OUTPUT_HANDLER_FINAL) || ($phase & PHP_OUTPUT_HANDLER_CLEAN);
            $this->say($parts || count($this->tags) > SHOWN);
            if (defined('DONOTCACHEPAGE') && DONOTCACHEPAGE) {
                header('Cache-Control: private, no-store');
            }
        }
        $this->is_open = false;
        return $text;
    }

    /** Sets the field; if `$loosely`, every change purges the page. */
    private function say(bool $loosely): void
    {
        $tags = array_slice(array_keys($this->tags), 0, SHOWN);
        if ($loosely) {
            $tags[] = tag('loose');
        }
        header('xkey: ' . implode(' ', $tags), true);
    }
}

/** What has changed in this request; it is sent at its end, when all of it is in the database. */
final class Changes
{
    /** Types of posts that may be on any page. */
    private const EVERYWHERE = ['wp_template', 'wp_template_part', 'wp_global_styles', 'wp_navigation', 'wp_block',
        'nav_menu_item', 'custom_css', 'wp_font_family', 'wp_font_face'];
    /** Options that may show on any page. */
    private const OPTIONS = '/^(?:blogname|blogdescription|blog_charset|blog_public|siteurl|home|WPLANG|site_icon
        |site_logo|permalink_structure|category_base|tag_base|show_on_front|page_on_front|page_for_posts
        |wp_page_for_privacy_policy|posts_per_page|posts_per_rss|rss_use_excerpt|date_format|time_format
        |timezone_string|gmt_offset|start_of_week|sticky_posts|template|stylesheet|active_plugins
        |sidebars_widgets|widget_.*|theme_mods_.*|nav_menu_options|users_can_register|comment_registration
        |thread_comments.*|page_comments|comments_per_page|default_comments_page|comment_order
        |close_comments_.*|require_name_email|show_comments_cookies_opt_in|show_avatars|avatar_.*)$/x';

    private $tags = [];

    public function watch(): void
    {
        add_action('transition_post_status', [$this, 'status'], 10, 3);
        add_action('post_updated', [$this, 'updated'], 10, 3);
        add_action('before_delete_post', function ($id) {
            $this->status('deleted', get_post_status($id), get_post($id));
        });
        foreach (['edit_attachment', 'delete_attachment'] as $action) {
            add_action($action, function ($id) {
                $this->add("post-$id", 'list-attachment', 'sitemap');
            });
        }
        foreach (['added', 'updated', 'deleted'] as $how) {
            add_action("{$how}_post_meta", [$this, 'meta'], 10, 3);
            add_action("{$how}_option", [$this, 'option']);
        }
        add_action('set_object_terms', [$this, 'terms'], 10, 6);
        foreach (['created_term', 'edited_term', 'delete_term'] as $action) {
            add_action($action, [$this, 'term'], 10, 3);
        }
        add_action('wp_insert_comment', function ($id, $comment) {
            $this->comment('', $comment->comment_approved === '1' ? 'approved' : '', $comment);
        }, 10, 2);
        add_action('transition_comment_status', [$this, 'comment'], 10, 3);
        add_action('edit_comment', function ($id) {
            $comment = get_comment($id);
            $this->comment('', $comment && $comment->comment_approved === '1' ? 'approved' : '', $comment);
        });
        $this->watch_people();
        $this->watch_site();
        // Before what is held of the output is sent, so that whoever is answered finds the change made.
        add_action('shutdown', [$this, 'send'], -1000);
        add_action('shutdown', [$this, 'send'], PHP_INT_MAX);
        add_action('larder_again', [$this, 'again'], 10, 3);
    }

    private function watch_people(): void
    {
        // The block editor keeps its preferences by updating its user: nothing that visitors see changes by that.
        add_action('profile_update', function ($id, $old = null) {
            $new = get_userdata($id);
            foreach (['display_name', 'user_nicename', 'user_url', 'user_email'] as $one) {
                if (!$old || !$new || $old->$one !== $new->$one) {
                    $this->user($id);
                    return;
                }
            }
        }, 10, 2);
        foreach (['added', 'updated', 'deleted'] as $how) {
            add_action("{$how}_user_meta", function ($ids, $id, $key) {
                if (in_array($key, ['description', 'nickname', 'first_name', 'last_name'], true)) {
                    $this->user($id);
                }
            }, 10, 3);
        }
        // The profile's form, to which others add fields.
        foreach (['personal_options_update', 'edit_user_profile_update', 'delete_user'] as $action) {
            add_action($action, [$this, 'user']);
        }
    }

    private function watch_site(): void
    {
        $actions = ['switch_theme', 'customize_save_after', 'wp_update_nav_menu', 'wp_delete_nav_menu',
            'upgrader_process_complete'];
        foreach ($actions as $action) {
            add_action($action, function () {
                $this->add('site');
            });
        }
        add_action('larder_purge', function ($names) {
            $this->add(...array_values((array) $names));
        });
        // Stock changes without its product being saved.
        foreach (['update_product', 'product_set_stock', 'variation_set_stock'] as $action) {
            add_action("woocommerce_$action", function ($product) {
                $id = is_object($product) ? ($product->get_parent_id() ?: $product->get_id()) : (int) $product;
                $this->add("post-$id", 'list-product');
            });
        }
    }

    public function add(string ...$names): void
    {
        $url = wp_parse_url(home_url());
        $host = ($url['host'] ?? 'localhost') . (isset($url['port']) ? ":{$url['port']}" : '');
        foreach ($names as $name) {
            $this->tags[$host][tag($name)] = true;
        }
        $this->tags[$host][tag('loose')] = true;
    }

    public function status($new, $old, $post): void
    {
        $is_public = function ($status) {
            return in_array($status, ['publish', 'private', 'inherit'], true);
        };
        if (!$post || !($is_public($new) || $is_public($old)) || wp_is_post_revision($post)) {
            return;
        }
        if (in_array($post->post_type, self::EVERYWHERE, true)) {
            $this->add('site');
        } elseif (is_post_type_viewable($post->post_type)) {
            $this->post($post);
            // A picture that is uploaded is in no list until a post has it.
            if ($new !== $old && $post->post_type !== 'attachment') {
                $this->moved($post);
            }
        }
    }

    public function updated($id, $after, $before): void
    {
        if ($after->post_status !== 'publish' || !is_post_type_viewable($after->post_type)) {
            return;
        }
        foreach (['post_date', 'post_author', 'post_parent', 'menu_order', 'post_type', 'post_password'] as $one) {
            if ((string) $after->$one !== (string) $before->$one) {
                $this->moved($before);
                $this->moved($after);
                return;
            }
        }
    }

    /** A post reads differently. */
    private function post($post): void
    {
        $this->add("post-$post->ID", "list-$post->post_type", 'sitemap');
        // The post's title is in a menu.
        if (function_exists('wp_get_associated_nav_menu_items')
            && wp_get_associated_nav_menu_items($post->ID, 'post_type', $post->post_type)) {
            $this->add('site');
        }
    }

    /** A post is in other lists now, or in another place of them. */
    private function moved($post): void
    {
        $this->add("list-$post->post_type", 'home', 'feed', 'sitemap', 'terms', "by-author-$post->post_author");
        foreach (get_object_taxonomies($post->post_type) as $taxonomy) {
            $terms = is_taxonomy_viewable($taxonomy) ? wp_get_object_terms($post->ID, $taxonomy) : [];
            foreach (is_array($terms) ? $terms : [] as $term) {
                $this->in_term($term->term_id, $taxonomy);
            }
        }
        foreach (['before' => 'DESC', 'after' => 'ASC'] as $side => $order) {
            $beside = get_posts(['post_type' => $post->post_type, 'numberposts' => 1, 'orderby' => 'date',
                'order' => $order, 'exclude' => [$post->ID], 'fields' => 'ids',
                'date_query' => [[$side => $post->post_date, 'inclusive' => true]]]);
            foreach ($beside as $id) {
                $this->add("post-$id");
            }
        }
    }

    /** What is in a term is in those above it, too. */
    private function in_term(int $id, string $taxonomy): void
    {
        foreach (array_merge([$id], get_ancestors($id, $taxonomy, 'taxonomy')) as $one) {
            $this->add("in-term-$one");
        }
    }

    public function meta($ids, $post, $key): void
    {
        if (in_array($key, ['_thumbnail_id', '_wp_page_template'], true) && get_post_status($post) === 'publish') {
            $this->post(get_post($post));
        }
    }

    public function terms($post, $terms, $ids, $taxonomy, $append, $old): void
    {
        $changed = array_merge(array_diff($ids, $old), $append ? [] : array_diff($old, $ids));
        if (!$changed || get_post_status($post) !== 'publish' || !is_taxonomy_viewable($taxonomy)) {
            return;
        }
        $this->add("post-$post", 'list-' . get_post_type($post), 'terms', 'feed', 'home', 'sitemap');
        foreach ($changed as $id) {
            $term = get_term_by('term_taxonomy_id', $id);
            if ($term) {
                $this->in_term($term->term_id, $taxonomy);
            }
        }
    }

    public function term($id, $relation, $taxonomy): void
    {
        if (is_taxonomy_viewable($taxonomy)) {
            $this->add("term-$id", 'terms', 'sitemap');
            $this->in_term($id, $taxonomy);
        }
    }

    public function comment($new, $old, $comment): void
    {
        if ($comment && ($new === 'approved' || $old === 'approved')) {
            $this->add("post-$comment->comment_post_ID", 'comments');
        }
    }

    /** A name, an address or a few words about somebody who has written something. */
    public function user($id): void
    {
        $types = array_values(array_filter(get_post_types(['public' => true]), 'is_post_type_viewable'));
        if (count_user_posts($id, $types, true) > 0) {
            $this->add("author-$id", "by-author-$id", 'sitemap');
            foreach ($types as $type) {
                $this->add("list-$type");
            }
        }
    }

    public function option($name): void
    {
        if (preg_match(self::OPTIONS, $name)) {
            $this->add('site');
        }
    }

    public function send(): void
    {
        $all = $this->tags;
        $this->tags = [];
        foreach ($all as $host => $tags) {
            $this->again((string) $host, $this->fewer(array_keys($tags)), 1);
        }
    }

    /** The same in fewer words: the tag of a whole site is more than all its others. */
    private function fewer(array $tags): array
    {
        $of = [];
        foreach ($tags as $tag) {
            $of[strtok($tag, '-')][] = $tag;
        }
        foreach ($of as $site => $its) {
            if (in_array("$site-site", $its, true) || count($its) > PURGED) {
                $of[$site] = ["$site-site", "$site-loose"];
            }
        }
        return array_merge(...array_values($of));
    }

    /** Sends a purge; one that Larder does not take is sent again a minute later. */
    public function again($host, $tags, $times): void
    {
        if (purge($host, $tags) !== null && $times < TRIES) {
            wp_schedule_single_event(time() + 60, 'larder_again', [$host, $tags, $times + 1]);
        }
    }
}

/** A test of Site Health: whether Larder takes the purges of this site. */
function health(): array
{
    $url = wp_parse_url(home_url());
    $host = ($url['host'] ?? 'localhost') . (isset($url['port']) ? ":{$url['port']}" : '');
    $trouble = purge($host, [tag('none')]);
    $said = $trouble === null
        ? 'Changes are seen at once: the cache in front of this site takes its purges.'
        : 'Visitors see changes late: the cache in front of this site does not take its purges. ' . $trouble;
    return [
        'label' => $trouble === null ? 'Larder takes purges' : 'Larder does not take purges',
        'status' => $trouble === null ? 'good' : 'recommended',
        'badge' => ['label' => 'Performance', 'color' => 'blue'],
        'description' => '<p>' . esc_html($said) . '</p>',
        'actions' => '',
        'test' => 'larder',
    ];
}

(new Page())->watch();
(new Changes())->watch();
add_filter('site_status_tests', function ($tests) {
    $tests['direct']['larder'] = ['label' => 'Larder', 'test' => __NAMESPACE__ . '\health'];
    return $tests;
});
// WordPress looks for an `Age` above 0, which a page that is new does not have.
add_filter('site_status_page_cache_supported_cache_headers', function ($fields) {
    $fields['cache-status'] = function ($value) {
        return (bool) preg_match('/;\s*hit\b/', $value);
    };
    return $fields;
});
