//! Response selectors: by surrogate keys, by a ban expression, by a name in Souin's list, or all.

use ban::{Expression, Field, Term};

/// Selects stored responses, other than by one URL.
#[derive(Clone, Debug)]
pub enum ResponseSelector {
    /// All.
    Everything,
    /// Responses with any of these surrogate keys.
    Tags(Vec<Vec<u8>>),
    /// Responses that the expression matches and that have one of the surrogate keys, if any.
    Ban {
        /// The expression.
        expression: Expression,
        /// Surrogate keys.
        tags: Option<Vec<Vec<u8>>>,
    },
    /// Responses whose name in Souin's list matches.
    Listed(linear::Regex),
}

impl ResponseSelector {
    /// Selects by conditions that must all hold.
    pub fn terms(terms: Vec<Term>) -> Self {
        Self::Ban { expression: Expression::all(terms), tags: None }
    }

    /// Selects by a ban expression without changes, for objects of programs, which keep every
    /// field, including surrogate keys.
    pub fn by_fields(expression: Expression) -> Self {
        Self::Ban { expression, tags: None }
    }

    /// Selects by a ban expression. A condition on a field of surrogate keys, which are stored as
    /// hashes, must name them completely: `obj.http.xkey ~ (^|,)(a|b)(,|$)`.
    ///
    /// # Errors
    /// A text with the reason, if it does not.
    pub fn of_expression(mut expression: Expression) -> Result<Self, String> {
        let of_tags = expression.take_headers(|name| message::tags::is_tag_field(name.as_bytes()));
        let mut tags = None;
        for (field, wanted) in of_tags {
            let named = match wanted {
                ban::FieldRequirement::Equal(text) => Some(vec![text]),
                ban::FieldRequirement::Match(pattern) => message::tags::of_pattern(&pattern, true),
                ban::FieldRequirement::Not => None,
            };
            let Some(named) = named.filter(|_| tags.is_none()) else {
                return Err(format!(
                    "surrogate keys are stored as hashes: use one condition on `{field}` that names \
                     them completely, such as `~ (^|,)(a|b)(,|$)`"
                ));
            };
            tags = Some(named.into_iter().map(String::into_bytes).collect());
        }
        Ok(match tags {
            Some(tags) if expression.is_empty() => Self::Tags(tags),
            tags => Self::Ban { expression, tags },
        })
    }

    /// Responses of `host`, on any port, whose target begins with `prefix`; either may be absent.
    ///
    /// # Errors
    /// The host or the prefix is too long for an expression, or the prefix is not UTF-8.
    pub fn beginning(host: Option<&[u8]>, prefix: Option<&[u8]>) -> Result<Self, String> {
        let mut terms = Vec::new();
        if let Some(host) = host {
            terms.push(of_host(host).ok_or("the host is too long")?);
        }
        if let Some(prefix) = prefix.filter(|prefix| *prefix != b"/") {
            let prefix = std::str::from_utf8(prefix).map_err(|_| "the prefix is not UTF-8")?;
            let regex = ban::regex(&format!("^{}", linear::escape(prefix)))?;
            terms.push(Term::matches(Field::Url, false, regex));
        }
        Ok(if terms.is_empty() { Self::Everything } else { Self::terms(terms) })
    }

    /// Responses of one target of `host`, on any port.
    ///
    /// # Errors
    /// The host is too long for an expression, or the target is not UTF-8.
    pub fn at(host: &[u8], target: &[u8]) -> Result<Self, String> {
        let host = of_host(host).ok_or("the host is too long")?;
        let target = std::str::from_utf8(target).map_err(|_| "the URL is not UTF-8")?;
        Ok(Self::terms(vec![host, Term::equal(Field::Url, false, target)]))
    }

    /// This selection, limited to responses with any of these surrogate keys.
    #[must_use]
    pub fn tagged(self, tags: Vec<Vec<u8>>) -> Self {
        match self {
            Self::Ban { expression, .. } => Self::Ban { expression, tags: Some(tags) },
            _ => Self::Tags(tags),
        }
    }

    /// The text for lists of bans.
    pub fn text(&self) -> String {
        let tags = |tags: &[Vec<u8>]| {
            let texts = tags.iter().map(|tag| String::from_utf8_lossy(tag));
            format!("tags {}", texts.collect::<Vec<_>>().join(" "))
        };
        match self {
            Self::Everything => "everything".to_owned(),
            Self::Tags(of) => tags(of),
            Self::Ban { expression, tags: None } => expression.listed(),
            Self::Ban { expression, tags: Some(of) } => {
                format!("{} && {}", expression.listed(), tags(of))
            }
            Self::Listed(regex) => format!("souin {}", regex.as_str()),
        }
    }
}

/// The condition that a response is of `host`, on any port, because plugins seldom know the
/// clients' port. `None` for a host that is too long for an expression.
pub fn of_host(host: &[u8]) -> Option<Term> {
    let host = linear::escape(&String::from_utf8_lossy(host));
    let regex = ban::regex(&format!("^{host}(:[0-9]+)?$")).ok()?;
    Some(Term::matches(Field::Host, false, regex))
}
