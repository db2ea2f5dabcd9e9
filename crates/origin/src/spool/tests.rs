//! Tests of spooled bodies in memory and in files.

use std::fs;

use base::MemoryBudget;

use super::*;

/// A body in pieces of a given size.
struct Pieces(Vec<u8>, usize);

impl BodySource for Pieces {
    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        let rest = self.0.split_off(self.1.min(self.0.len()));
        let piece = std::mem::replace(&mut self.0, rest);
        Poll::Ready(Ok((!piece.is_empty()).then(|| piece.into())))
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("larder-spool-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn spooling(folder: &Folder, memory_bytes: u64, file_bytes: u64) -> SpoolLimits {
    let gone = folder.0.join("not there");
    let folders = vec![gone, folder.0.clone()];
    SpoolLimits { memory_bytes, file_bytes, space: Arc::default(), folders }
}

async fn take(
    spooling: &SpoolLimits,
    body: &[u8],
    piece: usize,
    account: Option<&Arc<Account>>,
) -> Result<SpooledBody, RequestBodyError> {
    let counters = Counters::default();
    let body = RequestBody::Stream(Box::new(Pieces(body.to_vec(), piece)));
    spooling.take(body, account, &counters).await
}

async fn read(whole: &mut SpooledBody) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = poll_fn(|cx| whole.poll_data(cx)).await.expect("a body") {
        all.extend_from_slice(&piece);
    }
    all
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn bodies_of_all_lengths_come_back_as_they_were() {
    let folder = Folder::new("lengths");
    let spooling = spooling(&folder, 100_000, 1_000_000);
    for len in [0, 1, 99_999, 100_000, 100_001, 231_072, 231_073, 1_000_000] {
        for piece in [999, 65_536, 300_000] {
            let body = pattern(len);
            let mut whole = take(&spooling, &body, piece, None).await.expect("room");
            assert_eq!(whole.len(), len as u64);
            assert_eq!(whole.file.is_some(), len > 100_000, "{len}");
            assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 0, "it has no name");
            assert!(read(&mut whole).await == body, "{len} in {piece}");
        }
    }
    assert_eq!(spooling.space.0.load(Ordering::Relaxed), 0, "all of it is given back");
}

#[tokio::test]
async fn files_of_all_bodies_have_one_bound() {
    let folder = Folder::new("bound");
    let spooling = spooling(&folder, 6_000, 10_000);
    let too_large = take(&spooling, &pattern(10_001), 500, None).await.err();
    let limit = Limit::SpoolFileBytes;
    assert!(matches!(too_large, Some(RequestBodyError::TooLarge(own)) if own == limit));
    let first = take(&spooling, &pattern(9_000), 500, None).await.expect("room");
    let second = take(&spooling, &pattern(9_000), 500, None).await.err();
    assert!(matches!(second, Some(RequestBodyError::NoFileSpace)), "{second:?}");
    drop(first);
    assert_eq!(spooling.space.0.load(Ordering::Relaxed), 0);
    take(&spooling, &pattern(9_000), 500, None).await.expect("room again");
}

#[tokio::test]
async fn without_files_memory_is_the_bound() {
    let folder = Folder::new("none");
    let spooling = spooling(&folder, 1_000, 0);
    take(&spooling, &pattern(1_000), 300, None).await.expect("room");
    let more = take(&spooling, &pattern(1_001), 300, None).await.err();
    assert!(matches!(more, Some(RequestBodyError::TooLarge(Limit::SpoolBytes))), "{more:?}");
}

#[tokio::test]
async fn a_body_holds_memory_for_what_is_in_memory() {
    let folder = Folder::new("memory");
    let account = Account::open(&MemoryBudget::new(1 << 30, 1 << 29), 1 << 20);
    let spooling = spooling(&folder, 50_000, 1 << 30);
    let whole = take(&spooling, &pattern(3_000_000), 10_000, Some(&account)).await;
    let mut whole = whole.expect("it is in a file");
    assert!(account.held() <= 3 * BATCH_BYTES, "{}", account.held());
    assert!(read(&mut whole).await == pattern(3_000_000));
    drop(whole);
    assert_eq!(account.held(), 0);
}

#[tokio::test]
async fn where_memory_is_full_a_file_takes_over() {
    let folder = Folder::new("full");
    let account = Account::open(&MemoryBudget::new(1 << 30, 1 << 29), 200_000);
    let spooling = spooling(&folder, 1 << 20, 1 << 30);
    let mut whole = take(&spooling, &pattern(900_000), 10_000, Some(&account)).await.expect("room");
    assert!(whole.file.is_some());
    assert!(read(&mut whole).await == pattern(900_000));
    let without = SpoolLimits { file_bytes: 0, ..spooling };
    let error = take(&without, &pattern(900_000), 10_000, Some(&account)).await.err();
    assert!(matches!(error, Some(RequestBodyError::NoMemory)), "{error:?}");
}

#[tokio::test]
async fn where_no_file_can_be_made_the_error_says_why() {
    let folder = Folder::new("gone");
    let spooling =
        SpoolLimits { folders: vec![folder.0.join("no")], ..spooling(&folder, 10, 1_000) };
    let error = take(&spooling, &pattern(11), 300, None).await.err();
    let Some(RequestBodyError::File(error)) = error else { panic!("{error:?}") };
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!(spooling.space.0.load(Ordering::Relaxed), 0);
}
