//! Backends and probes of the syntax tree, checked and lowered to specifications. Nothing is
//! connected here.

use crate::ast::{Expr, ExprKind, Field, FieldValue, Name};
use crate::lower::Lowering;
use crate::lower::symbols::SymbolKind;
use crate::source::SourceSpan;
use crate::state::backend;
use crate::state::backend::{BackendSpec, ProbeSpec};
use crate::text::address;

/// Attributes of a backend, for advice.
const BACKEND: &[&str] = &[
    "host",
    "port",
    "path",
    "host_header",
    "connect_timeout",
    "first_byte_timeout",
    "between_bytes_timeout",
    "probe",
    "max_connections",
    "wait_limit",
    "wait_timeout",
    "proxy_header",
    "preamble",
    "via",
    "authority",
];

/// Attributes of a probe, for advice.
const PROBE: &[&str] = &[
    "url",
    "request",
    "expected_response",
    "timeout",
    "interval",
    "window",
    "threshold",
    "initial",
    "expect_close",
];

/// Largest window of a probe: Varnish stores its results in 64 bits.
const WINDOW_MAX: u32 = 64;

impl Lowering<'_> {
    /// Lowers `probe name { ... }`, whose name is known from here on.
    pub(super) fn probe(&mut self, name: &Name, fields: &[Field]) {
        let number = self.parts.probes.len() as u32;
        let spec = self.probe_spec(fields, name.span).unwrap_or_default();
        self.parts.probes.push(spec);
        if &*name.text == "default" {
            self.default_probe = Some(number);
        } else {
            self.declare_one(name, SymbolKind::Probe(number));
        }
    }

    pub(super) fn backend(&mut self, name: &Name, fields: Option<&[Field]>) {
        let spec = match fields {
            Some(fields) => self.backend_spec(fields, name.span),
            None => None,
        };
        self.parts.backends.push((name.text.clone(), spec));
    }

    fn backend_spec(&mut self, fields: &[Field], span: SourceSpan) -> Option<BackendSpec> {
        let mut spec = BackendSpec::default();
        let before = self.report.errors();
        self.once(fields);
        let mut has_probe = false;
        for field in fields {
            let value = &field.value;
            match &*field.name.text {
                "host" => spec.host = self.text(field).unwrap_or_default(),
                "port" => spec.port = self.text(field).unwrap_or_default(),
                "path" if self.version < 41 => {
                    self.report
                        .error(field.name.span, "`.path` is not in VCL 4.0")
                        .help("begin the program with `vcl 4.1;`");
                }
                "path" => spec.path = self.path(field),
                "host_header" => spec.host_header = self.text(field),
                "connect_timeout" => spec.connect_timeout = self.seconds(field),
                "first_byte_timeout" => spec.first_byte_timeout = self.seconds(field),
                "between_bytes_timeout" => spec.between_bytes_timeout = self.seconds(field),
                "max_connections" => spec.max_connections = self.number(field).unwrap_or_default(),
                "proxy_header" => spec.proxy_header = self.proxy_header(field),
                "wait_limit" => spec.wait_limit = self.number(field),
                "wait_timeout" => spec.wait_timeout = self.seconds(field),
                "preamble" => spec.preamble = self.blob(field),
                "via" => spec.via = self.via(value, field.name.span),
                "authority" => spec.authority = self.authority(field),
                "probe" => {
                    has_probe = true;
                    spec.probe = self.probe_of(value, field.name.span);
                }
                _ => self.no_field(&field.name, "backend", BACKEND),
            }
        }
        if !has_probe {
            spec.probe = self.default_probe.map(|n| self.parts.probes[n as usize].clone());
        }
        self.located(fields, &mut spec, span);
        self.led(fields, &mut spec);
        (self.report.errors() == before).then_some(spec)
    }

    /// Lowers host, port and path.
    fn located(&mut self, fields: &[Field], spec: &mut BackendSpec, span: SourceSpan) {
        let field = |name: &str| fields.iter().find(|field| &*field.name.text == name);
        let host = field("host");
        match (host, field("path")) {
            (None, None) => {
                if self.report.has_errors() {
                    // The missing attribute may be the one that could not be read.
                    return;
                }
                self.report.error(span, "this backend has neither `.host` nor `.path`");
            }
            (Some(host), Some(path)) => {
                self.report
                    .error(path.name.span, "a backend has either `.host` or `.path`")
                    .label(host.name.span, "this is `.host`");
            }
            (None, Some(_)) => {}
            (Some(host), None) => {
                let loader = self.input.loader;
                let resolve = |name: &str| loader.resolve(name);
                match backend::locate(&spec.host, &spec.port, &resolve) {
                    Ok(addresses) => spec.addresses = addresses,
                    Err(reason) => {
                        let span = span_of(&host.value, host.name.span);
                        self.report
                            .error(span, format!("the backend's host has no address: {reason}"));
                    }
                }
            }
        }
    }

    fn path(&mut self, field: &Field) -> Option<Box<str>> {
        let path = self.text(field)?;
        // After `@` stands the name of an abstract socket (unix(7)).
        if !(path.starts_with('/') || path.starts_with('@') && path.len() > 1) {
            let span = span_of(&field.value, field.name.span);
            self.report
                .error(span, "the path of a socket must be absolute")
                .expected("`/...`, or `@...` for an abstract socket");
            return None;
        }
        Some(path)
    }

    /// `.via`: the backend through which connections are made.
    fn via(&mut self, value: &FieldValue, span: SourceSpan) -> Option<Box<BackendSpec>> {
        let FieldValue::Expr(Expr { kind: ExprKind::Name(name), .. }) = value else {
            self.report
                .error(span_of(value, span), "this is no backend")
                .expected("the name of a backend");
            return None;
        };
        let Some(SymbolKind::Backend(number)) = self.symbols.take(&name.text) else {
            let names: Vec<&str> =
                self.symbols.names(|kind| matches!(kind, SymbolKind::Backend(_))).collect();
            self.report
                .error(name.span, format!("there is no backend `{}`", name.text))
                .did_you_mean(&name.text, names);
            return None;
        };
        match self.parts.backends.get(number as usize) {
            Some((_, Some(proxy))) if proxy.via.is_some() => {
                self.report
                    .error(name.span, format!("`{}` has a `.via` of its own", name.text))
                    .note("a connection goes through one proxy at most");
                None
            }
            Some((_, Some(proxy))) => Some(Box::new(proxy.clone())),
            Some((_, None)) if self.report.has_errors() => None,
            Some((_, None)) => {
                self.report.error(name.span, format!("`{}` leads nowhere", name.text));
                None
            }
            None => {
                self.report
                    .error(name.span, format!("`{}` is declared further down", name.text))
                    .help("put it above the backends that are reached through it");
                None
            }
        }
    }

    /// `.authority`, without a port.
    fn authority(&mut self, field: &Field) -> Option<Box<str>> {
        let text = self.text(field)?;
        if address::numeric(&text).is_some() {
            let span = span_of(&field.value, field.name.span);
            self.report.error(span, "an address is no authority").expected("a host name");
            return None;
        }
        Some(text)
    }

    /// Completes a backend that is reached through another.
    fn led(&mut self, fields: &[Field], spec: &mut BackendSpec) {
        let Some(proxy) = spec.via.as_deref() else { return };
        spec.connect_timeout = spec.connect_timeout.or(proxy.connect_timeout);
        spec.first_byte_timeout = spec.first_byte_timeout.or(proxy.first_byte_timeout);
        spec.between_bytes_timeout = spec.between_bytes_timeout.or(proxy.between_bytes_timeout);
        if let Some(path) = fields.iter().find(|field| &*field.name.text == "path") {
            self.report
                .error(path.name.span, "a socket cannot be reached through another backend")
                .note("`.via` needs `.host`: the proxy connects to an address");
        }
    }

    fn proxy_header(&mut self, field: &Field) -> u8 {
        match self.number(field) {
            Some(n @ (1 | 2)) => n as u8,
            Some(_) => {
                let span = span_of(&field.value, field.name.span);
                self.report
                    .error(span, "this version of the PROXY protocol is unknown")
                    .expected("1 or 2");
                0
            }
            None => 0,
        }
    }

    /// Probe of a backend, by name or inline.
    fn probe_of(&mut self, value: &FieldValue, span: SourceSpan) -> Option<ProbeSpec> {
        match value {
            FieldValue::Probe(fields, span) => self.probe_spec(fields, *span),
            FieldValue::Expr(Expr { kind: ExprKind::Name(name), .. }) => {
                if &*name.text == "default" && self.default_probe.is_some() {
                    return self.default_probe.map(|n| self.parts.probes[n as usize].clone());
                }
                match self.symbols.take(&name.text) {
                    Some(SymbolKind::Probe(number)) => {
                        Some(self.parts.probes[number as usize].clone())
                    }
                    _ => {
                        let names: Vec<&str> = self
                            .symbols
                            .names(|kind| matches!(kind, SymbolKind::Probe(_)))
                            .collect();
                        self.report
                            .error(name.span, format!("there is no probe `{}`", name.text))
                            .did_you_mean(&name.text, names)
                            .note("a probe must be declared above the backends that use it");
                        None
                    }
                }
            }
            _ => {
                self.report
                    .error(span_of(value, span), "this is no probe")
                    .expected("the name of a probe, or `{ ... }`");
                None
            }
        }
    }

    fn probe_spec(&mut self, fields: &[Field], span: SourceSpan) -> Option<ProbeSpec> {
        let mut spec = ProbeSpec::default();
        let before = self.report.errors();
        self.once(fields);
        let field = |name: &str| fields.iter().find(|field| &*field.name.text == name);
        for field in fields {
            match &*field.name.text {
                "url" => spec.url = self.text(field).unwrap_or_default(),
                "request" => spec.request = self.request(field),
                "expected_response" => spec.expected_response = self.expected_response(field),
                "timeout" => spec.timeout = self.seconds(field).unwrap_or_default(),
                "interval" => spec.interval = self.seconds(field).unwrap_or_default(),
                "window" => spec.window = self.number(field).unwrap_or_default(),
                "threshold" => spec.threshold = self.number(field).unwrap_or_default(),
                "initial" => spec.initial = self.number(field),
                "expect_close" => spec.expect_close = self.switch(field).unwrap_or(true),
                _ => self.no_field(&field.name, "probe", PROBE),
            }
        }
        if let (Some(url), Some(request)) = (field("url"), field("request")) {
            self.report
                .error(request.name.span, "a probe has either `.url` or `.request`")
                .label(url.name.span, "this is `.url`");
        }
        match (field("window"), field("threshold")) {
            (Some(window), None) => {
                self.report
                    .error(window.name.span, "`.window` without `.threshold`")
                    .note("of so many probes, how many must be good?");
            }
            (Some(window), Some(_)) if spec.window > WINDOW_MAX => {
                self.report.error(window.name.span, format!("`.window` is at most {WINDOW_MAX}"));
            }
            (Some(_), Some(threshold)) if spec.threshold > spec.window => {
                self.report
                    .error(threshold.name.span, "`.threshold` cannot be greater than `.window`");
            }
            // Without `.window`, a larger threshold enlarges the default window.
            (None, Some(threshold)) if spec.threshold > WINDOW_MAX => {
                self.report
                    .error(threshold.name.span, format!("`.threshold` is at most {WINDOW_MAX}"));
            }
            (None, Some(_)) => spec.window = spec.window.max(spec.threshold),
            _ => {}
        }
        if self.report.errors() != before {
            return None;
        }
        debug_assert!(spec.window <= WINDOW_MAX, "checked above, at {span:?}");
        Some(spec)
    }

    fn expected_response(&mut self, field: &Field) -> u16 {
        match self.number(field) {
            Some(status @ 100..=999) => status as u16,
            Some(_) => {
                let span = span_of(&field.value, field.name.span);
                self.report.error(span, "a status has three digits").expected("100 to 999");
                200
            }
            None => 200,
        }
    }

    /// `.request`: each string is a line; an empty line ends them.
    fn request(&mut self, field: &Field) -> Option<Box<[u8]>> {
        let mut out = Vec::new();
        match &field.value {
            FieldValue::Strings(lines) => {
                for (line, _) in lines {
                    out.extend_from_slice(line);
                    out.extend_from_slice(b"\r\n");
                }
            }
            FieldValue::Expr(Expr { kind: ExprKind::String(line), .. }) => {
                out.extend_from_slice(line);
                out.extend_from_slice(b"\r\n");
            }
            other => {
                self.report
                    .error(span_of(other, field.name.span), "`.request` wants strings")
                    .expected("the lines of a request, each in quotes");
                return None;
            }
        }
        out.extend_from_slice(b"\r\n");
        Some(out.into())
    }

    fn text(&mut self, field: &Field) -> Option<Box<str>> {
        let bytes = match &field.value {
            FieldValue::Expr(Expr { kind: ExprKind::String(bytes), .. }) => bytes,
            FieldValue::Strings(lines) if lines.len() == 1 => &lines[0].0,
            other => {
                self.wants(field, other, "a string in quotes");
                return None;
            }
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(text.into()),
            Err(_) => {
                self.wants(field, &field.value, "UTF-8");
                None
            }
        }
    }

    fn seconds(&mut self, field: &Field) -> Option<f64> {
        match &field.value {
            FieldValue::Expr(Expr { kind: ExprKind::Duration(seconds), .. }) => Some(*seconds),
            FieldValue::Expr(Expr { kind: ExprKind::Minutes(minutes), .. }) => Some(minutes * 60.0),
            other => {
                self.wants(field, other, "a duration with its unit, such as `5s`");
                None
            }
        }
    }

    /// A whole number; a number too large is the largest possible.
    fn number(&mut self, field: &Field) -> Option<u32> {
        match &field.value {
            FieldValue::Expr(Expr { kind: ExprKind::Int(n), .. }) => {
                Some(u32::try_from(*n).unwrap_or(u32::MAX))
            }
            other => {
                self.wants(field, other, "a whole number");
                None
            }
        }
    }

    fn switch(&mut self, field: &Field) -> Option<bool> {
        match &field.value {
            FieldValue::Expr(Expr { kind: ExprKind::Name(name), .. })
                if matches!(&*name.text, "true" | "false") =>
            {
                Some(&*name.text == "true")
            }
            other => {
                self.wants(field, other, "`true` or `false`");
                None
            }
        }
    }

    fn blob(&mut self, field: &Field) -> Option<bytes::Bytes> {
        match &field.value {
            FieldValue::Expr(Expr { kind: ExprKind::Blob(bytes), .. }) => {
                Some(bytes::Bytes::copy_from_slice(bytes))
            }
            other => {
                self.wants(field, other, "a blob in Base64 between colons: `:AAEC:`");
                None
            }
        }
    }

    fn wants(&mut self, field: &Field, value: &FieldValue, what: &str) {
        let span = span_of(value, field.name.span);
        self.report
            .error(span, format!("`.{}` has a value of the wrong kind", field.name.text))
            .expected(what);
    }

    fn no_field(&mut self, name: &Name, of: &str, known: &'static [&'static str]) {
        let entry = self
            .report
            .error(name.span, format!("a {of} has no attribute `.{}`", name.text))
            .did_you_mean(&name.text, known.iter().copied());
        entry.note(format!("its attributes: {}", known.join(", ")));
    }

    /// Reports repeated attributes.
    fn once(&mut self, fields: &[Field]) {
        for (at, field) in fields.iter().enumerate() {
            let before = fields[..at].iter().find(|other| other.name.text == field.name.text);
            if let Some(before) = before {
                let span = before.name.span;
                self.report
                    .error(field.name.span, format!("`.{}` is set twice", field.name.text))
                    .label(span, "first here");
            }
        }
    }

    /// Chooses the default backend: `default`, or else the first one.
    pub(super) fn default_backend(&mut self) {
        let backends = &self.parts.backends;
        let named = backends.iter().position(|(name, _)| &**name == "default");
        match (named, backends.first()) {
            (Some(number), _) => {
                self.parts.default_backend = number as u32;
                self.symbols.take("default");
            }
            (None, Some((name, _))) => {
                let name = name.clone();
                self.symbols.take(&name);
            }
            (None, None) if !self.report.has_errors() => {
                self.report
                    .error_nowhere("the program has no backend")
                    .help("declare one, or write `backend default none;`");
            }
            (None, None) => {}
        }
    }
}

fn span_of(value: &FieldValue, otherwise: SourceSpan) -> SourceSpan {
    match value {
        FieldValue::Expr(e) => e.span,
        FieldValue::Strings(lines) => lines.first().map_or(otherwise, |(_, span)| *span),
        FieldValue::Probe(_, span) => *span,
    }
}
