//! Presets: rules for a kind of site, in files of the project that are part of the binary.
//!
//! A preset is written as a `[[site]]` is, without what only a site can know (its hosts and
//! origins), and goes through the same reader. Nothing here knows what any preset says.

/// One preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name by which sites refer to it.
    pub name: &'static str,
    /// Its file, as in the repository.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),*) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!("../../../presets/", $name, ".toml")),
        }),*]
    };
}

/// Every preset.
pub const PRESETS: &[Preset] =
    presets!["wordpress", "drupal", "magento", "mediawiki", "static", "microcache"];

/// The preset called `name`.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// Its purpose: the first line of its file.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// The name of its file in messages.
    pub fn file(&self) -> String {
        format!("presets/{}.toml", self.name)
    }
}
