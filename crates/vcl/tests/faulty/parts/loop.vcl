include "./loop.vcl";
