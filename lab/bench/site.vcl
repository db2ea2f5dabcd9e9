# A site's policy as operators write it: what the widely used templates do, in our own words. The
# benchmark runs it on Larder and on Varnish; {port} becomes the origin's port.
vcl 4.1;

import std;
import directors;

# ---------------------------------------------------------------------------
# Where pages come from
# ---------------------------------------------------------------------------

probe alive {
	.url = "/health";
	.interval = 60s;
	.timeout = 5s;
	.window = 5;
	.threshold = 1;
	.initial = 5;
}

backend server1 {
	.host = "127.0.0.1";
	.port = "{port}";
	.max_connections = 300;
	.probe = alive;

	# How long to wait before a first byte comes.
	.first_byte_timeout = 300s;

	# How long to wait for a connection.
	.connect_timeout = 5s;

	# How long to wait between two bytes.
	.between_bytes_timeout = 2s;
}

acl purge {
	# Who may purge.
	"localhost";
	"127.0.0.1";
	"::1";
}

acl editors {
	"10.0.0.0"/8;
	"172.16.0.0"/12;
	"192.168.0.0"/16;
	! "192.168.77.0"/24;
}

sub vcl_init {
	# One server today, several tomorrow.
	new vdir = directors.round_robin();
	vdir.add_backend(server1);
}

# ---------------------------------------------------------------------------
# The parts of the request's way
# ---------------------------------------------------------------------------

sub strip_port {
	# www.example.com:80 and www.example.com are the same pages.
	if (req.http.Host ~ ":[0-9]+$") {
		set req.http.Host = regsub(req.http.Host, ":[0-9]+$", "");
	}
}

sub drop_httpoxy {
	# No application may take this for its own environment.
	unset req.http.proxy;
}

sub clean_query {
	# The order of parameters does not matter to the application.
	set req.url = std.querysort(req.url);

	# What campaigns add is for scripts in the browser.
	if (req.url ~ "(\?|&)(utm_source|utm_medium|utm_campaign|utm_content|gclid|cx|ie|cof|siteurl)=") {
		set req.url = regsuball(req.url, "&(utm_source|utm_medium|utm_campaign|utm_content|gclid|cx|ie|cof|siteurl)=([A-z0-9_\-\.%25]+)", "");
		set req.url = regsuball(req.url, "\?(utm_source|utm_medium|utm_campaign|utm_content|gclid|cx|ie|cof|siteurl)=([A-z0-9_\-\.%25]+)", "?");
		set req.url = regsub(req.url, "\?&", "?");
		set req.url = regsub(req.url, "\?$", "");
	}

	# What follows the hash is the browser's business.
	if (req.url ~ "\#") {
		set req.url = regsub(req.url, "\#.*$", "");
	}

	# A question mark that asks nothing.
	if (req.url ~ "\?$") {
		set req.url = regsub(req.url, "\?$", "");
	}
}

sub clean_cookies {
	# Some cookies have meaning for scripts in the browser only.
	set req.http.Cookie = regsuball(req.http.Cookie, "has_js=[^;]+(; )?", "");

	# Analytics
	set req.http.Cookie = regsuball(req.http.Cookie, "__utm.=[^;]+(; )?", "");
	set req.http.Cookie = regsuball(req.http.Cookie, "_ga=[^;]+(; )?", "");
	set req.http.Cookie = regsuball(req.http.Cookie, "_gat=[^;]+(; )?", "");
	set req.http.Cookie = regsuball(req.http.Cookie, "utmctr=[^;]+(; )?", "");
	set req.http.Cookie = regsuball(req.http.Cookie, "utmcmd.=[^;]+(; )?", "");
	set req.http.Cookie = regsuball(req.http.Cookie, "utmccn.=[^;]+(; )?", "");

	# Advertising
	set req.http.Cookie = regsuball(req.http.Cookie, "__gads=[^;]+(; )?", "");

	# Heat maps
	set req.http.Cookie = regsuball(req.http.Cookie, "__qc.=[^;]+(; )?", "");

	# Sharing
	set req.http.Cookie = regsuball(req.http.Cookie, "__atuv.=[^;]+(; )?", "");

	# A semicolon that is left at the beginning
	set req.http.Cookie = regsuball(req.http.Cookie, "^;\s*", "");

	# Nothing but spaces is nothing.
	if (req.http.cookie ~ "^\s*$") {
		unset req.http.cookie;
	}
}

