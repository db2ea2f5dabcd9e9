//! Fields of a record that a filter can test.

use std::net::IpAddr;

use message::ClientProof;

use crate::format::FieldPositions;
use crate::record::{DictionaryUse, Kind, Record, Served};

/// A field's name, type and meaning.
#[derive(Clone, Copy, Debug)]
pub struct FieldDescription {
    /// The name in filters.
    pub name: &'static str,
    /// The type of the values.
    pub(super) kind: ValueType,
    field: QueryField,
    /// The meaning, as users see it.
    pub about: &'static str,
}

/// The type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Text,
    Count,
    Bytes,
    /// Microseconds.
    Time,
    /// Whole seconds, for ages and lifetimes.
    Seconds,
    /// A number in hexadecimal digits.
    Hex,
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryField {
    Method,
    Url,
    Host,
    /// A request field; its value is the record's `n`-th.
    Value(usize),
    BodyIn,
    Status,
    BodyOut,
    Client,
    Total,
    Ttfb,
    Served,
    Site,
    Rule,
    Route,
    Origin,
    Server,
    Tries,
    Age,
    Ttl,
    NotStored,
    NotStoredBy,
    Dictionary,
    Error,
    Limit,
    Class,
    Crawler,
    Proof,
    Vcl,
    Id,
    Xid,
    Session,
    Kind,
    Parent,
    OriginStatus,
}

macro_rules! fields {
    ($($name:literal $field:ident $kind:ident $about:literal;)*) => {
        /// All fields except `req.http.NAME`.
        pub const ABOUT: &[FieldDescription] = &[$(FieldDescription {
            name: $name,
            kind: ValueType::$kind,
            field: QueryField::$field,
            about: $about,
        },)*];
    };
}

fields! {
    "req.method" Method Text "Method.";
    "req.url" Url Text "Path and query.";
    "req.host" Host Text "Host, lower case.";
    "req.bytes" BodyIn Bytes "Bytes of the request's body.";
    "resp.status" Status Count "Status.";
    "resp.bytes" BodyOut Bytes "Bytes of the response's body.";
    "client.ip" Client Client "Client: an address or a network.";
    "time.total" Total Time "From the first byte of the request to the last of the response.";
    "time.ttfb" Ttfb Time "Until the response was ready to be sent.";
    "served" Served Text "Cache result: hit, stale, stale-error, revalidated, miss, hit-for-miss, collapsed, pass, file, synth, refresh.";
    "site" Site Text "The site's first host.";
    "rule" Rule Text "The rule that decided.";
    "route" Route Text "The route; empty for the site's own settings.";
    "origin" Origin Text "The origin of the fetch.";
    "server" Server Text "The origin's server that responded.";
    "tries" Tries Count "Attempts at the origin.";
    "age" Age Seconds "Age of the response.";
    "ttl" Ttl Seconds "Remaining lifetime; negative if the response is stale.";
    "not_stored" NotStored Text "Reason for which the response is not stored.";
    "not_stored_by" NotStoredBy Text "The field that is this reason.";
    "dictionary" Dictionary Text "Use of the dictionary that the client named: used, unknown, making and others.";
    "error" Error Text "The error.";
    "limit" Limit Text "The limit that was reached.";
    "class" Class Text "Class of the client: human, search, ai, tool, unknown.";
    "crawler" Crawler Text "The crawler that the client's User-Agent or signature names, verified or not.";
    "proof" Proof Text "Proof that the client is this crawler: claimed (none is needed), address, signature, unverified, pending (DNS has not answered), forged (the signature is false).";
    "vcl" Vcl Text "Any line of the VCL trace: `recv default.vcl:14 hash`, `VCL_Log text`.";
    "id" Id Hex "The number of the record, as error pages and `larder log` show it.";
    "xid" Xid Count "The number of the transaction: the first of X-Varnish.";
    "session" Session Count "The number of its session, under VCL.";
    "kind" Kind Text "Cause of the transaction: client, background, fragment.";
    "parent" Parent Count "The transaction that caused this one, by `xid` under VCL.";
    "origin.status" OriginStatus Count "Status of the origin's answer.";
}

/// A field used outside a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedField(QueryField);

impl NamedField {
    /// Returns the field called `name`, or the message of the mistake.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        QueryField::named(name, &FieldPositions::default()).map(|(field, _)| Self(field))
    }

    /// Returns the field called `name`, in which underscores stand for dots, or the message of the
    /// mistake.
    pub(crate) fn named_with_underscores(name: &str) -> Result<Self, String> {
        let own = ABOUT.iter().find(|about| about.name.replace('.', "_") == name);
        own.map_or_else(|| Self::named(name), |about| Ok(Self(about.field)))
    }

    /// The value of this field in `record`.
    pub(crate) fn of<'a>(self, record: &Record<'a>) -> RecordValue<'a> {
        self.0.of(record)
    }
}

/// The value of a field in a record.
pub(crate) enum RecordValue<'a> {
    Nothing,
    Text(&'a [u8]),
    Number(i128),
    Client(Option<IpAddr>),
}

