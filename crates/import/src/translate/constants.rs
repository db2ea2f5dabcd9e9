//! Variables that a server sets once and to one text, such as `set $root /srv/www`: their value is
//! put where they are used.

use std::collections::BTreeMap;

use crate::syntax::Directive;

/// Directives whose variables mean something else, or that look at the name.
const NOT_FILLED: [&str; 6] = ["set", "if", "map", "geo", "split_clients", "log_format"];

/// The directives with values in the place of such variables, and the `set`s that they are from.
pub(crate) fn filled(directives: &[Directive]) -> (Vec<Directive>, Vec<usize>) {
    let mut used = Vec::new();
    let filled = directives.iter().map(|own| within(own, &mut used)).collect();
    (filled, used)
}

fn within(own: &Directive, used: &mut Vec<usize>) -> Directive {
    let mut filled = own.clone();
    if own.name == "server" {
        let constants = constants(own);
        if !constants.is_empty() {
            filled.block.iter_mut().flatten().for_each(|own| fill(own, &constants, used));
        }
    } else {
        filled.block =
            own.block.as_ref().map(|block| block.iter().map(|own| within(own, used)).collect());
    }
    filled
}

/// A value and the directive that sets it.
struct Constant {
    value: String,
    id: usize,
}

/// The variables of a server that are set once, to a text, and not under a condition.
fn constants(server: &Directive) -> BTreeMap<String, Constant> {
    let mut all: BTreeMap<String, Option<Constant>> = BTreeMap::new();
    server.visit(&mut |own| {
        if own.name == "set" {
            let is_outer = server.children().iter().any(|outer| outer.id == own.id);
            let is_text = is_outer && !own.arg(1).contains('$') && own.args.len() == 2;
            let constant = is_text.then(|| Constant { value: own.arg(1).to_owned(), id: own.id });
            let name = own.arg(0).trim_start_matches('$').to_owned();
            // A second one makes it a variable.
            all.entry(name).and_modify(|known| *known = None).or_insert(constant);
        }
    });
    all.into_iter().filter_map(|(name, constant)| Some((name, constant?))).collect()
}

fn fill(own: &mut Directive, constants: &BTreeMap<String, Constant>, used: &mut Vec<usize>) {
    if !NOT_FILLED.contains(&own.name.as_str()) {
        for arg in own.args.iter_mut().filter(|arg| arg.contains('$')) {
            *arg = text(arg, constants, used);
        }
    }
    own.block.iter_mut().flatten().for_each(|own| fill(own, constants, used));
}

fn text(text: &str, constants: &BTreeMap<String, Constant>, used: &mut Vec<usize>) -> String {
    let (mut all, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        all.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let braced = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = braced.unwrap_or_else(|| {
            let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            behind.split_at(end.unwrap_or(behind.len()))
        });
        match constants.get(name) {
            Some(constant) => {
                all.push_str(&constant.value);
                used.push(constant.id);
            }
            None => all.push_str(&rest[at..rest.len() - after.len()]),
        }
        rest = after;
    }
    all.push_str(rest);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;

    #[test]
    fn a_text_that_is_set_once_is_filled_in() {
        let source = "server { set $r /srv; set $s 0; if ($uri = /x) { set $s 1; } root $r/pub; \
                      location ~ a$ { alias ${r}x$s; } } server { root $r; }";
        let (filled, used) = filled(&parse("x", source).expect("well-formed"));
        let text = crate::print(&filled);
        for line in ["root /srv/pub;", "location ~ a$ ", "alias /srvx$s;", "root $r;"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(used.len(), 2);
    }
}
