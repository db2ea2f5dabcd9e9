<?php
// A must-use plugin: a shop's page that is the same for all but for the cart of whoever looks. Where a surrogate stands
// before the site that puts pages together, the cart is a fragment (ESI); else it is part of the page.

function lab_cart() {
    $user = wp_get_current_user();
    $name = $user->exists() ? esc_html($user->display_name) : 'nobody';
    $count = $user->exists() ? (int) get_user_meta($user->ID, 'lab_cart', true) : 0;
    return "<form id='cart' method='post' action='/cart/'><p>Cart of $name: $count</p><button>Add one</button></form>";
}

function lab_is_assembled() {
    return str_contains($_SERVER['HTTP_SURROGATE_CAPABILITY'] ?? '', 'ESI/1.0');
}

add_action('init', function () {
    if (strtok($_SERVER['REQUEST_URI'] ?? '', '?') !== '/cart/') {
        return;
    }
    if ($_SERVER['REQUEST_METHOD'] === 'POST') {
        $id = get_current_user_id();
        if ($id) {
            update_user_meta($id, 'lab_cart', 1 + (int) get_user_meta($id, 'lab_cart', true));
        }
        wp_safe_redirect('/shop/', 303);
        exit;
    }
    nocache_headers();
    echo lab_cart();
    exit;
});

add_action('template_redirect', function () {
    if (is_page('shop') && lab_is_assembled()) {
        header('Surrogate-Control: content="ESI/1.0"');
    }
});

add_action('wp_body_open', function () {
    if (is_page('shop')) {
        echo lab_is_assembled() ? '<esi:include src="/cart/"/>' : lab_cart();
    }
});
