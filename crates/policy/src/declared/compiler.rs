//! Compiler of a site's rules to the form that the request path uses.

use super::candidates::Candidates;
use super::plan::{RULES, Refusals, RoutePlan, Rule};
use super::storage_class::StorageClass;
use super::{Declared, Matcher};
use crate::acl::CidrSet;
use crate::forged_fields;
use crate::policy_files::PolicyFiles;
use crate::rules::{self, Profile, SiteRules};
use crate::scripts::ScriptNames;

impl Declared {
    /// The number of the rule that rejects requests above a rate.
    pub const RATE: u32 = Rule::Rate as u32;
    /// The number of the rule that rejects too many concurrent requests.
    pub const CONCURRENT: u32 = Rule::Concurrent as u32;
    /// The number of the rule that asks for a password.
    pub const BASIC_AUTH: u32 = Rule::BasicAuth as u32;
    /// The number of the rule for requests that another server rejects.
    pub const FORWARD_AUTH: u32 = Rule::ForwardAuth as u32;
    /// The number of the rule for requests with a cookie by which pages were seen to differ.
    pub const VERIFY: u32 = Rule::Verify as u32;
    /// The number of the rule for requests that the VCL beside the settings passes or answers.
    pub const VCL: u32 = Rule::Vcl as u32;

    /// Compiles `rules` that name no files.
    pub fn new(rules: SiteRules) -> Self {
        Self::with_files(rules, &PolicyFiles::default())
    }

    /// Compiles `rules`, with the files that they name.
    pub fn with_files(rules: SiteRules, files: &PolicyFiles) -> Self {
        let SiteRules {
            profile,
            trusted_proxies,
            client_field,
            forwarded,
            redirect_https,
            opaque_spellings,
            scripts,
            routes,
            settings,
            crawlers: _,
        } = rules;
        let has_path_rules = !routes.is_empty()
            || settings.bypass.iter().any(|reason| matches!(reason, rules::Bypass::Path(_)));
        let scripts = match has_path_rules {
            true => ScriptNames::new(scripts.iter().map(String::as_str), !opaque_spellings),
            false => ScriptNames::default(),
        };
        let asks = routes.iter().any(|route| route.scope.when.ask_for_country());
        let countries = files.countries.clone().filter(|_| asks);
        let mut rule_names: Vec<String> = RULES.map(|(_, name)| name.to_owned()).into();
        let class = StorageClass::of_site(&settings);
        let mut plans = vec![RoutePlan::new(profile, settings, class, files, &mut rule_names)];
        let mut route_names = vec!["site".to_owned()];
        let mut matchers = Vec::with_capacity(routes.len());
        for route in routes {
            let class = StorageClass::of_route(&route);
            let plan = RoutePlan::new(profile, route.settings, class, files, &mut rule_names);
            plans.push(RoutePlan { is_divided: !route.scope.when.is_empty(), ..plan });
            route_names.push(route.name);
            let mut scope = route.scope;
            if let Some(database) = &files.countries {
                scope.when.use_countries(database);
            }
            let meant = scope.paths.iter().map(|path| scripts.are_meant_by(path)).collect();
            matchers.push(Matcher { scope, meant });
        }
        let scopes: Vec<_> = matchers.iter().map(|matcher| &matcher.scope).collect();
        let candidates = Candidates::of(&scopes).map(Box::new);
        Self {
            requests_are_personal: profile == Profile::Safe,
            trusted: CidrSet::new(&trusted_proxies),
            client_field,
            forwarded,
            redirect_https,
            keys_places: plans
                .iter()
                .flat_map(|plan| &plan.header_key)
                .chain(matchers.iter().flat_map(|matcher| matcher.scope.when.fields()))
                .any(|field| forged_fields::is_place(field.as_bytes())),
            guards_spellings: !opaque_spellings,
            scripts,
            countries,
            matchers,
            candidates,
            plans,
            route_names,
            rule_names,
            refusals: Refusals::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::RouteScope;
    use crate::points::StorageChoice;
    use crate::rules::Settings;
    use crate::{Notes, Policy as _};

    #[test]
    fn a_response_is_kept_where_its_route_says() {
        let kept = |store| Settings { store, ..Settings::default() };
        let route = rules::RouteRules {
            name: "video".to_owned(),
            scope: RouteScope::default(),
            settings: kept(StorageChoice::Disk),
        };
        let settings = kept(StorageChoice::Memory);
        let site = SiteRules { routes: vec![route], settings, ..SiteRules::default() };
        let policy = Declared::new(site);
        let of = |route| policy.store_in(&Notes { route, ..Notes::default() });
        assert_eq!((of(0), of(1)), (StorageChoice::Memory, StorageChoice::Disk));
        let silent = Declared::new(SiteRules::default());
        assert_eq!(silent.store_in(&Notes::default()), StorageChoice::Both);
    }
}
