<?php
// Before each script of the lab's PHP: says which of PHP's answers this is. A cache hit repeats an earlier one's.
header('X-Origin-Request: ' . bin2hex(random_bytes(8)));
