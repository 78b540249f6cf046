//! Names of zones and of their files: any text is answered, and what is accepted comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(zone) = rapl::parsers::zone(text) {
        assert_eq!(zone, text);
    }
    let _ = rapl::parsers::name(text);
    let _ = rapl::parsers::constraint(text);
});
