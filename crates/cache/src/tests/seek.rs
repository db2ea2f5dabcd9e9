//! Readers that seek, in bodies of every state.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// An external body: each read gives a few bytes, at its second poll.
#[derive(Debug, Default)]
struct SlowBody {
    bytes: Bytes,
    /// Bytes from this offset on are lost.
    lost_from: u64,
    /// Too many reads are under way.
    is_full: AtomicBool,
    reads: AtomicUsize,
}

impl SlowBody {
    const PIECE: usize = 1000;

    fn of(bytes: Vec<u8>) -> Arc<Self> {
        let bytes = Bytes::from(bytes);
        Arc::new(Self { bytes, lost_from: u64::MAX, ..Self::default() })
    }
}

impl ExternalBody for SlowBody {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader> {
        Box::new(SlowReading { slow: self, at: 0, is_asked: false })
    }

    fn open_within(self: Arc<Self>) -> Result<Box<dyn ExternalBodyReader>, BodyOpenError> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(BodyOpenError::Full),
            false if self.lost_from == 0 => Err(BodyOpenError::Gone),
            false => Ok(self.open()),
        }
    }

    fn memory(&self) -> u64 {
        500
    }
}

#[derive(Debug)]
struct SlowReading {
    slow: Arc<SlowBody>,
    at: usize,
    is_asked: bool,
}

impl ExternalBodyReader for SlowReading {
    fn seek(&mut self, offset: u64) {
        (self.at, self.is_asked) = (offset as usize, false);
    }

