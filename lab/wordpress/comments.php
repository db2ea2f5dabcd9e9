<?php
// All people of the lab write comments from one address. WordPress takes one in fifteen seconds from there: not here.
remove_action('check_comment_flood', 'check_comment_flood_db', 10);
