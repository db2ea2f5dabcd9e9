//! `std.querysort`.

/// `url` with its query's parameters sorted by their bytes and empty ones left out; `None` where
/// that changes nothing: there are not two of them.
///
/// As in Varnish, a parameter that another begins with is not less than that one: the two stay in
/// the order they came in.
pub fn sorted(url: &[u8]) -> Option<Vec<u8>> {
    let query_at = memchr::memchr(b'?', url)? + 1;
    let query = &url[query_at..];
    memchr::memchr(b'&', query)?;
    let mut params: Vec<&[u8]> =
        query.split(|b| *b == b'&').filter(|param| !param.is_empty()).collect();
    sort(&mut params);
    let mut out = Vec::with_capacity(url.len());
    out.extend_from_slice(&url[..query_at]);
    for (at, param) in params.iter().enumerate() {
        if at > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(param);
    }
    Some(out)
}

/// Merges halves. The order is not one that is the same over three: what comes out depends on who
/// is asked with whom, so this goes about it as the C library does.
fn sort(params: &mut [&[u8]]) {
    if params.len() < 2 {
        return;
    }
    let middle = params.len() / 2;
    sort(&mut params[..middle]);
    sort(&mut params[middle..]);
    let left = params[..middle].to_vec();
    let (mut at, mut l, mut r) = (0, 0, middle);
    while l < left.len() && r < params.len() {
        if is_before_or_like(left[l], params[r]) {
            params[at] = left[l];
            l += 1;
        } else {
            params[at] = params[r];
            r += 1;
        }
        at += 1;
    }
    params[at..at + left.len() - l].copy_from_slice(&left[l..]);
}

fn is_before_or_like(a: &[u8], b: &[u8]) -> bool {
    // C's characters are signed here.
    let mut differing = a.iter().zip(b).filter(|(a, b)| a != b);
    differing.next().is_none_or(|(a, b)| a.cast_signed() < b.cast_signed())
}
