<?php
// The site asks itself, as Site Health does: no name server knows wordpress.localhost, and only curl does without one.
add_action('requests-fsockopen.remote_socket', function (&$socket) {
    $socket = str_replace('wordpress.localhost', '127.0.0.1', $socket);
});
