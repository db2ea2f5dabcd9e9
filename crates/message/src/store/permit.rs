//! The permission to keep a response for others than the one who asked. It is a value that only the
//! rules make, and that is spent by keeping: nothing is stored, renewed or brought back without
//! one.

use super::{NotStored, StorePlan};
use crate::cache_control::{CacheControl, DirectiveScope};
use crate::header::{HeaderBlock, HeaderId};
use crate::vary;

/// The permission to keep one response. It is for the head as the rules have seen it: whoever
/// changes what a stored response says needs another one.
#[derive(Debug)]
#[must_use = "a permission that is not spent keeps nothing"]
pub struct Permit(());

/// The permission to keep the parts of a response that may be kept.
#[derive(Debug)]
pub struct PartPermits(StorageObjections);

/// All that the fields of a response say against storing it, whether it counts or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageObjections(u8);

impl StorageObjections {
    const REASONS: [NotStored; 4] =
        [NotStored::NoStore, NotStored::Private, NotStored::VaryAny, NotStored::SetCookie];
    /// Fields with directives for caches. Any of them may be for this one.
    const CONTROLS: [HeaderId; 3] =
        [HeaderId::CacheControl, HeaderId::CdnCacheControl, HeaderId::SurrogateControl];

    /// Reads the fields of a response.
    pub fn of(headers: &HeaderBlock) -> Self {
        let said = Self::CONTROLS.map(|id| CacheControl::parse(headers.values(id)));
        let says = |why: NotStored| match why {
            NotStored::NoStore => said.iter().any(|it| it.no_store),
            NotStored::Private => said.iter().any(|it| it.private == DirectiveScope::Whole),
            NotStored::VaryAny => vary::is_never(headers),
            _ => headers.contains(HeaderId::SetCookie),
        };
        let bits = Self::REASONS.iter().enumerate().map(|(at, why)| u8::from(says(*why)) << at);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// That of a number that [`Against::number`] returned.
    pub const fn from_number(number: u8) -> Self {
        Self(number)
    }

    /// A number that stands for it.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Adds fields that say as much.
    pub fn show(self, headers: &mut HeaderBlock) {
        for why in (0..).zip(Self::REASONS).filter(|(at, _)| self.0 >> at & 1 == 1).map(|it| it.1) {
            match why {
                NotStored::NoStore => headers.push(HeaderId::CacheControl, b"no-store"),
                NotStored::Private => headers.push(HeaderId::CacheControl, b"private"),
                NotStored::VaryAny => headers.push(HeaderId::Vary, b"*"),
                _ => headers.push(HeaderId::SetCookie, b""),
            }
        }
    }

    /// A reason that `other` has and this has not.
    fn beyond(self, other: Self) -> Option<NotStored> {
        let new = other.0 & !self.0;
        Self::REASONS.into_iter().enumerate().find(|(at, _)| new >> at & 1 == 1).map(|(_, why)| why)
    }
}

/// A program's own verdict on a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The request went past the store.
    pub passed: bool,
    /// The program has kept the response from being stored.
    pub uncacheable: bool,
    /// A lookup would find the response: it was fresh for a time.
    pub findable: bool,
}

impl StorePlan {
    /// The permission to store the response.
    ///
    /// # Errors
    /// The reason not to.
    pub fn permit(&self) -> Result<Permit, NotStored> {
        self.store.map(Permit)
    }

    /// The permission to keep a response that was stored before, by rules that may have been
    /// others, or a further part of one. The plan is for a neutral request: reasons that speak of
    /// the first one, or of times, are not looked at again.
    ///
    /// # Errors
    /// The reason for which it would not be stored today.
    pub fn renewed_permit(&self) -> Result<Permit, NotStored> {
        use NotStored as Why;
        match self.store {
            Ok(())
            | Err(
                Why::Method
                | Why::NotFinal
                | Why::RequestNoStore
                | Why::Authorization
                | Why::Personal
                | Why::NoLifetime
                | Why::NoValidator
                | Why::Tags,
            ) => Ok(Permit(())),
            Err(why) => Err(why),
        }
    }
}

impl Permit {
    /// The permission that a program gives, for a response with these fields; `None` where the
    /// program or Vary (RFC 9111 4.1) forbids it.
    pub fn by_program(ruling: Ruling, headers: &HeaderBlock) -> Option<Self> {
        let may = ruling.findable && !ruling.passed && !ruling.uncacheable;
        (may && !vary::is_never(headers)).then_some(Self(()))
    }

    /// The permission to keep the response in parts; `first` is what it said itself against being
    /// stored.
    pub fn parts(&self, first: StorageObjections) -> PartPermits {
        PartPermits(first)
    }
}

