//! Destinations of a block's requests: an answer, an application, files.

use super::answers::{self, ContentType};
use super::chain::Chain;
use super::locations::Location;
use super::origins::{self, Scripts, Target};
use super::sites::{Destination, Maker};
use super::state::{Handler, Scope};
use super::words;
use crate::document::Settings;
use crate::syntax::Directive;

impl<'d> Maker<'_, 'd> {
    /// The destination of scripts.
    pub(crate) fn scripts(
        &mut self,
        chain: &Chain<'d>,
        own: &'d [Directive],
        tries: Option<(Vec<String>, usize)>,
    ) -> Destination<'d> {
        let mut settings = Settings::default();
        if self.runs_others(chain, tries.as_ref()) {
            settings.put("respond", "{ status = 501 }", &[]);
            return Destination::new(Handler::Answer, chain, settings);
        }
        if let Some((word, id)) = tries.as_ref().and_then(|(words, id)| Some((words.last()?, *id)))
        {
            self.front_query(id, word);
        }
        let tries = tries.map(|(words, id)| (words.iter().map(|word| tried(word)).collect(), id));
        let pass = own.iter().find(|own| own.name == "fastcgi_pass");
        let out = Settings::default();
        let handler = Handler::FastCgi;
        let mut scope =
            Scope { state: self.state, chain: chain.clone(), handler, is_site: true, out };
        let name = pass.and_then(|pass| {
            if pass.arg(0).contains('$') {
                scope.left(pass, "an origin's address has no variable", "write the address");
                return None;
            }
            let name = origins::fastcgi(&mut scope, &Scripts { pass, tries })?;
            Some((name, pass.id))
        });
        match name {
            Some((name, id)) => settings.text("origin", &name, &[id]),
            None => {
                if let Some(pass) = pass.filter(|_| chain.one("root").is_none()) {
                    let instead = "add `root`, the directory of the scripts, to the [[origin]]";
                    self.state.ledger.left(pass.id, "there is no `root` for it", instead);
                }
                settings.put("respond", "{ status = 501 }", &[]);
            }
        }
        Destination::new(handler, chain, settings)
    }

    /// Tells whether an origin would run other scripts than `SCRIPT_FILENAME` names, and lists it.
    fn runs_others(&mut self, chain: &Chain<'d>, tries: Option<&(Vec<String>, usize)>) -> bool {
        let ledger = &mut self.state.ledger;
        if let Some(name) = origins::scripts_elsewhere(chain) {
            let instead =
                "`root` of the [[origin]] names their folder; until then Larder answers 501";
            ledger.left(name.id, "the scripts are not below `root`", instead);
            return true;
        }
        let Some(name) = origins::script_name(chain) else { return false };
        let Some(script) = origins::one_script(chain, name) else { return false };
        let words = tries.map(|(words, _)| words.as_slice()).unwrap_or_default();
        let last = words.last().map_or("", |last| tried_path(last));
        if last != script {
            let instead = "`try_files` of the [[origin]] names it; until then Larder answers 501";
            ledger.left(name.id, "this script does not answer for all paths", instead);
        } else if words.len() > 1 {
            let instead = "a route with `respond = { status = 404 }` for other scripts";
            ledger.left(name.id, "other scripts below `root` run by their own paths", instead);
        }
        last != script
    }

    /// Where the requests of a block go.
    pub(crate) fn destination(
        &mut self,
        chain: &Chain<'d>,
        all: &[Location<'d>],
        path: &str,
    ) -> Destination<'d> {
        let own = chain.own();
        let find = |name: &str| own.iter().find(|own| own.name == name);
        let scheme = if self.server.listeners.tls { "https" } else { "http" };
        if let Some(answer) = find("return") {
            let mut settings = Settings::default();
            let answer = &answers::numbered_return(answer, path);
            let kind = ContentType::new(path, chain.one("default_type"));
            let ledger = &mut self.state.ledger;
            if answers::returned(ledger, answer, kind, scheme, &mut settings).is_none() {
                settings.put("respond", "{ status = 501 }", &[]);
            }
            return Destination::new(Handler::Answer, chain, settings);
        }
        if let Some(pass) = find("proxy_pass") {
            return self.proxied(chain, pass, path);
        }
        if let Some(pass) = find("grpc_pass") {
            return self.called(chain, pass);
        }
        if find("fastcgi_pass").is_some() {
            let tries = find("try_files").map(|tries| (tries.args.clone(), tries.id));
            // One script answers for all of it.
            let name = origins::script_name(chain);
            let one = name.and_then(|name| origins::one_script(chain, name));
            let tries = match one.zip(name) {
                Some((script, name)) => Some((vec![script], name.id)),
                None => tries,
            };
            return self.scripts(chain, own, tries);
        }
        if let Some(found) = self.named_destination(chain, all, path) {
            return found;
        }
        if let Some(other) = own.iter().find(|own| own.name.ends_with("_pass")) {
            words::settle(&mut self.state.ledger, other);
            let mut settings = Settings::default();
            settings.put("respond", "{ status = 501 }", &[]);
            return Destination::new(Handler::Answer, chain, settings);
        }
        self.files(chain, path)
    }

    fn proxied(&mut self, chain: &Chain<'d>, pass: &'d Directive, path: &str) -> Destination<'d> {
        let mut settings = Settings::default();
        let target = Target::parse(&self.filled(chain, pass));
        let location = path.trim_end_matches('*');
        match target {
            Some(target) if target.path.as_deref().is_none_or(|own| own == location) => {
                let name = self.origin(chain, Handler::Http, &target);
                settings.text("origin", &name, &[pass.id]);
                return Destination::new(Handler::Http, chain, settings);
            }
            Some(target) => match exchanged(location, target.path.as_deref()) {
                Some((strip, add)) => {
                    let name = self.origin(chain, Handler::Http, &target);
                    settings.text("origin", &name, &[pass.id]);
                    if !strip.is_empty() {
                        settings.text("strip_prefix", strip, &[pass.id]);
                    }
                    if !add.is_empty() {
                        settings.text("add_prefix", add, &[pass.id]);
                    }
                    let differs = "`Location` fields of the application do not get the prefix back";
                    self.state.ledger.carried(pass.id, differs);
                    return Destination::new(Handler::Http, chain, settings);
                }
                None if replaced(path, target.path.as_deref()).is_some() => {
                    let rule = replaced(path, target.path.as_deref()).unwrap_or_default();
                    let name = self.origin(chain, Handler::Http, &target);
                    settings.text("path", &rule.path, &[pass.id]);
                    settings.text("origin", &name, &[pass.id]);
                    settings.text("rewrite", &rule.to, &[pass.id]);
                    let differs = "`Location` fields of the application do not get the prefix back";
                    self.state.ledger.carried(pass.id, differs);
                    return Destination::new(Handler::Http, chain, settings);
                }
                None => self.state.ledger.left(
                    pass.id,
                    "only prefixes that end with a slash on both sides are exchanged",
                    "a route with `rewrite` gives the new path; until then Larder answers 501",
                ),
            },
            None if self.proxied_by_group(chain, pass, path, &mut settings) => {
                return Destination::new(Handler::Http, chain, settings);
            }
            None => self.state.ledger.left(
                pass.id,
                "an origin's address has no variable",
                "write the address; until then Larder answers 501",
            ),
        }
        settings.put("respond", "{ status = 501 }", &[pass.id]);
        Destination::new(Handler::Answer, chain, settings)
    }

    /// The destination of calls of gRPC.
    fn called(&mut self, chain: &Chain<'d>, pass: &'d Directive) -> Destination<'d> {
        let (mut settings, handler) = (Settings::default(), Handler::Grpc);
        let Some(target) = Target::of_calls(&self.filled(chain, pass)) else {
            let instead = "write the address; until then Larder answers 501";
            self.state.ledger.left(pass.id, "an origin's address has no variable", instead);
            settings.put("respond", "{ status = 501 }", &[pass.id]);
            return Destination::new(Handler::Answer, chain, settings);
        };
        let name = self.origin(chain, handler, &target);
        settings.text("origin", &name, &[pass.id]);
        Destination::new(handler, chain, settings)
    }

    /// The name of the origin that is asked at this target, with the files in front of it.
    fn origin(&mut self, chain: &Chain<'d>, handler: Handler, target: &Target) -> String {
        let front = self.front_files.take();
        origins::http(self.state, chain, handler, target, front)
    }

    /// A `proxy_pass` to a path with parts of what the location's expression caught. Returns false
    /// for any other.
    fn proxied_by_group(
        &mut self,
        chain: &Chain<'d>,
        pass: &'d Directive,
        path: &str,
        to: &mut Settings,
    ) -> bool {
        let own = answers::numbered_return(pass, path);
        let Some((scheme, rest)) = own.arg(0).split_once("://") else { return false };
        let Some((server, inner)) = rest.split_once('/') else { return false };
        let target = Target::parse(&format!("{scheme}://{server}"));
        let rewritten = answers::target(&format!("/{inner}"), "http");
        let Some((target, mut rewritten)) = target.zip(rewritten).filter(|_| path.starts_with('~'))
        else {
            return false;
        };
        // Nothing else of the client's URL is passed on.
        if !rewritten.contains('?') && !rewritten.contains("$query") {
            rewritten.push('?');
        }
        let name = origins::http(self.state, chain, Handler::Http, &target, None);
        to.text("origin", &name, &[pass.id]);
        to.text("rewrite", &rewritten, &[pass.id]);
        true
    }

    /// The argument of `proxy_pass` with the variables that `set` has given one value.
    fn filled(&mut self, chain: &Chain<'d>, pass: &Directive) -> String {
        let mut text = pass.arg(0).to_owned();
        for set in chain.every("set") {
            let name = set.arg(0);
            if text.contains(name) && !set.arg(1).contains('$') && name.len() > 1 {
                text = text.replace(name, set.arg(1));
                self.state.ledger.carried(set.id, "");
            }
        }
        // The address that was asked for is passed on anyway.
        text.strip_suffix("$request_uri").map_or_else(|| text.clone(), str::to_owned)
    }

    fn files(&mut self, chain: &Chain<'d>, path: &str) -> Destination<'d> {
        let mut settings = Settings::default();
        let handler = Handler::Files;
        let out = Settings::default();
        let mut scope =
            Scope { state: self.state, chain: chain.clone(), handler, is_site: true, out };
        let alias = chain.own_one("alias");
        let root = chain.one("root");
        let exact = |alias: &Directive| {
            let (folder, name) = alias.arg(0).rsplit_once('/')?;
            (path.rsplit_once('/')?.1 == name && path.matches('/').count() == 1)
                .then(|| folder.to_owned())
        };
        match (alias, root) {
            (Some(alias), _) if path.ends_with("/*") => {
                settings.text("files.alias", alias.arg(0), &[alias.id]);
            }
            (Some(alias), _) if exact(alias).is_some() => {
                let folder = exact(alias).unwrap_or_default();
                settings.text("files.root", &folder, &[alias.id]);
            }
            (Some(alias), _) => {
                let instead = "`files` with `root`, or a route for `/prefix/*`";
                scope.left(alias, "only a prefix takes the place of a directory", instead);
                settings.put("respond", "{ status = 501 }", &[]);
                return Destination::new(Handler::Answer, chain, settings);
            }
            (None, Some(root)) => settings.text("files.root", root.arg(0), &[root.id]),
            (None, None) => {
                return Destination::new(Handler::Answer, chain, settings);
            }
        }
        if let Some(index) = chain.one("index") {
            let names = index.args.iter().map(String::as_str);
            let names = names.filter(|name| !name.ends_with(".php") && !name.contains(['/', '$']));
            let names: Vec<&str> = names.collect();
            if names.is_empty() || names == ["index.html"] {
                scope.default(index, "a directory's page is index.html");
            } else {
                settings.add("files.index", names, &[index.id]);
            }
        }
        origins::files(&mut scope, "files.", &mut settings);
        if let Some(tries) = chain.own_one("try_files") {
            tries_files(&mut scope, tries);
        }
        Destination::new(handler, chain, settings)
    }
}

