//! Pattern in `match` (RFC 9842 2.1.1): a URL Pattern without regular expressions, of the
//! response's own scheme and host. Supported are absolute and relative paths, a query, `*`, `:name`
//! in a path, escapes and braces. An unsupported pattern (repeated groups, other hosts) makes no
//! dictionary. Matching never takes more than time linear in the target.

/// Most steps of a pattern; longer patterns are unsupported.
const STEPS: usize = 255;
/// Machine words of a set of positions: there is one position more than steps.
const WORDS: usize = (STEPS + 1) / 64;

/// A pattern of request targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchPattern {
    path: Box<[PathStep]>,
    /// The query without its question mark; `None` accepts any query, or none.
    query: Option<Box<[PathStep]>>,
}

/// A step of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathStep {
    Byte(u8),
    /// One byte other than a segment's end.
    Inner,
    /// Any number of such bytes.
    Inners,
    /// Any bytes.
    Any,
}

impl MatchPattern {
    /// Parses a pattern relative to `target` (path and query) of `origin`. `None` if it is
    /// unsupported, or of another origin.
    pub fn parse(text: &[u8], origin: &[u8], target: &[u8]) -> Option<Self> {
        let text = match text.strip_prefix(origin) {
            Some(rest) if rest.starts_with(b"/") => rest,
            _ => text,
        };
        let base = target.split(|b| *b == b'?').next().unwrap_or_default();
        let mut reader = PathStepParser { left: text, is_group: false, may_be_modified: false };
        let mut path = Vec::new();
        let is_absolute =
            text.starts_with(b"/") || text.starts_with(b"\\/") || text.starts_with(b"{/");
        if text.starts_with(b"?") {
            path.extend(base.iter().map(|b| PathStep::Byte(*b)));
        } else if !is_absolute {
            let folder = base.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
            path.extend(base[..folder].iter().map(|b| PathStep::Byte(*b)));
        }
        // A scheme: another origin, or a pattern of origins.
        if !is_absolute
            && text.split(|b| *b == b'/').next().is_some_and(|part| part.ends_with(b":"))
        {
            return None;
        }
        let has_query = reader.read(&mut path, true)?;
        let mut query = None;
        if has_query {
            let mut steps = Vec::new();
            if reader.read(&mut steps, false)? {
                return None;
            }
            query = Some(steps);
        }
        if path.len() > STEPS || query.as_ref().is_some_and(|steps| steps.len() > STEPS) {
            return None;
        }
        Some(Self { path: path.into(), query: query.map(Into::into) })
    }

    /// Returns true if the pattern matches `target`, path and query.
    pub fn matches(&self, target: &[u8]) -> bool {
        let at = target.iter().position(|b| *b == b'?');
        let (path, query) = match at {
            Some(at) => (&target[..at], &target[at + 1..]),
            None => (target, &[][..]),
        };
        run(&self.path, path) && self.query.as_ref().is_none_or(|steps| run(steps, query))
    }

    /// Like [`Self::matches`], by trying each step against each byte: the oracle of tests.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn matches_plainly(&self, target: &[u8]) -> bool {
        let mut parts = target.splitn(2, |b| *b == b'?');
        let (path, query) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        plainly(&self.path, path) && self.query.as_ref().is_none_or(|steps| plainly(steps, query))
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        size_of::<PathStep>()
            * (self.path.len() + self.query.as_ref().map_or(0, |query| query.len()))
    }
}

/// Parser of a pattern's text.
struct PathStepParser<'a> {
    left: &'a [u8],
    is_group: bool,
    /// A `?`, `*` or `+` here would be a modifier of what precedes it.
    may_be_modified: bool,
}