impl PartPermits {
    /// The permission to keep one part more, which came with these fields.
    ///
    /// # Errors
    /// The part says something against storing that the response had not said (RFC 9111 3.4).
    pub fn next(&self, headers: &HeaderBlock) -> Result<Permit, NotStored> {
        match self.0.beyond(StorageObjections::of(headers)) {
            None => Ok(Permit(())),
            Some(why) => Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::HeaderId;
    use crate::request::Request;
    use crate::response::{Response, Status};
    use crate::store::{ExchangeTimes, StoreRules, plan};

    fn planned(fields: &[(HeaderId, &str)], rules: &StoreRules) -> StorePlan {
        let mut response = Response::new(Status::OK);
        for (id, value) in fields {
            response.headers.push(*id, value.as_bytes());
        }
        let exchange = ExchangeTimes { request_ms: 0, response_ms: 0 };
        plan(&Request::new(), false, &response, exchange, rules)
    }

    #[test]
    fn what_was_stored_before_is_kept_unless_the_rules_speak_against_what_it_says() {
        use HeaderId as Id;
        for (fields, first, again) in [
            (&[(Id::CacheControl, "max-age=60")][..], Ok(()), Ok(())),
            (&[], Err(NotStored::NoLifetime), Ok(())),
            (&[(Id::CacheControl, "max-age=0")], Err(NotStored::NoValidator), Ok(())),
            (&[(Id::CacheControl, "private")], Err(NotStored::Private), Err(NotStored::Private)),
            (
                &[(Id::CacheControl, "max-age=60"), (Id::SetCookie, "a=b")],
                Err(NotStored::SetCookie),
                Err(NotStored::SetCookie),
            ),
            (&[(Id::Vary, "*")], Err(NotStored::VaryAny), Err(NotStored::VaryAny)),
        ] {
            let plan = planned(fields, &StoreRules::safe());
            assert_eq!(plan.permit().map(drop), first, "{fields:?}");
            assert_eq!(plan.renewed_permit().map(drop), again, "{fields:?}");
        }
        let cookie = [(Id::CacheControl, "max-age=60"), (Id::SetCookie, "a=b")];
        assert!(planned(&cookie, &StoreRules::rfc()).renewed_permit().is_ok());
    }

    #[test]
    fn a_part_is_kept_if_it_says_nothing_new_against_that() {
        use HeaderId as Id;
        let block = |fields: &[(Id, &str)]| {
            let mut headers = HeaderBlock::new();
            fields.iter().for_each(|(id, value)| headers.push(*id, value.as_bytes()));
            headers
        };
        let plan = planned(&[(Id::CacheControl, "max-age=60")], &StoreRules::safe());
        let permit = plan.permit().expect("it may be stored");
        for (field, why) in [
            ((Id::CacheControl, "max-age=5, no-store"), NotStored::NoStore),
            ((Id::CdnCacheControl, "no-store"), NotStored::NoStore),
            ((Id::CacheControl, "private"), NotStored::Private),
            ((Id::Vary, "*"), NotStored::VaryAny),
            ((Id::SetCookie, "a=b"), NotStored::SetCookie),
        ] {
            let part = block(&[field]);
            let none = permit.parts(StorageObjections::default());
            assert_eq!(none.next(&part).map(drop), Err(why), "{field:?}");
            // What was said, and did not count, says nothing new.
            let said = StorageObjections::of(&part);
            assert!(permit.parts(said).next(&part).is_ok(), "{field:?}");
            assert_eq!(StorageObjections::from_number(said.number()), said);
            let mut shown = HeaderBlock::new();
            said.show(&mut shown);
            assert_eq!(StorageObjections::of(&shown), said, "{field:?}");
        }
        let plain = block(&[(Id::CacheControl, "max-age=1, private=\"x\""), (Id::Vary, "A")]);
        assert!(permit.parts(StorageObjections::default()).next(&plain).is_ok());
    }

    #[test]
    fn a_program_permits_what_it_has_not_kept_out() {
        let ruling = Ruling { passed: false, uncacheable: false, findable: true };
        let headers = HeaderBlock::new();
        assert!(Permit::by_program(ruling, &headers).is_some());
        for ruling in [
            Ruling { passed: true, ..ruling },
            Ruling { uncacheable: true, ..ruling },
            Ruling { findable: false, ..ruling },
        ] {
            assert!(Permit::by_program(ruling, &headers).is_none(), "{ruling:?}");
        }
        let mut headers = HeaderBlock::new();
        headers.push(HeaderId::Vary, b"*");
        assert!(Permit::by_program(ruling, &headers).is_none());
    }
}
