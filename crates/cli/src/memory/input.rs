use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use isolith_types::{Code, Failure, LONGEST_DRAWER};

/// Reads a text from a file, or from standard input. Stops reading once the text is too long to
/// store.
pub(crate) fn read_text(file: Option<&Path>) -> Result<String, Failure> {
    let name = file.map_or("standard input".to_owned(), |file| file.display().to_string());
    let bad =
        |code, reason: &dyn std::fmt::Display| Failure::new(code, format!("{name}: {reason}"));
    let mut bytes = Vec::new();
    let limit = LONGEST_DRAWER as u64 + 1;
    let read = match file {
        Some(file) => File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
        None => io::stdin().lock().take(limit).read_to_end(&mut bytes),
    };
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(bad(Code::NotFound, &error));
        }
        Err(error) => return Err(bad(Code::BadInput, &error)),
        Ok(length) if length > LONGEST_DRAWER => {
            return Err(bad(Code::TooLarge, &format!("longer than {LONGEST_DRAWER} bytes"))
                .with_hint("split it into several texts"));
        }
        Ok(_) => {}
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        bad(Code::BadInput, &format!("byte {at} is not UTF-8"))
            .with_hint("convert the text first, for example with iconv")
    })
}