impl PathStepParser<'_> {
    /// Appends the steps of one component. Returns true if a query follows; `None` if the text is
    /// unsupported.
    fn read(&mut self, steps: &mut Vec<PathStep>, is_path: bool) -> Option<bool> {
        while let Some((byte, rest)) = self.left.split_first() {
            self.left = rest;
            let modified = std::mem::take(&mut self.may_be_modified);
            match byte {
                b'?' | b'*' | b'+' if modified => return None,
                b'(' | b')' | b'#' => return None,
                b'?' if self.is_group => return None,
                b'?' if is_path => return Some(true),
                b'*' => {
                    steps.push(PathStep::Any);
                    self.may_be_modified = true;
                }
                b':' if rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') => {
                    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
                    let end = rest.iter().position(|b| !is_name(b)).unwrap_or(rest.len());
                    self.left = &rest[end..];
                    if !is_path {
                        return None;
                    }
                    steps.extend([PathStep::Inner, PathStep::Inners]);
                    self.may_be_modified = true;
                }
                b'{' if !self.is_group => self.is_group = true,
                b'}' if self.is_group => (self.is_group, self.may_be_modified) = (false, true),
                b'{' | b'}' => return None,
                b'\\' => {
                    let (escaped, rest) = rest.split_first()?;
                    self.left = rest;
                    if *escaped == b'?' && is_path {
                        // Even as a literal character, it begins a query.
                        return if self.is_group { None } else { Some(true) };
                    }
                    steps.push(PathStep::Byte(*escaped));
                }
                byte => steps.push(PathStep::Byte(*byte)),
            }
        }
        if self.is_group { None } else { Some(false) }
    }
}

/// Returns true if the steps match all of `text`, by a table: one row for each step, in which a
/// position of the text is true if it can be reached.
#[cfg(any(test, feature = "fuzzing"))]
fn plainly(steps: &[PathStep], text: &[u8]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for step in steps {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            let before = at.checked_sub(1).map(|before| (before, text[before]));
            next[at] = match (step, before) {
                (PathStep::Byte(own), Some((before, byte))) => reached[before] && byte == *own,
                (PathStep::Inner, Some((before, byte))) => reached[before] && byte != b'/',
                (PathStep::Inners, Some((before, byte))) => {
                    reached[at] || next[before] && byte != b'/'
                }
                (PathStep::Any, Some((before, _))) => reached[at] || next[before],
                (PathStep::Inners | PathStep::Any, None) => reached[at],
                (PathStep::Byte(_) | PathStep::Inner, None) => false,
            };
        }
        reached = next;
    }
    reached[text.len()]
}

/// A set of positions between steps.
type PatternPositions = [u64; WORDS];

/// Returns true if the steps match all of `text`. All alternatives advance together.
fn run(steps: &[PathStep], text: &[u8]) -> bool {
    debug_assert!(steps.len() <= STEPS, "as parsed");
    let mut bytes = [[0; WORDS]; 256];
    let (mut inner, mut inners, mut any) = ([0; WORDS], [0; WORDS], [0; WORDS]);
    for (at, step) in steps.iter().enumerate() {
        let set = match step {
            PathStep::Byte(byte) => &mut bytes[usize::from(*byte)],
            PathStep::Inner => &mut inner,
            PathStep::Inners => &mut inners,
            PathStep::Any => &mut any,
        };
        set[at / 64] |= 1 << (at % 64);
    }
    let skipped = both(&inners, &any, |a, b| a | b);
    let mut places = skip([1, 0, 0, 0], &skipped);
    for byte in text {
        let mut taken = bytes[usize::from(*byte)];
        let mut kept = any;
        if *byte != b'/' {
            taken = both(&taken, &inner, |a, b| a | b);
            kept = skipped;
        }
        let onward = next(both(&places, &taken, |a, b| a & b));
        places = skip(both(&onward, &both(&places, &kept, |a, b| a & b), |a, b| a | b), &skipped);
        if places == [0; WORDS] {
            return false;
        }
    }
    places[steps.len() / 64] >> (steps.len() % 64) & 1 == 1
}

fn both(
    a: &PatternPositions,
    b: &PatternPositions,
    with: impl Fn(u64, u64) -> u64,
) -> PatternPositions {
    std::array::from_fn(|at| with(a[at], b[at]))
}

/// Each position moved on by one step.
fn next(places: PatternPositions) -> PatternPositions {
    let mut carried = 0;
    places.map(|word| {
        let moved = word << 1 | carried;
        carried = word >> 63;
        moved
    })
}

/// The positions, and those behind steps that may match nothing.
fn skip(mut places: PatternPositions, skipped: &PatternPositions) -> PatternPositions {
    loop {
        let more = next(both(&places, skipped, |a, b| a & b));
        let all = both(&places, &more, |a, b| a | b);
        if all == places {
            return places;
        }
        places = all;
    }
}
