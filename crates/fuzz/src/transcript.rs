use isolith_intake::transcript::{
    DrawerBatch, Format, Transcript, TranscriptError, TranscriptOptions,
};

/// The formats to read a file as; `None` detects the format.
const FORMATS: [Option<Format>; 9] = [
    None,
    Some(Format::Drawers),
    Some(Format::Text),
    Some(Format::Markdown),
    Some(Format::Claude),
    Some(Format::Chatgpt),
    Some(Format::ClaudeCode),
    Some(Format::Codex),
    Some(Format::Gemini),
];

/// Conversation exports: batch sizes and resuming must not change the drawers. An input is accepted
/// if its format is detected and it has no problems.
pub fn transcript(data: &[u8]) -> bool {
    let mut accepted = false;
    for format in FORMATS {
        let options =
            TranscriptOptions { name: "export".to_owned(), format, ..TranscriptOptions::default() };
        let Ok(whole) = read(&options, data, usize::MAX, false) else { continue };
        for resumes in [false, true] {
            let parts = read(&options, data, 1, resumes).expect("one batch could be read");
            assert_eq!(parts, whole, "the result depends on the batch size: {format:?}");
        }
        let has_drawers = !whole.drawers.is_empty() && whole.problems.is_empty();
        accepted |= format.is_none() && has_drawers;
    }
    accepted
}

/// Reads a whole file in batches of this size.
fn read(
    options: &TranscriptOptions,
    data: &[u8],
    rows: usize,
    resumes: bool,
) -> Result<DrawerBatch, TranscriptError> {
    let mut transcript = Transcript::open(data, options.clone())?;
    let mut all = DrawerBatch::default();
    while let Some(batch) = transcript.next(rows, usize::MAX)? {
        all.drawers.extend(batch.drawers);
        all.rows.extend(batch.rows);
        all.problems.extend(batch.problems);
        all.skipped += batch.skipped;
        if resumes {
            let cursor = transcript.cursor().clone();
            transcript = Transcript::resume(data, options.clone(), cursor)?;
        }
    }
    Ok(all)
}
