//! Settings of Varnish's dialect.

/// Parameters of varnishd, members of `feature` that begin with `esi_`; their defaults are its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VarnishRules {
    /// Pages are read even if their first byte other than white space is no `<`.
    pub disable_xml_check: bool,
    /// Instructions are found within other tags.
    pub ignore_other_elements: bool,
    /// `https://` in an address counts as `http://`.
    pub ignore_https: bool,
    /// A mark of UTF-8 at the beginning is removed.
    pub remove_bom: bool,
    /// An include without `onerror="continue"` fails its page if it fails.
    pub include_onerror: bool,
}
