//! Cookies of a request (RFC 6265 4.2.1 and 5.4): reading them, telling tracking ones apart, and
//! rewriting the field without some of them.

use crate::header::{HeaderBlock, HeaderId};
use crate::list::trim;

/// One cookie of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Its name; empty for a value without a name.
    pub name: &'a [u8],
    /// Its value as sent, quotes included.
    pub value: &'a [u8],
}

/// The cookies in all lines of a Cookie field.
pub fn pairs<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> impl Iterator<Item = Pair<'a>> {
    crumbs(lines).map(pair)
}

/// The same, but each as it was written.
fn crumbs<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    lines.into_iter().flat_map(|l| l.split(|b| *b == b';')).map(trim).filter(|c| !c.is_empty())
}

fn pair(crumb: &[u8]) -> Pair<'_> {
    match memchr::memchr(b'=', crumb) {
        Some(at) => Pair { name: trim(&crumb[..at]), value: trim(&crumb[at + 1..]) },
        None => Pair { name: b"", value: crumb },
    }
}

/// Names of cookies that only scripts in the browser read: analytics, advertising and the banners
/// that ask about both. A server's answer does not depend on them. One that ends in `*` stands for
/// all names that begin so. Sorted without the stars, and no starred name begins another one: so
/// the last name not after the one looked for is the only one that can match.
const TRACKING: &[&str] = &[
    "AMP_*",                  // Amplitude
    "CookieConsent",          // Cookiebot
    "OptanonAlertBoxClosed",  // OneTrust
    "OptanonConsent",         // OneTrust
    "__gads",                 // Google Ads
    "__gpi",                  // Google Ads
    "__gsas",                 // Google Ads
    "__hssc",                 // HubSpot
    "__hssrc",                // HubSpot
    "__hstc",                 // HubSpot
    "__qca",                  // Quantcast
    "__utm*",                 // Urchin, classic Google Analytics
    "_cb",                    // Chartbeat
    "_cb_*",                  // Chartbeat
    "_ce.*",                  // Crazy Egg
    "_chartbeat*",            // Chartbeat
    "_clck",                  // Microsoft Clarity
    "_clsk",                  // Microsoft Clarity
    "_dc_gtm_*",              // Google Tag Manager
    "_fbc",                   // Meta
    "_fbp",                   // Meta
    "_ga",                    // Google Analytics
    "_ga_*",                  // Google Analytics
    "_gac_*",                 // Google Ads
    "_gat*",                  // Google Analytics
    "_gcl_*",                 // Google Ads
    "_gid",                   // Google Analytics
    "_hj*",                   // Hotjar
    "_pin_unauth",            // Pinterest
    "_pk_*",                  // Matomo
    "_rdt_uuid",              // Reddit
    "_scid*",                 // Snapchat
    "_scor_uid",              // comScore
    "_tt_enable_cookie",      // TikTok
    "_ttp",                   // TikTok
    "_twpid",                 // X
    "_uet*",                  // Microsoft Advertising
    "_ym_*",                  // Yandex Metrica
    "amplitude_id*",          // Amplitude
    "cmplz_*",                // Complianz
    "cookie_consent",         // consent banners
    "cookie_notice_accepted", // Cookie Notice
    "cookieconsent*",         // Cookie Consent
    "cookielawinfo-*",        // CookieYes
    "cookieyes-consent",      // CookieYes
    "has_js",                 // Drupal's sign of scripting
    "hubspotutk",             // HubSpot
    "klaro",                  // Klaro
    "li_fat_id",              // LinkedIn
    "mp_*",                   // Mixpanel
    "mtm_consent*",           // Matomo
    "viewed_cookie_policy",   // CookieYes
];

/// Returns true if a cookie of this name is a well-known tracking or consent cookie, on which no
/// server's answer depends. Names match exactly: cookies are case-sensitive.
pub fn is_tracking(name: &[u8]) -> bool {
    let after = TRACKING.partition_point(|known| unstarred(known) <= name);
    let Some(known) = after.checked_sub(1).map(|at| TRACKING[at]) else { return false };
    let stem = unstarred(known);
    name == stem || (stem.len() < known.len() && name.starts_with(stem))
}

fn unstarred(known: &str) -> &[u8] {
    known.strip_suffix('*').unwrap_or(known).as_bytes()
}

/// Appends to `out` a Cookie field without the cookies whose names `drop` chooses, and returns
/// whether it chose any.
pub fn write_without<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
    mut drop: impl FnMut(&[u8]) -> bool,
    out: &mut Vec<u8>,
) -> bool {
    let (mut dropped, mut first) = (false, true);
    for crumb in crumbs(lines) {
        if drop(pair(crumb).name) {
            dropped = true;
            continue;
        }
        if !first {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(crumb);
        first = false;
    }
    dropped
}

/// Removes the cookies whose names `drop` chooses; the field itself goes with its last cookie.
/// Returns whether anything changed. `scratch` is overwritten.
pub fn remove(
    headers: &mut HeaderBlock,
    mut drop: impl FnMut(&[u8]) -> bool,
    scratch: &mut Vec<u8>,
) -> bool {
    if !pairs(headers.values(HeaderId::Cookie)).any(|p| drop(p.name)) {
        return false;
    }
    scratch.clear();
    write_without(headers.values(HeaderId::Cookie), drop, scratch);
    if scratch.is_empty() {
        headers.remove(HeaderId::Cookie);
    } else {
        headers.set(HeaderId::Cookie, scratch);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_in_all_lines() {
        let lines = [&b"a=1; b=\"x=y\";;c= "[..], b"", b" d ;=e"];
        let found: Vec<_> = pairs(lines).map(|p| (p.name, p.value)).collect();
        let expected: [(&[u8], &[u8]); 5] =
            [(b"a", b"1"), (b"b", b"\"x=y\""), (b"c", b""), (b"", b"d"), (b"", b"e")];
        assert_eq!(found, expected);
    }

    #[test]
    fn tracking_cookies_are_known_and_others_are_not() {
        for name in ["_ga", "_ga_ABC123", "_gat_gtag", "__utmz", "_hjid", "_pk_id.1.2", "has_js"] {
            assert!(is_tracking(name.as_bytes()), "{name}");
        }
        for name in ["", "_g", "_gab", "_GA", "session", "PHPSESSID", "csrftoken", "lang", "cart"] {
            assert!(!is_tracking(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn the_table_can_be_searched() {
        assert!(TRACKING.iter().map(|known| unstarred(known)).is_sorted());
        for starred in TRACKING.iter().filter(|known| known.ends_with('*')) {
            let begins = |known: &&&str| unstarred(known).starts_with(unstarred(starred));
            assert_eq!(TRACKING.iter().filter(begins).count(), 1, "{starred}");
        }
        for known in TRACKING {
            assert!(is_tracking(unstarred(known)), "{known}");
        }
    }

    #[test]
    fn removing_keeps_the_others_as_they_are() {
        let mut headers = HeaderBlock::new();
        headers.push(HeaderId::Cookie, b"_ga=1; a=\"1 2\";b=2");
        headers.push(HeaderId::Cookie, b"_gid=3");
        let mut scratch = Vec::new();
        assert!(remove(&mut headers, is_tracking, &mut scratch));
        let left: Vec<_> = headers.values(HeaderId::Cookie).collect();
        assert_eq!(left, [b"a=\"1 2\"; b=2"]);
        assert!(!remove(&mut headers, is_tracking, &mut scratch));
        assert!(remove(&mut headers, |_| true, &mut scratch));
        assert!(!headers.contains(HeaderId::Cookie));
    }
}