sub answer_purge {
	if (req.method == "PURGE") {
		if (!client.ip ~ purge) {
			return (synth(405, "This IP is not allowed to send PURGE requests."));
		}
		return (purge);
	}
	if (req.method == "BAN") {
		if (!client.ip ~ purge) {
			return (synth(405, "This IP is not allowed to send BAN requests."));
		}
		ban("obj.http.x-url ~ " + req.url);
		return (synth(200, "Banned"));
	}
}

sub answer_methods {
	if (req.method != "GET" &&
	    req.method != "HEAD" &&
	    req.method != "PUT" &&
	    req.method != "POST" &&
	    req.method != "TRACE" &&
	    req.method != "OPTIONS" &&
	    req.method != "PATCH" &&
	    req.method != "DELETE") {
		return (pipe);
	}

	# WebSocket
	if (req.http.Upgrade ~ "(?i)websocket") {
		return (pipe);
	}

	if (req.method != "GET" && req.method != "HEAD") {
		return (pass);
	}
}

sub large_files {
	# What is large goes through without waiting for its end.
	if (req.url ~ "^[^?]*\.(7z|avi|bz2|flac|flv|gz|mka|mkv|mov|mp3|mp4|mpeg|mpg|ogg|ogm|opus|rar|tar|tgz|tbz|txz|wav|webm|xz|zip)(\?.*)?$") {
		unset req.http.Cookie;
		return (hash);
	}
}

sub static_files {
	# Files are the same for everybody.
	if (req.url ~ "^[^?]*\.(7z|avi|bmp|bz2|css|csv|doc|docx|eot|flac|flv|gif|gz|ico|jpeg|jpg|js|less|mka|mkv|mov|mp3|mp4|mpeg|mpg|odt|otf|ogg|ogm|opus|pdf|png|ppt|pptx|rar|rtf|svg|svgz|swf|tar|tbz|tgz|ttf|txt|txz|wav|webm|webp|woff|woff2|xls|xlsx|xml|xz|zip)(\?.*)?$") {
		unset req.http.Cookie;
		return (hash);
	}
}

sub mobile {
	# Two kinds of pages: for small screens and for others.
	if (req.http.User-Agent ~ "(?i)(iphone|ipod|android.*mobile|blackberry|windows phone)") {
		set req.http.X-Device = "mobile";
	} else {
		set req.http.X-Device = "desktop";
	}
}

# ---------------------------------------------------------------------------
# The client's side
# ---------------------------------------------------------------------------

sub vcl_recv {
	set req.backend_hint = vdir.backend();

	call strip_port;
	call drop_httpoxy;
	call clean_query;
	call answer_purge;
	call answer_methods;

	# Who logs in, and what is behind it, is nobody else's.
	if (req.url ~ "^/(wp-admin|wp-login\.php|admin|user|login|cart|checkout|my-account)") {
		return (pass);
	}
	if (req.http.X-Requested-With == "XMLHttpRequest") {
		return (pass);
	}
	if (client.ip ~ editors && req.http.Cache-Control ~ "no-cache") {
		set req.hash_always_miss = true;
	}

	call clean_cookies;
	call mobile;

	if (req.http.Cache-Control ~ "(?i)no-cache") {
		# A reload by somebody who is allowed to.
		if (client.ip ~ editors) {
			set req.hash_always_miss = true;
		}
	}

	call large_files;
	call static_files;

	# The origin may leave fragments to us.
	set req.http.Surrogate-Capability = "key=ESI/1.0";

	if (req.http.Authorization) {
		return (pass);
	}
	if (req.http.Cookie ~ "(wordpress_logged_in|PHPSESSID|comment_author|SESS[0-9a-f]+)") {
		return (pass);
	}
	unset req.http.Cookie;

	return (hash);
}

sub vcl_pipe {
	# What follows on this connection is not ours to look at.
	if (req.http.upgrade) {
		set bereq.http.upgrade = req.http.upgrade;
		set bereq.http.connection = req.http.connection;
	}
	return (pipe);
}

sub vcl_pass {
	set req.http.X-Pass = "1";
}

