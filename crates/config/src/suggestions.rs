//! Suggestions ("did you mean"): the known name closest to an unknown one.

/// Names of settings in other servers, each with the keys that correspond here.
const OF_OTHERS: &[(&str, &[&str])] = &[
    ("add_header", &["response_headers"]),
    ("add_headers", &["response_headers"]),
    ("headers", &["response_headers", "request_headers"]),
    ("proxy_set_header", &["request_headers"]),
    ("auth_basic", &["basic_auth"]),
    ("backend", &["origin", "servers"]),
    ("backends", &["servers"]),
    ("upstream", &["origin", "servers"]),
    ("proxy_pass", &["origin"]),
    ("client_max_body_size", &["request_body_bytes"]),
    ("domain", &["host"]),
    ("domains", &["host"]),
    ("server_name", &["host"]),
    ("error_page", &["error_pages"]),
    ("fail_timeout", &["time", "eject"]),
    ("max_fails", &["failures", "eject"]),
    ("follow_symlinks", &["linked"]),
    ("grace", &["stale_while_revalidate"]),
    ("gzip", &["compress"]),
    ("encode", &["compress"]),
    ("ignore_set_cookie", &["drop_set_cookie"]),
    ("limit_conn", &["concurrent"]),
    ("max_concurrent", &["concurrent"]),
    ("limit_req", &["rate"]),
    ("no_cache", &["bypass"]),
    ("pass", &["bypass"]),
    ("skip_cache", &["bypass"]),
    ("proxy_no_cache", &["bypass"]),
    ("no_php", &["no_scripts"]),
    ("deny_scripts", &["no_scripts"]),
    ("uploads", &["no_scripts"]),
    ("proxy_cache_valid", &["ttl"]),
    ("max_age", &["ttl"]),
    ("proxy_read_timeout", &["first_byte_timeout"]),
    ("real_ip_header", &["client_field"]),
    ("return", &["respond", "redirect"]),
    ("proxy_ignore_headers", &["ignore"]),
    ("fastcgi_ignore_headers", &["ignore"]),
    ("proxy_intercept_errors", &["intercept_errors"]),
    ("fastcgi_intercept_errors", &["intercept_errors"]),
    ("match", &["when"]),
    ("matcher", &["when"]),
    ("if", &["when"]),
    ("symlinks", &["linked"]),
    ("follow_symlinks_into", &["linked"]),
    ("strict_paths", &["guard_spellings"]),
    ("match_path_variants", &["guard_spellings"]),
    ("client_cache_control", &["request_directives"]),
    ("expose_tags", &["show_tags"]),
    ("require_matching_type", &["match_type"]),
    ("cache_http10", &["store_close_delimited"]),
    ("bots", &["crawlers"]),
    ("user_agents", &["user_agent"]),
    ("strip_path", &["strip_prefix"]),
    ("proxy_hide_header", &["response_headers"]),
    ("hide_header", &["response_headers"]),
    ("try_files", &["root", "files"]),
    ("ssl", &["tls"]),
    ("ssl_certificate", &["cert"]),
    ("certificate", &["cert"]),
    ("ssl_certificate_key", &["key"]),
    ("x_accel_redirect", &["accel"]),
    ("directory", &["path", "folder", "storage", "root"]),
    ("dir", &["path", "folder", "storage", "root"]),
    ("location", &["route"]),
    ("routes", &["route"]),
];

/// The keys that correspond to another server's setting, the most likely first.
pub(crate) fn of_others(written: &str) -> &'static [&'static str] {
    let written = written.replace('-', "_");
    OF_OTHERS.iter().find(|(word, _)| *word == written).map_or(&[], |(_, keys)| keys)
}

/// The name among `known` that differs from `written` by one typing error, if there is one.
pub(crate) fn slip<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    closest(written, known).filter(|name| distance(written, name) <= 1)
}

/// The name among `known` that `written` most likely means, if any is close.
pub(crate) fn closest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let letters = written.chars().count();
    // A third of the letters may be wrong, in short words one.
    let tolerance = (letters / 3).max(1);
    known
        .into_iter()
        .filter(|name| letters.abs_diff(name.chars().count()) <= tolerance)
        .map(|name| (distance(written, name), name))
        .filter(|(distance, name)| *distance <= tolerance && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edit distance between `a` and `b`: a letter added, removed, replaced, or two neighbours swapped
/// (optimal string alignment). Case, and `-` and `_`, count as equal.
fn distance(a: &str, b: &str) -> usize {
    let fold = |s: &str| s.to_ascii_lowercase().replace('-', "_");
    strsim::osa_distance(&fold(a), &fold(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_the_name_meant() {
        let known = ["listen", "limits", "workers", "origin", "site", "x_cache"];
        for (written, meant) in [
            ("lsten", Some("listen")),
            ("litsen", Some("listen")),
            ("Listen", Some("listen")),
            ("x-cache", Some("x_cache")),
            ("orign", Some("origin")),
            ("sites", Some("site")),
            ("worker", Some("workers")),
            ("zzz", None),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(closest(written, known), meant, "{written}");
        }
    }

    #[test]
    fn each_word_of_others_means_a_key_that_there_is() {
        for (word, keys) in OF_OTHERS {
            let is_key =
                |key: &&str| crate::parse::TOP.all().iter().any(|own| own.key(key).is_some());
            assert!(!keys.is_empty() && keys.iter().all(is_key), "{word}");
        }
        assert_eq!(of_others("real-ip-header"), ["client_field"]);
        assert_eq!(of_others("anything"), [""; 0]);
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, edits) in
            [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("abc", "adc", 1), ("a", "b", 1)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }
}
