//! Log lines, metrics and failed starts as the handle of a daemon reads them.

use super::*;

#[test]
fn listener_lines_are_read_with_their_role() {
    let data = "127.0.0.1:8080".parse().expect("an address");
    assert_eq!(listener("listening on 127.0.0.1:8080"), Some((false, data)));
    assert_eq!(listener("larder: admin listening on 127.0.0.1:8080 (http)"), Some((true, data)));
    assert_eq!(listener("started"), None);
}

#[test]
fn listeners_of_a_config_are_counted_by_address() {
    assert_eq!(listeners("listen = [\"127.0.0.1:0\", \"127.0.0.1:0\"]\n"), 2);
    assert_eq!(listeners("listen = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n"), 2);
    assert_eq!(listeners("[[site]]\n"), 1);
}

#[test]
fn samples_are_summed_by_name_and_label() {
    let text = "# HELP a x\na{core=\"0\"} 2\na{core=\"1\"} 3\nab 7\na 1\n";
    assert_eq!(sum_of(text, "a", "core"), 5.0);
    assert_eq!(sum_of(text, "a", ""), 6.0);
}

#[test]
fn a_child_that_ends_instead_of_listening_is_an_error_with_its_words() {
    let shell = Path::new("/bin/sh");
    // `sh serve --config ...` ends with an error: there is no script called `serve`.
    let error = Daemon::start_binary(shell, "", &[]).expect_err("no larder");
    assert!(error.to_string().contains("serve"), "{error}");
}
