//! Client's class: people, search engines, crawlers that train models, and tools, as the list of
//! crawlers tells them apart.
//!
//! Only the types are here: crate `agents` finds the class of a request, and policies read it.

/// The class of a request's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ClientClass {
    /// A browser, as far as its User-Agent says.
    Human,
    /// A search engine that has been verified.
    Search,
    /// A crawler or agent of a language model.
    Ai,
    /// A tool or library: scripts, monitors, feed readers, link previews.
    Tool,
    /// Any other client, and each that claims to be a crawler and is not.
    Unknown,
}

impl ClientClass {
    /// All classes.
    pub const ALL: [Self; 5] = [Self::Human, Self::Search, Self::Ai, Self::Tool, Self::Unknown];

    /// The name in settings, lists and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Search => "search",
            Self::Ai => "ai",
            Self::Tool => "tool",
            Self::Unknown => "unknown",
        }
    }

    /// The class called `word`.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }
}

/// The proof that a client is the crawler that its User-Agent names, or whose signature it bears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClientProof {
    /// None is asked for.
    #[default]
    Claimed,
    /// Its address is one of the crawler's.
    Verified,
    /// Its address does not belong to the crawler, or there is nothing to verify it by.
    Unverified,
    /// Its address is yet to be looked up in DNS.
    Pending,
    /// Its request has the crawler's signature.
    Signed,
    /// Its request has a signature that claims to be the crawler's and is not.
    Forged,
}

impl ClientProof {
    /// All proofs, each at the place of its number.
    pub const ALL: [Self; 6] = [
        Self::Claimed,
        Self::Verified,
        Self::Unverified,
        Self::Pending,
        Self::Signed,
        Self::Forged,
    ];

    /// The name in logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Verified => "address",
            Self::Unverified => "unverified",
            Self::Pending => "pending",
            Self::Signed => "signature",
            Self::Forged => "forged",
        }
    }
}

/// A request's client, classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassifiedClient {
    /// The class that counts.
    pub class: ClientClass,
    /// The proof for it.
    pub proof: ClientProof,
    /// The number of its name in the list of crawlers.
    pub number: Option<std::num::NonZeroU16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_by_its_word() {
        for class in ClientClass::ALL {
            assert_eq!(ClientClass::of_word(class.word()), Some(class));
        }
        assert_eq!(ClientClass::of_word("Human"), None);
    }

    #[test]
    fn each_proof_has_its_number_and_a_word_of_its_own() {
        for (at, proof) in ClientProof::ALL.into_iter().enumerate() {
            assert_eq!(proof as usize, at);
            let same = ClientProof::ALL.iter().filter(|other| other.word() == proof.word());
            assert_eq!(same.count(), 1);
        }
    }

    #[test]
    fn a_request_carries_it_in_four_bytes() {
        assert_eq!(size_of::<Option<ClassifiedClient>>(), 4);
    }
}
