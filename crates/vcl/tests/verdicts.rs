//! Verdicts on programs in `right` and `faulty`, each with the reason in its first line: Larder's
//! verdict, its messages (`UPDATE=1` rewrites the `.txt` beside a program), and varnishd's verdict
//! where it is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use vcl::program::{CompileSettings, Input, Program, ProgramRole};
use vcl::source::Loader;

/// Programs of one directory, sorted.
fn programs(directory: &str) -> Vec<PathBuf> {
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let entries = fs::read_dir(&at).expect("the directory of programs is there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "vcl"))
        .collect();
    paths.sort();
    paths
}

/// A loader of the files of one directory.
struct Directory<'a>(&'a Path);

impl Directory<'_> {
    /// `name` relative to the directory, as `from` means it.
    fn resolve(name: &str, from: &str) -> Result<PathBuf, String> {
        match name.strip_prefix("./") {
            Some(rest) => Ok(Path::new(from).parent().unwrap_or_else(|| Path::new("")).join(rest)),
            None => Err("there is no such file".to_owned()),
        }
    }
}

impl Loader for Directory<'_> {
    fn load(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), String> {
        let relative = Self::resolve(name, from)?;
        let bytes = fs::read(self.0.join(&relative)).map_err(|error| error.kind().to_string())?;
        Ok((relative.to_string_lossy().into_owned(), bytes))
    }

    fn glob(&self, pattern: &str, from: &str) -> Result<Vec<String>, String> {
        let Ok(relative) = Self::resolve(pattern, from) else { return Ok(Vec::new()) };
        let parent = relative.parent().unwrap_or_else(|| Path::new(""));
        let pattern = relative.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (begin, end) = pattern.split_once('*').ok_or("a pattern has a star")?;
        let entries = fs::read_dir(self.0.join(parent)).map_err(|e| e.kind().to_string())?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(begin) && name.ends_with(end))
            .map(|name| format!("./{}", parent.join(name).display()))
            .collect();
        names.sort();
        Ok(names)
    }
}

/// Larder's verdict on a program: its warnings, or the errors.
fn verdict(path: &Path) -> Result<String, String> {
    let text = fs::read(path).expect("a program can be read");
    let directory = path.parent().expect("a program is in a directory");
    let name = path.file_name().expect("a program has a name").to_string_lossy();
    let rules = CompileSettings {
        storages: &["s0", "Transient"],
        labels: &[],
        include_depth: 16,
        unused_is_error: true,
        role: ProgramRole::Whole,
    };
    let loader = Directory(directory);
    let input = Input { name: &name, text: &text, loader: &loader, rules };
    Program::compile(&input).map(|compiled| compiled.warnings)
}

/// Compares `said` with the file beside the program; returns the difference, if any.
fn golden(path: &Path, said: &str) -> Option<String> {
    let file = path.with_extension("txt");
    let wanted = fs::read_to_string(&file).unwrap_or_default();
    let said = if said.is_empty() { String::new() } else { format!("{said}\n") };
    if wanted == said {
        return None;
    }
    if std::env::var_os("UPDATE").is_some() {
        match said.is_empty() {
            true => fs::remove_file(&file).expect("it can be removed"),
            false => fs::write(&file, &said).expect("it can be written"),
        }
        return None;
    }
    Some(format!("{}\n--- wanted\n{wanted}--- said\n{said}", file.display()))
}

fn hold(directory: &str, right: bool, least: usize) {
    let paths = programs(directory);
    assert!(paths.len() >= least, "{} programs only", paths.len());
    let mut wrong = Vec::new();
    for path in &paths {
        match (verdict(path), right) {
            (Ok(said), true) | (Err(said), false) => wrong.extend(golden(path, &said)),
            (Ok(_), false) => wrong.push(format!("{} is taken", path.display())),
            (Err(said), true) => wrong.push(format!("{} is refused\n{said}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), paths.len(), wrong.join("\n"));
}

#[test]
fn faulty_programs_are_rejected_with_the_reason() {
    hold("faulty", false, 300);
}

#[test]
fn right_programs_are_taken() {
    hold("right", true, 100);
}

#[test]
fn every_program_says_in_its_first_line_what_it_is_about() {
    for path in programs("faulty").iter().chain(&programs("right")) {
        let text = String::from_utf8_lossy(&fs::read(path).expect("it can be read")).into_owned();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("# ") && first.ends_with('.'), "{}", path.display());
    }
}

/// Returns true if Varnish accepts a program.
fn taken_by_varnish(path: &Path, work: &Path) -> bool {
    let status = Command::new("varnishd")
        .arg("-C")
        // Without optimisation the C compiler takes a third of the time.
        .args(["-p", "cc_command=exec gcc -O0 %w -pthread -fpic -shared -Wl,-x -o %o %s"])
        .arg("-n")
        .arg(work)
        .arg("-f")
        .arg(path)
        .output()
        .expect("varnishd starts: it has told its version before");
    let _ = fs::remove_dir_all(work);
    status.status.success()
}

#[test]
fn varnish_takes_the_same_programs() {
    if Command::new("varnishd").arg("-V").output().is_err() {
        eprintln!("varnishd is not installed: its verdicts are not held against ours");
        return;
    }
    let paths: Vec<(PathBuf, bool)> = programs("faulty")
        .into_iter()
        .map(|path| (path, false))
        .chain(programs("right").into_iter().map(|path| (path, true)))
        .collect();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let work = std::env::temp_dir().join(format!("larder-verdicts-{}", std::process::id()));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let run = |worker: usize| {
            let (next, paths) = (&next, &paths);
            let work = work.with_extension(worker.to_string());
            move || {
                let mut wrong = Vec::new();
                while let Some((path, right)) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if taken_by_varnish(path, &work) != *right {
                        wrong.push(format!("{}: Varnish says the opposite", path.display()));
                    }
                }
                wrong
            }
        };
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(run(worker))).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no worker panics")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
