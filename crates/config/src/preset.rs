//! Presets: rules for kinds of sites, in files of the project that are built into the binary.
//!
//! A preset has the form of a `[[site]]`, without hosts and origins, and goes through the same
//! reader. Nothing here may depend on the content of a preset.

/// One preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name by which sites refer to it.
    pub name: &'static str,
    /// The file, as in the repository.
    pub text: &'static str,
    /// The plugin that is installed in the application.
    pub plugin: Option<Plugin>,
}

/// A file that an application loads, and by which it purges what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// The text, as in the repository.
    pub text: &'static str,
    /// The head, by which other versions of it are recognised.
    pub head: &'static str,
    /// The path below the application's root.
    pub place: &'static str,
    /// A file below the root by which the application is recognised.
    pub sign: &'static str,
    /// A directory of the application below the root, in which `place` lies.
    pub folder: &'static str,
    /// The application's name.
    pub application: &'static str,
}

/// WordPress loads everything in `mu-plugins` at every request.
const WORDPRESS: Plugin = Plugin {
    text: include_str!("../../../presets/wordpress/larder.php"),
    head: "<?php\n/**\n * Plugin Name: Larder\n * Description: Tells Larder, the cache",
    place: "wp-content/mu-plugins/larder.php",
    sign: "wp-includes/version.php",
    folder: "wp-content",
    application: "WordPress",
};

macro_rules! presets {
    ($($name:literal),*) => {
        &[$(Preset {
            name: $name,
            text: include_str!(concat!("../../../presets/", $name, ".toml")),
            plugin: plugin($name),
        }),*]
    };
}

/// Every preset.
pub const PRESETS: &[Preset] =
    presets!["wordpress", "drupal", "magento", "mediawiki", "static", "microcache", "crawlers"];

const fn plugin(preset: &str) -> Option<Plugin> {
    match preset.as_bytes() {
        b"wordpress" => Some(WORDPRESS),
        _ => None,
    }
}

/// Returns the preset that an unknown name likely means: by a slip, or an abbreviation such as
/// `wp`.
pub fn likely_preset(name: &str) -> Option<&'static str> {
    let names = || PRESETS.iter().map(|preset| preset.name);
    let is_short = |own: &&str| {
        let mut rest = own.chars();
        name.len() > 1
            && name.chars().next() == own.chars().next()
            && name.chars().all(|c| rest.any(|own| own == c))
    };
    crate::suggestions::closest(name, names()).or_else(|| names().find(is_short))
}

/// The preset called `name`.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// The purpose: the first line of its file.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// The name of its file in messages.
    pub fn file(&self) -> String {
        format!("presets/{}.toml", self.name)
    }
}
