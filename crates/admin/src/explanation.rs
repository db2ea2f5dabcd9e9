//! Explanation schemas: the request for an explanation, and its response.

use serde_json::{Value, json};

/// The schemas, by the names that routes use.
pub(crate) fn shapes() -> [(&'static str, Value); 3] {
    [("Explanation", explanation()), ("Question", question()), ("Step", step())]
}

fn explanation() -> Value {
    json!({
        "type": "object",
        "required": [
            "url", "method", "client", "outcome", "steps", "past", "past_note", "advice",
        ],
        "properties": {
            "url": { "type": "string" },
            "method": { "type": "string" },
            "client": { "type": "string" },
            "outcome": {
                "type": "object",
                "required": ["served", "summary"],
                "properties": {
                    "served": { "type": "string", "description": "The outcome, as in logs." },
                    "summary": { "type": "string", "description": "A sentence." },
                },
            },
            "steps": { "type": "array", "items": { "$ref": "#/components/schemas/Step" } },
            "past": {
                "type": "array",
                "description": "The last transactions of the URL, the newest first; equal ones in one.",
                "items": { "$ref": "#/components/schemas/Step" },
            },
            "past_note": {
                "type": ["string", "null"],
                "description": "The reason why there is no history.",
            },
            "advice": {
                "type": "array",
                "description": "What would change the outcome, or why nothing should.",
                "items": { "type": "string", "description": "A sentence or a few." },
            },
        },
    })
}

fn question() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": { "type": "string", "description": "The whole URL, http or https." },
            "method": { "type": ["string", "null"], "description": "GET by default." },
            "headers": {
                "type": ["array", "null"],
                "description": "Lines of fields.",
                "items": { "type": "string", "description": "`Name: value`" },
            },
            "client": {
                "type": ["string", "null"],
                "description": "The client's address; 127.0.0.1 by default.",
            },
            "last": {
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": 100,
                "description": "Rows of past transactions; 5 by default.",
            },
        },
        "additionalProperties": false,
    })
}

fn step() -> Value {
    json!({
        "type": "object",
        "required": ["what", "why", "where", "facts", "decided"],
        "properties": {
            "what": { "type": "string", "description": "A heading." },
            "why": { "type": "string", "description": "A sentence or two." },
            "where": {
                "type": ["string", "null"],
                "description": "The location of the setting behind it.",
            },
            "facts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "value"],
                    "properties": {
                        "name": { "type": "string" },
                        "value": { "type": "string" },
                    },
                },
            },
            "decided": {
                "type": "boolean",
                "description": "It decided the outcome.",
            },
            "time": { "type": "integer", "description": "Of a past transaction: unix seconds." },
            "times": { "type": "integer", "description": "Of past ones: the number of equal ones." },
        },
    })
}
