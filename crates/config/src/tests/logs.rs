//! Tests of `access_log` and `error_log`.

use base::logging::Priority;
use insta::assert_snapshot;

use super::{load, said};
use crate::model::{AccessLog, ErrorLog, LogFormat, LogTarget};

const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"http://a\"\n";

fn format(text: &str) -> LogFormat {
    let file = format!("access_log = {{ format = {text} }}\n{SITE}");
    load(&file).access_log.expect("a log").format
}

#[test]
fn formats_are_words_or_lines_of_ones_own() {
    let custom = |text: &str, json| LogFormat::Custom { text: text.to_owned(), json };
    assert_eq!(format("\"combined\""), LogFormat::Combined);
    assert_eq!(format("\"json\""), LogFormat::Json);
    assert_eq!(format("'%h \"%r\" $status'"), custom("%h \"%r\" $status", false));
    assert_eq!(format("\"$host\", escape = \"json\""), custom("$host", true));
    let own = load(&format!("access_log = {{ format = \"%h\", secrets = true }}\n{SITE}"));
    let log = AccessLog { target: LogTarget::Stdout, format: custom("%h", false), secrets: true };
    assert_eq!(own.access_log, Some(log));
}

#[test]
fn a_mistake_in_a_format_is_named_at_its_place() {
    let of = |log: &str| said(&format!("{log}\n{SITE}"));
    assert_snapshot!(of("[access_log]\nformat = '%h $host \"$hos\" %{X}i'"), @r#"
    error: `$hos` is not known
     --> larder.toml:2:21
      |
    2 | format = '%h $host "$hos" %{X}i'
      |                     ^^^^
      |
      = help: did you mean `$host`?
    "#);
    // A part written with escapes is located if its text occurs unchanged.
    assert_snapshot!(of("[access_log]\nformat = \"%h \\\"%{Varnish:hitmis}x\\\" %s\""), @r#"
    error: `%{Varnish:hitmis}x` is not known
     --> larder.toml:2:16
      |
    2 | format = "%h \"%{Varnish:hitmis}x\" %s"
      |                ^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `%{Varnish:hitmiss}x`?
    "#);
    assert_snapshot!(of("[access_log]\nformat = \"combind\""), @r#"
    error: `format` takes "combined", "json" or a format such as '%h $status'
     --> larder.toml:2:10
      |
    2 | format = "combind"
      |          ^^^^^^^^^
      |
      = help: did you mean "combined"?
    "#);
    assert_snapshot!(of("[access_log]\nformat = \"%h \\u0025y\""), @r#"
    error: `%y` is no formatter
     --> larder.toml:2:10
      |
    2 | format = "%h \u0025y"
      |          ^^^^^^^^^^^^
      |
      = help: there are %a %b %B %D %H %h %I %l %m %O %q %r %S %s %t %T %U %u %V %v
    "#);
}

#[test]
fn the_error_log_goes_to_a_file_or_a_syslog_daemon_from_a_level_on() {
    let of = |log: &str| load(&format!("error_log = {log}\n{SITE}")).error_log;
    assert_eq!(load(SITE).error_log, ErrorLog { target: None, level: Priority::Debug });
    assert_eq!(of("\"stderr\""), ErrorLog::default());
    let target = Some(LogTarget::File("/var/log/larder/error.log".into()));
    let log = ErrorLog { target, level: Priority::Debug };
    assert_eq!(of("\"/var/log/larder/error.log\""), log);
    assert_eq!(of("\"syslog\"").target, Some(LogTarget::SyslogPath("/dev/log".into())));
    let of = of("{ path = \"syslog:127.0.0.1\", level = \"warn\" }");
    assert_eq!(of.level, Priority::Warn);
    assert!(matches!(of.target, Some(LogTarget::SyslogAddress(_))));
}

#[test]
fn what_the_error_log_cannot_be_is_said() {
    for (log, expected) in [
        ("\"stdout\"", "`error_log` takes \"stderr\", \"syslog\" or an absolute path"),
        ("\"stder\"", "did you mean \"stderr\"?"),
        ("\"error.log\"", "an absolute path"),
        ("{ level = \"wran\" }", "did you mean \"warn\"?"),
        ("{ path = \"/a\", levle = \"warn\" }", "did you mean `level`?"),
    ] {
        let told = said(&format!("error_log = {log}\n{SITE}"));
        assert!(told.contains(expected), "{log}: {told}");
    }
}
