//! Tests of failing disks, on file systems of their own: full, unreadable, read-only. Every client
//! gets a correct response, and purges persist.

use crate::support;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::process::Signal;
use support::console::Ask;
use support::disked::{Disked, Policy};
use support::folder::Folder;
use support::system::run;
use support::{PATIENCE, eventually, pattern};
use testkit::origin::Script;

/// A volume that failed for a time is tried again after a minute.
const AGAIN: Duration = Duration::from_secs(90);

/// Number of pages: more than memory can store.
const PAGES: usize = 150;

/// A file system on a loop device, removed with its test.
struct Mount {
    device: String,
    folder: Folder,
}

impl Mount {
    /// ext4 that becomes read-only at its first error; `None` if it cannot be made.
    fn ext4(bytes: u64) -> Option<Self> {
        let folder = Folder::new();
        let image = folder.path().join("image");
        File::create(&image).and_then(|file| file.set_len(bytes)).expect("an image");
        fs::create_dir(folder.path().join("mount")).expect("a folder");
        let device = run("losetup", &["--find", "--show", image.to_str()?])?;
        let mount = Self { device, folder };
        run("mkfs.ext4", &["-q", "-F", "-m", "0", &mount.device])?;
        let at = mount.at();
        run("mount", &["-o", "errors=remount-ro", &mount.device, at.to_str()?])?;
        Some(mount)
    }

    fn at(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// The directory of the cache.
    fn disk(&self) -> PathBuf {
        self.at().join("disk")
    }

    /// Leaves no byte free.
    fn fill(&self) {
        let mut file = File::create(self.filler()).expect("a file");
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn filler(&self) -> PathBuf {
        self.at().join("filler")
    }

    /// Cuts the device: behind its first `bytes` nothing can be read or written, except in the
    /// kernel's page cache.
    fn cut(&self, bytes: u64) {
        // Unwritten pages could never be dropped.
        self.files().for_each(|file| file.sync_all().expect("it is written"));
        let image = OpenOptions::new().write(true).open(self.folder.path().join("image"));
        image.expect("the image").set_len(bytes).expect("it is cut");
        self.forget();
    }

    /// Drops the kernel's cached pages of the cache's files, as far as possible.
    fn forget(&self) {
        let forget = |file: File| fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
        self.files().for_each(forget);
    }

    fn files(&self) -> impl Iterator<Item = File> {
        let files = fs::read_dir(self.disk()).expect("files");
        files.map(|file| File::open(file.expect("a file").path()).expect("it opens"))
    }

    /// Makes the file system find an error.
    fn break_down(&self) {
        let name = Path::new(&self.device).file_name().expect("a device").to_str().expect("text");
        fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "x").expect("it breaks down");
        let probe = File::create(self.at().join("probe"));
        assert!(probe.is_err(), "the file system is read-only");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["--lazy", &self.at().display().to_string()]);
        run("losetup", &["--detach", &self.device]);
    }
}

/// A daemon with little memory over a mount, and the pages that clients expect.
struct Stage {
    disked: Disked,
    versions: Vec<u64>,
    // After the daemon, which has files open there.
    mount: Mount,
}

fn body(page: usize, version: u64) -> Vec<u8> {
    let mut body = pattern(100_000 + 1_500 * page);
    body.extend(format!(" {page} {version}").bytes());
    body
}

impl Stage {
    async fn start() -> Option<Self> {
        let Some(mount) = Mount::ext4(330 << 20) else {
            eprintln!("skipped: no file system can be made and mounted");
            return None;
        };
        let top = "memory = { size = \"16MiB\" }";
        let disked = Disked::start_at(Policy::Declared, top, &mount.disk(), Folder::new()).await;
        let mut stage = Self { disked, versions: vec![0; PAGES], mount };
        (0..PAGES).for_each(|page| stage.change(page));
        for _ in 0..2 {
            stage.ask_for_all().await;
        }
        assert!(stage.figure("records").await > 0);
        Some(stage)
    }

    /// The origin serves another version of a page from now on.
    fn change(&mut self, page: usize) {
        self.versions[page] += 1;
        let body = body(page, self.versions[page]);
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let script = Script::respond([head.as_bytes(), &body].concat());
        self.disked.origin.on(&format!("/{page}"), script);
    }

    /// Requests each page twice; each response is the page's newest version.
    async fn ask_for_all(&self) {
        for (page, version) in self.versions.iter().enumerate() {
            for _ in 0..2 {
                let reply = self.disked.get(&format!("/{page}")).await;
                assert_eq!(reply.status, 200, "/{page}");
                assert!(reply.body == body(page, *version), "/{page} is not version {version}");
            }
        }
    }