impl QueryField {
    /// Returns the field called `name` and the type of its values, or the message of the mistake.
    pub(super) fn named(name: &str, fields: &FieldPositions) -> Result<(Self, ValueType), String> {
        let lower = name.to_ascii_lowercase();
        if let Some(header) = lower.strip_prefix("req.http.") {
            let at = fields.position(header).ok_or_else(|| {
                let kept = fields.names().join(", ");
                format!(
                    "the log ring does not keep `{header}`, only {kept}; `[log_ring] headers` \
                     names more"
                )
            })?;
            return Ok((Self::Value(at), ValueType::Text));
        }
        if let Some(about) = ABOUT.iter().find(|about| about.name == lower) {
            return Ok((about.field, about.kind));
        }
        let distance = |about: &&FieldDescription| strsim::osa_distance(about.name, &lower);
        let close = ABOUT.iter().min_by_key(distance).filter(|about| distance(about) <= 3);
        Err(match close {
            Some(about) => format!("there is no field `{name}`; did you mean `{}`?", about.name),
            None => {
                let names: Vec<_> = ABOUT.iter().map(|about| about.name).collect();
                format!("there is no field `{name}`; there are req.http.NAME, {}", names.join(", "))
            }
        })
    }

    /// The possible values of a field; empty if it can be any text.
    fn words(self) -> Vec<&'static str> {
        match self {
            Self::Served => Served::ALL.iter().map(|served| served.word()).collect(),
            Self::Kind => Kind::ALL.iter().map(|kind| kind.word()).collect(),
            Self::Proof => ClientProof::ALL.iter().map(|proof| proof.word()).collect(),
            Self::Dictionary => DictionaryUse::ALL.iter().map(|made| made.word()).collect(),
            _ => Vec::new(),
        }
    }

    /// Checks that `word` is a possible value of the field.
    ///
    /// # Errors
    /// A message with the possible values, and the closest of them.
    pub(super) fn check_word(self, word: &str) -> Result<(), String> {
        let words: Vec<_> = self.words().iter().map(|own| own.to_ascii_lowercase()).collect();
        let word = word.to_ascii_lowercase();
        if words.is_empty() || words.contains(&word) {
            return Ok(());
        }
        let distance = |own: &&String| strsim::osa_distance(own, &word);
        let known = words.iter().filter(|own| !own.is_empty());
        // Two differences in three letters make another name.
        let close = known.clone().min_by_key(distance).filter(|own| distance(own) * 3 <= own.len());
        Err(match close {
            Some(own) => format!("it is never `{word}`; did you mean `{own}`?"),
            None => {
                let known: Vec<_> = known.map(String::as_str).collect();
                format!("it is never `{word}`; there are {}", known.join(", "))
            }
        })
    }

    pub(super) fn of<'a>(self, record: &Record<'a>) -> RecordValue<'a> {
        let number = |n: u64| RecordValue::Number(i128::from(n));
        match self {
            Self::Method => RecordValue::Text(record.method),
            Self::Url => RecordValue::Text(record.target),
            Self::Host => RecordValue::Text(record.host),
            Self::Value(at) => record
                .values
                .iter()
                .nth(at)
                .flatten()
                .map_or(RecordValue::Nothing, RecordValue::Text),
            Self::BodyIn => number(record.body_in),
            Self::Status => number(u64::from(record.status)),
            Self::BodyOut => number(record.body_out),
            Self::Client => RecordValue::Client(record.client),
            Self::Total => number(record.phases.end),
            Self::Ttfb => number(record.ttfb_us()),
            Self::Served => RecordValue::Text(record.served.word().as_bytes()),
            Self::Site => RecordValue::Text(record.site),
            Self::Rule => RecordValue::Text(record.rule),
            Self::Route => RecordValue::Text(record.route),
            Self::Origin => RecordValue::Text(record.origin),
            Self::Server => RecordValue::Text(record.server),
            Self::Tries => number(u64::from(record.tries)),
            Self::Age => record.age_s.map_or(RecordValue::Nothing, number),
            Self::Ttl => {
                record.ttl_s.map_or(RecordValue::Nothing, |s| RecordValue::Number(i128::from(s)))
            }
            Self::NotStored => RecordValue::Text(record.not_stored),
            Self::NotStoredBy => RecordValue::Text(record.evidence),
            Self::Dictionary => RecordValue::Text(record.dictionary.word().as_bytes()),
            Self::Error => RecordValue::Text(record.error),
            Self::Limit => RecordValue::Text(record.limit),
            Self::Class => RecordValue::Text(record.class),
            Self::Crawler => RecordValue::Text(record.crawler),
            Self::Proof => RecordValue::Text(record.proof_word()),
            Self::Vcl => RecordValue::Text(record.vcl),
            Self::Id => number(record.id),
            Self::Xid => number(u64::from(record.xid)),
            Self::Session => number(u64::from(record.session)),
            Self::Kind => RecordValue::Text(record.kind.word().as_bytes()),
            Self::Parent => number(record.parent),
            Self::OriginStatus => match record.origin_status {
                0 => RecordValue::Nothing,
                status => number(u64::from(status)),
            },
        }
    }
}
