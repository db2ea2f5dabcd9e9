//! Rules of Varnish's dialect that parameters change. Defaults are varnishd's.

/// The members of varnishd's parameter `feature` that begin with `esi_`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VarnishRules {
    /// Parses pages whose first byte other than white space is not `<`.
    pub disable_xml_check: bool,
    /// Finds instructions within foreign tags.
    pub ignore_other_elements: bool,
    /// Fetches `https://` addresses as `http://`.
    pub ignore_https: bool,
    /// Removes a byte order mark at the beginning.
    pub remove_bom: bool,
    /// Fails a page with an include that fails, unless the include has `onerror="continue"`.
    pub include_onerror: bool,
}
