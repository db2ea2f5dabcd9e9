//! A file of users, and the credentials of an Authorization: only users of the file are admitted.
#![no_main]

use policy::users::{Users, basic_credentials};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (value, file) = data.split_at(at);
    let shown = basic_credentials(value);
    if let Some((user, password)) = &shown {
        assert!(!user.is_empty() && !user.contains(&b':'));
        assert!(user.iter().chain(password).all(|byte| !byte.is_ascii_control()));
    }
    let Ok(users) = Users::parse(file) else { return };
    // What a strong hash costs is known.
    let is_cheap = !file.windows(2).any(|pair| pair == b"$2");
    if let Some((user, password)) = shown.filter(|_| is_cheap)
        && users.has(&user, &password)
    {
        assert!(file.windows(user.len()).any(|part| part == user));
    }
});