/// A word of `try_files` without its query, which scripts get anyway.
fn tried(word: &str) -> String {
    if word.starts_with("$uri") || word.starts_with('=') {
        return word.to_owned();
    }
    tried_path(word).to_owned()
}

/// The path at the beginning of a word of `try_files`.
fn tried_path(word: &str) -> &str {
    word.split(['?', '$']).next().unwrap_or(word)
}

/// `try_files` of files without an application behind them.
fn tries_files(scope: &mut Scope<'_, '_>, tries: &Directive) {
    let is_plain =
        |word: &String| matches!(word.as_str(), "$uri" | "$uri/" | "=404" | "$uri/index.html");
    if tries.args.iter().all(is_plain) {
        scope.default(
            tries,
            "files and directories are looked for, and 404 says that there is none",
        );
    } else {
        let instead = "an application, or a web server behind Larder, can answer other paths";
        scope.left(tries, "no other file is looked for in place of one", instead);
    }
}

/// The prefixes that a path loses and gets, if `location` and the path of its `proxy_pass` both end
/// with a slash, so that whole segments are exchanged.
fn exchanged<'t>(location: &'t str, target: Option<&'t str>) -> Option<(&'t str, &'t str)> {
    let is_plain = |path: &str| {
        let is_of_segment = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
        path.starts_with('/') && path.bytes().all(is_of_segment) && !path.contains("//")
    };
    let [strip, add] =
        [location, target?].map(|path| path.strip_suffix('/').filter(|_| is_plain(path)));
    strip.zip(add).filter(|(strip, add)| !strip.is_empty() || !add.is_empty())
}

/// A pattern of paths and what they become.
#[derive(Default)]
struct ReplacedPrefix {
    path: String,
    to: String,
}

/// The rule of a `proxy_pass` with another path than its location's, a prefix that ends anywhere.
fn replaced(path: &str, target: Option<&str>) -> Option<ReplacedPrefix> {
    let location = path.strip_suffix('*')?;
    let is_plain = |text: &str| {
        let is_of_path = |b: u8| b.is_ascii_alphanumeric() || b"/-._~".contains(&b);
        text.starts_with('/') && text.bytes().all(is_of_path)
    };
    let target = target.filter(|target| is_plain(target) && is_plain(location))?;
    if location == "/" {
        return None;
    }
    // One slash is enough between both.
    let slash = if target.ends_with('/') && !location.ends_with('/') { "/?" } else { "" };
    let path = format!("~ ^{}{slash}(.*)$", linear::escape(location));
    Some(ReplacedPrefix { path, to: format!("{target}$1") })
}