sub vcl_hash {
	hash_data(req.url);
	if (req.http.host) {
		hash_data(req.http.host);
	} else {
		hash_data(server.ip);
	}
	hash_data(req.http.X-Device);
	if (req.http.Cookie) {
		hash_data(req.http.Cookie);
	}
	if (req.http.X-Forwarded-Proto) {
		hash_data(req.http.X-Forwarded-Proto);
	}
	return (lookup);
}

sub vcl_hit {
	if (obj.ttl >= 0s) {
		return (deliver);
	}
	if (std.healthy(req.backend_hint)) {
		if (obj.ttl + 10s > 0s) {
			return (deliver);
		}
	} else if (obj.ttl + obj.grace > 0s) {
		return (deliver);
	}
	return (deliver);
}

sub vcl_miss {
	return (fetch);
}

# ---------------------------------------------------------------------------
# The origin's side
# ---------------------------------------------------------------------------

sub vcl_backend_fetch {
	if (bereq.retries > 0) {
		set bereq.http.X-Retry = bereq.retries;
	}
	return (fetch);
}

sub vcl_backend_response {
	# For bans that need no request.
	set beresp.http.x-url = bereq.url;
	set beresp.http.x-host = bereq.http.host;

	if (beresp.http.Surrogate-Control ~ "ESI/1.0") {
		unset beresp.http.Surrogate-Control;
		set beresp.do_esi = true;
	}

	if (bereq.url ~ "^[^?]*\.(7z|avi|bmp|bz2|css|csv|doc|docx|eot|flac|flv|gif|gz|ico|jpeg|jpg|js|pdf|png|svg|ttf|txt|webp|woff|woff2|xml|zip)(\?.*)?$") {
		unset beresp.http.set-cookie;
	}

	# What is large is passed on while it comes.
	if (bereq.url ~ "^[^?]*\.(7z|avi|bz2|flac|flv|gz|mka|mkv|mov|mp3|mp4|mpeg|mpg|ogg|zip)(\?.*)?$") {
		unset beresp.http.set-cookie;
		set beresp.do_stream = true;
	}

	# A redirect must not name our own port.
	if (beresp.status == 301 || beresp.status == 302) {
		set beresp.http.Location = regsub(beresp.http.Location, ":[0-9]+", "");
	}

	# What cannot be kept is not waited for.
	if (beresp.ttl <= 0s || beresp.http.Set-Cookie || beresp.http.Vary == "*") {
		set beresp.ttl = 120s;
		set beresp.uncacheable = true;
		return (deliver);
	}

	# An origin in trouble does not push pages out.
	if (beresp.status == 500 || beresp.status == 502 || beresp.status == 503 || beresp.status == 504) {
		return (abandon);
	}

	# What is stale may be served while the origin is asked, or while it is ill.
	set beresp.grace = 6h;

	return (deliver);
}

# ---------------------------------------------------------------------------
# To the client
# ---------------------------------------------------------------------------

sub vcl_deliver {
	if (obj.hits > 0) {
		set resp.http.X-Cache = "HIT";
	} else {
		set resp.http.X-Cache = "MISS";
	}
	set resp.http.X-Cache-Hits = obj.hits;

	# What is nobody's business.
	unset resp.http.X-Powered-By;
	unset resp.http.Server;
	unset resp.http.X-Drupal-Cache;
	unset resp.http.Link;
	unset resp.http.X-Generator;
	unset resp.http.x-url;
	unset resp.http.x-host;

	return (deliver);
}

sub vcl_purge {
	# The page again at once, if that is asked for.
	if (req.method == "PURGE" && req.http.X-Refresh) {
		set req.http.X-Purger = "Larder";
		set req.method = "GET";
		return (restart);
	}
}

sub vcl_synth {
	if (resp.status == 720) {
		# A redirect that is for now
		set resp.http.Location = resp.reason;
		set resp.status = 301;
		return (deliver);
	} elseif (resp.status == 721) {
		# A redirect that stays
		set resp.http.Location = resp.reason;
		set resp.status = 302;
		return (deliver);
	}
	set resp.http.Content-Type = "text/html; charset=utf-8";
	set resp.http.Retry-After = "5";
	synthetic({"<!DOCTYPE html>
<html><head><title>"} + resp.status + " " + resp.reason + {"</title></head>
<body><h1>"} + resp.status + " " + resp.reason + {"</h1></body></html>
"});
	return (deliver);
}

sub vcl_fini {
	return (ok);
}
