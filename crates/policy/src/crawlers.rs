//! Rules for crawlers: what a site sets for whole classes of clients, in short, and the routes that
//! it stands for.
//!
//! A class must never leave a route's own rules: where its request would belong to a route, it
//! belongs to a copy of that route which differs only in what the class sets.

use std::sync::Arc;

use message::{ClientClass, Status};

use crate::answer::ConfiguredResponse;
use crate::conditions::{Condition, Conditions, RouteScope};
use crate::decision_steps::SettingLocation;
use crate::pattern::PathPattern;
use crate::points::Synthetic;
use crate::rules::{RouteRules, ServeMode, Settings, SiteRules};
use crate::throttle::{ConcurrencyRule, RateRule};

/// The path that says what crawlers may read (RFC 9309 2.3). No class is ever kept from it: a
/// crawler that cannot read it may read everything, or nothing for a month.
pub const ROBOTS: &str = "/robots.txt";

/// The rules of a site for crawlers.
#[derive(Clone, Debug, Default)]
pub struct CrawlerRules {
    /// Larder answers robots.txt.
    pub robots: bool,
    /// Lines of robots.txt behind those that Larder makes.
    pub robots_lines: Vec<String>,
    /// The rules of each class.
    pub classes: Vec<ClassRules>,
}

/// The rules for one class of clients. `None` means those of the site or route.
#[derive(Clone, Debug)]
pub struct ClassRules {
    /// The class.
    pub class: ClientClass,
    /// The way in which requests are served that the store cannot answer.
    pub serve: Option<ServeMode>,
    /// The response instead of the cache's or the origin's.
    pub answer: Option<ConfiguredResponse>,
    /// Rate limits.
    pub rate: Option<Arc<[RateRule]>>,
    /// Limits of concurrent requests.
    pub concurrent: Option<Arc<[ConcurrencyRule]>>,
    /// The location of the rules.
    pub place: Option<SettingLocation>,
}

impl ClassRules {
    /// The rules of a class that sets nothing.
    pub fn of(class: ClientClass) -> Self {
        Self { class, serve: None, answer: None, rate: None, concurrent: None, place: None }
    }

    /// The settings of a route with what the class sets.
    fn over(&self, settings: &Settings) -> Settings {
        let mut own = settings.clone();
        own.serve = self.serve.unwrap_or(own.serve);
        if self.answer.is_some() {
            // No line of a file precedes what the class gets.
            (own.answer, own.redirects) = (self.answer.clone(), None);
        }
        own.rate = self.rate.clone().or(own.rate);
        own.concurrent = self.concurrent.clone().or(own.concurrent);
        if let Some(place) = &self.place {
            own.places.note("route", place.clone());
            if self.serve.is_some() {
                own.places.note("serve", place.clone());
            }
        }
        own
    }

    /// The scope of the class's part of `scope`.
    fn within(&self, scope: &RouteScope) -> RouteScope {
        let mut own = scope.clone();
        let robots = RouteScope { paths: robots_path(), ..RouteScope::default() };
        let mut when = Conditions::default();
        when.push(Condition::Class(vec![self.class]));
        when.push(Condition::Not(Box::new(robots)));
        scope.when.iter().for_each(|condition| when.push(condition.clone()));
        own.when = when;
        own
    }
}

fn robots_path() -> Vec<PathPattern> {
    PathPattern::parse(ROBOTS).into_iter().collect()
}

impl CrawlerRules {
    /// The classes that may read nothing: their requests get an error.
    pub fn kept_out(&self) -> Vec<ClientClass> {
        let is_error = |rules: &&ClassRules| match &rules.answer {
            Some(ConfiguredResponse::Fixed(fixed)) => fixed.status.code() >= 400,
            _ => false,
        };
        self.classes.iter().filter(is_error).map(|rules| rules.class).collect()
    }
}

impl SiteRules {
    /// Divides the routes by the classes that have rules, and the site's own settings too. A route
    /// that has a class as its condition stays as it is.
    pub fn divide_by_class(&mut self) {
        let classes = &self.crawlers.classes;
        if classes.is_empty() {
            return;
        }
        let mut divided = Vec::new();
        for route in std::mem::take(&mut self.routes) {
            for rules in classes.iter().filter(|_| route.scope.when.classes().is_none()) {
                divided.push(RouteRules {
                    name: format!("{} ({})", route.name, rules.class.word()),
                    scope: rules.within(&route.scope),
                    settings: rules.over(&route.settings),
                });
            }
            divided.push(route);
        }
        for rules in classes {
            divided.push(RouteRules {
                name: format!("crawlers: {}", rules.class.word()),
                scope: rules.within(&RouteScope::default()),
                settings: rules.over(&self.settings),
            });
        }
        self.routes = divided;
    }

    /// Returns true if the class of a client makes a difference.
    pub fn ask_for_class(&self) -> bool {
        self.crawlers.robots || self.routes.iter().any(|route| route.scope.when.ask_for_class())
    }

    /// Has robots.txt answered with `text`, before all routes.
    pub fn answer_robots(&mut self, text: String) {
        let kind = (b"Content-Type".to_vec(), b"text/plain; charset=utf-8".to_vec());
        let age = (b"Cache-Control".to_vec(), b"max-age=3600".to_vec());
        let answer = Synthetic {
            status: Status::OK,
            fields: vec![kind, age],
            body: text.into_bytes(),
            close: false,
        };
        let answer = Some(ConfiguredResponse::Fixed(Arc::new(answer)));
        let route = RouteRules {
            name: "robots.txt".to_owned(),
            scope: RouteScope { paths: robots_path(), ..RouteScope::default() },
            settings: Settings { answer, redirects: None, ..self.settings.inherit() },
        };
        self.routes.insert(0, route);
    }
}

#[cfg(test)]
mod tests;
