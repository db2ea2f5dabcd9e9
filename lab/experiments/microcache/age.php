<?php
// A page that takes 200 ms to make and says when it was made.
usleep(200000);
header('Content-Type: text/plain');
printf("%.6f\n", microtime(true));