    /// Changes a page and purges it: either that lasts, or the response says that it will not.
    async fn purge(&mut self, page: usize) -> bool {
        self.change(page);
        let reply = self.disked.ask("PURGE", &format!("/{page}"), "").await;
        assert!([200, 503].contains(&reply.status), "{} {}", reply.status, reply.text());
        reply.status == 200
    }

    async fn figure(&self, name: &str) -> u64 {
        self.disked.metric(&format!("larder_disk_volume_{name}")).await
    }

    /// Waits until the volume is in use again, and stores new pages.
    async fn is_used_again(&mut self) {
        let started = Instant::now();
        let puts = self.figure("puts_total").await;
        while self.figure("up").await == 0 || self.figure("puts_total").await == puts {
            assert!(started.elapsed() < AGAIN + PATIENCE, "the volume is not used again");
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.purge(0).await;
            self.ask_for_all().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_file_system_costs_no_client_a_response_and_is_used_again_when_it_has_space() {
    let Some(mut stage) = Stage::start().await else { return };
    stage.mount.fill();
    let mut lasting = Vec::new();
    for round in 0..20 {
        let page = round * 7 % PAGES;
        if stage.purge(page).await {
            lasting.push(page);
        }
        stage.ask_for_all().await;
    }
    stage.disked.stop(Signal::KILL).await;
    stage.disked.begin().await;
    for page in lasting {
        let reply = stage.disked.get(&format!("/{page}")).await;
        assert!(reply.body == body(page, stage.versions[page]), "/{page} is back");
    }
    fs::remove_file(stage.mount.filler()).expect("there is room again");
    stage.disked.again(Signal::TERM).await;
    stage.is_used_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_cannot_be_read_is_left_alone_and_that_is_remembered() {
    let Some(mut stage) = Stage::start().await else { return };
    stage.disked.again(Signal::TERM).await;
    stage.mount.cut(8 << 20);
    let has_failed = async || {
        stage.mount.forget();
        stage.ask_for_all().await;
        stage.figure("errors_read_total").await > 0
    };
    eventually("a read fails", has_failed).await;
    assert_eq!(stage.figure("up").await, 0, "it is out of use");
    stage.purge(3).await;
    stage.ask_for_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_system_that_turns_read_only_costs_no_client_a_response() {
    let Some(mut stage) = Stage::start().await else { return };
    stage.mount.break_down();
    for page in 0..10 {
        stage.purge(page).await;
    }
    stage.ask_for_all().await;
    assert_eq!(stage.figure("up").await, 0, "it is out of use");
    stage.ask_for_all().await;
}

/// A daemon whose disk cache is configured below a file, where no directory can be.
async fn without_a_disk(policy: Policy) -> (Disked, PathBuf) {
    let folder = Folder::new();
    let place = folder.path().join("place");
    fs::write(&place, "not a directory").expect("a file");
    let top = "[limits]\ndisk_retry = \"1s\"";
    let disked = Disked::start_at(policy, top, &place.join("disk"), folder).await;
    (disked, place)
}

fn page(text: &str) -> Script {
    let length = text.len();
    Script::respond(format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: {length}\r\n\r\n{text}"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_unusable_at_the_start_is_reported_and_used_once_it_is_usable() {
    for policy in [Policy::Declared, Policy::Vcl] {
        let (disked, place) = without_a_disk(policy).await;
        disked.origin.on("/", page("first"));
        for _ in 0..2 {
            assert_eq!(disked.get("/").await.text(), "first");
        }
        assert_eq!(disked.origin.seen("/"), 1, "memory answers");
        let log = disked.daemon().log();
        let told = format!("the disk cache in {}", place.join("disk").display());
        assert!(log.contains(&told) && log.contains("name a directory"), "{log}");
        let ready = Ask::get("/readyz").send_locally(disked.daemon()).await;
        let text = String::from_utf8_lossy(&ready.body).into_owned();
        let without = format!("ready\nwithout {told}");
        assert!(ready.status == 200 && text.starts_with(&without[..20]), "{text}");
        assert_eq!(disked.metric("larder_disk_volume_up").await, 0);
        // The purge is in force here, even without the promise to last.
        for version in ["second", "third"] {
            disked.origin.on("/", page(version));
            let purged = disked.ask("PURGE", "/", "").await;
            let is_told = purged.status == 503 && !purged.text().contains("Nothing");
            assert!(policy == Policy::Vcl || is_told, "{} {}", purged.status, purged.text());
            assert_eq!(disked.get("/").await.text(), version);
        }
        fs::remove_file(&place).expect("it is there");
        fs::create_dir(&place).expect("a directory");
        let is_up = async || disked.metric("larder_disk_volume_up").await == 1;
        eventually("the volume is used", is_up).await;
        assert_eq!(disked.ask("PURGE", "/", "").await.status, 200);
        let ready = Ask::get("/readyz").send_locally(disked.daemon()).await;
        assert_eq!(ready.body, b"ready\n");
    }
}
