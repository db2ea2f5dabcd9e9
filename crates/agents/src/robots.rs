//! robots.txt (RFC 9309), made from the classes that a site keeps out.

use message::ClientClass;

use crate::crawlers::Crawlers;

impl Crawlers {
    /// The text of robots.txt: one group for all names of the classes in `kept_out`, and `more`
    /// behind it.
    pub fn robots(&self, kept_out: &[ClientClass], more: &[String]) -> String {
        let mut text = String::new();
        for class in kept_out {
            for name in self.names_of(*class) {
                text += &format!("User-agent: {name}\n");
            }
        }
        if !text.is_empty() {
            text += "Disallow: /\n\n";
        }
        if !more.iter().any(|line| is_group(line)) {
            text += "User-agent: *\nDisallow:\n";
        }
        for line in more {
            text += line;
            text.push('\n');
        }
        text
    }
}

/// Returns true for a line that begins a group.
fn is_group(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    name.trim().eq_ignore_ascii_case("user-agent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::CrawlerList;

    fn crawlers() -> Crawlers {
        let list = "ai A aaa\nai A-Extended\nai B bbb\ntool C ccc\nunknown bot bot/\n";
        let list = CrawlerList::parse(list).expect("a list");
        Crawlers::new(list, Vec::new(), false).expect("few patterns")
    }

    #[test]
    fn each_name_of_a_class_is_kept_out() {
        let text = crawlers().robots(&[ClientClass::Ai], &[]);
        let names = "User-agent: A\nUser-agent: A-Extended\nUser-agent: B\nDisallow: /\n";
        assert_eq!(text, format!("{names}\nUser-agent: *\nDisallow:\n"));
    }

    #[test]
    fn without_classes_everything_may_be_read() {
        assert_eq!(crawlers().robots(&[], &[]), "User-agent: *\nDisallow:\n");
        let more = ["user-agent : *".to_owned(), "Disallow: /cart".to_owned()];
        assert_eq!(crawlers().robots(&[], &more), "user-agent : *\nDisallow: /cart\n");
    }
}
