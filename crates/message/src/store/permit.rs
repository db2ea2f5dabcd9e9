//! Permit to store a response for other clients. Only the rules make one, and storing consumes it:
//! nothing may be stored, renewed or restored without one.

use super::{IgnoredField, IgnoredSet, NotStored, StorePlan};
use smallvec::SmallVec;

use crate::cache_control::{CacheControl, DirectiveScope};
use crate::header::{HeaderBlock, HeaderId};
use crate::vary;

/// The permit to store one response. It is valid for the head that the rules have seen; a changed
/// head needs another permit.
#[derive(Debug)]
#[must_use = "a permission that is not spent keeps nothing"]
pub struct Permit(IgnoredSet);

/// The permit to store the parts of a response.
#[derive(Debug)]
pub struct PartPermits {
    first: StorageObjections,
    ignored: IgnoredSet,
}

/// The fields of a response that are reasons against storing it, whether they count or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageObjections(u8);

impl StorageObjections {
    const REASONS: [NotStored; 4] =
        [NotStored::NoStore, NotStored::Private, NotStored::VaryAny, NotStored::SetCookie];
    /// Fields with directives for caches, including this one.
    const CONTROLS: [(IgnoredField, HeaderId); 3] = [
        (IgnoredField::CacheControl, HeaderId::CacheControl),
        (IgnoredField::CdnCacheControl, HeaderId::CdnCacheControl),
        (IgnoredField::SurrogateControl, HeaderId::SurrogateControl),
    ];

    /// The objections in the fields of a response.
    pub fn of(headers: &HeaderBlock) -> Self {
        Self::counted(headers, IgnoredSet::default())
    }

    /// The objections in the fields of a response, without `ignored` fields.
    fn counted(headers: &HeaderBlock, ignored: IgnoredSet) -> Self {
        let counted = Self::CONTROLS.into_iter().filter(|(field, _)| !ignored.has(*field));
        let said = counted.map(|(_, id)| CacheControl::parse(headers.values(id)));
        let said: SmallVec<[CacheControl; 3]> = said.collect();
        let says = |why: NotStored| match why {
            NotStored::NoStore => said.iter().any(|it| it.no_store),
            NotStored::Private => said.iter().any(|it| it.private == DirectiveScope::Whole),
            NotStored::VaryAny => vary::is_never(headers) && !ignored.has(IgnoredField::VaryAny),
            _ => headers.contains(HeaderId::SetCookie) && !ignored.has(IgnoredField::SetCookie),
        };
        let bits = Self::REASONS.iter().enumerate().map(|(at, why)| u8::from(says(*why)) << at);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// The objections of a number from [`StorageObjections::number`].
    pub const fn from_number(number: u8) -> Self {
        Self(number)
    }

    /// A number that represents the objections.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Adds fields with these objections.
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

    /// A reason in `self` that is not in `other`.
    fn beyond(self, other: Self) -> Option<NotStored> {
        let new = other.0 & !self.0;
        Self::REASONS.into_iter().enumerate().find(|(at, _)| new >> at & 1 == 1).map(|(_, why)| why)
    }
}

/// A VCL program's verdict on a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The request passed the cache.
    pub passed: bool,
    /// The program has forbidden storing the response.
    pub uncacheable: bool,
    /// A lookup would find the response: its lifetime is not zero.
    pub findable: bool,
}

impl StorePlan {
    /// The permit to store the response.
    ///
    /// # Errors
    /// The reason against it.
    pub fn permit(&self) -> Result<Permit, NotStored> {
        self.store.map(|()| Permit(self.ignored))
    }

    /// The permit to keep a response that was stored before, perhaps by other rules, or to store a
    /// further part of one. The plan is for a neutral request: reasons that depend on the first
    /// request, or on times, are ignored.
    ///
    /// # Errors
    /// The reason why it would not be stored now.
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
            ) => Ok(Permit(self.ignored)),
            Err(why) => Err(why),
        }
    }
}

impl Permit {
    /// The permit by a VCL program's verdict, for a response with these fields; `None` if the
    /// program or Vary (RFC 9111 4.1) forbids it.
    pub fn by_program(ruling: Ruling, headers: &HeaderBlock) -> Option<Self> {
        let may = ruling.findable && !ruling.passed && !ruling.uncacheable;
        (may && !vary::is_never(headers)).then_some(Self(IgnoredSet::default()))
    }

    /// The permit to store the response in parts; `first` are the objections of the response
    /// itself.
    pub fn parts(&self, first: StorageObjections) -> PartPermits {
        PartPermits { first, ignored: self.0 }
    }
}

impl PartPermits {
    /// The permit to store a further part, which came with these fields.
    ///
    /// # Errors
    /// An objection that the response itself does not have (RFC 9111 3.4).
    pub fn next(&self, headers: &HeaderBlock) -> Result<Permit, NotStored> {
        match self.first.beyond(StorageObjections::counted(headers, self.ignored)) {
            None => Ok(Permit(self.ignored)),
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
    use crate::store::{ExchangeTimes, JudgedHead, StoreRules, plan};

    fn planned(fields: &[(HeaderId, &str)], rules: &StoreRules) -> StorePlan {
        let mut response = Response::new(Status::OK);
        for (id, value) in fields {
            response.headers.push(*id, value.as_bytes());
        }
        let exchange = ExchangeTimes { request_ms: 0, response_ms: 0 };
        plan(&Request::new(), false, &JudgedHead::of(&response, rules), exchange, rules)
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
            // An objection that did not count in the response does not count in a part.
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
