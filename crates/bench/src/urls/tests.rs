//! Tests of files of URLs and of orders.

use proptest::prelude::*;

use super::*;

fn urls(list: &List) -> Vec<String> {
    list.sequence().iter().map(|at| list.asks()[*at as usize].url.clone()).collect()
}

#[test]
fn a_file_keeps_its_order_and_spreads_weights() {
    let list = from_text("f", b"# note\n/a\n/b 3\r\n\n/c\n");
    assert_eq!(urls(&list), ["/b", "/a", "/b", "/c", "/b"]);
    assert_eq!(list.faults, UnreadLines::default());
}

#[test]
fn siege_files_have_variables_methods_and_bodies() {
    let list = from_text(
        "f",
        b"HOST = h:80\nhttp://$(HOST)/\nhttp://${HOST}/p POST a=1&b=$2\nHEAD http://$HOST/x\nPOST /f <form.txt\n",
    );
    let got: Vec<_> = list
        .asks()
        .iter()
        .map(|ask| (ask.method.as_str(), ask.url.as_str(), ask.body.clone()))
        .collect();
    assert_eq!(
        got,
        [
            ("GET", "http://h:80/", Body::None),
            ("POST", "http://h:80/p", Body::Text("a=1&b=$2".to_owned())),
            ("HEAD", "http://h:80/x", Body::None),
            ("POST", "/f", Body::File("form.txt".into())),
        ]
    );
}

#[test]
fn unreadable_lines_are_reported_by_number_and_the_others_stay() {
    let list = from_text("f", b"/a\nftp://h/\nhttp://\n/b 0\n/c what\nhttp://$(NO)/\n\xff\n/d\n");
    assert_eq!(urls(&list), ["/a", "/d"]);
    let lines: Vec<u64> = list.faults.first.iter().map(|fault| fault.line).collect();
    assert_eq!((list.faults.unread, lines), (6, vec![2, 3, 4, 5, 6, 7]));
    assert!(list.faults.to_string().starts_with("f:2: a URL begins with"), "{}", list.faults);
}

#[test]
fn a_shuffle_asks_each_as_often_as_the_source_and_repeats_for_its_seed() {
    let list = from_text("f", b"/a\n/b 3\n/c 4\n");
    let picks = |order| Picks::new(&list, order).take(80).collect::<Vec<u32>>();
    let shuffled = picks(RequestOrder::Shuffle(7));
    assert_eq!(shuffled, picks(RequestOrder::Shuffle(7)));
    for pass in shuffled.chunks(8) {
        let mut pass = pass.to_vec();
        pass.sort_unstable();
        assert_eq!(pass, [0, 1, 1, 1, 2, 2, 2, 2]);
    }
    assert_ne!(shuffled, picks(RequestOrder::Sequence));
    assert_eq!(picks(RequestOrder::Random(7)), picks(RequestOrder::Random(7)));
    assert_eq!(Picks::new(&List::default(), RequestOrder::Random(1)).next(), None);
}

proptest! {
    #[test]
    fn every_line_is_a_request_a_fault_or_nothing(text in "([ -~]{0,30}\n){0,8}") {
        let list = from_text("f", text.as_bytes());
        prop_assert!(list.faults.unread <= text.lines().count() as u64);
        prop_assert!(list.sequence().iter().all(|at| (*at as usize) < list.asks().len()));
    }
}
