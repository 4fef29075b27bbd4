#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sparkgate_fuzz::command_line(data));
