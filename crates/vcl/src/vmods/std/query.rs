//! Query sorting of `std.querysort`. Equal input never gives different keys than in Varnish.

/// `url` with its query parameters sorted by bytes, and empty ones removed; `None` if there are
/// fewer than two.
///
/// As in Varnish, a parameter and its own prefix count as equal, and keep their order.
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

/// Merge sort like the C library's: the comparison is not transitive, so the result depends on
/// which parameters are compared.
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