    fn poll_next(
        &mut self,
        _: Option<&Arc<base::Account>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        if !std::mem::replace(&mut self.is_asked, true) {
            self.slow.reads.fetch_add(1, Ordering::Relaxed);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_asked = false;
        if self.at as u64 >= self.slow.lost_from {
            return Poll::Ready(Err(IncompleteBody));
        }
        let all = &self.slow.bytes;
        let end = all.len().min(self.at + SlowBody::PIECE);
        let data = all.slice(self.at..end);
        self.at = end;
        Poll::Ready(Ok(Some(data)))
    }
}

/// An object with this body.
fn kept(cache: &Arc<Cache>, name: &str, body: Arc<SlowBody>) -> Arc<Object> {
    lead(begin(cache, name)).store_elsewhere(permit(), &head(Some(body.length())), None, body).0
}

#[test]
fn a_body_elsewhere_is_read_from_where_it_is_sought() {
    let cache = cache();
    let slow = SlowBody::of(pattern(10_000));
    let object = kept(&cache, "/a", Arc::clone(&slow));
    assert_eq!(object.length(), Some(10_000));
    assert!(object.whole().is_none() && !object.is_filling());
    let mut reader = object.reader();
    assert_eq!(read_once(&mut reader), None, "it is being read");
    // That read is cancelled.
    reader.seek(9_500);
    assert!(read_all(reader).expect("complete") == pattern(10_000)[9_500..]);
    assert_eq!(slow.reads.load(Ordering::Relaxed), 2);
    assert!(read_all(object.reader()).expect("complete") == pattern(10_000));
    for beyond in [10_000, 10_001, u64::MAX] {
        let mut reader = object.reader();
        reader.seek(beyond);
        assert_eq!(read_once(&mut reader), Some(Ok(None)), "{beyond}");
    }
}

#[test]
fn a_body_elsewhere_that_is_lost_breaks_off_where_it_is() {
    let cache = cache();
    let bytes = Bytes::from(pattern(5000));
    let slow = SlowBody { bytes, lost_from: 2000, ..SlowBody::default() };
    let mut reader = kept(&cache, "/a", Arc::new(slow)).reader();
    for from in [0, 1000] {
        let data = block_on(reader.next()).expect("there").expect("not the end");
        assert!(data == pattern(5000)[from..from + 1000]);
    }
    assert_eq!(block_on(reader.next()), Err(IncompleteBody));
}

#[test]
fn a_body_elsewhere_that_many_read_is_read_by_who_wants_it_all_the_same() {
    let slow = SlowBody::of(pattern(3000));
    let object = kept(&cache(), "/a", Arc::clone(&slow));
    let before = object.reader();
    slow.is_full.store(true, Ordering::Relaxed);
    let mut after = object.reader();
    assert!(!before.is_beyond() && after.is_beyond() && !after.is_behind());
    let lost = SlowBody { bytes: Bytes::from(pattern(3000)), ..SlowBody::default() };
    let lost = kept(&cache(), "/a", Arc::new(lost)).reader();
    assert!(lost.is_behind() && !lost.is_beyond());
    after.seek(1500);
    for (reader, from) in [(before, 0), (after, 1500)] {
        assert!(read_all(reader).expect("complete") == pattern(3000)[from..]);
    }
}

#[test]
fn what_is_stored_elsewhere_is_found_until_its_body_is_lost() {
    let cache = cache();
    let slow = SlowBody::of(pattern(3000));
    let fetching = lead(begin(&cache, "/a"));
    let FetchDecision::Wait(ticket) = begin(&cache, "/a") else { panic!("it is being fetched") };
    let body = Arc::clone(&slow) as Arc<dyn ExternalBody>;
    let (object, refused) = fetching.store_elsewhere(permit(), &head(Some(3000)), None, body);
    assert_eq!(refused, None);
    let WaiterOutcome::Ready(got) = block_on(ticket) else { panic!("there is a response") };
    assert!(Arc::ptr_eq(&got, &object));
    let stored = found(&cache, "/a").expect("it is stored");
    assert!(read_all(stored.reader()).expect("complete") == pattern(3000));
    // The object that a 304 makes of it shares the body, and is removed with it.
    let confirmed =
        lead(cache.begin_refresh(&key("/a"), &stored).map(FetchDecision::Lead).expect("one"))
            .freshen(permit(), &stored, head(None), None);
    assert!(confirmed.elsewhere().is_some() && found(&cache, "/a").is_some());
    cache.withdraw(key("/a").hash(), &object);
    assert!(found(&cache, "/a").is_none());
    cache.check();
    drop((object, got, stored, confirmed));
    assert_eq!(Arc::strong_count(&slow), 1);
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn what_is_invalidated_while_it_is_fetched_is_not_stored_elsewhere() {
    let cache = cache();
    let fetching = lead(begin(&cache, "/a"));
    cache.invalidate(&key("/a"));
    let body = SlowBody::of(pattern(10));
    let (object, refused) = fetching.store_elsewhere(permit(), &head(Some(10)), None, body);
    assert_eq!(refused, Some(StoreRefusal::Invalidated));
    assert!(found(&cache, "/a").is_none());
    assert!(read_all(object.reader()).expect("complete") == pattern(10));
}

#[test]
fn an_external_body_stays_in_place_under_a_new_head_and_returns_its_memory() {
    let cache = cache();
    let slow = SlowBody::of(pattern(3000));
    let old = kept(&cache, "/a", Arc::clone(&slow));
    let refresh = cache.begin_refresh(&key("/a"), &old).expect("no other reader");
    let new = refresh.freshen(permit(), &old, head(None), None);
    drop(old);
    assert_eq!((new.length(), new.is_filling()), (Some(3000), false));
    assert!(read_all(new.reader()).expect("complete") == pattern(3000));
    assert!(found(&cache, "/a").is_some_and(|found| Arc::ptr_eq(&found, &new)));
    drop(new);
    cache.clear();
    assert_eq!(Arc::strong_count(&slow), 1);
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_window_does_not_go_back_to_what_it_has_let_go() {
    let (mut writer, mut reader) = BodyWindow::window(window_limit(1 << 20));
    for piece in [&b"abc"[..], b"def"] {
        assert_eq!(writer.push(piece), PushOutcome::Ok);
        assert_eq!(block_on(reader.next()), Ok(Some(Bytes::from_static(piece))));
    }
    reader.seek(4);
    assert_eq!(block_on(reader.next()), Err(IncompleteBody));
}

/// An event of a body or one of its readers.
#[derive(Clone, Debug)]
enum Op {
    Push(usize),
    Seek(usize, u64),
    Read(usize),
    Finish,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Compared with a plain slice and an offset for each reader.
    #[test]
    fn readers_that_seek_see_the_body_from_there(
        declared in any::<bool>(),
        ops in proptest::collection::vec(
            prop_oneof![
                3 => (1..90_000_usize).prop_map(Op::Push),
                3 => (0..3_usize, 0..1_200_000_u64).prop_map(|(who, at)| Op::Seek(who, at)),
                6 => (0..3_usize).prop_map(Op::Read),
                1 => Just(Op::Finish),
            ],
            1..80,
        ),
    ) {
        let cache = cache();
        let pushes = |ops: &[Op]| ops.iter().map(|op| match op {
            Op::Push(bytes) => *bytes,
            _ => 0,
        }).sum::<usize>();
        // The first end counts.
        let end = ops.iter().position(|op| matches!(op, Op::Finish)).unwrap_or(ops.len());
        let body = pattern(pushes(&ops[..end]));
        prop_assume!(body.len() as u64 <= MIB);
        let length = declared.then_some(body.len() as u64);
        let mut filling = Some(lead(begin(&cache, "/a")).store(permit(), head(length), None));
        let object = Arc::clone(filling.as_ref().expect("it fills").object());
        let mut readers: Vec<_> = (0..3).map(|_| (object.reader(), 0)).collect();
        let mut come = 0;
        for op in ops {
            match (op, &mut filling) {
                (Op::Push(bytes), Some(filling)) => {
                    prop_assert_eq!(filling.push(&body[come..come + bytes]), PushOutcome::Ok);
                    come += bytes;
                }
                (Op::Finish, open @ Some(_)) => {
                    prop_assert!(open.take().is_some_and(ObjectWriter::finish));
                }
                (Op::Seek(who, to), _) => {
                    readers[who].0.seek(to);
                    readers[who].1 = to as usize;
                }
                (Op::Read(who), open) => {
                    let (reader, at) = &mut readers[who];
                    match read_once(reader) {
                        Some(Ok(Some(data))) => {
                            prop_assert!(!data.is_empty() && *at + data.len() <= come);
                            prop_assert!(data == body[*at..*at + data.len()]);
                            *at += data.len();
                        }
                        Some(Ok(None)) => prop_assert!(open.is_none() && *at >= body.len()),
                        None => prop_assert!(open.is_some() && *at >= come),
                        Some(Err(IncompleteBody)) => prop_assert!(false, "nothing broke off"),
                    }
                }
                (Op::Push(_) | Op::Finish, None) => {}
            }
        }
    }
}
