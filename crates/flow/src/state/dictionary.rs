//! Dictionary state: stored responses that serve as dictionaries, and forms coded with them.

mod dictionaries;
mod entry;
pub(crate) mod named_dictionary;

pub(crate) use self::dictionaries::Dictionaries;
pub(crate) use self::entry::{Dictionary, DictionaryScope, origin};
pub(crate) use self::named_dictionary::{
    NamedDictionary, form_of_client, form_with, is_readable, named,
};
