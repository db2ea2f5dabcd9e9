//! Words that programs, origins and requests share.

/// Names of headers.
pub(super) const HEADERS: &[&str] = &["X-A", "X-B", "X-C", "x-lower", "X-Long-Name"];

/// Paths.
pub(super) const PATHS: &[&str] = &["/a", "/b", "/c", "/dir/x.html", "/img/y.png", "/none"];

/// Values of headers.
pub(super) const VALUES: &[&str] = &[
    "1",
    "0",
    "abc",
    "ABC",
    "a b",
    "a=1; b=2; c=3",
    "12.5",
    "1h",
    "-7",
    "x,y,x",
    "q=0.5",
    "\"q\"",
    "aaa",
    "../..",
    "%20",
    "trailing;",
];
