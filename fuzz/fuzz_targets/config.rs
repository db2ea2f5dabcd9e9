//! `config::load_str`: any text is a configuration or a list of complaints. Each complaint renders
//! with its place.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let complaints = match config::load_str(text, "larder.toml") {
        Ok((_, warnings)) => warnings,
        Err(errors) => {
            assert!(!errors.is_empty());
            errors
        }
    };
    for complaint in complaints {
        assert!(!complaint.render(false).is_empty());
    }
});
