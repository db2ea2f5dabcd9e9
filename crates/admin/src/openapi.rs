//! OpenAPI (3.1): the description of the interface, made from the table of routes.

use serde_json::{Map, Value, json};

use crate::routes::{Content, Kind, RequestContent, Route, RouteAccess, RouteMethod, TABLE};
use crate::shapes;

/// The whole document.
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in TABLE {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.verb.token().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Larder",
            "description": "The admin listener of a Larder daemon. On its unix socket everything \
                            may be asked; on an address, what the token's role allows.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The content of `read.token`, `purge.token` or `config.token`. \
                                    Each may do what those before it may.",
                },
            },
            "schemas": shapes::all(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = Map::new();
    let good = match route.gives {
        Content::Json(schema) => json!({ "application/json": { "schema": reference(schema) } }),
        Content::Other(media_type) => json!({ media_type: { "schema": { "type": "string" } } }),
    };
    responses.insert("200".to_owned(), json!({ "description": "Done.", "content": good }));
    for (status, meaning) in refusals(route).iter().chain(route.also) {
        let described = json!({ "description": meaning });
        responses.insert(status.to_string(), described);
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.about,
        "responses": responses,
    });
    operation["security"] = match route.needs {
        RouteAccess::Public => json!([]),
        RouteAccess::OpenMetrics(role) | RouteAccess::Role(role) => {
            json!([{ "token": [role.word()] }])
        }
    };
    if !route.query.is_empty() {
        let variable = route.variable().map(|name| {
            json!({
                "name": name,
                "in": "path",
                "required": true,
                "description": "The file's path.",
                "schema": { "type": "string" },
            })
        });
        let parameters = route.query.iter().map(|parameter| {
            let schema = match parameter.kind {
                Kind::Text => json!({ "type": "string", "minLength": 1 }),
                Kind::Count(most) => json!({ "type": "integer", "minimum": 0, "maximum": most }),
            };
            json!({
                "name": parameter.name,
                "in": "query",
                "description": parameter.about,
                "schema": schema,
            })
        });
        operation["parameters"] = variable.into_iter().chain(parameters).collect();
    }
    let (schema, required) = match route.takes {
        RequestContent::Empty => return operation,
        RequestContent::Json(schema) => (schema, true),
        RequestContent::MaybeJson(schema) => (schema, false),
    };
    let content = json!({ "application/json": { "schema": reference(schema) } });
    operation["requestBody"] = json!({ "required": required, "content": content });
    operation
}

/// A name for programs: `get_api_v1_status`.
fn operation_id(route: &Route) -> String {
    let path = route.path.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("{}{path}", route.verb.token().to_ascii_lowercase())
}

/// Statuses that follow from what a route requires.
fn refusals(route: &Route) -> Vec<(u16, &'static str)> {
    let mut all = vec![
        (400, "Parameters or a body that it does not take."),
        (421, "Asked under a name that is not this listener's."),
    ];
    if route.needs != RouteAccess::Public {
        all.extend([
            (401, "No token, or a wrong one."),
            (
                403,
                "The token's role does not allow it, or a page of another site sent the \
                 request.",
            ),
            (429, "Too many wrong tokens from this address; later."),
        ]);
    }
    if route.verb == RouteMethod::Post {
        all.extend([
            (408, "The body took too long."),
            (413, "The body is too large."),
            (415, "The body is not said to be JSON."),
        ]);
    }
    all
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` in `value`.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(to)) = map.get("$ref") {
                    found.push(to.clone());
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_shape_that_is_named_is_described_and_used() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        for to in &found {
            let pointer = to.strip_prefix('#').expect("of this document");
            assert!(document.pointer(pointer).is_some(), "{to}");
        }
        let Value::Object(schemas) = shapes::all() else { panic!("an object") };
        for name in schemas.keys() {
            assert!(found.iter().any(|to| to.ends_with(&format!("/{name}"))), "{name} is unused");
        }
    }

    #[test]
    fn every_route_is_described() {
        let document = document();
        for route in TABLE {
            let verb = route.verb.token().to_ascii_lowercase();
            let described = &document["paths"][route.path][verb];
            assert_eq!(described["summary"], route.about, "{}", route.path);
        }
    }
}
