# Everything on one line.
vcl 4.1;backend b{.host="127.0.0.1";}sub vcl_recv{if(req.url=="/"){return(pass);}else{return(hash);}}
