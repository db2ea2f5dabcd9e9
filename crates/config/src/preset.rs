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
    /// The part of it that is installed in the application.
    pub plugin: Option<Plugin>,
}

/// A file that an application loads by itself, by which it tells the cache what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Its text, as in the repository.
    pub text: &'static str,
    /// Its head, by which another version of it is known.
    pub head: &'static str,
    /// Its place below the application's root.
    pub place: &'static str,
    /// A file below the root that is there if the application is.
    pub sign: &'static str,
    /// A directory below the root that the application has too, and that holds `place`.
    pub folder: &'static str,
    /// The application's name.
    pub application: &'static str,
}

/// WordPress loads what is in `mu-plugins` at every request, without being asked to.
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
    presets!["wordpress", "drupal", "magento", "mediawiki", "static", "microcache"];

const fn plugin(preset: &str) -> Option<Plugin> {
    match preset.as_bytes() {
        b"wordpress" => Some(WORDPRESS),
        _ => None,
    }
}

/// Returns the preset that a name without one is likely to mean: by a slip, or short as `wp` is.
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
    /// Its purpose: the first line of its file.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// The name of its file in messages.
    pub fn file(&self) -> String {
        format!("presets/{}.toml", self.name)
    }
}
